//! Compliance by the number of statements, as a drawing.

use std::fmt::Write as _;

use super::{Report, Row};
use crate::interval::Proportion;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
/// Room for the axes' words.
const LEFT: f64 = 56.0;
const BOTTOM: f64 = 44.0;
const TOP: f64 = 28.0;
const RIGHT: f64 = 16.0;
/// Percentage points from one line of the grid to the next.
const GRID: u32 = 20;

/// The places of a drawing with so many columns.
struct Axes {
    columns: usize,
}

impl Axes {
    fn x(&self, column: usize) -> f64 {
        let step = (WIDTH - LEFT - RIGHT) / self.columns.max(1) as f64;
        LEFT + step * (column as f64 + 0.5)
    }

    /// Of a share, 0 to 1.
    fn y(share: f64) -> f64 {
        TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - share)
    }
}

impl Report {
    /// An SVG: statements that hold before and after the repair, with intervals, by how many there are.
    pub fn plot(&self) -> String {
        let axes = Axes { columns: self.by_count.len() };
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"12\">\n<title>Policy Guard: compliance by number of statements</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        // Writing to a text cannot fail.
        let _written = grid(&mut svg, &axes);
        let _written = curve(&mut svg, &axes, "before", "#b0472b", 0.0, &self.by_count, |row| row.before);
        let _written =
            curve(&mut svg, &axes, "after the repair", "#1f6f8b", 1.0, &self.by_count, |row| row.after);
        svg.push_str("</svg>\n");
        svg
    }
}

fn grid(svg: &mut String, axes: &Axes) -> std::fmt::Result {
    for percent in (0..=100).step_by(GRID as usize) {
        let y = Axes::y(f64::from(percent) / 100.0);
        let (right, words) = (WIDTH - RIGHT, LEFT - 8.0);
        writeln!(svg, "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>")?;
        writeln!(svg, "<text x=\"{words}\" y=\"{:.1}\" text-anchor=\"end\">{percent} %</text>", y + 4.0)?;
    }
    for column in 0..axes.columns {
        let (x, y) = (axes.x(column), HEIGHT - BOTTOM + 18.0);
        writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{}</text>", column + 1)?;
    }
    let (x, y) = (f64::midpoint(LEFT, WIDTH - RIGHT), HEIGHT - 8.0);
    writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">statements about a reply</text>")
}

fn curve(
    svg: &mut String,
    axes: &Axes,
    name: &str,
    colour: &str,
    place: f64,
    rows: &[Row],
    share: impl Fn(&Row) -> Proportion,
) -> std::fmt::Result {
    let mut points = String::new();
    for (column, proportion) in rows.iter().map(share).enumerate() {
        let (Some(value), Some(interval)) = (proportion.value(), proportion.interval()) else { continue };
        let (x, y) = (axes.x(column), Axes::y(value));
        let (low, high) = (Axes::y(interval.low), Axes::y(interval.high));
        write!(points, "{x:.1},{y:.1} ")?;
        writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{low:.1}\" x2=\"{x:.1}\" y2=\"{high:.1}\" stroke=\"{colour}\" opacity=\"0.4\"/>"
        )?;
        writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>")?;
    }
    writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
        points.trim_end()
    )?;
    /// From the name of one curve to the next.
    const APART: f64 = 120.0;
    let x = LEFT + APART * place;
    writeln!(svg, "<text x=\"{x:.1}\" y=\"16\" fill=\"{colour}\">{name}</text>")
}
