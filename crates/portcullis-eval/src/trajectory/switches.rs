//! Arms of an evaluation that change the guards instead of the data.

use std::sync::Arc;

use portcullis_core::pipeline::Pipeline;
use portcullis_session::policy;
use portcullis_trajectory::flow::Ablation;
use portcullis_trajectory::lexicon::{BUILT_IN, Lexicon};
use portcullis_trajectory::memory::RememberRun;

use crate::suite::EvalError;

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

    /// Builds the pipeline that every surface runs, changed as the switches say.
    ///
    /// # Errors
    /// The lexicon that ships cannot be read.
    pub fn pipeline(&self) -> Result<Arc<Pipeline>, EvalError> {
        let lexicon = self.dropout.map(|(share, seed)| {
            let lexicon = Lexicon::parse(BUILT_IN).map_err(|error| EvalError::Bundle(error.to_string()))?;
            Ok::<_, EvalError>(Arc::new(lexicon.without((share * 100.0).round() as u64, seed)))
        });
        let ablation = Ablation {
            lexicon: lexicon.transpose()?,
            strict: self.strict,
            blind: self.blind,
            unposed: false,
        };
        Ok(Arc::new(policy::pipeline_with(policy::guards(), RememberRun { ablation })))
    }
}
