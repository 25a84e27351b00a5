//! Commands, run contained by the harness.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use portcullis_contain::{Ended, Invocation, Limit, Observed, Output, Profile, explain, project};

use super::{Checker, Found, NotPassed, error, fail};

/// How long a command may take where its criterion does not say, in seconds.
pub const DEADLINE_SECONDS: u32 = 300;
/// Most bytes of output; a command that writes more is ended.
const OUTPUT_BYTES_MAX: u64 = 16 << 20;
/// Most processes at once.
const PROCESSES_MAX: u64 = 4_096;
/// Bytes of output that a result shows, the last ones.
const SHOWN_BYTES_MAX: usize = 800;
/// Where programs are looked for when the harness says nothing.
const PROGRAMS: &str = "/usr/local/bin:/usr/bin:/bin";

impl Checker<'_> {
    pub(super) fn command(
        &self,
        command: &[String],
        directory: Option<&str>,
        timeout_seconds: Option<u32>,
    ) -> Found {
        let folder = self.place().folder(directory)?;
        let seconds = timeout_seconds.unwrap_or(DEADLINE_SECONDS);
        let profile = self.profile()?;
        let observed = self.run(profile.clone(), command, &folder, seconds)?;
        // Programs try what they can do without, so a refusal alone is no error; but it may be why the command failed.
        let refused = explain(&observed, &profile).map_or_else(String::new, |why| format!(" ({why})"));
        let output = format!("{refused}{}", tail(&observed));
        match observed.ended {
            Ended::Status(0) => Ok(format!("status 0{}", tail(&observed))),
            Ended::Status(status) => fail(format!("status {status}{output}")),
            Ended::Signal(signal) => fail(format!("ended by signal {signal}{output}")),
        }
    }

    /// What a command of a criterion may do: what one of the agent's may do in the project, without any network.
    pub(super) fn profile(&self) -> Result<Profile, NotPassed> {
        let Some(workspace) = self.workspace.as_deref() else {
            return error("nobody said in which folder the agent works");
        };
        project(workspace, self.home.as_deref())
            .or_else(|why| error(format!("commands cannot be contained here: {why}")))
    }

    /// Runs a command under a profile. Reaching a limit of time is a timeout, any other limit an error.
    pub(super) fn run(
        &self,
        mut profile: Profile,
        command: &[String],
        folder: &Path,
        seconds: u32,
    ) -> Result<Observed, NotPassed> {
        let Some(contained) = self.contained else {
            return error(
                "commands cannot be contained on this machine, so none is run; see `portcullis doctor`",
            );
        };
        let Some((program, arguments)) = command.split_first() else { return error("there is no command") };
        profile.limits.wall_seconds = Some(seconds.into());
        profile.limits.output_bytes = Some(OUTPUT_BYTES_MAX);
        profile.limits.processes = profile.limits.processes.or(Some(PROCESSES_MAX));
        let invocation = Invocation {
            program: program.into(),
            arguments: arguments.iter().map(Into::into).collect(),
            folder: Some(folder.to_owned()),
            environment: Some(self.environment()),
            output: Output::Kept,
            ..Invocation::default()
        };
        let observed = match contained.run(&profile, &invocation) {
            Ok(observed) => observed,
            Err(why) => return error(format!("`{program}` was not run: {why}")),
        };
        if observed.limits.contains(&Limit::Wall) {
            return Err(NotPassed::Timeout(format!("not done after {seconds} s{}", tail(&observed))));
        }
        if let Some(limit) = observed.limits.first() {
            return error(format!("reached {}{}", limit.field(), tail(&observed)));
        }
        Ok(observed)
    }

    /// A clean environment: nothing of it is the agent's. Programs that lie where the agent works are not found by name.
    fn environment(&self) -> BTreeMap<OsString, OsString> {
        let found = std::env::var_os("PATH").unwrap_or_else(|| PROGRAMS.into());
        let is_ours = |folder: &PathBuf| {
            folder.is_absolute() && !self.workspace.as_ref().is_some_and(|agents| folder.starts_with(agents))
        };
        let folders = std::env::split_paths(&found).filter(is_ours);
        let path = std::env::join_paths(folders).unwrap_or_else(|_| PROGRAMS.into());
        let mut environment = BTreeMap::from([
            ("PATH".into(), path),
            ("LANG".into(), "C.UTF-8".into()),
            ("TERM".into(), "dumb".into()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
        ]);
        environment.extend(self.home.iter().map(|home| ("HOME".into(), home.into())));
        environment
    }
}

/// The end of what a command wrote, where it says what went wrong.
fn tail(observed: &Observed) -> String {
    let both = [observed.stdout.as_slice(), observed.stderr.as_slice()].concat();
    let text = String::from_utf8_lossy(&both);
    let text = text.trim_end();
    let mut from = text.len().saturating_sub(SHOWN_BYTES_MAX);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    match text.get(from..) {
        Some("") | None => String::new(),
        Some(end) => format!(": {end}"),
    }
}
