//! Exports of many runs: three of a writer, and what can be left out, added, swapped or given a second number.

use super::{Case, World, case, folder, invalid, logged, packed};
use crate::log::world::WRITER;
use crate::sample::Builder;
use portcullis_proof::export::SegmentState;
use portcullis_proof::log::{Leaf, RunHead};

type Files = Vec<(String, Vec<u8>)>;

fn three() -> World {
    World::of(vec![logged(1, 0), logged(2, 1), logged(3, 2)])
}

fn without(files: &Files, start: &str) -> Files {
    files.iter().filter(|(name, _)| !name.starts_with(start)).cloned().collect()
}

fn with(files: &Files, name: &str, bytes: &[u8]) -> Files {
    [files.clone(), vec![(name.to_owned(), bytes.to_vec())]].concat()
}

fn file<'f>(files: &'f mut Files, name: &str) -> &'f mut Vec<u8> {
    &mut files.iter_mut().find(|(other, _)| other == name).unwrap().1
}

fn mismatched(name: &'static str, says: &'static str, files: &Files, file: &str) -> Case {
    invalid(name, says, packed(files), ("files-mismatched", file.to_owned(), None, 0, None))
}

pub(super) fn cases() -> Vec<Case> {
    [of_numbers(), of_names(), of_runs()].into_iter().flatten().collect()
}

fn of_numbers() -> Vec<Case> {
    let all = three().all();
    let second = folder(1);
    // The run is there, and no leaf beside the folders accounts for it.
    let unaccounted = without(&all, "log/number-2");
    let reused = World::of(vec![logged(1, 0), logged(2, 0)]);
    let renumbered = {
        let mut world = World::of(vec![logged(1, 0)]);
        let [open, _] = world.runs[0].heads.clone();
        world.log.add_signed(Leaf::Head(RunHead { run_no: 7, ..open }), WRITER);
        let last = world.log.size() - 1;
        let mut files = world.leaf("", "enrolment", 3);
        files.extend(world.leaf("", "number-0", last));
        files.extend(world.run(&folder(0), 0));
        files
    };
    let only_heads = World::of(vec![logged(1, 0), logged(2, 0)]);
    let mut beside = only_heads.leaf("", "enrolment", 3);
    beside.extend(only_heads.leaf("", "number-0", World::closed(0)));
    beside.extend(only_heads.leaf("", "number-0-again", World::closed(1)));
    beside.extend(only_heads.run(&folder(0), 0));
    vec![
        case("many-valid", "three runs, and a leaf for each number", packed(&all), "VALID"),
        case(
            "many-withheld",
            "a run is left out, the leaf for its number is there",
            packed(&without(&all, &second)),
            "INCOMPLETE",
        ),
        case(
            "many-missing",
            "a run is left out, and the leaf for its number with it",
            packed(&without(&without(&all, &second), "log/number-1")),
            "INCOMPLETE",
        ),
        case("many-unaccounted", "no leaf accounts for the last run", packed(&unaccounted), "INCOMPLETE"),
        case("many-no-numbers", "no leaf accounts for any run", packed(&without(&all, "log/")), "INCOMPLETE"),
        invalid(
            "many-number-reused",
            "two runs have one number, and each of them is good",
            packed(&without(&reused.all(), "log/number-1")),
            ("run-number-reused", format!("{second}log/closed.leaf"), None, 0, None),
        ),
        invalid(
            "many-number-reused-beside",
            "two leaves that account for numbers give one number to two runs",
            packed(&beside),
            ("run-number-reused", "log/number-0-again.leaf".to_owned(), None, 0, None),
        ),
        invalid(
            "many-renumbered",
            "the leaf that accounts for a run gives it another number than its own",
            packed(&renumbered),
            ("head-mismatch", format!("{}log/closed.leaf", folder(0)), None, 0, None),
        ),
        invalid(
            "many-numbers-forged",
            "the proof of a leaf that accounts for a number is of another leaf",
            packed(&{
                let mut files = all.clone();
                let other = file(&mut files, "log/number-0.tlog-proof").clone();
                *file(&mut files, "log/number-1.tlog-proof") = other;
                files
            }),
            ("not-in-log", "log/number-1.tlog-proof".to_owned(), Some(2), 23, None),
        ),
    ]
}

fn of_names() -> Vec<Case> {
    let all = three().all();
    let run = logged(4, 3).export.text;
    let (first, second) = (folder(0), folder(1));
    let bad = |folder: &str| -> Files {
        all.iter().map(|(name, bytes)| (name.replace(&second, folder), bytes.clone())).collect()
    };
    let inside = format!("{first}notes.txt");
    let long = format!("runs/{}/", "a".repeat(65));
    let mut altered = with(&all, "runs/x.txt", b"x");
    file(&mut altered, &format!("{first}run.export"))[0] = b'[';
    vec![
        mismatched(
            "many-run-beside",
            "a run beside the folders of runs",
            &with(&all, "run.export", &run),
            "run.export",
        ),
        mismatched(
            "many-stray",
            "a file between the folders of runs",
            &with(&all, "runs/x.txt", b"x"),
            "runs/x.txt",
        ),
        mismatched("many-stray-beside", "a file that no export has", &with(&all, "x.txt", b"x"), "x.txt"),
        mismatched(
            "many-stray-inside",
            "a file in the folder of a run that no run has",
            &with(&all, &inside, b"x"),
            &inside,
        ),
        mismatched(
            "many-name-upper-case",
            "the folder of a run has letters that names have not",
            &bad("runs/RUN-2/"),
            "runs/RUN-2/log/closed.leaf",
        ),
        mismatched(
            "many-name-too-long",
            "the name of a folder has 65 letters",
            &bad(&long),
            &format!("{long}log/closed.leaf"),
        ),
        mismatched("many-names-first", "a stray file, and a run that is none", &altered, "runs/x.txt"),
        mismatched(
            "many-half-dropped",
            "a leaf that accounts for a number, without its proof",
            &without(&all, "log/number-1.tlog-proof"),
            "log/number-1.leaf",
        ),
        case(
            "many-policy-inside",
            "a policy that comes with the export is not read",
            packed(&with(&all, "trust.policy", b"x")),
            "VALID",
        ),
        case(
            "many-no-run",
            "a folder of a run without its run",
            packed(&without(&all, &format!("{second}run.export"))),
            "UNREADABLE",
        ),
        case(
            "many-no-folder",
            "a file below `runs/`, and no run",
            packed(&[("runs/x.txt".to_owned(), Vec::new())]),
            "UNREADABLE",
        ),
    ]
}

fn of_runs() -> Vec<Case> {
    let world = three();
    let all = world.all();
    let (second, third) = (folder(1), folder(2));
    let export = |folder: &str| format!("{folder}run.export");
    let mut altered = all.clone();
    let text = file(&mut altered, &export(&second));
    let at = text.windows(4).position(|window| window == b"deny").unwrap();
    text[at] = b'D';
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let byte: usize = lines[..9].iter().map(|line| line.len()).sum();
    let twice = [all.clone(), world.run("runs/ff/", 0)].concat();
    let mut swapped = all.clone();
    let other = file(&mut swapped, &export(&third)).clone();
    *file(&mut swapped, &export(&second)) = other;
    let open = without(&all, &format!("{second}log/closed."));
    let mut elsewhere = Builder::of_store("portcullis/elsewhere", 4);
    elsewhere.segment(0x51, "writer-1");
    elsewhere.event("run-opened", "{}");
    elsewhere.close(SegmentState::Closed);
    let elsewhere = with(&all, "runs/ff/run.export", &elsewhere.finish().text);
    let mut forged = all.clone();
    *file(&mut forged, &format!("{third}log/open.leaf")).last_mut().unwrap() ^= 1;
    vec![
        invalid(
            "many-event-altered",
            "an event of the second run",
            packed(&altered),
            ("event-altered", export(&second), Some(10), byte as u64, Some(8)),
        ),
        invalid(
            "many-run-twice",
            "one run in two folders",
            packed(&twice),
            ("files-mismatched", "runs/ff/run.export".to_owned(), None, 0, None),
        ),
        invalid(
            "many-run-swapped",
            "the third run in the folder of the second",
            packed(&swapped),
            ("head-of-another-run", format!("{second}log/open.leaf"), None, 0, None),
        ),
        invalid(
            "many-leaf-altered",
            "one bit of a leaf of the third run",
            packed(&forged),
            ("not-in-log", format!("{third}log/open.tlog-proof"), Some(2), 23, None),
        ),
        invalid(
            "many-two-stores",
            "a run of another store, of which no log says anything",
            packed(&elsewhere),
            ("wrong-origin", "runs/ff/run.export".to_owned(), Some(1), 0, None),
        ),
        case("many-one-open", "the end of the second run is left out", packed(&open), "INCOMPLETE"),
    ]
}
