//! Programs that pack, unpack, compress and expand.

use portcullis_core::effect::Verb::{Read, Write};

use super::super::interpreter::{Call, Interpreter};
use super::super::word::Word;
use super::options::Parsed;
use super::spec::*;
use super::{lists, words};

const TAR: Spec = spec("tar gtar bsdtar").options(&[
    flag("-c --create", Role::Nothing),
    flags("-r --append -u --update -A --catenate --concatenate --delete"),
    flags("-x --extract --get -t --list -d --diff --compare"),
    does("-T --files-from -X --exclude-from", READ),
    does("-I --use-compress-program --to-command -F --info-script --new-volume-script", Act::Script),
    does("--rsh-command --rmt-command", Act::Script),
    does("-g --listed-incremental --index-file", Act::All(&[READ, WRITE])),
    values("-f --file -C --directory --checkpoint-action --one-top-level"),
    values("-b --blocking-factor -H --format -K --starting-file -L --tape-length -N --newer --newer-mtime -V"),
    values("--label --transform --xform --exclude --exclude-tag --exclude-ignore --owner --group --mode --mtime"),
    values("--strip-components --strip --sort --level --record-size --quoting-style --suffix --warning --pax-option"),
    values("--acls-from -s --owner-map --group-map --volno-file --options"),
    attached("--backup --checkpoint --occurrence --totals --atime-preserve"),
    flags("-a --auto-compress -B -h --dereference -i --ignore-zeros -j --bzip2 -J --xz -k --keep-old-files -l -m"),
    flags("--touch -M --multi-volume -n --seek -o --no-same-owner -O --to-stdout -p --preserve-permissions"),
    flags("--same-permissions -P --absolute-names -R -s --same-order -S --sparse -U --unlink-first -v --verbose"),
    flags("-w --interactive --confirmation -W --verify -z --gzip --gunzip -Z --compress --zstd --lzma --lzip --lzop"),
    flags("--overwrite --overwrite-dir --remove-files --same-owner --numeric-owner --no-recursion --wildcards"),
    flags("--skip-old-files --keep-newer-files --keep-directory-symlink --recursive-unlink --anchored --no-anchored"),
    flags("--exclude-vcs --exclude-vcs-ignores --exclude-caches --exclude-backups --one-file-system --force-local"),
    flags("--no-same-permissions --full-time --utc --show-transformed-names --show-defaults --delay-directory-restore"),
    flags("--no-overwrite-dir --no-wildcards --acls --xattrs --selinux --posix --hard-dereference --null --recursion"),
    flags("--ignore-command-error --ignore-failed-read --no-auto-compress --check-links -E --xattrs-include --block-number"),
]);

pub(super) const SPECS: &[Spec] = &[
    // Its options are read by `tar` itself, which says what it does not know.
    spec("tar gtar bsdtar").by(tar).inert().stops(),
    spec("zip").operands(Operands::First(WRITE, &Operands::Each(READ))).by(zip).options(&[
        recursive("-r -R --recurse-paths --recurse-patterns"),
        does("-TT --unzip-command", Act::Script),
        values("-b --temp-path -i --include -n --suffixes -P --password -t --from-date -tt --before-date -x --exclude"),
        values("-s --split-size -sp --output-file -O --out -Z --compression-method"),
        flags("-m --move -j --junk-paths -q --quiet -v --verbose -u --update -f --freshen -d --delete -T --test -y"),
        flags("--symlinks -e --encrypt -D -A -c -F -g -h -J -k -l -L -o -S -X -z -@ --latest-time --no-dir-entries"),
    ]),
    spec("unrar").operands(Operands::First(Act::Text, &Operands::First(READ, &Operands::Each(WRITE)))).always(WRITES_HERE).lenient(),
    spec("unzip").by(unzip).options(&[
        values("-d -P -x"),
        flags("-o -n -q -l -v -t -p -z -j -u -f -a -b -C -L -U -V -W -X -Z -K -M -D -c -T -O -I -:"),
    ]),
    spec("gzip pigz bzip2 pbzip2 xz lzma zstd lz4 brotli compress lzop pzstd")
        .by(compress)
        .lenient()
        .options(COMPRESSION),
    spec("gunzip unpigz bunzip2 unxz unlzma unzstd unlz4 uncompress")
        .by(compress)
        .lenient()
        .options(COMPRESSION),
    spec("7z 7za 7zr 7zz").by(seven_zip).lenient(),
    spec("cpio").by(cpio).options(&[
        does("-E --pattern-file", READ),
        does("--rsh-command", Act::Script),
        value("-D --directory", Role::Base),
        values("-F --file -I -O -C --io-size -H --format -M --message -R --owner --block-size"),
        flags("-o --create -i --extract -p --pass-through -t --list -d --make-directories -m -u --unconditional -v"),
        flags("--verbose -0 --null -a -A -B -c -f -l --link -L -n -r -s -S -b -V --quiet --no-absolute-filenames"),
        flags("--absolute-filenames --preserve-modification-time --to-stdout --sparse --append --reproducible"),
    ]),
    spec("ar").operands(Operands::First(Act::Text, &Operands::First(WRITE, &Operands::Each(READ)))).lenient(),
];

const COMPRESSION: &[Opt] = &[
    recursive("-r --recursive"),
    does("-o --output --output-dir-flat --output-dir-mirror --trace", WRITE),
    does("-D --dictionary --patch-from", READ),
    does("--filelist --files --files0", Act::By(lists::read)),
    values("-T --threads -S --suffix --format --memlimit -M --memory --block-size"),
    flags(
        "-c --stdout --to-stdout -d --decompress --uncompress --expand -f --force -k --keep -l --list -n --no-name -N",
    ),
    flags(
        "--name -q --quiet -t --test -v --verbose -0 -1 -2 -3 -4 -5 -6 -7 -8 -9 --fast --best --rsyncable -z -e",
    ),
    flags(
        "--compress --extreme --rm -j --single-stream -m --multiple -h --help -V --version --ultra --long --no-progress",
    ),
];

/// `tar`, whose first word may be options without a dash, each taking its value from the words that follow.
fn tar(outer: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let call = outer.call;
    let args = with_dashes(call);
    let tar = Parsed::new(call, &args, &[TAR.options], TAR.style);
    // In a list of names GNU tar reads options, and the names are those of any files.
    let mut understood = !tar.unlisted && !tar.has_any(&["-T", "--files-from"]);
    for found in &tar.found {
        if let (Role::Does(act), Some(value)) = (found.opt.role, &found.value) {
            tar.act(act, value, shell);
        }
    }
    for action in tar.values(&["--checkpoint-action"]) {
        if let Some(command) = words::strip(&action, "exec=") {
            tar.act(Act::Script, &command, shell);
        }
    }
    let folder =
        tar.values(&["-C", "--directory"]).into_iter().reduce(|outer, inner| words::below(&outer, &inner));
    let folder = folder.unwrap_or_else(|| tar.literal("."));
    let extracts = tar.has_any(&["-x", "--extract", "--get"]);
    let creates = tar.has_any(&["-c", "--create", "-r", "--append", "-u", "--update"]);
    let changes = tar.has_any(&["-A", "--catenate", "--concatenate", "--delete"]);
    for archive in tar.values(&["-f", "--file"]) {
        let act = if creates || changes { WRITE } else { READ };
        match words::split(&archive, ':') {
            Some((host, _)) if !words::text(&host).contains('/') && !tar.has("--force-local") => {
                let verb = if creates { portcullis_core::effect::Verb::Send } else { Read };
                tar.act(Act::Host(verb), &host, shell);
            }
            _ => tar.act(act, &archive, shell),
        }
    }
    if extracts && !tar.has_any(&["-O", "--to-stdout", "--to-command"]) {
        let top = tar.values(&["--one-top-level"]).pop();
        tar.act(
            Act::Tree(Write),
            &top.map_or_else(|| folder.clone(), |top| words::below(&folder, &top)),
            shell,
        );
        if tar.has_any(&["-P", "--absolute-names"]) {
            tar.act(Act::Tree(Write), &tar.literal("/"), shell);
        }
    } else if creates {
        for member in &tar.operands {
            let member = words::strip(member, "@").unwrap_or_else(|| words::below(&folder, member));
            tar.act(Act::Tree(Read), &member, shell);
            if tar.has("--remove-files") {
                tar.act(Act::Tree(portcullis_core::effect::Verb::Delete), &member, shell);
            }
        }
    } else if changes {
        tar.act_on_each(READ, &tar.operands, shell);
    } else {
        understood &= tar.has_any(&["-t", "--list", "-d", "--diff", "--compare", "-x", "--extract", "--get"]);
    }
    understood
}

/// The arguments with the first word's letters as options of their own: `xfC A B` is `-x -f A -C B`.
fn with_dashes(call: &Call<'_>) -> Vec<Word> {
    let Some((first, rest)) = call.args.split_first() else { return Vec::new() };
    if words::text(first).starts_with('-') {
        return call.args.to_vec();
    }
    let mut rest = rest.iter();
    let mut args = Vec::new();
    for letter in words::text(first).chars() {
        args.push(words::part(first, &format!("-{letter}")));
        if "fCTXbIgHKLNVF".contains(letter) {
            args.extend(rest.next().cloned());
        }
    }
    args.extend(rest.cloned());
    args
}

fn zip(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    if call.has("-@") {
        lists::of_input(call.verb(Read), &[], &call.call.range, shell);
    }
    if call.has_any(&["-m", "--move"]) {
        call.act_on_each(DELETE, call.rest(1), shell);
    }
    call.act_on_each(WRITE, &call.values(&["-O", "--out"]), shell);
    true
}

fn unzip(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    if let Some(archive) = call.operands.first() {
        call.act(READ, archive, shell);
    }
    if !call.has_any(&["-l", "-v", "-t", "-p", "-z", "-Z", "-c"]) {
        let folder = call.values(&["-d"]).pop().unwrap_or_else(|| call.literal("."));
        call.act(Act::Tree(Write), &folder, shell);
        if call.has("-:") {
            call.act(Act::Tree(Write), &call.literal("/"), shell);
        }
    }
    true
}

/// `gzip FILE` leaves `FILE.gz` in its place.
fn compress(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let given: Vec<&str> = call.call.args.iter().map(words::text).collect();
    let says = |letter: char, long: &str| {
        let short = |arg: &&str| arg.starts_with('-') && !arg.starts_with("--") && arg.contains(letter);
        given.iter().any(|arg| *arg == long || short(arg))
    };
    call.act_on_each(READ, &call.operands, shell);
    if says('c', "--stdout") || says('l', "--list") || says('t', "--test") || says('c', "--to-stdout") {
        return true;
    }
    let program = call.call.program;
    let keeps =
        says('k', "--keep") || matches!(program, "zstd" | "unzstd" | "lz4" | "unlz4" | "brotli" | "pzstd");
    let expands = program.starts_with("un") || program.contains("un") || says('d', "--decompress");
    for file in &call.operands {
        if !keeps || says('j', "--rm") || given.contains(&"--rm") {
            call.act(DELETE, file, shell);
        }
        let name = words::text(file);
        let made = match name.rsplit_once('.') {
            Some((stem, _)) if expands => stem.to_owned(),
            _ => format!("{name}.{}", suffix(program)),
        };
        call.act(WRITE, &words::part(file, &made), shell);
    }
    true
}

fn suffix(program: &str) -> &str {
    match program {
        "gzip" | "pigz" => "gz",
        "bzip2" | "pbzip2" => "bz2",
        "zstd" | "pzstd" => "zst",
        "brotli" => "br",
        "compress" => "Z",
        "lzop" => "lzo",
        other => other,
    }
}

/// `7z COMMAND ARCHIVE FILES…`.
fn seven_zip(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let (archive, members) = (call.rest(1).get(..1).unwrap_or_default(), call.rest(2));
    let folder = call.call.args.iter().filter_map(|arg| words::strip(arg, "-o")).next_back();
    match call.operand(0) {
        "a" | "u" => {
            call.act_on_each(WRITE, archive, shell);
            for member in members {
                match words::strip(member, "@") {
                    Some(list) => lists::read(&list, shell),
                    None => call.act(Act::Tree(Read), member, shell),
                }
            }
            if call.call.args.iter().any(|arg| words::text(arg) == "-sdel") {
                call.act_on_each(Act::Tree(portcullis_core::effect::Verb::Delete), members, shell);
            }
        }
        "d" | "rn" => call.act_on_each(WRITE, archive, shell),
        "x" | "e" => {
            call.act_on_each(READ, archive, shell);
            call.act(Act::Tree(Write), &folder.unwrap_or_else(|| call.literal(".")), shell);
        }
        "l" | "t" => call.act_on_each(READ, archive, shell),
        "h" => call.act_on_each(READ, call.rest(1), shell),
        "i" | "b" | "" => {}
        _ => return false,
    }
    true
}

fn cpio(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let archives = call.values(&["-F", "--file", "-I", "-O"]);
    if call.has_any(&["-o", "--create"]) {
        call.act_on_each(WRITE, &archives, shell);
        lists::of_input(Read, &[], &call.call.range, shell);
    } else if call.has_any(&["-p", "--pass-through"]) {
        lists::of_input(Read, &[], &call.call.range, shell);
        call.act_on_each(Act::Tree(Write), &call.operands, shell);
    } else {
        call.act_on_each(READ, &archives, shell);
        if !call.has_any(&["-t", "--list", "--to-stdout"]) {
            call.act(Act::Tree(Write), &call.literal("."), shell);
            if !call.has("--no-absolute-filenames") {
                call.act(Act::Tree(Write), &call.literal("/"), shell);
            }
        }
    }
    true
}
