//! The arms as a drawing: LPA, LPR and EA of each, with intervals.

use std::fmt::{Result, Write as _};

use super::Report;
use crate::interval::Proportion;

const WIDTH: f64 = 760.0;
/// Room for the arms' names, the title, the axis, and the names of the figures.
const LEFT: f64 = 190.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 78.0;
const BOTTOM: f64 = 40.0;
/// Height of an arm.
const ROW: f64 = 44.0;
/// How far the three figures of an arm stand apart.
const APART: f64 = 11.0;
/// They can be told apart without seeing red or green, and on white.
const FIGURES: [(&str, &str); 3] = [("LPA", "#0072b2"), ("LPR", "#d55e00"), ("EA", "#009e73")];

impl Report {
    /// An SVG with a row an arm.
    pub fn plot(&self) -> String {
        let mut svg = String::new();
        // Writing to a text cannot fail.
        let _written = self.draw(&mut svg);
        svg
    }

    fn draw(&self, svg: &mut String) -> Result {
        let height = ROW.mul_add(self.arms.len() as f64, TOP + BOTTOM);
        let model = self.model.as_deref().unwrap_or("no model");
        writeln!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"system-ui, sans-serif\" \
             font-size=\"12\" fill=\"#333\">\n<title>GuardAgent on {}: arms</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
             <text x=\"16\" y=\"24\" font-size=\"15\" font-weight=\"600\" fill=\"#111\">{}: {}</text>\n\
             <text x=\"16\" y=\"42\" fill=\"#666\">{} records; bars are 95 % intervals</text>",
            escaped(self.suite),
            escaped(self.suite),
            escaped(model),
            self.judged
        )?;
        for (place, (name, colour)) in FIGURES.iter().enumerate() {
            let x = LEFT + 60.0 * place as f64;
            writeln!(svg, "<text x=\"{x}\" y=\"64\" fill=\"{colour}\" font-weight=\"600\">{name}</text>")?;
        }
        let bottom = height - BOTTOM;
        for percent in (0..=100).step_by(20) {
            let x = x(percent as f64 / 100.0);
            writeln!(
                svg,
                "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\" stroke=\"#e4e4e4\"/>"
            )?;
            writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{percent} %</text>",
                bottom + 18.0
            )?;
        }
        for (place, arm) in self.arms.iter().enumerate() {
            let y = ROW.mul_add(place as f64 + 0.5, TOP);
            let words = LEFT - 12.0;
            writeln!(
                svg,
                "<text x=\"{words}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                y + 4.0,
                escaped(&arm.arm)
            )?;
            let shares = [arm.all.labels.accuracy(), arm.all.labels.recall(), arm.all.explained];
            for (place, (share, (_, colour))) in shares.into_iter().zip(FIGURES).enumerate() {
                point(svg, share, (place as f64 - 1.0).mul_add(APART, y), colour)?;
            }
        }
        svg.push_str("</svg>\n");
        Ok(())
    }
}

fn x(share: f64) -> f64 {
    (WIDTH - LEFT - RIGHT).mul_add(share, LEFT)
}

fn point(svg: &mut String, share: Proportion, y: f64, colour: &str) -> Result {
    let (Some(value), Some(interval)) = (share.value(), share.interval()) else { return Ok(()) };
    let (low, high, at) = (x(interval.low), x(interval.high), x(value));
    writeln!(
        svg,
        "<line x1=\"{low:.1}\" y1=\"{y:.1}\" x2=\"{high:.1}\" y2=\"{y:.1}\" stroke=\"{colour}\" stroke-width=\"2\" \
         opacity=\"0.35\"/>\n<circle cx=\"{at:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\" stroke=\"white\"/>"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
