//! Reads `[monitors]` of `portcullis.toml`.
//!
//! ```toml
//! [monitors]
//! scores = "stop"   # scores of texts may pause and end runs; "advise", the default: they warn
//! ```

use super::toml_table::Table;

/// What scores of texts may do by themselves: the intent score, drift, uncertainty and the detector of injections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scores {
    /// They warn, and are read over the user's own words, normalised for length. Uncertainty and drift may have a call
    /// put to the user, and nothing more.
    #[default]
    Advise,
    /// They pause, hold and end runs, over all that an input holds.
    Stop,
}

impl Scores {
    /// All of them by name.
    pub const ALL: [(&str, Self); 2] = [("advise", Self::Advise), ("stop", Self::Stop)];
}

pub(super) fn read(mut table: Table<'_, '_>) -> Scores {
    let scores = table.word("scores", &Scores::ALL).unwrap_or_default();
    table.finish();
    scores
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::Scores;
    use crate::bundle::Bundle;

    fn load(monitors: &str) -> Result<Scores, Vec<String>> {
        let policy = "[[policy]]\nname='p'\nallowed_types=[]\nmax_steps=1\nmax_side_effects=0\n";
        let main = format!("version = 1\n{monitors}");
        let files = [("portcullis.toml", main.as_str()), ("policies/p.toml", policy)];
        let files: BTreeMap<String, Vec<u8>> =
            files.into_iter().map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).collect();
        let bundle = Bundle::load(&files);
        bundle
            .map(|bundle| bundle.scores)
            .map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn scores_advise_unless_the_bundle_says_stop() {
        assert_eq!(load(""), Ok(Scores::Advise));
        assert_eq!(load("[monitors]\n"), Ok(Scores::Advise));
        for (name, scores) in Scores::ALL {
            assert_eq!(load(&format!("[monitors]\nscores = '{name}'\n")), Ok(scores));
        }
    }

    #[test]
    fn mistakes_have_their_place() {
        assert_eq!(
            load("[monitors]\nscores = 'stopp'\n"),
            Err(vec![
                "portcullis.toml:3:10: `stopp` is not a value of `scores` (did you mean `stop`?)".to_owned()
            ])
        );
        assert_eq!(
            load("[monitors]\nscore = 'stop'\n"),
            Err(vec![
                "portcullis.toml:3:1: unknown field `score` in the monitors (did you mean `scores`?)"
                    .to_owned()
            ])
        );
        assert_eq!(load("[monitors]\nscores = true\n").map_err(|mistakes| mistakes.len()), Err(1));
    }
}
