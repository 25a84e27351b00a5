//! `portcullis erase` and `retention`: what they say, what exports say then, and what is in the files.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::command::{Ran, run};

struct Home(TempDir);

impl Home {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, args: &[&str]) -> Ran {
        let state = self.path("state");
        run(&[&["--home", state.to_str().unwrap()], args].concat())
    }

    fn simulate(&self) -> String {
        let ran = self.run(&["simulate", "--plan", "Handle Data Access Request"]);
        ran.stdout.lines().rev().find_map(|line| line.strip_prefix("run ")).unwrap().to_owned()
    }

    /// Exports a run and verifies it: what is said of its payloads.
    fn payloads(&self, run: &str) -> serde_json::Value {
        let (export, trust) = (self.path("run.export"), self.path("run.trust"));
        let (export, trust) = (export.to_str().unwrap(), trust.to_str().unwrap());
        let ran = self.run(&["export", run, "-o", export, "--trust-out", trust]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let ran = self.run(&["verify", export, "--trust", trust, "--json"]);
        let [report] = ran.json().try_into().unwrap();
        assert_eq!(report["status"], "VALID");
        report["payloads"].clone()
    }
}

fn holds(folder: &Path, text: &[u8]) -> bool {
    std::fs::read_dir(folder).unwrap().map(Result::unwrap).any(|entry| match entry.file_type().unwrap() {
        kind if kind.is_dir() => holds(&entry.path(), text),
        kind if kind.is_file() => {
            std::fs::read(entry.path()).unwrap().windows(text.len()).any(|window| window == text)
        }
        _ => false,
    })
}

#[test]
fn a_run_is_erased_and_verifies_and_says_so() {
    let home = Home(tempfile::tempdir().unwrap());
    let (run, other) = (home.simulate(), home.simulate());
    let before = home.payloads(&run);
    let all = before["verified"].as_u64().unwrap();
    assert!(all > 2, "{before}");
    let [counted] = home.run(&["erase", &run, "--dry-run", "--json"]).json().try_into().unwrap();
    assert_eq!((counted["payloads"].as_u64(), &counted["dry_run"]), (Some(all), &true.into()));
    assert_eq!(home.payloads(&run), before);
    let arguments = home.run(&["erase", &run, "--name", "arguments", "--reason", "request 17", "--json"]);
    let [erased] = arguments.json().try_into().unwrap();
    assert_eq!((arguments.code, &erased["purged"]), (0, &true.into()));
    let some = erased["payloads"].as_u64().unwrap();
    assert!(0 < some && some < all);
    let counts = home.payloads(&run);
    assert_eq!((counts["verified"].as_u64(), counts["erased"].as_u64()), (Some(all - some), Some(some)));
    let rest = home.run(&["erase", &run]);
    assert_eq!(rest.code, 0, "{}", rest.stderr);
    assert!(rest.stdout.contains("of 1 run erased: "), "{}", rest.stdout);
    assert!(rest.stdout.contains("no file of the store holds them"), "{}", rest.stdout);
    assert_eq!(home.payloads(&run)["erased"].as_u64(), Some(all));
    assert_eq!(home.payloads(&other)["verified"].as_u64(), Some(all));
    let ran = home.run(&["export", &run, "-o", home.path("again.export").to_str().unwrap()]);
    assert!(ran.stdout.contains(&format!("{all} payloads were erased from the store")), "{}", ran.stdout);
}

#[test]
fn text_is_found_in_all_runs_and_retention_goes_by_age() {
    let home = Home(tempfile::tempdir().unwrap());
    let run = home.simulate();
    let export = home.path("run.export");
    assert_eq!(home.run(&["export", &run, "-o", export.to_str().unwrap()]).code, 0);
    let text = std::fs::read_to_string(&export).unwrap();
    let payload = text.lines().rev().find(|line| line.contains(r#""record":"payload""#)).unwrap();
    let words = payload.split(r#""text":""#).nth(1).unwrap().get(..12).unwrap().replace('\\', "");
    let ledger = home.path("state").join("ledger");
    assert!(holds(&ledger, words.trim_matches('"').as_bytes()) || words.contains('"'));
    // Nothing is that old.
    let old = home.run(&["retention", "--payloads-older-than", "180d", "--json"]);
    assert_eq!((old.code, &old.json()[0]["payloads"]), (0, &0.into()));
    let none = home.run(&["erase", "--principal", "nobody", "--json"]);
    assert_eq!((none.code, &none.json()[0]["payloads"]), (0, &0.into()));
    let refused = home.run(&["erase", "--contains", "ab"]);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    for wrong in [
        &["erase"][..],
        &["erase", "--name", "text"],
        &["erase", "--before", "2026-13-01"],
        &["erase", "--contains", "abc", "--event", "3"],
        &["retention", "--payloads-older-than", "180"],
        &["retention", "--payloads-older-than", "0d"],
    ] {
        assert_ne!(home.run(wrong).code, 0, "{wrong:?}");
        assert_eq!(home.payloads(&run)["erased"].as_u64(), Some(0), "{wrong:?}");
    }
    let tomorrow = home.run(&["erase", "--before", "2999-01-01", "--json"]);
    assert_eq!(tomorrow.code, 0);
    assert_eq!(home.payloads(&run)["verified"].as_u64(), Some(0));
    let compacted = home.run(&["retention", "--payloads-older-than", "1d", "--compact", "--json"]);
    let [said] = compacted.json().try_into().unwrap();
    assert_eq!(
        (compacted.code, &said["purged"], &said["needs_compaction"], &said["free_bytes"]),
        (0, &true.into(), &false.into(), &0.into())
    );
    assert_ne!(home.run(&["erase", "--before", "2999-01-01", "--compact", "--dry-run"]).code, 0);
}
