//! Words: stems, and which words mean the same.

pub(super) use super::content::{ABOUT_REPLIES, VAGUE, VAGUE_AMOUNTS, VAGUE_WHO, is_filler};

/// Words that mean the same where tools and requests are compared, as stems are made of them. A group has the nouns and
/// verbs of one action or one thing.
const ALIKE: &[&[&str]] = &[
    &["mail", "email", "e-mail", "mailing"],
    &["send", "sent", "dispatch"],
    &["change", "update", "alter", "modify", "edit", "amend", "adjust"],
    &["delete", "remove", "drop", "erase", "purge", "wipe", "destroy", "deletion", "removal"],
    &["create", "make", "made", "add", "place", "set-up", "creation"],
    &[
        "read", "get", "got", "view", "see", "saw", "seen", "show", "look", "fetch", "retrieve", "display",
        "list", "find", "query", "lookup", "preview", "browse", "search", "check", "open", "inspect",
    ],
    &["issue", "give", "gave", "given", "grant", "hand", "award"],
    &["pay", "paid", "payment", "payout", "disburse", "remit"],
    &["transfer", "wire"],
    &["refund", "reimburse", "reimbursement"],
    &["deploy", "deployment", "rollout", "roll-out"],
    &["publish", "publication"],
    &["reboot", "restart"],
    &["restore", "recover"],
    &["backup", "back-up"],
    &["export", "download"],
    &["import", "upload"],
    &["approve", "approval", "authorise", "authorize"],
    &["close", "closure"],
    &["cancel", "cancellation", "cancelled", "canceled"],
    &["book", "reserve", "reservation", "booking"],
    &["buy", "bought", "purchase"],
    &["write", "wrote", "written", "save", "store"],
    &["run", "ran", "execute", "launch", "start", "trigger"],
    &["order", "reorder"],
    &["file", "document"],
    &["database", "db"],
    &["directory", "folder", "dir"],
    &["customer", "client", "shopper"],
    &["employee", "staff", "worker"],
    &["repository", "repo"],
    &["environment", "env"],
    &["production", "prod", "live"],
    &["staging", "stage"],
    &["message", "msg"],
    &["configuration", "config"],
    &["prescription", "prescribe"],
    &["discount", "rebate"],
    &["subscribe", "subscription"],
    &["invite", "invitation"],
    &["reply", "replies", "response", "answer"],
    &["host", "server", "machine"],
    &["increase", "raise"],
    &["ship", "shipment", "shipping"],
    &["charge", "bill"],
    &["merge", "merging"],
    &["test", "testing"],
    &["migrate", "migration"],
    &["picture", "image", "photo"],
    &["job", "task"],
    &["rotate", "rotation"],
    &["revoke", "revocation"],
    &["promote", "promotion"],
    &["suspend", "suspension"],
    &["terminate", "termination"],
    &["extend", "extension"],
    &["dose", "dosage"],
    &["submit", "submission", "hand-in"],
    &["reject", "rejection"],
    &["verify", "verification"],
    &["sign", "signature"],
    &["withdraw", "withdrawal", "withdrew", "withdrawn"],
    &["donate", "donation"],
    &["phone", "dial", "telephone"],
    &["void", "annul", "annulment"],
    &["enrol", "enroll", "enrolment", "enrollment"],
];

/// Verbs of which a tool has to have its own: a request to delete is not about a tool that lists.
const ACTIONS: &[&str] = &[
    "send",
    "change",
    "delete",
    "create",
    "read",
    "issue",
    "pay",
    "transfer",
    "refund",
    "deploy",
    "publish",
    "reboot",
    "restore",
    "export",
    "import",
    "approve",
    "close",
    "reopen",
    "cancel",
    "book",
    "buy",
    "write",
    "run",
    "insert",
    "lock",
    "unlock",
    "submit",
    "merge",
    "post",
    "archive",
    "rename",
    "copy",
    "move",
    "revoke",
    "reset",
    "rotate",
    "suspend",
    "terminate",
    "rollback",
    "assign",
    "invite",
    "reject",
    "verify",
    "sign",
    "withdraw",
    "promote",
    "disable",
    "enable",
    "install",
    "stop",
    "increase",
    "extend",
    "release",
    "ship",
    "subscribe",
    "unsubscribe",
    "void",
    "unshare",
    "upgrade",
    "downgrade",
    "unblock",
    "dispense",
];

/// Ends of words that are taken off, with what takes their place. The first that fits counts.
const ENDS: &[(&str, &str, usize)] = &[
    ("iness", "i", 3),
    ("ments", "", 3),
    ("ment", "", 3),
    ("ations", "at", 3),
    ("ation", "at", 3),
    ("ions", "", 4),
    ("ion", "", 4),
    ("ovals", "ov", 2),
    ("oval", "ov", 2),
    ("sses", "ss", 2),
    ("ches", "ch", 2),
    ("shes", "sh", 2),
    ("xes", "x", 2),
    ("ies", "y", 2),
    ("ied", "y", 2),
    ("ings", "", 3),
    ("ing", "", 3),
    ("eed", "eed", 1),
    ("ed", "", 3),
    ("ss", "ss", 1),
    ("us", "us", 2),
    ("is", "is", 2),
    ("s", "", 2),
];

/// A word without its ending: the same for its forms, and not always a word.
pub(super) fn stem(word: &str) -> String {
    let word = word.strip_suffix("'s").or_else(|| word.strip_suffix('\'')).unwrap_or(word);
    let mut stem = word.to_owned();
    for round in 0..2 {
        // The `s` of `closed` is the word's own.
        let cut = ENDS.iter().filter(|(end, ..)| round == 0 || *end != "s").find_map(|(end, put, least)| {
            let rest = stem.strip_suffix(end)?;
            (rest.chars().count() >= *least).then(|| format!("{rest}{put}"))
        });
        match cut {
            Some(cut) if cut != stem => stem = cut,
            _ => break,
        }
    }
    if stem.chars().count() > 3
        && let Some(rest) = stem.strip_suffix('e')
    {
        stem = rest.to_owned();
    }
    let mut ends = stem.chars().rev();
    if let (Some(last), Some(before)) = (ends.next(), ends.next())
        && last == before
        && stem.chars().count() > 3
        && !last.is_ascii_digit()
    {
        stem.pop();
    }
    if stem.ends_with('y') && stem.chars().count() > 2 {
        stem.pop();
        stem.push('i');
    }
    stem
}

/// The stem of what a word means the same as.
pub(super) fn sense(word: &str) -> String {
    let own = stem(word);
    let fits = |group: &&&[&str]| group.iter().any(|alike| *alike == word || stem(alike) == own);
    match ALIKE.iter().find(fits).and_then(|group| group.first()) {
        Some(first) => stem(first),
        None => own,
    }
}

/// Whether a sense is that of an action.
pub(super) fn is_action(sense: &str) -> bool {
    ACTIONS.iter().any(|action| stem(action) == sense)
}

/// The parts of a name such as `send_email`, `mail.send`, `placeOrder`, in lower case.
pub(super) fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut lower_before = false;
    for c in name.chars() {
        let starts = c.is_uppercase() && lower_before;
        if (starts || !c.is_alphanumeric()) && parts.last().is_some_and(|part| !part.is_empty()) {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| c.is_alphanumeric()) {
            part.extend(c.to_lowercase());
        }
        lower_before = c.is_lowercase() || c.is_ascii_digit();
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_have_one_sense() {
        for (one, other) in [
            ("refunds", "refund"),
            ("issued", "issue"),
            ("deployments", "deploy"),
            ("sent", "send"),
            ("emails", "email"),
            ("payments", "pay"),
            ("deleted", "remove"),
            ("approval", "approve"),
            ("migrations", "migrate"),
            ("copies", "copy"),
            ("shipping", "shipment"),
            ("merging", "merge"),
            ("closed", "close"),
            ("addresses", "address"),
            ("creating", "create"),
            ("resets", "resetting"),
            ("searches", "search"),
            ("publishing", "publish"),
            ("restored", "restore"),
        ] {
            assert_eq!(sense(one), sense(other), "{one} {other}");
        }
        for (one, other) in [("lock", "unlock"), ("read", "write"), ("send", "mail"), ("open", "reopen")] {
            assert_ne!(sense(one), sense(other), "{one} {other}");
        }
    }

    #[test]
    fn names_come_apart() {
        assert_eq!(parts("placeOrder"), ["place", "order"]);
        assert_eq!(parts("mail.send_now"), ["mail", "send", "now"]);
        assert_eq!(parts("amountCents"), ["amount", "cents"]);
    }
}
