//! Package managers.
//!
//! Installing reads packages from a registry and writes into the project; for all of the machine or the user it
//! changes a setting, `packages/ECOSYSTEM`. Ecosystems are named as package URLs name them.

use portcullis_core::effect::ResourceKind::{self, Setting};
use portcullis_core::effect::Verb::{self, Configure, Delete, Execute, Read, Send};

use super::super::interpreter::Interpreter;
use super::super::word::Word;
use super::options::Parsed;
use super::package_models::*;
use super::spec::*;
use super::{toolchains, words};

/// An effect on a package, or on the place that it comes from.
pub(super) fn package(
    verb: Verb,
    ecosystem: &'static str,
    call: &Parsed<'_>,
    word: &Word,
    shell: &mut Interpreter<'_, '_>,
) {
    let text = words::text(word);
    let place = text.split_once(" @ ").map_or(text, |(_, place)| place);
    let place = place.strip_prefix("git+").unwrap_or(place);
    if place.starts_with("file:") || place.starts_with(['.', '/', '~']) {
        let path = place.trim_start_matches("file://").trim_start_matches("file:");
        let path = path.split(['[', '#']).next().unwrap_or_default();
        // Installing it runs what it says.
        let act = if verb == Read { Act::All(&[READ, EXECUTE]) } else { READ };
        call.act_plainly(act, &words::part(word, path), &[], shell);
        return;
    }
    let hub = ["github:", "gitlab:", "bitbucket:"].iter().any(|hub| place.starts_with(hub));
    let short = ecosystem == "npm" && !place.starts_with('@') && place.split('/').count() == 2;
    if place.contains("://") || place.starts_with("git@") {
        call.act_plainly(Act::Named(verb, ResourceKind::Package, ""), word, &[], shell);
        call.act_plainly(Act::Repository(Read), &words::part(word, place), &[], shell);
    } else if hub || short {
        call.act_plainly(Act::Named(verb, ResourceKind::Package, ""), word, &[], shell);
        let host = place.split_once(':').map_or("github", |(hub, _)| hub);
        let url = format!("https://{host}.com/{}", place.rsplit(':').next().unwrap_or_default());
        call.act_plainly(Act::Repository(Read), &words::part(word, &url), &[], shell);
    } else {
        let name = canonical(ecosystem, place);
        call.act_plainly(
            Act::Named(verb, ResourceKind::Package, ""),
            &words::part(word, &format!("{ecosystem}:{name}")),
            &[],
            shell,
        );
    }
}

/// Packages that the project's own lists name are installed, and run what they say.
fn from_lists(_: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    shell.sink.presume();
    true
}

/// The name of a package without version and extras.
fn canonical(ecosystem: &str, text: &str) -> String {
    match ecosystem {
        "pypi" => {
            let name = text.split(['=', '<', '>', '~', '!', '[', ';', ' ', '@']).next().unwrap_or_default();
            name.to_ascii_lowercase().replace(['_', '.'], "-")
        }
        "npm" => {
            let scope = usize::from(text.starts_with('@'));
            let tail = text.get(scope..).unwrap_or_default();
            let name = tail.split('@').next().unwrap_or_default();
            format!("{}{name}", text.get(..scope).unwrap_or_default())
        }
        "deb" => text.split(['=', '/', ':']).next().unwrap_or_default().to_owned(),
        "apk" | "conda" => text.split(['=', '<', '>']).next().unwrap_or_default().to_owned(),
        _ => text.split(['@', ':']).next().unwrap_or_default().to_owned(),
    }
}

/// The sources that packages come from are chosen.
const INDEX: Opt = does(
    "--registry --index-url -i --extra-index-url --index --default-index --find-links --source",
    Act::Place(Read),
);
const ALL: &[(Act, &str)] = &[(WRITE, ".")];

const fn installs(names: &'static str, ecosystem: Act) -> Spec {
    spec(names).each(ecosystem).lenient().always(ALL)
}
const fn machine(names: &'static str, ecosystem: Act, always: &'static [(Act, &'static str)]) -> Spec {
    spec(names).each(ecosystem).lenient().always(always)
}
const fn runs_project(names: &'static str) -> Spec {
    spec(names).lenient().always(WORKS_HERE)
}
const fn looks(names: &'static str) -> Spec {
    spec(names).lenient().always(READS_HERE)
}
const fn asks(names: &'static str) -> Spec {
    spec(names).lenient()
}

const NPM: Act = Act::Package(Read, "npm");
const PYPI: Act = Act::Package(Read, "pypi");
const GLOBAL_NPM: &[(Act, &str)] = &[(setting("packages/"), "npm")];
const GLOBAL_PYPI: &[(Act, &str)] = &[(setting("packages/"), "pypi")];
const PUBLISH_NPM: &[(Act, &str)] =
    &[(Act::Named(Send, ResourceKind::Package, "npm:"), "*"), (Act::Tree(Read), ".")];
const PUBLISH_PYPI: &[(Act, &str)] =
    &[(Act::Named(Send, ResourceKind::Package, "pypi:"), "*"), (Act::Tree(Read), ".")];

const NODE_OPTIONS: &[Opt] = &[
    flags("-w"),
    value("--prefix --dir -C --cwd", Role::Base),
    flag("-g --global", Role::Also(GLOBAL_NPM)),
    value("--location", Role::Also(GLOBAL_NPM)),
    does("--registry", Act::Url(Read)),
    does("--userconfig --globalconfig", READ),
    does("--script-shell", EXECUTE),
    does("-e --eval --print", Act::Code("javascript")),
    does("--cache", WRITE),
    values("--workspace --filter -F --tag --access --otp --loglevel --omit --include --depth --before"),
    flag("--dry-run", Role::Dry),
    HELP,
];

pub(super) const SPECS: &[Spec] = &[
    spec("npm pnpm yarn bun").lenient().options(NODE_OPTIONS).by(node_alone).subcommands(&[
        spec("install i add in isntall link ln update up upgrade upgrade-interactive install-test it").each(NPM).lenient().always(ALL).by(node_install),
        spec("ci clean-install").lenient().always(&[(Act::Named(Read, ResourceKind::Package, "npm:"), "*"), (WRITE, ".")]),
        spec("uninstall remove rm un r unlink prune dedupe ddp rebuild").lenient().always(ALL),
        spec("publish").each(READ).lenient().always(PUBLISH_NPM),
        spec("unpublish deprecate").each(Act::Package(Delete, "npm")).lenient(),
        spec("dist-tag owner access team token profile adduser login logout org hook star").lenient().always(&[(setting("registry/"), "npm")]),
        spec("run run-script test t tst start stop restart build dev lint rum urn fmt typecheck check").lenient().by(node_script),
        spec("exec x dlx create init innit").stops().by(node_exec).options(&[
            value("-p --package", Role::Does(Act::Package(Execute, "npm"))),
            does("-c --call", Act::Script),
            flags("-y --yes --no --quiet -q --silent -s -D --save-dev -r --recursive --parallel --bun"),
        ]),
        looks("ls list la ll outdated audit view info show v why explain fund docs home repo bugs root prefix bin ping search doctor help version --version licenses whoami pkg query sbom explore diff"),
        spec("config c set get").lenient().by(node_config),
        spec("global").lenient().always(GLOBAL_NPM).by(|call, shell| {
            call.act_on_each(NPM, call.rest(1), shell);
            true
        }),
        spec("pack").lenient().always(&[(WRITE, ".")]),
        spec("cache store").lenient().each(Act::Text).always(&[(setting("cache/"), "npm")]),
    ]),
    spec("npx pnpx bunx").stops().by(node_exec).options(&[
        value("-p --package", Role::Does(Act::Package(Execute, "npm"))),
        does("-c --call", Act::Script),
        does("--registry", Act::Url(Read)),
        does("--node-arg -n --userconfig", Act::Text),
        flags("-y --yes --no --no-install -q --quiet --silent --ignore-existing --bun --verbose"),
        HELP,
    ]),
    spec("cross-env cross-env-shell env-cmd dotenv").stops().by(wrapped),
    spec("concurrently").each(Act::Script).options(&[values("-n --names -c --prefix-colors --restart-tries -p --prefix"), flags("-k --kill-others --kill-others-on-fail -r --raw -s")]),
    spec("nodemon").stops().by(wrapped).options(&[does("-x --exec", Act::Script), values("-w --watch -e --ext -i --ignore -d --delay")]),
    spec("corepack nvm fnm volta n").by(version_manager).lenient(),
    spec("pip pip2 pip3 pip3.10 pip3.11 pip3.12 pip3.13").options(&[
        INDEX,
        does("--log --cache-dir", WRITE),
        values("--python"),
        does("--proxy", Act::Url(Send)),
        does("--cert --client-cert", READ),
        values("--timeout --retries --trusted-host --exists-action --keyring-provider --use-feature"),
        HELP,
    ]).lenient().subcommands(&[
        installs("install", PYPI).by(pip_install).options(&[
            does("-r --requirement -c --constraint", READ),
            does("-e --editable", PYPI),
            does("-t --target --prefix --root --src --report", WRITE),
            flag("--user --break-system-packages", Role::Also(GLOBAL_PYPI)),
            flag("--dry-run", Role::Dry),
            values("--platform --python-version --implementation --abi --only-binary --no-binary --upgrade-strategy"),
            values("--global-option --config-settings -C --progress-bar --root-user-action"),
        ]),
        spec("download wheel").each(PYPI).lenient().always(ALL).options(&[
            does("-r --requirement -c --constraint", READ),
            does("-d --dest -w --wheel-dir", WRITE),
        ]),
        spec("uninstall").lenient().always(ALL).options(&[does("-r --requirement", READ)]),
        looks("list show freeze check search index help debug hash inspect"),
        spec("config").lenient().by(|call, shell| {
            if matches!(call.operand(0), "set" | "unset" | "edit") {
                call.act(Act::Named(Configure, Setting, "pip/"), call.operands.get(1).unwrap_or(&call.literal("*")), shell);
            }
            true
        }),
        spec("cache").lenient().always(&[(setting("cache/"), "pypi")]),
    ]),
    spec("pipx uvx").stops().by(tool_runner).options(&[
        does("--from --with --spec", Act::Package(Execute, "pypi")),
        INDEX,
        values("-p --python"),
        does("--with-requirements --env-file", READ),
        flags("-q --quiet -v --verbose --isolated --no-cache --refresh --offline -n"),
        HELP,
    ]),
    spec("uv").lenient().options(&[value("--directory --project", Role::Base), INDEX, does("--cache-dir", WRITE), does("--config-file", READ), HELP]).subcommands(&[
        installs("add", PYPI).options(&[does("-r --requirements -c", READ), values("--group --optional --extra --rev --tag --branch --bounds")]),
        runs_project("sync lock venv init remove build version export tree format"),
        spec("run").stops().by(uv_run).options(&[
            does("--with", Act::Package(Execute, "pypi")),
            does("--with-requirements --env-file --with-editable", READ),
            values("-p --python --extra --group --package -m --module --no-group --only-group --no-extra"),
            flags("-q --quiet -v --verbose --frozen --locked --no-sync --isolated --active --all-extras --dev --no-dev -s --script"),
            flags("--no-project --offline --exact --all-packages --refresh --no-cache -n --all-groups --only-dev"),
        ]),
        spec("pip").lenient().subcommands(&[
            installs("install", PYPI).options(&[
                does("-r --requirement --requirements -c --constraint", READ),
                does("-e --editable", PYPI),
                does("-t --target --prefix", WRITE),
                flag("--system --break-system-packages --user", Role::Also(GLOBAL_PYPI)),
                values("-p --python --extra"),
            ]),
            spec("sync compile").each(READ).lenient().always(ALL).options(&[does("-o --output-file", WRITE)]),
            runs_project("uninstall"),
            looks("list show freeze check tree"),
        ]),
        spec("tool").subcommands(&[
            machine("install upgrade", PYPI, GLOBAL_PYPI),
            spec("run").stops().by(|call, shell| {
                call.act_on_each(Act::Package(Execute, "pypi"), call.rest(0).get(..1).unwrap_or_default(), shell);
                true
            }).options(&[does("--from --with", Act::Package(Execute, "pypi"))]),
            spec("uninstall").lenient().always(GLOBAL_PYPI),
            looks("list dir"),
        ]),
        spec("publish").each(READ).lenient().always(PUBLISH_PYPI).options(&[does("--publish-url", Act::Url(Send)), values("-t --token -u --username -p --password")]),
        spec("python").lenient().always(&[(setting("packages/"), "python")]),
        spec("cache self").lenient().always(&[(setting("cache/"), "pypi")]),
        asks("help"),
    ]),
    spec("poetry pdm hatch rye pipenv").lenient().options(&[value("-C --directory -P --project", Role::Base), HELP]).subcommands(&[
        installs("add install update lock sync remove uninstall init new build export upgrade clean", Act::Text).by(python_add)
            .options(&[values("-G --group --source -E --extras --python -r --requirements")]),
        spec("run shell").stops().by(run_words),
        spec("publish").lenient().always(PUBLISH_PYPI),
        looks("show check version env list info help about search graph tree"),
        spec("config self source cache").lenient().always(&[(setting("python-project"), "")]),
        runs_project("test fmt lint dep"),
    ]),
    spec("twine flit").lenient().subcommands(&[
        spec("upload publish").each(Act::Upload).lenient().always(PUBLISH_PYPI).options(&[does("--repository-url", Act::Url(Send)), values("-r --repository -u -p --config-file --comment -i")]),
        spec("check build install").each(READ).lenient(),
    ]),
    spec("conda mamba micromamba").lenient().options(&[HELP]).subcommands(&[
        spec("install create update upgrade").each(Act::Package(Read, "conda")).lenient().always(&[(setting("packages/"), "conda")]).options(&[
            does("-f --file", READ),
            does("-p --prefix", WRITE),
            values("-n --name -c --channel --solver"),
        ]),
        spec("remove uninstall env config clean init").lenient().always(&[(setting("packages/"), "conda")]),
        spec("run").stops().by(run_words).options(&[values("-n --name -p --prefix --cwd"), flags("--no-capture-output --live-stream -v")]),
        asks("activate deactivate list info search"),
    ]),
    spec("cargo").options(toolchains::CARGO_OPTIONS).subcommands(toolchains::CARGO),
    spec("rustup").lenient().by(|call, shell| {
        match call.operand(0) {
            "run" => shell.run(call.rest(2), call.call.range.clone()),
            "show" | "which" | "doc" | "check" | "help" | "" => {}
            _ => call.act(setting("packages/"), &call.literal("rust"), shell),
        }
        true
    }).stops(),
    spec("go").subcommands(toolchains::GO),
    spec("gem").lenient().options(&[values("-v --version --platform -n --bindir"), does("-i --install-dir", WRITE), does("-s --source", Act::Url(Read))]).subcommands(&[
        machine("install update", Act::Package(Read, "gem"), &[(setting("packages/"), "gem")]),
        machine("uninstall cleanup pristine sources", Act::Text, &[(setting("packages/"), "gem")]),
        spec("push").each(Act::Upload).lenient().always(&[(Act::Named(Send, ResourceKind::Package, "gem:"), "*")]).options(&[does("--host", Act::Url(Send))]),
        spec("yank").each(Act::Package(Delete, "gem")).lenient(),
        runs_project("build"),
        asks("list search env info which help environment outdated specification"),
    ]),
    spec("bundle bundler").lenient().by(bundle_alone).subcommands(&[
        installs("add", Act::Package(Read, "gem")),
        installs("install update lock package cache clean remove init binstubs", Act::Text).by(from_lists),
        spec("exec").stops().by(run_words),
        looks("show list info outdated check config help doctor licenses version"),
    ]),
    spec("composer").lenient().options(&[value("-d --working-dir", Role::Base), HELP]).subcommands(&[
        installs("require create-project", Act::Package(Read, "composer")),
        installs("install update remove dump-autoload dumpautoload init bump", Act::Text).by(from_lists),
        spec("global").lenient().always(&[(setting("packages/"), "composer")]),
        runs_project("run-script run exec test"),
        looks("show outdated validate audit why info search licenses status diagnose about"),
        spec("config").lenient().always(&[(setting("composer"), "")]),
    ]),
    spec("mix hex rebar3 stack cabal opam nimble dub pub dart flutter swift zig gleam").lenient().stops().always(ALL).by(|call, _| {
        matches!(call.operand(0), "" | "build" | "test" | "compile" | "format" | "fmt" | "deps.get" | "run" | "analyze" | "clean")
    }),
    spec("apt apt-get aptitude nala").lenient().options(&[values("-t --target-release"), does("-o --option", Act::By(apt_option)), does("-c --config-file", READ)]).by(apt).subcommands(&[
        machine("install reinstall build-dep satisfy", Act::Package(Read, "deb"), &[(setting("packages/"), "deb")]),
        machine("remove purge autoremove autopurge", Act::Package(Delete, "deb"), &[(setting("packages/"), "deb")]),
        machine("upgrade dist-upgrade full-upgrade update clean autoclean mark edit-sources", Act::Text, &[(setting("packages/"), "deb")]),
        spec("source download").each(Act::Package(Read, "deb")).lenient().always(ALL),
        asks("list search show policy depends rdepends changelog check help madison"),
    ]),
    spec("apt-cache apt-config dpkg-query").lenient(),
    spec("apt-key add-apt-repository apt-mark dpkg-reconfigure update-alternatives").lenient().always(&[(setting("packages/"), "deb")]),
    spec("dpkg").by(dpkg).lenient(),
    spec("dnf yum microdnf zypper").lenient().subcommands(&[
        machine("install in localinstall reinstall groupinstall", Act::Package(Read, "rpm"), &[(setting("packages/"), "rpm")]),
        machine("remove erase rm autoremove", Act::Package(Delete, "rpm"), &[(setting("packages/"), "rpm")]),
        machine("update upgrade up dup clean config-manager module makecache refresh addrepo ar downgrade swap", Act::Text, &[(setting("packages/"), "rpm")]),
        asks("list search se info repolist provides whatprovides history check-update repoquery help"),
    ]),
    spec("rpm").by(rpm).lenient(),
    spec("apk").lenient().options(&[value("-p --root", Role::Base), does("-X --repository", Act::Url(Read)), values("-t --virtual")]).subcommands(&[
        machine("add", Act::Package(Read, "apk"), &[(setting("packages/"), "apk")]),
        machine("del", Act::Package(Delete, "apk"), &[(setting("packages/"), "apk")]),
        machine("update upgrade fix cache", Act::Text, &[(setting("packages/"), "apk")]),
        asks("info list search policy version stats"),
    ]),
    spec("brew").lenient().subcommands(&[
        machine("install reinstall fetch", Act::Package(Read, "brew"), &[(setting("packages/"), "brew")]),
        machine("uninstall remove rm autoremove", Act::Package(Delete, "brew"), &[(setting("packages/"), "brew")]),
        machine("tap untap update upgrade cleanup link unlink pin unpin services bundle", Act::Text, &[(setting("packages/"), "brew")]),
        asks("list ls search info deps uses outdated doctor config home desc leaves log cat --prefix --cellar shellenv"),
    ]),
    spec("snap flatpak").lenient().subcommands(&[
        machine("install", Act::Package(Read, "snap"), &[(setting("packages/"), "snap")]),
        machine("remove uninstall", Act::Package(Delete, "snap"), &[(setting("packages/"), "snap")]),
        machine("refresh update connect disconnect enable disable revert alias set override remote-add", Act::Text, &[(setting("packages/"), "snap")]),
        asks("list find search info version connections interfaces"),
    ]),
    spec("pacman yay paru").by(pacman).lenient(),
];
