//! Which coding agents are on this machine, and which of them are governed.

use std::env;
use std::path::{Path, PathBuf};

use portcullis_gateway::hook::{self, Scope, Standing};
use portcullis_wire::hook::Agent;

use super::{Check, Health};

/// One check for each agent that is here, for this user and in this folder.
pub(super) fn check() -> Vec<Check> {
    let Some(home) = env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from) else {
        return vec![Check::new("agents", Health::Warn, "not looked for, because HOME is not set")];
    };
    let folder = env::current_dir().ok();
    let found: Vec<Check> =
        Agent::ALL.into_iter().filter_map(|agent| one(agent, &home, folder.as_deref())).collect();
    if found.is_empty() {
        return vec![Check::new("agents", Health::Ok, "no coding agent that is known is on this machine")];
    }
    found
}

/// One agent, or `None` if it is neither here nor set up.
fn one(agent: Agent, home: &Path, folder: Option<&Path>) -> Option<Check> {
    let places = [(Scope::User, Some(home)), (Scope::Project, folder), (Scope::Local, folder)];
    let mut wrong = None;
    for (scope, folder) in places {
        let Some(file) = folder.and_then(|folder| hook::settings_file(agent, scope, folder)) else {
            continue;
        };
        let shown = file.display().to_string();
        match hook::standing(agent, &file) {
            Ok(Standing::Governed(_)) => {
                let whole = if scope == Scope::User { "everywhere" } else { "in this folder" };
                let detail = format!("{} is governed {whole}: {shown}", agent.name());
                return Some(Check::new("agents", Health::Ok, detail));
            }
            Ok(Standing::Broken(why) | Standing::Changed(why)) => {
                wrong = wrong.or(Some(format!("{shown}: {why}")));
            }
            Ok(Standing::Absent) => {}
            Err(error) => wrong = wrong.or(Some(error.to_string())),
        }
    }
    let detail = match wrong {
        Some(why) => format!("{} is not governed: {why}", agent.name()),
        None if hook::is_there(agent, home) => format!("{} is not governed", agent.name()),
        None => return None,
    };
    let remedy = format!("portcullis hook install {} --user", agent.id());
    Some(Check::new("agents", Health::Warn, detail).remedy(remedy))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn agents_that_are_here_are_governed_or_not() {
        for agent in Agent::ALL {
            let home = tempfile::tempdir().unwrap();
            let file = hook::settings_file(agent, Scope::User, home.path()).unwrap();
            assert!(file.starts_with(home.path()), "{agent:?}");
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            let check = one(agent, home.path(), None).unwrap();
            assert_eq!(check.result, Health::Warn, "{}", check.detail);
            assert_eq!(check.remedy.unwrap(), format!("portcullis hook install {} --user", agent.id()));
            let program = home.path().join("portcullis");
            fs::write(&program, "").unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            let settings =
                hook::Settings { agent, file: file.clone(), program: program.clone(), arguments: vec![] };
            hook::install(&settings).unwrap().write().unwrap();
            let check = one(agent, home.path(), None).unwrap();
            assert_eq!((check.result, check.remedy), (Health::Ok, None), "{}", check.detail);
            fs::remove_file(program).unwrap();
            let check = one(agent, home.path(), None).unwrap();
            assert!(check.detail.contains("is no program"), "{}", check.detail);
        }
    }
}
