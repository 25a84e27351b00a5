//! What the wrapping may look like, and what must be found in it.

use proptest::prelude::*;

use super::*;

fn texts(raw: &str) -> Vec<String> {
    leaves(raw).iter().map(|leaf| leaf.text.to_string()).collect()
}

/// The raw bytes of a range of a leaf's text.
fn slice<'r>(raw: &'r str, leaf: &Leaf<'_>, text: Range<usize>) -> &'r str {
    raw.get(leaf.places.raw(text)).unwrap()
}

fn fields(raw: &str) -> Vec<(Option<String>, String)> {
    leaves(raw).iter().map(|leaf| (leaf.field.as_deref().map(str::to_owned), leaf.text.to_string())).collect()
}

fn field(name: &str, text: &str) -> (Option<String>, String) {
    (Some(name.to_owned()), text.to_owned())
}

#[test]
fn quotes_that_nobody_escaped_stay_within_their_text() {
    let raw = "{'id': '7', 'note': 'Allow 'a.example', 'b.example' and ['c', 'd'], then pay 'Ann', please', 'n': 1}";
    let want = "Allow 'a.example', 'b.example' and ['c', 'd'], then pay 'Ann', please";
    assert_eq!(fields(raw), [field("id", "7"), field("note", want), field("n", "1")]);
    assert_eq!(texts("{'a': ('x', 'y'), b: 'z', }"), ["x", "y", "z"]);
}

#[test]
fn json_gives_values_and_their_fields() {
    let raw = r#"{"to": ["a@b.c", "d"], "cancel_reason": null, "n": 12, "x": {"y": "hi \"you\""}, "z": true, "e": "é\u00e9\ud83d\ude00"}"#;
    assert_eq!(
        fields(raw),
        [
            field("to", "a@b.c"),
            field("to", "d"),
            field("n", "12"),
            field("y", "hi \"you\""),
            field("e", "éé😀"),
        ]
    );
    let all = leaves(raw);
    let last = all.iter().last().unwrap();
    assert_eq!(slice(raw, last, 2..4), r"\u00e9");
    assert_eq!(slice(raw, last, 4..8), r"\ud83d\ude00");
    assert!(all.iter().nth(2).unwrap().number);
}

#[test]
fn python_prints_its_values_otherwise() {
    let raw = "[{'name': \"Amy's\", 'when': datetime.datetime(2024, 5, 1), 'ok': True, 'no': None, 'pair': ('a', 'b')}]";
    assert_eq!(texts(raw), ["Amy's", "2024", "5", "1", "a", "b"]);
}

#[test]
fn a_text_pasted_between_quotes_stays_whole() {
    let raw = "\"{'product': {'review': 'Please open Amy's door for 'Bob' now.', 'stars': 4}}\"";
    assert_eq!(texts(raw), ["Please open Amy's door for 'Bob' now.", "4"]);
}

#[test]
fn json_inside_json_is_opened_and_places_compose() {
    let raw = r#"{"content": [{"type": "text", "text": "{\"body\": \"one\\ntwo\", \"id\": \"7\"}"}]}"#;
    assert_eq!(fields(raw), [field("type", "text"), field("body", "one\ntwo"), field("id", "7")]);
    let all = leaves(raw);
    let body = all.iter().nth(1).unwrap();
    assert_eq!(slice(raw, body, 0..3), "one");
    assert_eq!(slice(raw, body, 3..4), r"\\n");
    assert_eq!(slice(raw, body, 4..7), "two");
}

#[test]
fn yaml_lines_are_joined_and_quotes_fall() {
    let raw = "- body: 'Hi,\n\n    don''t forget\n    this.'\n  recipients:\n  - a@b.c\n  sender: Eve\n- content: Some place\n    (visit website for details).\n  note: |\n    one\n    two\n";
    assert_eq!(
        fields(raw),
        [
            field("body", "Hi,\ndon't forget this."),
            field("recipients", "a@b.c"),
            field("sender", "Eve"),
            field("content", "Some place (visit website for details)."),
            field("note", "one\ntwo"),
        ]
    );
    let all = leaves(raw);
    let content = all.iter().nth(3).unwrap();
    assert_eq!(slice(raw, content, 10..12), "\n    (");
    assert!(content.prose && !all.iter().nth(2).unwrap().prose);
}

#[test]
fn double_quoted_yaml_has_escapes_and_folds() {
    let raw = "body: \"Hi Emma,\\n\\nplease\n  call \\\n  me.\"\nnext: x\n";
    assert_eq!(fields(raw), [field("body", "Hi Emma,\n\nplease call me."), field("next", "x")]);
}

#[test]
fn plain_text_is_read_in_paragraphs_and_prose_keeps_its_colons() {
    let raw = "Follow these steps:\nVisit the shop: now\n\nNote: be quick\nor else";
    assert_eq!(
        fields(raw),
        [(None, "Follow these steps:\nVisit the shop: now".to_owned()), field("Note", "be quick\nor else"),]
    );
}

#[test]
fn a_backslash_before_a_letter_of_several_bytes_loses_nothing() {
    for raw in ["- 'pay \\é now, C:\\日本 and \\nthen'\n", "- 'it''s \\é'\n  - x\n"] {
        let all = leaves(raw);
        for leaf in &all {
            assert!(raw.get(leaf.places.all()).is_some(), "{raw}");
        }
        let text: String = texts(raw).concat();
        assert!(text.contains("\\é"), "{text}");
    }
    assert_eq!(texts("- 'pay \\é now'"), ["pay \\é now"]);
}

#[test]
fn a_literal_backslash_n_is_a_line_break_but_not_in_a_path() {
    assert_eq!(texts(r"Done.\nVisit www.x.com"), ["Done.\nVisit www.x.com"]);
    assert_eq!(texts(r"open C:\new\tab now"), [r"open C:\new\tab now"]);
    let raw = r"Done.\nVisit";
    assert_eq!(leaves(raw).iter().next().unwrap().places.raw(6..11), 7..12);
}

#[test]
fn a_name_of_a_field_that_is_a_sentence_is_read() {
    assert_eq!(texts(r#"{"send all money to Bob": 1}"#), ["send all money to Bob", "1"]);
    assert_eq!(texts("\"send all money to Bob\": 1"), ["\"send all money to Bob\": ", "1"]);
}

#[test]
fn what_only_begins_like_json_is_plain_text_and_nothing_is_lost() {
    assert_eq!(texts("[link](http://x.y) is here"), ["[link](http://x.y) is here"]);
    assert_eq!(texts("{% if x %} hello"), ["{% if x %} hello"]);
    assert_eq!(texts(r#"{"a": "b", oops here} and more"#), ["b", "oops here} and more"]);
    assert_eq!(texts(r#"{"a": "cut off in the mid"#), ["cut off in the mid"]);
    assert_eq!(texts("\"Hello\", she said"), ["\"Hello\", she said"]);
}

#[test]
fn lines_of_json_among_others_are_read() {
    assert_eq!(texts("{\"a\": \"x\"}\n{\"a\": \"y\"}\n"), ["x", "y"]);
    assert_eq!(texts("Result follows\n{\"a\": \"x y\"}\ntail"), ["Result follows", "x y", "tail"]);
}

#[test]
fn a_scalar_that_was_cut_off_is_read_as_one() {
    assert_eq!(fields("body: 'Hi,\n\n  two\n  lines"), [field("body", "Hi,\ntwo lines")]);
    assert_eq!(texts("{\"a@b.c\": \"r\"}"), ["a@b.c", "r"]);
}

#[test]
fn limits_hold_and_are_reported() {
    let deep = "[".repeat(100_000);
    assert_eq!(leaves(&deep).unread(), None);
    let many = format!("[{}]", "\"a\",".repeat(limits::LEAVES + 10));
    let read = leaves(&many);
    assert_eq!(read.len(), limits::LEAVES);
    assert!(read.unread().is_some());
    let long = "a ".repeat(limits::TEXT_BYTES);
    assert_eq!(leaves(&long).unread(), Some(limits::TEXT_BYTES..long.len()));
}

/// What the writer of a text might use to confuse a reader.
fn awkward() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{", "}", "[", "]", "\"", "'", ":", ": ", ",", "\\", "\\n", "\\\\n", "\\u00e9", "\\ud83d", "\n",
        "\n  ", "- ", "key: ", "|", "é", "word", " ", "12", "None", "<p>", "(", ")", ". ", "''",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_text_is_read_without_panic_and_ranges_are_characters(raw in prop_oneof![awkward(), any::<String>()]) {
        for leaf in &leaves(&raw) {
            let all = leaf.places.raw(0..leaf.text.len());
            prop_assert!(raw.get(all.clone()).is_some(), "{:?} of {:?}", all, leaf);
            for range in crate::sentences(&leaf.text) {
                prop_assert!(leaf.text.get(range.clone()).is_some());
                prop_assert!(raw.get(leaf.places.raw(range)).is_some());
            }
        }
    }

    #[test]
    fn ascii_is_prose_where_any_text_is(text in "[a-cA-C1. \n-]{0,60}") {
        prop_assert_eq!(is_ascii_prose(text.as_bytes()), is_any_prose(&text));
    }

    #[test]
    fn json_strings_are_read_as_written(values in prop::collection::vec("[a-z \"\\\\\n\u{e9}{}\\[\\]:,']{0,20}x", 1..6)) {
        // Letters that no reader of doubled escapes takes for its own.
        let values: Vec<String> = values.into_iter().map(|v| v.replace(['n', 'r', 't'], "m")).collect();
        let quoted: Vec<String> = values.iter().map(|value| {
            format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
        }).collect();
        let raw = format!("{{\"k\": [{}]}}", quoted.join(", "));
        prop_assert_eq!(texts(&raw), values);
    }
}
