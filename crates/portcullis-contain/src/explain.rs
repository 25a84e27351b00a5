//! What a command was refused, in one line with what to write.

use std::path::{Path, PathBuf};

use portcullis_core::observed::{Attempt, AttemptWhat, Observed};
use portcullis_core::profile::Profile;

/// The first refusal that a command may have failed of, and what to write in its profile so that it is let.
///
/// Nothing where nothing was refused, or nothing was looked at. What programs try as a matter of course comes last.
#[must_use]
pub fn explain(observed: &Observed, profile: &Profile) -> Option<String> {
    let attempts = &observed.refused.attempts;
    let first = attempts.iter().find(|one| !is_usual(one)).or_else(|| attempts.first())?;
    Some(line(first, profile))
}

/// Things that fail on most machines, and that nothing depends on: compiled files of Python beside the system's own,
/// and the system's service for names.
fn is_usual(attempt: &Attempt) -> bool {
    match attempt.what {
        AttemptWhat::Write => {
            attempt.target.contains("/__pycache__/") || attempt.target.ends_with("/__pycache__")
        }
        AttemptWhat::Call => matches!(attempt.target.as_str(), "socket AF_UNIX" | "socket AF_NETLINK"),
        _ => false,
    }
}

/// A folder that nobody should name for one file in it.
fn is_wide(folder: &Path) -> bool {
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    folder.parent().is_none()
        || folder.starts_with("/dev")
        || home.is_some_and(|home| home.starts_with(folder))
}

fn line(Attempt { what, target, .. }: &Attempt, profile: &Profile) -> String {
    let name = &profile.name;
    let path = Path::new(target);
    let above = path.parent().filter(|above| !is_wide(above)).unwrap_or(path).display();
    match what {
        AttemptWhat::Write if profile.write.iter().any(|root| path.starts_with(root)) => {
            format!(
                "`{target}` could not be written: it is protected unless `write` of profile `{name}` names it"
            )
        }
        AttemptWhat::Write => {
            format!("`{target}` could not be written: add \"{above}\" to `write` of profile `{name}`")
        }
        AttemptWhat::Read => {
            format!("`{target}` could not be read: add \"{target}\" to `read` of profile `{name}`")
        }
        AttemptWhat::Execute => {
            format!("`{target}` could not be executed: add \"{above}\" to `execute` of profile `{name}`")
        }
        AttemptWhat::Connect if target.starts_with(['/', '@']) => {
            format!(
                "the socket `{target}` could not be reached: `sockets = {{ paths = [\"{target}\"] }}` in profile `{name}` lets it"
            )
        }
        AttemptWhat::Connect => {
            format!("`{target}` could not be reached: `network` of profile `{name}` says what can be")
        }
        AttemptWhat::Call => match target.split_once(' ') {
            Some((_, "AF_UNIX")) => format!(
                "a Unix socket could not be made: `sockets = \"own\"` in profile `{name}` lets it, and {{ paths = [PATHS] }} lets it reach others"
            ),
            Some((_, "AF_INET" | "AF_INET6" | "AF_NETLINK")) => {
                format!(
                    "a socket could not be made: `network` of profile `{name}` says which network there is"
                )
            }
            _ => format!("`{target}` was refused: no contained command makes this call"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project;

    fn said(what: AttemptWhat, target: &str) -> String {
        let profile = project(Path::new("/code/project"), None).unwrap();
        line(&Attempt { what, target: target.to_owned(), times: 1 }, &profile)
    }

    #[test]
    fn each_refusal_says_what_to_write() {
        let of = [
            (
                AttemptWhat::Write,
                "/etc/x",
                "`/etc/x` could not be written: add \"/etc\" to `write` of profile `project`",
            ),
            (AttemptWhat::Write, "/x", "add \"/x\" to `write`"),
            (AttemptWhat::Write, "/dev/ttyS9", "add \"/dev/ttyS9\" to `write`"),
            (AttemptWhat::Write, "/code/project/.git/config", "it is protected unless"),
            (AttemptWhat::Read, "/srv/data", "add \"/srv/data\" to `read`"),
            (AttemptWhat::Execute, "/srv/bin/tool", "add \"/srv/bin\" to `execute`"),
            (AttemptWhat::Connect, "192.0.2.1:80", "`network` of profile"),
            (AttemptWhat::Connect, "/run/docker.sock", "`sockets = { paths = [\"/run/docker.sock\"] }`"),
            (AttemptWhat::Call, "socket AF_UNIX", "lets it reach others"),
            (AttemptWhat::Call, "socket AF_INET", "`network` of profile"),
            (AttemptWhat::Call, "unshare", "no contained command makes this call"),
        ];
        for (what, target, expected) in of {
            assert!(said(what, target).contains(expected), "{}", said(what, target));
        }
    }

    #[test]
    fn what_programs_try_as_a_matter_of_course_comes_last() {
        let attempt = |what, target: &str| Attempt { what, target: target.to_owned(), times: 1 };
        assert!(is_usual(&attempt(AttemptWhat::Write, "/usr/lib/python3/__pycache__/x.pyc")));
        assert!(is_usual(&attempt(AttemptWhat::Call, "socket AF_UNIX")));
        assert!(!is_usual(&attempt(AttemptWhat::Write, "/etc/x")));
    }
}
