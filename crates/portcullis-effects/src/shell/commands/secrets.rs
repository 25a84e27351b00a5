//! Keys, password stores and cryptography.

use portcullis_core::effect::Verb::{Configure, Delete, Read, Send};

use super::super::interpreter::Interpreter;
use super::options::Parsed;
use super::spec::*;
use super::words;

pub(super) const SPECS: &[Spec] = &[
    spec("gpg gpg2 gpgv gpgsm").by(gpg).lenient().options(&[
        does("-o --output --log-file --status-file", WRITE),
        does("--passphrase-file --options --keyring --secret-keyring", READ),
        does("--homedir", Act::All(&[READ, WRITE])),
        does("--keyserver", Act::Host(Send)),
        values("-r --recipient -u --local-user --default-key --passphrase --passphrase-fd --pinentry-mode --cipher-algo"),
        values("--digest-algo --trust-model --status-fd --compress-algo -z --set-filename --keyid-format"),
    ]),
    spec("pass gopass").has_verb().by(password_store).lenient(),
    spec("security").has_verb().by(keychain).lenient().options(&[values("-a -s -l -D -C -c -r -p -k -T")]),
    spec("op bw lpass keepassxc-cli secret-tool vault doppler infisical chamber envchain aws-vault keyring keychain sops age-keygen kwallet-query rbw").has_verb()
        .by(vault)
        .lenient(),
    spec("age rage").each(READ).by(age).options(&[
        does("-o --output", WRITE),
        does("-i --identity -R --recipients-file", READ),
        values("-r --recipient -j"),
        flags("-d --decrypt -e --encrypt -a --armor -p --passphrase"),
    ]),
    spec("ssh-add").lenient().by(|call, shell| {
        let asks = call.call.args.iter().any(|arg| matches!(words::text(arg), "-l" | "-L" | "-D" | "-d"));
        if call.operands.is_empty() && !asks {
            call.act(READ, &call.literal("~/.ssh/id_rsa"), shell);
        }
        call.act_on_each(READ, &call.operands, shell);
        true
    }).options(&[values("-t -E"), does("-s -e", EXECUTE)]),
    spec("ssh-agent").lenient().stops().by(|call, shell| {
        if !call.operands.is_empty() {
            shell.run(&call.operands, call.call.range.clone());
        }
        true
    }).options(&[values("-t -P -E"), does("-a", WRITE)]),
    spec("ssh-keygen").by(key_generator).options(&[
        values("-b -C -E -I -m -N -n -O -P -t -U -V -W -Y -z -Z -a -g"),
        value("-f", Role::Nothing),
        value("-F -R -r", Role::Nothing),
        does("-s -K", READ),
        does("-D -w", EXECUTE),
        flags("-q -y -l -v -e -i -p -B -c -A -H -h -L -o -Q -k"),
    ]),
    spec("openssl").has_verb().by(openssl).single_dash().lenient().options(&[
        does("-out -keyout -writerand -sess_out -keylogfile", WRITE),
        does("-in -inkey -key -cert -CAfile -CApath -CA -CAkey -config -signkey -certfile -kfile -extfile -rand -signature", READ),
        does("-sess_in -cert_chain -untrusted -crl -dhparam -certs -recip -signer -prverify -sign", READ),
        does("-engine -provider -provider-path", EXECUTE),
        does("-connect -proxy -host -url", Act::Host(Send)),
        values("-pass -passin -passout -k -K -iv -S -md -iter -subj -days -newkey -keyform -inform -outform -servername"),
        values("-port -accept -verify_hostname -starttls -algorithm -pkeyopt -addext -name -set_serial -cipher -alpn"),
    ]),
    spec("certbot mkcert step cfssl").lenient().always(&[(setting("certificates"), "")]),
    spec("htpasswd").lenient().operands(Operands::First(WRITE, &Operands::Each(Act::Text))),
    spec("klist kdestroy").lenient(),
    spec("kinit").lenient().always(&[(Act::Secret(Read, "credentials/"), "kerberos")]).options(&[does("-t -k", READ)]),
];

const KEYS: Act = Act::Secret(Read, "credentials/");

fn gpg(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let args: Vec<&str> = call.call.args.iter().map(words::text).collect();
    let given = |names: &[&str]| args.iter().any(|arg| names.iter().any(|name| arg.starts_with(name)));
    if given(&["--delete"]) {
        call.act(Act::Secret(Delete, "credentials/"), &call.literal("gpg"), shell);
        return true;
    }
    if given(&["--recv-keys", "--search-keys", "--send-keys", "--refresh-keys"]) {
        call.act(Act::Host(Send), &call.literal("keyserver"), shell);
    }
    let changes = [
        "--recv",
        "--import",
        "--edit-key",
        "--gen",
        "--full-gen",
        "--quick",
        "--sign-key",
        "--lsign",
        "--send-keys",
    ];
    if given(&["--export-secret"]) {
        call.act(KEYS, &call.literal("gpg"), shell);
        return true;
    }
    if given(&changes) {
        call.act(Act::Secret(Configure, "credentials/"), &call.literal("gpg"), shell);
    }
    if given(&[
        "--list",
        "-k",
        "-K",
        "--fingerprint",
        "--export",
        "--version",
        "--card-status",
        "--recv",
        "--search",
        "--edit-key",
        "--quick",
        "--sign-key",
        "--send",
    ]) {
        return true;
    }
    call.act_on_each(READ, &call.operands, shell);
    if given(&["-d", "--decrypt", "-s", "--sign", "-b", "--detach", "--clear"]) {
        call.act(KEYS, &call.literal("gpg"), shell);
    }
    let writes =
        given(&["-e", "--encrypt", "-c", "--symmetric", "-s", "--sign", "-b", "--detach", "--clear"]);
    if writes && !call.has_any(&["-o", "--output"]) {
        call.act_on_each(WRITE, &call.operands, shell);
    }
    true
}

fn password_store(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let verb = match call.operand(0) {
        "rm" | "remove" | "delete" => Delete,
        "insert" | "add" | "generate" | "edit" | "mv" | "rename" | "cp" | "copy" | "init" | "git" => {
            Configure
        }
        _ => Read,
    };
    let name = call.operands.last().cloned().unwrap_or_else(|| call.literal("*"));
    call.act(Act::Secret(verb, "credentials/pass/"), &name, shell);
    call.operand(0) != "git"
}

fn keychain(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let action = call.operand(0);
    let verb = match action.split('-').next().unwrap_or_default() {
        "delete" => Delete,
        "find" | "dump" | "export" | "list" | "show" | "help" | "" => Read,
        _ => Configure,
    };
    if !matches!(action, "" | "help" | "list-keychains" | "find-certificate") {
        call.act(Act::Secret(verb, "credentials/"), &call.literal("keychain"), shell);
    }
    true
}

/// Password managers and vaults: what is not clearly harmless reads a secret.
fn vault(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let texts: Vec<&str> = call.operands.iter().map(words::text).collect();
    if texts.is_empty() || matches!(call.operand(0), "status" | "version" | "help" | "--version" | "whoami") {
        return true;
    }
    let any = |names: &[&str]| texts.iter().take(2).any(|text| names.contains(text));
    let verb = if any(&["delete", "rm", "remove", "destroy", "clear"]) {
        Delete
    } else if any(&[
        "put", "write", "set", "create", "edit", "store", "add", "login", "signin", "generate", "update",
        "enable", "disable", "unlock",
    ]) {
        Configure
    } else {
        Read
    };
    call.act(Act::Secret(verb, "credentials/"), &call.literal(call.call.program), shell);
    // Some hand secrets to a program that they start.
    if let Some(at) = call.dashes.filter(|_| any(&["run", "exec"])) {
        shell.run(call.rest(at), call.call.range.clone());
        return true;
    }
    if call.call.program == "sops" {
        call.act_on_each(Act::All(&[READ, WRITE]), &call.operands, shell);
    }
    !any(&["run", "exec", "exec-env", "exec-file", "plugin"])
}

fn age(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    if call.has_any(&["-d", "--decrypt"]) {
        call.act(KEYS, &call.literal("age"), shell);
    }
    true
}

fn key_generator(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let files = call.values(&["-f"]);
    let reads = call.has_any(&["-y", "-l", "-e", "-F", "-B", "-L"]);
    if call.has("-R") {
        call.act(WRITE, &files.first().cloned().unwrap_or_else(|| call.literal("~/.ssh/known_hosts")), shell);
    } else if reads {
        call.act(READ, &files.first().cloned().unwrap_or_else(|| call.literal("~/.ssh/id_rsa")), shell);
    } else {
        call.act(WRITE, &files.first().cloned().unwrap_or_else(|| call.literal("~/.ssh/id_rsa")), shell);
    }
    call.act_on_each(READ, &call.operands, shell);
    true
}

/// `openssl COMMAND OPTIONS FILE…`.
fn openssl(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    for option in ["-pass", "-passin", "-passout"] {
        for value in call.values(&[option]) {
            if let Some(path) = words::strip(&value, "file:") {
                call.act(READ, &path, shell);
            } else if let Some(name) = words::strip(&value, "env:") {
                call.act(Act::Environment(Read), &name, shell);
            }
        }
    }
    match call.operand(0) {
        "dgst" | "verify" | "md5" | "sha1" | "sha256" | "sha512" | "ts" | "asn1parse" => {
            call.act_on_each(READ, call.rest(1), shell)
        }
        "s_client" => call.act_on_each(Act::Host(Send), call.rest(1), shell),
        "genrsa" | "rand" | "version" | "ciphers" | "speed" | "list" | "prime" | "" | "help" | "passwd"
        | "s_server" => {}
        _ => {}
    }
    // A shell of its own, fed from its input.
    !call.operands.is_empty()
}
