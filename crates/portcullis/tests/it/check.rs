//! `portcullis check` on traces.

use std::io::Write as _;

use expect_test::expect;

use crate::command::{run, run_with};

const TRACE: &str = "examples/traces/assistant.jsonl";

/// The output without what depends on the machine and on the bundle's bytes.
fn stable(stdout: &str) -> String {
    let lines = stdout.lines().filter(|line| !line.contains("decisions/s"));
    let lines = lines.map(|line| line.split_once(", bundle ").map_or(line, |(before, _)| before));
    lines.flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn the_example_in_full() {
    let ran = run(&["check", TRACE, "--tools"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, "bundle: the shipped one\n"));
    expect![[r#"
        ~fetch_page                   WEB_FETCH                    risk 0.3   the name says `fetch`
        ~pay_invoice                  PAY            side effects  risk 0.9   the name says `pay`
        ~read_inbox                   RETRIEVE_DOCS                risk 0.1   the name says `read`
        ~read_mail                    RETRIEVE_DOCS                risk 0.1   the name says `read`
          run  call  verdict  tool                          why
            1     1  allow    retrieve_compliance_documents
            1     2  allow    perform_calculation
            2     1  allow    ~read_inbox
            2     2  allow    ~read_mail
            2     3  deny     ~pay_invoice                  runtime-policy/tool-type: tool type PAY is not allowed by `Strict Compliance Policy`
            3     1  deny     perform_calculation           runtime-policy/restricted-keyword: the restricted keyword `override` occurs at /planned
            3     2  allow    perform_calculation
            4     1  deny     perform_calculation           trace/unreadable-arguments: the text ends inside a value at line 1, column 27 (byte 26)
            4     2  deny     perform_calculation           registry/args-schema: the arguments of `Perform Calculation` do not match its schema: at the top level, expected no arguments beyond those declared

        4 runs, 9 calls: 5 allow, 4 deny
        4 tools inferred (~), 1 with side effects
        policy Strict Compliance Policy
    "#]].assert_eq(&stable(&ran.stdout));
    let quiet = run(&["check", TRACE, "-q"]);
    expect![[r#"
        4 runs, 9 calls: 5 allow, 4 deny
        4 tools inferred (~), 1 with side effects; --tools lists them
        policy Strict Compliance Policy
    "#]]
    .assert_eq(&stable(&quiet.stdout));
}

#[test]
fn strict_tools_leaves_unknown_tools_to_the_bundle() {
    let ran = run(&["check", TRACE, "--strict-tools", "--json"]);
    let lines = ran.json();
    let summary = lines.last().unwrap();
    assert_eq!((&summary["inferred_tools"], &summary["held"]), (&0.into(), &3.into()));
    let held = lines.iter().find(|line| line["verdict"] == "review").unwrap();
    assert_eq!(held["rule"], "registry/unknown-tool");
}

#[test]
fn decisions_are_objects_and_a_summary_ends_them() {
    let ran = run(&["check", TRACE, "--json"]);
    assert_eq!(ran.code, 1);
    let lines = ran.json();
    let decisions: Vec<_> = lines.iter().filter(|line| line["record"] == "decision").collect();
    assert_eq!(decisions.len(), 9);
    let denied = decisions[4];
    assert_eq!(denied["file"], TRACE);
    assert_eq!((&denied["run"], &denied["call"], &denied["id"]), (&2.into(), &3.into(), &"c3".into()));
    assert_eq!((&denied["tool"], &denied["inferred"]), (&"pay_invoice".into(), &true.into()));
    assert_eq!((&denied["verdict"], &denied["enforced"]), (&"deny".into(), &"withheld".into()));
    let summary = lines.last().unwrap();
    assert_eq!(summary["record"], "summary");
    for (field, number) in [("runs", 4), ("calls", 9), ("denied", 4), ("held", 0), ("unreadable", 0)] {
        assert_eq!(summary[field], number, "{field}");
    }
    assert!(summary["decisions_per_second"].as_f64().unwrap() > 0.0);
}

#[test]
fn the_exit_code_is_the_worst_verdict() {
    let call = |tool: &str, arguments: &str| {
        format!(
            r#"{{"messages":[{{"role":"assistant","tool_calls":[{{"id":"c","function":{{"name":"{tool}","arguments":{arguments}}}}}]}}]}}"#
        )
    };
    let sum = call("perform_calculation", r#"{"expression":"1"}"#);
    let unknown = call("rotate", "{}");
    let cases = [
        (sum.clone(), 0),
        (unknown.clone(), 2),
        (format!("{unknown}\n{}\n", call("perform_calculation", "{}")), 1),
        (format!("{sum}\n{{\n{sum}\n"), 3),
        (format!("{{\n{unknown}\n"), 3),
        (r#"{"metadata":{}}"#.to_owned(), 2),
        (String::new(), 3),
    ];
    for (trace, code) in cases {
        let ran = run_with(&["check", "-", "--strict-tools"], trace.as_bytes());
        assert_eq!(ran.code, code, "{trace}: {}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn unreadable_records_are_named_and_the_others_judged() {
    let sum = r#"[{"role":"assistant","tool_calls":[{"function":{"name":"get_x","arguments":"{}"}}]}]"#;
    let ran = run_with(&["check", "-", "--json"], format!("{sum}\n[{{\"role\":\"x\"}}]\n{sum}\n").as_bytes());
    assert_eq!(ran.code, 3);
    let lines = ran.json();
    let unreadable: Vec<_> = lines.iter().filter(|line| line["record"] == "unreadable").collect();
    assert_eq!((unreadable.len(), &unreadable[0]["line"]), (1, &2.into()));
    assert_eq!(lines.last().unwrap()["calls"], 2);
}

#[test]
fn gzip_and_standard_input_give_the_same() {
    let plain = std::fs::read(crate::command::project().join(TRACE)).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(&plain).unwrap();
    let packed = encoder.finish().unwrap();
    let wanted = stable(&run(&["check", TRACE]).stdout);
    assert_eq!(stable(&run_with(&["check", "-"], &plain).stdout), wanted);
    assert_eq!(stable(&run_with(&["check", "-"], &packed).stdout), wanted);
    let torn = run_with(&["check", "-"], packed.get(..packed.len() / 2).unwrap());
    assert_eq!(torn.code, 3);
    assert!(torn.stderr.contains("error: cannot judge `-`: cannot read the trace"), "{}", torn.stderr);
}

#[test]
fn a_policy_is_chosen_by_name() {
    let ran = run(&["check", TRACE, "--policy", "Permissive Exploration Policy", "-q"]);
    assert!(ran.stdout.contains("policy Permissive Exploration Policy"), "{}", ran.stdout);
    let ran = run(&["check", TRACE, "--policy", "Strict Complience Policy"]);
    assert_eq!(ran.code, 64);
    assert!(ran.stderr.contains("help: did you mean `Strict Compliance Policy`?"), "{}", ran.stderr);
}

#[test]
fn names_in_a_trace_cannot_steer_the_terminal() {
    let trace =
        r#"[{"role":"assistant","tool_calls":[{"function":{"name":"get\u001b[2J","arguments":"{}"}}]}]"#;
    let ran = run_with(&["check", "-", "--color", "always"], trace.as_bytes());
    assert!(!ran.stdout.contains("\u{1b}[2J") && ran.stdout.contains("get\\u{1b}[2J"), "{}", ran.stdout);
}
