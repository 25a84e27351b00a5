//! Arms of an evaluation that change the guards instead of the data.

use std::sync::Arc;

use portcullis_session::policy;
use portcullis_session::policy::Pipeline;
use portcullis_trajectory::flow::{Ablation, built_in};
use portcullis_trajectory::lexicon::Lexicon;
use portcullis_trajectory::memory::RememberRun;

/// How the guards are changed. The default changes nothing: guards as they are shipped.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Switches {
    /// Holds on weaker evidence.
    pub strict: bool,
    /// No text explains a call; where values came from is still known.
    pub blind: bool,
    /// No text counts as posing: what is left when an attacker leaves out what gives the attack away.
    pub unposed: bool,
    /// A share of the verb lexicon that is dropped, 0 to 1, and the seed that says which.
    pub dropout: Option<(f64, u64)>,
}

impl Switches {
    /// What they change, for the report.
    pub fn arms(&self) -> Vec<String> {
        let mut arms = Vec::new();
        if self.strict {
            arms.push("strict".to_owned());
        }
        if self.blind {
            arms.push("no text explains a call".to_owned());
        }
        if self.unposed {
            arms.push("without the evidence of posing".to_owned());
        }
        if let Some((share, seed)) = self.dropout {
            arms.push(format!("{:.0} % of the verb lexicon dropped, seed {seed}", share * 100.0));
        }
        arms
    }

    /// The pipeline that every surface runs, changed as the switches say.
    pub fn pipeline(&self) -> Arc<Pipeline> {
        Arc::new(policy::pipeline_with(policy::guards(), RememberRun { ablation: self.ablation() }))
    }

    fn ablation(&self) -> Ablation {
        let lexicon = self.dropout.map(|(share, seed)| {
            let shipped = Lexicon::clone(&built_in());
            Arc::new(shipped.without((share * 100.0).round() as u64, seed))
        });
        Ablation { lexicon, strict: self.strict, blind: self.blind, unposed: self.unposed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_switch_reaches_the_guards_and_is_told() {
        let off = Switches::default();
        let reached = |switches: &Switches| {
            let ablation = switches.ablation();
            [ablation.strict, ablation.blind, ablation.unposed, ablation.lexicon.is_some()]
        };
        assert_eq!((reached(&off), off.arms().len()), ([false; 4], 0));
        let alone = [
            Switches { strict: true, ..off },
            Switches { blind: true, ..off },
            Switches { unposed: true, ..off },
            Switches { dropout: Some((0.2, 1)), ..off },
        ];
        for (at, switches) in alone.iter().enumerate() {
            assert_eq!(reached(switches), [0, 1, 2, 3].map(|other| other == at), "{switches:?}");
            assert_eq!(switches.arms().len(), 1);
        }
    }
}
