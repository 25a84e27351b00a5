//! Exports of runs that opened others: a tree of three, and what can be left out, added, exchanged, cut off or claimed.

use super::{Case, World, case, folder, invalid, logged, logged_export, packed};
use crate::sample::{Builder, Export, id};
use portcullis_proof::export::SegmentState;

type Files = Vec<(String, Vec<u8>)>;

/// How the tree differs from an honest one.
#[derive(Clone, Copy, PartialEq)]
enum Lie {
    None,
    /// The child names another event of its parent.
    OtherEvent,
    /// The child names another link.
    OtherLink,
    /// The child says that no run opened it.
    NoParent,
    /// The parent says that the child ended with another link.
    OtherEnd,
    /// The parent says that the child never began.
    NeverBegan,
    /// The parent does not say which run it opened.
    NoName,
    /// The child's record was cut off after the parent recorded its end, and closed once more.
    CutOff,
    /// The parent opened a run that never began.
    Failed,
}

fn parent_of(export: &Export, seq: u64) -> String {
    let head = export.heads.iter().find(|head| head.count == seq).unwrap();
    format!(r#"{{"parent":{{"run":"{}","seq":{seq},"link":"{}","depth":1}}}}"#, export.run, head.link)
}

/// A run with the events, closed.
fn run(byte: u8, events: &[(&str, String)]) -> Export {
    let mut builder = Builder::new(byte);
    builder.segment(0x51, "writer-1");
    for (kind, body) in events {
        builder.event(kind, body);
    }
    builder.close(SegmentState::Closed);
    builder.finish()
}

fn opens(child: u8) -> (&'static str, String) {
    ("config", format!(r#"{{"change":"child-opened","run":"{}"}}"#, id(child)))
}

fn ended(child: u8, count: u64, link: &str) -> (&'static str, String) {
    let body = format!(
        r#"{{"change":"child-closed","run":"{}","state":"closed","count":{count},"link":"{link}"}}"#,
        id(child)
    );
    ("config", body)
}

fn end_of(export: &Export) -> (u64, String) {
    let last = export.heads.last().unwrap();
    (last.count, last.link.to_string())
}

/// Run 1 opens run 2, which opens run 3; both end, and run 1 as well.
fn tree(lie: Lie) -> World {
    let mut first = vec![("run-opened", "{}".to_owned()), opens(2)];
    if lie == Lie::NoName {
        first[1].1 = r#"{"change":"child-opened"}"#.to_owned();
    }
    let begun = run(1, &first);
    let second = match lie {
        Lie::OtherEvent => parent_of(&begun, 1),
        Lie::OtherLink => parent_of(&begun, 2).replace(&begun.heads[1].link.to_string(), &"0".repeat(64)),
        Lie::NoParent => "{}".to_owned(),
        _ => parent_of(&begun, 2),
    };
    let mut second = vec![("run-opened", second), opens(3)];
    let child = run(2, &second);
    let grandchild =
        run(3, &[("run-opened", parent_of(&child, 2)), ("input", r#"{"label":"user"}"#.to_owned())]);
    let (count, link) = end_of(&grandchild);
    second.push(ended(3, count, &link));
    let child = run(2, &second);
    let (count, link) = end_of(&child);
    first.push(match lie {
        Lie::OtherEnd => ended(2, count, &"0".repeat(64)),
        Lie::NeverBegan => ("config", never_began(2)),
        _ => ended(2, count, &link),
    });
    if lie == Lie::Failed {
        first.extend([opens(9), ("config", never_began(9))]);
    }
    second.truncate(2);
    let child = if lie == Lie::CutOff { run(2, &second) } else { child };
    let runs = [run(1, &first), child, grandchild];
    let runs = runs.into_iter().zip(0..).map(|(export, number)| logged_export(export, number));
    World::of(runs.collect())
}

fn never_began(child: u8) -> String {
    format!(r#"{{"change":"child-closed","run":"{}","state":"abandoned","count":0}}"#, id(child))
}

/// The runs, and the file that names the root.
fn files(world: &World, root: u8) -> Files {
    let tree = format!("portcullis-tree/v1\nrun {}\n", id(root));
    let mut files = vec![("tree".to_owned(), tree.into_bytes())];
    (0..world.runs.len()).for_each(|run| files.extend(world.run(&folder(run), run)));
    files
}

fn without(files: &Files, start: &str) -> Files {
    files.iter().filter(|(name, _)| !name.starts_with(start)).cloned().collect()
}

fn wrong(
    name: &'static str,
    says: &'static str,
    files: &Files,
    attack: &'static str,
    (run, seq): (Option<usize>, Option<u64>),
) -> Case {
    let file = run.map_or_else(|| "tree".to_owned(), |run| format!("{}run.export", folder(run)));
    invalid(name, says, packed(files), (attack, file, None, 0, seq))
}

pub(super) fn cases() -> Vec<Case> {
    [whole(), members(), bindings()].into_iter().flatten().collect()
}

fn whole() -> Vec<Case> {
    let honest = tree(Lie::None);
    let files = files(&honest, 1);
    let subtree = without(&self::files(&honest, 2), &folder(0));
    let named = |text: &str| -> Files {
        let tree = vec![("tree".to_owned(), text.as_bytes().to_vec())];
        [tree, without(&files, "tree")].concat()
    };
    let beside = [files.clone(), honest.leaf("", "enrolment", 3)].concat();
    let beside_name = "log/enrolment.leaf".to_owned();
    vec![
        case("tree-valid", "a run, one that it opened, and one that that opened", packed(&files), "VALID"),
        case("tree-below", "a run that was opened, with the one that it opened", packed(&subtree), "VALID"),
        case(
            "tree-never-began",
            "a run that was opened and never began is not there",
            packed(&self::files(&tree(Lie::Failed), 1)),
            "VALID",
        ),
        case(
            "tree-unnamed",
            "the same runs as an export of many: nothing accounts for numbers",
            packed(&without(&files, "tree")),
            "INCOMPLETE",
        ),
        wrong("tree-malformed", "no root", &named("portcullis-tree/v1\n"), "tree-malformed", (None, None)),
        wrong(
            "tree-more-lines",
            "a line after the root",
            &named(&format!("portcullis-tree/v1\nrun {}\nrun\n", id(1))),
            "tree-malformed",
            (None, None),
        ),
        invalid(
            "tree-log-beside",
            "leaves beside the runs of a tree",
            packed(&beside),
            ("files-mismatched", beside_name, None, 0, None),
        ),
    ]
}

fn members() -> Vec<Case> {
    let honest = tree(Lie::None);
    let all = files(&honest, 1);
    let mut foreign = tree(Lie::None).runs;
    foreign.push(logged(4, 3));
    let foreign = files(&World::of(foreign), 1);
    let (root, child, last) = (Some(0), Some(1), Some(3));
    vec![
        wrong(
            "tree-child-missing",
            "the last run is left out",
            &without(&all, &folder(2)),
            "kin-missing",
            (child, Some(2)),
        ),
        wrong(
            "tree-middle-missing",
            "the run between two others is left out",
            &without(&all, &folder(1)),
            "kin-missing",
            (root, Some(2)),
        ),
        wrong(
            "tree-root-missing",
            "the root is another run",
            &files(&honest, 9),
            "kin-missing",
            (None, None),
        ),
        wrong("tree-foreign", "a run that is not of the tree", &foreign, "kin-foreign", (last, None)),
        wrong("tree-above", "the run that opened the root", &files(&honest, 2), "kin-foreign", (root, None)),
    ]
}

fn bindings() -> Vec<Case> {
    let lied = |lie: Lie| files(&tree(lie), 1);
    let (root, child) = (Some(0), Some(1));
    let mismatched = |name, says, lie, place| wrong(name, says, &lied(lie), "kin-mismatched", place);
    // Without the file `tree`, those that are there still have to agree.
    let unnamed = without(&lied(Lie::OtherEnd), "tree");
    vec![
        mismatched("tree-other-event", "the child names another event", Lie::OtherEvent, (root, Some(2))),
        mismatched("tree-other-link", "the child names another link", Lie::OtherLink, (root, Some(2))),
        mismatched("tree-no-parent", "the child names no parent", Lie::NoParent, (root, Some(2))),
        mismatched("tree-other-end", "the child ended otherwise", Lie::OtherEnd, (root, Some(3))),
        mismatched("tree-cut-off", "the child was cut off and closed again", Lie::CutOff, (root, Some(3))),
        mismatched("tree-denied", "the child is said never to have begun", Lie::NeverBegan, (root, Some(3))),
        mismatched("tree-no-name", "the parent opened nobody", Lie::NoName, (root, Some(2))),
        wrong(
            "many-other-end",
            "runs that do not agree, in an export of many",
            &unnamed,
            "kin-mismatched",
            (root, Some(3)),
        ),
        {
            let mut above = tree(Lie::None).runs;
            above[0] = logged_export(run(1, &[("run-opened", "{}".to_owned())]), 0);
            let files = files(&World::of(above), 2);
            wrong("tree-not-opened", "the parent did not open it", &files, "kin-mismatched", (child, Some(1)))
        },
    ]
}
