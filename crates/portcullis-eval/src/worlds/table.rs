//! The report: sections of rows with two figures each, and one Markdown table of all of them.

use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};

use super::scoring::{RuleCount, Stops};
use crate::interval::{Interval, Proportion};
use crate::report::{Skipped, Table};
use crate::trajectory::ratio::Ratio;

/// Figures of a row.
pub const FIGURES: usize = 2;

/// What an evaluation of worlds found.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Name of the suite.
    pub suite: &'static str,
    /// Digest of the settings, without the tools that each world registers.
    pub bundle: String,
    /// Digest of all that judged: the bundle, what is compiled in, and the engine.
    pub configuration: String,
    /// Runs, cases, texts and prompts that were judged, each arm for itself.
    pub judged: usize,
    /// Records that were not, and why.
    pub skipped: Vec<Skipped>,
    /// The figures.
    pub sections: Vec<Section>,
    /// Sections that the table leaves out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Section>,
    /// How long it took.
    pub seconds: f64,
}

/// Rows of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section {
    /// What its rows are.
    pub name: String,
    /// What is counted.
    pub counted: &'static str,
    /// What the figures of its rows say, in percent.
    pub figures: [&'static str; FIGURES],
    /// The rows.
    pub rows: Vec<Row>,
}

/// A row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// World, or group of worlds.
    pub name: String,
    /// The suite that judged it, where it is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suite: Option<&'static str>,
    /// How many were judged.
    pub n: usize,
    /// Their figures, as the section names them.
    pub figures: [Cell; FIGURES],
    /// What stopped calls; none where only totals may be told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleCount>,
}

/// A figure.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Cell {
    /// There is none.
    #[default]
    Empty,
    /// So many of so many, each for itself.
    Share(Proportion),
    /// So many of so many, in clusters.
    Clustered(Ratio),
    /// The mean of the shares of so many worlds.
    Mean(f64, usize),
    /// That of the worst world.
    Worst(String, Box<Cell>),
}

/// Which world is the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worst {
    /// That with the highest figure.
    Highest,
    /// That with the lowest figure.
    Lowest,
}

impl Cell {
    /// The figure, 0 to 1.
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Empty => None,
            Self::Share(share) => share.value(),
            Self::Worst(_, cell) => cell.value(),
            Self::Clustered(ratio) => ratio.value(),
            Self::Mean(value, _) => Some(*value),
        }
    }

    /// Its interval of 95 %: Wilson's, or that of the cluster bootstrap.
    pub fn interval(&self) -> Option<Interval> {
        match self {
            Self::Share(share) => share.interval(),
            Self::Worst(_, cell) => cell.interval(),
            Self::Clustered(ratio) => ratio.interval(),
            Self::Empty | Self::Mean(..) => None,
        }
    }

    /// How many had the property, and of how many.
    pub fn sums(&self) -> Option<(u64, u64)> {
        match self {
            Self::Share(share) => Some((share.hits as u64, share.of as u64)),
            Self::Worst(_, cell) => cell.sums(),
            Self::Clustered(ratio) => Some(ratio.sums()),
            Self::Empty | Self::Mean(..) => None,
        }
    }

    /// `1.5 [0.4-5.2]`, in percent.
    pub fn text(&self) -> String {
        let Some(value) = self.value() else { return String::new() };
        let mut text = format!("{:.1}", value * 100.0);
        if let Some(interval) = self.interval() {
            text += &format!(" [{:.1}-{:.1}]", interval.low * 100.0, interval.high * 100.0);
        }
        if let Self::Worst(world, _) = self {
            text = format!("{world} {text}");
        }
        text
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        if let Some((hits, of)) = self.sums() {
            map.serialize_entry("hits", &hits)?;
            map.serialize_entry("of", &of)?;
        }
        match self {
            Self::Worst(world, _) => map.serialize_entry("world", world)?,
            Self::Mean(_, worlds) => map.serialize_entry("worlds", worlds)?,
            _ => {}
        }
        map.serialize_entry("value", &self.value())?;
        map.serialize_entry("interval_95", &self.interval())?;
        map.end()
    }
}

impl Row {
    /// A row of shares.
    pub fn new(name: impl Into<String>, n: usize, figures: [Cell; FIGURES]) -> Self {
        Self { name: name.into(), suite: None, n, figures, rules: Vec::new() }
    }

    /// A row of runs with a denial, and with a denial or a hold.
    pub fn of(name: &str, stops: Stops, rules: Vec<RuleCount>) -> Self {
        let figures = [Cell::Share(stops.denied), Cell::Share(stops.stopped)];
        Self { rules, ..Self::new(name, stops.stopped.of, figures) }
    }
}

impl Section {
    /// A section without rows.
    pub fn new(
        name: impl Into<String>,
        counted: &'static str,
        figures: [&'static str; FIGURES],
        rows: Vec<Row>,
    ) -> Self {
        Self { name: name.into(), counted, figures, rows }
    }

    /// The figures that there are in a column, with the names of their rows.
    fn column(&self, figure: usize) -> impl Iterator<Item = (&str, &Cell, f64)> {
        self.rows.iter().filter_map(move |row| {
            let cell = row.figures.get(figure)?;
            Some((row.name.as_str(), cell, cell.value()?))
        })
    }

    /// The worst row of each column.
    pub fn worst(&self, which: Worst) -> [Cell; FIGURES] {
        std::array::from_fn(|figure| {
            let worst = self.column(figure).max_by(|a, b| match which {
                Worst::Highest => a.2.total_cmp(&b.2),
                Worst::Lowest => b.2.total_cmp(&a.2),
            });
            worst.map_or(Cell::Empty, |(name, cell, _)| Cell::Worst(name.to_owned(), Box::new(cell.clone())))
        })
    }

    /// The mean of each column.
    fn mean(&self) -> [Cell; FIGURES] {
        std::array::from_fn(|figure| {
            let values: Vec<f64> = self.column(figure).map(|(_, _, value)| value).collect();
            match values.len() {
                0 => Cell::Empty,
                worlds => Cell::Mean(values.iter().sum::<f64>() / worlds as f64, worlds),
            }
        })
    }

    /// Adds the mean over the worlds, and the worst of them, where there are several.
    #[must_use]
    pub fn with_mean_and_worst(mut self, which: Worst) -> Self {
        let worlds = self.rows.len();
        if worlds > 1 {
            let n = self.rows.iter().map(|row| row.n).sum();
            let (mean, worst) = (self.mean(), self.worst(which));
            self.rows.push(Row::new(format!("mean of {worlds} worlds"), n, mean));
            self.rows.push(Row::new("worst world", n, worst));
        }
        self
    }
}

impl Report {
    /// All sections, each begun by a row that says what its columns are.
    pub fn table(&self) -> Table {
        table(&self.sections)
    }
}

/// Sections below each other: the head of the table is that of the first, the heads of the others are bold.
pub fn table(sections: &[Section]) -> Table {
    let mut head = Vec::new();
    let mut rows = Vec::new();
    for section in sections.iter().filter(|section| !section.rows.is_empty()) {
        let mut cells = vec![section.name.clone(), section.counted.to_owned()];
        cells.extend(section.figures.iter().map(|figure| match *figure {
            "" => String::new(),
            figure => format!("{figure} %"),
        }));
        if head.is_empty() {
            head = cells;
        } else {
            let bold = |cell: String| if cell.is_empty() { cell } else { format!("**{cell}**") };
            rows.push(cells.into_iter().map(bold).collect());
        }
        rows.extend(section.rows.iter().map(|row| {
            let mut cells = vec![row.name.clone(), row.n.to_string()];
            cells.extend(row.figures.iter().map(Cell::text));
            cells
        }));
    }
    Table { head, rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section() -> Section {
        let row = |name: &str, hits, of| {
            Row::new(name, of, [Cell::Share(Proportion { hits, of }), Cell::Share(Proportion::default())])
        };
        Section::new("worlds", "runs", ["denied", "held"], vec![row("a", 1, 2), row("b", 0, 4)])
    }

    #[test]
    fn every_world_counts_alike_in_the_mean() {
        let rows = section().with_mean_and_worst(Worst::Highest).rows;
        let [_, _, mean, worst] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!(
            (mean.name.as_str(), mean.n, &mean.figures[0]),
            ("mean of 2 worlds", 6, &Cell::Mean(0.25, 2))
        );
        assert_eq!(worst.figures[0].text(), "a 50.0 [9.5-90.5]");
        assert_eq!((mean.figures[1].clone(), worst.figures[1].clone()), (Cell::Empty, Cell::Empty));
        let [lowest, _] = section().worst(Worst::Lowest);
        assert_eq!(lowest.text(), "b 0.0 [0.0-49.0]");
    }

    #[test]
    fn sections_have_their_heads_in_one_table() {
        let empty = Section::new("none", "runs", ["", ""], Vec::new());
        let second = Section { figures: ["stopped", ""], ..section() };
        let table = table(&[empty, section(), second]);
        assert_eq!(table.head, ["worlds", "runs", "denied %", "held %"]);
        assert_eq!(table.rows[2], ["**worlds**", "**runs**", "**stopped %**", ""]);
        assert_eq!(table.rows.len(), 5);
    }

    #[test]
    fn programs_get_counts_and_intervals() {
        let json = serde_json::to_value(section().with_mean_and_worst(Worst::Highest)).unwrap();
        assert_eq!(json["rows"][0]["figures"][0]["hits"], 1);
        assert_eq!(json["rows"][2]["figures"][0]["worlds"], 2);
        assert_eq!(json["rows"][3]["figures"][0]["world"], "a");
        assert!(json["rows"][1]["figures"][1]["value"].is_null());
    }
}
