//! Figures beside the published ones: a table for people, JSON for programs.

use std::time::Duration;

use serde::Serialize;

use crate::interval::Proportion;
use crate::metrics::Score;

/// Columns of figures: LPA, LPP, LPR, EA, EA exact, FRA.
const FIGURES: usize = 6;

/// What an evaluation found.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Name of the suite.
    pub suite: &'static str,
    /// Digest of the bundle that was evaluated.
    pub bundle: String,
    /// Digest of all that judged: the bundle, what is compiled in, and the engine.
    pub configuration: String,
    /// Records that were judged.
    pub judged: usize,
    /// Records that were not, and why.
    pub skipped: Vec<Skipped>,
    /// All records.
    pub all: Score,
    /// Parts of them: by role, by rule.
    pub groups: Vec<Group>,
    /// What others published.
    pub published: &'static [Published],
    /// What to know when comparing.
    pub notes: Vec<String>,
    /// How long one decision took: the whole step, with digests, events and all guards.
    pub decisions: Timing,
    /// What of each went into reading the effects and asking the access policies.
    pub access: Timing,
}

/// Records that could not be judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// How many.
    pub count: usize,
    /// Why.
    pub why: String,
}

/// Some of the records.
#[derive(Debug, Clone, Serialize)]
pub struct Group {
    /// Which.
    pub name: String,
    /// Their figures.
    #[serde(flatten)]
    pub score: Score,
}

/// Figures of somebody else, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Published {
    /// Whose.
    pub name: &'static str,
    /// Label prediction accuracy.
    pub lpa: f64,
    /// Label prediction precision.
    pub lpp: Option<f64>,
    /// Label prediction recall.
    pub lpr: Option<f64>,
    /// Explanation accuracy.
    pub ea: Option<f64>,
    /// Final response accuracy.
    pub fra: Option<f64>,
}

/// How long decisions took, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Timing {
    /// Half of them took no longer.
    pub p50_us: f64,
    /// All but one in a hundred took no longer.
    pub p99_us: f64,
}

impl Timing {
    /// Of single measurements.
    pub fn of(mut each: Vec<Duration>) -> Self {
        each.sort_unstable();
        let at = |percent: usize| {
            let index = (each.len() * percent / 100).min(each.len().saturating_sub(1));
            each.get(index).map_or(0.0, |time| time.as_secs_f64() * 1e6)
        };
        Self { p50_us: at(50), p99_us: at(99) }
    }
}

/// A table of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Heads of the columns.
    pub head: Vec<String>,
    /// Rows; a row without cells is a rule between parts.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Lines of equal columns: the first flush left, the others flush right. The first line is the head.
    pub fn lines(&self) -> Vec<String> {
        let columns = self.head.len();
        let all = || std::iter::once(&self.head).chain(&self.rows);
        let width = |column: usize| {
            all().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        all().map(line).collect()
    }

    /// The same as Markdown, with straight columns too, so that it can be read in a terminal and pasted into a page. The
    /// first `left` columns are flush left.
    pub fn markdown(&self, left: usize) -> Vec<String> {
        let rows = || std::iter::once(&self.head).chain(&self.rows).filter(|row| !row.is_empty());
        let cell = |row: &Vec<String>, column: usize| {
            row.get(column).map(|cell| cell.replace('|', "\\|")).unwrap_or_default()
        };
        let columns = 0..self.head.len();
        let width = |column: usize| rows().map(|row| cell(row, column).chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = columns.map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = widths.iter().enumerate().map(|(column, width)| match column {
                column if column < left => format!("{:<width$}", cell(row, column)),
                _ => format!("{:>width$}", cell(row, column)),
            });
            format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
        };
        let rule = widths.iter().enumerate().map(|(column, width)| match column {
            column if column < left => "-".repeat(width + 2),
            _ => format!("{}:", "-".repeat(width + 1)),
        });
        let mut lines: Vec<String> = rows().map(line).collect();
        lines.insert(lines.len().min(1), format!("|{}|", rule.collect::<Vec<_>>().join("|")));
        lines
    }
}

impl Report {
    /// The figures with their intervals, all records first, then the groups, then what others published.
    pub fn table(&self) -> Table {
        let head = ["", "n", "LPA", "LPP", "LPR", "EA", "EA exact", "FRA"].map(str::to_owned).to_vec();
        let mut rows = vec![score_row("all", &self.all, true)];
        rows.extend(self.groups.iter().map(|group| score_row(&group.name, &group.score, false)));
        if !self.published.is_empty() {
            rows.push(Vec::new());
            rows.extend(self.published.iter().map(published_row));
        }
        Table { head, rows }
    }
}

/// `98.0 [93.1-99.5]`.
pub(crate) fn percent(proportion: Proportion) -> String {
    match (proportion.value(), proportion.interval()) {
        (Some(value), Some(interval)) => {
            format!("{:.1} [{:.1}-{:.1}]", value * 100.0, interval.low * 100.0, interval.high * 100.0)
        }
        _ => "-".to_owned(),
    }
}

fn score_row(name: &str, score: &Score, with_intervals: bool) -> Vec<String> {
    let figures: [Proportion; FIGURES] = [
        score.labels.accuracy(),
        score.labels.precision(),
        score.labels.recall(),
        score.explained,
        score.explained_exactly,
        score.answered,
    ];
    let mut row = vec![name.to_owned(), score.labels.total().to_string()];
    row.extend(figures.iter().map(|figure| figure_text(*figure, with_intervals)));
    row
}

/// `98.0 [93.1-99.5]`, in percent.
fn figure_text(figure: Proportion, with_interval: bool) -> String {
    let Some(value) = figure.value() else { return "-".to_owned() };
    let value = format!("{:.1}", value * 100.0);
    match figure.interval().filter(|_| with_interval) {
        Some(interval) => format!("{value} [{:.1}-{:.1}]", interval.low * 100.0, interval.high * 100.0),
        None => value,
    }
}

fn published_row(published: &Published) -> Vec<String> {
    let text = |figure: Option<f64>| figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.1}"));
    vec![
        published.name.to_owned(),
        String::new(),
        text(Some(published.lpa)),
        text(published.lpp),
        text(published.lpr),
        text(published.ea),
        // What was published does not say which of the two it is.
        String::new(),
        text(published.fra),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_straight_columns() {
        let table = Table {
            head: vec![String::new(), "n".into(), "LPA".into()],
            rows: vec![vec!["all".into(), "102".into(), "99.0".into()], vec![], vec!["b".into(), "7".into()]],
        };
        assert_eq!(table.lines(), ["       n   LPA", "all  102  99.0", "", "b      7"]);
    }

    #[test]
    fn a_table_is_markdown_with_straight_columns() {
        let table = Table {
            head: vec!["world".into(), "n".into()],
            rows: vec![vec!["a|b".into(), "102".into()], vec![], vec!["c".into()]],
        };
        let wanted = ["| world |   n |", "|-------|----:|", "| a\\|b  | 102 |", "| c     |     |"];
        assert_eq!(table.markdown(1), wanted);
    }

    #[test]
    fn half_of_the_decisions_took_no_longer_than_the_median() {
        let each = (1..=100).map(Duration::from_micros).collect();
        let timing = Timing::of(each);
        assert!((timing.p50_us - 51.0).abs() < 1e-9 && (timing.p99_us - 100.0).abs() < 1e-9, "{timing:?}");
        assert_eq!(Timing::of(Vec::new()), Timing::default());
    }
}
