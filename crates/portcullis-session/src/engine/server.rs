//! What a server is known by in a run.

use portcullis_core::id::DigestBuilder;
use portcullis_core::limits::NAME_BYTES_MAX;

use crate::batch::note_known_secrets;

/// Digits of the digest that distinguishes long names.
const DIGEST_DIGITS: usize = 16;

/// The command that started a server as a name that is recorded, compared and shown: without secrets, on one line, and
/// where it is long its start with a digest of the whole. A name that was made so stays what it is.
pub(super) fn server_name(command: &str) -> String {
    let mut name: String =
        command.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    // Whatever the bundle says of the record: a name that changed with it would be another server.
    note_known_secrets(&mut name);
    if name.len() > NAME_BYTES_MAX {
        let digest =
            DigestBuilder::new("portcullis/server-name/v1").part(name.as_bytes()).finish().to_string();
        name.truncate(name.floor_char_boundary(NAME_BYTES_MAX - DIGEST_DIGITS - 1));
        name.push('~');
        name.push_str(digest.get(..DIGEST_DIGITS).unwrap_or(&digest));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_told_apart_and_made_once() {
        let long = |end: &str| format!("run {}{end}", "é".repeat(NAME_BYTES_MAX));
        let [one, two] = ["1", "2"].map(|end| server_name(&long(end)));
        assert!(one != two && one.len() <= NAME_BYTES_MAX && one.starts_with("run é"));
        assert_eq!(server_name(&one), one);
        assert_eq!(server_name("npx -y mail"), "npx -y mail");
        assert_eq!(server_name("a\nb"), "a b");
    }

    #[test]
    fn a_secret_is_no_part_of_a_name() {
        let name = server_name("mail --token ghp_0123456789abcdefghijABCDEFGHIJ012345");
        assert!(!name.contains("ghp_01234567"), "{name}");
        assert_eq!(server_name(&name), name);
    }
}
