//! The options of the command line: those of `portcullis hook` that this program understands.

use std::ffi::OsString;
use std::path::PathBuf;

/// The options.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) agent: Option<String>,
    pub(crate) home: Option<PathBuf>,
    pub(crate) bundle: Option<PathBuf>,
    pub(crate) policy: Option<String>,
    pub(crate) ask: bool,
    pub(crate) defer: bool,
    pub(crate) uncontained: bool,
}

impl Options {
    /// The options, or `None` for a command line that is not among the few spellings that `hook install` writes.
    pub(crate) fn read(words: &[OsString]) -> Option<Self> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value =
                || words.next()?.to_str().filter(|value| !value.is_empty() && !value.starts_with('-'));
            match word.to_str()? {
                "--agent" => set(&mut options.agent, value()?.to_owned())?,
                "--home" => set(&mut options.home, PathBuf::from(value()?))?,
                "--bundle" => set(&mut options.bundle, PathBuf::from(value()?))?,
                "--policy" => set(&mut options.policy, value()?.to_owned())?,
                "--ask" if !options.ask => options.ask = true,
                "--defer" if !options.defer => options.defer = true,
                "--uncontained" if !options.uncontained => options.uncontained = true,
                _ => return None,
            }
        }
        Some(options)
    }
}

/// Sets what is not set yet.
fn set<T>(option: &mut Option<T>, value: T) -> Option<()> {
    option.replace(value).is_none().then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Option<Options> {
        Options::read(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn what_an_installation_writes_is_read() {
        assert_eq!(read(&[]), Some(Options::default()));
        let all = [
            "--agent",
            "codex",
            "--home",
            "/h",
            "--bundle",
            "/b",
            "--policy",
            "Strict Policy",
            "--ask",
            "--defer",
            "--uncontained",
        ];
        let expected = Options {
            agent: Some("codex".into()),
            home: Some("/h".into()),
            bundle: Some("/b".into()),
            policy: Some("Strict Policy".into()),
            ask: true,
            defer: true,
            uncontained: true,
        };
        assert_eq!(read(&all), Some(expected));
    }

    #[test]
    fn everything_else_is_left_to_the_whole_program() {
        for words in [
            &["--help"][..],
            &["--version"],
            &["install"],
            &["--home=/h"],
            &["--home"],
            &["--home", ""],
            &["--policy", "--ask"],
            &["--agent"],
            &["--agent=codex"],
            &["--home", "/h", "--home", "/i"],
            &["--ask", "--ask"],
            &["--json"],
            &["--"],
        ] {
            assert_eq!(read(words), None, "{words:?}");
        }
    }
}
