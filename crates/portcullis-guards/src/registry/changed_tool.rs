//! Holds tools that are not what a person accepted.

use portcullis_core::action::{Hook, Pending};
use portcullis_core::fact::Facts;
use portcullis_core::finding::Finding;
use portcullis_core::guard::{Guard, GuardFailure, GuardMeta};
use portcullis_core::verdict::Verdict;
use portcullis_trajectory::memory::{Context, RunMemory};

/// ## What it does
/// Holds calls of a tool whose description by its server differs from the accepted one, until a person accepts the
/// change. The whole list entry counts: title, description, schemas, annotations, metadata. An entry that cannot be
/// read with certainty counts as changed.
///
/// ## Why it matters
/// A server that was harmless when it was set up can change the descriptions of its tools at any time: to steer the
/// agent, or to request arguments that are none of its business ("rug pull").
///
/// ## Fires on
/// Every call of such a tool, from the listing that showed the change on, in that run and in later ones. The gate also
/// leaves the tool out of lists that the agent sees, since the new description is the attack. The first listing of a
/// server, under the command that started it, counts as accepted. Servers are distinguished: what one lists says
/// nothing about another's tool of the same name.
///
/// ## Does not cover
/// A tool that changes its behaviour under the same description. A first description that is already malicious.
///
/// ## Configuration
/// None. `portcullis tools changed` shows the difference, `portcullis tools accept` accepts it and needs the
/// approver's credential.
///
/// ## False positives
/// Every update of a server that rewords its tools: each is to be read and accepted once.
///
/// ## References
/// OWASP ASI04, MCP tool poisoning and rug pulls.
#[derive(Debug)]
pub struct ChangedTool;

static META: GuardMeta =
    GuardMeta { id: "registry/changed-tool", hooks: &[Hook::Action], owasp: &["ASI04"], unfaithful_to: None };

impl Guard<RunMemory> for ChangedTool {
    fn meta(&self) -> &'static GuardMeta {
        &META
    }

    fn decide(
        &self,
        context: &Context<'_>,
        pending: &Pending<'_>,
        _facts: &Facts,
    ) -> Result<Vec<Finding>, GuardFailure> {
        let Some((action, name)) = pending.subject.action().and_then(|action| Some((action, action.tool()?)))
        else {
            return Ok(Vec::new());
        };
        if !context.run.tool_changed(name, action.server.as_deref()) {
            return Ok(Vec::new());
        }
        let message = format!("the tool `{name}` changed its description since it was accepted");
        let finding = Finding::new(META.id, Verdict::Review, message)
            .instead("wait until a person has read and accepted the change: portcullis tools changed");
        Ok(vec![finding])
    }
}
