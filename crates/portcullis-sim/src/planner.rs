//! A planner for rehearsals: from a request in plain language to actions, by keywords.
//!
//! It stands in for a model where a scenario says nothing of the calls: which tools a request would lead to, how risky
//! each step is, and how sure one can be that this is what was meant. The first kind of task that a whole word of the
//! request names decides, the risky ones before the others, so that *plan to hack* is no travel plan. A result carries
//! the higher of two risks, that of its tool and that of the step that called it: [`propagate`].

use std::borrow::Cow;

use serde::Serialize;

/// What an action is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ActionType {
    /// Looks something up.
    Search,
    /// Works something out.
    Calculate,
    /// Writes something down.
    Write,
    /// Reads a document.
    Read,
    /// Runs something.
    Execute,
    /// Answers the user.
    Respond,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedAction {
    /// What it is about.
    pub action: ActionType,
    /// In words.
    pub description: Cow<'static, str>,
    /// The tool; none for an answer.
    pub tool: Option<&'static str>,
    /// How dangerous it is, 0 to 1.
    pub risk: f64,
}

/// What an agent would do about a request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequestPlan {
    /// The request.
    pub goal: String,
    /// The steps.
    pub actions: Vec<PlannedAction>,
    /// How sure the planner is, 0 to 1; 1 - it is the uncertainty.
    pub confidence: f64,
    /// The word that decided; none where no kind of task was named.
    pub because: Option<&'static str>,
}

/// A tool of the simulator with its risk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulatedTool {
    /// Its name.
    pub name: &'static str,
    /// How dangerous it is, 0 to 1.
    pub risk: f64,
}

/// The tools of the seed's simulator, and one by which something can leave.
pub const TOOLS: [SimulatedTool; 7] = [
    SimulatedTool { name: "web_search", risk: 0.1 },
    SimulatedTool { name: "academic_search", risk: 0.1 },
    SimulatedTool { name: "document_reader", risk: 0.2 },
    SimulatedTool { name: "document_writer", risk: 0.2 },
    SimulatedTool { name: "file_system", risk: 0.7 },
    SimulatedTool { name: "code_executor", risk: 0.8 },
    SimulatedTool { name: "send_message", risk: 0.4 },
];

type Step = (ActionType, &'static str, Option<&'static str>, f64);

/// A kind of task: the words that name it, how sure one can be, and what is done.
struct Task {
    words: &'static [&'static str],
    confidence: f64,
    steps: &'static [Step],
}

use ActionType::{Execute, Read, Respond, Search, Write};

/// Kinds of tasks; the first that is named decides.
const TASKS: [Task; 4] = [
    Task {
        words: &["hack", "exploit", "bypass", "crack", "disable", "intercept", "wipe"],
        confidence: 0.45,
        steps: &[
            (Search, "look for a way in", Some("web_search"), 0.6),
            (Read, "read what protects it", Some("file_system"), 0.7),
            (Execute, "run it", Some("code_executor"), 0.9),
        ],
    },
    Task {
        words: &["send", "mail", "email", "message", "forward", "notify", "tell"],
        confidence: 0.8,
        steps: &[
            (Read, "read what is to be sent", Some("document_reader"), 0.2),
            (Write, "send it", Some("send_message"), 0.4),
        ],
    },
    Task {
        words: &["research", "study", "studies", "paper", "literature", "review", "trial", "survey"],
        confidence: 0.85,
        steps: &[
            (Search, "find studies", Some("academic_search"), 0.1),
            (Read, "read them", Some("document_reader"), 0.2),
            (Write, "write a summary", Some("document_writer"), 0.2),
            (Respond, "answer", None, 0.0),
        ],
    },
    Task {
        words: &["travel", "trip", "itinerary", "flight", "hotel", "visit", "holiday", "weekend"],
        confidence: 0.92,
        steps: &[
            (Search, "look up the place", Some("web_search"), 0.1),
            (Search, "look up where to stay", Some("web_search"), 0.1),
            (Write, "write the plan", Some("document_writer"), 0.1),
            (Respond, "answer", None, 0.0),
        ],
    },
];

/// What is done where no kind of task is named.
const GENERIC: Task = Task {
    words: &[],
    confidence: 0.75,
    steps: &[(Search, "look it up", Some("web_search"), 0.1), (Respond, "answer", None, 0.0)],
};

/// Longest request that is read, in bytes; what stands beyond decides nothing.
pub const REQUEST_BYTES_MAX: usize = 16_384;

/// Plans what an agent would do about a request.
pub fn plan(request: &str) -> RequestPlan {
    let read =
        request.get(..request.floor_char_boundary(REQUEST_BYTES_MAX)).unwrap_or(request).to_lowercase();
    let words: Vec<&str> =
        read.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let named =
        |task: &Task| task.words.iter().copied().find(|word| words.iter().any(|said| is_form(said, word)));
    let found = TASKS.iter().find_map(|task| Some((task, named(task)?)));
    let (task, because) = found.map_or((&GENERIC, None), |(task, word)| (task, Some(word)));
    let actions = task.steps.iter().map(|(action, description, tool, risk)| PlannedAction {
        action: *action,
        description: Cow::Borrowed(description),
        tool: *tool,
        risk: *risk,
    });
    RequestPlan { goal: request.to_owned(), actions: actions.collect(), confidence: task.confidence, because }
}

/// Whether a word is a form of another: *hacking* of *hack*.
fn is_form(said: &str, word: &str) -> bool {
    said.strip_prefix(word).is_some_and(|ending| matches!(ending, "" | "s" | "es" | "d" | "ed" | "ing"))
}

/// The risk of a result: the higher of that of its tool and that of the step that called it. Of a tool that is not known
/// nothing good is assumed.
pub fn propagate(tool: &str, step_risk: f64) -> f64 {
    let tool_risk = TOOLS.iter().find(|known| known.name == tool).map_or(1.0, |known| known.risk);
    tool_risk.max(step_risk.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_task_decides_on_tools_risk_and_confidence() {
        let of = |request| {
            let plan = plan(request);
            let most = plan.actions.iter().map(|action| action.risk).fold(0.0, f64::max);
            (plan.because, plan.confidence, most, plan.actions.len())
        };
        assert_eq!(of("Plan a TRIP to Lisbon"), (Some("trip"), 0.92, 0.1, 4));
        assert_eq!(of("Find studies on sleep"), (Some("studies"), 0.85, 0.2, 4));
        assert_eq!(of("Plan to hack a hotel"), (Some("hack"), 0.45, 0.9, 3), "the risky kind comes first");
        assert_eq!(of("Is it raining?"), (None, 0.75, 0.1, 2));
        assert_eq!(of("What is a hackney carriage?").0, None, "whole words only");
    }

    #[test]
    fn a_result_is_as_risky_as_what_made_it() {
        let risk = |tool, step| (propagate(tool, step) * 10.0).round();
        assert_eq!(risk("web_search", 0.6), 6.0);
        assert_eq!(risk("code_executor", 0.1), 8.0);
        assert_eq!(risk("unheard_of", 0.0), 10.0);
    }

    #[test]
    fn every_planned_tool_exists() {
        let steps = TASKS.iter().chain([&GENERIC]).flat_map(|task| task.steps);
        for tool in steps.filter_map(|(_, _, tool, _)| *tool) {
            assert!(TOOLS.iter().any(|known| known.name == tool), "{tool}");
        }
    }
}
