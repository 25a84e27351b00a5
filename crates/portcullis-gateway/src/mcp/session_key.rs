//! Which client session a gate belongs to.
//!
//! A client that has five servers starts five gates, and what its agent does on all of them is one run. The
//! gates find each other by a key: told explicitly, or else the identity of the process that started them.
//! A process id alone is used again after a while; together with the start time it is unique until the next
//! boot, and no run outlives that.

use std::env;
use std::fs;

/// The environment variable that names the session.
pub const SESSION_VARIABLE: &str = "PORTCULLIS_SESSION";

/// `given`, else the environment variable, else `PARENT_PID:START_TIME`, or `None` if the system does not tell,
/// which makes the run uncorrelated.
pub(super) fn session_key(given: Option<String>) -> Option<String> {
    given.or_else(|| env::var(SESSION_VARIABLE).ok()).filter(|key| !key.is_empty()).or_else(parent)
}

fn parent() -> Option<String> {
    let parent = std::os::unix::process::parent_id();
    let stat = fs::read_to_string(format!("/proc/{parent}/stat")).ok()?;
    Some(format!("{parent}:{}", start_time(&stat)?))
}

/// Field 22 of proc_pid_stat(5): clock ticks since boot. The second field is the program's name in parentheses
/// and may itself hold anything, so fields are counted from the last closing one.
fn start_time(stat: &str) -> Option<&str> {
    const FIELDS_BETWEEN: usize = 19;
    let (_, after_name) = stat.rsplit_once(')')?;
    let field = after_name.split_ascii_whitespace().nth(FIELDS_BETWEEN)?;
    field.bytes().all(|byte| byte.is_ascii_digit()).then_some(field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_time_is_found_behind_any_name() {
        let stat =
            "7 (a) R 1) (x) S 1 7 7 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 8675309 1 1 18446744073709551615 1";
        assert_eq!(start_time(stat), Some("8675309"));
        assert_eq!(start_time("7 (a) S 1"), None);
        assert_eq!(start_time(""), None);
    }

    #[test]
    fn what_is_given_wins_and_the_parent_has_an_identity() {
        assert_eq!(session_key(Some("mine".into())).as_deref(), Some("mine"));
        if cfg!(target_os = "linux") {
            let key = parent().unwrap();
            assert!(key.starts_with(&format!("{}:", std::os::unix::process::parent_id())), "{key}");
        }
    }
}
