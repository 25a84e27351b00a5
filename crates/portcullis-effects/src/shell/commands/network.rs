//! Programs that speak to other machines.

use portcullis_core::effect::ResourceKind::Recipient;
use portcullis_core::effect::Verb::{Delete, Read, Send};

use super::super::interpreter::{Interpreter, Stdin};
use super::super::word::Word;
use super::options::Parsed;
use super::spec::*;
use super::words;

const CONTACTS: Act = Act::Host(Send);
/// An option of the SSH family: `ProxyCommand=…`.
const SSH_OPTION: Opt = values("-o");

pub(super) const SPECS: &[Spec] = &[
    spec("scp").by(copy_over_ssh).options(&[
        recursive("-r"),
        SSH_OPTION,
        does("-S -D", Act::Script),
        does("-i -F", READ),
        does("-J", CONTACTS),
        values("-c -l -P -X"),
        flags("-1 -2 -3 -4 -6 -A -B -C -O -p -q -R -s -T -v"),
    ]),
    spec("rsync").by(rsync).options(&[
        recursive("-r --recursive -a --archive"),
        does("-e --rsh", Act::Script),
        does("--files-from --exclude-from --include-from --password-file --read-batch --compare-dest", READ),
        does("--copy-dest --link-dest", READ),
        does("--log-file --backup-dir -T --temp-dir --partial-dir --write-batch --only-write-batch", WRITE),
        flag("-n --dry-run", Role::Dry),
        values("--rsync-path -f --filter --exclude --include -B --block-size --bwlimit --chmod --chown --timeout"),
        values("--contimeout --port --max-size --min-size --max-delete --modify-window -@ --out-format --info --debug"),
        values("--compress-level --zl --compress-choice --zc --checksum-choice --cc --suffix --skip-compress"),
        values("--usermap --groupmap --iconv --protocol --sockopts --address --log-file-format --outbuf --max-alloc"),
        values("--stop-after --stop-at -M --remote-option --checksum-seed"),
        flags("--delete --delete-before --delete-during --del --delete-delay --delete-after --delete-excluded"),
        flags("--delete-missing-args --remove-source-files --force -v --verbose -q --quiet -c --checksum -R --relative"),
        flags("-b --backup -u --update --inplace --append --append-verify -d --dirs -l --links -L --copy-links"),
        flags("--copy-unsafe-links --safe-links --munge-links -k --copy-dirlinks -K --keep-dirlinks -H --hard-links"),
        flags("-p --perms -E --executability -A --acls -X --xattrs -o --owner -g --group --devices --specials -D -t"),
        flags("--times -O --omit-dir-times -J --omit-link-times --super --fake-super -S --sparse --preallocate -W"),
        flags("--whole-file -x --one-file-system --existing --ignore-existing --ignore-errors --partial -P --progress"),
        flags("-m --prune-empty-dirs --numeric-ids -I --ignore-times --size-only -y --fuzzy -z --compress -C"),
        flags("--cvs-exclude -0 --from0 -s --protect-args --secluded-args --blocking-io --stats -8 --8-bit-output -h"),
        flags("--human-readable -i --itemize-changes --list-only -4 --ipv4 -6 --ipv6 --mkpath -N -U --fsync --delay-updates"),
        flags("--no-motd --implied-dirs --old-args --trust-sender --open-noatime --write-devices --help --version"),
    ]),
    spec("sftp").by(copy_over_ssh).options(&[
        SSH_OPTION,
        does("-S -D", Act::Script),
        does("-i -F -b", READ),
        does("-J", CONTACTS),
        values("-B -c -l -P -R -X -s"),
        flags("-4 -6 -A -a -C -f -N -p -q -r -v"),
    ]),
    spec("ssh-copy-id").by(copy_id).options(&[SSH_OPTION, does("-i", READ), values("-p -F -t"), flags("-f -n -s -x -h")]),
    spec("ssh-keyscan").each(CONTACTS).lenient().options(&[values("-p -T -t"), does("-f", READ)]),
    spec("nc netcat ncat nc.openbsd nc.traditional").by(netcat).options(&[
        does("-e -c --exec --sh-exec --lua-exec", Act::Script),
        does("-x --proxy", CONTACTS),
        does("-o --output --hex-dump", WRITE),
        does("--ssl-cert --ssl-key --ssl-trustfile --allowfile --denyfile", READ),
        values("-p --source-port -s --source -w --wait -i --idle-timeout -q -O -P --proxy-auth -X --proxy-type -I -T"),
        values("-V -m --max-conns --delay --allow --deny --ssl-ciphers --ssl-alpn --proxy-dns -G -g -W -M"),
        flags("-4 -6 -b -C --crlf -D -d -h -k --keep-open -l --listen -L -N -n --nodns -r -S -t --telnet -U --unixsock"),
        flags("-u --udp -v --verbose -Z -z -F --sctp --ssl --ssl-verify --send-only --recv-only --no-shutdown --broker"),
        flags("--chat --append-output --version --help -A"),
    ]),
    spec("socat").by(socat).lenient().options(&[values("-b -t -T -L -W"), does("-lf -r -R", WRITE)]).single_dash(),
    spec("telnet").operands(Operands::First(CONTACTS, &Operands::Each(Act::Text))).lenient().options(&[values("-l -b"), does("-n", WRITE)]),
    spec("ftp tnftp").by(ftp).lenient().options(&[does("-o", WRITE)]),
    spec("lftp").by(ftp).lenient().options(&[does("-c -e", Act::Script), does("-f", READ), values("-u --user -p")]),
    spec("ping ping6").by(probe).lenient().options(&[values("-c -i -I -l -m -M -p -Q -s -S -t -T -w -W")]),
    spec("traceroute traceroute6 tracepath mtr fping arping finger").by(probe).lenient(),
    spec("whois").by(probe).lenient().options(&[does("-h --host", CONTACTS), values("-p --port")]),
    spec("nmap masscan hping3").by(probe).lenient().options(&[
        values("-p --max-rate --min-rate --rate -e --script-args"),
        does("-oN -oX -oG -oA -oS", WRITE),
        does("-iL", READ),
    ]),
    spec("iperf iperf3").lenient().options(&[
        does("-c --client", CONTACTS),
        does("--logfile", WRITE),
        does("-F --file", Act::Upload),
    ]),
    spec("nslookup").by(resolve).lenient().single_dash(),
    spec("dig host drill kdig resolvectl delv").by(resolve).lenient().options(&[
        does("-f -k", READ),
        does("-q -x", CONTACTS),
        values("-b -c -p -t -y -R -W -N"),
    ]),
    spec("http https xh xhs httpie").by(httpie).lenient().options(&[
        does("-o --output", WRITE),
        does("--cert --cert-key --session-read-only --ssl-key", READ),
        does("--proxy", Act::Text),
        does("--session", WRITE),
        values("-a --auth -A --auth-type -p --print --timeout --max-redirects --pretty -s --style --verify --ssl --raw"),
        values("--boundary --default-scheme --format-options --response-charset --response-mime --history-print -P"),
        flags("-j --json -f --form --multipart -x --compress -v --verbose -h --headers -b --body -m --meta -S --stream"),
        flags("-d --download -c --continue -q --quiet -F --follow -I --ignore-stdin --offline --check-status --debug"),
    ]),
    spec("aria2c").by(aria).lenient().options(&[
        does("-i --input-file", READ),
        does("--conf-path --load-cookies --private-key --certificate --ca-certificate", READ),
        does("-l --log --save-session --save-cookies", WRITE),
        does("--on-download-complete --on-download-start --on-download-stop --on-download-error", Act::Script),
        does("--on-bt-download-complete --on-download-pause", Act::Script),
        does("--all-proxy --http-proxy --https-proxy --ftp-proxy", Act::Url(Send)),
        values("-d --dir -o --out -s --split -x --max-connection-per-server -j --max-concurrent-downloads -k -t"),
        values("--header -U --user-agent --referer --http-user --http-passwd -m --max-tries --checksum"),
    ]),
    spec("mail mailx s-nail heirloom-mailx").each(Act::Named(Send, Recipient, "")).by(mail).options(&[
        does("-a -A --attach", Act::Upload),
        does("-c -b", Act::Named(Send, Recipient, "")),
        does("-q", READ),
        values("-s --subject -r -X -u -M -C --content-type --return-address"),
        does("-f --file", READ),
        flags("-n -N -v -d -i -E -t -H -e -I -B -F -R -~"),
    ]),
    spec("mutt neomutt").each(Act::Named(Send, Recipient, "")).by(mail).options(&[
        does("-i -H -f", READ),
        does("-F", EXECUTE),
        does("-c -b", Act::Named(Send, Recipient, "")),
        value("-a", Role::Does(Act::Upload)),
        does("-e", Act::Script),
        values("-s -m -Q -A -l -d"),
        flags("-n -p -R -x -y -z -Z -G -g -D -B -v"),
    ]),
    spec("sendmail msmtp ssmtp").each(Act::Named(Send, Recipient, "")).by(mail).options(&[
        values("-f -F -r -o -oi -a --account --from -N -R -V -B -O --host --port"),
        does("-X", WRITE),
        does("-C --file", READ),
        flags("-t -i -v -n -U --read-recipients -bm -bs -G -m -q"),
    ]),
];

/// Whether a word is a place on another machine: `host:path`, `user@host:path`.
pub(super) fn on_host(word: &Word) -> Option<(Word, Word)> {
    let (host, path) = words::split(word, ':')?;
    let named = !words::text(&host).is_empty() && !words::text(&host).contains('/');
    (named && !words::text(word).contains("://")).then_some((host, path))
}

/// Copies between places of which some are on other machines.
pub(super) fn transfer(call: &Parsed<'_>, sources: &[Word], target: &Word, shell: &mut Interpreter<'_, '_>) {
    let host = |word: &Word| {
        let scheme = words::text(word).contains("://").then(|| word.clone());
        scheme.or_else(|| on_host(word).map(|(host, _)| words::prefixed("ssh://", &host)))
    };
    let remote = host(target);
    let mut uploads = false;
    for source in sources {
        match host(source) {
            Some(from) => call.act(Act::Url(Read), &from, shell),
            None if remote.is_some() => {
                uploads = true;
                call.act(Act::Upload, source, shell);
            }
            None => call.act(READ, source, shell),
        }
    }
    match remote {
        Some(to) => {
            let marks: &[&'static str] = if uploads { &["upload"] } else { &[] };
            call.act_plainly(Act::Url(Send), &to, marks, shell);
        }
        None => call.act(WRITE, target, shell),
    }
}

/// What `-o` of the SSH family runs or contacts.
pub(super) fn ssh_options(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) {
    for option in call.values(&["-o"]) {
        let split = words::split(&option, '=').or_else(|| words::split(&option, ' '));
        let Some((name, value)) = split else { continue };
        match words::text(&name).trim().to_ascii_lowercase().as_str() {
            "proxycommand" | "localcommand" | "knownhostscommand" if words::text(&value) != "none" => {
                call.act(Act::Script, &value, shell);
            }
            "pkcs11provider" | "securitykeyprovider" => call.act(EXECUTE, &value, shell),
            "proxyjump" | "hostname" => call.act(CONTACTS, &value, shell),
            "identityfile" | "certificatefile" => call.act(READ, &value, shell),
            "userknownhostsfile" | "controlpath" => call.act(WRITE, &value, shell),
            _ => {}
        }
    }
}

fn copy_over_ssh(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    ssh_options(call, shell);
    match call.operands.as_slice() {
        [] => {}
        // `sftp host` waits for commands.
        [host] => {
            let place = on_host(host).map_or_else(|| host.clone(), |(host, _)| host);
            call.act(Act::Url(Send), &words::prefixed("ssh://", &place), shell);
            return !matches!(call.call.stdin, Stdin::Pipe | Stdin::Text(_) | Stdin::File) && !call.has("-b");
        }
        [sources @ .., target] => transfer(call, sources, target, shell),
    }
    true
}

fn rsync(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let remote: Vec<Word> = call.values(&["--rsync-path"]);
    shell.remote(|shell| remote.iter().for_each(|command| shell.script(command)));
    let Some((target, sources)) = call.operands.split_last() else { return true };
    if sources.is_empty() {
        // `rsync PLACE` lists it.
        return if on_host(target).is_some() {
            copy_listing(call, target, shell)
        } else {
            listing(call, target, shell)
        };
    }
    transfer(call, sources, target, shell);
    // Listed names start from the source and do not lead out of it.
    if call.has("--files-from") {
        for source in sources.iter().filter(|source| on_host(source).is_none()) {
            call.act(Act::Tree(Read), source, shell);
        }
    }
    let deletes = call.found.iter().any(|found| found.name.starts_with("--del"));
    if deletes {
        match on_host(target) {
            Some((_, path)) => shell.remote(|shell| call.act(Act::Tree(Delete), &path, shell)),
            None => call.act(Act::Tree(Delete), target, shell),
        }
    }
    if call.has("--remove-source-files") {
        for source in sources {
            match on_host(source) {
                Some((_, path)) => shell.remote(|shell| call.act(DELETE, &path, shell)),
                None => call.act(DELETE, source, shell),
            }
        }
    }
    !call.has_any(&["-M", "--remote-option"])
}

fn copy_listing(call: &Parsed<'_>, place: &Word, shell: &mut Interpreter<'_, '_>) -> bool {
    if let Some((host, _)) = on_host(place) {
        call.act(Act::Url(Read), &words::prefixed("ssh://", &host), shell);
    }
    true
}

fn listing(call: &Parsed<'_>, place: &Word, shell: &mut Interpreter<'_, '_>) -> bool {
    call.act(Act::Place(Read), place, shell);
    true
}

fn copy_id(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    ssh_options(call, shell);
    for host in &call.operands {
        call.act(Act::Url(Send), &words::prefixed("ssh://", host), shell);
        shell.remote(|shell| call.act(WRITE, &call.literal("~/.ssh/authorized_keys"), shell));
    }
    true
}

fn netcat(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    if call.has_any(&["-U", "--unixsock"]) {
        call.act_on_each(WRITE, &call.operands, shell);
        return true;
    }
    if call.has_any(&["-l", "--listen", "-L"]) {
        // Who connects is not known; what is served leaves to them.
        if matches!(call.call.stdin, Stdin::Pipe | Stdin::File) {
            call.act_plainly(CONTACTS, &call.literal("*"), &["upload"], shell);
        }
        return true;
    }
    if let Some(host) = call.operands.first() {
        let port = call.operands.get(1).filter(|port| words::text(port).bytes().all(|b| b.is_ascii_digit()));
        let place = match port {
            Some(port) => words::part(host, &format!("{}:{}", words::text(host), words::text(port))),
            None => host.clone(),
        };
        let place = if host.value.is_none() { host.clone() } else { place };
        let uploads = matches!(call.call.stdin, Stdin::Pipe | Stdin::File) && !call.has("-z");
        call.act_plainly(CONTACTS, &place, if uploads { &["upload"] } else { &[] }, shell);
    }
    true
}

fn socat(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let mut understood = true;
    for address in &call.operands {
        for side in words::text(address).split("!!") {
            let side = words::part(address, side);
            let (kind, rest) = words::split(&side, ':').unwrap_or_else(|| (side.clone(), call.literal("")));
            let plain = words::part(&rest, words::text(&rest).split(',').next().unwrap_or_default());
            let kind = words::text(&kind).to_ascii_lowercase();
            match kind.as_str() {
                "-" | "stdin" | "stdout" | "stdio" | "stderr" | "fd" | "pty" | "pipe" => {}
                "exec" | "system" | "shell" => call.act(Act::Script, &plain, shell),
                "open" | "file" | "gopen" | "create" | "creat" => {
                    call.act(Act::All(&[READ, WRITE]), &plain, shell)
                }
                "proxy" | "socks4" | "socks4a" | "socks5" => {
                    for host in words::text(&plain).split(':').take(2) {
                        call.act(CONTACTS, &words::part(&plain, host), shell);
                    }
                }
                kind if kind.contains("listen") => {}
                kind if kind.starts_with("unix") || kind.starts_with("abstract") || kind == "local" => {
                    call.act(WRITE, &plain, shell);
                }
                kind if ["tcp", "udp", "ssl", "openssl", "sctp", "ip"]
                    .iter()
                    .any(|own| kind.starts_with(own)) =>
                {
                    call.act(CONTACTS, &plain, shell);
                }
                kind if kind.starts_with(['/', '.']) => call.act(Act::All(&[READ, WRITE]), &side, shell),
                _ => understood = false,
            }
        }
    }
    understood
}

fn ftp(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    if let Some(host) = call.operands.first() {
        call.act(CONTACTS, host, shell);
    }
    // Commands that are piped in move files.
    matches!(call.call.stdin, Stdin::None)
}

fn probe(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let is_number = |word: &&Word| words::text(word).bytes().all(|b| b.is_ascii_digit());
    for host in call.operands.iter().filter(|word| !is_number(word)) {
        call.act(CONTACTS, host, shell);
    }
    !call.call.args.iter().any(|arg| words::text(arg).starts_with("--script"))
}

/// A question to the name service reaches the servers of that domain: names can carry data.
fn resolve(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    const TYPES: [&str; 16] = [
        "a", "aaaa", "any", "axfr", "caa", "cname", "ds", "in", "mx", "ns", "ptr", "soa", "srv", "txt",
        "query", "status",
    ];
    for word in &call.operands {
        let text = words::text(word);
        if !TYPES.contains(&text.to_ascii_lowercase().as_str()) && !text.starts_with('+') {
            call.act(CONTACTS, &words::strip(word, "@").unwrap_or_else(|| word.clone()), shell);
        }
    }
    true
}

/// `http [METHOD] URL [ITEM…]`.
fn httpie(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let method = call.operand(0);
    let named = !method.is_empty() && method.bytes().all(|b| b.is_ascii_uppercase());
    let Some(url) = call.operands.get(usize::from(named)) else { return true };
    let (mut sends, mut uploads) = (named && !matches!(method, "GET" | "HEAD" | "OPTIONS"), false);
    sends |= call.has("--raw");
    for item in call.rest(usize::from(named) + 1) {
        let text = words::text(item);
        let file = [":=@", "=@", ":@", "@"].iter().find_map(|mark| text.split_once(mark));
        match file {
            Some((name, file)) if !name.contains('=') => {
                (sends, uploads) = (true, true);
                call.act(Act::Upload, &words::part(item, file), shell);
            }
            _ => sends |= !text.contains("==") && text.contains('='),
        }
    }
    let piped =
        matches!(call.call.stdin, Stdin::Pipe | Stdin::File) && !call.has_any(&["-I", "--ignore-stdin"]);
    let marks: &[&'static str] = if uploads || piped { &["upload"] } else { &[] };
    call.act_plainly(Act::Url(if sends || piped { Send } else { Read }), url, marks, shell);
    if call.has_any(&["-d", "--download"]) && !call.has_any(&["-o", "--output"]) {
        call.act(WRITE, &call.literal("."), shell);
    }
    true
}

fn aria(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    for url in &call.operands {
        call.act(Act::Place(Read), url, shell);
    }
    if call.has_any(&["-i", "--input-file"]) {
        call.act(Act::Host(Read), &Word::unknown(call.call.range.clone()), shell);
    }
    let folder = call.values(&["-d", "--dir"]).pop().unwrap_or_else(|| call.literal("."));
    let file = call.values(&["-o", "--out"]).pop().unwrap_or_else(|| call.literal("."));
    call.act(WRITE, &words::below(&folder, &file), shell);
    !call.has("--conf-path")
}

/// Mail whose recipients are in its text goes to someone unknown.
fn mail(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    if call.has_any(&["-t", "--read-recipients"]) {
        call.act(Act::Named(Send, Recipient, ""), &Word::unknown(call.call.range.clone()), shell);
    }
    // Lines that begin with a tilde are commands to `mail`.

    !call.has("-~")
}
