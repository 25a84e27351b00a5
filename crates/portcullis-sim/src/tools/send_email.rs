//! `send_email`: puts a mail into the outbox, one `.eml` file each (RFC 5322, UTF-8 headers as in
//! RFC 6532).
//!
//! A line break in a header field would start another header: a `Subject` of
//! `"Hello\r\nBcc: everyone@example.com"` adds a hidden recipient. So recipients and subject may hold
//! no control character at all. A mail appears in the outbox whole or not at all, and the file of an
//! earlier mail is never overwritten.
//!
//! Result: `{"recipients", "subject", "file", "bytes"}`.

use std::fs;
use std::path::Path;

use portcullis_core::time::Timestamp;
use portcullis_ledger::clock::now;
use serde_json::json;

use super::workspace::io_error;
use super::{ArgumentSpec, Arguments, Tool, ToolError, ToolOutput, Workspace, quoted};

/// Most mails an outbox holds.
const MAX_MAILS: u32 = 10_000;
/// Most recipients of a mail.
const MAX_RECIPIENTS: usize = 20;
/// Longest address, in bytes (RFC 5321 4.5.3.1.3, less its angle brackets).
const MAX_ADDRESS_BYTES: usize = 254;
/// Longest subject, in bytes: with its name the line stays below [`MAX_LINE_BYTES`].
const MAX_SUBJECT_BYTES: usize = 900;
/// Longest body, in bytes.
const MAX_BODY_BYTES: usize = 256 * 1024;
/// Longest line of a mail, in bytes without its end (RFC 5322 2.1.1).
const MAX_LINE_BYTES: usize = 998;
/// Longest line of quoted-printable text, in bytes (RFC 2045 6.7), less the `=` of a soft break.
const MAX_ENCODED_LINE_BYTES: usize = 75;

pub(super) static TOOL: Tool = Tool {
    id: "send_email",
    name: "Send Email",
    description: "Send an email. What has been sent cannot be called back.",
    read_only: false,
    destructive: false,
    idempotent: false,
    arguments: &[
        ArgumentSpec {
            name: "recipient",
            description: "One address, or several separated by commas.",
            max_bytes: MAX_RECIPIENTS * (MAX_ADDRESS_BYTES + 2),
        },
        ArgumentSpec { name: "subject", description: "The subject line.", max_bytes: MAX_SUBJECT_BYTES },
        ArgumentSpec { name: "body", description: "The text of the mail.", max_bytes: MAX_BODY_BYTES },
    ],
    run,
};

fn run(workspace: &Workspace, arguments: &Arguments<'_>) -> Result<ToolOutput, ToolError> {
    let recipients = recipients(arguments)?;
    let subject = arguments.text("subject")?;
    if let Some(character) = subject.chars().find(|c| c.is_control()) {
        let problem = format!("holds the control character U+{:04X}; use one line", u32::from(character));
        return Err(arguments.refuse("subject", problem));
    }
    let body = arguments.text("body")?;
    if body.contains('\0') {
        return Err(arguments.refuse("body", "holds a NUL character; send text".to_owned()));
    }

    let _writing = workspace.lock_writing();
    let outbox = workspace.outbox();
    let mut number = last_number(&outbox)?;
    loop {
        number += 1;
        if number > MAX_MAILS {
            return Err(ToolError::Limit {
                what: "the outbox",
                limit: format!("{MAX_MAILS} mails"),
                remedy: "move old mails out of it",
            });
        }
        let mail = compose(number, &recipients, subject, body);
        let name = format!("{number:05}.eml");
        let target = outbox.join(&name);
        let unfinished = workspace.write_temporary(mail.as_bytes())?;
        // A link fails where a rename would overwrite: a mail of another process is never lost.
        let sent = fs::hard_link(&unfinished, &target);
        let _ = fs::remove_file(&unfinished);
        match sent {
            Ok(()) => return Ok(output(&recipients, subject, &name, mail.len())),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(io_error("send", &target, error)),
        }
    }
}

fn output(recipients: &[&str], subject: &str, name: &str, bytes: usize) -> ToolOutput {
    let file = format!("outbox/{name}");
    ToolOutput {
        text: format!("sent to {}: {subject}", recipients.join(", ")),
        structured: json!({"recipients": recipients, "subject": subject, "file": file, "bytes": bytes}),
    }
}

fn recipients<'a>(arguments: &Arguments<'a>) -> Result<Vec<&'a str>, ToolError> {
    let list: Vec<&str> =
        arguments.text("recipient")?.split(',').map(|address| address.trim_matches(' ')).collect();
    if list.len() > MAX_RECIPIENTS {
        let problem = format!("names {} addresses; the limit is {MAX_RECIPIENTS}", list.len());
        return Err(arguments.refuse("recipient", problem));
    }
    match list.iter().find(|address| !is_address(address)) {
        Some(bad) => {
            let problem = format!("holds `{}`, which is not an address like `name@example.com`", quoted(bad));
            Err(arguments.refuse("recipient", problem))
        }
        None => Ok(list),
    }
}

/// A plain `local@domain`. Narrower than RFC 5322 on purpose: no quotes, comments or angle brackets,
/// in which a second address could hide.
fn is_address(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else { return false };
    let local_fits =
        !local.is_empty() && local.chars().all(|c| c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~.".contains(c));
    let domain_fits = domain
        .split('.')
        .all(|label| !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-'));
    text.len() <= MAX_ADDRESS_BYTES && local_fits && domain_fits
}

/// The highest number among the mails of `outbox`, 0 if there is none.
fn last_number(outbox: &Path) -> Result<u32, ToolError> {
    let entries = fs::read_dir(outbox).map_err(|error| io_error("list", outbox, error))?;
    let mut last = 0;
    for entry in entries {
        let entry = entry.map_err(|error| io_error("list", outbox, error))?;
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".eml")).and_then(|n| n.parse().ok());
        last = last.max(number.unwrap_or(0));
    }
    Ok(last)
}

fn compose(number: u32, recipients: &[&str], subject: &str, body: &str) -> String {
    let date = date(now());
    let lines: Vec<&str> = body.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
    let fits = lines.iter().all(|line| line.len() <= MAX_LINE_BYTES && !line.contains('\r'));
    let (encoding, text) = if fits {
        ("8bit", lines.join("\r\n"))
    } else {
        ("quoted-printable", lines.iter().map(|line| quoted_printable(line)).collect::<Vec<_>>().join("\r\n"))
    };
    format!(
        "Date: {date}\r\nFrom: agent@portcullis.invalid\r\nTo: {}\r\nSubject: {subject}\r\n\
         Message-ID: <{number}@portcullis.invalid>\r\nMIME-Version: 1.0\r\n\
         Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n{text}",
        // One address a line, so that even a full list keeps to the line limit.
        recipients.join(",\r\n ")
    )
}

/// `time` as mail writes it (RFC 5322 3.3, without the optional weekday): `1 Mar 2026 09:30:00 +0000`.
fn date(time: Timestamp) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    // The text is always `YYYY-MM-DDThh:mm:ss.ffffffZ`.
    let text = time.to_string();
    let field = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let month = field(5, 7).parse().ok().and_then(|month: usize| MONTHS.get(month.checked_sub(1)?));
    format!(
        "{} {} {} {} +0000",
        field(8, 10).trim_start_matches('0'),
        month.copied().unwrap_or_default(),
        field(0, 4),
        field(11, 19)
    )
}

/// A line in quoted-printable (RFC 2045 6.7), broken softly.
fn quoted_printable(line: &str) -> String {
    let mut encoded = String::with_capacity(line.len());
    let mut width = 0;
    for byte in line.bytes() {
        let literal = matches!(byte, b'!'..=b'<' | b'>'..=b'~');
        let piece = if literal { char::from(byte).to_string() } else { format!("={byte:02X}") };
        if width + piece.len() > MAX_ENCODED_LINE_BYTES {
            encoded.push_str("=\r\n");
            width = 0;
        }
        width += piece.len();
        encoded.push_str(&piece);
    }
    encoded
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::create(dir.path(), &BTreeMap::new()).unwrap();
        (dir, workspace)
    }

    fn send(
        workspace: &Workspace,
        recipient: &str,
        subject: &str,
        body: &str,
    ) -> Result<ToolOutput, ToolError> {
        workspace.call(TOOL.id, &json!({"recipient": recipient, "subject": subject, "body": body}))
    }

    fn outbox_len(workspace: &Workspace) -> usize {
        fs::read_dir(workspace.outbox()).unwrap().count()
    }

    #[test]
    fn a_mail_is_one_well_formed_file() {
        let (_dir, workspace) = workspace();
        let sent = send(&workspace, "ann@example.com, bob@example.com", "Grüße", "One.\nTwo.\r\n").unwrap();
        assert_eq!(sent.structured["file"], "outbox/00001.eml");
        assert_eq!(sent.text, "sent to ann@example.com, bob@example.com: Grüße");
        let mail = fs::read_to_string(workspace.outbox().join("00001.eml")).unwrap();
        let (head, body) = mail.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, "One.\r\nTwo.\r\n");
        assert!(
            head.contains("\r\nTo: ann@example.com,\r\n bob@example.com\r\nSubject: Grüße\r\n"),
            "{head}"
        );
        assert_eq!(
            send(&workspace, "ann@example.com", "2", "").unwrap().structured["file"],
            "outbox/00002.eml"
        );
    }

    #[test]
    fn headers_cannot_be_injected() {
        let (_dir, workspace) = workspace();
        for subject in ["Hi\r\nBcc: eve@example.com", "Hi\nBcc: eve@example.com", "Hi\rX", "Hi\u{85}X"] {
            let error = send(&workspace, "ann@example.com", subject, "x").unwrap_err().to_string();
            assert!(error.contains("control character"), "{error}");
        }
        for recipient in [
            "",
            "ann",
            "@example.com",
            "ann@",
            "ann@example.com\r\nBcc: eve@example.com",
            "ann@example.com,",
            "Ann <ann@example.com>",
            "ann@example..com",
            "a b@example.com",
            "ann@eve@example.com",
            "ann@example.com;eve@example.com",
        ] {
            let error = send(&workspace, recipient, "s", "x").unwrap_err().to_string();
            assert!(error.contains("is not an address"), "{recipient:?}: {error}");
        }
        assert!(send(&workspace, "ann@example.com", "s", "a\0b").is_err());
        let many = vec!["ann@example.com"; MAX_RECIPIENTS + 1].join(",");
        assert!(send(&workspace, &many, "s", "x").unwrap_err().to_string().contains("the limit is 20"));
        assert_eq!(outbox_len(&workspace), 0);
    }

    #[test]
    fn long_lines_are_encoded() {
        let (_dir, workspace) = workspace();
        send(&workspace, "ann@example.com", "s", &"é=a ".repeat(400)).unwrap();
        let mail = fs::read_to_string(workspace.outbox().join("00001.eml")).unwrap();
        assert!(
            mail.contains("Content-Transfer-Encoding: quoted-printable\r\n\r\n=C3=A9=3Da=20=C3"),
            "{mail}"
        );
        assert!(mail.split("\r\n").all(|line| line.len() <= MAX_ENCODED_LINE_BYTES + 1));
    }

    #[test]
    fn dates_are_those_of_mail() {
        assert_eq!(date(Timestamp::from_micros(1_709_285_400_000_000)), "1 Mar 2024 09:30:00 +0000");
        assert_eq!(date(Timestamp::from_micros(1_735_603_199_999_999)), "30 Dec 2024 23:59:59 +0000");
    }

    #[test]
    fn mails_sent_at_once_all_arrive() {
        let (dir, workspace) = workspace();
        // Two workspaces on one folder share no lock, as two processes do not.
        let other = Workspace::create(dir.path(), &BTreeMap::new()).unwrap();
        std::thread::scope(|scope| {
            for number in 0..16 {
                let workspace = if number % 2 == 0 { &workspace } else { &other };
                scope.spawn(move || send(workspace, "ann@example.com", &number.to_string(), "x").unwrap());
            }
        });
        assert_eq!(outbox_len(&workspace), 16);
        assert!(workspace.outbox().join("00016.eml").exists());
    }

    #[test]
    fn a_full_outbox_refuses() {
        let (_dir, workspace) = workspace();
        fs::write(workspace.outbox().join(format!("{MAX_MAILS}.eml")), "").unwrap();
        let error = send(&workspace, "ann@example.com", "s", "x").unwrap_err().to_string();
        assert_eq!(error, "the outbox is limited to 10000 mails; move old mails out of it");
    }
}
