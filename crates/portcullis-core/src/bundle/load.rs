//! From files to a [`Bundle`]: each file is read on its own, then what they say of each other is checked.

mod checks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use self::checks::{check_credentials, check_oauth, check_policies, check_tools};
use super::approvals;
use super::authority::{self, AuthoritySettings};
use super::diagnostic::{Diagnostic, nearest};
use super::flow::FlowSettings;
use super::ledger::LedgerSettings;
use super::loops::LoopSettings;
use super::placed::{GivenAttribute, Placed, VERDICTS, placed};
use super::settings::{AccessSettings, EffectSettings, FunctionRole, TableColumns};
use super::toml_table::{File, Table};
use super::{
    Activities, Activity, ApprovalSettings, Bundle, CallModels, ContainSettings, ContractModel,
    ContractSettings, Credential, EngineSettings, MonitorSettings, Plan, Programs, Scores,
    VerificationSettings, WorkSettings, activities, containment, contract_model, contracts, credentials,
    engines, escalation, flow, ledger, loops, models, monitors, oauth, plans, policies, read_effects, scores,
    sequences, tools, verification, work,
};
use crate::effect::AttributeType;
use crate::escalation::EscalationSettings;
use crate::event::Mode;
use crate::id::{Digest, DigestBuilder};
use crate::keywords::KeywordIndex;
use crate::limits::{ACTIVITIES_MAX, BUNDLE_FILE_BYTES_MAX, BUNDLE_FILES_MAX, CONTRACTS_MAX};
use crate::policy::RuntimePolicy;
use crate::principal::Attribute;
use crate::tool::{Registry, Tool};
use crate::verdict::Verdict;

const MAIN_FILE: &str = "portcullis.toml";
const MONITORS_FILE: &str = "monitors.toml";
const ENGINES_FILE: &str = "engines.toml";
/// The one version of the bundle layout.
const BUNDLE_VERSION: u32 = 1;

#[derive(Default)]
struct Parts {
    main: Option<Main>,
    tools: Vec<Placed<Tool>>,
    policies: Vec<Placed<RuntimePolicy>>,
    allowed_types: Vec<Placed<String>>,
    plans: Vec<Placed<Plan>>,
    plan_tools: Vec<Placed<String>>,
    knowledge: BTreeMap<String, String>,
    tests: BTreeMap<String, String>,
    tables: BTreeMap<String, TableColumns>,
    functions: BTreeMap<String, FunctionRole>,
    activities: Vec<(Activity, Diagnostic)>,
    access: BTreeMap<String, String>,
    programs: BTreeMap<String, String>,
    modules: BTreeMap<String, String>,
    engines: Vec<EngineSettings>,
    monitors: Option<MonitorSettings>,
    contracts: Vec<Placed<ContractSettings>>,
    contract_tools: Vec<Placed<String>>,
    sequences: sequences::Parts,
}

impl Parts {
    /// The files of a folder that are kept as they are: others read them.
    fn as_text(&mut self, folder: &str, extension: Option<&str>) -> Option<&mut BTreeMap<String, String>> {
        match (folder, extension) {
            ("access", Some("cedar")) => Some(&mut self.access),
            ("programs", Some("star")) => Some(&mut self.programs),
            ("modules", Some("star")) => Some(&mut self.modules),
            ("tests", Some("md")) => Some(&mut self.tests),
            _ => None,
        }
    }
}

struct Main {
    mode: Mode,
    unknown_tools: Verdict,
    trust_hints: bool,
    policy: Option<Placed<String>>,
    approvals: ApprovalSettings,
    credentials: Vec<Placed<Credential>>,
    credential_attributes: Vec<GivenAttribute>,
    oauth: oauth::Read,
    effects: EffectSettings,
    contain: containment::Read,
    ledger: LedgerSettings,
    work: WorkSettings,
    loops: LoopSettings,
    flow: FlowSettings,
    authority: (AuthoritySettings, Vec<authority::Entry>),
    escalation: EscalationSettings,
    scores: Scores,
    verification: Option<VerificationSettings>,
    /// Tools that the settings of verification name.
    sources: Vec<Placed<String>>,
    access: AccessSettings,
    contract_model: Option<ContractModel>,
    call_models: CallModels,
}

pub(super) fn load(files: &BTreeMap<String, Vec<u8>>) -> Result<Bundle, Vec<Diagnostic>> {
    let mut diagnostics = Vec::new();
    let mut parts = Parts::default();
    if files.len() > BUNDLE_FILES_MAX {
        let message = format!("the bundle has {} files; the limit is {BUNDLE_FILES_MAX}", files.len());
        return Err(vec![Diagnostic::new(MAIN_FILE, "", 0..0, message)]);
    }
    for (path, bytes) in files {
        read_file(path, bytes, &mut parts, &mut diagnostics);
    }
    if parts.main.is_none() && !files.contains_key(MAIN_FILE) {
        diagnostics.push(
            Diagnostic::new(MAIN_FILE, "", 0..0, "the bundle has no `portcullis.toml`")
                .help("`portcullis init -- COMMAND` drafts a bundle"),
        );
    }
    let bundle = assemble(parts, digest(files), &mut diagnostics);
    match bundle {
        Some(bundle) if diagnostics.is_empty() => Ok(bundle),
        _ => Err(diagnostics),
    }
}

pub(super) fn digest(files: &BTreeMap<String, Vec<u8>>) -> Digest {
    let mut digest = DigestBuilder::new("portcullis/bundle/v1");
    for (path, bytes) in files {
        digest = digest.part(path.as_bytes()).part(bytes);
    }
    digest.finish()
}

fn read_file(path: &str, bytes: &[u8], parts: &mut Parts, diagnostics: &mut Vec<Diagnostic>) {
    if bytes.len() > BUNDLE_FILE_BYTES_MAX {
        let message = format!("the file has {} bytes; the limit is {BUNDLE_FILE_BYTES_MAX}", bytes.len());
        diagnostics.push(Diagnostic::new(path, "", 0..0, message));
        return;
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => read_text(path, text, parts, diagnostics),
        Err(error) => {
            let valid = String::from_utf8_lossy(bytes.get(..error.valid_up_to()).unwrap_or_default());
            let at = error.valid_up_to();
            diagnostics.push(Diagnostic::new(path, &valid, at..at, "the file is not UTF-8 text"));
        }
    }
}

/// What a bundle may hold besides READMEs and pictures, for who misspelt it.
const KNOWN: [&str; 16] = [
    MAIN_FILE,
    MONITORS_FILE,
    ENGINES_FILE,
    "knowledge.json",
    "tools/",
    "policies/",
    "plans/",
    "tests/",
    "tables/",
    "functions/",
    "activities/",
    "access/",
    "programs/",
    "modules/",
    "contracts/",
    "sequences/",
];

fn read_text(path: &str, text: &str, parts: &mut Parts, diagnostics: &mut Vec<Diagnostic>) {
    let folder = path.split_once('/').map_or("", |(folder, _)| folder);
    let extension = path.rsplit_once('.').map(|(_, extension)| extension);
    if let Some(files) = parts.as_text(folder, extension) {
        files.insert(path.to_owned(), text.to_owned());
        return;
    }
    match (folder, extension) {
        ("", Some("toml")) if path == MAIN_FILE => {
            parts.main = with_table(path, text, diagnostics, read_main);
        }
        ("", Some("toml")) if path == MONITORS_FILE => {
            parts.monitors = Some(monitors::read(path, text, diagnostics));
        }
        ("tools", Some("toml")) => {
            parts.tools.extend(with_table(path, text, diagnostics, tools::read).unwrap_or_default());
        }
        ("policies", Some("toml")) => {
            for (policy, types) in with_table(path, text, diagnostics, policies::read).unwrap_or_default() {
                parts.policies.push(policy);
                parts.allowed_types.extend(types);
            }
        }
        ("plans", Some("toml")) => {
            for (plan, tools) in with_table(path, text, diagnostics, plans::read).unwrap_or_default() {
                parts.plans.push(plan);
                parts.plan_tools.extend(tools);
            }
        }
        ("tables", Some("toml")) => {
            let tables = with_table(path, text, diagnostics, read_effects::tables).unwrap_or_default();
            read_effects::merge(&mut parts.tables, tables, path, "table", diagnostics);
        }
        ("functions", Some("toml")) => {
            let functions = with_table(path, text, diagnostics, read_effects::functions).unwrap_or_default();
            read_effects::merge(&mut parts.functions, functions, path, "function", diagnostics);
        }
        ("activities", Some("toml")) => {
            parts
                .activities
                .extend(with_table(path, text, diagnostics, activities::read).unwrap_or_default());
        }
        ("contracts", Some("toml")) => {
            for (contract, tools) in with_table(path, text, diagnostics, contracts::read).unwrap_or_default()
            {
                parts.contracts.push(contract);
                parts.contract_tools.extend(tools);
            }
        }
        ("sequences", Some("toml")) => {
            with_table(path, text, diagnostics, |file, table| parts.sequences.read(file, table));
        }
        // One file, so that there is one list.
        ("", Some("toml")) if path == ENGINES_FILE => {
            parts.engines = with_table(path, text, diagnostics, engines::read).unwrap_or_default();
        }
        ("", Some("json")) if path == "knowledge.json" => match read_knowledge(path, text) {
            Ok(knowledge) => parts.knowledge = knowledge,
            Err(diagnostic) => diagnostics.push(diagnostic),
        },
        (_, Some("toml" | "json" | "cedar" | "star")) => {
            diagnostics.push(
                Diagnostic::new(path, text, 0..0, "this file does not belong in a bundle")
                    .did_you_mean(path, KNOWN),
            );
        }
        (folder, extension) => diagnostics.extend(misspelt_ending(path, text, folder, extension)),
    }
}

/// READMEs, pictures and similar may lie about. A file whose ending is nearly the one that its folder is read for was
/// meant to be read.
fn misspelt_ending(path: &str, text: &str, folder: &str, extension: Option<&str>) -> Option<Diagnostic> {
    let ending = match folder {
        "access" => "cedar",
        "programs" | "modules" => "star",
        "tests" => "md",
        "tools" | "policies" | "plans" | "tables" | "functions" | "activities" | "contracts"
        | "sequences" => "toml",
        _ => return None,
    };
    // What editors leave behind ends in a tilde.
    let near = |extension: &&str| !extension.ends_with('~') && nearest(extension, &[ending]).is_some();
    let wrong = extension.filter(near)?;
    let message = format!("files in `{folder}/` must end in `.{ending}`, not in `.{wrong}`");
    Some(Diagnostic::new(path, text, 0..0, message).help("rename it; with this name, it is not read"))
}

fn with_table<T>(
    path: &str,
    text: &str,
    diagnostics: &mut Vec<Diagnostic>,
    read: impl FnOnce(&File<'_>, &mut Table<'_, '_>) -> T,
) -> Option<T> {
    let file = File::new(path, text);
    let parsed = file.parse();
    let result = parsed.as_ref().map(|parsed| {
        let mut table = Table::new(&file, "file", 0..0, parsed.get_ref());
        let result = read(&file, &mut table);
        table.finish();
        result
    });
    drop(parsed);
    diagnostics.extend(file.finish());
    result
}

fn read_main(file: &File<'_>, table: &mut Table<'_, '_>) -> Main {
    match table.integer("version", 1) {
        Some(BUNDLE_VERSION) => {}
        Some(other) => {
            let message = format!(
                "bundle version {other} is not supported; this release reads version {BUNDLE_VERSION}"
            );
            file.report(file.at(0..0, message));
        }
        None => table.missing("version"),
    }
    let mode = table.word("mode", &[("enforce", Mode::Enforce), ("observe", Mode::Observe)]);
    let unknown_tools = table.word("unknown_tools", &VERDICTS);
    let trust_hints = table.boolean("trust_hints").unwrap_or(false);
    let policy = table.string("policy").map(|field| placed(file, field));
    let approvals = approvals::read_times(table);
    let approvals = match table.table("approvals") {
        Some(table) => approvals::read(file, table, approvals),
        None => approvals,
    };
    let (credentials, credential_attributes): (Vec<_>, Vec<_>) =
        table.tables("credential").into_iter().filter_map(|table| credentials::read(file, table)).unzip();
    let oauth = table.table("oauth").map(|table| oauth::read(file, table)).unwrap_or_default();
    let effects = table.table("effects").map(|table| read_effects::effects(file, table));
    let contain = containment::read(file, table);
    let access = table.table("access").map(|table| read_effects::access(file, table));
    let ledger = table.table("ledger").map(ledger::read);
    let work = table.table("work").map(work::read);
    let loops = table.table("loops").map(loops::read);
    let flow = table.table("flow").map(flow::read);
    let authority = table.table("authority").map(|table| authority::read(file, table));
    let escalation = table.table("escalation").map(|table| escalation::read(file, table));
    let scores = table.table("monitors").map(scores::read);
    let contract_model = table.table("contracts").and_then(|table| contract_model::read(file, table));
    let call_models = models::read(file, table);
    let verification = table.table("verification").map(|table| verification::read(file, table));
    let (verification, sources) = verification.unzip();
    Main {
        verification,
        sources: sources.unwrap_or_default(),
        effects: effects.unwrap_or_default(),
        contain,
        ledger: ledger.unwrap_or_default(),
        work: work.unwrap_or_default(),
        loops: loops.unwrap_or_default(),
        flow: flow.unwrap_or_default(),
        authority: authority.unwrap_or_default(),
        escalation: escalation.unwrap_or_default(),
        scores: scores.unwrap_or_default(),
        access: access.unwrap_or_default(),
        contract_model,
        call_models,
        mode: mode.unwrap_or_default(),
        unknown_tools: unknown_tools.unwrap_or(Verdict::Review),
        trust_hints,
        policy,
        approvals,
        credentials,
        credential_attributes: credential_attributes.into_iter().flatten().collect(),
        oauth,
    }
}

fn read_knowledge(path: &str, text: &str) -> Result<BTreeMap<String, String>, Diagnostic> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let line_start: usize =
            text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        let at = line_start + error.column().saturating_sub(1);
        Diagnostic::new(path, text, at..at, format!("not JSON: {error}"))
    })?;
    let object = value
        .as_object()
        .ok_or_else(|| Diagnostic::new(path, text, 0..0, "must be an object from document id to text"))?;
    object
        .iter()
        .map(|(id, document)| match document.as_str() {
            Some(document) => Ok((id.clone(), document.to_owned())),
            None => Err(Diagnostic::new(path, text, 0..0, format!("document `{id}` must be a string"))),
        })
        .collect()
}

/// The place of a runtime policy among those there are.
fn place_of(wanted: &Placed<String>, names: &[&str], diagnostics: &mut Vec<Diagnostic>) -> usize {
    names.iter().position(|name| *name == wanted.value).unwrap_or_else(|| {
        diagnostics.push(unknown("runtime policy", wanted, names));
        0
    })
}

/// Checks what the files say of each other and builds the bundle.
fn assemble(parts: Parts, digest: Digest, diagnostics: &mut Vec<Diagnostic>) -> Option<Bundle> {
    // A policy that could not be read is missing below; that it is missing is not a mistake of its own.
    let unread = diagnostics.iter().any(|diagnostic| diagnostic.file.starts_with("policies/"));
    check_parts(&parts, diagnostics);
    let main = parts.main?;
    let (policies, policy_places) = unplaced(parts.policies);
    let names: Vec<&str> = policies.iter().map(|policy| policy.name.as_str()).collect();
    let wanted = main.policy.as_ref().filter(|_| !unread);
    let default_policy = wanted.map_or(0, |wanted| place_of(wanted, &names, diagnostics));
    if !unread {
        check_credentials(&main.credentials, &names, diagnostics);
        check_oauth(&main.oauth, &names, diagnostics);
    }
    check_attributes(&main, !parts.access.is_empty(), diagnostics);
    check_sources(&main.sources, &parts.tools, diagnostics);
    check_contained(&main.contain.1, &parts.tools, diagnostics);
    let keywords = keywords(&policies, diagnostics)?;
    check_names("activity", &parts.activities, diagnostics);
    let sequences = parts.sequences.assemble(&parts.tools, diagnostics);
    let effects = EffectSettings {
        tables: parts.tables,
        functions: parts.functions,
        activities: Activities::new(parts.activities.into_iter().map(|(activity, _)| activity).collect()),
        ..main.effects
    };
    let (tools, tool_places) = unplaced(parts.tools);
    let registry = Registry::new(tools).ok()?;
    let (contracts, contract_places) = unplaced(parts.contracts);
    let (authority, authority_entries) = main.authority;
    Some(Bundle {
        digest,
        mode: main.mode,
        unknown_tools: main.unknown_tools,
        trust_hints: main.trust_hints,
        approvals: main.approvals,
        registry,
        effects,
        contain: main.contain.0,
        servers: main.contain.2,
        ledger: main.ledger,
        work: main.work,
        loops: main.loops,
        flow: main.flow,
        sequences,
        authority,
        escalation: main.escalation,
        scores: main.scores,
        contracts,
        contract_model: main.contract_model,
        call_models: main.call_models,
        verification: main.verification,
        monitors: parts.monitors.map_or_else(MonitorSettings::built_in, Arc::new),
        access: AccessSettings { files: parts.access, ..main.access },
        programs: Programs::new(parts.programs, parts.modules),
        engines: parts.engines,
        knowledge: parts.knowledge,
        plans: parts.plans.into_iter().map(|plan| plan.value).collect(),
        credentials: main.credentials.into_iter().map(|credential| credential.value).collect(),
        oauth: main.oauth.settings,
        tests: parts.tests,
        policies,
        default_policy,
        keywords,
        compiled: Vec::new(),
        policy_places,
        contract_places,
        tool_places,
        authority_entries,
    })
}

/// Checks what files of one kind say of each other.
fn check_parts(parts: &Parts, diagnostics: &mut Vec<Diagnostic>) {
    check_tools(parts, diagnostics);
    check_policies(parts, diagnostics);
    check_contracts(parts, diagnostics);
}

/// The restricted keywords of all policies.
fn keywords(policies: &[RuntimePolicy], diagnostics: &mut Vec<Diagnostic>) -> Option<KeywordIndex> {
    let index = KeywordIndex::new(policies.iter().map(|policy| policy.restricted_keywords.as_slice()));
    let unusable = |error| {
        let message = format!("the restricted keywords cannot be indexed: {error}");
        diagnostics.push(Diagnostic::new(MAIN_FILE, "", 0..0, message));
    };
    index.map_err(unusable).ok()
}

/// Values apart from their places.
fn unplaced<T>(placed: Vec<Placed<T>>) -> (Vec<T>, Vec<Diagnostic>) {
    placed.into_iter().map(|placed| (placed.value, placed.place)).unzip()
}

/// Tools that other settings name against the registry, if all of it could be read.
pub(super) fn check_sources(
    sources: &[Placed<String>],
    tools: &[Placed<Tool>],
    diagnostics: &mut Vec<Diagnostic>,
) {
    let unread = diagnostics.iter().any(|diagnostic| diagnostic.file.starts_with("tools/"));
    let names: Vec<&str> =
        tools.iter().flat_map(|tool| [tool.value.name.as_str(), tool.value.id.as_str()]).collect();
    for source in sources.iter().filter(|source| !unread && !names.contains(&source.value.as_str())) {
        diagnostics.push(unknown("tool", source, &names));
    }
}

/// Tools of `[contain.tools]`: they are listed, and are given command lines.
fn check_contained(named: &[Placed<String>], tools: &[Placed<Tool>], diagnostics: &mut Vec<Diagnostic>) {
    check_sources(named, tools, diagnostics);
    for name in named {
        let tool = tools
            .iter()
            .map(|tool| &tool.value)
            .find(|tool| tool.name == name.value || tool.id == name.value);
        if tool.is_some_and(|tool| !ContainSettings::can_contain(tool)) {
            let mut diagnostic = name.place.clone();
            diagnostic.message = format!("`{}` is given no command line that could be contained", name.value);
            diagnostics.push(diagnostic.help(
                "say which argument is one, as in `effects = { command = \"shell\" }`; a server itself is contained by `[server.\"NAME\".contain]`",
            ));
        }
    }
}

/// Attributes of credentials against those that `[access]` declares. Where nothing is declared and no policy written,
/// nothing can depend on them.
fn check_attributes(main: &Main, has_policies: bool, diagnostics: &mut Vec<Diagnostic>) {
    let declared = &main.access.attributes;
    if declared.is_empty() && !has_policies {
        return;
    }
    for GivenAttribute { name, value } in main.credential_attributes.iter().chain(&main.oauth.attributes) {
        let mut diagnostic = name.place.clone();
        let fits = declared.get(&name.value).map(|type_| {
            let fits = matches!(
                (value, type_),
                (Attribute::Boolean(_), AttributeType::Boolean)
                    | (Attribute::Integer(_), AttributeType::Integer | AttributeType::Decimal)
                    | (Attribute::Text(_), AttributeType::Text)
            );
            (fits, type_)
        });
        match fits {
            Some((true, _)) => {}
            Some((false, type_)) => {
                diagnostic.message = format!(
                    "the attribute `{}` must be {}, as `[access] attributes` says",
                    name.value,
                    a_value_of(*type_)
                );
                diagnostics.push(diagnostic);
            }
            None => {
                diagnostic.message =
                    format!("the attribute `{}` is not declared in `[access] attributes`", name.value);
                let known: Vec<&str> = declared.keys().map(String::as_str).collect();
                diagnostics.push(match known.is_empty() {
                    true => {
                        diagnostic.help(format!("declare it: attributes = {{ {} = \"text\" }}", name.value))
                    }
                    false => diagnostic.did_you_mean(&name.value, known),
                });
            }
        }
    }
}

const fn a_value_of(type_: AttributeType) -> &'static str {
    match type_ {
        AttributeType::Boolean => "true or false",
        AttributeType::Integer | AttributeType::Decimal => "a whole number",
        AttributeType::Text => "a string",
    }
}

fn check_names(what: &str, activities: &[(Activity, Diagnostic)], diagnostics: &mut Vec<Diagnostic>) {
    let mut names = BTreeSet::new();
    for (activity, place) in activities {
        if !names.insert(&activity.name) {
            diagnostics.push(duplicate(what, &activity.name, place));
        }
    }
    if let Some((_, place)) = activities.get(ACTIVITIES_MAX) {
        let mut diagnostic = place.clone();
        diagnostic.message = format!("more than {ACTIVITIES_MAX} activities");
        diagnostics.push(diagnostic);
    }
}

fn check_contracts(parts: &Parts, diagnostics: &mut Vec<Diagnostic>) {
    check_sources(&parts.contract_tools, &parts.tools, diagnostics);
    let mut names = BTreeSet::new();
    for contract in &parts.contracts {
        if !names.insert(&contract.value.name) {
            let diagnostic = duplicate("contract", &contract.value.name, &contract.place);
            diagnostics.push(diagnostic.help("give one of them another `name`"));
        }
    }
    if let Some(contract) = parts.contracts.get(CONTRACTS_MAX) {
        let mut diagnostic = contract.place.clone();
        diagnostic.message = format!("more than {CONTRACTS_MAX} contracts");
        diagnostics.push(diagnostic);
    }
    if parts.main.as_ref().is_some_and(|main| main.contract_model.is_none()) {
        contracts::check_model(&parts.contracts, diagnostics);
    }
}

pub(super) fn unknown(what: &str, wanted: &Placed<String>, valid: &[&str]) -> Diagnostic {
    let mut diagnostic = wanted.place.clone();
    diagnostic.message = format!("there is no {what} `{}`", wanted.value);
    diagnostic.did_you_mean(&wanted.value, valid.iter().copied())
}

pub(super) fn duplicate(what: &str, name: &str, place: &Diagnostic) -> Diagnostic {
    let mut diagnostic = place.clone();
    diagnostic.message = format!("the {what} name `{name}` is used twice");
    diagnostic
}
