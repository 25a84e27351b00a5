//! `cargo` and `go`.

use portcullis_core::effect::ResourceKind::{Package, Setting};
use portcullis_core::effect::Verb::{Configure, Delete, Execute, Read, Send};

use super::super::interpreter::Interpreter;
use super::options::Parsed;
use super::spec::*;
use super::words;

pub(super) const CARGO_OPTIONS: &[Opt] = &[
    value("-C", Role::Base),
    // Its build script and its code run.
    does("--manifest-path", Act::All(&[READ, EXECUTE])),
    does("--target-dir", WRITE),
    does("--config", Act::Script),
    values(
        "-Z --color -p --package -j --jobs --features -F --target --profile --message-format --bin --test",
    ),
    values("--example --bench --exclude --lockfile-path --explain --timings --test-threads"),
    flags(
        "-q --quiet -v --verbose -vv --locked --offline --frozen --list -V --version --release -r --all --workspace",
    ),
    flags(
        "--all-features --no-default-features --all-targets --lib --bins --tests --examples --benches --doc",
    ),
    flags(
        "--no-run --no-fail-fast --keep-going --ignore-rust-version --open --no-deps --document-private-items",
    ),
    HELP,
];

const CARGO_INDEX: &[(Act, &str)] = &[(setting("packages/"), "cargo")];

/// What builds or runs the project.
pub(super) const CARGO: &[Spec] = &[
    // Building runs build scripts and macros.
    spec("build b check c clippy doc d test t bench run r rustc rustdoc fix nextest package miri expand llvm-cov llvm-lines hack insta udeps semver-checks")
        .always(WORKS_HERE)
        .lenient()
        .options(&[
            does("--out-dir --artifact-dir --output-path", WRITE),
            values("--edition --fix-mode"),
        ]),
    spec("fmt vendor generate-lockfile fetch update remove rm machete sort msrv about cyclonedx")
        .always(WRITES_HERE)
        .lenient()
        .options(&[values("--edition")]),
    spec("install").lenient().by(cargo_install).options(&[
        does("--path", READ),
        does("--git", Act::Repository(Read)),
        does("--root", WRITE),
        does("--index", Act::Url(Read)),
        values("--version --vers --branch --tag --rev --registry"),
    ]).always(CARGO_INDEX),
    spec("uninstall").lenient().always(CARGO_INDEX),
    spec("add").each(Act::Package(Read, "cargo")).lenient().always(WRITES_HERE).options(&[
        does("--path", READ),
        does("--git", Act::Repository(Read)),
        values("--rename --registry --branch --tag --rev"),
    ]),
    spec("publish").lenient().always(&[(Act::Named(Send, Package, "cargo:"), "*"), (Act::Tree(Read), ".")]).options(&[
        flag("-n --dry-run", Role::Dry),
        values("--registry --index --token"),
    ]),
    spec("yank").each(Act::Package(Delete, "cargo")).lenient().options(&[values("--version --vers --index --registry --token")]),
    spec("login logout owner").lenient().always(&[(setting("registry/"), "cargo")]),
    spec("new init").each(WRITE).lenient().options(&[values("--name --vcs --edition --registry")]),
    spec("clean").lenient().by(|call, shell| {
        if !call.has_any(&["--target-dir"]) {
            call.act(Act::Tree(Delete), &call.literal("target"), shell);
        }
        call.act_on_each(Act::Tree(Delete), &call.values(&["--target-dir"]), shell);
        true
    }).options(&[flag("-n --dry-run", Role::Dry)]),
    spec("search info tree metadata version help locate-project verify-project pkgid audit outdated deny read-manifest report config geiger bloat public-api")
        .lenient()
        .always(READS_HERE),
];

fn cargo_install(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    call.act_on_each(Act::Package(Read, "cargo"), &call.operands, shell);
    true
}

const GO_OPTIONS: &[Opt] = &[
    value("-C", Role::Base),
    does("-o", WRITE),
    does("-exec -toolexec -vettool", Act::Script),
    does("-coverprofile -cpuprofile -memprofile -blockprofile -mutexprofile -trace -outputdir", WRITE),
    does("-modfile -overlay -pgo", READ),
    values(
        "-run -bench -benchtime -count -cpu -parallel -timeout -tags -ldflags -gcflags -asmflags -p -mod -skip",
    ),
    values(
        "-covermode -coverpkg -shuffle -fuzz -fuzztime -list -f -buildmode -compiler -installsuffix -pkgdir -args",
    ),
    flags(
        "-v -race -cover -short -failfast -json -x -n -a -work -trimpath -benchmem -i -c -u -t -m -e -deps -msan -asan",
    ),
];

const fn go(names: &'static str) -> Spec {
    spec(names).single_dash().options(GO_OPTIONS)
}

pub(super) const GO: &[Spec] = &[
    go("test generate").always(WORKS_HERE),
    go("build vet fmt fix").always(WRITES_HERE),
    spec("run").single_dash().stops().options(GO_OPTIONS).by(go_run),
    go("install").by(|call, shell| {
        call.act_on_each(Act::Package(Read, "golang"), &call.operands, shell);
        call.act(setting("packages/"), &call.literal("golang"), shell);
        true
    }),
    go("get").each(Act::Package(Read, "golang")).always(WRITES_HERE),
    spec("mod work").single_dash().lenient().always(WRITES_HERE),
    go("clean")
        .lenient()
        .by(|call, shell| {
            let caches = call.call.args.iter().any(|arg| words::text(arg).contains("cache"));
            if caches {
                call.act(Act::Named(Configure, Setting, "cache/"), &call.literal("golang"), shell);
            }
            true
        })
        .always(WRITES_HERE),
    spec("env").lenient().single_dash().by(|call, shell| {
        if call.call.args.iter().any(|arg| matches!(words::text(arg), "-w" | "-u")) {
            call.act_on_each(Act::Named(Configure, Setting, "go/"), &call.operands, shell);
        }
        true
    }),
    spec("list doc version help bug").lenient().single_dash().always(READS_HERE).options(GO_OPTIONS),
];

/// `go run FILE…|PACKAGE[@VERSION] ARGUMENTS…`.
fn go_run(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    if let Some(first) = call.operands.first() {
        let text = words::text(first);
        if text.starts_with(['.', '/']) || text.ends_with(".go") {
            call.act(EXECUTE, first, shell);
        } else {
            call.act(Act::Package(Execute, "golang"), first, shell);
        }
    }
    call.act(WRITE, &call.literal("."), shell);
    true
}
