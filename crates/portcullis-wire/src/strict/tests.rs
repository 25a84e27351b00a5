//! The strict reader.

use super::*;
use proptest::prelude::*;
use serde_json::json;

const LIMIT: usize = 1 << 20;

fn refused(text: &str) -> StrictError {
    parse(text.as_bytes(), LIMIT).unwrap_err()
}

#[test]
fn many_small_values_are_refused_before_they_fill_the_memory() {
    let many = format!("[{}1]", "{\"\":0},".repeat(VALUES_MAX));
    let error = parse_str(&many, many.len()).unwrap_err();
    assert_eq!(error.kind, StrictErrorKind::TooManyValues);
    assert!(parse_recorded(many.as_bytes(), many.len()).is_ok(), "what was recorded before is read");
    let few = format!("[{}1]", "1,".repeat(VALUES_MAX - 2));
    assert!(parse_str(&few, few.len()).is_ok());
}

#[test]
fn reads_every_kind_of_value() {
    let text = r#" {"a":[1,-2,3.5,1e2,true,false,null],"b\u0041\n":"\ud83d\ude00é/\/","c":{}} "#;
    let value = parse(text.as_bytes(), LIMIT).unwrap();
    assert_eq!(value, json!({"a":[1,-2,3.5,100.0,true,false,null],"bA\n":"😀é//","c":{}}));
}

#[test]
fn duplicate_keys_are_refused_at_any_depth_and_after_decoding() {
    let error = refused("{\"a\": 1,\n \"é\": {\"x\": 1, \"\\u0078\": 2}}");
    assert_eq!(error.kind, StrictErrorKind::DuplicateKey("x".to_owned()));
    assert_eq!((error.line, error.column, error.offset), (2, 16, 25));
    assert_eq!(error.to_string(), "duplicate key `x` at line 2, column 16 (byte 25)");
}

#[test]
fn nesting_is_bounded_exactly() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(nested(DEPTH_MAX).as_bytes(), LIMIT).is_ok());
    let error = refused(&nested(DEPTH_MAX + 1));
    assert_eq!((error.kind, error.offset), (StrictErrorKind::TooDeep, DEPTH_MAX));
    assert_eq!(refused(&"[".repeat(100_000)).kind, StrictErrorKind::TooDeep);
}

#[test]
fn numbers_keep_their_value_or_are_refused() {
    for (text, value) in [
        ("9007199254740992", json!(9_007_199_254_740_992_u64)),
        ("9007199254740994", json!(9_007_199_254_740_994_u64)),
        ("1700000000123456800", json!(1_700_000_000_123_456_800_u64)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("1e308", json!(1e308)),
        ("6.02214076e23", json!(6.022_140_76e23)),
        ("0.1000000000000000055511151231257827", json!(0.1)),
        ("0.0e-999", json!(0.0)),
        ("0", json!(0)),
    ] {
        assert_eq!(parse(text.as_bytes(), LIMIT).unwrap(), value, "{text}");
    }
    for text in ["18446744073709551616", "-9223372036854775809", "1e309", "-1e400", "1e-400"] {
        assert_eq!(refused(text).kind, StrictErrorKind::NumberOutOfRange(text.to_owned()), "{text}");
    }
    // Readers that keep numbers as floats see another one.
    for text in [
        "9007199254740993",
        "-9007199254740993",
        "9007199254740993.0",
        "9.007199254740993e15",
        "90071992547409930e-1",
        "18446744073709551615",
        "[1, {\"id\": 1234567890123456789}]",
    ] {
        assert!(matches!(refused(text).kind, StrictErrorKind::InexactNumber(_)), "{text}");
        assert!(parse_recorded(text.as_bytes(), LIMIT).is_ok(), "{text}");
    }
    assert_eq!(parse_recorded(b"18446744073709551615", LIMIT).unwrap(), json!(u64::MAX));
    let negative_zero = parse(b"-0", LIMIT).unwrap();
    assert!(negative_zero.as_f64().unwrap().is_sign_negative());
}

#[test]
fn broken_text_names_the_place() {
    for (text, kind, offset) in [
        ("", StrictErrorKind::UnexpectedEnd, 0),
        ("{\"a\":1} x", StrictErrorKind::TrailingData, 8),
        ("[1,]", StrictErrorKind::Expected("a value"), 3),
        ("{\"a\":1,}", StrictErrorKind::Expected("a key in quotes"), 7),
        ("{\"a\" 1}", StrictErrorKind::Expected("`:` after a key"), 5),
        ("[1 2]", StrictErrorKind::Expected("`,` or `]`"), 3),
        ("\"abc", StrictErrorKind::UnexpectedEnd, 4),
        ("\"a\\", StrictErrorKind::UnexpectedEnd, 3),
        ("\"a\nb\"", StrictErrorKind::ControlCharacter, 2),
        ("\"\\x\"", StrictErrorKind::InvalidEscape, 1),
        ("\"\\ud800\"", StrictErrorKind::InvalidEscape, 1),
        ("\"\\ud800\\u0041\"", StrictErrorKind::InvalidEscape, 1),
        ("01", StrictErrorKind::Expected("a number without leading zeros"), 0),
        ("1.", StrictErrorKind::UnexpectedEnd, 2),
        ("tru", StrictErrorKind::Expected("a value"), 0),
        ("NaN", StrictErrorKind::Expected("a value"), 0),
    ] {
        let error = refused(text);
        assert_eq!((error.kind, error.offset), (kind, offset), "{text}");
    }
}

#[test]
fn special_bytes_are_found_at_every_offset() {
    for byte in 0..=u8::MAX {
        for at in 0..20 {
            let mut text = [0xe9; 20];
            text[at] = byte;
            let special = matches!(byte, b'"' | b'\\' | 0..=0x1f);
            assert_eq!(plain_prefix(&text), special.then_some(at), "{byte} at {at}");
        }
    }
}

#[test]
fn size_and_encoding_are_checked_first() {
    let error = parse(b"[1,2,3]", 6).unwrap_err();
    assert_eq!(error.kind, StrictErrorKind::TooLarge { bytes: 7, limit: 6 });
    let error = parse(b"\"a\xff\"", LIMIT).unwrap_err();
    assert_eq!((error.kind, error.offset), (StrictErrorKind::InvalidUtf8, 2));
}

/// Equal, where floats may differ in the last place: the other reader rounds less exactly.
fn alike(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| alike(a, b)))
        }
        (Value::Number(a), Value::Number(b)) if a.is_f64() && b.is_f64() => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            a == b || ((a - b) / b).abs() <= f64::EPSILON
        }
        _ => ours == theirs,
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::hash_map(any::<String>(), inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn reads_what_was_written(value in any_value(), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let text = text.unwrap();
        let read = parse_recorded(text.as_bytes(), LIMIT).unwrap();
        prop_assert_eq!(&read, &value);
        if let Ok(read) = parse(text.as_bytes(), LIMIT) {
            prop_assert_eq!(read, value);
        }
    }

    #[test]
    fn what_a_float_is_written_as_is_read(float in any::<f64>().prop_filter("finite", |float| float.is_finite())) {
        let text = Value::from(float).to_string();
        prop_assert_eq!(parse(text.as_bytes(), LIMIT).unwrap(), Value::from(float));
    }

    #[test]
    fn what_is_accepted_means_the_same_elsewhere(
        text in r#"[ \n]{0,2}(\{("[a-c]{0,2}":(-?[0-9]{1,22}|-?[0-9]\.[0-9]{1,3}(e-?[0-9]{1,3})?|"[a\\u0-9d]{0,8}"|\[\]|null),?){0,4}\}?|.{0,12})"#
    ) {
        if let Ok(ours) = parse(text.as_bytes(), LIMIT) {
            let theirs: Value = serde_json::from_str(&text).unwrap();
            prop_assert!(alike(&ours, &theirs), "{:?} and {:?}", ours, theirs);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes, LIMIT);
    }

    #[test]
    fn json_like_bytes_never_panic(text in r#"[\[\]{}",:\\u0-9ae.tn -]{0,80}"#) {
        let ours = parse(text.as_bytes(), LIMIT);
        if ours.is_ok() {
            prop_assert!(serde_json::from_str::<Value>(&text).is_ok());
        }
    }
}
