//! The one table: from what is known of an effect to what becomes of it.
//!
//! Each input is a scale from harmless to bad. A row holds from its place on each scale upwards, so no verdict gets looser
//! when one input gets worse, and what no row holds for is allowed: the table is total and monotone by construction, and
//! tests walk the whole product. The first row that holds decides; rows are in falling order of their verdicts.

use crate::origins::Provenance;
use crate::request::Wanted;

/// How bad it would be if nobody had wanted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Consequence {
    /// Nothing changes, and nothing leaves.
    None,
    /// Something changes or leaves that can be put right.
    Ordinary,
    /// Money, powers, protections, endings, bodies, rules that act later.
    Grave,
}

/// What would leave with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Content {
    /// Nothing in particular.
    Plain,
    /// What is nobody else's business.
    Private,
    /// A credential.
    Secret,
}

/// Whether what others wrote explains the effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Explained {
    /// Nothing does.
    No,
    /// A passage has its particulars.
    ByParticulars,
    /// A passage has them that poses or hides.
    ByPosing,
}

/// What is known of one effect of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Inputs {
    /// How bad it would be.
    pub consequence: Consequence,
    /// Whether the user asked for it.
    pub wanted: Wanted,
    /// Who is behind its target, or its value where that is what matters.
    pub provenance: Provenance,
    /// What leaves with it.
    pub content: Content,
    /// Whether others' text explains it.
    pub explained: Explained,
}

impl Inputs {
    /// Kinds of evidence against it, besides that the user did not clearly ask for it: the target is not the user's, private
    /// data leaves, others' text explains it.
    #[must_use]
    pub fn evidence(&self) -> usize {
        let kinds = [
            self.provenance >= Provenance::Named,
            self.content >= Content::Private,
            self.explained >= Explained::ByParticulars,
        ];
        kinds.into_iter().filter(|kind| *kind).count()
    }
}

/// What a row asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Weight {
    /// It is allowed, and noted.
    Warn,
    /// A person should look at it.
    Hold,
    /// It should not happen.
    Deny,
}

/// A row: where it begins on each scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The name in records: `flow/authority/NAME`.
    pub name: &'static str,
    /// From where on.
    pub from: Inputs,
    /// What it asks for.
    pub weight: Weight,
    /// Why, in one sentence.
    pub says: &'static str,
}

impl Row {
    /// Whether it holds.
    pub fn holds(&self, inputs: &Inputs) -> bool {
        inputs.consequence >= self.from.consequence
            && inputs.wanted >= self.from.wanted
            && inputs.provenance >= self.from.provenance
            && inputs.content >= self.from.content
            && inputs.explained >= self.from.explained
    }
}

use Consequence::{Grave, Ordinary};
use Content::{Plain, Private, Secret};
use Explained::{ByParticulars, ByPosing, No as Unexplained};
use Provenance::{Named, Others, Own, User};
use Wanted::{No, Unknown as Unsaid, Yes};

const fn row(
    name: &'static str,
    weight: Weight,
    from: (Consequence, Wanted, Provenance, Content, Explained),
    says: &'static str,
) -> Row {
    let (consequence, wanted, provenance, content, explained) = from;
    Row { name, from: Inputs { consequence, wanted, provenance, content, explained }, weight, says }
}

/// The table.
pub const TABLE: &[Row] = &[
    row(
        "posed-unwanted",
        Weight::Deny,
        (Ordinary, No, Named, Plain, ByPosing),
        "text that poses as someone else asks for this and names its target, but the user asked for something else",
    ),
    row(
        "posed-grave",
        Weight::Deny,
        (Grave, No, User, Plain, ByPosing),
        "text that poses as someone else asks for this grave action, but the user did not",
    ),
    row(
        "posed-private",
        Weight::Deny,
        (Ordinary, Unsaid, Named, Private, ByPosing),
        "private data would be sent to a target named by text that poses as someone else",
    ),
    row(
        "secret-to-others",
        Weight::Deny,
        (Ordinary, Unsaid, Others, Secret, Unexplained),
        "a credential would be sent to a target that only others' text names",
    ),
    row(
        "secret-leaves",
        Weight::Hold,
        (Ordinary, Yes, Own, Secret, Unexplained),
        "this would send out a credential that a tool returned",
    ),
    row(
        "posed",
        Weight::Hold,
        (Ordinary, Unsaid, User, Plain, ByPosing),
        "text that poses as someone else, or is hidden, asks for this",
    ),
    row(
        "posed-target",
        Weight::Hold,
        (Ordinary, Yes, Own, Plain, ByPosing),
        "text that poses as someone else, or is hidden, asks for this, and its target is not the user's",
    ),
    row(
        "grave-explained",
        Weight::Hold,
        (Grave, Unsaid, User, Plain, ByParticulars),
        "only text written by others explains this grave action",
    ),
    row(
        "grave-value",
        Weight::Hold,
        (Grave, Yes, Named, Plain, ByParticulars),
        "a target or value of this grave action comes from text written by others",
    ),
    row(
        "grave-unasked",
        Weight::Hold,
        (Grave, No, Own, Plain, Unexplained),
        "the user did not ask for this grave action, and text written by others was read before it",
    ),
    row(
        "unasked-explained",
        Weight::Hold,
        (Ordinary, No, User, Plain, ByParticulars),
        "the user did not ask for this, and text written by others explains it",
    ),
    row(
        "grave-unsaid",
        Weight::Hold,
        (Grave, Unsaid, Named, Plain, Unexplained),
        "it is unclear whether the user asked for this grave action, and its target or value comes only from tool text",
    ),
    row(
        "others-target",
        Weight::Hold,
        (Ordinary, Unsaid, Others, Plain, Unexplained),
        "the target comes only from text written by others, not from the user",
    ),
    row(
        "unsaid-target",
        Weight::Hold,
        (Ordinary, Unsaid, Named, Plain, ByParticulars),
        "its target or value comes only from tool text that explains this, and the user did not clearly ask for it",
    ),
    row(
        "others-target-explained",
        Weight::Hold,
        (Ordinary, Yes, Others, Plain, ByParticulars),
        "text written by others directs this to its own target",
    ),
    row(
        "unasked-target",
        Weight::Hold,
        (Ordinary, No, Named, Plain, Unexplained),
        "the user did not ask for this, and the target comes only from tool text",
    ),
    row(
        "private-target",
        Weight::Hold,
        (Ordinary, Yes, Named, Private, Unexplained),
        "files or private data would be sent to a target that comes only from tool text",
    ),
    row(
        "noted",
        Weight::Warn,
        (Ordinary, No, Own, Plain, Unexplained),
        "the user did not ask for this, and nothing that was read explains it",
    ),
];

/// What becomes of an effect: the first row that holds.
pub fn decide(inputs: &Inputs) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.holds(inputs))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product() -> Vec<Inputs> {
        let mut all = Vec::new();
        for consequence in [Consequence::None, Ordinary, Grave] {
            for wanted in [Yes, Unsaid, No] {
                for provenance in Provenance::ALL {
                    for content in [Plain, Private, Secret] {
                        for explained in [Unexplained, ByParticulars, ByPosing] {
                            all.push(Inputs { consequence, wanted, provenance, content, explained });
                        }
                    }
                }
            }
        }
        all
    }

    fn worse_or_equal(worse: &Inputs, inputs: &Inputs) -> bool {
        Row { name: "", from: *inputs, weight: Weight::Warn, says: "" }.holds(worse)
    }

    #[test]
    fn no_verdict_gets_looser_when_an_input_gets_worse() {
        let weight = |inputs| decide(inputs).map(|row| row.weight);
        let all = product();
        for inputs in &all {
            for worse in all.iter().filter(|worse| worse_or_equal(worse, inputs)) {
                assert!(weight(worse) >= weight(inputs), "{inputs:?} {worse:?}");
            }
        }
    }

    #[test]
    fn every_row_decides_somewhere_and_falls_in_strictness() {
        assert!(TABLE.len() <= 25);
        assert!(TABLE.windows(2).all(|pair| pair[0].weight >= pair[1].weight));
        for row in TABLE {
            assert_eq!(decide(&row.from).map(|found| found.name), Some(row.name));
        }
    }

    #[test]
    fn the_grey_zone_has_one_kind_of_evidence_and_no_grave_act() {
        let grey = |inputs: &Inputs| {
            let row = decide(inputs).filter(|row| row.weight == Weight::Hold)?;
            let reason =
                crate::judge::Reason { row, inputs: *inputs, source: None, deed: crate::deed::Deed::Send };
            reason.is_grey().then_some(row.name)
        };
        let mut rows: Vec<&str> = product().iter().filter_map(grey).collect();
        rows.sort_unstable();
        rows.dedup();
        assert_eq!(rows, ["others-target", "unasked-explained", "unasked-target"]);
        for inputs in product().iter().filter(|inputs| grey(inputs).is_some()) {
            assert!(
                inputs.consequence == Ordinary && inputs.explained != ByPosing && inputs.content != Secret
            );
            assert!(inputs.wanted != Yes, "what the user asked for is held for its content: {inputs:?}");
        }
    }

    #[test]
    fn what_only_reads_is_free() {
        for inputs in product().iter().filter(|inputs| inputs.consequence == Consequence::None) {
            assert_eq!(decide(inputs), None);
        }
    }

    /// The table as it appears in the manual. A row that begins at the best value of a scale asks nothing of it.
    fn markdown() -> String {
        let cells = |inputs: &Inputs| {
            let consequence = match inputs.consequence {
                Consequence::None => "any",
                Ordinary => "ordinary",
                Grave => "grave",
            };
            let wanted = match inputs.wanted {
                Yes => "any",
                Unsaid => "unknown",
                No => "no",
            };
            let provenance = match inputs.provenance {
                User => "any",
                Provenance::Bundle => "bundle",
                Own => "own",
                Provenance::HandedOn => "handed on",
                Named => "named",
                Provenance::Unknown => "unknown",
                Others => "others",
            };
            let content = match inputs.content {
                Plain => "any",
                Private => "private",
                Secret => "secret",
            };
            let explained = match inputs.explained {
                Unexplained => "any",
                ByParticulars => "by particulars",
                ByPosing => "by posing",
            };
            [consequence, wanted, provenance, content, explained].join(" | ")
        };
        let rows = TABLE.iter().map(|row| {
            let verdict = match row.weight {
                Weight::Warn => "warn",
                Weight::Hold => "review",
                Weight::Deny => "deny",
            };
            format!("| `{}` | {} | {verdict} | {} |\n", row.name, cells(&row.from), row.says)
        });
        rows.collect()
    }

    /// `UPDATE_EXPECT=1` writes the rows into it.
    #[test]
    fn the_manual_has_this_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/authority.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (before, rest) = page.split_once("| row | consequence |").unwrap();
        let (rule, rest) = rest.split_once("---|\n").unwrap();
        let (rows, after) = rest.split_once("\n\n").unwrap();
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            let page = format!("{before}| row | consequence |{rule}---|\n{}\n{after}", markdown());
            return std::fs::write(path, page).unwrap();
        }
        assert_eq!(
            format!("{rows}\n"),
            markdown(),
            "update it with UPDATE_EXPECT=1 cargo test -p portcullis-trajectory the_manual_has_this_table"
        );
    }
}
