//! Coding agents themselves, with the hook that `hook install` wrote. Their models are scripted (`peers/scripted_model.py`),
//! and they reach nothing but loopback.
//!
//! `cargo xtask peers` installs the agents into `.peers/agents`. Those that are large programs are in
//! `.peers/agents-native`, for the long tests.

mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use table::{AGENTS, Agent, Failure};

use super::{Client, Program, kinds, quick_bundle};
use crate::command::{portcullis, project};

/// What everybody may do.
const PERMITTED: &str = "printf allowed > made.txt";
/// What a person has to permit.
const HELD: &str = "printf x > .git/hooks/pre-commit";
/// What nobody may do; there is no such folder.
const DENIED: &str = "rm -r /srv/no-such-folder";

/// An agent with a home and a project of its own.
struct Stage {
    agent: &'static Agent,
    client: Client,
}

impl Stage {
    /// With the hook installed as a user does it, or none where the agents are not installed and not demanded.
    fn set(agent: &'static Agent) -> Option<Self> {
        let (folder, long) = (programs(agent), std::env::var_os("PORTCULLIS_TEST_LONG").is_some());
        if !folder.is_dir() || (agent.native && !long) {
            let demanded = std::env::var_os("PORTCULLIS_TEST_PEERS").is_some() && (long || !agent.native);
            assert!(!demanded, "the agents are not installed; run `cargo xtask peers`");
            eprintln!("SKIPPED: `{}` is not installed; see `cargo xtask peers`", agent.id);
            return None;
        }
        let stage = Self { agent, client: Client::containing(Program::Small) };
        for folder in ["user", "shop"] {
            fs::create_dir(stage.path(folder)).unwrap();
        }
        let git = Command::new("git").args(["init", "--quiet"]).arg(stage.path("shop")).status().unwrap();
        assert!(git.success());
        for (file, text) in agent.files {
            let file = stage.path("user").join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let bundle = quick_bundle(stage.client.folder.path());
        let mut install = portcullis(&["hook", "install", agent.id, "--bundle"]);
        install.arg(bundle).args(agent.install).current_dir(stage.path("shop"));
        let installed = stage.surrounded(install).output().unwrap();
        assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
        Some(stage)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.client.folder.path().join(name)
    }

    /// Nothing of the machine's user is read or written.
    fn surrounded(&self, mut command: Command) -> Command {
        let user = self.path("user");
        for variable in ["CODEX_HOME", "KIMI_CODE_HOME", "CLINE_DIR", "XDG_RUNTIME_DIR"] {
            command.env_remove(variable);
        }
        for (variable, folder) in [
            ("XDG_CONFIG_HOME", ".config"),
            ("XDG_DATA_HOME", ".local/share"),
            ("XDG_STATE_HOME", ".local/state"),
            ("XDG_CACHE_HOME", ".cache"),
        ] {
            command.env(variable, user.join(folder));
        }
        command.env("HOME", &user).env("PORTCULLIS_HOME", self.client.home());
        command
    }

    /// Has the agent carry out these command lines, one after the other, and gives what its model was told.
    fn work(&self, steps: &[&str]) -> Vec<Value> {
        let log = self.path("model.log");
        // The daemon is not one of the agent's processes, all of which end with it.
        assert_eq!(self.client.run(&["runs", "list"]).code, 0);
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        command.arg(project().join(".peers/python/bin/python"));
        command.arg("-B").arg(project().join("peers/scripted_model.py")).arg("--log").arg(&log);
        for step in steps {
            command.args(["--step", step]);
        }
        for (file, _) in self.agent.files {
            command.arg("--fill").arg(self.path("user").join(file));
        }
        command
            .arg("--")
            .args(self.agent.command)
            .current_dir(self.path("shop"))
            .env("PWD", self.path("shop"));
        let found = std::env::var("PATH").unwrap();
        let folders = [
            project().join(".peers/npm/node_modules/.bin"),
            // OpenCode's own start wants a script at installation.
            programs(self.agent).join(format!("opencode-linux-{}/bin", node_arch())),
            programs(self.agent).join(".bin"),
        ];
        let path: String = folders.iter().map(|folder| format!("{}:", folder.display())).collect();
        command.env("PATH", path + &found);
        command.envs(self.agent.variables.iter().copied());
        let mut command = self.surrounded(command);
        let said = command.stdin(Stdio::null()).output().unwrap();
        // Its exit code is not the same in all of them when a call was not made.
        let requests = fs::read_to_string(&log).unwrap_or_else(|_| {
            panic!("{} was not started: {}", self.agent.id, String::from_utf8_lossy(&said.stderr))
        });
        requests.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Puts another program in the place of the hook.
    fn replace_hook(&self, script: Option<&str>) {
        use std::os::unix::fs::PermissionsExt as _;
        let (file, program) = (self.path(self.agent.settings), self.path("in-its-place"));
        let text = fs::read_to_string(&file).unwrap();
        let hook = env!("CARGO_BIN_EXE_portcullis-hook");
        assert!(text.contains(hook), "{text}");
        fs::write(&file, text.replace(hook, program.to_str().unwrap())).unwrap();
        if let Some(script) = script {
            fs::write(&program, script).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    fn made(&self) -> bool {
        self.path("shop/made.txt").exists()
    }
}

/// What Node.js calls this machine.
fn node_arch() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" }
}

/// Where npm has put the agent.
fn programs(agent: &Agent) -> PathBuf {
    let folder = if agent.native { "agents-native" } else { "agents" };
    project().join(".peers").join(folder).join("node_modules")
}

/// What is permitted is done, and what is not is neither done nor hidden from the agent.
fn is_governed(agent: &'static Agent) {
    let Some(stage) = Stage::set(agent) else { return };
    let asked = stage.work(&[PERMITTED, DENIED, HELD]);
    assert!(stage.made(), "{}: {asked:?}", agent.id);
    assert!(!stage.path("shop/.git/hooks/pre-commit").exists());
    let events = stage.client.recorded();
    let verdicts: Vec<&str> = events.iter().filter_map(|event| event["body"]["verdict"].as_str()).collect();
    let all = ["allow", "deny", "review"];
    let judged = if agent.ends_at_denial { &all[..2] } else { &all[..] };
    assert_eq!(verdicts, judged, "{}: {:?}", agent.id, kinds(&events));
    let outcomes = kinds(&events).into_iter().filter(|kind| *kind == "outcome").count();
    assert_eq!(outcomes, 1, "{}: what was not made is not told as made", agent.id);
    let closed = kinds(&events).contains(&"run-closed");
    assert_eq!(closed, agent.closes, "{}: {:?}", agent.id, kinds(&events));
    if !agent.ends_at_denial {
        let last = asked.last().unwrap().to_string();
        for rule in ["access/developer/outside-tree-delete", "access/developer/control-write"] {
            assert!(last.contains(rule), "{}: {last}", agent.id);
        }
    }
}

/// What becomes of a call whose hook does not answer.
fn without_an_answer(agent: &'static Agent, failure: Failure) {
    let Some(stage) = Stage::set(agent) else { return };
    stage.replace_hook(failure.script());
    let asked = stage.work(&[PERMITTED]);
    // Without any program the prompt may be stopped already; otherwise the model has asked for the call.
    assert!(failure == Failure::Missing || !asked.is_empty(), "{}: {failure:?}", agent.id);
    let goes_on = agent.goes_on_after.contains(&failure);
    assert_eq!(stage.made(), goes_on, "{}: {failure:?}", agent.id);
}

macro_rules! agents {
    ($($name:ident: $id:literal),* $(,)?) => {
        $(
            mod $name {
                use super::{agent, is_governed, without_an_answer};
                use super::table::Failure;

                #[test]
                fn is_governed_by_what_install_writes() {
                    is_governed(agent($id));
                }

                #[test]
                fn does_what_its_page_says_when_the_hook_fails() {
                    for failure in Failure::tried() {
                        without_an_answer(agent($id), failure);
                    }
                }
            }
        )*
        #[test]
        fn every_agent_of_the_table_is_tested() {
            assert_eq!(AGENTS.map(|agent| agent.id), [$($id),*]);
        }
    };
}

agents! {
    gemini_cli: "gemini-cli",
    kimi_code: "kimi-code",
    pi: "pi",
    qwen_code: "qwen-code",
    cline: "cline",
    codex: "codex",
    opencode: "opencode",
}

fn agent(id: &str) -> &'static Agent {
    AGENTS.iter().find(|agent| agent.id == id).unwrap()
}

/// The script is there for whoever runs these tests by hand as well.
#[test]
fn the_scripted_model_says_how_it_is_used() {
    let script = Path::new("peers/scripted_model.py");
    let told = Command::new("python3").arg(project().join(script)).arg("--help").output().unwrap();
    assert!(told.status.success());
}
