//! What a command line may do when it runs contained: the profile of the project, and what of its effects was permitted.

use std::path::{Path, PathBuf};

use portcullis_core::bundle::{Bundle, ContainSettings, EffectSettings};
use portcullis_core::effect::Effects;
use portcullis_core::profile::{Level, Network, Places, Profile};
use portcullis_effects::{Sink, Surroundings, shell};

const WORKSPACE: &str = "/home/u/project";

fn settings(more: &str) -> Bundle {
    let main = format!("version = 1\n[contain]\ndefault = 'project'\n{more}");
    let policy = "[[policy]]\nname = 'p'\nallowed_types = []\nmax_steps = 1\nmax_side_effects = 0\n";
    let tool =
        "[[tool]]\nname = 'Bash'\ntype = 'X'\nside_effecting = true\neffects = { command = 'shell' }\n";
    let files = [("portcullis.toml", main.as_str()), ("policies/p.toml", policy), ("tools/t.toml", tool)];
    Bundle::load(&files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).into()).unwrap()
}

fn effects(text: &str) -> Effects {
    let settings = EffectSettings::default();
    let surroundings = Surroundings {
        settings: &settings,
        workspace: Some(WORKSPACE),
        home: Some("/home/u"),
        directory: Some(WORKSPACE),
    };
    let mut effects = Effects::none();
    shell::read(text, &surroundings, &mut Sink::new(&mut effects, "/arguments/command"));
    effects
}

fn places() -> Places<'static> {
    Places {
        workspace: Some(Path::new(WORKSPACE)),
        home: Some(Path::new("/home/u")),
        here: Some(Path::new(WORKSPACE)),
    }
}

fn profile_in(bundle: &Bundle, text: &str) -> Option<Result<Profile, String>> {
    bundle.contain.profile_for(bundle.registry.get("Bash").unwrap(), &effects(text), &places())
}

fn profile(text: &str) -> Result<Profile, String> {
    profile_in(&settings(""), text).expect("the bundle contains command lines")
}

fn project() -> Profile {
    ContainSettings::default().profile("project").unwrap().at(&places()).unwrap()
}

#[test]
fn builds_and_tests_have_the_project_and_no_network() {
    for line in [
        "cargo test",
        "pytest -q",
        "make",
        "npm test",
        "python3 build.py",
        "./run.sh",
        "git commit -m x",
        "ls src",
    ] {
        assert_eq!(profile(line), Ok(project()), "{line}");
    }
    assert_eq!(project().network, Network::Loopback(Vec::new()));
    assert!(project().write.starts_with(&[PathBuf::from(WORKSPACE)]));
}

#[test]
fn what_is_fetched_comes_from_its_registry() {
    for (line, host) in [
        ("npm install", "registry.npmjs.org"),
        ("pip install -r requirements.txt", "pypi.org"),
        ("cargo add serde", "static.crates.io"),
        ("go get example.com/x", "proxy.golang.org"),
        ("curl -O https://docs.example/x", "docs.example"),
        ("git push https://host.example/x.git HEAD", "host.example"),
    ] {
        let profile = profile(line).unwrap();
        let Network::Hosts(hosts) = &profile.network else { panic!("{line}: {:?}", profile.network) };
        assert!(hosts.iter().any(|known| known == host), "{line}: {hosts:?}");
        assert!(hosts.iter().all(|host| host != "evil.example"));
        assert_eq!(profile.level, Level::Namespace);
    }
}

#[test]
fn a_folder_that_a_person_granted_is_written() {
    let copied = profile("cp dist/app /srv/app").unwrap();
    assert_eq!(
        copied.write.iter().filter(|path| !project().write.contains(path)).collect::<Vec<_>>(),
        ["/srv/app"]
    );
}

#[test]
fn what_no_folder_or_host_stands_for_is_not_contained() {
    for line in [
        "git push",
        "git fetch origin",
        "docker rm web",
        "sudo make install",
        "curl localhost:3000",
        "ls ~",
        "ls /",
    ] {
        assert!(profile(line).is_err(), "{line}: {:?}", profile(line));
    }
}

#[test]
fn the_bundle_says_which_programs_have_another_profile() {
    let bundle = settings(
        "[contain.commands]\n'git switch' = 'none'\nps = 'none'\nnpm = 'fetch'\ncargo = 'read-only'\n",
    );
    assert!(profile_in(&bundle, "git switch -c x").unwrap().is_err());
    assert!(profile_in(&bundle, "ps aux | grep node").unwrap().is_err());
    // What runs beside an exempt program is not in the text: nothing is exempt then.
    assert_eq!(profile_in(&bundle, "ps aux; ./run.sh").unwrap(), Ok(project()));
    assert_eq!(profile_in(&bundle, "git commit -m x").unwrap(), Ok(project()));
    assert_eq!(profile_in(&bundle, "cargo metadata").unwrap().unwrap().name, "read-only");
    let both = profile_in(&bundle, "cargo metadata; npm test").unwrap().unwrap();
    assert_eq!(both.name, "read-only+fetch");
    assert!(matches!(both.network, Network::Hosts(_)));
}

#[test]
fn nothing_is_contained_without_a_profile_or_a_command_line() {
    let bundle = settings("[contain.tools]\nBash = 'none'\n");
    assert_eq!(profile_in(&bundle, "make"), None);
}
