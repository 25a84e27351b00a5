//! What a mapping may say, and what of it leaves the house.

use super::*;
use portcullis_core::action::Hook;

static GUARD: GuardMeta = GuardMeta { id: "a/b", hooks: &[Hook::Action], owasp: &[], unfaithful_to: None };

const HEAD: &str = "source = 's'\ndocument = 'd'\napplies = 'x'\n[[control]]\nid = 'c'\nclause = '1'\n\
                    title = 't'\nshows = 'x'\n";

/// The mistakes in the file, by the loader that the shipped ones go through too.
fn mistakes(files: &[(&str, &str)]) -> Vec<String> {
    let mut loader = Loader { guards: &[&GUARD], ids: BTreeMap::new(), diagnostics: Vec::new() };
    for (file, toml) in files {
        loader.mapping((*file).to_owned(), toml);
    }
    loader.diagnostics.iter().map(ToString::to_string).collect()
}

fn load(body: &str) -> Vec<String> {
    mistakes(&[("c.toml", &format!("{HEAD}{body}"))])
}

#[test]
fn a_mistake_is_told_with_its_place_and_the_nearest_name() {
    let rest = "files = ['audit_log.jsonl']\nnot_shown = ['y']\n";
    let good = format!("events = ['verdict']\nguards = ['a/b']\nchecks = ['CITATION_MATCH']\n{rest}");
    assert_eq!(load(&good), [""; 0]);
    let first = |body: &str| load(body).into_iter().next().unwrap();
    assert_eq!(
        first(&format!("events = ['input', 'verdicts']\n{rest}")),
        "c.toml:9:20: there is no kind of event `verdicts` (did you mean `verdict`?)"
    );
    assert_eq!(
        first(&format!("events = ['verdict']\nguards = ['a/c']\n{rest}")),
        "c.toml:10:11: there is no guard `a/c` (did you mean `a/b`?)"
    );
    assert_eq!(
        first("events = ['verdict']\nfiles = ['audit.jsonl']\nnot_shown = ['y']\n"),
        "c.toml:10:10: there is no file of the pack `audit.jsonl` (did you mean `audit_log.jsonl`?)"
    );
    let unknown = first(&format!("events = ['verdict']\nchecks = ['X']\n{rest}"));
    assert!(unknown.starts_with("c.toml:10:11: unknown variant `X`"), "{unknown}");
    let unknown = first(&format!("events = ['verdict']\nguard = []\n{rest}"));
    assert!(unknown.starts_with("c.toml:10:1: unknown field `guard`, expected one of"), "{unknown}");
    let broken = first("events = ['verdict'\n");
    assert!(broken.starts_with("c.toml:9:"), "{broken}");
    let empty = load("events = []\nfiles = []\nnot_shown = []\n");
    assert_eq!(empty.len(), 2, "{empty:?}");
    assert_eq!(empty[0], "c.toml:9:10: `events` must not be empty");
    let silent = mistakes(&[("c.toml", &format!("{HEAD}{good}").replace("'t'", "' '"))]);
    assert_eq!(silent, ["c.toml:7:9: `title` must contain text"]);
    let twice = format!("{HEAD}{good}");
    assert_eq!(
        mistakes(&[("a.toml", &twice), ("b.toml", &twice)]),
        ["b.toml:5:6: the control `c` is already defined in `a.toml`"]
    );
    let many = "[[control]]\nid = 'c'\nclause = '1'\ntitle = 't'\nshows = 'x'\n";
    let many: String = (0..=CONTROLS_MAX)
        .map(|number| format!("{many}{good}").replace("'c'", &format!("'c{number}'")))
        .collect();
    let many = mistakes(&[("m.toml", &format!("source = 's'\ndocument = 'd'\napplies = 'x'\n{many}"))]);
    assert_eq!(many.len(), 1);
    assert!(many[0].ends_with("there are more than 1024 controls"), "{many:?}");
}

#[test]
fn what_somebody_wrote_stays_in_its_cell_and_its_folder_at_home() {
    let said = |what: &str| format!("{what} | x\n<b>");
    let shown = ControlShown {
        id: "c".to_owned(),
        clause: said("clause"),
        title: said("title"),
        shows: said("shows"),
        not_shown: vec![said("one"), said("two")],
        files: Vec::new(),
        events: Vec::new(),
        guards: Vec::new(),
        checks: Vec::new(),
        not_in_this_run: Vec::new(),
    };
    let source = SourceEvidence {
        mapping: own_name("/home/ann/controls/house.toml"),
        mapping_sha256: sha256(b""),
        source: said("source"),
        document: said("document"),
        applies: said("applies"),
        controls: vec![shown],
    };
    assert_eq!(source.mapping, "own/house.toml");
    let evidence = ControlEvidence {
        format: String::new(),
        run: RunId::from_bytes([0; 16]),
        note: String::new(),
        sources: vec![source],
    };
    let markdown = String::from_utf8(evidence.markdown()).unwrap();
    let row = markdown.lines().find(|line| line.starts_with("| clause")).unwrap();
    assert_eq!(row.matches('|').count(), 5, "{row}");
    assert!(row.ends_with("| one ¦ x &lt;b>; two ¦ x &lt;b> |"), "{row}");
    assert!(markdown.contains("## source ¦ x &lt;b> (document ¦ x &lt;b>)\n"), "{markdown}");
    assert!(markdown.contains("Applies to: applies ¦ x &lt;b>.\n"), "{markdown}");
}

#[test]
fn what_ships_speaks_of_evidence_and_never_of_compliance() {
    for (file, toml) in EMBEDDED {
        assert!(!toml.to_lowercase().contains("complian"), "{file}");
        assert!(toml.contains("not_shown = ["), "{file}");
    }
    assert!(DISCLAIMER.contains("statement of compliance"));
}
