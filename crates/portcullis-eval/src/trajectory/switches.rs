//! Arms of an evaluation that change the guards instead of the data.

use std::sync::Arc;

use portcullis_core::pipeline::Pipeline;

use crate::suite::EvalError;

/// How the guards are changed. The default changes nothing: guards as they are shipped.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Switches {
    /// Holds on weaker evidence.
    pub strict: bool,
    /// What reads text for orders sees nothing of what was injected; everything else sees it.
    pub blind: bool,
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
            arms.push("text scorer blind to what was injected".to_owned());
        }
        if let Some((share, seed)) = self.dropout {
            arms.push(format!("{:.0} % of the verb lexicon dropped, seed {seed}", share * 100.0));
        }
        arms
    }

    /// Builds the pipeline that every surface runs, changed as the switches say.
    ///
    /// # Errors
    /// A switch is set that no guard has.
    pub fn pipeline(&self) -> Result<Arc<Pipeline>, EvalError> {
        if *self != Self::default() {
            let why = "--strict, --blind and --dropout are not connected to the guards yet; for strict guards give \
                       --bundle a folder with `[flow] strict = true`"
                .to_owned();
            return Err(EvalError::Bundle(why));
        }
        Ok(Arc::new(portcullis_session::policy::pipeline()))
    }
}
