//! Programs that build, check and run the project, and language runtimes with a file.
//!
//! They run what the project says; what is told is that they write into its folder, and the paths that their
//! arguments name.

use portcullis_core::effect::Verb::{Delete, Execute, Read, Send, Write};

use super::super::interpreter::{Interpreter, Stdin};
use super::super::word::Word;
use super::options::Parsed;
use super::spec::*;
use super::words;

/// Works on the project in the working directory; operands are targets or tests.
const fn works(names: &'static str) -> Spec {
    spec(names).lenient().always(WORKS_HERE)
}

/// Reads the files that are named, those of the project without.
const fn checks(names: &'static str) -> Spec {
    spec(names).lenient().operands(Operands::EachOr(READ, "."))
}

const CHANGES: Operands = Operands::Each(Act::All(&[READ, WRITE]));
/// With this flag the files that are named are changed.
const fn fixes(names: &'static str) -> Opt {
    flag(names, Role::Operands(Operands::EachOr(Act::All(&[READ, WRITE]), "."), Act::Text))
}
const fn only_checks(names: &'static str) -> Opt {
    flag(names, Role::Dry)
}
const OUTPUT: Opt = does(
    "-o --output --output-file --outfile --out --outDir --outdir --out-dir --outFile -outputFile --dist-dir",
    WRITE,
);
const CONFIG: Opt = does("-c --config --config-file --rcfile --project", SETTINGS);

pub(super) const SPECS: &[Spec] = &[
    works("make gmake").by(make).options(&[
        value("-C --directory", Role::Base),
        does("-f --file --makefile", EXECUTE),
        does("--eval -E", Act::Script),
        does("-I --include-dir", Act::Text),
        values("-o --old-file --assume-old -W --what-if --new-file --assume-new"),
        attached("-j --jobs -l --load-average -O --output-sync"),
        flag("-n --just-print --dry-run --recon -q --question", Role::Nothing),
    ]),
    works("just task mage rake invoke nox tox").options(&[
        value("-d --working-directory --dir", Role::Base),
        does("-f --justfile --taskfile --rakefile -c", EXECUTE),
    ]),
    works("cmake").by(cmake).options(&[
        does("-B", WRITE),
        does("-S", Act::All(&[READ, EXECUTE])),
        does("-P -C", EXECUTE),
        does("--build --install --open", Act::All(&[WRITE, EXECUTE])),
        does("--prefix --graphviz", WRITE),
        does("--toolchain", EXECUTE),
        values("-D -U -G -T -A --preset --target -t --config --parallel -j --log-level --component"),
    ]),
    works("ninja samu meson scons waf bazel bazelisk buck buck2 pants xmake").options(&[value("-C", Role::Base), does("-f", EXECUTE), values("-j -k -l -d -t")]),
    works("gradle gradlew mvn mvnw sbt ant lein clj clojure mill").single_dash().options(&[
        value("-p -project-dir", Role::Base),
        does("-f -file -pom.xml -b -build-file -c -settings-file -I -init-script -s -settings -gs", EXECUTE),
    ]),
    works("dotnet msbuild nuget").by(dotnet).options(&[OUTPUT, values("-c --configuration -f --framework -r --runtime -v --verbosity --logger")]),
    works("xcodebuild swiftc fastlane pod gulp grunt webpack vite rollup esbuild parcel turbo nx lerna next nuxt astro ng vue-cli-service react-scripts rspack tsup storybook remix svelte-kit")
        .options(&[OUTPUT, CONFIG]),
    works("tsc vue-tsc tsgo swc babel").options(&[OUTPUT, does("-p --project -c", READ), values("-t --target -m --module --lib")]),
    // Tests run the project.
    works("jest vitest mocha ava tap karma cypress playwright c8 nyc jasmine bats phpunit rspec minitest pest behave robot ctest")
        .options(&[OUTPUT, CONFIG, values("-t --testNamePattern -w --maxWorkers --reporter --grep -g"), value("--rootDir --root --dir", Role::Base)]),
    works("pytest py.test unittest nose2 coverage").options(&[
        does("--junitxml --junit-xml --basetemp --resultlog --html", WRITE),
        does("-c --config-file --rootdir --confcutdir --rcfile", READ),
        values("-k -m -n -p -W -o --override-ini --maxfail --durations --tb --log-level --timeout --cov -r"),
    ]),
    // Modules of Python that are called by name.
    spec("venv virtualenv").each(WRITE).lenient(),
    spec("json.tool").operands(Operands::First(READ, &Operands::Each(WRITE))).lenient(),
    works("pre-commit lefthook husky lint-staged commitlint dprint changeset semantic-release release-it"),
    // Linters read, and change with an option.
    checks("eslint biome oxlint stylelint tslint standard xo markdownlint markdownlint-cli2 htmlhint jshint").options(&[
        fixes("--fix --write --apply --apply-unsafe"),
        OUTPUT,
        does("-c --config", SETTINGS),
        does("--ignore-path", READ),
        does("--parser --plugin -f --format", DOUBT),
        does("--rulesdir --resolve-plugins-relative-to", EXECUTE),
        values("--ext --max-warnings --rule --env --cache-location --cache-strategy"),
    ]),
    checks("prettier").options(&[
        fixes("--write -w"),
        does("--config", SETTINGS),
        does("--plugin", DOUBT),
        does("--ignore-path", READ),
        values("--parser --tab-width --print-width --log-level --end-of-line --prose-wrap --trailing-comma"),
    ]),
    spec("ruff").lenient().subcommands(&[
        checks("check linter").options(&[
            fixes("--fix --unsafe-fixes --add-noqa"),
            OUTPUT,
            does("--config", READ),
            values("--select --ignore --extend-select --target-version --output-format --line-length --exclude --per-file-ignores"),
        ]),
        spec("format").lenient().operands(Operands::EachOr(Act::All(&[READ, WRITE]), ".")).options(&[
            only_checks("--check --diff"),
            does("--config", READ),
            values("--target-version --line-length --exclude --range"),
        ]),
        spec("rule config clean version help server analyze").lenient(),
    ]),
    spec("black isort autopep8 yapf autoflake pyupgrade").lenient().operands(CHANGES).options(&[
        only_checks("--check --diff --check-only -d"),
        does("-c --config --settings-file", READ),
        values("-l --line-length -t --target-version --profile --style --exclude --include"),
    ]),
    spec("rustfmt gofmt goimports gofumpt shfmt clang-format stylua nixfmt taplo ktlint google-java-format scalafmt")
        .lenient()
        .operands(CHANGES)
        .options(&[only_checks("--check -d --dry-run"), values("--edition --config --style")]),
    checks("mypy pyright pylint flake8 pyflakes bandit vulture radon pydocstyle pycodestyle shellcheck hadolint yamllint jsonlint golangci-lint staticcheck govulncheck clang-tidy cppcheck rubocop sorbet phpstan psalm tflint actionlint codespell typos vale semgrep trivy grype syft cloc tokei scc gitleaks detect-secrets lychee")
        .options(&[
            OUTPUT,
            CONFIG,
            flag("-a -A --autocorrect --fix --auto-correct -w --write-changes -write", Role::Operands(Operands::EachOr(Act::All(&[READ, WRITE]), "."), Act::Text)),
            values("--select --ignore --exclude --max-line-length --format --severity --python-version --rules"),
        ]),
    // Compilers.
    spec("gcc g++ cc c++ clang clang++ tcc zcc").each(READ).by(compile).lenient().single_dash().options(&[
        does("-o -MF -dumpdir", WRITE),
        does("-include -imacros -isysroot", READ),
        does("-Xlinker -Xclang -Xassembler -Xpreprocessor", DOUBT),
        does("-wrapper -fplugin -B -specs", EXECUTE),
        values("-x -D -U -I -L -l -isystem -iquote -idirafter -T -u -z -arch -target -MT -MQ -framework"),
    ]),
    spec("rustc rustdoc").each(READ).by(compile).lenient().options(&[
        does("-o --out-dir", WRITE),
        does("-C --codegen", Act::By(code_generation)),
        values("--crate-name --crate-type --edition --emit --print --cfg --target -L -l --extern -A -W -D -F --cap-lints --error-format"),
    ]),
    spec("javac kotlinc scalac ghc ocamlc ocamlopt fpc nasm as ld protoc valac dmd nim crystal elixirc erlc mcs csc vbc")
        .each(READ)
        .by(compile)
        .lenient()
        .single_dash()
        .options(&[
            does("-o -d -outdir -output", WRITE),
            does("-plugin -processorpath", EXECUTE),
            values("-cp -classpath -source -target -release -sourcepath"),
        ]),
    spec("buf sqlc prisma").lenient().always(WRITES_HERE),
    spec("objdump nm readelf size ldd addr2line c++filt otool lipo dwarfdump").each(READ).lenient(),
    spec("strip objcopy ranlib").each(Act::All(&[READ, WRITE])).lenient().options(&[does("-o", WRITE)]),
    // Runtimes with a file. Interpreters that take programs as text are read elsewhere, files included.
    spec("deno tsx ts-node").stops().by(runtime).options(&[
        does("-e --eval -p --print -pe", Act::Code("javascript")),
        does("-r --require --import --loader --experimental-loader", Act::Text),
        does("--env-file --env-file-if-exists --config -c", READ),
        values("--test-name-pattern --test-reporter --conditions -C --max-old-space-size --inspect-port --title --port"),
        attached("--inspect --inspect-brk --stack-trace-limit --cpu-prof-dir --test-concurrency --test-timeout"),
        flags("--test --watch -v --version -h --help --check -i --interactive --no-warnings --trace-warnings --expose-gc"),
        flags("--experimental-strip-types --experimental-vm-modules --experimental-modules --preserve-symlinks"),
        flags("--enable-source-maps --cpu-prof --heap-prof --prof --trace-deprecation --throw-deprecation --allow-all -A"),
        flags("--experimental-test-coverage --transpile-only --esm -T"),
    ]),
    spec("java swift-run escript kotlin")
        .stops()
        .single_dash()
        .by(runtime)
        .options(&[
            does("-e -E -r -R -execute", Act::Code("script")),
            value("-jar", Role::Does(EXECUTE)),
            values("-I -cp -classpath -d -m"),
            flags("-w -v -version -W -c -n -p -l -a -s -S -help -server"),
        ]),
];

/// Variables of make that hold programs, which rules call.
const MAKE_PROGRAMS: [&str; 24] = [
    "SHELL",
    ".SHELLFLAGS",
    "MAKE",
    "CC",
    "CXX",
    "CPP",
    "LD",
    "AR",
    "AS",
    "NM",
    "RANLIB",
    "STRIP",
    "OBJCOPY",
    "RM",
    "CP",
    "MV",
    "LN",
    "INSTALL",
    "MKDIR",
    "SED",
    "AWK",
    "PYTHON",
    "PERL",
    "RUNNER",
];

/// Variables on the command line of make go into the commands of its rules.
fn make(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let mut understood = true;
    for file in call.values(&["-f", "--file", "--makefile"]) {
        if matches!(words::text(&file), "-" | "/dev/stdin") || words::text(&file).starts_with("/dev/fd/") {
            shell.unknown("make", "the rules come from its input", file.range.clone());
        }
    }
    for word in &call.operands {
        if let Some((name, value)) = words::split(word, '=') {
            let text = words::text(&value);
            let name = words::text(&name).trim_end_matches([':', '+', '?', '!']);
            let first = text.split_whitespace().next().unwrap_or_default();
            let program = MAKE_PROGRAMS.contains(&name);
            if text.contains(['$', '`', ';', '|', '&', '<', '>', '\n']) {
                understood = false;
            }
            if program && text.contains([' ', '/', ';']) || text.contains(' ') && super::find(first).is_some()
            {
                call.act(Act::Script, &value, shell);
            }
            if matches!(name, "DESTDIR" | "prefix" | "PREFIX") {
                call.act(WRITE, &value, shell);
            }
        } else if words::text(word) == "install"
            && !call.operands.iter().any(|word| words::text(word).starts_with("DESTDIR="))
        {
            call.act(setting("packages/"), &call.literal("local"), shell);
        }
    }
    understood
}

/// `-C linker=PROGRAM` of rustc.
fn code_generation(word: &Word, shell: &mut Interpreter<'_, '_>) {
    if let Some(linker) = words::strip(word, "linker=") {
        shell.script(&linker);
    }
}

/// `cmake -E COMMAND` is a tool box of its own.
fn cmake(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    if !call.call.args.iter().any(|arg| words::text(arg) == "-E") {
        call.act_on_each(Act::All(&[READ, EXECUTE]), &call.operands, shell);
        return true;
    }
    match call.operand(0) {
        "rm" | "remove" | "remove_directory" => call.act_on_each(Act::Tree(Delete), call.rest(1), shell),
        "make_directory" | "touch" => call.act_on_each(WRITE, call.rest(1), shell),
        "cat" | "md5sum" | "sha256sum" => call.act_on_each(READ, call.rest(1), shell),
        "echo" | "capabilities" | "sleep" | "true" | "false" => {}
        "env" | "time" | "chdir" => return false,
        "copy" | "copy_directory" | "rename" | "copy_if_different" | "create_symlink" => {
            if let Some((target, sources)) = call.rest(1).split_last() {
                call.act_on_each(READ, sources, shell);
                call.act(WRITE, target, shell);
            }
        }
        _ => return false,
    }
    true
}

fn dotnet(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    use portcullis_core::effect::ResourceKind::Package;
    match (call.operand(0), call.operand(1)) {
        ("add", _) if call.operands.iter().any(|word| words::text(word) == "package") => {
            let names = call.operands.iter().skip_while(|word| words::text(word) != "package").skip(1);
            names.for_each(|name| call.act(Act::Package(Read, "nuget"), name, shell));
        }
        ("tool", "install" | "update" | "uninstall") => {
            call.act(setting("packages/"), &call.literal("nuget"), shell)
        }
        ("nuget", "push") | ("push", _) => {
            call.act(Act::Named(Send, Package, "nuget:"), &call.literal("*"), shell)
        }
        ("restore", _) => call.act(Act::Named(Read, Package, "nuget:"), &call.literal("*"), shell),
        ("exec", _) => call.act_on_each(EXECUTE, call.rest(1).get(..1).unwrap_or_default(), shell),
        _ => {}
    }
    true
}

/// Without `-o` a compiler writes beside the working directory's files.
fn compile(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let mut understood = true;
    for arg in call.call.args {
        // Further options are in a file.
        understood &= !words::text(arg).starts_with('@');
        // `protoc --java_out=FOLDER`
        if let Some((name, folder)) = words::split(arg, '=')
            && words::text(&name).ends_with("_out")
        {
            call.act(WRITE, &folder, shell);
        }
    }
    if !call.has_any(&["-o", "--out-dir", "-d", "-outdir", "-output"]) && !call.operands.is_empty() {
        call.act(WRITE, &call.literal("."), shell);
    }
    understood
}

/// `tsx FILE`, `java -jar FILE`; from standard input it is a program that is not known.
fn runtime(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let given =
        call.found.iter().any(|found| matches!(found.opt.role, Role::Does(Act::Code(_)))) || call.has("-jar");
    let deno = call.call.program == "deno";
    let file = call.operands.get(usize::from(deno));
    match (file, call.call.stdin) {
        _ if given => {}
        (Some(file), _) if words::text(file) != "-" => {
            call.act(Act::Path(Execute), file, shell);
            call.act(Act::Path(Write), &call.literal("."), shell);
        }
        (_, Stdin::Text(text)) => {
            let word = words::literal(text, call.call.range.clone());
            shell.code("script", &word);
        }
        (_, Stdin::Pipe | Stdin::File) => {
            shell.unknown(call.call.program, "the program comes from its input", call.call.range.clone())
        }
        _ => {}
    }
    true
}
