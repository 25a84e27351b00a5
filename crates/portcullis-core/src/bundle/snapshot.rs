//! A bundle as an immutable snapshot, and what can be asked of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::approvals::ApprovalSettings;
use super::authority::{AuthoritySettings, Entry};
use super::compiled::{AccessPolicies, Compiled};
use super::containment::ContainSettings;
use super::contract_model::ContractModel;
use super::contracts::ContractSettings;
use super::diagnostic::Diagnostic;
use super::engines::EngineSettings;
use super::flow::FlowSettings;
use super::ledger::LedgerSettings;
use super::loops::LoopSettings;
use super::models::CallModels;
use super::monitors::MonitorSettings;
use super::oauth::OauthSettings;
use super::programs::Programs;
use super::scores::Scores;
use super::servers::McpServer;
use super::settings::{AccessSettings, EffectSettings};
use super::verification::VerificationSettings;
use super::work::WorkSettings;
use crate::escalation::EscalationSettings;
use crate::event::Mode;
use crate::id::{Digest, DigestBuilder, canonical_json};
use crate::keywords::KeywordIndex;
use crate::policy::RuntimePolicy;
use crate::principal::{CredentialKind, Principal};
use crate::sequence::Sequences;
use crate::tool::{Registry, Tool};
use crate::verdict::Verdict;

/// The type of tools whose results are documents where the bundle names none.
const SOURCE_TYPE: &str = "RETRIEVE_DOCS";

/// Policy as an immutable snapshot.
#[derive(Debug, Clone)]
pub struct Bundle {
    pub(super) digest: Digest,
    /// Whether verdicts are enforced.
    pub mode: Mode,
    /// What becomes of tools that the registry does not know: `allow`, `review` or `deny`.
    pub unknown_tools: Verdict,
    /// Whether a server's own `readOnlyHint` is believed for tools that the registry does not know.
    pub trust_hints: bool,
    /// How approvals are asked for and decided.
    pub approvals: ApprovalSettings,
    /// The tools.
    pub registry: Registry,
    /// How arguments are read for effects.
    pub effects: EffectSettings,
    /// What runs contained, and how.
    pub contain: ContainSettings,
    /// MCP servers that the daemon puts the gate in front of, by their names.
    pub servers: BTreeMap<String, McpServer>,
    /// What is stored.
    pub ledger: LedgerSettings,
    /// How far work items go without a person.
    pub work: WorkSettings,
    /// How much repetition is too much.
    pub loops: LoopSettings,
    /// How strictly calls are weighed against what tools returned and the user asked for.
    pub flow: FlowSettings,
    /// What calls are marked with, and rules about what happened before.
    pub sequences: Sequences,
    /// Whom and what the operator vouches for.
    pub authority: AuthoritySettings,
    /// What replies are verified against; none: they are not.
    pub verification: Option<VerificationSettings>,
    /// From signals to a level.
    pub escalation: EscalationSettings,
    /// What scores of texts may do by themselves.
    pub scores: Scores,
    /// What replies and results of tools must keep.
    pub contracts: Vec<ContractSettings>,
    /// The model that may be asked about contracts.
    pub contract_model: Option<ContractModel>,
    /// The models that are asked about calls.
    pub call_models: CallModels,
    /// What the monitors of a run look for.
    pub monitors: Arc<MonitorSettings>,
    /// Who may do what.
    pub access: AccessSettings,
    /// Conditions that have to be computed.
    pub programs: Programs,
    /// Executables of the operator that are asked about actions.
    pub engines: Vec<EngineSettings>,
    /// Documents by id.
    pub knowledge: BTreeMap<String, String>,
    /// Plan templates.
    pub plans: Vec<Plan>,
    /// Which credential identifies which principal.
    pub credentials: Vec<Credential>,
    /// Whose access tokens open `/mcp`; none: nobody's.
    pub oauth: Option<OauthSettings>,
    /// Test files by path.
    pub tests: BTreeMap<String, String>,
    pub(super) policies: Vec<RuntimePolicy>,
    pub(super) default_policy: usize,
    pub(super) keywords: KeywordIndex,
    pub(super) compiled: Vec<Compiled>,
    pub(super) policy_places: Vec<Diagnostic>,
    pub(super) contract_places: Vec<Diagnostic>,
    pub(super) tool_places: Vec<Diagnostic>,
    pub(super) authority_entries: Vec<Entry>,
}

/// A credential and the principal that it identifies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// SHA-256 of the token, in hex. The token itself is never in a bundle.
    pub token_sha256: String,
    /// What it entitles to.
    pub kind: CredentialKind,
    /// The principal that it identifies.
    pub principal: Principal,
    /// The runtime policy of its runs, instead of the default.
    pub policy: Option<String>,
}

/// A plan template: what a simulated agent will try.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Unique name.
    pub name: String,
    /// The user's request.
    pub prompt: String,
    /// What the agent does, in order.
    pub steps: Vec<PlanStep>,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanStep {
    /// The planned action, as the agent would put it.
    pub action: String,
    /// The tool it selects, or `None` for a thinking step.
    pub tool: Option<String>,
    /// The arguments.
    pub args: Value,
}

/// A runtime policy within its bundle: gives access to the part of the keyword index that is its own.
#[derive(Debug, Clone, Copy)]
pub struct PolicyRef<'b> {
    bundle: &'b Bundle,
    number: usize,
    policy: &'b RuntimePolicy,
}

impl<'b> PolicyRef<'b> {
    /// The first restricted keyword in `text`, with its place.
    pub fn find_keyword(&self, text: &str) -> Option<(&'b str, std::ops::Range<usize>)> {
        let found = self.bundle.keywords.find(self.number, text)?;
        let keyword = self.policy.restricted_keywords.get(found.keyword)?;
        Some((keyword, found.start..found.end))
    }

    /// Whether a number is written with fewer digits than the shortest keyword of any policy has bytes.
    pub fn is_shorter_than_keywords(&self, number: u64) -> bool {
        self.bundle.keywords.are_longer_than(number)
    }
}

impl std::ops::Deref for PolicyRef<'_> {
    type Target = RuntimePolicy;

    fn deref(&self) -> &RuntimePolicy {
        self.policy
    }
}

impl Bundle {
    /// Names the snapshot: a digest over all paths and bytes.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// All runtime policies, in order of files and of tables within them.
    pub fn policies(&self) -> &[RuntimePolicy] {
        &self.policies
    }

    /// The policy of that name.
    pub fn policy(&self, name: &str) -> Option<PolicyRef<'_>> {
        let number = self.policies.iter().position(|policy| policy.name == name)?;
        self.policies.get(number).map(|policy| PolicyRef { bundle: self, number, policy })
    }

    /// Name of the policy that governs runs which ask for none.
    pub fn default_policy(&self) -> &str {
        self.policies.get(self.default_policy).map_or("", |policy| &policy.name)
    }

    /// The plan of that name.
    pub fn plan(&self, name: &str) -> Option<&Plan> {
        self.plans.iter().find(|plan| plan.name == name)
    }

    /// The same bundle with further tools, under a digest of its own. Tools whose name or id is taken are left out:
    /// the operator's entries take precedence.
    #[must_use]
    pub fn with_tools(&self, tools: impl IntoIterator<Item = Tool>) -> Self {
        let mut all: Vec<Tool> = self.registry.iter().cloned().collect();
        let mut digest = DigestBuilder::new("portcullis/bundle-with-tools/v1").part(self.digest.as_bytes());
        for tool in tools {
            let taken = all.iter().any(|t| t.name == tool.name || t.id == tool.name || t.name == tool.id);
            if !taken {
                digest = digest.part(tool.name.as_bytes()).part(tool.tool_type.as_bytes());
                digest = digest.part(&[u8::from(tool.side_effecting), u8::from(tool.enabled)]);
                digest = digest.part(canonical_json(tool.args.as_value()).as_bytes());
                all.push(tool);
            }
        }
        let mut bundle = self.clone();
        if let Ok(registry) = Registry::new(all) {
            bundle.registry = registry;
            bundle.digest = digest.finish();
        }
        bundle
    }

    /// The contracts, each with a diagnostic at its statement that waits for a message.
    pub fn contracts_with_places(&self) -> impl Iterator<Item = (&ContractSettings, &Diagnostic)> {
        self.contracts.iter().zip(&self.contract_places)
    }

    /// What a [`Compiler`](super::Compiler) made of this bundle, for who has to know its type: lints, explanations.
    pub fn compiled<T: std::any::Any>(&self) -> Option<&T> {
        self.compiled.iter().find_map(Compiled::get)
    }

    /// The access policies, ready to decide, if a [`Compiler`](super::Compiler) made them.
    pub fn access_policies(&self) -> Option<&dyn AccessPolicies> {
        self.compiled.iter().find_map(Compiled::access_policies)
    }

    /// Whether the results of a tool are documents that a reply may cite.
    pub fn is_document_source(&self, tool: &str) -> bool {
        let Some(settings) = &self.verification else { return false };
        let known = self.registry.get(tool);
        match &settings.sources {
            Some(sources) => {
                sources.contains(tool)
                    || known.is_some_and(|tool| sources.contains(&tool.name) || sources.contains(&tool.id))
            }
            None => known.is_some_and(|tool| tool.tool_type == SOURCE_TYPE),
        }
    }
}
