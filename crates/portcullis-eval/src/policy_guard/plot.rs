//! Compliance by the number of statements, as a drawing: a line for the replies as they came and one a strategy.

use std::fmt::{Result, Write as _};

use super::{Report, Row};
use crate::interval::Proportion;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
/// Room for the axes' words, the title, and the names of the lines at their ends.
const LEFT: f64 = 56.0;
const BOTTOM: f64 = 52.0;
const TOP: f64 = 60.0;
const RIGHT: f64 = 190.0;
/// Percentage points from one line of the grid to the next; twice as many where over half of the range is drawn.
const GRID: usize = 10;
/// Least distance of two names, in units of the drawing.
const LINE: f64 = 17.0;
/// How far the points of two lines stand apart, so that no interval hides another.
const APART: f64 = 3.0;
/// The replies as they came.
const PLAIN: &str = "#767676";
/// Lines of strategies. They can be told apart without seeing red or green, and on white.
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#4b2e83"];

/// One line.
struct Curve<'r> {
    name: &'r str,
    colour: &'static str,
    shares: Vec<Proportion>,
}

/// The places of a drawing.
struct Axes {
    columns: usize,
    /// The share at the bottom, in percent.
    floor: usize,
    /// Percentage points from one line of the grid to the next.
    grid: usize,
}

impl Axes {
    fn x(&self, column: usize) -> f64 {
        let step = (WIDTH - LEFT - RIGHT) / self.columns.max(1) as f64;
        LEFT + step * (column as f64 + 0.5)
    }

    /// Of a share, 0 to 1.
    fn y(&self, share: f64) -> f64 {
        let floor = self.floor as f64 / 100.0;
        TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - (share - floor) / (1.0 - floor))
    }
}

impl Report {
    /// An SVG: statements that hold as the replies came and after each strategy, with intervals, by how many there are.
    pub fn plot(&self) -> String {
        let of = |rows: &[Row], share: fn(&Row) -> Proportion| rows.iter().map(share).collect();
        let before =
            Curve { name: "as it came", colour: PLAIN, shares: of(&self.by_count, |row| row.before) };
        let strategies = self.strategies.iter().zip(COLOURS.iter().cycle()).map(|(one, colour)| Curve {
            name: &one.strategy,
            colour,
            shares: of(&one.by_count, |row| row.after),
        });
        let curves: Vec<Curve<'_>> = std::iter::once(before).chain(strategies).collect();
        let lowest = curves.iter().flat_map(|curve| &curve.shares).filter_map(|share| share.interval());
        let lowest = lowest.map(|interval| interval.low).fold(1.0, f64::min);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share is from 0 to 1")]
        let lowest = (lowest * 100.0) as usize;
        let grid = if lowest < 50 { 2 * GRID } else { GRID };
        let floor = (lowest / grid * grid).min(100 - grid);
        let axes = Axes { columns: self.by_count.len(), floor, grid };
        let mut svg = String::new();
        // Writing to a text cannot fail.
        let _written = frame(&mut svg, &axes, self.judged).and_then(|()| {
            for (place, curve) in curves.iter().enumerate() {
                draw(&mut svg, &axes, curve, (place as f64 - (curves.len() - 1) as f64 / 2.0) * APART)?;
            }
            names(&mut svg, &axes, &curves)
        });
        svg.push_str("</svg>\n");
        svg
    }
}

fn frame(svg: &mut String, axes: &Axes, replies: usize) -> Result {
    writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"system-ui, sans-serif\" \
         font-size=\"12\" fill=\"#333\">\n<title>Policy Guard: compliance by number of statements</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"24\" font-size=\"15\" font-weight=\"600\" fill=\"#111\">Statements that hold</text>\n\
         <text x=\"{LEFT}\" y=\"42\" fill=\"#666\">share of all statements about {replies} replies; bars are 95 % intervals</text>"
    )?;
    for percent in (axes.floor..=100).step_by(axes.grid) {
        let y = axes.y(percent as f64 / 100.0);
        let (right, words) = (WIDTH - RIGHT, LEFT - 8.0);
        let colour = if percent == axes.floor { "#999" } else { "#e4e4e4" };
        writeln!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\" stroke=\"{colour}\"/>"
        )?;
        writeln!(svg, "<text x=\"{words}\" y=\"{:.1}\" text-anchor=\"end\">{percent} %</text>", y + 4.0)?;
    }
    for column in 0..axes.columns {
        let (x, y) = (axes.x(column), HEIGHT - BOTTOM + 18.0);
        writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{}</text>", column + 1)?;
    }
    let (x, y) = (f64::midpoint(LEFT, WIDTH - RIGHT), HEIGHT - 12.0);
    writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" fill=\"#666\">statements about a reply</text>"
    )
}

/// A line, its points, and the intervals behind them, a little to the side.
fn draw(svg: &mut String, axes: &Axes, curve: &Curve<'_>, aside: f64) -> Result {
    let colour = curve.colour;
    let mut points = String::new();
    let mut dots = String::new();
    for (column, proportion) in curve.shares.iter().enumerate() {
        let (Some(value), Some(interval)) = (proportion.value(), proportion.interval()) else { continue };
        let (x, y) = (axes.x(column) + aside, axes.y(value));
        let (low, high) = (axes.y(interval.low), axes.y(interval.high));
        writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{low:.1}\" x2=\"{x:.1}\" y2=\"{high:.1}\" stroke=\"{colour}\" opacity=\"0.3\"/>"
        )?;
        write!(points, "{x:.1},{y:.1} ")?;
        writeln!(dots, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\" stroke=\"white\"/>")?;
    }
    let dashes = if colour == PLAIN { " stroke-dasharray=\"5 4\"" } else { "" };
    writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>",
        points.trim_end()
    )?;
    svg.push_str(&dots);
    Ok(())
}

/// The name of each line at its right end, with its last share; names that would overlap are moved apart.
fn names(svg: &mut String, axes: &Axes, curves: &[Curve<'_>]) -> Result {
    let last = |curve: &Curve<'_>| curve.shares.last().and_then(|share| share.value());
    let mut ends: Vec<(f64, &Curve<'_>, f64)> =
        curves.iter().filter_map(|curve| last(curve).map(|share| (axes.y(share), curve, share))).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Down from the highest, then up from the lowest where that ran over the bottom.
    let mut free = f64::MIN;
    for (y, ..) in &mut ends {
        *y = y.max(free);
        free = *y + LINE;
    }
    let mut free = HEIGHT - BOTTOM;
    for (y, ..) in ends.iter_mut().rev() {
        *y = y.min(free);
        free = *y - LINE;
    }
    let x = WIDTH - RIGHT + 10.0;
    for (y, curve, share) in ends {
        let (y, colour, name, percent) = (y + 4.0, curve.colour, curve.name, share * 100.0);
        writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\" font-weight=\"600\">{name}<tspan font-weight=\"400\" dx=\"6\">\
             {percent:.1} %</tspan></text>"
        )?;
    }
    Ok(())
}
