//! Containers.
//!
//! What runs in a container is *remote*: its paths are not this machine's, but for those that are mounted.

use portcullis_core::effect::ResourceKind::{Container, Setting};
use portcullis_core::effect::Verb::{self, Configure, Delete, Execute, Read, Send, Write};

use super::super::interpreter::Interpreter;
use super::super::word::Word;
use super::options::Parsed;
use super::spec::*;
use super::{kubernetes, words};

const IMAGE: Act = Act::Named(Read, Container, "");

const fn named(verb: Verb) -> Act {
    Act::Named(verb, Container, "")
}

const RUN: &[Opt] = &[
    values("-v --volume --mount --volumes-from --device --pid --ipc --network --net --userns --uts"),
    values("--cap-add --cap-drop --security-opt --cgroupns --cgroup-parent"),
    values(
        "-e --env -p --publish --name -w --workdir -u --user --entrypoint -l --label -m --memory --memory-swap",
    ),
    values(
        "-c --cpu-shares --cpus --cpuset-cpus --gpus -h --hostname --add-host --dns --dns-search --expose --ip --link",
    ),
    values(
        "--log-driver --log-opt --platform --pull --restart --runtime --shm-size --stop-signal --stop-timeout",
    ),
    values(
        "--storage-opt --sysctl --tmpfs --ulimit --health-cmd --health-interval --isolation --network-alias",
    ),
    values(
        "--detach-keys -a --attach --group-add --annotation --blkio-weight --pids-limit --kernel-memory --domainname",
    ),
    does("--env-file --label-file", READ),
    does("--cidfile --iidfile", WRITE),
    flags(
        "--privileged -d --detach -i --interactive -t --tty --rm --init --read-only -P --publish-all -q --quiet",
    ),
    flags(
        "--sig-proxy --no-healthcheck --oom-kill-disable --disable-content-trust --rmi --replace --tls-verify",
    ),
    HELP,
];
const EXEC: &[Opt] = &[
    values("-e --env -u --user -w --workdir --detach-keys --index"),
    does("--env-file", READ),
    flags("-d --detach -i --interactive -t --tty --privileged -T --no-TTY"),
];
const LIST: &[Opt] =
    &[values("-f --filter --format -n --last --since --until --tail"), flags("-a --all -q --quiet")];

const fn looks(names: &'static str) -> Spec {
    spec(names).lenient().options(LIST).each(named(Read))
}
const CHANGE: &[Opt] = &[values("-t --time -s --signal -m --memory --cpus --restart -n")];
const REMOVE: &[Opt] = &[force("-f --force"), values("-t --time"), flags("-v --volumes -a --all")];
const PRUNE: &[Opt] = &[values("--filter")];

const fn changes(names: &'static str) -> Spec {
    spec(names).lenient().each(named(Configure)).options(CHANGE)
}
const fn removes(names: &'static str) -> Spec {
    spec(names).lenient().each(named(Delete)).options(REMOVE)
}
const fn prunes(names: &'static str, what: &'static [(Act, &'static str)]) -> Spec {
    spec(names).lenient().always(what).options(PRUNE)
}

const PRUNED: &[(Act, &str)] = &[(named(Delete), "*")];

pub(super) const SPECS: &[Spec] = &[
    spec("docker podman nerdctl").subcommands(DOCKER).options(&[
        does("-H --host --url", Act::Place(Send)),
        does("--config", SETTINGS),
        does("--tlscacert --tlscert --tlskey --identity", READ),
        values("-c --context --connection -l --log-level -n --namespace -a --address --root --runroot --storage-driver"),
        flags("-D --debug --tls --tlsverify -v --version --remote"),
        HELP,
    ]),
    spec("docker-compose podman-compose").options(COMPOSE_OPTIONS).subcommands(COMPOSE),
    spec("buildah kaniko img").lenient().stops().by(|call, shell| {
        if matches!(call.operand(0), "bud" | "build") {
            call.act(Act::Tree(Read), &call.literal("."), shell);
        }
        matches!(call.operand(0), "bud" | "build" | "images" | "containers" | "version" | "")
    }),
    spec("skopeo crane").lenient().by(|call, shell| match call.operand(0) {
        "inspect" | "list-tags" | "manifest" | "digest" | "ls" | "config" => {
            call.act_on_each(IMAGE, call.rest(1), shell);
            true
        }
        _ => {
            call.act_on_each(named(Send), call.rest(1), shell);
            false
        }
    }),
];

const DOCKER: &[Spec] = &[
    spec("run create").stops().options(RUN).by(run),
    spec("exec").stops().options(EXEC).by(exec),
    spec("build").options(BUILD).by(build),
    spec("logs attach").lenient().each(named(Read)).options(&[values("-n --tail --since --until")]),
    looks("ps images inspect top stats port history diff events info version search wait help"),
    changes("start stop restart pause unpause rename update tag kill resize"),
    removes("rm rmi remove"),
    spec("pull").each(IMAGE).lenient().options(&[values("--platform")]),
    spec("push").each(named(Send)).lenient(),
    spec("login logout").lenient().always(&[(setting("registry/"), "docker")]),
    spec("cp").by(copy).lenient(),
    spec("save export").each(IMAGE).lenient().options(&[does("-o --output", WRITE)]),
    spec("load").lenient().always(&[(named(Write), "*")]).options(&[does("-i --input", READ)]),
    spec("import").operands(Operands::First(Act::Place(Read), &Operands::Each(named(Write)))).lenient(),
    spec("commit").lenient().each(named(Write)).options(&[values("-a -c -m")]),
    spec("image").lenient().subcommands(&[
        looks("ls list inspect history"),
        removes("rm remove"),
        prunes("prune", PRUNED),
        spec("build").options(BUILD).by(build),
        spec("pull").each(IMAGE).lenient(),
        spec("push").each(named(Send)).lenient(),
        changes("tag"),
        spec("save").each(IMAGE).lenient().options(&[does("-o --output", WRITE)]),
        spec("load").lenient().always(&[(named(Write), "*")]).options(&[does("-i --input", READ)]),
    ]),
    spec("container").lenient().subcommands(&[
        spec("run create").stops().options(RUN).by(run),
        spec("exec").stops().options(EXEC).by(exec),
        spec("logs attach").lenient().each(named(Read)).options(&[values("-n --tail --since --until")]),
        looks("ls list ps inspect top stats port diff"),
        changes("start stop restart pause unpause kill rename update"),
        removes("rm remove"),
        prunes("prune", PRUNED),
        spec("cp").by(copy).lenient(),
    ]),
    spec("volume").lenient().subcommands(&[
        spec("ls list inspect").lenient().options(LIST).each(Act::Named(Read, Container, "volumes/")),
        spec("create")
            .lenient()
            .each(Act::Named(Write, Container, "volumes/"))
            .options(&[values("-d -o --driver --opt --label")]),
        spec("rm remove")
            .lenient()
            .each(Act::Named(Delete, Container, "volumes/"))
            .options(&[force("-f --force")]),
        prunes("prune", &[(Act::Named(Delete, Container, "volumes/"), "*")]),
    ]),
    spec("network").lenient().subcommands(&[
        spec("ls list inspect").lenient().options(LIST).each(Act::Named(Read, Container, "networks/")),
        spec("create connect disconnect").lenient().each(Act::Named(Configure, Container, "networks/")),
        spec("rm remove").lenient().each(Act::Named(Delete, Container, "networks/")),
        prunes("prune", &[(Act::Named(Delete, Container, "networks/"), "*")]),
    ]),
    spec("system").lenient().subcommands(&[
        spec("df info events").lenient(),
        spec("prune")
            .lenient()
            .by(|call, shell| {
                call.act(named(Delete), &call.literal("*"), shell);
                if call.has("--volumes") {
                    call.act(Act::Named(Delete, Container, "volumes/"), &call.literal("*"), shell);
                }
                true
            })
            .options(&[force("-f --force"), flags("-a --all --volumes"), values("--filter")]),
    ]),
    spec("builder").lenient().subcommands(&[prunes("prune", PRUNED), spec("build").options(BUILD).by(build)]),
    spec("buildx").lenient().subcommands(&[
        spec("build b").options(BUILD).by(build),
        spec("ls inspect du version imagetools").lenient(),
        spec("create use rm prune bake")
            .lenient()
            .always(&[(Act::Named(Configure, Setting, "docker/"), "builder")]),
    ]),
    spec("compose").options(COMPOSE_OPTIONS).subcommands(COMPOSE),
    spec("context").lenient().subcommands(&[
        spec("ls list show inspect").lenient(),
        spec("use create rm update").lenient().always(&[(setting("docker/"), "context")]),
    ]),
];

const BUILD: &[Opt] = &[
    does("-f --file", READ),
    values(
        "-t --tag --build-arg --target --platform --label --network --add-host --builder --cache-to --progress",
    ),
    values("--shm-size --ulimit --memory -m --isolation --attest --provenance --sbom --annotation --allow"),
    values("--ssh --secret --cache-from --build-context -o --output"),
    does("--iidfile --metadata-file", WRITE),
    flags("--no-cache --pull --push --load -q --quiet --rm --force-rm --squash --compress --check -D"),
    HELP,
];

const COMPOSE_OPTIONS: &[Opt] = &[
    does("-f --file --env-file", READ),
    value("--project-directory", Role::Base),
    values("-p --project-name --profile --ansi --parallel --progress"),
    flags("--compatibility --all-resources -v --version --verbose"),
    flag("--dry-run", Role::Dry),
    HELP,
];

const COMPOSE: &[Spec] = &[
    spec("up start restart build create pull scale watch")
        .lenient()
        .always(&[(named(Execute), "compose"), (READ, ".")])
        .options(&[values(
            "-t --timeout --scale --exit-code-from --pull --attach --wait-timeout --build-arg",
        )]),
    spec("down")
        .lenient()
        .by(|call, shell| {
            call.act(named(Delete), &call.literal("compose"), shell);
            if call.has_any(&["-v", "--volumes"]) {
                call.act(Act::Named(Delete, Container, "volumes/"), &call.literal("*"), shell);
            }
            true
        })
        .options(&[flags("-v --volumes --remove-orphans"), values("-t --timeout --rmi")]),
    spec("rm").lenient().always(&[(named(Delete), "compose")]).options(&[force("-f --force")]),
    spec("stop kill pause unpause").lenient().always(&[(named(Configure), "compose")]),
    spec("ps logs config images top ls port version events stats volumes").lenient().always(READS_HERE),
    spec("exec").stops().options(EXEC).by(exec),
    spec("run").stops().options(RUN).by(run),
    spec("push").lenient().always(&[(named(Send), "compose")]),
    spec("cp").by(copy).lenient(),
];

/// `docker run OPTIONS IMAGE COMMAND…`.
fn run(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let Some((image, command)) = call.operands.split_first() else { return true };
    let open = call.has_any(&["--privileged"])
        || call
            .values(&["--pid", "--ipc", "--userns", "--uts", "--cgroupns"])
            .iter()
            .any(|value| words::text(value) == "host")
        || call
            .values(&["--cap-add"])
            .iter()
            .any(|value| matches!(words::text(value), "ALL" | "SYS_ADMIN" | "SYS_PTRACE" | "SYS_MODULE"));
    let start = |shell: &mut Interpreter<'_, '_>| call.act(named(Execute), image, shell);
    if open {
        shell.privileged(start);
    } else {
        start(shell);
    }
    mounts(call, shell);
    inside(&call.values(&["--entrypoint"]), command, call, shell);
    true
}

/// Folders of this machine that the container can change.
fn mounts(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) {
    let both = Act::All(&[Act::Tree(Read), Act::Tree(Write)]);
    for volume in call.values(&["-v", "--volume"]) {
        let Some((source, rest)) = words::split(&volume, ':') else { continue };
        // A name without a slash is a volume, not a folder.
        if words::text(&source).contains(['/', '.', '~', '*']) {
            let options = words::text(&rest).rsplit(':').next().unwrap_or_default();
            let act = if options.split(',').any(|option| option == "ro") { Act::Tree(Read) } else { both };
            call.act(act, &source, shell);
        }
    }
    for mount in call.values(&["--mount"]) {
        let fields: Vec<&str> = words::text(&mount).split(',').collect();
        let field = |names: &[&str]| {
            fields.iter().find_map(|field| {
                let (name, value) = field.split_once('=')?;
                names.contains(&name).then_some(value)
            })
        };
        let bind = field(&["type"]) == Some("bind");
        if let Some(source) = field(&["source", "src"]).filter(|source| bind || source.contains('/')) {
            let only_read =
                fields.iter().any(|field| matches!(*field, "readonly" | "ro" | "readonly=true" | "ro=true"));
            call.act(if only_read { Act::Tree(Read) } else { both }, &words::part(&mount, source), shell);
        }
    }
    for device in call.values(&["--device"]) {
        let source = words::split(&device, ':').map_or_else(|| device.clone(), |(source, _)| source);
        call.act(Act::All(&[READ, WRITE]), &source, shell);
    }
}

fn inside(entry: &[Word], command: &[Word], call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) {
    let command: Vec<Word> = entry.last().into_iter().chain(command).cloned().collect();
    if !command.is_empty() {
        shell.remote(|shell| shell.run(&command, call.call.range.clone()));
    }
}

/// `docker exec OPTIONS CONTAINER COMMAND…`.
fn exec(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let Some((container, command)) = call.operands.split_first() else { return true };
    call.act(named(Execute), container, shell);
    inside(&[], command, call, shell);
    true
}

/// `docker build FOLDER`: the folder goes to the builder.
fn build(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    match call.operands.first() {
        Some(place) if words::text(place).contains("://") || words::text(place).starts_with("git@") => {
            call.act(Act::Repository(Read), place, shell);
        }
        Some(folder) => call.act(Act::Tree(Read), folder, shell),
        None => {}
    }
    let tags = call.values(&["-t", "--tag"]);
    call.act_on_each(named(Write), &tags, shell);
    if call.has("--push") {
        call.act_on_each(named(Send), &tags, shell);
    }
    for field in call.values(&["--secret", "--ssh", "--build-context", "-o", "--output"]) {
        let text = words::text(&field);
        for (name, value) in text.split(',').filter_map(|field| field.split_once('=')) {
            let act = match name {
                "src" | "source" => READ,
                "dest" => WRITE,
                "type" | "id" | "name" | "env" | "push" => continue,
                _ => Act::Place(Read),
            };
            call.act(act, &words::part(&field, value), shell);
        }
        if !text.contains('=') && call.values(&["-o", "--output"]).contains(&field) {
            call.act(WRITE, &field, shell);
        }
    }
    true
}

/// `docker cp CONTAINER:PATH PATH` and back.
fn copy(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    kubernetes::copy(named(Read), named(Write), call, shell);
    true
}
