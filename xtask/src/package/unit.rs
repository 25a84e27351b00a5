//! The service's unit, as systemd reads it and rates it.

use std::path::Path;
use std::process::Command;

use super::root;
use crate::process::{Failure, Result};

/// The most that `systemd-analyze security` may find exposed, in tenths of its scale from 0 to 10. It finds 1.2 with systemd
/// 252: sockets, the network, and the limits of resources that helpers set for themselves.
const EXPOSURE_MAX: &str = "13";
/// What a program is that the unit starts, where the package is not installed.
const NOT_INSTALLED: &str = "/usr/bin/portcullis is not executable";

/// Has systemd read the unit and rate it.
///
/// # Errors
/// Something in it is not understood, or it is more exposed than [`EXPOSURE_MAX`]; with what systemd says.
pub(super) fn hold(unit: &Path) -> Result<()> {
    let problems = said(&["verify", "--man=no"], unit)?.1;
    let problems: Vec<&str> = problems.lines().filter(|line| is_of_unit(line)).collect();
    if !problems.is_empty() {
        return Err(Failure::new(problems.join("\n")));
    }
    let threshold = format!("--threshold={EXPOSURE_MAX}");
    let (code, rated) = said(&["security", "--offline=true", "--no-pager", &threshold], unit)?;
    if code == Some(0) {
        return Ok(());
    }
    let exposed: Vec<&str> = rated.lines().filter(|line| !line.starts_with('✓')).collect();
    Err(Failure::new(format!(
        "the unit is exposed by more than {EXPOSURE_MAX} tenths:\n{}",
        exposed.join("\n")
    )))
}

/// systemd reads other units too, which are not ours to mend. That the program is not on this machine is no problem.
fn is_of_unit(line: &str) -> bool {
    line.contains("portcullis.service") && !line.contains(NOT_INSTALLED)
}

fn said(words: &[&str], unit: &Path) -> Result<(Option<i32>, String)> {
    let mut command = Command::new("systemd-analyze");
    command.args(words).arg(unit);
    let ended = root::ended(command, "")?;
    Ok((ended.code, ended.said))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::package::packaging;
    use crate::package::root::Root;
    use crate::process::Program;

    /// What systemd has to say about the unit with one text in the place of another.
    fn changed(from: &str, to: &str) -> Result<()> {
        let unit = packaging("portcullis.service").unwrap();
        assert!(unit.contains(from), "{from}");
        let folder = Root::empty().unwrap();
        let path = folder.path("tmp/portcullis.service");
        fs::write(&path, unit.replace(from, to)).unwrap();
        hold(&path)
    }

    #[test]
    fn a_unit_that_is_not_understood_or_exposed_is_refused() {
        if Program::new("systemd-analyze").args(["--version"]).answer().is_none() {
            assert!(std::env::var_os("CI").is_none(), "`cargo xtask programs` installs systemd");
            eprintln!("SKIPPED: `systemd-analyze` is not on this machine");
            return;
        }
        changed("\n", "\n").unwrap();
        for (from, to, complaint) in [
            ("ProtectClock=", "ProtectClocks=", "Unknown key 'ProtectClocks'"),
            ("Type=notify", "Type=forever", "forever"),
            ("TimeoutStopSec=30", "TimeoutStopSec=soon", "soon"),
            ("PrivateUsers=yes\n", "", "PrivateUsers="),
            ("CapabilityBoundingSet=\n", "", "CAP_SYS_ADMIN"),
            ("SystemCallFilter=@system-service\n", "", "SystemCallFilter="),
        ] {
            let refused = changed(from, to).unwrap_err().to_string();
            assert!(refused.contains(complaint), "{from}: {refused}");
        }
    }
}
