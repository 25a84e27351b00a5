//! Reports of evaluations that lie in the state folder.

use std::fs;
use std::path::Path;

use axum::extract::State;
use axum::response::Response;
use portcullis_console::Role;
use portcullis_console::evals::{self as pages, Evals, Figure, Report};
use portcullis_console::frame::Place;
use portcullis_core::time::Timestamp;
use portcullis_ledger::clock;
use serde_json::Value;

use super::desk::short;
use super::visitor::Visitor;
use super::{Seen, page as pages_of};

/// Folder in the state folder.
pub(super) const FOLDER: &str = "evaluations";
/// Reports that are shown, the latest first.
const REPORTS_MAX: usize = 24;
/// Size of a report, in bytes.
const REPORT_BYTES_MAX: u64 = 8 << 20;
/// Figures of a report that are shown.
const FIGURES_MAX: usize = 40;
/// Notes of a report that are shown.
const NOTES_MAX: usize = 12;
/// How deep figures are looked for.
const DEPTH_MAX: usize = 8;

pub(super) async fn page(State(seen): State<Seen>, visitor: Visitor) -> Response {
    if let Err(refused) = visitor.at_least(Role::Approver) {
        return refused.page(&seen, &visitor).await;
    }
    let folder = seen.shared.home.path().join(FOLDER);
    let of = folder.clone();
    let reports = tokio::task::spawn_blocking(move || reports(&of)).await.unwrap_or_default();
    let bundle = seen.shared.gate.bundles().get(None).ok().map(|(_, bundle)| bundle.digest().to_string());
    let page = Evals {
        reports,
        folder: folder.display().to_string(),
        bundle: bundle.map(|digest| short(&digest).to_owned()).unwrap_or_default(),
        now: clock::now(),
    };
    pages_of::framed(&seen, &visitor, Place::Evaluation, Place::Evaluation.name(), pages::page(&page)).await
}

/// The reports of a folder, the latest first.
fn reports(folder: &Path) -> Vec<Report> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries
        .filter_map(|entry| {
            let path = entry.path();
            let meta = entry.metadata().ok()?;
            let is_report = meta.is_file() && path.extension().is_some_and(|extension| extension == "json");
            is_report.then_some((meta.modified().ok(), meta.len(), path))
        })
        .collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.0));
    let mut all: Vec<Report> = Vec::new();
    for (at, bytes, path) in files.into_iter().take(REPORTS_MAX) {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let at = at.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        let at = at.and_then(|at| i64::try_from(at.as_micros()).ok()).map(Timestamp::from_micros);
        let read = if bytes > REPORT_BYTES_MAX {
            Err(format!("it has more than {REPORT_BYTES_MAX} bytes"))
        } else {
            fs::read(&path)
                .map_err(|error| error.to_string())
                .and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string()))
        };
        let mut report = match read {
            Ok(value) => report(&value, &name),
            Err(why) => {
                Report { refused: Some(format!("`{name}` cannot be read: {why}")), ..Report::default() }
            }
        };
        (report.file, report.at) = (name, at);
        all.push(report);
    }
    compare(&mut all);
    all
}

/// Puts the figure of the report before beside that of the report after it, where both are of one suite.
fn compare(all: &mut [Report]) {
    for at in 0..all.len() {
        let (newer, older) = all.split_at_mut(at + 1);
        let Some(report) = newer.last_mut() else { continue };
        let Some(before) = older.iter().find(|other| other.suite == report.suite) else { continue };
        for figure in &mut report.figures {
            figure.before =
                before.figures.iter().find(|other| other.label == figure.label).map(|other| other.value);
        }
    }
}

fn report(value: &Value, file: &str) -> Report {
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
    let mut figures = Vec::new();
    collect(value, &mut Vec::new(), 0, &mut figures);
    if figures.is_empty() {
        let why = format!(
            "`{file}` has no figures with intervals; `portcullis eval SUITE --json FILE` writes reports"
        );
        return Report { refused: Some(why), suite: file.to_owned(), ..Report::default() };
    }
    let published = value.get("published").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for figure in &mut figures {
        figure.published = best(published, &figure.label);
    }
    let more = figures.len().saturating_sub(FIGURES_MAX);
    figures.truncate(FIGURES_MAX);
    let list = |name: &str| value.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let timing = value.get("decisions");
    let micros = |name: &str| timing.and_then(|timing| timing.get(name)).and_then(Value::as_f64);
    Report {
        suite: text("suite").unwrap_or_else(|| file.trim_end_matches(".json").to_owned()),
        bundle: short(&text("bundle").unwrap_or_default()).to_owned(),
        took_us: micros("p50_us").zip(micros("p99_us")),
        notes: list("notes")
            .iter()
            .filter_map(Value::as_str)
            .take(NOTES_MAX)
            .map(ToOwned::to_owned)
            .collect(),
        skipped: list("skipped")
            .iter()
            .filter_map(|one| Some((one.get("count")?.as_u64()?, one.get("why")?.as_str()?.to_owned())))
            .collect(),
        figures,
        more,
        ..Report::default()
    }
}

/// The best of what others published for the whole, in percent.
fn best(published: &[Value], label: &str) -> Option<(f64, String)> {
    let key = label.strip_prefix("all ").unwrap_or(label);
    published
        .iter()
        .filter_map(|one| Some((one.get(key)?.as_f64()?, one.get("name")?.as_str()?.to_owned())))
        .max_by(|one, other| one.0.total_cmp(&other.0))
}

/// All proportions of a report, each with the words on the way to it.
fn collect(value: &Value, way: &mut Vec<String>, depth: usize, figures: &mut Vec<Figure>) {
    if depth > DEPTH_MAX {
        return;
    }
    match value {
        Value::Object(fields) => {
            if let Some(figure) = proportion(value, way) {
                figures.push(figure);
                return;
            }
            let name = fields.get("name").and_then(Value::as_str);
            if let Some(name) = name {
                way.push(name.to_owned());
            }
            for (key, inner) in fields.iter().filter(|(key, _)| *key != "published") {
                way.push(key.replace('_', " "));
                collect(inner, way, depth + 1, figures);
                way.pop();
            }
            if name.is_some() {
                way.pop();
            }
        }
        Value::Array(list) => list.iter().for_each(|inner| {
            let group = way.pop();
            collect(inner, way, depth + 1, figures);
            way.extend(group);
        }),
        _ => {}
    }
}

fn proportion(value: &Value, way: &[String]) -> Option<Figure> {
    let interval = value.get("interval_95")?;
    Some(Figure {
        label: way.join(" "),
        hits: value.get("hits")?.as_u64()?,
        of: value.get("of")?.as_u64()?,
        value: value.get("value")?.as_f64()?,
        low: interval.get("low")?.as_f64()?,
        high: interval.get("high")?.as_f64()?,
        published: None,
        before: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_wherever_a_report_has_them() {
        let of = |hits: u64| serde_json::json!({"hits": hits, "of": 10, "value": hits as f64 / 10.0, "interval_95": {"low": 0.1, "high": 0.9}});
        let value = serde_json::json!({
            "suite": "eicu-ac", "bundle": "sha256:0123456789abcdef", "all": {"records": 10, "lpa": of(9)},
            "groups": [{"name": "physician", "lpa": of(8)}],
            "published": [{"name": "A", "lpa": 98.7, "lpp": null}, {"name": "B", "lpa": 81.0}],
            "decisions": {"p50_us": 12.0, "p99_us": 40.0}, "skipped": [{"count": 2, "why": "no data"}], "notes": ["n"],
        });
        let found = report(&value, "x.json");
        let labels: Vec<&str> = found.figures.iter().map(|figure| figure.label.as_str()).collect();
        assert_eq!(labels, ["all lpa", "physician lpa"]);
        assert_eq!(found.figures[0].published, Some((98.7, "A".to_owned())));
        assert_eq!((found.bundle.as_str(), found.took_us), ("01234567", Some((12.0, 40.0))));
        assert!(report(&serde_json::json!({"a": 1}), "x.json").refused.is_some());
        let mut two = [
            found.clone(),
            Report { figures: vec![Figure { value: 0.5, ..found.figures[0].clone() }], ..found },
        ];
        compare(&mut two);
        assert_eq!(two[0].figures[0].before, Some(0.5));
    }
}
