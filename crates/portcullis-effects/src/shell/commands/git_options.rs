//! Options of `git` that belong to several of its subcommands, or that only say how much is shown.

use super::spec::*;

/// Options that choose and show commits.
pub(super) const SHOWS: &[Opt] = &[
    does("--output", WRITE),
    does("-O --contents --ignore-revs-file", READ),
    values(
        "-n --max-count --skip --since --after --until --before --author --committer --grep -S -G -L --format",
    ),
    values("--date --diff-filter --inter-hunk-context --encoding --max-parents --min-parents -U"),
    flag("--ext-diff --textconv --no-index", Role::Nothing),
    attached(
        "--pretty --stat --color --abbrev --decorate -M -C -B --word-diff --submodule --ignore-submodules",
    ),
    flags("-s --short -b --branch --show-stash --porcelain --long -v --verbose -z -p --patch -u --no-patch"),
    flags("--raw --name-only --name-status --numstat --shortstat --summary --dirstat --patch-with-stat"),
    flags("--oneline --graph --all --branches --tags --remotes --merges --no-merges --first-parent"),
    flags("--reverse --topo-order --date-order --follow --full-diff --cached --staged --merge-base --quiet"),
    flags("-q --exit-code --check -w --ignore-all-space -a --text -R --binary --ignore-space-change"),
    flags("--ignore-blank-lines --minimal --patience --histogram --full-index --no-renames --relative -t"),
    flags("-l -c --cc -e --email --numbered --always --dirty --contains --no-color --no-decorate --source"),
    flags("-i --show-email --show-name --show-number --root --incremental --line-porcelain --no-ext-diff"),
    flags("--no-textconv"),
];

/// Options of subcommands that look something up.
pub(super) const LOOKS_AT: &[Opt] = &[
    values("-n --max-count --skip --since --until --author --grep --format --sort --points-at"),
    attached("--abbrev --abbrev-commit --short --contains --count --merged --no-merged"),
    flags("--abbrev-ref --show-toplevel --show-prefix --show-cdup --show-superproject-working-tree"),
    flags("--verify -q --quiet --git-dir --git-common-dir --absolute-git-dir --is-inside-work-tree"),
    flags("--is-inside-git-dir --is-bare-repository --is-shallow-repository --symbolic-full-name"),
    flags("--symbolic --all --branches --tags --remotes --heads --head --others -o --exclude-standard -m"),
    flags("--modified --deleted -d -s --stage -c --cached -i --ignored -k --killed -u --unmerged -z -t -v"),
    flags("-r --name-only --name-status --full-name --error-unmatch -l --long --is-ancestor -p -e --batch"),
    flags("--batch-check --octopus --independent --fork-point --reverse --left-right --cherry-pick"),
    flags("--first-parent --merges --no-merges --objects --oneline --full --strict --lost-found"),
    flags("--no-dangling --dangling --no-reflogs -H --human-readable"),
];

/// Options of `git add`.
pub(super) const ADDS: Opt = flags(
    "-A --all -u --update -v --verbose -f --force -p --patch -N --intent-to-add --refresh --renormalize --sparse",
);

/// Options of `git fetch` and `git pull`.
pub(super) const FETCHES: &[Opt] = &[
    does("--upload-pack", Act::Script),
    values("--depth --deepen --shallow-since --shallow-exclude -j --jobs -o --server-option --refmap -s -X"),
    values("--strategy --strategy-option --negotiation-tip --filter"),
    attached("-r --rebase -S --gpg-sign --recurse-submodules"),
    flags("--all -a --append -p --prune -P --prune-tags -t --tags --no-tags -n -f --force -k --keep -q"),
    flags("--quiet -v --verbose --progress --unshallow --update-shallow --atomic --ff --ff-only --no-ff"),
    flags("--autostash --no-rebase --squash --commit --no-commit --multiple -4 --ipv4 -6 --ipv6 --stat"),
    flags("--set-upstream -u --update-head-ok --dry-run"),
];

/// Options of `git stash`.
pub(super) const STASHES: Opt =
    flags("-u --include-untracked -k --keep-index -a --all -q --quiet -p --patch -S --staged --index --stat");

/// Options of `git grep`.
pub(super) const SEARCHES: &[Opt] = &[
    Opt { names: "-O --open-files-in-pager", takes: Takes::Attached, role: Role::Does(Act::Script) },
    values("-e -A --after-context -B --before-context -C --context -m --max-count --max-depth --threads"),
    does("-f", READ),
    attached("--color"),
    flags(
        "--no-index --untracked --cached --exclude-standard --recurse-submodules -n --line-number -i --ignore-case",
    ),
    flags("-w --word-regexp -v --invert-match -h -H --full-name -E --extended-regexp -G --basic-regexp -P"),
    flags(
        "--perl-regexp -F --fixed-strings -l --files-with-matches --name-only -L --files-without-match -z --null -o",
    ),
    flags(
        "--only-matching -c --count --break --heading -p --show-function -W --function-context --and --or --not",
    ),
    flags("--all-match -q --quiet -a --text -I --textconv -r --recursive --column"),
];
