//! What is a secret, and what only looks like one. Tokens are put together here, so that no scanner takes this file for
//! a leak.

use super::*;

fn kinds(text: &str) -> Vec<&'static str> {
    find(text).into_iter().map(|secret| secret.kind).collect()
}

/// Letters and digits in no order, always the same.
fn noise(length: usize) -> String {
    const LETTERS: &[u8; 62] = b"q7RtZ0aKf3XbW9mEs1LcYh5VdGu8NjPi2TkoO4xBv6wSrQnMyJgFzIHpDeAlCU";
    (0..length).map(|at| char::from(LETTERS[(at * 29 + at * at * 7) % 62])).collect()
}

fn hex(length: usize) -> String {
    noise(length).bytes().map(|byte| char::from(b"0123456789abcdef"[usize::from(byte % 16)])).collect()
}

fn jwt() -> String {
    format!("eyJ{}.eyJ{}.{}", noise(33), noise(60), noise(43))
}

fn pem(label: &str, line_break: &str) -> String {
    let lines: Vec<String> = (1..4).map(|n| noise(60 + n)).collect();
    format!("-----BEGIN {label}-----{line_break}{}{line_break}-----END {label}-----", lines.join(line_break))
}

/// Tokens that are told by themselves.
fn issued() -> Vec<(&'static str, String)> {
    vec![
        ("aws-access-key", format!("AKIA{}", "Q3EGZ7LM2XKD5R6T")),
        ("aws-access-key", format!("ASIA{}", "Q3EGZ7LM2XKD5R6T")),
        ("github-token", format!("ghp_{}", noise(36))),
        ("github-token", format!("ghs_{}", noise(36))),
        ("github-token", format!("github_pat_{}_{}", noise(22), noise(59))),
        ("gitlab-token", format!("glpat-{}", noise(20))),
        ("anthropic-key", format!("sk-ant-api03-{}", noise(80))),
        ("openai-key", format!("sk-proj-{}", noise(48))),
        ("api-key", format!("sk-{}", noise(48))),
        ("api-key", format!("sk-{}", hex(32))),
        ("stripe-key", format!("sk_live_{}", noise(24))),
        ("stripe-key", format!("rk_live_{}", noise(24))),
        ("slack-token", format!("xoxb-{}-{}", "123412341234", noise(24))),
        ("webhook-secret", format!("whsec_{}", noise(32))),
        ("google-api-key", format!("AIza{}", noise(35))),
        ("google-token", format!("ya29.{}", noise(60))),
        ("google-client-secret", format!("GOCSPX-{}", noise(28))),
        ("npm-token", format!("npm_{}", noise(36))),
        ("pypi-token", format!("pypi-AgEI{}", noise(80))),
        ("hugging-face-token", format!("hf_{}", noise(34))),
        ("sendgrid-key", format!("SG.{}.{}", noise(22), noise(43))),
        ("digitalocean-token", format!("dop_v1_{}", hex(64))),
        ("docker-token", format!("dckr_pat_{}", noise(27))),
        ("shopify-token", format!("shpat_{}", hex(32))),
        ("vault-token", format!("hvs.{}", noise(24))),
        ("jwt", jwt()),
        ("private-key", pem("PRIVATE KEY", "\n")),
        ("private-key", pem("RSA PRIVATE KEY", "\r\n")),
        ("private-key", pem("OPENSSH PRIVATE KEY", "\\n")),
        ("private-key", pem("EC PRIVATE KEY", "\\\\n")),
    ]
}

#[test]
fn issued_tokens_are_told_wherever_they_stand() {
    for (kind, token) in issued() {
        for (before, after) in [
            ("", ""),
            ("use ", " for that."),
            ("KEY=", "\nNEXT=1"),
            ("{\"value\":\"", "\"}"),
            ("{\\\"value\\\":\\\"", "\\\"}"),
            ("\"line\\n", "\\nline\""),
            ("(", ")"),
            ("https://api.example.org/v1?k=", "&page=2"),
            ("`", "`"),
        ] {
            let text = format!("{before}{token}{after}");
            let redacted = redact(&text);
            assert_eq!(redacted.text, format!("{before}[secret:{kind}]{after}"), "{text}");
            assert_eq!(redacted.secrets, 1);
        }
        // Not as part of a longer word.
        if kind != "private-key" {
            assert_eq!(kinds(&format!("x{token}")), Vec::<&str>::new(), "{token}");
        }
    }
}

#[test]
fn frames_tell_a_secret() {
    let key = noise(40);
    for (text, expected) in [
        (
            "postgres://app:hunter2@db.internal:5432/main".to_owned(),
            "postgres://app:[secret:password]@db.internal:5432/main",
        ),
        ("amqps://u:p%40ss-w0rd@mq/vhost".to_owned(), "amqps://u:[secret:password]@mq/vhost"),
        ("redis://:s3cr3tpw@cache:6379".to_owned(), "redis://:[secret:password]@cache:6379"),
        (
            "git clone https://ci:Tr0ub4dor@git.corp/x.git".to_owned(),
            "git clone https://ci:[secret:password]@git.corp/x.git",
        ),
        (
            "Server=db;User Id=sa;Password=Tr0ub4dor;Encrypt=yes".to_owned(),
            "Server=db;User Id=sa;Password=[secret:password];Encrypt=yes",
        ),
        (
            format!("AccountName=a;AccountKey={key}==;EndpointSuffix=x"),
            "AccountName=a;AccountKey=[secret:access-key];EndpointSuffix=x",
        ),
        (
            r#"{"user":"emma","password":"correct-horse"}"#.to_owned(),
            r#"{"user":"emma","password":"[secret:password]"}"#,
        ),
        (
            r#""{\"db_password\": \"correct-horse\"}""#.to_owned(),
            r#""{\"db_password\": \"[secret:password]\"}""#,
        ),
        ("export DB_PASSWORD=hunter2!".to_owned(), "export DB_PASSWORD=[secret:password]"),
        ("password: Tr0ub4dor".to_owned(), "password: [secret:password]"),
        ("mysql --password Tr0ub4dor -u root".to_owned(), "mysql --password [secret:password] -u root"),
        ("mysql --password=Tr0ub4dor -u root".to_owned(), "mysql --password=[secret:password] -u root"),
        ("<password>correct-horse</password>".to_owned(), "<password>[secret:password]</password>"),
        (format!("aws_secret_access_key = {key}"), "aws_secret_access_key = [secret:access-key]"),
        (format!(r#"{{"SecretAccessKey":"{key}"}}"#), r#"{"SecretAccessKey":"[secret:access-key]"}"#),
        (format!("X-Api-Key: {key}"), "X-Api-Key: [secret:api-key]"),
        (format!(r#"client_secret="{key}""#), r#"client_secret="[secret:secret]""#),
        (
            format!(r#"{{"access_token":"{key}","expires_in":3600}}"#),
            r#"{"access_token":"[secret:token]","expires_in":3600}"#,
        ),
        (
            format!("curl -H 'Authorization: Bearer {key}' x"),
            "curl -H 'Authorization: Bearer [secret:bearer-token]' x",
        ),
        (
            "Authorization: Basic ZW1tYTpUcjB1YjRkb3I=".to_owned(),
            "Authorization: Basic [secret:basic-authorization]",
        ),
        (
            r#"{"authorization":"token 0123abcd4567"}"#.to_owned(),
            r#"{"authorization":"token [secret:bearer-token]"}"#,
        ),
        (format!("call it with bearer {key}."), "call it with bearer [secret:bearer-token]."),
        (
            format!("post to https://hooks.slack.com/services/T0A1B2C3D/B0A1B2C3D/{}", noise(24)),
            "post to https://hooks.slack.com/services/[secret:webhook-secret]",
        ),
        // A key without its end, in JSON and out of it.
        (
            format!("{{\"key\":\"-----BEGIN PRIVATE KEY-----\\n{key}\"}}"),
            "{\"key\":\"[secret:private-key]\"}",
        ),
    ] {
        let redacted = redact(&text);
        assert_eq!(redacted.text, expected);
        // What was redacted is not redacted again.
        assert_eq!(redact(expected).secrets, 0, "{expected}");
        if serde_json::from_str::<serde_json::Value>(&text).is_ok() {
            serde_json::from_str::<serde_json::Value>(expected).unwrap();
        }
    }
}

#[test]
fn several_secrets_are_told_apart() {
    let text =
        format!("ghp_{} and postgres://a:{}@h/ and {{\"token\":\"{}\"}}", noise(36), "hunter22", jwt());
    assert_eq!(kinds(&text), ["github-token", "password", "jwt"]);
    // A token as password of a URL is told once.
    let text = format!("https://x-access-token:ghp_{}@github.com/a/b", noise(36));
    assert_eq!(redact(&text).text, "https://x-access-token:[secret:github-token]@github.com/a/b");
}

#[test]
fn look_alikes_are_left_alone() {
    let image = format!("data:image/png;base64,iVBORw0KGgo{}{}==", noise(400), noise(99));
    for text in [
        "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12".to_owned(),
        "commit 2fd4e1c67a2d28fced849ee1bb76e7391b93eb12".to_owned(),
        format!("sha256:{}", hex(64)),
        format!("{{\"digest\":\"{}\",\"commitment\":\"{}\"}}", hex(64), hex(64)),
        "550e8400-e29b-41d4-a716-446655440000".to_owned(),
        r#"{"id":"550e8400-e29b-41d4-a716-446655440000"}"#.to_owned(),
        image,
        format!("integrity sha512-{}==", noise(86)),
        format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{} user@host", noise(43)),
        pem("PUBLIC KEY", "\n"),
        pem("CERTIFICATE", "\n"),
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----".to_owned(),
        "YOUR_API_KEY".to_owned(),
        "api_key=YOUR_API_KEY_GOES_HERE_1".to_owned(),
        "OPENAI_API_KEY=sk-your-key-goes-here-please-replace-it-1".to_owned(),
        format!("AKIA{}", "IOSFODNN7EXAMPLE"),
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx".to_owned(),
        "ghp_0000000000000000000000000000000000000".to_owned(),
        "export TOKEN=${GITHUB_TOKEN}".to_owned(),
        "password = os.environ[\"DB_PASSWORD_2\"]".to_owned(),
        "let password = read_password(2)?;".to_owned(),
        "password: &str".to_owned(),
        "token: Option<String>".to_owned(),
        "the password is not written here".to_owned(),
        "password: must be at least 8 characters".to_owned(),
        r#"{"password":"<redacted>"}"#.to_owned(),
        r#"{"password":"********"}"#.to_owned(),
        r#"{"password":{"type":"string","minLength":12}}"#.to_owned(),
        r#"{"password":"string"}"#.to_owned(),
        r#"{"max_tokens":4096,"total_tokens":1234567}"#.to_owned(),
        format!(r#"{{"nextPageToken":"{}"}}"#, noise(40)),
        "https://user:password@host/".to_owned(),
        "https://user:$PASS@host/ and https://{user}:{pass}@host/".to_owned(),
        "http://localhost:8080/a@b".to_owned(),
        "mailto:emma@example.org and git@github.com:a/b.git".to_owned(),
        "see scp://host:22/path".to_owned(),
        "Bearer tokens are sent with each request, see RFC 6750".to_owned(),
        "Authorization: Bearer <token>".to_owned(),
        "Authorization: required for all 12 calls".to_owned(),
        "task-force-risk-desk-12345678901234567890123456789012".to_owned(),
        "sk-learn-is-not-a-key-whatever-its-name-may-be-2".to_owned(),
        "AbstractSingletonProxyFactoryBeanGenerator".to_owned(),
        "eyJust a word. eyJ.eyJ.x".to_owned(),
        "secret_name: projects/1/secrets/db/versions/2".to_owned(),
        "secret: /run/secrets/db-password-2024".to_owned(),
        "[secret:password] [secret:jwt]".to_owned(),
        "password=[secret:password]".to_owned(),
    ] {
        assert_eq!(find(&text), Vec::new(), "{text}");
    }
}

#[test]
fn every_text_is_read_in_linear_time_and_cut_between_letters() {
    for piece in [
        "password=",
        "\"token\":\"",
        "-----BEGIN PRIVATE KEY-----",
        "eyJ.",
        "a://b:",
        "sk-",
        "Authorization: ",
        "é",
    ] {
        let text = piece.repeat(200_000 / piece.len());
        let started = std::time::Instant::now();
        let redacted = redact(&text);
        // Wide: machines are busy. Each of these took minutes were it read again from every place.
        assert!(started.elapsed().as_secs() < 10, "{piece}");
        assert!(redacted.text.len() <= text.len() + 20 * redacted.secrets, "{piece}");
    }
    let text = format!("é password=\"h\u{fc}nter22é\" ü ghp_{}é", noise(36));
    assert_eq!(redact(&text).text, "é password=\"[secret:password]\" ü [secret:github-token]é");
}

#[test]
fn the_automaton_is_there() {
    assert!(AUTOMATON.is_some());
}

/// The form of a key of the transparency log, or of a writer.
fn note_key(name: &str) -> String {
    format!("PRIVATE+KEY+{name}+1a2b3c4d+{}", "AQ+/".repeat(11))
}

#[test]
fn the_gates_own_tokens_and_keys_are_kept_from_every_record() {
    for (kind, secret) in [
        ("portcullis-agent-token", format!("pcag_{}", hex(64))),
        ("portcullis-approver-token", format!("pcap_{}", hex(64))),
        ("portcullis-approver-token", format!("PCAP_{}", hex(64).to_uppercase())),
        ("private-key", note_key("example.org/log")),
        ("private-key", note_key("writer")),
    ] {
        for text in [
            secret.clone(),
            format!("{secret}\n"),
            format!("{{\"content\":\"{secret}\\n\"}}"),
            format!("see{secret}, then"),
            format!("x_{secret}"),
            format!("Authorization: Bearer {secret}"),
            format!("token = \"{secret}\""),
            format!("https://u:{secret}@host/"),
        ] {
            for redacted in [redact(&text), redact_own(&text)] {
                assert!(redacted.secrets > 0, "{text}");
                assert!(!redacted.text.contains(secret.get(20..).unwrap()), "{text}: {}", redacted.text);
            }
        }
        assert_eq!(find_with(OWN_AUTOMATON.as_ref(), &secret)[0].kind, kind);
        let slashes = secret.replace('/', "\\/");
        assert!(!redact_own(&slashes).text.contains(slashes.get(slashes.len() - 8..).unwrap()), "{slashes}");
    }
}

#[test]
fn a_record_that_keeps_secrets_keeps_all_but_the_gates_own() {
    let text = format!("ghp_{} and pcag_ or pcag_1234 or PRIVATE+KEY+x", noise(36));
    assert_eq!(redact_own(&text).text, text);
}
