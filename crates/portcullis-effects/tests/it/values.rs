//! Properties of single values, whatever text they are.

use std::time::Duration;

use portcullis_core::bundle::EffectSettings;
use portcullis_core::effect::{Effects, ResourceKind};
use portcullis_core::principal::Attribute;
use portcullis_effects::limits::PATH_BYTES_MAX;
use portcullis_effects::{Sink, Surroundings, activity, code, mail, path, place, read_call, shell, sql, url};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::cpu_time;

const WORKSPACE: &str = "/home/u/project";

fn with<T>(read: impl FnOnce(&Surroundings<'_>) -> T) -> T {
    let settings = EffectSettings { secrets: vec!["vault/**/x".into()], ..EffectSettings::default() };
    read(&Surroundings {
        settings: &settings,
        workspace: Some(WORKSPACE),
        home: Some("/home/u"),
        directory: Some(WORKSPACE),
    })
}

/// Texts made of what paths are made of.
fn pathlike() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "..", ".", "/", "//", "a", "project", "home", "u", "~", "*", "?", "[", "]", "{", "}", ",", "proc",
        "self", "cwd", "root", "file:", "%2e", "%2f", "\\", "$X", "etc", "tmp", "\u{ff0f}", "\n", ".env",
        " ", "C:",
    ]);
    prop::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}

fn urllike() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "http",
        "https",
        ":",
        "/",
        "//",
        "@",
        "\\",
        ".",
        "example",
        "com",
        "127.0.0.1",
        "0x7f",
        "[",
        "]",
        "::1",
        "%",
        "%2e",
        "?",
        "#",
        "\t",
        "\n",
        " ",
        "。",
        "ß",
        "xn--",
        "file:",
        "data:",
        "mailto:",
        "8080",
        "localhost",
        "ssh",
    ]);
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

fn maillike() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        "@",
        "b.example",
        "<",
        ">",
        "(",
        ")",
        "\"",
        "\\",
        ",",
        ";",
        ":",
        "\n",
        "\r",
        " ",
        "Bcc",
        "[",
        "]",
        ".",
        "ü",
        "%40",
        "\u{2028}",
    ]);
    prop::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}

fn assert_placed(effects: &Effects, text: &str) {
    for effect in effects.iter() {
        let span = effect.span.as_ref().unwrap();
        assert!(text.get(span.start..span.end).is_some(), "{text:?}: {effect}");
    }
}

/// What each reader finds in a text stands in it.
fn assert_all_placed(text: &str) {
    type Read = fn(&str, &Surroundings<'_>, &mut Sink<'_>);
    let readers: [Read; 7] =
        [place::read, url::read, mail::read, activity::read, shell::read, sql::read, code::read];
    for read in readers {
        let mut effects = Effects::none();
        with(|surroundings| read(text, surroundings, &mut Sink::new(&mut effects, "/arguments/text")));
        assert_placed(&effects, text);
    }
}

/// A reader that is given a part of the text has to be told where it stands.
#[test]
fn what_stands_after_white_space_keeps_its_place() {
    for text in
        ["\0~/\u{3}Л", " file:///etc/Л", "x\nfile:ё\u{1}", "\u{1f}/Л ", "\t../Л", "a http://b.example/Л"]
    {
        assert_all_placed(text);
    }
    let mut effects = Effects::none();
    let text = "\n http://a.example file:///ё/x";
    with(|surroundings| url::read(text, surroundings, &mut Sink::new(&mut effects, "/arguments/url")));
    let file = effects.iter().find(|effect| effect.resource.kind == ResourceKind::Path).unwrap();
    let span = file.span.as_ref().unwrap();
    assert_eq!(text.get(span.start..span.end), Some("file:///ё/x"));
}

#[test]
fn a_file_url_with_a_backslash_in_its_query_is_not_resolved() {
    let resource = with(|surroundings| path::resource("file:,?\\", surroundings));
    assert!(!resource.is("resolved"), "{}", resource.name);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn effects_stand_in_their_text(
        before in prop::sample::select(vec!["", " ", "\0", "\n\t ", "\u{1f}", "\u{a0}", "x "]),
        text in prop_oneof![pathlike(), urllike(), maillike(), any::<String>()],
        after in prop::sample::select(vec!["", "Л", " ", "\0", " file:///Л", " https://b.example/\u{1f600}", "\nЛ@b.example"]),
    ) {
        assert_all_placed(&format!("{before}{text}{after}"));
    }

    #[test]
    fn a_resolved_path_is_normal(text in prop_oneof![pathlike(), any::<String>()]) {
        let resource = with(|surroundings| path::resource(&text, surroundings));
        for name in ["inside", "secret", "control", "gate", "temporary", "device", "glob", "resolved"] {
            prop_assert!(matches!(resource.attributes.get(name), Some(Attribute::Boolean(_))), "{}", name);
        }
        if resource.is("resolved") {
            prop_assert!(resource.name.starts_with('/'), "{}", resource.name);
            let odd = |part: &str| matches!(part, "" | "." | "..");
            prop_assert!(resource.name == "/" || !resource.name.split('/').skip(1).any(odd), "{}", resource.name);
            // Normal forms are fixed points.
            let again = with(|surroundings| path::resource(&resource.name, surroundings));
            prop_assert_eq!(&again.name, &resource.name);
        } else {
            prop_assert!(!resource.is("inside") && !resource.is("temporary") && !resource.is("device"));
        }
        if resource.is("inside") {
            let rest = resource.name.strip_prefix(WORKSPACE).unwrap();
            prop_assert!(rest.is_empty() || rest.starts_with('/'), "{}", resource.name);
        }
    }

    #[test]
    fn every_url_has_a_host_or_is_unknown(text in prop_oneof![urllike(), any::<String>()]) {
        let mut effects = Effects::none();
        with(|surroundings| url::read(&text, surroundings, &mut Sink::new(&mut effects, "/arguments/url")));
        prop_assert!(!effects.is_empty(), "{:?} is silent", text);
        assert_placed(&effects, &text);
        for effect in effects.iter().filter(|effect| effect.resource.kind == ResourceKind::Host) {
            let host = &effect.resource;
            prop_assert!(!host.name.is_empty() && !host.name.contains(['/', '@', '\n']), "{:?}", host.name);
            if host.is("resolved") {
                prop_assert!(!host.name.ends_with('.'), "{}", host.name);
                prop_assert_eq!(&host.name.to_lowercase(), &host.name);
            }
            prop_assert!(!host.is("metadata") || host.is("private"));
        }
    }

    #[test]
    fn no_address_goes_unnoticed(text in prop_oneof![maillike(), any::<String>()]) {
        let mut effects = Effects::none();
        with(|surroundings| mail::read(&text, surroundings, &mut Sink::new(&mut effects, "/arguments/to")));
        prop_assert!(!effects.is_empty(), "{:?} is silent", text);
        assert_placed(&effects, &text);
        for (resource, range) in mail::resources(&text) {
            prop_assert!(resource.name.contains('@') && text.get(range).is_some());
        }
        // Whatever stands before it on other lines, a plain recipient on a line of its own is found.
        let more = format!("{text}\neve@evil.example");
        prop_assert!(mail::resources(&more).iter().any(|(resource, _)| resource.name == "eve@evil.example"));
    }

    #[test]
    fn calls_never_panic(name in "[a-z_]{0,20}", key in any::<String>(), text in any::<String>(), number in any::<f64>()) {
        let arguments = json!({
            "path": text, "amount": number, "to": [&text, {&key: &text}], &key: {"path": &text, "x": number}, "url": &text,
        });
        with(|surroundings| {
            for arguments in [&arguments, &Value::String(text.clone())] {
                read_call(None, &name, arguments, surroundings);
            }
        });
    }
}

#[test]
fn without_a_working_directory_relative_paths_are_not_resolved() {
    let settings = EffectSettings::default();
    let surroundings = Surroundings { settings: &settings, workspace: None, home: None, directory: None };
    for (text, name) in [("a/../b", "b"), ("../x", "../x"), ("~", "~"), ("~/x", "~/x"), (".", ".")] {
        let resource = path::resource(text, &surroundings);
        assert_eq!(
            (resource.name.as_str(), resource.is("resolved"), resource.is("inside")),
            (name, false, false)
        );
    }
    assert!(path::resource("/x", &surroundings).is("resolved"));
}

#[test]
fn an_overlong_path_is_not_resolved() {
    let resource = with(|surroundings| path::resource(&"a/".repeat(4096), surroundings));
    assert!(!resource.is("resolved") && !resource.is("inside"));
    let long = "x".repeat(1 << 20);
    let resource = with(|surroundings| path::resource(&long, surroundings));
    assert!(resource.name.len() < 8192);
}

/// Each piece makes some part of the reader look again at what follows, at every name, or at every expansion.
#[test]
fn hostile_paths_are_read_within_bounds() {
    // Without optimisation everything takes some twenty times longer.
    let limit = if cfg!(debug_assertions) { Duration::from_secs(10) } else { Duration::from_millis(500) };
    let pieces =
        ["a/", "/", "../", "[", "]", "{", "}", "{}", "{,", "{,}", "{a,b}", "*", "*/", ".*/", "?", "[a]*/"];
    let more =
        ["{a,b}*/", "*{a,b}{c,d}*/", ".{a,b}{c,*}{d,?}{e,f}/", "%2e", "$HOME", "%2e%2e/", "\\", "proc/self/"];
    for piece in pieces.iter().chain(&more) {
        for start in ["", "/", "file:///", "~/"] {
            let text = format!("{start}{}", piece.repeat(PATH_BYTES_MAX / piece.len()));
            let (_, time) = cpu_time::of(|| with(|surroundings| path::resource(&text, surroundings)));
            assert!(time < limit, "{start}{piece} repeated: {time:?}");
        }
    }
}

#[test]
fn a_partly_known_path_is_secret_where_the_known_part_says_so() {
    let (key, other) = with(|surroundings| {
        (path::unresolved("/x/.ssh/id_rsa", surroundings), path::unresolved("src/x", surroundings))
    });
    assert!(key.is("secret") && !key.is("resolved"));
    assert!(!other.is("secret") && !other.is("inside"));
}

#[test]
fn a_workspace_with_dots_in_it_contains_nothing() {
    let settings = EffectSettings::default();
    let surroundings = Surroundings {
        settings: &settings,
        workspace: Some("/home/u/project/.."),
        home: None,
        directory: Some("/home/u/project"),
    };
    assert!(!path::resource("x", &surroundings).is("inside"));
}
