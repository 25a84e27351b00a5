//! The service as systemd runs it, with everything that its unit forbids.
//!
//! `systemd-nspawn` boots the system of this machine in a container: its `/usr` with the files of the Debian package over
//! it. Settings and state are empty and in memory. [`SCRIPT`] then does what an administrator and an agent do.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::root::{self, Root};
use crate::process::{Failure, Program, Result, doing, root as sources};

/// What is done in the container; its output is held to [`WANTED`].
const SCRIPT: &str = r#"
touch /check/begun
exec > /check/said 2>&1
export PORTCULLIS_HOME=/var/lib/portcullis
say() { curl --silent --show-error --header "Authorization: Bearer $(cat $PORTCULLIS_HOME/credentials/agent.token)" \
  --header "Content-Type: application/json" --data "$2" "http://127.0.0.1:7412/v1/runs$1"; echo; }
systemctl start portcullis && echo started
run=$(say "" '{"surface":"http","policy":"desk"}' | sed 's/.*"run":"\([0-9a-f]*\)".*/\1/')
say "/$run/inputs" '{"text":"Refund EUR 250.","role":"user"}'
say "/$run/actions" '{"tool":"refund","arguments":{"amount":"EUR 250.00"},"wait_ms":0}'
portcullis doctor
systemctl kill --signal KILL portcullis
for second in 1 2 3 4 5 6 7 8 9; do sleep 1; systemctl is-active --quiet portcullis && break; done
portcullis runs list
systemctl is-active --quiet portcullis && echo started again
systemctl stop portcullis && echo stopped
systemctl show --property Result portcullis
echo 'nonsense' > /check/bundle/portcullis.toml
systemctl start portcullis || echo nonsense refused
"#;

/// What it has to say: the service serves once it is started; a guard program runs in it; the administrator's commands find
/// it; it is started again after it was killed, and nothing was lost; it ends when it is told to; and a bundle that cannot be
/// loaded is a failure to start.
const WANTED: [&str; 10] = [
    "started",
    "the program `refunds` objects: more than EUR 100",
    "ok    daemon          version ",
    "ok    bundle          /check/bundle: 2 tools",
    "ok    store           1 run, ",
    "0  desk",
    "started again",
    "stopped",
    "Result=success",
    "nonsense refused",
];

const UNIT: &str = "[Unit]
After=basic.target
[Service]
Type=oneshot
ExecStart=/bin/sh /check/script
ExecStopPost=/bin/systemctl --force poweroff
";

/// Boots, and holds the service to what it has to do. `usr` is that folder of the package, unpacked.
///
/// # Errors
/// What does not do as it should, with what was said.
pub(super) fn hold(usr: &Path) -> Result<()> {
    let there = Root::empty()?;
    let check = there.path("tmp");
    let bundle = sources().join("examples/programs");
    Program::new("cp").args(["-R".as_ref(), bundle.as_os_str(), check.join("bundle").as_os_str()]).run()?;
    let settings = "PORTCULLIS_SERVE=\"--bundle /check/bundle --http 127.0.0.1:7412\"\n";
    for (name, text) in [("script", SCRIPT), ("check.service", UNIT), ("default", settings)] {
        doing(&format!("write `{name}`"), fs::write(check.join(name), text))?;
    }
    let told = root::ended(container(usr, &check), "")?.said;
    if !check.join("begun").is_file() {
        let told: Vec<&str> = told.lines().rev().take(5).collect();
        println!("package: SKIPPED, systemd does not boot here in a container: {}", told.join(" / "));
        return Ok(());
    }
    let said = doing("read what was said", fs::read_to_string(check.join("said")))?;
    match WANTED.iter().find(|wanted| !said.contains(**wanted)) {
        None => Ok(()),
        Some(wanted) => Err(Failure::new(format!("the service should say `{wanted}`:\n{said}"))),
    }
}

fn container(usr: &Path, check: &Path) -> Command {
    let mut command = Command::new("systemd-nspawn");
    command.args(["--directory=/", "--volatile=yes", "--boot", "--register=no", "--keep-unit"]);
    command.args(["--private-network", "--quiet", "--console=pipe"]);
    command.arg(format!("--overlay=/usr:{}::/usr", usr.display()));
    command.arg(format!("--bind={}:/check", check.display()));
    for (file, place) in
        [("default", "/etc/default/portcullis"), ("check.service", "/etc/systemd/system/check.service")]
    {
        command.arg(format!("--bind-ro={}:{place}", check.join(file).display()));
    }
    command.args(["systemd.firstboot=no", "systemd.unit=check.service"]).stdin(Stdio::null());
    command
}
