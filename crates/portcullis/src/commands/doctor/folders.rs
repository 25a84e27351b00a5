//! Whether the folders of the state can be read, and whether their disk has room.

use std::fs;
use std::io;
use std::path::Path;

use portcullis_gateway::home::Home;
use portcullis_hook::folder::owned_by_another;
use rustix::fs::{Access, access, statvfs};

use super::{Check, Health};

/// Free space below which the doctor warns, in bytes: 1 GiB, which is days of work for most agents.
const SPACE_LOW: u64 = 1 << 30;
/// Free space below which the doctor fails, in bytes: 32 MiB. A store that cannot grow permits nothing.
const SPACE_NONE: u64 = 32 << 20;

/// Why nothing of the state can be used or made by this user, where that is so: what else is looked at there would only
/// say so again, in other words.
pub(super) fn unusable(home: &Home) -> Option<Check> {
    let path = home.path();
    let there = path.ancestors().find(|folder| folder.exists())?;
    let shown = path.display();
    let wrong = |why: String| {
        let remedy = "name a folder of this user with --home or PORTCULLIS_HOME";
        Some(Check::new("home", Health::Fail, why).remedy(remedy))
    };
    if there == path {
        let (owner, own) = owned_by_another(path)?;
        return wrong(format!("{shown} belongs to user {owner}, and this is user {own}"));
    }
    match access(there, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => None,
        Err(error) => wrong(format!(
            "{shown} cannot be made: {} is not for this user to write ({error})",
            there.display()
        )),
    }
}

/// Folders of the state that are there and cannot be listed. Others would take them for empty.
pub(super) fn unreadable(home: &Home) -> Vec<Check> {
    let log = home.store().log();
    let folders =
        [home.path().to_owned(), home.credentials(), home.ledger(), log.public, log.keys, home.listings()];
    folders.iter().filter_map(|folder| unlisted(folder)).collect()
}

fn unlisted(folder: &Path) -> Option<Check> {
    let listed = fs::read_dir(folder).and_then(|mut entries| entries.next().transpose());
    let error = listed.err().filter(|error| error.kind() != io::ErrorKind::NotFound)?;
    let shown = folder.display();
    let remedy = match error.kind() {
        io::ErrorKind::NotADirectory => format!("move {shown} away, or restore the folder that was there"),
        _ => format!("chmod 700 {shown}, as the user who owns it"),
    };
    Some(
        Check::new("folders", Health::Fail, format!("cannot read the folder {shown}: {error}"))
            .remedy(remedy),
    )
}

/// The free space of the disk that the state folder is on, or will be.
pub(super) fn space(home: &Home) -> Check {
    // One that is not there yet is made below the nearest folder that is.
    let there = home.path().ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    match statvfs(there) {
        Ok(disk) => of_space(disk.f_bavail.saturating_mul(disk.f_frsize), home.path()),
        Err(error) => Check::new("space", Health::Warn, format!("the free space is not known: {error}")),
    }
}

fn of_space(free: u64, home: &Path) -> Check {
    let (result, limit) = match free {
        ..SPACE_NONE => (Health::Fail, SPACE_NONE),
        SPACE_NONE..SPACE_LOW => (Health::Warn, SPACE_LOW),
        _ => return Check::new("space", Health::Ok, format!("{} free", size(free))),
    };
    let detail = format!("{} free, less than {}", size(free), size(limit));
    Check::new("space", result, detail).remedy(format!(
        "make room on the disk of {}; when it is full, nothing can be recorded, so nothing is permitted",
        home.display()
    ))
}

/// Bytes for people, rounded down.
fn size(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;
    match bytes {
        GIB.. => format!("{} GiB", bytes / GIB),
        _ => format!("{} MiB", bytes / MIB),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_space_is_warned_of_and_none_is_a_failure() {
        let of = |free| {
            let check = of_space(free, Path::new("/h"));
            (check.result, check.detail)
        };
        assert_eq!(of(3 << 30), (Health::Ok, "3 GiB free".to_owned()));
        assert_eq!(of(SPACE_LOW - 1), (Health::Warn, "1023 MiB free, less than 1 GiB".to_owned()));
        assert_eq!(of(0), (Health::Fail, "0 MiB free, less than 32 MiB".to_owned()));
    }

    #[test]
    fn a_folder_that_cannot_be_read_fails_and_one_that_is_missing_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path()).unwrap();
        assert_eq!(unreadable(&home).len(), 0);
        // Permissions stop nobody who runs tests as the superuser; this does.
        fs::write(home.ledger(), "").unwrap();
        let [check] = unreadable(&home).try_into().unwrap();
        assert_eq!(check.result, Health::Fail);
        assert!(check.detail.contains("/ledger: ") && check.remedy.is_some(), "{}", check.detail);
    }
}
