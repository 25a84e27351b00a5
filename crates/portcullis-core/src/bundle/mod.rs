//! The bundle: policy as files, loaded into an immutable snapshot that is named by its digest.
//!
//! ```text
//! portcullis.toml        mode, default policy, unknown tools, approvals, credentials
//! policies/*.toml        [[policy]]   named runtime policies
//! tools/*.toml           [[tool]]     the registry
//! plans/*.toml           [[plan]]     plan templates for the simulator
//! knowledge.json         documents by id
//! tables/*.toml          [[table]]    known tables and their columns
//! functions/*.toml       [[function]] what agent code may call
//! monitors.toml          [[concept]], [[pattern]]  what the monitors of a run look for
//! activities/*.toml      [[activity]] what people do, by the words they use for it
//! access/*.cedar         who may do what to which resource
//! tests/*.md             cases: a transcript and the verdict it must get
//! ```

mod activities;
mod authority;
mod compare;
mod contracts;
mod credentials;
mod diagnostic;
mod escalation;
mod flow;
mod ledger;
mod lint;
mod load;
mod loops;
mod monitors;
mod policies;
mod read_effects;
mod scores;
mod settings;
mod toml_table;
mod tools;
mod verification;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

pub use activities::{Activities, Activity, ActivityScope, WordRole};
pub use authority::{AuthoritySettings, normal_party};
pub use compare::{Difference, Direction};
pub use contracts::ContractModel;
pub use diagnostic::{Diagnostic, nearest};
pub use flow::FlowSettings;
pub use ledger::{AnchorTime, LedgerSettings};
pub use lint::Lint;
pub use loops::LoopSettings;
pub use monitors::{ACTS, Met, MonitorSettings, Need, Pattern, Places, Weights};
pub use scores::Scores;
pub use settings::{
    AccessPolicies, AccessSettings, Compiled, Compiler, EffectSettings, FunctionRole, SqlDialect,
    TableColumns,
};
pub use verification::{Citations, VerificationSettings};

use crate::escalation::EscalationSettings;
use crate::event::Mode;
use crate::id::{Digest, DigestBuilder, canonical_json};
use crate::keywords::KeywordIndex;
use crate::policy::RuntimePolicy;
use crate::principal::{CredentialKind, Principal};
use crate::tool::{Registry, Tool};
use crate::verdict::Verdict;

/// Policy as an immutable snapshot.
#[derive(Debug, Clone)]
pub struct Bundle {
    digest: Digest,
    /// Whether verdicts are enforced.
    pub mode: Mode,
    /// What becomes of tools that the registry does not know: `allow`, `review` or `deny`.
    pub unknown_tools: Verdict,
    /// Whether a server's own `readOnlyHint` is believed for tools that the registry does not know.
    pub trust_hints: bool,
    /// Waiting times of approvals.
    pub approvals: ApprovalTimes,
    /// The tools.
    pub registry: Registry,
    /// How arguments are read for effects.
    pub effects: EffectSettings,
    /// What is stored.
    pub ledger: LedgerSettings,
    /// How much repetition is too much.
    pub loops: LoopSettings,
    /// How strictly calls are weighed against what tools returned and the user asked for.
    pub flow: FlowSettings,
    /// Whom and what the operator vouches for.
    pub authority: AuthoritySettings,
    /// What replies are verified against; none: they are not.
    pub verification: Option<VerificationSettings>,
    /// From signals to a level.
    pub escalation: EscalationSettings,
    /// What scores of texts may do by themselves.
    pub scores: Scores,
    /// The model that may be asked about contracts on replies.
    pub contracts: Option<ContractModel>,
    /// What the monitors of a run look for.
    pub monitors: Arc<MonitorSettings>,
    /// Who may do what.
    pub access: AccessSettings,
    /// Documents by id.
    pub knowledge: BTreeMap<String, String>,
    /// Plan templates.
    pub plans: Vec<Plan>,
    /// Which credential identifies which principal.
    pub credentials: Vec<Credential>,
    /// Test files by path.
    pub tests: BTreeMap<String, String>,
    policies: Vec<RuntimePolicy>,
    default_policy: usize,
    keywords: KeywordIndex,
    compiled: Vec<Compiled>,
    policy_places: Vec<Diagnostic>,
    tool_places: Vec<Diagnostic>,
    authority_entries: Vec<authority::Entry>,
}

/// How long approvals wait, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApprovalTimes {
    /// How long a held call waits for an answer before it returns `approval_pending`, in seconds. Clients give up
    /// after 60 s, so at most 50.
    pub wait_s: u32,
    /// How long a request stays open.
    pub request_ttl_s: u32,
    /// How long a grant can be claimed.
    pub grant_ttl_s: u32,
}

impl Default for ApprovalTimes {
    fn default() -> Self {
        Self { wait_s: 25, request_ttl_s: 24 * 3_600, grant_ttl_s: 900 }
    }
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
    /// Loads a bundle from its files, by path with `/` between components. All mistakes that can be found are
    /// reported at once; a bundle with a mistake does not load.
    pub fn load(files: &BTreeMap<String, Vec<u8>>) -> Result<Self, Vec<Diagnostic>> {
        Self::load_with(files, &[])
    }

    /// Loads a bundle and lets `compilers` make ready what the core only carries.
    pub fn load_with(
        files: &BTreeMap<String, Vec<u8>>,
        compilers: &[&dyn Compiler],
    ) -> Result<Self, Vec<Diagnostic>> {
        let mut bundle = load::load(files)?;
        let mut mistakes = Vec::new();
        for compiler in compilers {
            match compiler.compile(&bundle) {
                Ok(compiled) => bundle.compiled.extend(compiled),
                Err(diagnostics) => mistakes.extend(diagnostics),
            }
        }
        if mistakes.is_empty() { Ok(bundle) } else { Err(mistakes) }
    }

    /// What a [`Compiler`] made of this bundle, for who has to know its type: lints, explanations.
    pub fn compiled<T: std::any::Any>(&self) -> Option<&T> {
        self.compiled.iter().find_map(Compiled::get)
    }

    /// The access policies, ready to decide, if a [`Compiler`] made them.
    pub fn access_policies(&self) -> Option<&dyn AccessPolicies> {
        self.compiled.iter().find_map(Compiled::access_policies)
    }

    /// What probably is not meant, in runtime policies and the registry.
    pub fn lint(&self) -> Vec<Lint> {
        lint::lint(self)
    }

    /// What differs in a bundle that would replace this one, every part of it, the loosened ones first.
    pub fn differences(&self, new: &Self) -> Vec<Difference> {
        compare::differences(self, new)
    }

    /// The [digest](Self::digest) that a bundle of these files has, if they make one.
    pub fn digest_of(files: &BTreeMap<String, Vec<u8>>) -> Digest {
        load::digest(files)
    }

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
}
