//! `WWW-Authenticate` (RFC 9110, 11.6.1) as far as the scheme Bearer goes (RFC 6750, 3; RFC 9728, 5.1): written for those
//! who come to the gate, read from upstreams.

/// The longest header that is read, in bytes.
const HEADER_BYTES_MAX: usize = 8 << 10;
/// The most scopes that are asked for at once.
const SCOPES_MAX: usize = 64;

/// What a challenge for a bearer token says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Challenge {
    /// The error code.
    pub(crate) error: Option<String>,
    /// What the token would need.
    pub(crate) scope: Option<String>,
    /// Where the metadata of the resource are.
    pub(crate) resource_metadata: Option<String>,
}

impl Challenge {
    /// Reads the challenge of the scheme Bearer from a header, which may have others.
    pub(crate) fn read(header: &str) -> Option<Self> {
        if header.len() > HEADER_BYTES_MAX {
            return None;
        }
        let (mut rest, mut found, mut is_bearer) = (header, None::<Self>, false);
        loop {
            rest = rest.trim_start_matches([' ', '\t', ',']);
            let (word, after) = token(rest);
            if word.is_empty() {
                // The end, or what is no list of challenges: what was read so far counts.
                return found;
            }
            let Some(value) = after.trim_start_matches([' ', '\t']).strip_prefix('=') else {
                is_bearer = word.eq_ignore_ascii_case("bearer") && found.is_none();
                if is_bearer {
                    found = Some(Self::default());
                }
                rest = after;
                continue;
            };
            let (value, after) = value_of(value.trim_start_matches([' ', '\t']))?;
            rest = after;
            if let (true, Some(found)) = (is_bearer, &mut found) {
                found.set(word, value);
            }
        }
    }

    /// The first of two values stands: the second may be somebody else's.
    fn set(&mut self, name: &str, value: String) {
        let place = match name.to_ascii_lowercase().as_str() {
            "error" => &mut self.error,
            "scope" => &mut self.scope,
            "resource_metadata" => &mut self.resource_metadata,
            _ => return,
        };
        place.get_or_insert(value);
    }

    /// The scopes, as far as they are ones.
    pub(crate) fn scopes(&self) -> Vec<String> {
        scopes(self.scope.as_deref().unwrap_or_default())
    }

    /// The header's value. What cannot stand between quotes is left out, which the settings do not let in anyway.
    pub(crate) fn written(&self) -> String {
        let mut text = "Bearer".to_owned();
        let fields =
            [("error", &self.error), ("scope", &self.scope), ("resource_metadata", &self.resource_metadata)];
        let mut separator = " ";
        for (name, value) in fields {
            let Some(value) = value else { continue };
            let plain: String =
                value.chars().filter(|c| matches!(c, ' '..='~') && !"\"\\".contains(*c)).collect();
            text.push_str(&format!("{separator}{name}=\"{plain}\""));
            separator = ", ";
        }
        text
    }
}

/// Scopes separated by spaces; what is none (RFC 6749, 3.3) is left out.
pub(crate) fn scopes(text: &str) -> Vec<String> {
    let plain = |b: u8| matches!(b, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    let scopes = text.split(' ').filter(|scope| !scope.is_empty() && scope.bytes().all(plain));
    scopes.take(SCOPES_MAX).map(str::to_owned).collect()
}

/// A token of HTTP at the start of a text, and what comes after it.
fn token(text: &str) -> (&str, &str) {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~/".contains(c);
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or(("", text))
}

/// A quoted string, or a word as servers write it without quotes, and what comes after it. None: the quotes are not closed.
fn value_of(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([' ', '\t', ',']).unwrap_or(text.len());
        return text.split_at_checked(end).map(|(word, rest)| (word.to_owned(), rest));
    };
    let (mut value, mut chars) = (String::new(), quoted.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, quoted.get(at + 1..).unwrap_or_default())),
            '\\' => value.push(chars.next()?.1),
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(header: &str) -> Challenge {
        Challenge::read(header).unwrap_or_else(|| panic!("{header}"))
    }

    #[test]
    fn a_challenge_is_read_among_others() {
        let metadata = Some("https://mcp.example/.well-known/oauth-protected-resource".to_owned());
        for header in [
            "Bearer resource_metadata=\"https://mcp.example/.well-known/oauth-protected-resource\",   scope=\"files:read\"",
            "bearer scope=files:read , resource_metadata = \"https://mcp.example/.well-known/oauth-protected-resource\"",
            "Negotiate YWJj==, Basic realm=\"a, Bearer scope=\\\"no\\\"\", Bearer realm=\"x\", scope=\"files:read\", \
             resource_metadata=\"https://mcp.example/.well-known/oauth-protected-resource\"",
            "Bearer scope=\"files:read\", resource_metadata=\"https://mcp.example/.well-known/oauth-protected-resource\", \
             DPoP scope=\"other\", resource_metadata=\"https://evil.example\"",
        ] {
            let found = read(header);
            assert_eq!(
                (found.scope.as_deref().map(|scope| scope.starts_with("files")), &found.resource_metadata),
                (Some(true), &metadata),
                "{header}"
            );
        }
        let found = read("Bearer error=\"insufficient_scope\", scope=\"a b\\\"\", error=\"other\"");
        assert_eq!(
            (found.error.as_deref(), found.scopes()),
            (Some("insufficient_scope"), vec!["a".to_owned()])
        );
        assert_eq!(read("Bearer"), Challenge::default());
        for none in ["", "Basic realm=\"Bearer\"", "Bearer scope=\"open", &"x".repeat(HEADER_BYTES_MAX + 1)] {
            assert_eq!(Challenge::read(none), None, "{none}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let challenge = Challenge {
            error: Some("insufficient_scope".to_owned()),
            scope: Some("a b:c".to_owned()),
            resource_metadata: Some(
                "https://gate.example/.well-known/oauth-protected-resource/mcp".to_owned(),
            ),
        };
        assert_eq!(read(&challenge.written()), challenge);
        assert_eq!(Challenge::default().written(), "Bearer");
    }

    proptest! {
        #[test]
        fn any_header_is_read_or_not(header in "\\PC{0,80}|(Bearer |[a-z]{1,4}=|\"|,|\\\\| ){0,20}") {
            let _ = Challenge::read(&header);
        }
    }
}
