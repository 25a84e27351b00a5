//! What a bundle says about containment, and what its author is told.

use expect_test::{Expect, expect};
use portcullis_core::bundle::{Below, Bundle, built_in_profile, read_profile};
use portcullis_core::profile::{Background, Level, Network};

use crate::files;

const SHELL: &str = "[[tool]]\nname = 'Bash'\ntype = 'QUERY_DB'\nside_effecting = true\neffects = { command = 'shell' }\n\
     [[tool]]\nname = 'Read'\ntype = 'QUERY_DB'\nside_effecting = false\n";

fn load(main: &str) -> Result<Bundle, Vec<String>> {
    let main = format!("version = 1\n{main}");
    let loaded = Bundle::load(&files(&[("portcullis.toml", &main), ("tools/t.toml", SHELL)]));
    loaded.map_err(|wrong| wrong.iter().map(ToString::to_string).collect())
}

#[track_caller]
fn wrong(main: &str, expect: &Expect) {
    expect.assert_eq(&load(main).expect_err("the bundle has a mistake").join("\n"));
}

#[test]
fn profiles_have_what_they_extend() {
    let bundle = load(
        "[contain]\ndefault = 'build'\nbelow = 'deny'\n[contain.tools]\nBash = 'none'\n\
         [contain.commands]\n'git push' = 'none'\nnpm = 'fetch'\n\
         [profile.build]\nextends = 'project'\nread = ['/srv/data']\nnetwork = { loopback = [8080] }\n\
         limits = { wall_seconds = 60 }\nbackground = 'keep'\nlevel = 'namespace'\n\
         [profile.docs]\nextends = 'fetch'\nnetwork = { hosts = ['docs.rs', 'pypi.org'] }\n\
         [server.files.contain]\nextends = 'build'\nwrite = ['/srv/files']\n\
         [server.'other one'.contain]\nprofile = 'docs'\n",
    )
    .unwrap();
    let settings = &bundle.contain;
    assert_eq!((settings.default.as_deref(), settings.below), (Some("build"), Below::Deny));
    assert_eq!(settings.tools["Bash"], None);
    assert_eq!(settings.commands["npm"].as_deref(), Some("fetch"));
    let (build, project) = (settings.profile("build").unwrap(), built_in_profile("project").unwrap());
    assert_eq!(
        (build.name.as_str(), build.level, build.background),
        ("build", Level::Namespace, Background::Keep)
    );
    assert_eq!((&build.write, &build.execute), (&project.write, &project.execute));
    assert_eq!(build.read.last().unwrap(), std::path::Path::new("/srv/data"));
    assert_eq!(build.network, Network::Loopback(vec![8080]));
    assert_eq!((build.limits.wall_seconds, build.limits.processes), (Some(60), Some(4096)));
    let Network::Hosts(hosts) = settings.profile("docs").unwrap().network else { panic!("hosts") };
    assert_eq!(hosts.iter().filter(|host| *host == "pypi.org").count(), 1);
    assert!(hosts.iter().any(|host| host == "docs.rs") && hosts.iter().any(|host| host == "crates.io"));
    assert_eq!(settings.servers["files"].name, "server/files");
    assert_eq!(settings.servers["files"].write.last().unwrap(), std::path::Path::new("/srv/files"));
    assert_eq!(settings.servers["other one"].name, "docs");
}

#[test]
fn a_built_in_profile_can_be_extended_under_its_own_name() {
    let bundle =
        load("[contain]\ndefault = 'project'\n[profile.project]\nextends = 'project'\nwrite = ['/srv/x']\n");
    let project = bundle.unwrap().contain.profile("project").unwrap();
    assert_eq!(project.write.last().unwrap(), std::path::Path::new("/srv/x"));
    assert!(project.write.len() > 1);
}

#[test]
fn nothing_is_contained_where_nothing_is_said() {
    let settings = load("").unwrap().contain;
    assert_eq!((settings.default, settings.below), (None, Below::Hold));
    assert!(settings.tools.is_empty() && settings.servers.is_empty());
}

#[test]
fn mistakes_in_profiles_have_a_place_and_advice() {
    wrong(
        "[profile.a]\nextends = 'projct'\nwriet = ['x']\nlevel = 'process '\n[contain]\ndefault = 'b'\n",
        &expect![[r#"
            portcullis.toml:5:9: `process ` is not a value of `level` (did you mean `process`?)
            portcullis.toml:4:1: unknown field `wriet` in the profile (did you mean `write`?)
            portcullis.toml:3:11: there is no profile `projct` (did you mean `project`?)
            portcullis.toml:7:11: there is no profile `b` (expected one of: a, read-only, project, git, fetch, none)"#]],
    );
    wrong(
        "[profile.a]\nextends = 'b'\n[profile.b]\nextends = 'c'\n[profile.c]\nextends = 'b'\n",
        &expect![[r#"
            portcullis.toml:7:11: profiles extend each other in a circle, or too many: a, b, c, b (let one of them stand on its own)
            portcullis.toml:7:11: profiles extend each other in a circle, or too many: b, c, b (let one of them stand on its own)
            portcullis.toml:5:11: profiles extend each other in a circle, or too many: c, b, c (let one of them stand on its own)"#]],
    );
    wrong(
        "[profile.a]\nwrite = ['/', '', '{worskpace}/x']\nread = ['{git}/x']\nenvironment = ['A=B', '*']\n\
         network = { hosts = ['https://x'], loopbck = [1] }\nlimits = { wall_seconds = 0, walls = 1 }\n",
        &expect![[r#"
            portcullis.toml:4:9: `read`: `{git}` is the whole of a path
            portcullis.toml:3:10: `write`: `/` is everything; name the folders
            portcullis.toml:3:15: `write`: a path has 1 to 4096 bytes
            portcullis.toml:3:19: `write`: `{worskpace}` stands for nothing (did you mean `{workspace}`?)
            portcullis.toml:6:36: unknown field `loopbck` in the network (did you mean `loopback`?)
            portcullis.toml:6:22: `https://x`: give a host, such as `example.org` or `example.org:8443`, not a URL
            portcullis.toml:5:16: `A=B` is no name of a variable; `*` stands only at its end
            portcullis.toml:7:27: `wall_seconds` must be a whole number from 1 to 9223372036854775807, found 0
            portcullis.toml:7:30: unknown field `walls` in the limits (did you mean `wall_seconds`?)"#]],
    );
    wrong(
        "[profile.a]\nnetwork = 'all'\n[profile.b]\nnetwork = { loopback = [70000] }\n[profile.c]\nnetwork = {}\n\
         [profile.none]\n[profile.'server/x']\n",
        &expect![[r#"
            portcullis.toml:3:11: `all` is not a value of `network` (expected one of: none)
            portcullis.toml:5:24: `loopback` is a list of at most 256 ports, from 1 to 65535
            portcullis.toml:7:11: `network` is "none", { loopback = [PORTS] } or { hosts = [NAMES] }
            portcullis.toml:8:10: `none` stands for no profile; choose another name
            portcullis.toml:9:10: a name has 1 to 256 bytes, and does not begin with `server/`"#]],
    );
}

#[test]
fn mistakes_in_contain_have_a_place_and_advice() {
    wrong(
        "[contain]\nbelow = 'ignore'\n[contain.tools]\nBush = 'project'\nRead = 'project'\n\
         [contain.commands]\n'a b c' = 'fetch'\nnpm = 'fetsh'\n",
        &expect![[r#"
            portcullis.toml:3:9: `ignore` is not a value of `below` (expected one of: deny, hold, uncontained)
            portcullis.toml:8:1: `a b c` is no program, as in `npm`, or `git push`
            portcullis.toml:9:7: there is no profile `fetsh` (did you mean `fetch`?)
            portcullis.toml:5:1: there is no tool `Bush` (did you mean `Bash`?)
            portcullis.toml:6:1: `Read` is given no command line that could be contained (say which argument is one, as in `effects = { command = "shell" }`; a server itself is contained by `[server."NAME".contain]`)"#]],
    );
    wrong(
        "[server.x]\ncontian = {}\n[server.y.contain]\nprofile = 'fetch'\nread = ['/x']\n[server.z.contain]\nextends = 'y'\n",
        &expect![[r#"
            portcullis.toml:3:1: unknown field `contian` in the server (did you mean `contain`?)
            portcullis.toml:6:1: unknown field `read` in the contain (expected one of: profile)
            portcullis.toml:8:11: there is no profile `y` (expected one of: fetch, git, project, read-only)"#]],
    );
    wrong(
        "[effects]\nunknown = 'contian'\n",
        &expect!["portcullis.toml:3:11: `contian` is not a value of `unknown` (did you mean `contain`?)"],
    );
}

#[test]
fn lints_name_what_is_unused_or_wide() {
    let bundle =
        load("[profile.a]\nextends = 'project'\n[profile.b]\nread = ['~']\n[contain]\ndefault = 'b'\n")
            .unwrap();
    let lints = bundle.lint().into_iter().filter(|lint| lint.name.ends_with("-profile"));
    let lints: Vec<String> = lints.map(|lint| format!("{} {}", lint.name, lint.diagnostic)).collect();
    expect![[r#"
        unused-profile portcullis.toml:2:10: nothing uses the profile `a` (name it in `[contain]`, or remove it)
        wide-profile portcullis.toml:4:10: `b` has `~` in `read`: keys and settings lie there (name the folders that are needed)"#]].assert_eq(&lints.join("\n"));
}

#[test]
fn a_comparison_says_what_a_contained_command_may_do_more() {
    let old = load(
        "[effects]\nunknown = 'review'\n[contain]\ndefault = 'a'\nbelow = 'deny'\n[contain.commands]\ngit = 'a'\n\
         [profile.a]\nlevel = 'namespace'\nread = ['/x']\n[server.s.contain]\nextends = 'project'\n",
    );
    let new = load(
        "[effects]\nunknown = 'contain'\n[contain]\ndefault = 'a'\nbelow = 'uncontained'\n[contain.commands]\ngit = 'none'\n\
         [profile.a]\nread = ['/x', '/y']\nnetwork = { hosts = ['x.example'] }\nsockets = 'own'\nlimits = { cpu_seconds = 3 }\n",
    );
    let differences = old.unwrap().differences(&new.unwrap());
    let lines = differences.iter().map(|d| format!("{} {}: {} -> {}", d.direction, d.part, d.old, d.new));
    expect![[r#"
        loosened [effects] unknown contain: false -> true
        loosened [contain] below: deny -> uncontained
        loosened [contain.commands] `git`: `a` -> none
        loosened profile `a` level: namespace -> process
        loosened profile `a` read: - -> `/y`
        loosened profile `a` network: None -> Hosts(["x.example"])
        loosened profile `a` sockets: none -> own
        loosened contained server `s`: there -> gone
        tightened profile `a` cpu_seconds: no limit -> 3"#]]
    .assert_eq(&lines.collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_file_has_the_same_reader() {
    let profile =
        read_profile("p.toml", "name = 'p'\nversion = 1\nextends = 'read-only'\nwrite = ['out']\n").unwrap();
    assert_eq!((profile.name.as_str(), profile.write.len()), ("p", 1));
    let wrong = read_profile("p.toml", "version = 2\nwrite = ['/']\nraed = []\n").unwrap_err();
    let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
    expect![[r#"
        p.toml:1:1: the profile has no `name`
        p.toml:1:1: version 2; this program knows 1
        p.toml:2:10: `write`: `/` is everything; name the folders
        p.toml:3:1: unknown field `raed` in the profile (did you mean `read`?)"#]]
    .assert_eq(&wrong.join("\n"));
}
