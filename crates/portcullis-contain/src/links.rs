//! Where links lead. What is obeyed under one name is obeyed wherever a link takes it, and so is each link on the way.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Links that are followed from one path, as the kernel does.
const HOPS_MAX: usize = 40;
/// Entries of a protected folder among which links are looked for.
const ENTRIES_MAX: usize = 4096;
/// How deep.
const DEPTH_MAX: usize = 16;
/// Entries of a folder that a link leads to and that is protected as a whole. A larger one is somebody's work.
const FOLDER_MAX: usize = 512;
/// Places that links lead to, in all.
const TARGETS_MAX: usize = 512;

/// Where these paths lead, and links in them if they are folders: all links on the way and the ends of it, whether they
/// exist or not.
pub(crate) fn targets<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Vec<PathBuf> {
    let mut waiting: VecDeque<PathBuf> = VecDeque::new();
    let mut found: Vec<PathBuf> = Vec::new();
    for path in paths {
        add(path, &mut found, &mut waiting);
        waiting.extend(inside(path));
    }
    // What a link leads to can have links in it.
    while let Some(path) = waiting.pop_front() {
        if found.len() >= TARGETS_MAX {
            break;
        }
        add(&path, &mut found, &mut waiting);
    }
    found
}

fn add(path: &Path, found: &mut Vec<PathBuf>, waiting: &mut VecDeque<PathBuf>) {
    for target in followed(path) {
        if found.contains(&target) || is_large(&target) {
            continue;
        }
        waiting.extend(inside(&target));
        found.push(target);
    }
}

/// The links on the way of a path, itself aside, and where it ends; nothing where no link is on it.
fn followed(path: &Path) -> Vec<PathBuf> {
    let (mut links, mut done, mut hops) = (Vec::new(), PathBuf::new(), HOPS_MAX);
    let parts =
        |path: &Path| path.components().map(|part| part.as_os_str().to_owned()).collect::<Vec<OsString>>();
    let mut rest = VecDeque::from(parts(path));
    while let Some(part) = rest.pop_front() {
        match Path::new(&part).components().next() {
            Some(Component::ParentDir) => {
                done.pop();
                continue;
            }
            Some(Component::Normal(_)) => {}
            Some(Component::CurDir) | None => continue,
            Some(Component::RootDir | Component::Prefix(_)) => {
                done = PathBuf::from(part);
                continue;
            }
        }
        let next = done.join(part);
        let Ok(target) = std::fs::read_link(&next) else {
            done = next;
            continue;
        };
        let Some(fewer) = hops.checked_sub(1) else { return links };
        hops = fewer;
        links.push(next);
        for part in parts(&target).into_iter().rev() {
            rest.push_front(part);
        }
    }
    let is_led = !links.is_empty();
    links.retain(|link| link != path);
    links.extend(is_led.then_some(done));
    links
}

/// The links in a folder and those below it.
fn inside(folder: &Path) -> Vec<PathBuf> {
    let (mut links, mut left) = (Vec::new(), ENTRIES_MAX);
    if folder.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
        each(folder, DEPTH_MAX, &mut left, &mut |path| links.push(path.to_owned()));
    }
    links
}

fn is_large(folder: &Path) -> bool {
    let mut left = FOLDER_MAX;
    folder.symlink_metadata().is_ok_and(|meta| meta.is_dir())
        && !each(folder, DEPTH_MAX, &mut left, &mut |_| {})
}

/// Goes through a folder; whether that was all of it.
fn each(folder: &Path, depth: usize, left: &mut usize, on_link: &mut dyn FnMut(&Path)) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    let Ok(entries) = std::fs::read_dir(folder) else { return true };
    for entry in entries.filter_map(Result::ok) {
        let Some(fewer) = left.checked_sub(1) else { return false };
        *left = fewer;
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_symlink() => on_link(&path),
            Ok(kind) if kind.is_dir() && !each(&path, depth, left, on_link) => return false,
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn every_link_on_the_way_and_its_end_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        for name in ["hooks", "tools", "big", "skills"] {
            fs::create_dir(at(name)).unwrap();
        }
        (0..=FOLDER_MAX).for_each(|number| fs::write(at(&format!("big/{number}")), "").unwrap());
        for (target, link) in [
            ("../tools/check", "hooks/pre-commit"),
            ("other", "tools/check"),
            ("../absent/file", "tools/other"),
            ("../big", "skills/big"),
            ("loop", "skills/loop"),
            ("shared", "agent"),
            ("tools", "shared"),
        ] {
            symlink(target, at(link)).unwrap();
        }
        let found = |names: &[&str]| {
            let paths: Vec<PathBuf> = names.iter().map(|name| at(name)).collect();
            let mut found = targets(paths.iter().map(PathBuf::as_path));
            found.sort();
            found
        };
        let end = [at("absent/file"), at("tools/check"), at("tools/other")];
        assert_eq!(found(&["hooks"]), end);
        assert_eq!(found(&["hooks/pre-commit"]), end);
        assert_eq!(found(&["agent"]), [at("absent/file"), at("shared"), at("tools"), at("tools/other")]);
        assert_eq!(found(&["agent/x"]), [at("agent"), at("shared"), at("tools/x")]);
        assert_eq!(found(&["big", "absent", "hooks/none"]), [] as [PathBuf; 0]);
        assert!(found(&["skills"]).iter().all(|path| path.ends_with("loop")));
    }
}
