//! What git brings: protected files that are now what a repository had of them before the command started.
//!
//! `git checkout` and `git pull` put other instructions and settings in their place where branches have others. So does
//! a program that git starts, a hook or a driver, and nobody can tell who wrote a file. But what was committed before
//! the command ran, that program did not make. Commits that were fetched meanwhile count as well: the supervisor fetched
//! them.

use std::cell::RefCell;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use super::Git;
use crate::protected::GIT;

/// Most commits in which a file is looked for: tips of branches, tags, stashes.
const TIPS_MAX: usize = 1024;
/// Most bytes of an object's name.
const ID_BYTES_MAX: usize = 64;
/// Most bytes of a file that is looked for. Instructions and settings are small.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// A repository as it was before a command.
#[derive(Debug)]
pub(in crate::linux) struct Before {
    git: Git,
    /// The folder of its files.
    top: PathBuf,
    /// The commit that was checked out.
    head: Option<String>,
    tips: Vec<String>,
    asked: RefCell<Option<Asked>>,
}

/// A process that says what is in a repository.
#[derive(Debug)]
struct Asked {
    process: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// The commits to look in.
    tips: Vec<String>,
    /// The commit that is checked out now, if it is one of those that count.
    head: Option<String>,
}

impl Before {
    /// Looks; nothing where there is no repository.
    pub(in crate::linux) fn look(git: &Git) -> Option<Self> {
        let top = PathBuf::from(git.ask_line(&["rev-parse", "--show-toplevel"])?);
        let head = git.ask_line(&["rev-parse", "--verify", "--quiet", "HEAD"]);
        let listed = git.ask(&["for-each-ref", "--format=%(objectname)", "--sort=-creatordate"])?;
        let mut tips: Vec<String> = head.iter().cloned().collect();
        tips.extend(listed.lines().map(str::to_owned));
        let mut before = Self { git: git.clone(), top, head, tips: Vec::new(), asked: RefCell::new(None) };
        before.also(tips);
        Some(before)
    }

    /// Commits that were there before, or that the supervisor fetched.
    pub(in crate::linux) fn also(&mut self, tips: impl IntoIterator<Item = String>) {
        let is_id = |id: &String| id.len() <= ID_BYTES_MAX && id.chars().all(|c| c.is_ascii_hexdigit());
        for tip in tips.into_iter().filter(is_id) {
            if self.tips.len() < TIPS_MAX && !self.tips.contains(&tip) {
                self.tips.push(tip);
            }
        }
    }

    /// Whether what is at a path now is what the repository had of it: a file or a link with this content, or nothing.
    pub(in crate::linux) fn had(&self, path: &Path) -> bool {
        let Ok(shown) = path.strip_prefix(self.top_of(path)) else { return false };
        let Some(shown) = shown.to_str().filter(|shown| !shown.contains('\n') && !shown.is_empty()) else {
            return false;
        };
        let now = match content(path) {
            Ok(now) => now,
            Err(()) => return false,
        };
        let mut asked = self.asked.borrow_mut();
        if asked.is_none() {
            *asked = Asked::begin(self);
        }
        let Some(asked) = asked.as_mut() else { return false };
        if now.is_none() {
            // Many commits do not have a file. It goes with the one that had it.
            let (Some(old), Some(new)) = (&self.head, asked.head.clone()) else { return false };
            return asked.content(old, shown).is_some_and(|had| had.is_some())
                && asked.content(&new, shown) == Some(None);
        }
        let tips = asked.tips.clone();
        tips.iter().any(|tip| asked.content(tip, shown).is_some_and(|had| had == now))
    }
}

impl Before {
    /// The folder that a commit's paths are taken from: a worktree may lie in the project.
    fn top_of<'p>(&'p self, path: &'p Path) -> &'p Path {
        let below =
            path.ancestors().skip(1).take_while(|above| above.starts_with(&self.top) && *above != self.top);
        let mut worktrees =
            below.filter(|above| above.join(GIT).symlink_metadata().is_ok_and(|meta| meta.is_file()));
        worktrees.next().unwrap_or(&self.top)
    }
}

/// What is at a path: nothing, or the content of a file, or where a link leads.
fn content(path: &Path) -> Result<Option<Vec<u8>>, ()> {
    let meta = match path.symlink_metadata() {
        Ok(meta) => meta,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(_) => return Err(()),
    };
    if meta.is_symlink() {
        return std::fs::read_link(path).map(|to| Some(to.as_os_str().as_bytes().to_vec())).map_err(|_| ());
    }
    if !meta.is_file() || meta.len() > FILE_BYTES_MAX {
        return Err(());
    }
    std::fs::read(path).map(Some).map_err(|_| ())
}

impl Asked {
    fn begin(before: &Before) -> Option<Self> {
        let head = reached(before);
        let mut tips = before.tips.clone();
        tips.extend(head.clone());
        let mut git = before.git.command(&["cat-file", "--batch"]);
        let mut process =
            git.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        let (questions, answers) = (process.stdin.take(), process.stdout.take()?);
        Some(Self { process, questions, answers: BufReader::new(answers), tips, head })
    }

    /// What a commit has at a path: nothing, a file's content, or where a link leads. No answer where that is anything
    /// else.
    fn content(&mut self, tip: &str, path: &str) -> Option<Option<Vec<u8>>> {
        let questions = self.questions.as_mut()?;
        questions.write_all(format!("{tip}:{path}\n").as_bytes()).ok()?;
        questions.flush().ok()?;
        let mut line = String::new();
        self.answers.read_line(&mut line).ok()?;
        // `<id> blob <size>`, or `<what was asked> missing`.
        if line.trim_end().ends_with(" missing") {
            return Some(None);
        }
        let mut words = line.trim_end().rsplitn(3, ' ');
        let (size, kind) = (words.next()?.parse::<u64>().ok()?, words.next()?);
        let mut content = Vec::new();
        // With the end of the line.
        (&mut self.answers).take(size.checked_add(1)?).read_to_end(&mut content).ok()?;
        content.pop();
        (kind == "blob").then_some(Some(content))
    }
}

/// The commit that is checked out now, if it was there before or was fetched.
fn reached(before: &Before) -> Option<String> {
    let head = before.git.ask_line(&["rev-parse", "--verify", "--quiet", "HEAD"])?;
    let mut arguments = vec!["rev-list", "-n", "1", &head, "--not"];
    arguments.extend(before.tips.iter().map(String::as_str));
    let unknown = before.git.ask(&arguments)?;
    unknown.trim().is_empty().then_some(head)
}

impl Drop for Asked {
    fn drop(&mut self) {
        // It ends when nobody asks any more.
        self.questions.take();
        let _ended = self.process.wait();
    }
}
