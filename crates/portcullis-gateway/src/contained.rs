//! What this machine can contain, and command lines that run contained.
//!
//! The level is found once and by running every step; then it is the answer to the question that guards ask before they
//! judge a command line. The surface rewrites what was permitted so that it runs as `portcullis run --ticket T`, which
//! gets its profile from the daemon.

use std::fmt::Write as _;
use std::path::Path;
use std::pin::Pin;

use portcullis_contain::{Contained, probe};
use portcullis_core::bundle::{CONTAIN_SOURCE, level_answer, level_request};
use portcullis_core::fact::FactAnswer;
use portcullis_core::profile::Level;
use portcullis_session::facts::{FactSource, Question};
use tokio::sync::OnceCell;

/// Most bytes of a rewritten command: the kernel takes 128 KiB for an argument, and the client's shell adds to it.
const COMMAND_BYTES_MAX: usize = 96 << 10;

/// Answers which level of containment this machine reaches, of which it asks the machine once.
#[derive(Debug, Default)]
pub(crate) struct LevelSource {
    reached: OnceCell<Level>,
}

impl LevelSource {
    async fn reached(&self) -> Level {
        let look = || async { tokio::task::spawn_blocking(look).await.unwrap_or(Level::None) };
        *self.reached.get_or_init(look).await
    }
}

/// How far this machine contains commands.
pub(crate) fn look() -> Level {
    match Contained::new().and_then(|contained| probe(&contained)) {
        Ok(found) => found.reached,
        Err(error) => {
            tracing::info!("commands are not contained: {error}");
            Level::None
        }
    }
}

impl FactSource for LevelSource {
    fn name(&self) -> &str {
        CONTAIN_SOURCE
    }

    fn answer<'a>(&'a self, question: &'a Question) -> Pin<Box<dyn Future<Output = FactAnswer> + Send + 'a>> {
        Box::pin(async move {
            match question.question == level_request().question {
                true => level_answer(self.reached().await),
                false => FactAnswer::Failed("there is no such question about containment".to_owned()),
            }
        })
    }
}

/// How a command line is rewritten so that it runs contained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Runner {
    /// The program with the command `run`, absolute.
    program: String,
    /// The state folder, absolute.
    home: String,
}

impl Runner {
    /// Of this program, which asks the daemon of this state folder. `None` where a path is not UTF-8.
    pub(crate) fn new(program: Option<&Path>, home: &Path) -> Option<Self> {
        let program = match program {
            Some(program) => program.to_owned(),
            None => std::env::current_exe().ok()?,
        };
        let text = |path: &Path| std::path::absolute(path).ok()?.to_str().map(str::to_owned);
        Some(Self { program: text(&program)?, home: text(home)? })
    }

    /// Whether a command can be rewritten at all.
    pub(crate) fn can_run(&self, command: &str) -> bool {
        !command.trim().is_empty()
            && !command.contains('\0')
            && self.rewritten(command, "").len() <= COMMAND_BYTES_MAX
            && !changes_the_shell_alone(command)
    }

    /// The command as it runs contained under a ticket. A shell of the same kind as the one that reads this runs it.
    pub(crate) fn rewritten(&self, command: &str, ticket: &str) -> String {
        let (program, home) = (quoted(&self.program), quoted(&self.home));
        let shell = "\"${BASH:-${SHELL:-/bin/sh}}\"";
        format!("{program} --home {home} run --ticket {ticket} -- {shell} -c {}", quoted(command))
    }
}

/// The command with git kept from running hooks. The client starts a shell for each command, so that this ends with it.
pub(crate) fn without_hooks(command: &str) -> String {
    const SETTINGS: [(&str, &str); 2] = [("core.hooksPath", "/dev/null"), ("core.fsmonitor", "false")];
    let mut text = format!("export GIT_CONFIG_COUNT={}", SETTINGS.len());
    for (number, (key, value)) in SETTINGS.iter().enumerate() {
        let _infallible = write!(text, " GIT_CONFIG_KEY_{number}={key} GIT_CONFIG_VALUE_{number}={value}");
    }
    format!("{text}; {command}")
}

/// A text as one word of a shell, whatever is in it.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// Whether a line does nothing but change the shell that reads it: contained, it would change another one.
fn changes_the_shell_alone(command: &str) -> bool {
    const WORDS: [&str; 7] = ["cd", "pushd", "popd", "export", "unset", "alias", "umask"];
    let first = command.split_whitespace().next().unwrap_or_default();
    WORDS.contains(&first) && !command.contains(['\n', ';', '&', '|', '<', '>', '$', '`', '(', ')'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runner() -> Runner {
        Runner::new(Some(Path::new("/opt/it's here/portcullis")), Path::new("/home/u/.portcullis")).unwrap()
    }

    #[test]
    fn a_command_is_one_word_whatever_is_in_it() {
        let awkward = "echo 'a\"b' \"$x\" `y` \\ \n cat <<'E'\nit's\nE";
        let line = runner().rewritten(awkward, "t1");
        let prefix = r"'/opt/it'\''s here/portcullis' --home /home/u/.portcullis run --ticket t1 -- ";
        assert!(line.starts_with(prefix), "{line}");
        // A shell reads back what was quoted.
        let word = line.rsplit_once(" -c ").unwrap().1;
        let read = std::process::Command::new("/bin/sh").arg("-c").arg(format!("printf %s {word}")).output();
        assert_eq!(String::from_utf8(read.unwrap().stdout).unwrap(), awkward);
    }

    #[test]
    fn what_changes_the_shell_alone_is_left_to_it() {
        for line in ["cd src", "export A=b", "  cd ..  "] {
            assert!(!runner().can_run(line), "{line}");
        }
        for line in ["cd src && make", "export A=$(make)", "make", "cd x; ls", "cds"] {
            assert!(runner().can_run(line), "{line}");
        }
        assert!(
            !runner().can_run("") && !runner().can_run("a\0b") && !runner().can_run(&"x".repeat(1 << 17))
        );
    }
}
