//! `cargo xtask timings`: what it costs to build the demo from nothing.
//!
//! Sources are fetched first and the build goes into a folder of its own, so the figures hold compiling and linking
//! alone. CPU seconds are those of all processes of the build, user and system, as the kernel adds them up for the
//! parent that waited for them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::process::{Failure, Program, Result, doing};

const HEAVIEST_SHOWN: usize = 10;

/// A target folder that goes when it is dropped.
struct Fresh(PathBuf);

impl Fresh {
    fn new() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("portcullis-timings-{}", std::process::id()));
        doing(&format!("make `{}`", folder.display()), fs::create_dir(&folder))?;
        Ok(Self(folder))
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("xtask: cannot remove `{}`: {error}", self.0.display());
        }
    }
}

/// Builds and prints.
///
/// # Errors
/// The build fails, or its report cannot be read.
pub(crate) fn run() -> Result<()> {
    Program::cargo(["fetch", "--locked", "--quiet"]).run()?;
    let target = Fresh::new()?;
    let before = cpu_of_children();
    let start = Instant::now();
    Program::cargo(["build", "--profile", "demo", "--locked", "--timings"])
        .env("CARGO_TARGET_DIR", &target.0)
        .run()?;
    let wall = start.elapsed();
    let cpu = before.zip(cpu_of_children()).map(|(before, after)| after.saturating_sub(before));
    let units = units(&target.0)?;

    println!("\ncold build of the demo profile, sources fetched before");
    println!("  wall   {:.1} s", wall.as_secs_f64());
    match cpu {
        Some(cpu) => println!("  CPU    {:.1} s (user and system)", cpu.as_secs_f64()),
        None => println!("  CPU    not measured: the kernel's figures are read on Linux only"),
    }
    println!("  cores  {}", std::thread::available_parallelism().map_or(0, usize::from));
    println!("  rustc  {}", Program::new("rustc").args(["--version"]).answer().unwrap_or_default());
    println!(
        "  crates {}",
        units.iter().map(|unit| (&unit.name, &unit.version)).collect::<BTreeSet<_>>().len()
    );
    println!("the {HEAVIEST_SHOWN} heaviest, all their units together:");
    for (name, seconds) in heaviest(&units) {
        println!("  {seconds:>6.1} s  {name}");
    }
    Ok(())
}

/// One unit of cargo's own report.
#[derive(Debug)]
struct Unit {
    name: String,
    version: String,
    seconds: f64,
}

fn units(target: &Path) -> Result<Vec<Unit>> {
    let path = target.join("cargo-timings/cargo-timing.html");
    let page = doing(&format!("read `{}`", path.display()), fs::read_to_string(&path))?;
    read_units(&page)
        .ok_or_else(|| Failure::new("cargo's report of timings has another form than this cargo xtask knows"))
}

/// The table of units stands in cargo's page as `const UNIT_DATA = [...];`.
fn read_units(page: &str) -> Option<Vec<Unit>> {
    let (_, rest) = page.split_once("const UNIT_DATA = ")?;
    let (table, _) = rest.split_once(";\n")?;
    let table: Vec<Value> = serde_json::from_str(table).ok()?;
    let unit = |entry: &Value| {
        Some(Unit {
            name: entry.get("name")?.as_str()?.to_owned(),
            version: entry.get("version")?.as_str()?.to_owned(),
            seconds: entry.get("duration")?.as_f64()?,
        })
    };
    table.iter().map(unit).collect()
}

fn heaviest(units: &[Unit]) -> Vec<(String, f64)> {
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for unit in units {
        *sums.entry(format!("{} {}", unit.name, unit.version)).or_default() += unit.seconds;
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by(|left, right| right.1.total_cmp(&left.1));
    sums.truncate(HEAVIEST_SHOWN);
    sums
}

/// User and system time of every process we have waited for, and of those they have waited for.
fn cpu_of_children() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let ticks: u64 = Program::new("getconf").args(["CLK_TCK"]).answer()?.parse().ok()?;
    Some(Duration::from_secs_f64(children_ticks(&stat)? as f64 / ticks as f64))
}

/// `cutime` and `cstime`, fields 16 and 17 of proc(5)'s stat. The second field, in brackets, may hold anything.
fn children_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(13);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    user.checked_add(system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_fields_of_the_kernel() {
        let stat = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 11 12 300 45 20 0 1";
        assert_eq!(children_ticks(stat), Some(345));
        assert_eq!(children_ticks("7 (a) S 1"), None);
    }

    #[test]
    fn reads_cargos_page_and_adds_up_units() {
        let page = "x\nconst UNIT_DATA = [\n {\"name\": \"a\", \"version\": \"1\", \"duration\": 0.5},\n \
                    {\"name\": \"b\", \"version\": \"1\", \"duration\": 0.6},\n \
                    {\"name\": \"a\", \"version\": \"1\", \"duration\": 0.25}\n];\nrest";
        let units = read_units(page).unwrap();
        assert_eq!(heaviest(&units), [("a 1".to_owned(), 0.75), ("b 1".to_owned(), 0.6)]);
        assert!(read_units("another page").is_none());
    }
}
