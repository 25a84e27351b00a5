//! How much of a report is kept in a record, and how much is counted only.

use serde::{Deserialize, Serialize};

use super::Observed;

/// Things of one kind in a recorded report. A build of a large workspace changes some thousand files.
pub const OBSERVED_ENTRIES_MAX: usize = 16_384;
/// Names and other particulars of a recorded report, all kinds together, in bytes of JSON: well within a payload.
pub const OBSERVED_BYTES_MAX: usize = 4 << 20;

/// How many things of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Programs.
    pub programs: u64,
    /// Files that were made, changed or deleted.
    pub files: u64,
    /// Connections.
    pub connections: u64,
    /// Refused attempts.
    pub refused: u64,
    /// Protected files that were put back.
    pub put_back: u64,
}

impl Counts {
    /// Whether there is nothing of any kind.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Observed {
    /// How many things of each kind it reports.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            programs: self.programs.started.len() as u64,
            files: self.files.changes.len() as u64,
            connections: (self.connections.len() as u64).saturating_add(self.connections_left_out),
            refused: self.refused.attempts.len() as u64,
            put_back: self.put_back.len() as u64,
        }
    }

    /// The report as it is recorded: at most [`OBSERVED_ENTRIES_MAX`] things of each kind and [`OBSERVED_BYTES_MAX`] in
    /// all, with the numbers of those that were left out. Of a kind with too many, those come first whose name
    /// `matters`.
    #[must_use]
    pub fn cut(mut self, matters: &dyn Fn(&str) -> bool) -> (Self, Counts) {
        let mut room = OBSERVED_BYTES_MAX;
        // What says most in the fewest bytes comes first.
        let cut = Counts {
            put_back: keep(&mut self.put_back, &mut room, &|_| true),
            refused: keep(&mut self.refused.attempts, &mut room, &|attempt| matters(&attempt.target)),
            connections: keep(&mut self.connections, &mut room, &|connection| matters(&connection.host))
                .saturating_add(self.connections_left_out),
            files: keep(&mut self.files.changes, &mut room, &|change| {
                matters(&change.path.to_string_lossy())
            }),
            programs: keep(&mut self.programs.started, &mut room, &|_| false),
        };
        (self, cut)
    }
}

/// Drops what there is no room for; how many that are.
fn keep<T: Serialize>(list: &mut Vec<T>, room: &mut usize, matters: &dyn Fn(&T) -> bool) -> u64 {
    let before = list.len();
    // What has no JSON text, such as a path that is no text, has no place in a record.
    let size = |item: &T| serde_json::to_vec(item).map_or(usize::MAX, |text| text.len() + 1);
    let whole = list.iter().map(size).fold(0_usize, usize::saturating_add);
    if before <= OBSERVED_ENTRIES_MAX && whole <= *room {
        *room -= whole;
        return 0;
    }
    let (first, rest): (Vec<T>, Vec<T>) = std::mem::take(list).into_iter().partition(matters);
    for item in first.into_iter().chain(rest) {
        let size = size(&item);
        if list.len() < OBSERVED_ENTRIES_MAX && size <= *room {
            *room -= size;
            list.push(item);
        }
    }
    (before - list.len()) as u64
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::observed::{Attempt, AttemptWhat, Ended, FileChange, FileChangeHow, Files, Programs, Refused};
    use crate::profile::Level;

    fn report(files: Vec<FileChange>, attempts: Vec<Attempt>) -> Observed {
        Observed {
            level: Level::Process,
            profile: "p".into(),
            ended: Ended::Status(0),
            wall_ms: 1,
            cpu_ms: 1,
            survivors: 0,
            limits: Vec::new(),
            put_back: Vec::new(),
            programs: Programs::default(),
            files: Files { changes: files, ..Files::default() },
            connections: Vec::new(),
            connections_left_out: 0,
            refused: Refused { attempts, ..Refused::default() },
            stdout: Vec::new(),
            stderr: Vec::new(),
        }
    }

    fn change(path: String) -> FileChange {
        FileChange { path: PathBuf::from(path), how: FileChangeHow::Made, bytes: None, digest: None }
    }

    #[test]
    fn what_fits_stays_in_its_order() {
        let files = vec![change("/b".into()), change("/a".into())];
        let whole = report(files.clone(), Vec::new());
        let (kept, cut) = whole.clone().cut(&|name| name == "/a");
        assert_eq!((kept, cut), (whole, Counts::default()));
    }

    #[test]
    fn connections_that_were_only_counted_count() {
        let report = Observed { connections_left_out: 3, ..report(Vec::new(), Vec::new()) };
        assert_eq!(report.counts().connections, 3);
        assert_eq!(report.cut(&|_| true).1.connections, 3);
    }

    #[test]
    fn what_matters_is_kept_and_the_rest_is_counted() {
        let many = OBSERVED_ENTRIES_MAX + 10;
        let files: Vec<FileChange> = (0..many).map(|number| change(format!("/w/{number}"))).collect();
        let last = format!("/w/{}", many - 1);
        let (kept, cut) = report(files, Vec::new()).cut(&|name| name == last);
        assert_eq!((kept.files.changes.len(), cut.files), (OBSERVED_ENTRIES_MAX, 10));
        assert_eq!(kept.files.changes.first().unwrap().path, PathBuf::from(&last));
        assert_eq!(kept.counts().files + cut.files, many as u64);
    }

    #[test]
    fn long_names_are_bounded_together() {
        let long = |number: usize| Attempt {
            what: AttemptWhat::Read,
            target: format!("{number}{}", "\u{1}".repeat(64 << 10)),
            times: 1,
        };
        let attempts: Vec<Attempt> = (0..40).map(long).collect();
        let (kept, cut) = report(vec![change("/w/x".into())], attempts).cut(&|_| false);
        let bytes = serde_json::to_vec(&kept).unwrap().len();
        assert!(bytes <= OBSERVED_BYTES_MAX + 1_000, "{bytes}");
        assert_eq!(kept.counts().refused + cut.refused, 40);
        assert!(cut.refused > 0 && cut.files == 0, "a short name still has room: {cut:?}");
    }

    #[cfg(unix)]
    #[test]
    fn a_path_that_is_no_text_is_counted() {
        use std::os::unix::ffi::OsStringExt as _;
        let odd = FileChange {
            path: PathBuf::from(std::ffi::OsString::from_vec(b"/w/\xff".to_vec())),
            ..change(String::new())
        };
        let (kept, cut) = report(vec![odd, change("/w/x".into())], Vec::new()).cut(&|_| false);
        assert_eq!((kept.files.changes.len(), cut.files), (1, 1));
    }
}
