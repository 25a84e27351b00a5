//! The bundle: policy as files, loaded into an immutable snapshot that is named by its digest.
//!
//! ```text
//! portcullis.toml        mode, default policy, unknown tools, approvals, credentials, what runs contained
//! policies/*.toml        [[policy]]   named runtime policies
//! tools/*.toml           [[tool]]     the registry
//! plans/*.toml           [[plan]]     plan templates for the simulator
//! knowledge.json         documents by id
//! tables/*.toml          [[table]]    known tables and their columns
//! functions/*.toml       [[function]] what agent code may call
//! monitors.toml          [[concept]], [[pattern]]  what the monitors of a run look for
//! activities/*.toml      [[activity]] what people do, by the words they use for it
//! access/*.cedar         who may do what to which resource
//! programs/*.star        guard programs: conditions that have to be computed; they only narrow
//! modules/*.star         what programs load
//! engines.toml           executables that are asked about actions; they only narrow
//! contracts/*.toml       [[contract]] statements that replies and results must keep
//! tests/*.md             cases: a transcript and the verdict it must get
//! ```

mod activities;
mod approvals;
mod authority;
mod compare;
mod compiled;
mod containment;
mod contract_model;
mod contracts;
mod credentials;
mod diagnostic;
mod engines;
mod escalation;
mod flow;
mod ledger;
mod lint;
mod load;
mod loops;
mod models;
mod monitors;
mod oauth;
mod placed;
mod plans;
mod policies;
mod profiles;
mod programs;
mod read_effects;
mod scores;
mod sequences;
mod servers;
mod settings;
mod snapshot;
mod toml_table;
mod tools;
mod verification;
mod webhooks;
mod work;

use std::collections::BTreeMap;

pub use activities::{Activities, Activity, ActivityScope, WordRole};
pub use approvals::{ApprovalRule, ApprovalSettings, Requirement};
pub use authority::{AuthoritySettings, normal_party};
pub use compare::{Difference, Direction};
pub use compiled::{AccessPolicies, Compiled, Compiler};
pub use containment::{
    Below, CONTAIN_SOURCE, ContainSettings, OnMore, level_answer, level_of, level_request, runs_git,
};
pub use contract_model::ContractModel;
pub use contracts::{ContractJudge, ContractSettings, OnFail, REPAIR_STRATEGIES};
pub use diagnostic::{Diagnostic, nearest};
pub use engines::{ENGINES_MAX, EngineSettings};
pub use flow::FlowSettings;
pub use ledger::{AnchorTime, LedgerSettings};
pub use lint::Lint;
pub use loops::LoopSettings;
pub use models::{CallModel, CallModels, PerAction};
pub use monitors::{ACTS, Met, MonitorSettings, Need, Pattern, Places, Weights};
pub use oauth::{ISSUERS_MAX, Issuer, OauthSettings, SUBJECTS_MAX, Subject};
pub use profiles::{BUILT_IN_PROFILES, built_in_profile, read_profile, registries};
pub use programs::{NAME_BYTES_MAX, Programs};
pub use scores::Scores;
pub use servers::{McpServer, McpServerAt};
pub use settings::{AccessSettings, EffectSettings, FunctionRole, SqlDialect, TableColumns};
pub use snapshot::{Bundle, Credential, Plan, PlanStep, PolicyRef};
pub use verification::{Citations, VerificationSettings};
pub use webhooks::{WEBHOOKS_MAX, Webhook};
pub use work::WorkSettings;

use crate::id::Digest;

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
}
