//! Reads `[escalation]` of `portcullis.toml`.
//!
//! ```toml
//! [escalation]
//! adaptive = true                         # thresholds follow sensitivity, surroundings and history; false if left out
//! sensitivity = 0.5
//! [[escalation.row]]                      # in falling order of levels; without any, the eight of the seed
//! drift = 0.6                             # boundaries are inclusive
//! uncertainty = 0.4
//! level = "HUMAN_REVIEW"
//! ```

use super::toml_table::{File, Table};
use crate::escalation::{self, Condition, EscalationSettings, Row, Signal};
use crate::verdict::Escalation;

/// The base sensitivity where the bundle gives none.
const SENSITIVITY: f64 = 0.5;

pub(super) fn read(file: &File<'_>, mut table: Table<'_, '_>) -> EscalationSettings {
    let mut settings = EscalationSettings::default();
    let sensitivity = table.fraction("sensitivity").unwrap_or(SENSITIVITY);
    settings.adaptive = table.boolean("adaptive").unwrap_or(false).then_some(sensitivity);
    let span = table.span.clone();
    let rows: Vec<Row> = table.tables("row").into_iter().filter_map(read_row).collect();
    table.finish();
    if !rows.is_empty() {
        match escalation::Table::new(rows) {
            Ok(read) => settings.table = read,
            Err(error) => file.report(file.at(span, error.to_string())),
        }
    }
    settings
}

fn read_row(mut table: Table<'_, '_>) -> Option<Row> {
    let mut conditions = Vec::new();
    if let Some(violations) = table.integer(Signal::Violations.as_str(), 1) {
        conditions.push(Condition { signal: Signal::Violations, at_least: f64::from(violations) });
    }
    for signal in [Signal::Drift, Signal::Uncertainty, Signal::ToolRisk] {
        if let Some(at_least) = table.fraction(signal.as_str()) {
            conditions.push(Condition { signal, at_least });
        }
    }
    let levels = Escalation::ALL.map(|level| (level.as_str(), level));
    let level = table.word("level", &levels);
    if level.is_none() {
        table.missing("level");
    }
    table.finish();
    Some(Row { conditions, level: level? })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::bundle::Bundle;
    use crate::escalation::Table;

    fn load(escalation: &str) -> Result<Bundle, Vec<String>> {
        let policy = "[[policy]]\nname='p'\nallowed_types=[]\nmax_steps=1\nmax_side_effects=0\n";
        let main = format!("version = 1\n{escalation}");
        let files = [("portcullis.toml", main.as_str()), ("policies/p.toml", policy)];
        let files: BTreeMap<String, Vec<u8>> =
            files.into_iter().map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).collect();
        Bundle::load(&files).map_err(|mistakes| mistakes.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_seed_stands_where_nothing_is_said() {
        let settings = load("").unwrap().escalation;
        assert_eq!((settings.table, settings.adaptive), (Table::seed(), None));
    }

    #[test]
    fn rows_are_read_and_their_order_is_checked() {
        let review = "[[escalation.row]]\ndrift = 0.6\nuncertainty = 0.4\nlevel = 'HUMAN_REVIEW'\n";
        let warn = "[[escalation.row]]\ndrift = 0.3\nlevel = 'WARN'\n";
        let settings = load(&format!("[escalation]\nadaptive = true\n{review}{warn}")).unwrap().escalation;
        assert_eq!((settings.table.rows().len(), settings.adaptive), (2, Some(0.5)));
        let mistakes = load(&format!("[escalation]\n{warn}{review}")).unwrap_err();
        assert!(mistakes[0].contains("row 2 is stricter than the row above it"), "{mistakes:?}");
        let mistakes = load("[escalation]\n[[escalation.row]]\ndrift = 0.3\nlevel = 'WORN'\n").unwrap_err();
        assert!(
            mistakes[0].ends_with("`WORN` is not a value of `level` (did you mean `WARN`?)"),
            "{mistakes:?}"
        );
    }
}
