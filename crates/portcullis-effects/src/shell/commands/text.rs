//! Programs that search and transform text.

use portcullis_core::effect::Verb::{Read, Write};

use super::super::interpreter::Interpreter;
use super::super::word::Word;
use super::options::Parsed;
use super::spec::*;
use super::{awk, sed, words};

const FILES: Operands = Operands::Each(READ);
const AFTER_PATTERN: Operands = Operands::First(Act::Text, &FILES);
/// What is named is searched with all that is below it.
const BELOW: Operands = Operands::Each(Act::By(search));
const AFTER_PATTERN_BELOW: Operands = Operands::First(Act::Text, &BELOW);
/// With a pattern given by option, all operands are files.
const PATTERN: Opt = value("-e --regexp", Role::Operands(FILES, Act::Text));
const PATTERNS: Opt = value("-f --file", Role::Operands(FILES, READ));

pub(super) const SPECS: &[Spec] = &[
    spec("grep egrep fgrep zgrep zegrep zfgrep bzgrep xzgrep ggrep").operands(AFTER_PATTERN).by(searched).lenient().options(&[
        PATTERN,
        PATTERNS,
        does("--exclude-from", READ),
        values("-A --after-context -B --before-context -C --context -m --max-count --label -D --devices -d"),
        values("--directories --binary-files --include --exclude --exclude-dir --group-separator"),
        attached("--color --colour"),
        recursive("-r -R --recursive --dereference-recursive"),
        flags("-E --extended-regexp -F --fixed-strings -G --basic-regexp -P --perl-regexp -i -y --ignore-case"),
        flags("--no-ignore-case -v --invert-match -w --word-regexp -x --line-regexp -c --count -L"),
        flags("--files-without-match -l --files-with-matches -o --only-matching -q --quiet --silent -s"),
        flags("--no-messages -b --byte-offset -H --with-filename -h --no-filename -n --line-number -T --initial-tab"),
        flags("-Z --null -a --text -I -U --binary -z --null-data --line-buffered"),
    ]),
    spec("rg ripgrep").operands(AFTER_PATTERN_BELOW).by(searched).lenient().options(&[
        value("-e --regexp", Role::Operands(BELOW, Act::Text)),
        value("-f --file", Role::Operands(BELOW, READ)),
        flag("--files --type-list", Role::Operands(BELOW, Act::Text)),
        does("--ignore-file", READ),
        does("--pre --hostname-bin", Act::Script),
        values("-A --after-context -B --before-context -C --context -m --max-count -g --glob --iglob -t --type -T"),
        values("--type-not --type-add --type-clear -M --max-columns -j --threads -E --encoding --engine -r --replace"),
        values("--sort --sortr --color --colors --context-separator --field-match-separator --max-depth -d"),
        values("--max-filesize --dfa-size-limit --regex-size-limit --path-separator --pre-glob --hyperlink-format"),
        values("--field-context-separator --generate"),
        flags("-i --ignore-case -S --smart-case -s --case-sensitive -v --invert-match -w --word-regexp -x"),
        flags("--line-regexp -c --count --count-matches -l --files-with-matches --files-without-match -o"),
        flags("--only-matching -q --quiet -n --line-number -N --no-line-number -H --with-filename -I --no-filename"),
        flags("-F --fixed-strings -P --pcre2 -U --multiline --multiline-dotall -. --hidden -u --unrestricted"),
        flags("--no-ignore --no-ignore-vcs -L --follow -a --text -0 --null --json -p --pretty --heading"),
        flags("--no-heading --vimgrep --column --stats --trim --passthru --passthrough -z --search-zip"),
        flags("--one-file-system --crlf --no-messages --debug --block-buffered --line-buffered --null-data"),
        flags("--auto-hybrid-regex --no-config"),
    ]),
    spec("ag ack").operands(AFTER_PATTERN_BELOW).by(searched).lenient().options(&[
        does("--pager", Act::Script),
        does("-p --path-to-ignore --ackrc", READ),
        value("-g", Role::Operands(BELOW, Act::Text)),
        values("-A --after -B --before -C --context -G --file-search-regex --ignore --ignore-dir --depth -m --max-count"),
        values("-W --width --type"),
        flag("-f", Role::Operands(BELOW, Act::Text)),
        value("--match", Role::Operands(BELOW, Act::Text)),
    ]),
    spec("sed gsed").by(sed::model).options(&[
        attached("-i --in-place -I"),
        values("-e --expression -f --file -l --line-length"),
        flags("-n --quiet --silent -E -r --regexp-extended -s --separate -u --unbuffered -z --null-data --debug"),
        flags("--posix --sandbox --follow-symlinks -b --binary -a --help --version"),
    ]),
    spec("awk gawk mawk nawk").by(awk::model).stops().options(&[
        values("-F --field-separator -v --assign -f --file -e --source -E --exec -i --include -l --load -W"),
        attached("-d --dump-variables -o --pretty-print -p --profile -D --debug -L --lint"),
        flags("-b -c -C -g -h -k -M -n -N -O -P -r -s -S -t -V -I --csv --traditional --posix --re-interval --sandbox"),
        flags("--characters-as-bytes --optimize --no-optimize --bignum --lint-old --version --help --use-lc-numeric"),
    ]),
    spec("jq jaq gojq").operands(AFTER_PATTERN).by(environment).options(&[
        value("-f --from-file", Role::Operands(FILES, READ)),
        values("-L --library-path --indent"),
        pair("--arg --argjson", Act::Text),
        pair("--slurpfile --rawfile --argfile", READ),
        flag("--args --jsonargs", Role::Operands(Operands::Each(Act::Text), Act::Text)),
        flags("-c --compact-output -r --raw-output -R --raw-input -s --slurp -S --sort-keys -n --null-input -e"),
        flags("--exit-status -j --join-output -a --ascii-output -C --color-output -M --monochrome-output --tab"),
        flags("--unbuffered --stream --stream-errors --seq -h --help -V --version --raw-output0 -b --binary"),
    ]),
    spec("yq").by(yq).options(&[
        flags("-i --inplace -n --null-input -P --prettyPrint -r --unwrapScalar -C --colors -M --no-colors -e -v"),
        flags("--exit-status -N --no-doc -j --tojson --verbose -y --yaml-output -Y -c -s --slurp -S -R --raw-input"),
        does("--from-file --front-matter-file", READ),
        values("-o --output-format -p --input-format -I --indent --xml-attribute-prefix -f --front-matter --split-exp"),
        values("--header-preprocess --csv-separator --expression"),
        pair("--arg --argjson", Act::Text),
        pair("--slurpfile --rawfile", READ),
    ]),
    spec("perl-rename rename prename").operands(Operands::First(Act::Code("perl"), &Operands::Each(Act::All(&[READ, DELETE, WRITE])))).lenient(),
    spec("patch").by(patch).options(&[
        does("-o --output -r --reject-file", WRITE),
        does("-i --input", READ),
        value("-d --directory", Role::Base),
        values("-p --strip -B --prefix -D --ifdef -F --fuzz -g --get -Y --basename-prefix -z --suffix -V"),
        values("--version-control --read-only --reject-format --quoting-style"),
        flag("--dry-run", Role::Dry),
        flags("-b --backup -c --context -e --ed -E --remove-empty-files -f --force -l --ignore-whitespace -n -N -R"),
        flags("--forward -s --quiet --silent -t --batch -u --unified -v --verbose --binary --posix --merge --reverse"),
    ]),
];

/// With `-r` or by nature a search without files is one of the working directory.
fn searched(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let by_nature = matches!(call.call.program, "rg" | "ripgrep" | "ag" | "ack");
    let deep = call.any_role(|role| matches!(role, Role::Marks(_)));
    let given = call.any_role(|role| matches!(role, Role::Operands(..)));
    let files = if given { call.operands.len() } else { call.operands.len().saturating_sub(1) };
    let piped = !matches!(call.call.stdin, super::super::interpreter::Stdin::None);
    if files == 0 && (deep || by_nature && !piped) && !call.has("--type-list") {
        call.act(if by_nature { Act::Tree(Read) } else { READ }, &call.literal("."), shell);
    }
    true
}

/// A file, or a folder with what is below it. A name that ends like that of a file is taken for one.
fn search(word: &Word, shell: &mut Interpreter<'_, '_>) {
    let text = words::text(word);
    if matches!(text, "-" | "") {
        return;
    }
    let name = text.rsplit('/').next().unwrap_or_default();
    let ends = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map_or("", |(_, end)| end);
    let is_file = (1..=5).contains(&ends.len()) && ends != "d" && ends.chars().all(char::is_alphanumeric);
    shell.path_with(Read, word, if is_file { &[] } else { &["recursive"] });
}

/// A filter can read the environment.
fn environment(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let reads = |word: &&Word| {
        let text = words::text(word);
        text.contains("$ENV") || text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|t| t == "env")
    };
    if call.operands.iter().take(1).any(|word| reads(&word)) {
        call.act(Act::Environment(Read), &call.literal("*"), shell);
    }
    true
}

/// `yq [eval] EXPRESSION FILE…`; with `-i` the files are changed.
fn yq(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let skip = usize::from(matches!(call.operand(0), "eval" | "e" | "eval-all" | "ea"));
    let expression = call.rest(skip).first();
    let text = expression.map_or("", words::text);
    if text.contains("env") || text.contains("$ENV") {
        call.act(Act::Environment(Read), &call.literal("*"), shell);
    }
    if text.contains("load") {
        let file = expression
            .map_or_else(|| Word::unknown(call.call.range.clone()), |word| Word::unknown(word.range.clone()));
        call.act(READ, &file, shell);
    }
    let in_place = call.has_any(&["-i", "--inplace"]);
    let files = call.rest(skip + 1);
    call.act_on_each(READ, files, shell);
    if in_place {
        call.act_on_each(WRITE, files, shell);
    }
    if call.has("--split-exp") {
        call.act(WRITE, &call.literal("."), shell);
    }
    // The expression may be left out.
    if files.is_empty()
        && let Some(only) = expression
        && words::text(only).ends_with(".yml")
            | words::text(only).ends_with(".yaml")
            | words::text(only).ends_with(".json")
    {
        call.act(READ, only, shell);
    }
    true
}

/// `patch [FILE [PATCH]]`; without a file the patch says what is changed.
fn patch(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    match call.operands.first() {
        Some(file) => call.act(Act::All(&[READ, WRITE]), file, shell),
        None => call.act(Act::Tree(Write), &call.literal("."), shell),
    }
    call.act_on_each(READ, call.rest(1), shell);
    true
}
