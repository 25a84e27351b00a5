//! Programs that make, copy, show and remove files.

use portcullis_core::effect::Verb::{Configure, Delete, Read};

use super::super::interpreter::{Interpreter, Printed};
use super::super::word::Word;
use super::options::Parsed;
use super::spec::*;
use super::{lists, words};

const COPY: Operands = Operands::Into { from: READ, to: WRITE };
const MOVE: Operands = Operands::Into { from: Act::All(&[READ, DELETE]), to: WRITE };
const READS: Operands = Operands::EachOr(READ, ".");
/// A mode, owner or similar, then paths whose permissions are changed.
const AFTER_MODE: Operands = Operands::First(Act::Text, &Operands::Each(CONFIGURE));
const CONFIGURE: Act = Act::Path(Configure);
/// The mode is that of another file.
const LIKE: Opt = value("--reference", Role::Operands(Operands::Each(CONFIGURE), Act::Text));

pub(super) const SPECS: &[Spec] = &[
    spec("rm").each(DELETE).options(&[
        recursive("-r -R --recursive"),
        force("-f --force --no-preserve-root -P -W"),
        flags("-d --dir -v --verbose -i -I -x --one-file-system --preserve-root"),
        attached("--interactive"),
    ]),
    spec("rmdir").each(DELETE).lenient().options(&[recursive("-p --parents")]),
    spec("unlink").each(DELETE),
    spec("rimraf del-cli").each(Act::Tree(Delete)).lenient(),
    spec("trash trash-put").each(DELETE).lenient(),
    spec("shred").each(DELETE).options(&[
        flags("-u -z --zero -v --verbose -x --exact"),
        attached("--remove"),
        force("-f --force"),
        values("-n --iterations -s --size"),
        does("--random-source", READ),
    ]),
    spec("truncate").by(truncate).options(&[
        values("-s --size"),
        does("-r --reference", READ),
        flags("-c --no-create -o --io-blocks"),
    ]),
    spec("cp gcp").operands(COPY).by(empties).options(&[
        recursive("-r -R -a --recursive --archive"),
        force("-f --force --remove-destination"),
        value("-t --target-directory", Role::Target),
        values("-S --suffix --no-preserve --sparse"),
        attached("--backup --preserve --reflink --update --context"),
        flags("-b -d -H -i -l -L -n -p -P -s -T -u -v -x -X -c -Z --interactive --link --dereference --no-clobber"),
        flags("--no-dereference --no-target-directory --verbose --parents --symbolic-link --one-file-system"),
        flags("--copy-contents --attributes-only --strip-trailing-slashes --keep-directory-symlink --debug"),
    ]),
    spec("mv gmv").operands(MOVE).options(&[
        force("-f --force"),
        value("-t --target-directory", Role::Target),
        values("-S --suffix"),
        attached("--backup --update"),
        flags("-b -h -i -n -u -v -T -Z --interactive --no-clobber --verbose --no-target-directory"),
        flags("--strip-trailing-slashes --no-copy --exchange --debug --context"),
    ]),
    spec("install").by(install).options(&[
        flag("-d --directory", Role::Operands(Operands::Each(WRITE), Act::Text)),
        value("-t --target-directory", Role::Target),
        values("-m --mode -o --owner -g --group -S --suffix"),
        does("--strip-program", EXECUTE),
        attached("--backup --context"),
        flags("-b -c -C -D -p -s -T -v --compare --preserve-timestamps --strip --no-target-directory --verbose"),
    ]),
    spec("ln link").by(link).options(&[
        force("-f --force"),
        value("-t --target-directory", Role::Target),
        values("-S --suffix"),
        attached("--backup"),
        flags("-b -d -F -h -i -L -n -P -r -s -T -v -w --directory --interactive --logical --no-dereference"),
        flags("--physical --relative --symbolic --no-target-directory --verbose"),
    ]),
    spec("mkdir").each(WRITE).lenient().options(&[values("-m --mode"),
        flags("-p --parents -v --verbose"),
    ]),
    spec("mkfifo mknod").operands(Operands::First(WRITE, &Operands::Each(Act::Text))).lenient().options(&[values("-m --mode")]),
    spec("touch").each(WRITE).lenient().options(&[values("-d --date -t --time -A"), does("-r --reference", READ),
        flags("-a -c --no-create -h --no-dereference -m"),
    ]),
    spec("tee sponge").each(WRITE).lenient().options(&[
        flags("-a --append -i --ignore-interrupts"),
    ]),
    spec("dd").by(dd),
    spec("mktemp").by(make_temporary).options(&[
        flags("-d --directory -u --dry-run -q --quiet -t"),
        attached("--tmpdir"),
        values("-p --suffix"),
    ]),
    spec("split csplit").by(split).options(&[
        values("-a --suffix-length -b --bytes -C --line-bytes -l --lines -n --number -t --separator -f --prefix"),
        values("--additional-suffix --suffix-format"),
        attached("--numeric-suffixes --hex-suffixes"),
        does("--filter", Act::Script),
        flags("-d -x -e -u -k -s -q -z --elide-empty-files --unbuffered --verbose --keep-files --quiet --silent"),
    ]),
    spec("chmod").operands(AFTER_MODE).by(mode_with_dash).lenient().options(&[recursive("-R --recursive"), LIKE,
        flags("-c --changes -f --silent --quiet -v --verbose"),
    ]),
    spec("chown chgrp").operands(AFTER_MODE).lenient().options(&[recursive("-R --recursive"), LIKE, values("--from")]),
    spec("chattr").by(chattr).lenient().options(&[recursive("-R --recursive"), values("-v -p")]),
    spec("chflags").operands(AFTER_MODE).lenient().options(&[recursive("-R")]),
    spec("chcon").operands(AFTER_MODE).lenient().options(&[
        recursive("-R --recursive"),
        LIKE,
        value("-u --user -r --role -t --type -l --range", Role::Operands(Operands::Each(CONFIGURE), Act::Text)),
    ]),
    spec("setfacl").each(CONFIGURE).lenient().options(&[
        recursive("-R --recursive"),
        values("-m --modify -x --remove"),
        does("-M --modify-file -X --remove-file --restore", READ),
    ]),
    spec("setfattr").each(CONFIGURE).lenient().options(&[values("-n --name -v --value -x --remove"), does("--restore", READ)]),
    spec("xattr").each(CONFIGURE).lenient().options(&[recursive("-r")]),
    // Programs that show files.
    spec("cat zcat bzcat xzcat zstdcat gzcat rev").each(READ).lenient().options(&[
        flags("-A --show-all -b --number-nonblank -e -E --show-ends -n --number -s --squeeze-blank -t -T"),
        flags("--show-tabs -u -v --show-nonprinting"),
    ]),
    spec("tac").each(READ).lenient().options(&[values("-s --separator")]),
    spec("nl").each(READ).lenient().options(&[values("-b -d -f -h -i -l -n -s -v -w"),
        flags("-p --no-renumber"),
    ]),
    spec("fold fmt").each(READ).lenient().options(&[values("-w --width -g --goal -p --prefix"),
        flags("-b --bytes -s --spaces -c --crown-margin -t --tagged-paragraph -u --uniform-spacing"),
    ]),
    spec("expand unexpand").each(READ).lenient().options(&[values("-t --tabs")]),
    spec("od").each(READ).lenient().options(&[values("-A -j -N -S -t --format --address-radix --skip-bytes --read-bytes")]),
    spec("hexdump hd").each(READ).lenient().options(&[values("-e -n -s"), does("-f", READ), flags("-b -c -C -d -o -v -x")]),
    spec("xxd").operands(Operands::First(READ, &Operands::Each(WRITE))).lenient().options(&[values("-c -g -l -o -s")]),
    spec("strings").each(READ).lenient().options(&[values("-n --bytes -t --radix -e --encoding")]),
    spec("column").each(READ).lenient().options(&[values("-s --separator -c --output-width -o --output-separator -N --table-columns -H --table-hide -R --table-right -n --table-name"), flags("-t --table -x --fillrows -J --json -L --keep-empty-lines -e")]),
    spec("pr").each(READ).lenient().options(&[values("-h --header -l --length -o --indent -w --width -W --page-width")]),
    spec("bat batcat").each(READ).options(&[
        does("--pager", Act::Script),
        values("-l --language -H --highlight-line --file-name --diff-context --tabs --wrap --terminal-width"),
        values("--color --italic-text --decorations --paging -m --map-syntax --ignored-suffix --theme --style"),
        values("-r --line-range --squeeze-limit --binary --nonprintable-notation --theme-light --theme-dark"),
        flags("-A --show-all -p --plain -d --diff -n --number -f --force-colorization -s --squeeze-blank -P"),
        flags("-L --list-languages --list-themes -u --unbuffered -S --chop-long-lines -h --help -V --version"),
    ]),
    spec("head tail").each(READ).lenient().options(&[
        values("-n --lines -c --bytes -s --sleep-interval --pid --max-unchanged-stats -b"),
        attached("--follow"),
        flags("-q --quiet --silent -v --verbose -z --zero-terminated -f -F -r --retry"),
    ]),
    spec("less zless").operands(Operands::Each(Act::Text)).by(pager).lenient().options(&[
        does("-o -O --log-file --LOG-FILE", WRITE),
        does("-k --lesskey-file --lesskey-src -T --tag-file", READ),
        values("-b -h -j -p -P -t -x -y -z -D --pattern --tag --tabs"),
    ]),
    spec("more zmore most").by(pager).lenient(),
    spec("wc").each(READ).lenient().options(&[does("--files0-from", Act::By(lists::read)), values("--total"),
        flags("-c --bytes -m --chars -l --lines -L --max-line-length -w --words"),
    ]),
    spec("sort gsort").each(READ).options(&[
        does("-o --output", WRITE),
        does("-T --temporary-directory", WRITE),
        does("--compress-program", Act::Script),
        does("--files0-from", Act::By(lists::read)),
        does("--random-source", READ),
        values("-k --key -t --field-separator -S --buffer-size --parallel --batch-size --sort"),
        attached("--check"),
        flags("-b -d -f -g -i -M -h -n -R -r -V -c -C -m -s -u -z --ignore-leading-blanks --dictionary-order"),
        flags("--ignore-case --general-numeric-sort --ignore-nonprinting --month-sort --human-numeric-sort"),
        flags("--numeric-sort --random-sort --reverse --version-sort --merge --stable --unique --zero-terminated"),
        flags("--debug"),
    ]),
    // The second operand of uniq is what it writes.
    spec("uniq").operands(Operands::First(READ, &Operands::Each(WRITE))).lenient().options(&[
        values("-f --skip-fields -s --skip-chars -w --check-chars"),
        attached("--all-repeated --group"),
        flags("-c --count -d --repeated -D -i --ignore-case -u --unique -z --zero-terminated"),
    ]),
    spec("cut").each(READ).lenient().options(&[values("-b --bytes -c --characters -d --delimiter -f --fields --output-delimiter"),
        flags("-n --complement -s --only-delimited -z --zero-terminated"),
    ]),
    spec("paste").each(READ).lenient().options(&[values("-d --delimiters"),
        flags("-s --serial -z --zero-terminated"),
    ]),
    spec("join").each(READ).lenient().options(&[values("-1 -2 -a -e -j -o -t -v")]),
    spec("comm").each(READ).lenient().options(&[values("--output-delimiter"),
        flags("-1 -2 -3 --check-order --nocheck-order --total -z --zero-terminated"),
    ]),
    spec("cmp").each(READ).lenient().options(&[values("-n --bytes -i --ignore-initial"),
        flags("-b --print-bytes -l --verbose -s --quiet --silent"),
    ]),
    spec("diff3").each(READ).lenient().options(&[values("-L --label"), does("--diff-program", Act::Script)]),
    spec("sdiff").each(READ).lenient().options(&[
        values("-w --width -I --ignore-matching-lines"),
        does("-o --output", WRITE),
        does("--diff-program", Act::Script),
    ]),
    spec("diff colordiff").each(READ).lenient().options(&[
        values("-U --unified -C --context -I --ignore-matching-lines -L --label -x --exclude -W --width -F"),
        values("--show-function-line --tabsize --horizon-lines --palette --ifdef -D --line-format"),
        does("-X --exclude-from --from-file --to-file", READ),
        recursive("-r --recursive"),
        flags("-a --text -b --ignore-space-change -B --ignore-blank-lines -c -d --minimal -e --ed -E"),
        flags("--ignore-tab-expansion -i --ignore-case -n --rcs -N --new-file -p --show-c-function -q --brief -s"),
        flags("--report-identical-files -t --expand-tabs -T --initial-tab -u -w --ignore-all-space -y"),
        flags("--side-by-side -Z --ignore-trailing-space --suppress-common-lines --strip-trailing-cr"),
        flags("--no-dereference --unidirectional-new-file --left-column"),
    ]),
    spec("tr yes shuf factor numfmt").lenient().by(shuffled).options(&[
        does("-o --output", WRITE),
        does("--random-source", READ),
        values("-n --head-count -i --input-range -f --format -s --separator -d --field"),
        flags("-c -C --complement --delete --squeeze-repeats -t --truncate-set1 -e --echo -r --repeat -z"),
        flags("--zero-terminated -h --exponents"),
    ]),
    spec("file").each(READ).lenient().options(&[
        does("-f --files-from", Act::By(lists::read)),
        does("-m --magic-file", READ),
        values("-F --separator -e --exclude -P --parameter"),
        flags("-b --brief -c --checking-printout -i --mime --mime-type --mime-encoding -k --keep-going -l --list -L"),
        flags("--dereference -h --no-dereference -n --no-buffer -N --no-pad -p --preserve-date -r --raw -s"),
        flags("--special-files -v --version -z --uncompress -Z -0 --print0 --extension"),
    ]),
    spec("stat readlink realpath").each(READ).lenient().options(&[values("-c --format --printf --relative-to --relative-base"),
        flags("-L --dereference -f --file-system --canonicalize -e --canonicalize-existing -m"),
        flags("--canonicalize-missing -n --no-newline -q --quiet -s --strip --no-symlinks --silent -t --terse -v"),
        flags("--verbose -z --zero -P --physical --logical"),
    ]),
    spec("basename dirname pathchk").lenient().options(&[values("-s --suffix"),
        flags("-a --multiple -z --zero -p -P --portability"),
    ]),
    spec("ls dir vdir ll la").operands(READS).lenient().options(&[
        values("-I --ignore --hide -w --width -T --tabsize --block-size --time-style --sort"),
        flags("-a --all -A --almost-all --author -b --escape -B --ignore-backups -c -C -d --directory -D --dired -f"),
        flags("-F -g -G --no-group -h --human-readable --si -H --dereference-command-line -i --inode -k --kibibytes"),
        flags("-l -L --dereference -m -n --numeric-uid-gid -N --literal -o -p -q --hide-control-chars"),
        flags("--show-control-chars -Q --quote-name -r --reverse -R --recursive -s --size -S -t -u -U -v -x -X -Z"),
        flags("--context -1 --full-time --group-directories-first --zero -@ -e -O"),
        attached("--color --classify --file-type --indicator-style --format --hyperlink --quoting-style"),
    ]),
    spec("exa eza lsd").operands(READS).lenient().options(&[values("-I --ignore-glob -w --width -s --sort -t --time -L --level")]),
    spec("tree").operands(READS).lenient().options(&[
        does("-o", WRITE),
        values("-L -P -I -T -H --charset --filelimit --timefmt --sort"),
        does("--gitfile --infofile", READ),
        flags("-a -d -l -f -x -p -s -h -u -g -D -F -q -N -Q -i -S -A -C -n -v -t -c -r -U -J -X --du --si --inodes"),
        flags("--device --dirsfirst --noreport --prune --matchdirs --ignore-case --gitignore --metafirst"),
    ]),
    spec("du dust").operands(READS).lenient().options(&[
        does("-X --exclude-from", READ),
        does("--files0-from", Act::By(lists::read)),
        values("-d --max-depth -B --block-size -t --threshold --exclude --time-style -I"),
        flags("-0 --null -a --all --apparent-size -b --bytes -c --total -D --dereference-args -h --human-readable"),
        flags("--inodes -k -L --dereference -l --count-links -m -P --no-dereference -S --separate-dirs --si -s"),
        flags("--summarize --time -x --one-file-system"),
    ]),
    spec("ncdu").operands(READS).lenient().options(&[does("-o", WRITE), does("-f -X --exclude-from", READ), values("--exclude --color")]),
    spec("df findmnt lsblk blkid").lenient().options(&[values("-B --block-size -t --type -x --exclude-type -o"),
        flags("-a --all -h --human-readable -H --si -i --inodes -k -l --local -P --portability -T --print-type -f"),
        flags("--fs -J --json -b --bytes -p --paths -n --noheadings -r --raw -S --scsi -A -D -m --perms --total"),
        flags("--no-sync"),
    ]),
    spec("fd fdfind").by(fd).options(&[
        values("-d --max-depth --min-depth --exact-depth -t --type -e --extension -E --exclude -S --size -c --color"),
        values("--changed-within --changed-before -o --owner -j --threads --max-results --format --batch-size"),
        values("--path-separator --strip-cwd-prefix --and"),
        does("--ignore-file", READ),
        value("-C --base-directory", Role::Base),
        does("--search-path", READ),
        runs("-x --exec -X --exec-batch"),
        flags("-H --hidden -I --no-ignore -u --unrestricted -s --case-sensitive -i --ignore-case -g --glob --regex"),
        flags("-F --fixed-strings -a --absolute-path -l --list-details -L --follow -p --full-path -0 --print0 -1"),
        flags("--prune -q --quiet --show-errors --one-file-system --no-ignore-vcs --no-ignore-parent"),
    ]),
    spec("locate plocate mlocate").lenient(),
    spec("md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum md5 shasum crc32")
        .each(READ)
        .lenient()
        .options(&[values("-a --algorithm -l --length"),
        flags("-b --binary -c --check -t --text -z --zero -w --warn --tag --ignore-missing --quiet --status"),
        flags("--strict"),
    ]),
    spec("base64 base32 basenc").each(READ).lenient().options(&[
        values("-w --wrap -b"),
        does("-i --input", READ),
        does("-o --output", WRITE),
        flags("-d -D --decode --ignore-garbage --base64 --base64url --base32 --base16"),
    ]),
    spec("iconv").each(READ).lenient().options(&[values("-f --from-code -t --to-code"), does("-o --output", WRITE)]),
    spec("dos2unix unix2dos mac2unix recode").each(Act::All(&[READ, WRITE])).lenient(),
];

/// `truncate` empties files, unless it makes them longer.
fn truncate(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let size = call.values(&["-s", "--size"]);
    let grows = size.last().is_some_and(|size| words::text(size).trim().starts_with('+'));
    let act = if grows { WRITE } else { DELETE };
    call.act_on_each(act, &call.operands, shell);
    true
}

/// What is overwritten with nothing is emptied; what is linked can be written by its other name from then on.
fn empties(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    if call.has_any(&["-l", "--link", "-s", "--symbolic-link"]) {
        let apart = call.has_any(&["-t", "--target-directory"]);
        let sources = call.operands.len().saturating_sub(usize::from(!apart));
        call.act_on_each(WRITE, call.operands.get(..sources).unwrap_or_default(), shell);
    }
    if let [sources @ .., target] = call.operands.as_slice()
        && sources.iter().any(|source| words::text(source) == "/dev/null")
    {
        call.act(DELETE, target, shell);
    }
    true
}

/// `install SOURCE… TARGET`, with `-d` only folders.
fn install(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    if call.has_any(&["-d", "--directory"]) {
        return true;
    }
    let targets = call.values(&["-t", "--target-directory"]);
    match call.operands.split_last() {
        Some((target, sources)) if targets.is_empty() => {
            call.act_on_each(READ, sources, shell);
            call.act(WRITE, target, shell);
        }
        _ => {
            call.act_on_each(READ, &call.operands, shell);
            call.act_on_each(WRITE, &targets, shell);
        }
    }
    true
}

/// A link gives a file another name, by which it can be read and written from then on.
fn link(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let targets = call.values(&["-t", "--target-directory"]);
    let (linked, name) = match call.operands.split_last() {
        Some((name, linked)) if targets.is_empty() && !linked.is_empty() => (linked, Some(name)),
        _ => (call.operands.as_slice(), targets.first()),
    };
    let symbolic = call.has_any(&["-s", "--symbolic"]) && !call.has_any(&["-r", "--relative"]);
    let folder =
        name.and_then(|name| words::text(name).rsplit_once('/').map(|(folder, _)| words::part(name, folder)));
    for path in linked {
        // A symbolic link is followed from where it stands.
        let seen = match &folder {
            Some(folder) if symbolic => words::below(folder, path),
            _ => path.clone(),
        };
        call.act(Act::All(&[READ, WRITE]), &seen, shell);
    }
    match name {
        Some(name) => call.act(WRITE, name, shell),
        None => call.act(WRITE, &call.literal("."), shell),
    }
    true
}

/// `dd if=FILE of=FILE`.
fn dd(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    const SETTINGS: [&str; 11] =
        ["bs=", "cbs=", "conv=", "count=", "ibs=", "obs=", "iflag=", "oflag=", "seek=", "skip=", "status="];
    let mut understood = true;
    for word in &call.operands {
        if let Some(path) = words::strip(word, "if=") {
            call.act(READ, &path, shell);
        } else if let Some(path) = words::strip(word, "of=") {
            call.act(WRITE, &path, shell);
            if words::text(&path).starts_with("/dev/") {
                call.act(DELETE, &path, shell);
            }
        } else {
            understood &= SETTINGS.iter().any(|setting| words::text(word).starts_with(setting))
                || ["iseek=", "oseek=", "--"].iter().any(|setting| words::text(word).starts_with(setting));
        }
    }
    understood
}

/// `mktemp TEMPLATE`, or without one in the folder for temporary files, prints the name that it chose.
fn make_temporary(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let template = call.operands.first();
    let folder = match call.values(&["-p", "--tmpdir"]).pop() {
        Some(folder) => Some(folder),
        None if template.is_some() && !call.has_any(&["-t", "--tmpdir"]) => None,
        None => Some(shell.temporary_folder(call.call.range.clone())),
    };
    if !call.has_any(&["-u", "--dry-run"]) {
        let place = folder.as_ref().or(template).cloned().unwrap_or_else(|| call.literal("/tmp"));
        call.act(WRITE, &place, shell);
    }
    let default = call.literal("tmp.XXXXXXXXXX");
    let name = chosen(template.unwrap_or(&default), call.has("-t"));
    let suffix = call.values(&["--suffix"]).pop();
    let folder = folder.as_ref().map(Word::place);
    shell.output = match (name, folder) {
        // Which of two folders it is depends on the program.
        _ if suffix.is_some() || call.has("-t") && call.has_any(&["-p", "--tmpdir"]) => None,
        (Some(name), None) => Some(Printed::Made(name)),
        (Some(name), Some(Some(folder))) if !name.starts_with('/') => {
            Some(Printed::Made(format!("{folder}/{name}")))
        }
        _ => None,
    };
    true
}

/// A template with a star for what is chosen, or `None` if the template is not known.
fn chosen(template: &Word, prefix: bool) -> Option<String> {
    let text = template.literal().filter(|text| !text.contains('*'))?;
    let kept = text.trim_end_matches('X');
    match text.len() - kept.len() {
        3.. => Some(format!("{kept}*")),
        // Elsewhere `-t` takes a prefix.
        _ if prefix && !text.contains('/') => Some(format!("{text}*")),
        _ => None,
    }
}

/// `split FILE PREFIX` writes files whose names begin so.
fn split(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    if let Some(file) = call.operands.first() {
        call.act(READ, file, shell);
    }
    let given = call.values(&["-f", "--prefix"]).pop().or_else(|| call.operands.get(1).cloned());
    if call.call.program == "csplit" || !call.has("--filter") {
        let prefix = given.filter(|_| call.call.program == "split" || call.has_any(&["-f", "--prefix"]));
        call.act(WRITE, &prefix.unwrap_or_else(|| call.literal("x")), shell);
    }
    true
}

/// `chmod -x FILE`: the mode looks like an option, and the first operand is a file.
fn mode_with_dash(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let is_mode = |word: &Word| {
        words::text(word)
            .strip_prefix('-')
            .is_some_and(|mode| mode.starts_with(['r', 'w', 'x', 'X', 's', 't']))
    };
    if call.call.args.iter().any(is_mode)
        && let Some(file) = call.operands.first()
    {
        call.act(CONFIGURE, file, shell);
    }
    true
}

/// `shuf FILE`; the operands of the others are no paths.
fn shuffled(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    if call.call.program == "shuf"
        && !call.call.args.iter().any(|arg| matches!(words::text(arg), "-e" | "--echo"))
    {
        call.act_on_each(READ, &call.operands, shell);
    }
    true
}

/// `chattr +i FILE`, `chattr -i FILE`: a mode may look like options.
fn chattr(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let is_mode = |word: &&Word| words::text(word).starts_with(['+', '=']);
    for file in call.operands.iter().filter(|word| !is_mode(word)) {
        call.act(CONFIGURE, file, shell);
    }
    true
}

/// `less FILE`, `less +COMMAND FILE`: keys pressed from the command line can run a program.
fn pager(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    for word in &call.operands {
        match words::strip(word, "+") {
            None => call.act(READ, word, shell),
            Some(keys) if words::text(&keys).contains(['!', '|', 's', 'v', '#', '*']) => {
                shell.unknown("pager", "commands given to a pager can run programs", word.range.clone());
            }
            Some(_) => {}
        }
    }
    true
}

/// `fd PATTERN FOLDER…`, with `-x` a command for each file that is found.
fn fd(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let here = [call.literal(".")];
    let folders = if call.rest(1).is_empty() { here.as_slice() } else { call.rest(1) };
    call.act_on_each(Act::Tree(Read), folders, shell);
    let command: Vec<Word> = call.command.iter().filter(|word| words::text(word) != ";").cloned().collect();
    if command.is_empty() {
        return true;
    }
    for folder in folders {
        let found = words::part(folder, &format!("{}/*", words::text(folder).trim_end_matches('/')));
        let found = Word { glob: true, ..found };
        let places = ["{}", "{/}", "{//}", "{.}", "{/.}"];
        let names = command.iter().any(|word| places.iter().any(|place| words::text(word).contains(place)));
        let filled = command.iter().map(|word| {
            let holds = places.iter().any(|place| words::text(word).contains(place));
            if holds { found.clone() } else { word.clone() }
        });
        let mut filled: Vec<Word> = filled.collect();
        if !names {
            filled.push(found.clone());
        }
        shell.run(&filled, call.call.range.clone());
    }
    true
}
