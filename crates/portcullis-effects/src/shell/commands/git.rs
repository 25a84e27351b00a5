//! `git`.
//!
//! The repository is the folder that git is called in. What changes it writes there; what throws away work that is
//! not committed deletes there by force; what rewrites or drops commits does so with `history`.

use portcullis_core::effect::ResourceKind::{Repository, Setting};
use portcullis_core::effect::Verb;
use portcullis_core::effect::Verb::{Configure, Delete, Read, Send, Write};

use super::super::interpreter::Interpreter;
use super::super::word::Word;
use super::git_options::{ADDS, FETCHES, LOOKS_AT, SEARCHES, SHOWS, STASHES};
use super::options::Parsed;
use super::spec::*;
use super::{git_config, git_files, lists, network, words};

const REWRITES: Role = Role::Marks(&["history"]);
const MESSAGE: Opt =
    values("-m --message -C --reuse-message -c --reedit-message --author --date --cleanup --trailer");
const FILE_OF_PATHS: Opt = does("--pathspec-from-file", READ);
const READS: Spec = spec("status log diff show shortlog describe blame annotate whatchanged cherry diff-tree diff-index diff-files range-diff")
    .options(SHOWS)
    .lenient()
    .always(READS_HERE)
    .by(shows);
const LOOKS: Spec = spec("rev-parse rev-list ls-files ls-tree cat-file name-rev merge-base for-each-ref show-ref show-branch var version help count-objects verify-commit verify-tag fsck check-ignore check-attr column stripspace merge-tree patch-id show-index unpack-file")
    .options(LOOKS_AT)
    .lenient()
    .always(READS_HERE)
    .by(|call, shell| {
        git_files::contents(call, shell);
        true
    });

pub(super) const SPECS: &[Spec] = &[spec("git").subcommands(SUBCOMMANDS).options(&[
    value("-C", Role::Base),
    value("--work-tree", Role::Base),
    does("--git-dir", Act::All(&[READ, WRITE])),
    does("-c", Act::By(git_config::assignment)),
    does("--config-env", Act::By(git_config::from_environment)),
    values("--namespace --super-prefix --attr-source --list-cmds"),
    Opt { names: "--exec-path", takes: Takes::Attached, role: Role::Does(EXECUTE) },
    flags("-p --paginate -P --no-pager --bare --no-replace-objects --literal-pathspecs --glob-pathspecs"),
    flags("--noglob-pathspecs --icase-pathspecs --no-optional-locks --no-advice --version --html-path --man-path"),
    HELP,
])];

const SUBCOMMANDS: &[Spec] = &[
    READS,
    LOOKS,
    spec("grep").lenient().always(READS_HERE).options(SEARCHES).by(git_files::search),
    spec("interpret-trailers").lenient().each(READ).by(git_files::trailers).options(&[
        values("--trailer --where --if-exists --if-missing"),
        flags("--in-place --trim-empty --only-trailers --only-input --unfold --parse --no-divider"),
    ]),
    spec("notes").lenient().always(WRITES_HERE).options(&[
        does("-F --file", READ),
        values("-m --message -C --reuse-message -c --reedit-message --ref -s --strategy --separator"),
        flags("-f --force --allow-empty -v --verbose -q --quiet -n --dry-run --stdin --ignore-missing --commit --abort"),
    ]),
    spec("index-pack pack-objects").lenient().by(git_files::packs).options(&[
        does("-o", WRITE),
        values("--index-version --threads --max-input-size --window --depth --compression --max-pack-size --filter"),
        attached("--keep --strict --fsck-objects --promisor --rev-index"),
        flags("--stdin --fix-thin -v --verify -q --all --revs --stdout --local --progress --thin --delta-base-offset"),
    ]),
    spec("add stage").each(READ).always(WRITES_HERE).lenient().options(&[FILE_OF_PATHS, ADDS, values("--chmod")]),
    spec("rm").each(DELETE).by(remove).options(&[
        recursive("-r"),
        force("-f --force"),
        FILE_OF_PATHS,
        flag("-n --dry-run", Role::Dry),
        flags("--cached --ignore-unmatch -q --quiet --sparse"),
    ]),
    spec("mv").operands(Operands::Into { from: Act::All(&[READ, DELETE]), to: WRITE }).options(&[
        force("-f --force"),
        flag("-n --dry-run", Role::Dry),
        flags("-k -v --verbose --sparse"),
    ]),
    spec("commit").by(commit).options(&[
        MESSAGE,
        does("-F --file -t --template", READ),
        FILE_OF_PATHS,
        values("--fixup --squash"),
        attached("-S --gpg-sign -u --untracked-files"),
        flag("--dry-run", Role::Dry),
        flags("--amend --reset-author -a --all -p --patch -s --signoff --no-verify -n -q --quiet -v --verbose -e"),
        flags("--edit --allow-empty --allow-empty-message -i --include -o --only --short --branch --porcelain --long"),
        flags("-z --null --status --post-rewrite --pathspec-file-nul --verify"),
    ]),
    spec("checkout switch").by(checkout).options(&[
        values("-b -B -c -C --orphan --conflict --create --force-create"),
        attached("-t --track --recurse-submodules"),
        FILE_OF_PATHS,
        flags("-f --force --discard-changes -q --quiet -d --detach -m --merge -p --patch --ours --theirs -l --guess"),
        flags("--ignore-other-worktrees --overlay --progress --ignore-skip-worktree-bits --overwrite-ignore"),
    ]),
    spec("restore").by(restore).options(&[
        values("-s --source --conflict"),
        FILE_OF_PATHS,
        flags("-S --staged -W --worktree -p --patch -q --quiet --progress --ours --theirs -m --merge"),
        flags("--ignore-unmerged --overlay --recurse-submodules --ignore-skip-worktree-bits"),
    ]),
    spec("reset").by(reset).options(&[
        FILE_OF_PATHS,
        flags("--soft --mixed --hard --merge --keep -q --quiet -p --patch -N --intent-to-add"),
        attached("--recurse-submodules"),
    ]),
    spec("clean").by(clean).options(&[
        values("-e --exclude"),
        flag("-n --dry-run", Role::Dry),
        flags("-d -f --force -i --interactive -q --quiet -x -X"),
    ]),
    spec("stash").by(stash).lenient().options(&[MESSAGE, FILE_OF_PATHS, STASHES]),
    spec("merge cherry-pick revert").always(WRITES_HERE).options(&[
        MESSAGE,
        values("-s --strategy -X --strategy-option --into-name --mainline"),
        does("-F --file", READ),
        attached("-S --gpg-sign --log"),
        flags("--abort --continue --quit --skip --no-commit --commit -n --ff --no-ff --ff-only --squash -e --edit -q"),
        flags("--quiet -v --verbose --stat -x --signoff --allow-unrelated-histories --no-verify --verify --rerere-autoupdate"),
        flags("--allow-empty --keep-redundant-commits --autostash --progress --overwrite-ignore --verify-signatures"),
    ]),
    spec("rebase").options(&[
        does("-x --exec", Act::Script),
        values("--onto -s --strategy -X --strategy-option -C --whitespace"),
        attached("-S --gpg-sign -r --rebase-merges --empty"),
        flags("-i --interactive --abort --continue --skip --quit --edit-todo --show-current-patch --root --autosquash"),
        flags("--autostash -q --quiet -v --verbose --stat -n -f --force-rebase --no-ff --fork-point --keep-base -k"),
        flags("--update-refs --signoff --verify --ignore-date --committer-date-is-author-date -m --merge --reapply-cherry-picks"),
    ]).by(rebase),
    spec("push").by(push).options(&[
        force("-f --force --mirror --delete -d --prune"),
        Opt { names: "--force-with-lease", takes: Takes::Attached, role: Role::Marks(&["force"]) },
        does("--receive-pack --exec", Act::Script),
        value("--repo", Role::Nothing),
        values("-o --push-option"),
        attached("--signed --recurse-submodules"),
        flag("-n --dry-run", Role::Dry),
        flags("-u --set-upstream --all --branches --tags --follow-tags --porcelain -q --quiet -v --verbose --progress"),
        flags("--atomic --thin --verify --force-if-includes -4 --ipv4 -6 --ipv6"),
    ]),
    spec("fetch pull").always(WRITES_HERE).by(fetch).lenient().options(FETCHES),
    spec("ls-remote").by(|call, shell| {
        origin(call, 0, Read, shell);
        true
    }).lenient().options(&[does("--upload-pack --exec", Act::Script), values("-o --sort")]),
    spec("clone").by(clone).options(&[
        does("-u --upload-pack", Act::Script),
        does("-c --config", Act::By(git_config::assignment)),
        does("--template", EXECUTE),
        does("--reference --reference-if-able", READ),
        does("--separate-git-dir", WRITE),
        values("-b --branch -o --origin --depth --shallow-since --shallow-exclude -j --jobs --filter --server-option"),
        values("--revision --ref-format"),
        does("--bundle-uri", Act::Place(Read)),
        attached("--recurse-submodules --recursive"),
        flags("-l --local --no-hardlinks -s --shared -q --quiet -v --verbose --progress -n --no-checkout --bare"),
        flags("--mirror --dissociate --single-branch --no-single-branch --tags --no-tags --shallow-submodules --sparse"),
        flags("--remote-submodules --also-filter-submodules --reject-shallow -4 -6 --no-local"),
    ]),
    spec("branch").by(branch).lenient().options(&[
        values("-u --set-upstream-to --contains --no-contains --points-at --sort --format"),
        flags("-D -d --delete -f --force -m -M --move -c -C --copy -l --list -a --all -r --remotes -v -vv --show-current"),
        flags("--unset-upstream --edit-description --merged --no-merged -q --quiet -t --track"),
    ]),
    spec("tag").by(tag).lenient().options(&[
        values("-m --message -u --local-user --sort --format --contains --points-at --trailer"),
        does("-F --file", READ),
        flags("-d --delete -f --force -l --list -a --annotate -s --sign -v --verify"),
    ]),
    spec("remote").by(remote).lenient().options(&[values("-t --track -m --master"), flags("-f --fetch --push --delete --add -v --verbose")]),
    spec("config").by(git_config::config).options(&[
        values("--type --default --value --comment"),
        value("-f --file", Role::Nothing),
        does("--blob", Act::Text),
        flags("--global --system --local --worktree --get --get-all --get-regexp --get-urlmatch --list -l --unset"),
        flags("--unset-all --add --replace-all --remove-section --rename-section -e --edit --bool --int --path -z"),
        flags("--null --name-only --show-origin --show-scope --includes --bool-or-int --expiry-date --all --fixed-value"),
        flags("--regexp --append --show-names --url --get-color --get-colorbool"),
    ]),
    spec("init").by(init).options(&[
        does("--template", EXECUTE),
        does("--separate-git-dir", WRITE),
        values("-b --initial-branch --object-format --ref-format"),
        attached("--shared"),
        flags("-q --quiet --bare"),
    ]),
    spec("apply am").each(READ).always(WRITES_HERE).lenient().options(&[
        values("-p -C --whitespace --exclude --include --patch-format"),
        value("--directory", Role::Nothing),
        flag("--unsafe-paths", Role::Also(&[(Act::Tree(Write), "/")])),
        flag("--check --stat --numstat --summary", Role::Dry),
    ]),
    spec("archive").options(&[
        does("-o --output", WRITE),
        does("--remote", Act::Repository(Read)),
        does("--exec", Act::Script),
        values("--format --prefix --mtime --add-virtual-file"),
        does("--add-file", READ),
        flags("-l --list -v --verbose -9 --worktree-attributes"),
    ]).always(READS_HERE),
    spec("format-patch").always(READS_HERE).lenient().options(&[
        does("-o --output-directory", WRITE),
        flags("--stdout"),
    ]).by(|call, shell| {
        if !call.has_any(&["-o", "--output-directory", "--stdout"]) {
            call.act(WRITE, &call.literal("."), shell);
        }
        true
    }),
    spec("bundle").operands(Operands::First(Act::Text, &Operands::First(Act::All(&[READ, WRITE]), &Operands::Each(Act::Text)))).lenient(),
    spec("worktree").by(worktree).lenient().options(&[
        values("-b -B --reason --expire"),
        force("-f --force"),
        flags("-q --quiet -d --detach --track --checkout --lock --guess-remote --orphan -v --verbose --porcelain -z"),
        flag("-n --dry-run", Role::Dry),
    ]),
    spec("submodule").by(submodule).lenient().always(WRITES_HERE).options(&[
        values("-b --branch --name --reference --depth -j --jobs"),
        force("-f --force"),
    ]),
    spec("filter-branch filter-repo").options(&[
        does("--env-filter --tree-filter --index-filter --parent-filter --msg-filter --commit-filter", Act::Script),
        does("--tag-name-filter --setup", Act::Script),
        does("--replace-text --paths-from-file --mailmap --replace-message", READ),
        does("--blob-callback --commit-callback --filename-callback --message-callback --name-callback", Act::Code("python")),
        does("--email-callback --refname-callback --tag-callback --reset-callback", Act::Code("python")),
        values("--path --path-glob --path-regex --subdirectory-filter --original -d --state-branch --refs"),
        flags("-f --force --prune-empty --invert-paths --analyze --all"),
    ]).by(|call, shell| {
        call.act_plainly(Act::Path(Write), &call.literal("."), &["force", "history", "recursive"], shell);
        true
    }),
    spec("gc prune reflog update-ref symbolic-ref replace pack-refs repack maintenance prune-packed rerere read-tree write-tree commit-tree update-index hash-object mktag mktree sparse-checkout checkout-index unpack-objects multi-pack-index commit-graph update-server-info")
        .lenient()
        .by(plumbing)
        .options(&[
            flag("-d --delete --prune --expire", REWRITES),
            does("--prefix --index-output", WRITE),
            does("-F", READ),
            values("-n -m --message"),
            flags("-w --stdin --stdin-paths --all --show -q --quiet --auto --aggressive --stale-fix"),
        ]),
    spec("bisect").by(bisect).stops().always(WRITES_HERE),
    spec("difftool mergetool").lenient().always(WRITES_HERE).options(&[
        does("-x --extcmd", Act::Script),
        values("-t --tool"),
    ]).by(|call, _| call.has_any(&["-x", "--extcmd"])),
    spec("send-email").by(|call, shell| {
        call.act_on_each(Act::Named(Send, portcullis_core::effect::ResourceKind::Recipient, ""), &call.values(&["--to", "--cc", "--bcc"]), shell);
        call.act_on_each(Act::Upload, &call.operands, shell);
        true
    }).options(&[
        values("--to --cc --bcc --from --subject --in-reply-to --reply-to --envelope-sender --smtp-server-port"),
        values("--smtp-user --smtp-pass --smtp-encryption --confirm --suppress-cc --batch-size --relogin-delay"),
        does("--smtp-server", Act::Host(Send)),
        does("--sendmail-cmd --to-cmd --cc-cmd --header-cmd", Act::Script),
        flags("--annotate --compose --dry-run --force --quiet --validate --thread --no-validate"),
    ]),
    spec("credential").each(Act::Secret(Read, "credentials/git ")),
    spec("lfs").lenient().by(|call, shell| {
        match call.operand(0) {
            "push" => origin(call, 1, Send, shell),
            "pull" | "fetch" | "clone" => {
                origin(call, 1, Read, shell);
                call.act(WRITE, &call.literal("."), shell);
            }
            "ls-files" | "status" | "env" | "logs" | "version" => call.act(READ, &call.literal("."), shell),
            _ => call.act(WRITE, &call.literal("."), shell),
        }
        true
    }),
];

/// An effect on a repository, and on the host or folder that it is kept on.
pub(super) fn repository(
    verb: Verb,
    call: &Parsed<'_>,
    word: &Word,
    attributes: &[&'static str],
    shell: &mut Interpreter<'_, '_>,
) {
    let text = words::text(word);
    // A transport that is a command.
    if let Some(command) = words::strip(word, "ext::") {
        shell.script(&command);
    }
    call.act_plainly(Act::Named(verb, Repository, ""), word, attributes, shell);
    if text.contains("://") {
        let url = words::strip(word, "git+").unwrap_or_else(|| word.clone());
        call.act_plainly(Act::Place(verb), &url, attributes, shell);
    } else if text.starts_with(['/', '.', '~']) {
        call.act_plainly(Act::Path(verb), word, attributes, shell);
    } else if let Some((host, _)) = network::on_host(word).filter(|_| !text.contains("::")) {
        call.act_plainly(Act::Host(verb), &words::prefixed("ssh://", &host), attributes, shell);
    }
}

/// The remote at that operand, else the usual one.
fn origin(call: &Parsed<'_>, at: usize, verb: Verb, shell: &mut Interpreter<'_, '_>) {
    let remote = call.operands.get(at).cloned().unwrap_or_else(|| call.literal("origin"));
    call.act(Act::Repository(verb), &remote, shell);
}

fn here(call: &Parsed<'_>, verb: Verb, marks: &[&'static str], shell: &mut Interpreter<'_, '_>) {
    call.act_plainly(Act::Path(verb), &call.literal("."), marks, shell);
}

/// What is shown of files.
fn shows(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    git_files::contents(call, shell);
    git_files::compared(call, shell);
    true
}

fn remove(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    here(call, Write, &[], shell);
    true
}

fn commit(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    here(call, Write, if call.has("--amend") { &["history"] } else { &[] }, shell);
    true
}

fn rebase(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    here(call, Write, &["history"], shell);
    true
}

/// `git checkout BRANCH` changes files; `git checkout [TREE] -- PATH` throws away what is not committed.
fn checkout(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let forced = call.has_any(&["-f", "--force", "--discard-changes"]);
    let resets = call.has_any(&["-B", "-C", "--force-create"]);
    let creates = resets || call.has_any(&["-b", "-c", "--orphan", "--create"]);
    let from = match call.dashes {
        Some(dashes) => dashes,
        // Without dashes only what looks like a path is one.
        None if call.subcommand == "switch" || creates => call.operands.len(),
        None => call
            .operands
            .iter()
            .position(|word| looks_like_path(words::text(word)))
            .unwrap_or(call.operands.len().min(1)),
    };
    let paths = call.rest(from);
    for path in paths {
        call.act_plainly(Act::Path(Delete), path, &["force"], shell);
    }
    if paths.is_empty() {
        let verb = if forced { Delete } else { Write };
        let marks: &[&'static str] = match (forced, resets) {
            (true, _) => &["force", "recursive"],
            (_, true) => &["history"],
            _ => &[],
        };
        here(call, verb, marks, shell);
    }
    true
}

fn looks_like_path(text: &str) -> bool {
    text.starts_with(['.', '/', '~', ':', '*']) && text != "..." || text.ends_with('/')
}

fn restore(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    if call.has_any(&["-S", "--staged"]) && !call.has_any(&["-W", "--worktree"]) {
        here(call, Write, &[], shell);
    } else {
        for path in &call.operands {
            call.act_plainly(Act::Path(Delete), path, &["force"], shell);
        }
        if call.operands.is_empty() {
            here(call, Delete, &["force", "recursive"], shell);
        }
    }
    true
}

fn reset(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let moves = !matches!(call.operand(0), "" | "HEAD" | "@") && call.dashes != Some(0);
    if call.has_any(&["--hard", "--merge", "--keep"]) {
        let marks: &[&'static str] =
            if moves { &["force", "history", "recursive"] } else { &["force", "recursive"] };
        here(call, Delete, marks, shell);
    } else {
        let moves = moves && (call.has("--soft") || call.has("--mixed") || call.operands.len() == 1);
        here(call, Write, if moves { &["history"] } else { &[] }, shell);
    }
    true
}

fn clean(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let mut marks = if call.is_dry() { vec![] } else { vec!["force"] };
    if call.has("-d") {
        marks.push("recursive");
    }
    if call.operands.is_empty() {
        here(call, Delete, &marks, shell);
    }
    for path in &call.operands {
        call.act_plainly(Act::Path(Delete), path, &marks, shell);
    }
    true
}

fn stash(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    if matches!(call.operand(0), "drop" | "clear") {
        here(call, Delete, &["force", "history"], shell);
    } else {
        here(call, if matches!(call.operand(0), "list" | "show") { Read } else { Write }, &[], shell);
    }
    true
}

fn push(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let refs = call.rest(1);
    let rewrites = |word: &Word| words::text(word).starts_with(['+', ':']);
    let forced = call.any_role(|role| matches!(role, Role::Marks(_))) || refs.iter().any(rewrites);
    let remote = call.values(&["--repo"]).pop().filter(|_| call.operands.is_empty());
    let remote = remote.or_else(|| call.operands.first().cloned()).unwrap_or_else(|| call.literal("origin"));
    let marks: &[&'static str] = if forced { &["force", "history"] } else { &[] };
    call.act_plainly(Act::Upload, &call.literal("."), &[], shell);
    repository(call.verb(Send), call, &remote, marks, shell);
    true
}

fn fetch(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    if call.call.args.iter().any(|arg| words::text(arg) == "--multiple") {
        call.act_on_each(Act::Repository(Read), &call.operands, shell);
    } else {
        origin(call, 0, Read, shell);
    }
    true
}

fn clone(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let Some(source) = call.operands.first() else { return true };
    call.act(Act::Repository(Read), source, shell);
    let name = words::file_name(source);
    let name = words::part(&name, words::text(&name).trim_end_matches(".git"));
    call.act(WRITE, call.operands.get(1).unwrap_or(&name), shell);
    true
}

fn branch(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let forced = call.has_any(&["-f", "--force"]);
    // Commits that nothing else holds go with the branch; without force git would refuse.
    let drops = call.has("-D") || forced && call.has_any(&["-d", "--delete"]);
    let moves = forced || call.has_any(&["-M", "-C"]);
    let changes =
        call.has_any(&["-d", "--delete", "-m", "--move", "-c", "--copy", "-u", "--set-upstream-to"])
            || call.has_any(&["--unset-upstream", "--edit-description"])
            || !call.operands.is_empty()
                && !call.has_any(&["-l", "--list", "-a", "--all", "-r", "--remotes", "--contains"]);
    if drops {
        here(call, Delete, &["force", "history"], shell);
    } else if moves {
        here(call, Write, &["force", "history"], shell);
    } else {
        here(call, if changes { Write } else { Read }, &[], shell);
    }
    true
}

fn tag(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    if call.has_any(&["-d", "--delete", "-f", "--force"]) {
        here(call, Write, &["force", "history"], shell);
    } else {
        let lists = call.operands.is_empty() || call.has_any(&["-l", "--list", "-v", "--verify"]);
        here(call, if lists { Read } else { Write }, &[], shell);
    }
    true
}

fn remote(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let name = call.operands.get(1).map_or_else(|| call.literal("origin"), Clone::clone);
    match call.operand(0) {
        "" | "get-url" => here(call, Read, &[], shell),
        "show" => call.act(Act::Repository(Read), &name, shell),
        "update" | "prune" => {
            call.act(Act::Repository(Read), &name, shell);
            here(call, Write, &[], shell);
        }
        "add" | "set-url" | "rename" | "remove" | "rm" | "set-head" | "set-branches" => {
            call.act(Act::Named(Configure, Setting, "git/remote."), &name, shell);
            here(call, Write, &[], shell);
            if call.has_any(&["-f", "--fetch"])
                && let Some(url) = call.operands.get(2)
            {
                call.act(Act::Repository(Read), url, shell);
            }
        }
        _ => return false,
    }
    true
}

fn init(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    call.act(WRITE, &call.operands.first().cloned().unwrap_or_else(|| call.literal(".")), shell);
    true
}

fn worktree(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    match call.operand(0) {
        "add" => call.act_on_each(WRITE, call.rest(1).get(..1).unwrap_or_default(), shell),
        "remove" => call.act_on_each(Act::Tree(Delete), call.rest(1), shell),
        "move" => {
            call.act_on_each(Act::All(&[READ, DELETE]), call.rest(1).get(..1).unwrap_or_default(), shell);
            call.act_on_each(WRITE, call.rest(2), shell);
        }
        "list" | "" => here(call, Read, &[], shell),
        "prune" | "lock" | "unlock" | "repair" => {}
        _ => return false,
    }
    here(call, Write, &[], shell);
    true
}

fn submodule(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    match call.operand(0) {
        "foreach" => match call.rest(1) {
            [script] => shell.script(script),
            command => shell.run(command, call.call.range.clone()),
        },
        "add" => {
            if let Some(url) = call.operands.get(1) {
                call.act(Act::Repository(Read), url, shell);
            }
        }
        "update" => call.act(Act::Repository(Read), &call.literal("submodules"), shell),
        "deinit" => call.act_on_each(Act::Tree(Delete), call.rest(1), shell),
        "" | "status" | "summary" | "init" | "sync" | "set-url" | "set-branch" | "absorbgitdirs" => {}
        _ => return false,
    }
    true
}

fn plumbing(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let drops = call.any_role(|role| matches!(role, Role::Marks(_)))
        || matches!(call.operand(0), "expire" | "delete" | "remove" | "prune")
        || matches!(call.subcommand.as_str(), "update-ref" | "replace" | "prune");
    let reads = call.subcommand == "reflog" && matches!(call.operand(0), "" | "show" | "exists" | "list");
    // The last record of commits that no branch holds, and then the commits themselves.
    let forgets = match call.subcommand.as_str() {
        "reflog" => matches!(call.operand(0), "expire" | "delete" | "drop"),
        "gc" => call.any_role(|role| matches!(role, Role::Marks(_))),
        "update-ref" => call.has("-d") || call.call.args.iter().any(|arg| words::text(arg) == "--stdin"),
        "prune" => true,
        _ => false,
    } && !call.call.args.iter().any(|arg| matches!(words::text(arg), "-n" | "--dry-run"));
    match (drops || forgets, reads) {
        _ if forgets => here(call, Delete, &["force", "history"], shell),
        (true, _) => here(call, Write, &["force", "history"], shell),
        (_, true) => here(call, Read, &[], shell),
        _ => here(call, Write, &[], shell),
    }
    if call.subcommand == "maintenance"
        && matches!(call.operand(0), "start" | "stop" | "register" | "unregister")
    {
        // It is put among what the system runs by itself, and into the user's settings.
        call.act(Act::Named(Configure, Setting, "service/"), &call.literal("git-maintenance"), shell);
        call.act(WRITE, &call.literal("~/.gitconfig"), shell);
    }
    if call.subcommand == "hash-object" {
        call.act_on_each(READ, &call.operands, shell);
        if call.has("--stdin-paths") {
            lists::of_input(Read, &[], &call.call.range, shell);
        }
    }
    true
}

fn bisect(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    if call.operand(0) == "run" {
        shell.run(call.rest(1), call.call.range.clone());
    }
    true
}
