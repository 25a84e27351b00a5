//! Clients of clouds and code hosts, and of tools that change infrastructure.

use portcullis_core::effect::ResourceKind::{Repository, Setting};
use portcullis_core::effect::Verb::{self, Configure, Delete, Read, Send};

use super::super::interpreter::Interpreter;
use super::super::word::Word;
use super::options::Parsed;
use super::spec::*;
use super::words;

const REMOTE: &str = "origin";
const fn repository(verb: Verb) -> Act {
    Act::Named(verb, Repository, "")
}

pub(super) const SPECS: &[Spec] = &[
    spec("gh glab hub").has_verb().by(code_host).lenient().options(&[
        value("-R --repo", Role::Nothing),
        values("-t --title -b --body -l --label -a --assignee -r --reviewer -m --milestone -B --base -H --head -L --limit"),
        values("-q --jq --template --json -s --state -S --search -X --method -f --raw-field -F --field --description"),
        values("-n --notes --target --pattern -D --dir -O --output --hostname --workflow --ref --visibility --project"),
        values("--author --branch -c --comment --env -e --remote --source --input --body-file --notes-file --header"),
        flags("--web --draft --fill --force --yes -y --confirm"),
        HELP,
    ]),
    spec("aws").has_verb().by(aws).lenient().options(&[
        does("--endpoint-url", Act::Url(Send)),
        does("--ca-bundle", READ),
        values("--profile --region --output --query --color --cli-read-timeout --cli-connect-timeout"),
        flag("--dryrun --dry-run", Role::Dry),
        recursive("--recursive"),
    ]),
    spec("gsutil").has_verb().by(object_store).lenient().options(&[values("-o -i"), recursive("-r -R")]),
    spec("gcloud bq").has_verb().by(google).lenient().options(&[
        values("--project --account --configuration --format --filter --region --zone --impersonate-service-account"),
        does("--key-file --flags-file --access-token-file", READ),
        recursive("-r --recursive"),
    ]),
    spec("az").has_verb().by(google).lenient().options(&[
        values("-g --resource-group -n --name -o --output --query --subscription -l --location"),
        does("-f --file --source --template-file", Act::Upload),
    ]),
    spec("rclone s3cmd s5cmd").has_verb().by(object_store).lenient().options(&[
        does("--config", READ),
        does("--log-file", WRITE),
        flag("-n --dry-run", Role::Dry),
        values("--transfers --checkers --include --exclude --bwlimit --filter --max-age --min-age"),
        recursive("-r --recursive"),
    ]),
    spec("terraform tofu terragrunt").has_verb().single_dash().by(terraform).lenient().options(&[
        value("-chdir", Role::Base),
        does("-var-file -backend-config", READ),
        does("-out -state -state-out -backup", WRITE),
        values("-var -target -replace -lock-timeout -parallelism -refresh"),
        flags("-auto-approve -json -no-color"),
    ]),
    spec("pulumi cdk cdktf sls serverless sam copilot").has_verb().by(terraform).lenient().options(&[value("-C --cwd", Role::Base), values("-s --stack -c --config")]),
    spec("ansible ansible-playbook ansible-pull ansible-console").by(ansible).options(&[
        does("-i --inventory --inventory-file --vault-password-file --vault-pass-file --private-key --key-file", READ),
        does("--become-password-file --connection-password-file", READ),
        values("-e --extra-vars -l --limit -m --module-name -a --args -u --user -f --forks -t --tags --skip-tags -c"),
        values("--connection -T --timeout --become-method --become-user --start-at-task -B -P --ssh-common-args"),
        values("--ssh-extra-args --sftp-extra-args --scp-extra-args -M --module-path --playbook-dir --vault-id"),
        flag("-C --check --syntax-check --list-hosts --list-tasks --list-tags", Role::Dry),
        flags("-b --become -k --ask-pass -K --ask-become-pass -J --ask-vault-pass -v --verbose -vv -vvv -vvvv -D --diff"),
        flags("--step --force-handlers --flush-cache -o --one-line --version -h --help"),
    ]),
    spec("ansible-vault").has_verb().lenient().by(|call, shell| {
        call.act_on_each(Act::All(&[READ, WRITE]), call.rest(1), shell);
        true
    }),
    spec("ansible-galaxy ansible-doc ansible-inventory ansible-lint ansible-config").lenient().always(WRITES_HERE),
    spec("packer vagrant").has_verb().lenient().always(WRITES_HERE).by(|call, shell| {
        match call.operand(0) {
            "ssh" => return false,
            "destroy" => call.act(Act::Named(Delete, Setting, "machines/"), &call.literal("*"), shell),
            "up" | "build" | "provision" | "reload" | "halt" => call.act(Act::Named(Configure, Setting, "machines/"), &call.literal("*"), shell),
            _ => {}
        }
        true
    }),
    spec("heroku fly flyctl vercel netlify wrangler railway render doctl linode-cli hcloud firebase supabase").has_verb().lenient().by(|call, shell| {
        let verb = intent(call.operands.iter().take(2).map(words::text));
        match verb {
            Read => {}
            verb => call.act(Act::Named(verb, Setting, "cloud/"), &call.literal(call.call.program), shell),
        }
        !call.operands.iter().any(|word| matches!(words::text(word), "run" | "ssh" | "exec" | "bash" | "console"))
    }),
];

/// What a word of an API's own vocabulary means; what is not clearly reading changes something.
fn intent<'w>(texts: impl Iterator<Item = &'w str>) -> Verb {
    const READS: [&str; 19] = [
        "describe", "list", "get", "show", "ls", "head", "view", "status", "search", "info", "logs", "help",
        "version", "whoami", "wait", "diff", "print", "access", "read",
    ];
    const DELETES: [&str; 11] = [
        "delete",
        "terminate",
        "remove",
        "rm",
        "destroy",
        "purge",
        "deregister",
        "rb",
        "wipe",
        "drop",
        "down",
    ];
    let mut verb = Read;
    let mut understood = false;
    for text in texts {
        let first = text.split(['-', ':']).next().unwrap_or_default();
        if DELETES.contains(&first) {
            return Delete;
        }
        understood |= READS.contains(&first);
        verb = if understood { Read } else { Configure };
    }
    verb
}

/// `gh GROUP ACTION …`.
fn code_host(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let named = call.values(&["-R", "--repo"]).pop();
    let place = named.unwrap_or_else(|| call.literal(REMOTE));
    for file in call.values(&["--body-file", "--notes-file", "--input"]) {
        call.act(Act::Upload, &file, shell);
    }
    for field in call.values(&["-F", "--field"]) {
        if let Some((_, value)) = words::split(&field, '=') {
            call.act(Act::AtFile, &value, shell);
        }
    }
    let target = call.operands.get(2).cloned();
    match (call.operand(0), call.operand(1)) {
        ("" | "status" | "browse" | "version" | "help" | "search" | "completion", _) => {}
        ("auth", "status") => {}
        ("auth", "token") => {
            call.act(Act::Secret(Read, "credentials/"), &call.literal(call.call.program), shell)
        }
        ("auth", _) => {
            call.act(Act::Secret(Configure, "credentials/"), &call.literal(call.call.program), shell)
        }
        ("repo", "clone") => {
            let source = target.unwrap_or(place);
            call.act(repository(Read), &source, shell);
            call.act(WRITE, call.operands.get(3).unwrap_or(&words::file_name(&source)), shell);
        }
        ("repo" | "project", "delete" | "archive") => {
            call.act(repository(Delete), &target.unwrap_or(place), shell)
        }
        ("pr" | "mr", "checkout") => {
            call.act(repository(Read), &place, shell);
            call.act(WRITE, &call.literal("."), shell);
        }
        ("release", "download") | ("run", "download") => {
            call.act(repository(Read), &place, shell);
            let folder =
                call.values(&["-D", "--dir", "-O", "--output"]).pop().unwrap_or_else(|| call.literal("."));
            call.act(WRITE, &folder, shell);
        }
        ("release", "upload" | "create") => uploaded(call, call.rest(3), &place, shell),
        ("gist", "create" | "edit") => uploaded(call, call.rest(2), &call.literal("gist"), shell),
        ("secret" | "variable" | "ssh-key" | "gpg-key" | "deploy-key" | "ruleset", action) => {
            let verb = if matches!(action, "list" | "get") { Read } else { Configure };
            call.act(Act::Secret(verb, "credentials/"), &call.literal(call.call.program), shell);
        }
        ("api", _) => {
            let act = Act::Named(api_verb(call), Repository, "api:");
            call.act(act, call.operands.get(1).unwrap_or(&place), shell);
        }
        ("alias" | "extension" | "config" | "codespace" | "cs", "list" | "get") => {}
        ("config", _) => call.act(Act::Named(Configure, Setting, "gh/"), &target.unwrap_or(place), shell),
        ("alias" | "extension" | "codespace" | "cs", _) => return false,
        (_, "list" | "view" | "status" | "diff" | "checks" | "ls" | "watch" | "show" | "get" | "") => {
            call.act(repository(Read), &place, shell);
        }
        (_, "delete") => call.act(repository(Delete), &place, shell),
        (
            "pr" | "mr" | "issue" | "repo" | "release" | "run" | "workflow" | "label" | "cache" | "ci"
            | "pipeline" | "project" | "gist",
            _,
        ) => {
            call.act(repository(Send), &place, shell);
        }
        _ => return false,
    }
    true
}

/// Files become part of a release or a gist.
fn uploaded(call: &Parsed<'_>, files: &[Word], place: &Word, shell: &mut Interpreter<'_, '_>) {
    call.act_on_each(Act::Upload, files, shell);
    let attributes: &[&'static str] = if files.is_empty() { &[] } else { &["upload"] };
    call.act_plainly(repository(Send), place, attributes, shell);
}

/// What `gh api` does, by its method: without one it sends where it is given fields.
fn api_verb(call: &Parsed<'_>) -> Verb {
    let method = call.values(&["-X", "--method"]).pop();
    let method = method.as_ref().map_or("", words::text).to_ascii_uppercase();
    let fields = call.has_any(&["-f", "--raw-field", "-F", "--field", "--input"]);
    match method.as_str() {
        "DELETE" => Delete,
        "GET" => Read,
        "" if !fields => Read,
        _ => Send,
    }
}

/// A copy between this machine and an object store.
fn store(call: &Parsed<'_>, sources: &[Word], target: &Word, shell: &mut Interpreter<'_, '_>) {
    let kept = |word: &Word| -> Option<Word> {
        if words::text(word).contains("://") {
            return Some(word.clone());
        }
        // `remote:path`
        super::network::on_host(word).map(|(name, _)| words::prefixed("remote://", &name))
    };
    let there = kept(target);
    let mut uploads = false;
    for source in sources {
        match kept(source) {
            Some(source) => call.act(Act::Url(Read), &source, shell),
            None if there.is_some() => {
                uploads = true;
                call.act(Act::Upload, source, shell);
            }
            None => call.act(READ, source, shell),
        }
    }
    match there {
        Some(target) => {
            call.act_plainly(Act::Url(Send), &target, if uploads { &["upload"] } else { &[] }, shell)
        }
        None => call.act(WRITE, target, shell),
    }
}

fn object_store(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    objects(call, 0, shell)
}

/// `gsutil cp A B`, `rclone sync A B`, `aws s3 cp A B`: the action is at that operand.
fn objects(call: &Parsed<'_>, at: usize, shell: &mut Interpreter<'_, '_>) -> bool {
    let places = call.rest(at + 1);
    let place = |word: &Word| {
        let named = super::network::on_host(word).map(|(name, _)| words::prefixed("remote://", &name));
        named.unwrap_or_else(|| word.clone())
    };
    match call.operand(at) {
        "cp" | "copy" | "mv" | "move" | "sync" | "rsync" | "put" | "get" | "copyto" | "moveto" | "mirror"
        | "bisync" => {
            let Some((target, sources)) = places.split_last() else { return true };
            let target = if sources.is_empty() { call.literal(".") } else { target.clone() };
            let sources = if sources.is_empty() { places } else { sources };
            store(call, sources, &target, shell);
            if matches!(call.operand(at), "mv" | "move" | "moveto") {
                call.act_on_each(Act::Place(Delete), &sources.iter().map(place).collect::<Vec<_>>(), shell);
            }
            let deletes =
                call.call.args.iter().any(|arg| matches!(words::text(arg), "--delete" | "-d" | "--remove"));
            if deletes || call.call.program == "rclone" && call.operand(at) == "sync" {
                call.act(Act::Place(Delete), &place(&target), shell);
            }
        }
        "rm" | "rb" | "del" | "delete" | "deletefile" | "purge" | "rmdir" | "rmdirs" => {
            call.act_on_each(Act::Place(Delete), &places.iter().map(place).collect::<Vec<_>>(), shell);
        }
        "ls" | "lsd" | "lsf" | "lsl" | "stat" | "du" | "cat" | "size" | "check" | "tree" | "hash"
        | "head" | "find" => {
            call.act_on_each(Act::Place(Read), &places.iter().map(place).collect::<Vec<_>>(), shell);
        }
        "mb" | "mkdir" | "website" | "acl" | "iam" | "presign" | "signurl" | "setmeta" | "touch" | "link" => {
            let urls: Vec<Word> =
                places.iter().map(place).filter(|word| words::text(word).contains("://")).collect();
            call.act_on_each(Act::Url(Configure), &urls, shell);
        }
        "" | "version" | "help" | "listremotes" | "about" => {}
        _ => return false,
    }
    true
}

/// Files among the values of options: `file://template.json`.
fn file_values(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) {
    for arg in call.call.args {
        for scheme in ["file://", "fileb://"] {
            if let Some((_, path)) = words::text(arg).split_once(scheme) {
                call.act(Act::Upload, &words::part(arg, path), shell);
            }
        }
    }
}

/// `aws s3 cp A B`, `aws SERVICE OPERATION`.
fn aws(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    file_values(call, shell);
    let operation = call.operand(1);
    match (call.operand(0), operation) {
        ("", _) => {}
        ("s3", _) => return objects(call, 1, shell),
        ("configure", "list" | "list-profiles" | "get") => {
            call.act(Act::Secret(Read, "credentials/"), &call.literal("aws"), shell)
        }
        ("configure" | "sso" | "login", _) => {
            call.act(Act::Secret(Configure, "credentials/"), &call.literal("aws"), shell)
        }
        ("secretsmanager" | "ssm", operation) if operation.starts_with("get") => {
            call.act(Act::Secret(Read, "credentials/aws-"), &call.literal(call.operand(0)), shell);
        }
        (
            "sts" | "iam" | "ecr",
            "get-session-token" | "assume-role" | "create-access-key" | "get-login-password",
        ) => {
            call.act(Act::Secret(Read, "credentials/"), &call.literal("aws"), shell);
        }
        (service, operation) => {
            let verb = intent([operation].into_iter());
            call.act(Act::Named(verb, Setting, "aws/"), &call.literal(service), shell);
            if service == "s3api" && operation == "get-object" {
                call.act_on_each(WRITE, call.operands.last().map_or(&[], std::slice::from_ref), shell);
            }
        }
    }
    true
}

/// `gcloud GROUP… OPERATION`, `az GROUP… OPERATION`.
fn google(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    file_values(call, shell);
    let texts: Vec<&str> = call.operands.iter().map(words::text).collect();
    if texts.is_empty() {
        return true;
    }
    if call.operand(0) == "storage" && call.call.program == "gcloud" {
        return objects(call, if matches!(call.operand(1), "buckets" | "objects") { 2 } else { 1 }, shell);
    }
    let secrets = texts.iter().any(|text| {
        ["token", "credential", "secret", "password", "keys"].iter().any(|part| text.contains(part))
    });
    let verb = intent(texts.iter().copied());
    let name = call.literal(call.call.program);
    if secrets || matches!(call.operand(0), "auth" | "login" | "keyvault") {
        call.act(Act::Secret(verb, "credentials/"), &name, shell);
    } else {
        let group = call.literal(&format!("{}/{}", call.call.program, call.operand(0)));
        call.act(Act::Named(verb, Setting, ""), &group, shell);
    }
    !texts.iter().any(|text| matches!(*text, "ssh" | "run-command" | "scp" | "invoke" | "query"))
}

/// `terraform plan`, `apply`, `destroy` and what is like it.
fn terraform(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let destroys = call.call.args.iter().any(|arg| matches!(words::text(arg), "-destroy" | "--destroy"));
    let act = |verb, shell: &mut Interpreter<'_, '_>| {
        call.act(Act::Named(verb, Setting, "infrastructure/"), &call.literal("*"), shell)
    };
    match call.operand(0) {
        "plan" | "show" | "output" | "graph" | "providers" | "version" | "console" | "preview" | "synth"
        | "diff" | "logs" | "list" => {
            call.act(READ, &call.literal("."), shell);
            act(Read, shell);
        }
        "validate" | "" | "help" | "login" | "whoami" => call.act(READ, &call.literal("."), shell),
        "fmt" | "init" | "get" | "new" | "build" | "package" | "workspace" | "stack" | "config" => {
            call.act(WRITE, &call.literal("."), shell)
        }
        "destroy" | "down" | "remove" | "delete" => act(Delete, shell),
        "apply" | "up" | "deploy" if destroys => act(Delete, shell),
        "apply" | "up" | "deploy" | "import" | "refresh" | "taint" | "untaint" | "bootstrap" | "update" => {
            act(Configure, shell)
        }
        "state" if matches!(call.operand(1), "list" | "show" | "pull") => act(Read, shell),
        "state" => act(Configure, shell),
        _ => return false,
    }
    true
}

/// `ansible HOSTS -m MODULE -a ARGUMENTS`, `ansible-playbook FILE`.
fn ansible(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    if call.call.program == "ansible-playbook" {
        call.act_on_each(EXECUTE, &call.operands, shell);
        call.act(Act::Named(Configure, Setting, "infrastructure/"), &call.literal("*"), shell);
        return true;
    }
    for option in ["--ssh-common-args", "--ssh-extra-args"] {
        if call.has(option) {
            return false;
        }
    }
    let module = call.values(&["-m", "--module-name"]).pop();
    let module = module.as_ref().map_or("command", words::text);
    call.act_on_each(Act::Host(Send), &call.operands, shell);
    match module.rsplit('.').next().unwrap_or_default() {
        "ping" | "setup" | "debug" => {}
        "command" | "shell" | "raw" => {
            let command = call.values(&["-a", "--args"]);
            shell.remote(|shell| command.iter().for_each(|command| shell.script(command)));
        }
        _ => call.act(Act::Named(Configure, Setting, "infrastructure/"), &call.literal("*"), shell),
    }
    true
}
