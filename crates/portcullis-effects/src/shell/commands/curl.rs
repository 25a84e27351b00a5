//! `curl` and `wget`.

use portcullis_core::effect::Verb::{Read, Send};

use super::super::interpreter::{Interpreter, Stdin};
use super::super::word::Word;
use super::options::Parsed;
use super::spec::*;
use super::words;

pub(super) const SPECS: &[Spec] = &[
    spec("curl").by(curl).options(&[
        values("-d --data --data-ascii --data-binary --json --data-urlencode --data-raw -F --form --form-string"),
        values("-T --upload-file -o --output --output-dir -X --request --url --url-query -K --config"),
        does("-H --header --proxy-header -w --write-out", Act::AtFile),
        does("-c --cookie-jar -D --dump-header --trace --trace-ascii --stderr --libcurl --etag-save", WRITE),
        does("--hsts --alt-svc --ssl-sessions", Act::All(&[READ, WRITE])),
        does("-E --cert --key --cacert --capath --crlfile --netrc-file --etag-compare --proxy-cert --proxy-key", READ),
        does("--proxy-cacert --proxy-capath --pubkey --egd-file --random-file", READ),
        does("--unix-socket --abstract-unix-socket", WRITE),
        does("-x --proxy --preproxy --doh-url", Act::Url(Send)),
        does("--socks4 --socks4a --socks5 --socks5-hostname --proxy1.0 --haproxy-clientip", Act::Host(Send)),
        does("--engine", EXECUTE),
        flag("-n --netrc --netrc-optional", Role::Also(&[(READ, "~/.netrc")])),
        values("--connect-to --resolve -b --cookie -u --user -U --proxy-user -A --user-agent -e --referer -m"),
        values("--max-time --connect-timeout --retry --retry-delay --retry-max-time -r --range -y --speed-time -Y"),
        values("--speed-limit --limit-rate --max-filesize --max-redirs --interface --local-port --noproxy --ciphers"),
        values("--tls-max --tls13-ciphers --cert-type --key-type --pass --proxy-pass --oauth2-bearer -C"),
        values("--continue-at -z --time-cond -t --telnet-option -P --ftp-port -Q --quote --rate --parallel-max"),
        values("--aws-sigv4 --keepalive-time --dns-servers --dns-interface --dns-ipv4-addr --expect100-timeout"),
        values("--happy-eyeballs-timeout-ms --hostpubmd5 --hostpubsha256 --krb --login-options --mail-auth"),
        values("--mail-from --mail-rcpt --pinnedpubkey --proto --proto-default --proto-redir --request-target"),
        values("--service-name --tlspassword --tlsuser --tftp-blksize --curves --create-file-mode --delegation --tlsauthtype --sasl-authzid"),
        values("--ftp-account --ftp-alternative-to-user --ftp-method --ipfs-gateway --variable --expand-url -h"),
        flags("--tlsv1 -# --progress-bar -0 --http1.0 -1 --tlsv1.0 --tlsv1.1 --tlsv1.2 --tlsv1.3 -2 -3 -4 --ipv4 -6 --ipv6"),
        flags("-a --append -B --use-ascii -f --fail --fail-with-body --fail-early -g --globoff -G --get -i --include"),
        flags("--show-headers -I --head -j --junk-session-cookies -J --remote-header-name -k --insecure -l --list-only"),
        flags("-L --location --location-trusted -M --manual -N --no-buffer -O --remote-name --remote-name-all -p"),
        flags("--proxytunnel -q --disable -R --remote-time -s --silent -S --show-error -v --verbose -V --version -Z"),
        flags("--parallel -: --next --compressed --http1.1 --http2 --http3 --http2-prior-knowledge --http0.9 --raw"),
        flags("--basic --digest --ntlm --negotiate --anyauth --tcp-nodelay --tcp-fastopen --path-as-is --ssl"),
        flags("--ssl-reqd --create-dirs --no-keepalive --no-progress-meter --styled-output --retry-all-errors"),
        flags("--retry-connrefused --post301 --post302 --post303 --crlf --ftp-pasv --ftp-create-dirs --help"),
        flags("--cert-status --doh-insecure --proxy-insecure --disable-eprt --disable-epsv --remove-on-error --no-clobber"),
        flags("--skip-existing --trace-time --trace-ids --compressed-ssh --form-escape --xattr --keepalive --suppress-connect-headers"),
    ]),
    spec("wget wget2").by(wget).options(&[
        does("-o --output-file -a --append-output --save-cookies --warc-file --rejected-log --hsts-file", WRITE),
        does("--load-cookies --ca-certificate --ca-directory --certificate --private-key --crl-file", READ),
        does("--pinnedpubkey --random-file --egd-file", READ),
        does("--post-file --body-file", Act::Upload),
        does("--use-askpass", Act::Script),
        values("-O --output-document -P --directory-prefix -i --input-file -e --execute --config --post-data"),
        values("--body-data --method -t --tries -T --timeout --dns-timeout --connect-timeout --read-timeout -w --wait"),
        values("--waitretry --limit-rate -Q --quota -U --user-agent --user --password --http-user --http-password"),
        values("--ftp-user --ftp-password --header --referer --max-redirect -l --level -A --accept -R --reject"),
        values("--accept-regex --reject-regex -D --domains --exclude-domains -I --include-directories -X"),
        values("--exclude-directories --cut-dirs --base -B --bind-address --default-page --progress --secure-protocol"),
        values("--certificate-type --private-key-type --restrict-file-names --retry-on-http-error --follow-tags"),
        values("--ignore-tags --local-encoding --remote-encoding --regex-type --prefer-family --start-pos --ciphers"),
        values("--proxy-user --proxy-password --report-speed --dns-servers --compression"),
        flags("-q --quiet -v --verbose -nv --no-verbose -c --continue -N --timestamping -S --server-response --spider"),
        flags("-b --background -d --debug -F --force-html -nc --no-clobber -nd --no-directories -x --force-directories"),
        flags("-nH --no-host-directories --protocol-directories -E --adjust-extension --no-check-certificate -4 -6"),
        flags("--inet4-only --inet6-only --content-disposition --trust-server-names -r --recursive -k --convert-links"),
        flags("-K --backup-converted -m --mirror -p --page-requisites -H --span-hosts -L --relative -np --no-parent"),
        flags("--follow-ftp --https-only --show-progress --no-cookies --no-cache --no-proxy --no-hsts --no-glob"),
        flags("--random-wait --delete-after --xattr --no-config --ask-password --auth-no-challenge --content-on-error"),
        flags("--retry-connrefused --retry-on-host-error --no-iri --save-headers --keep-session-cookies --no-dns-cache --use-server-timestamps"),
        flags("-h --help -V --version --no-netrc --unlink --preserve-permissions --no-remove-listing -n"),
    ]),
];

/// Whether standard input holds something that is not in the text.
fn pipes(call: &Parsed<'_>) -> bool {
    matches!(call.call.stdin, Stdin::Pipe | Stdin::File)
}

fn curl(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let (sends, uploads) = sent_by_curl(call, shell);
    let verb = if sends { Send } else { Read };
    let marks: &[&'static str] = if uploads { &["upload"] } else { &[] };
    let mut urls = call.operands.clone();
    urls.extend(call.values(&["--url", "--expand-url"]));
    for url in &urls {
        call.act_plainly(Act::Url(verb), url, marks, shell);
    }
    // These say where a connection really goes: HOST:PORT:ADDRESS, HOST:PORT:HOST:PORT.
    for redirected in call.values(&["--connect-to", "--resolve"]) {
        let place = words::text(&redirected).splitn(3, ':').nth(2).unwrap_or("*").trim_matches(['[', ']']);
        call.act_plainly(Act::Host(verb), &words::part(&redirected, place), marks, shell);
    }
    for word in call.values(&["-b", "--cookie"]) {
        if !words::text(&word).contains('=') {
            call.act(READ, &word, shell);
        }
    }
    let folder = call.values(&["--output-dir"]).pop().unwrap_or_else(|| call.literal("."));
    for output in call.values(&["-o", "--output"]) {
        call.act(WRITE, &words::below(&folder, &output), shell);
    }
    if call.has_any(&["-O", "--remote-name", "--remote-name-all", "-J", "--remote-header-name"]) {
        for url in &urls {
            let file = words::file_name(url);
            let file = if words::text(&file).is_empty() || call.has("-J") { call.literal(".") } else { file };
            call.act(WRITE, &words::below(&folder, &file), shell);
        }
    }
    let configs = call.values(&["-K", "--config"]);
    for config in &configs {
        call.act(READ, config, shell);
        shell.unknown("curl", "options stand in a file", config.range.clone());
    }
    !call.has_any(&["--variable", "--expand-url"])
}

/// Whether the call sends something, and whether it is the content of a file.
fn sent_by_curl(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> (bool, bool) {
    let (mut sends, mut uploads) = (false, false);
    let mut leaves = |file: &Word, shell: &mut Interpreter<'_, '_>| {
        uploads |= words::text(file) != "-" && words::text(file) != "." || pipes(call);
        if words::text(file) != "." {
            call.act(Act::Upload, file, shell);
        }
    };
    for found in &call.found {
        let Some(value) = &found.value else { continue };
        match found.name {
            "-d" | "--data" | "--data-ascii" | "--data-binary" | "--json" => {
                sends = true;
                if let Some(file) = words::strip(value, "@") {
                    leaves(&file, shell);
                }
            }
            "--data-urlencode" | "--url-query" => {
                sends = true;
                match words::split(value, '@') {
                    Some((name, file)) if !words::text(&name).contains('=') => leaves(&file, shell),
                    _ => {}
                }
            }
            "-F" | "--form" => {
                sends = true;
                let content = words::split(value, '=').map_or_else(|| value.clone(), |(_, content)| content);
                let file = words::strip(&content, "@").or_else(|| words::strip(&content, "<"));
                if let Some(files) = file {
                    // `@a,b;type=image/png`
                    for file in words::text(&files).split(',') {
                        let file = file.split(';').next().unwrap_or_default().trim_matches('"');
                        leaves(&words::part(&files, file), shell);
                    }
                }
            }
            "-T" | "--upload-file" => {
                sends = true;
                leaves(value, shell);
            }
            "-X" | "--request" => {
                sends |= !matches!(words::text(value), "GET" | "HEAD" | "OPTIONS" | "PROPFIND");
            }
            "--data-raw" | "--form-string" | "-Q" | "--quote" | "--mail-rcpt" => sends = true,
            _ => {}
        }
    }
    // The acts of the tables read the file of `-H @FILE`.
    let headers = call.values(&["-H", "--header"]);
    let from_file = headers.iter().any(|header| words::text(header).starts_with('@'));
    (sends || from_file, uploads || from_file)
}

fn wget(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let uploads = call.has_any(&["--post-file", "--body-file"]);
    let method = call.values(&["--method"]).pop();
    let reads = method.is_none_or(|method| matches!(words::text(&method), "GET" | "HEAD"));
    let sends = uploads || call.has_any(&["--post-data", "--body-data"]) || !reads;
    let marks: &[&'static str] = if uploads { &["upload"] } else { &[] };
    for url in &call.operands {
        call.act_plainly(Act::Url(if sends { Send } else { Read }), url, marks, shell);
    }
    for list in call.values(&["-i", "--input-file"]) {
        call.act(Act::Place(Read), &list, shell);
        call.act(Act::Host(Read), &Word::unknown(list.range.clone()), shell);
    }
    let folder = call.values(&["-P", "--directory-prefix"]).pop();
    let deep =
        call.has_any(&["-r", "--recursive", "-m", "--mirror", "-p", "-x", "--content-disposition", "-i"]);
    match (call.values(&["-O", "--output-document"]).pop(), folder) {
        (Some(file), _) => call.act(WRITE, &file, shell),
        _ if call.has_any(&["--spider", "-V", "--version", "-h", "--help"]) => {}
        (None, folder) if deep || call.operands.is_empty() => {
            call.act(WRITE, &folder.unwrap_or_else(|| call.literal(".")), shell);
        }
        (None, folder) => {
            for url in &call.operands {
                let name = words::file_name(url);
                let rooted = words::text(url)
                    .trim_end_matches('/')
                    .rsplit("://")
                    .next()
                    .unwrap_or_default()
                    .contains('/');
                let name = if rooted && !words::text(url).ends_with('/') {
                    name
                } else {
                    call.literal("index.html")
                };
                let folder = folder.clone().unwrap_or_else(|| call.literal("."));
                call.act(WRITE, &words::below(&folder, &name), shell);
            }
        }
    }
    let mut understood = true;
    for config in call.values(&["--config"]) {
        call.act(READ, &config, shell);
        understood = false;
    }
    for command in call.values(&["-e", "--execute"]) {
        understood &= words::text(&command).starts_with("robots");
    }
    understood
}
