//! Which level a machine should reach, by what its kernel says of itself. Where continuous integration runs (`CI=true`),
//! one that is not reached although it should be is a failure: a test that is skipped there shows nothing for ever.
//!
//! Other crates' tests include this file.

use std::fs;

use portcullis_core::profile::Level;

/// What the kernel says.
#[derive(Debug, Clone)]
struct Says {
    release: String,
    /// `/proc/self/status`: a filter of system calls may refuse the steps.
    status: String,
    /// User namespaces that may be made; nothing where there are none.
    user_namespaces: Option<String>,
    /// Switches of distributions.
    clone: Option<String>,
    apparmor: Option<String>,
}

impl Says {
    fn now() -> Self {
        let read = |path: &str| fs::read_to_string(path).ok();
        Self {
            release: read("/proc/sys/kernel/osrelease").unwrap_or_default(),
            status: read("/proc/self/status").unwrap_or_default(),
            user_namespaces: read("/proc/sys/user/max_user_namespaces"),
            clone: read("/proc/sys/kernel/unprivileged_userns_clone"),
            apparmor: read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
        }
    }

    /// The highest level that should be reached.
    fn level(&self) -> Level {
        let mut numbers =
            self.release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
        let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        let is_filtered = !self.status.lines().any(|line| line.split_whitespace().eq(["Seccomp:", "0"]));
        // Landlock is from 5.13 on.
        if version < (5, 13) || is_filtered {
            return Level::None;
        }
        let is = |said: &Option<String>, value: &str| said.as_deref().map(str::trim) == Some(value);
        let has_none = self.user_namespaces.is_none() || is(&self.user_namespaces, "0");
        match has_none || is(&self.clone, "0") || is(&self.apparmor, "1") {
            true => Level::Process,
            false => Level::Namespace,
        }
    }
}

/// Whether tests that need a level are to be skipped.
///
/// # Panics
/// In continuous integration, where this machine should reach it.
pub(crate) fn is_skipped(needed: Level, reached: Level, why: &str) -> bool {
    if reached >= needed {
        return false;
    }
    let (says, in_ci) = (Says::now(), std::env::var("CI").is_ok_and(|value| value == "true"));
    assert!(
        !in_ci || says.level() < needed,
        "CI=true, and this machine should reach the level `{needed}`: {reached} is reached, {why}; {says:?}"
    );
    println!("SKIPPED at `{needed}`: reached {reached}, {why}");
    true
}

#[test]
fn what_should_be_reached_is_told_from_what_a_machine_cannot() {
    let says = Says {
        release: "6.8.0-1017-azure".to_owned(),
        status: "Name:\tit\nSeccomp:\t0\nSeccomp_filters:\t0\n".to_owned(),
        user_namespaces: Some("63000\n".to_owned()),
        clone: None,
        apparmor: None,
    };
    assert_eq!(says.level(), Level::Namespace);
    let on = || Some("1\n".to_owned());
    let off = || Some("0\n".to_owned());
    for (other, level) in [
        (Says { apparmor: on(), ..says.clone() }, Level::Process),
        (Says { apparmor: off(), clone: on(), ..says.clone() }, Level::Namespace),
        (Says { clone: off(), ..says.clone() }, Level::Process),
        (Says { user_namespaces: off(), ..says.clone() }, Level::Process),
        (Says { user_namespaces: None, ..says.clone() }, Level::Process),
        (Says { status: "Seccomp:\t2\n".to_owned(), ..says.clone() }, Level::None),
        (Says { release: "5.10.0".to_owned(), ..says.clone() }, Level::None),
        (Says { release: "5.15.0".to_owned(), ..says }, Level::Namespace),
    ] {
        assert_eq!(other.level(), level, "{other:?}");
    }
}
