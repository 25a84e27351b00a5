//! `kubectl` and `helm`.

use portcullis_core::effect::ResourceKind::{Cluster, Setting};
use portcullis_core::effect::Verb::{self, Configure, Delete, Execute, Read, Send, Write};

use super::super::interpreter::Interpreter;
use super::super::word::Word;
use super::options::Parsed;
use super::spec::*;
use super::{network, words};

const fn cluster(verb: Verb) -> Act {
    Act::Named(verb, Cluster, "")
}

const GLOBALS: &[Opt] = &[
    does("--kubeconfig --client-key --client-certificate --certificate-authority", READ),
    does("-s --server", Act::Url(Send)),
    values(
        "-n --namespace --context --cluster --user --token --as --as-group --as-uid --request-timeout -v --v",
    ),
    values("--cache-dir --profile-output --tls-server-name --username --password"),
    flags("--insecure-skip-tls-verify --match-server-version --warnings-as-errors"),
    HELP,
];
/// Manifests, by file or address.
const FILES: Opt = does("-f --filename -k --kustomize", Act::Place(Read));
const CHANGE: &[Opt] = &[
    FILES,
    Opt { names: "--dry-run", takes: Takes::Attached, role: Role::Dry },
    does("--patch-file --from-file --from-env-file --cert --key", READ),
    values(
        "-l --selector -o --output -p --patch --type --replicas --image --port --target-port --name --field-manager",
    ),
    values(
        "--field-selector --grace-period --timeout --from-literal --overrides --limits --requests --resource",
    ),
    values(
        "-c --container --subresource --current-replicas --template --protocol --to-revision --revision --min --max",
    ),
    values(
        "--cpu-percent --pod-selector --serviceaccount --role --clusterrole --verb --duration --for --docker-server",
    ),
    force("--force --force-conflicts"),
    flags(
        "-A --all-namespaces --all -R --recursive --now --wait --record --overwrite --local --server-side --prune",
    ),
    flags(
        "--ignore-not-found --validate --save-config --ignore-daemonsets --delete-emptydir-data --list -i --edit",
    ),
    flags(
        "--windows-line-endings --append-hash --generate-name -w --watch --ignore-errors --disable-eviction",
    ),
];

pub(super) const SPECS: &[Spec] = &[
    spec("kubectl oc kubecolor microk8s.kubectl").options(GLOBALS).subcommands(&[
        spec("logs").lenient().options(&[values("-l --selector -c --container --since --since-time --tail --max-log-requests"), flags("-f --follow -p --previous")]).by(|call, shell| {
            call.act_on_each(Act::Named(Read, Cluster, "pods/"), call.rest(0).get(..1).unwrap_or_default(), shell);
            true
        }),
        spec("get describe top explain api-resources api-versions cluster-info version events diff wait auth options completion kustomize can-i")
            .lenient()
            .options(&[FILES, values("-l --selector -o --output --field-selector -c --container --since --since-time --tail --sort-by --for --timeout -L --template --chunk-size")])
            .by(|call, shell| {
                let secrets = |word: &Word| {
                    words::text(word).split([',', '/']).any(|kind| matches!(kind, "secret" | "secrets"))
                };
                if call.subcommand != "explain" && call.operands.iter().any(secrets) {
                    call.act(Act::Secret(Read, "credentials/"), &call.literal("kubernetes"), shell);
                }
                resources(call, Read, &[], shell)
            }),
        spec("apply create edit scale patch annotate label set replace expose autoscale rollout taint cordon uncordon certificate")
            .options(CHANGE)
            .by(|call, shell| resources(call, Write, &[], shell)),
        spec("delete").options(CHANGE).by(delete),
        spec("drain").options(CHANGE).by(|call, shell| resources(call, Delete, &[], shell)),
        spec("exec").by(exec).options(&[
            values("-c --container --pod-running-timeout"),
            FILES,
            flags("-i --stdin -t --tty -q --quiet"),
        ]),
        spec("run debug attach").by(run).options(&[
            values("--image -l --labels --env --port --restart --overrides --limits --requests -c --container --target"),
            values("--copy-to --profile --image-pull-policy --pod-running-timeout --serviceaccount --override-type --set-image"),
            FILES,
            Opt { names: "--dry-run", takes: Takes::Attached, role: Role::Dry },
            values("-o --output --grace-period"),
            flags("-i --stdin -t --tty --rm --attach --command --expose -q --quiet --privileged --share-processes --replace --force --leave-stdin-open"),
        ]),
        spec("cp").lenient().by(|call, shell| {
            copy(cluster(Read), cluster(Write), call, shell);
            true
        }).options(&[values("-c --container")]),
        spec("port-forward proxy").lenient().by(|call, shell| {
            call.act_on_each(cluster(Read), call.rest(0).get(..1).unwrap_or_default(), shell);
            true
        }).options(&[values("--address -p --port --pod-running-timeout")]),
        spec("config").lenient().by(|call, shell| {
            match call.operand(0) {
                "view" | "get-contexts" | "current-context" | "get-clusters" | "get-users" => {
                    call.act(READ, &call.literal("~/.kube/config"), shell);
                }
                _ => call.act(Act::Named(Configure, Setting, "kubernetes/"), &call.literal("config"), shell),
            }
            true
        }),
    ]),
    spec("helm").options(&[
        does("--kubeconfig --kube-ca-file", READ),
        values("-n --namespace --kube-context --kube-token --kube-apiserver --registry-config --repository-config"),
        flags("--debug"),
        HELP,
    ]).subcommands(&[
        spec("install upgrade").operands(Operands::First(Act::Named(Write, Cluster, "releases/"), &Operands::Each(Act::Place(Read)))).options(&[
            does("-f --values", Act::Place(Read)),
            does("--set-file", Act::Text),
            does("--repo", Act::Url(Read)),
            does("--post-renderer", Act::Script),
            values("--set --set-string --set-json --version --timeout --description -o --output --username --password"),
            values("--post-renderer-args --history-max --name-template"),
            Opt { names: "--dry-run", takes: Takes::Attached, role: Role::Dry },
            force("--force"),
            flags("-i --install --create-namespace --wait --wait-for-jobs --atomic --reuse-values --reset-values --devel"),
            flags("--skip-crds --dependency-update --generate-name -g --cleanup-on-fail --no-hooks --replace --render-subchart-notes"),
        ]),
        spec("uninstall delete del un").each(Act::Named(Delete, Cluster, "releases/")).lenient().options(&[flag("--dry-run", Role::Dry)]),
        spec("rollback test").operands(Operands::First(Act::Named(Write, Cluster, "releases/"), &Operands::Each(Act::Text))).lenient(),
        spec("list ls status get history show search version env template lint verify").lenient().each(Act::Text).options(&[
            does("-f --values", Act::Place(Read)),
            does("--output-dir", WRITE),
            values("--set --version"),
        ]),
        spec("repo").lenient().always(&[(setting("helm/"), "repo")]).by(|call, shell| {
            call.act_on_each(Act::Place(Read), call.rest(2), shell);
            true
        }),
        spec("dependency dep package create").lenient().always(WRITES_HERE),
        spec("pull push").each(Act::Place(Send)).lenient().always(WRITES_HERE),
        spec("registry").lenient().always(&[(setting("registry/"), "helm")]),
    ]),
    spec("kind minikube k3d kubeadm k3s eksctl kubectx kubens").lenient().by(|call, shell| {
        match call.operand(0) {
            "get" | "version" | "status" | "list" | "ip" | "" | "help" | "profile" => {}
            "delete" | "reset" => call.act(cluster(Delete), &call.literal("cluster"), shell),
            _ => call.act(cluster(Configure), &call.literal("cluster"), shell),
        }
        true
    }),
];

/// The resources that the operands name: `pods web`, `pods/web`, `pods`.
fn resources(call: &Parsed<'_>, verb: Verb, marks: &[&'static str], shell: &mut Interpreter<'_, '_>) -> bool {
    let from_file = call.has_any(&["-f", "--filename", "-k", "--kustomize"]);
    let skip =
        usize::from(matches!(call.subcommand.as_str(), "rollout" | "set" | "auth" | "certificate" | "top"));
    let operands = call.rest(skip);
    let changes: &dyn Fn(&Word) -> bool =
        &|word| !words::text(word).contains('=') && !words::text(word).ends_with('-');
    let names: Vec<&Word> = operands.iter().filter(|word| changes(word)).collect();
    if from_file {
        call.act_plainly(cluster(verb), &call.literal("manifest"), marks, shell);
    }
    let Some((kind, names)) = names.split_first() else { return true };
    let alone = matches!(call.subcommand.as_str(), "cordon" | "uncordon" | "drain");
    if alone {
        call.act_plainly(Act::Named(verb, Cluster, "nodes/"), kind, marks, shell);
    } else if names.is_empty() || words::text(kind).contains('/') {
        call.act_plainly(cluster(verb), kind, marks, shell);
        names.iter().for_each(|name| call.act_plainly(cluster(verb), name, marks, shell));
    } else {
        for name in names {
            let text = format!("{}/{}", words::text(kind), words::text(name));
            let known = kind.value.is_some();
            let name = if known { words::part(name, &text) } else { Word::unknown(name.range.clone()) };
            call.act_plainly(cluster(verb), &name, marks, shell);
        }
    }
    true
}

fn delete(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let mut marks = Vec::new();
    if call.has_any(&["--all", "-A", "--all-namespaces"]) {
        marks.push("unbounded");
    }
    if call.has("--force") {
        marks.push("force");
    }
    resources(call, Delete, &marks, shell)
}

/// `kubectl exec POD -- COMMAND…`.
fn exec(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let Some(pod) = call.operands.first() else { return true };
    call.act(Act::Named(Execute, Cluster, "pods/"), pod, shell);
    let command = call.rest(call.dashes.unwrap_or(1).max(1));
    if !command.is_empty() {
        shell.remote(|shell| shell.run(command, call.call.range.clone()));
    }
    true
}

/// `kubectl run NAME --image=IMAGE -- COMMAND…`.
fn run(call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    let Some(pod) = call.operands.first() else { return true };
    call.act(Act::Named(Execute, Cluster, "pods/"), pod, shell);
    if call.has("--overrides") {
        return false;
    }
    let command = call.rest(call.dashes.unwrap_or(1).max(1));
    if !command.is_empty() {
        shell.remote(|shell| shell.run(command, call.call.range.clone()));
    }
    true
}

/// Copies between this machine and `POD:PATH` or `CONTAINER:PATH`.
pub(super) fn copy(from: Act, to: Act, call: &Parsed<'_>, shell: &mut Interpreter<'_, '_>) {
    let [source, target] = call.operands.as_slice() else { return };
    let place = |word: &Word| {
        let split = network::on_host(word);
        // `namespace/pod:path`
        split.or_else(|| {
            words::split(word, ':').filter(|(pod, _)| !words::text(pod).starts_with(['/', '.', '~']))
        })
    };
    match (place(source), place(target)) {
        (Some((pod, _)), _) => {
            call.act(from, &pod, shell);
            call.act(WRITE, target, shell);
        }
        (None, Some((pod, path))) => {
            call.act(Act::Upload, source, shell);
            call.act(to, &pod, shell);
            shell.remote(|shell| call.act(WRITE, &path, shell));
        }
        (None, None) => {
            call.act(READ, source, shell);
            call.act(WRITE, target, shell);
        }
    }
}
