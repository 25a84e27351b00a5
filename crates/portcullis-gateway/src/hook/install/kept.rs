//! What is not ours stays to the byte: an installation only adds, and taking it out gives the file that was there before.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// The agents whose settings are a file of their own, with what is there besides.
fn shared() -> impl Iterator<Item = Agent> {
    Agent::ALL.into_iter().filter(|agent| matches!(agents::place(*agent).form, Form::Settings | Form::Events))
}

fn settings(agent: Agent, folder: &Path) -> Settings {
    Settings {
        agent,
        file: settings_file(agent, Scope::User, folder).unwrap(),
        program: "/opt/it's/portcullis".into(),
        arguments: vec!["--defer".to_owned()],
    }
}

/// Whether a text is another one in which something was added.
fn is_added_to(before: &str, after: &str) -> bool {
    let mut letters = after.chars();
    before.chars().all(|letter| letters.any(|other| other == letter))
}

/// Writes a change without waiting for the disk.
fn put(change: &Change) {
    match &change.after {
        Some(after) => fs::write(&change.file, after).unwrap(),
        None => fs::remove_file(&change.file).unwrap(),
    }
}

/// Installs, installs again, changes the options, and takes it all out again.
fn there_and_back(settings: &Settings, before: Option<&str>) {
    let Settings { agent, file, .. } = settings;
    let said = |what: &str| format!("{agent:?}: {what}: {before:?}");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    match before {
        Some(before) => fs::write(file, before).unwrap(),
        None => assert!(!file.exists()),
    }
    assert_eq!(standing(*agent, file).unwrap(), Standing::Absent, "{}", said("nothing is there"));
    assert!(uninstall(*agent, file).unwrap().is_nothing(), "{}", said("nothing is taken out"));

    put(&install(settings).unwrap());
    let after = fs::read_to_string(file).unwrap();
    assert!(is_added_to(before.unwrap_or_default(), &after), "{}\n{after}", said("something else went"));
    assert!(
        matches!(standing(*agent, file).unwrap(), Standing::Broken(why) if why.contains("is no program"))
    );
    let again = install(settings).unwrap();
    assert!(again.is_nothing(), "{}\n{}", said("the second time"), again.difference());

    let other = Settings { arguments: Vec::new(), ..settings.clone() };
    put(&install(&other).unwrap());
    assert!(!fs::read_to_string(file).unwrap().contains("--defer"), "{}", said("the options"));
    put(&install(settings).unwrap());
    assert_eq!(fs::read_to_string(file).unwrap(), after, "{}", said("the options and back"));

    let removed = uninstall(*agent, file).unwrap();
    assert_eq!(removed.replaced, agents::place(*agent).events.len(), "{}", said("taken out"));
    put(&removed);
    assert_eq!(fs::read_to_string(file).ok().as_deref(), before, "{}\n{after}", said("there and back"));
}

/// A file of hooks of others, as an agent's hosts and other programs write them.
fn variants(agent: Agent) -> Vec<String> {
    let events = agents::place(agent).events;
    let first = events[0].0;
    // One of them has a single event.
    let last = events.iter().map(|(event, _)| *event).skip(1).last().unwrap_or("Other");
    let theirs = r#"{"matcher": "Bash", "hooks": [{"type": "command", "command": "lint \u00e9"}]}"#;
    let version = agents::place(agent).version.map(|version| format!("\"version\": {version}, "));
    let version = version.unwrap_or_default();
    let hooks = |inner: &str| match agents::place(agent).form {
        Form::Events => format!("{{{version}{inner}}}"),
        _ => format!("{{{version}\"hooks\": {{{inner}}}}}"),
    };
    let pretty = |text: &str| {
        let value: Value = serde_json::from_str(text).unwrap();
        format!("{value:#}\n")
    };
    let one = hooks(&format!("\"{first}\": [{theirs}]"));
    let two = hooks(&format!("\"Else\": [{theirs}], \"{last}\": [{theirs}, {theirs}], \"more\": {{}}"));
    let mut texts = vec![
        "{}".to_owned(),
        "{}\n".to_owned(),
        "{ }".to_owned(),
        "{\n}\n".to_owned(),
        "{\n  \n}".to_owned(),
        hooks(""),
        hooks(" "),
        hooks("\n  "),
        hooks(&format!("\"{first}\": []")),
        hooks(&format!("\"{first}\": [ ], \"{last}\": []")),
        one.clone(),
        two.clone(),
        pretty(&one),
        pretty(&two),
        pretty(&hooks(&format!("\"{first}\": []"))),
        "{\"a\": 1}".to_owned(),
        "{\"version\": 7}".to_owned(),
        "{\"a\":12345678901234567890123,\"b\":1e400,\"c\":-0.0,\"d\":\"\\u00e9\\/\",\"c\":2}".to_owned(),
        "{\n  \"a\": [\n    1\n  ]\n}".to_owned(),
        "\n\n {\"a\": 1}  \n\n".to_owned(),
        "{\n\"a\": 1\n}\n".to_owned(),
        "{\n  \"a\": 1\n  , \"b\": 2\n}\n".to_owned(),
        String::new(),
        "\n".to_owned(),
        "  \n ".to_owned(),
    ];
    for text in texts.clone() {
        texts.push(text.replace("  ", "    "));
        texts.push(text.replace("  ", "\t"));
        texts.push(text.trim_end().to_owned());
        texts.push(format!("{text}\n"));
    }
    for text in texts.clone() {
        texts.push(text.replace('\n', "\r\n"));
    }
    texts
}

#[test]
fn every_file_is_as_it_was_once_the_hook_is_taken_out() {
    for agent in shared() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(agent, folder.path());
        there_and_back(&settings, None);
        for text in variants(agent) {
            there_and_back(&settings, Some(&text));
        }
    }
}

#[test]
fn comments_stay_where_they_are() {
    for agent in [Agent::GeminiCli, Agent::QwenCode] {
        let first = agents::place(agent).events[0].0;
        for text in [
            "// mine\n{}\n",
            "{ // mine  \n}",
            "{\n  \"a\": 1 // mine \n}",
            "{\n  \"a\": 1 /* mine */ // mine\n  // more\n}\n// end",
            "{\n  \"a\": 1 /* mine\n  too */\n}",
            "{\"hooks\": {/* , \" */}}",
            "{\"hooks\": {\"EVENT\": [ // none\n]}}",
            "{\"hooks\": {\"EVENT\": [{\"command\": \"lint\"} // one\n], // two\n \"b\": \"// no comment\"}}",
            "{\"hooks\": {\"EVENT\": [{\"command\": \"lint\"} /* one */]}}",
            "/* {} */ {\"a\": \"/* no comment */\" /**/ }",
            "// nothing else\n",
        ] {
            let folder = tempfile::tempdir().unwrap();
            let settings = settings(agent, folder.path());
            for text in [text.to_owned(), text.replace('\n', "\r\n")] {
                there_and_back(&settings, Some(&text.replace("EVENT", first)));
            }
        }
    }
}

/// A file for Cursor and Copilot CLI without a version may be none for them; ours stays with what hooks of others are there.
#[test]
fn only_a_version_that_was_missing_stays() {
    for agent in shared().filter(|agent| agents::place(*agent).version.is_some()) {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(agent, folder.path());
        fs::create_dir_all(settings.file.parent().unwrap()).unwrap();
        fs::write(&settings.file, "{\"hooks\": {\"stop\": [{\"command\": \"lint\"}]}}").unwrap();
        install(&settings).unwrap().write().unwrap();
        uninstall(agent, &settings.file).unwrap().write().unwrap();
        let after = fs::read_to_string(&settings.file).unwrap();
        assert_eq!(after, "{\"hooks\": {\"stop\": [{\"command\": \"lint\"}]},\n  \"version\": 1}");
    }
}

#[test]
fn what_is_added_looks_like_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(Agent::Crush, folder.path());
    fs::create_dir_all(settings.file.parent().unwrap()).unwrap();
    fs::write(&settings.file, "{\r\n\t\"a\": 1\r\n}\r\n").unwrap();
    install(&settings).unwrap().write().unwrap();
    let entry = "{\"name\": \"portcullis\", \"command\": \"'/opt/it'\\\\''s/portcullis' hook --agent crush --defer || sh -c \
                 'echo \\\"portcullis: not permitted\\\" >&2; exit 2'\", \"timeout\": 60}";
    let expected = format!(
        "{{\r\n\t\"a\": 1,\r\n\t\"hooks\": {{\r\n\t\t\"PreToolUse\": [\r\n\t\t\t{entry}\r\n\t\t]\r\n\t}}\r\n}}\r\n"
    );
    assert_eq!(fs::read_to_string(&settings.file).unwrap(), expected);
}

/// Agents write their settings again in a layout of their own, and earlier releases had another one.
#[test]
fn what_was_laid_out_again_is_taken_out_as_well() {
    for agent in shared() {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(agent, folder.path());
        let events = agents::place(agent).events.len();
        fs::create_dir_all(settings.file.parent().unwrap()).unwrap();
        for before in ["{\"a\": 1}", "{}"] {
            fs::write(&settings.file, before).unwrap();
            put(&install(&settings).unwrap());
            let text = fs::read_to_string(&settings.file).unwrap();
            let value: Value = serde_json::from_str(&text).unwrap();
            for text in [value.to_string(), format!("{value:#}\n"), text.replace("{ \"", "{\"")] {
                fs::write(&settings.file, &text).unwrap();
                assert!(install(&settings).unwrap().is_nothing(), "{agent:?}: {text}");
                let removed = uninstall(agent, &settings.file).unwrap();
                assert_eq!(removed.replaced, events);
                let after = removed.after.map(|after| serde_json::from_str::<Value>(&after).unwrap());
                // Whether it was there and empty is not to be seen any more.
                let expected = Some(serde_json::from_str(before).unwrap()).filter(|_| before != "{}");
                assert_eq!(after, expected, "{agent:?}: {text}");
            }
        }
    }
}

/// Hooks that people put into the same entry, and an entry between ours, stay.
#[test]
fn what_is_in_the_middle_of_ours_stays() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(Agent::ClaudeCode, folder.path());
    install(&settings).unwrap().write().unwrap();
    let text = fs::read_to_string(&settings.file).unwrap();
    let theirs = "{\"type\": \"command\", \"command\": \"lint\"}";
    let merged = text.replacen("\"hooks\": [{", &format!("\"hooks\": [{theirs}, {{"), 1).replacen(
        "\"Stop\": [",
        &format!("\"Other\": [{theirs}],\n    \"Stop\": ["),
        1,
    );
    assert_eq!(merged.matches(theirs).count(), 2, "{merged}");
    fs::write(&settings.file, &merged).unwrap();
    uninstall(Agent::ClaudeCode, &settings.file).unwrap().write().unwrap();
    let after = fs::read_to_string(&settings.file).unwrap();
    let expected = format!(
        "{{\n  \"hooks\": {{\n    \"PreToolUse\": [\n      {{\"matcher\": \"*\", \"hooks\": [{theirs}]}}\n    ],\n    \"Other\": [{theirs}]\n  }}\n}}\n"
    );
    assert_eq!(after, expected);
}

/// A line comment before our entry, and something behind it on the same line.
#[test]
fn a_comment_does_not_go_on_into_what_follows() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(Agent::GeminiCli, folder.path());
    fs::create_dir_all(settings.file.parent().unwrap()).unwrap();
    fs::write(&settings.file, "{\"a\": 1 // mine\n}").unwrap();
    install(&settings).unwrap().write().unwrap();
    let text = fs::read_to_string(&settings.file).unwrap();
    let moved = text.trim_end_matches("\n}").to_owned() + "}";
    fs::write(&settings.file, moved).unwrap();
    uninstall(Agent::GeminiCli, &settings.file).unwrap().write().unwrap();
    assert_eq!(fs::read_to_string(&settings.file).unwrap(), "{\"a\": 1 // mine\n  }");
}

/// Kimi Code's tables.
#[test]
fn tables_of_others_stay_with_their_line_endings() {
    let theirs = "# mine\nmodel = \"m\" # the small one\n\n[[hooks]]\nevent = \"Stop\"\ncommand = \"say\"\n\n[a.b]\nc = \"\"\"\n x\n\"\"\"\n";
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(Agent::KimiCode, folder.path());
    there_and_back(&settings, None);
    for text in [
        theirs,
        "",
        "\n",
        "\n\n",
        "a = 1",
        "a = 1\n\n",
        "# only this",
        "[[hooks]]\nevent = \"Stop\"\ncommand = \"say\"",
    ] {
        there_and_back(&settings, Some(text));
        there_and_back(&settings, Some(&text.replace('\n', "\r\n")));
        there_and_back(&settings, Some(&text.replacen('\n', "\r\n", 2)));
    }
}

/// Blanks between two tokens, of all kinds, and comments.
fn blank(comments: bool) -> BoxedStrategy<String> {
    let plain =
        prop_oneof![4 => Just(""), 2 => Just(" "), 2 => Just("\n  "), 1 => Just("\r\n\t"), 1 => Just("\n\n")];
    let plain = plain.prop_map(str::to_owned);
    if !comments {
        return plain.boxed();
    }
    let comment = prop_oneof![Just("/* \" , */"), Just(" // } \n"), Just("//\r\n"), Just("/*\n*/ ")];
    prop_oneof![4 => plain, 1 => comment.prop_map(str::to_owned)].boxed()
}

fn scalar() -> impl Strategy<Value = String> {
    let fixed = [
        "1e400",
        "12345678901234567890",
        "null",
        "true",
        "\"\\u00e9\\n\"",
        "\"a//b\"",
        "-0",
        "\"{\"",
        "\"lint\"",
    ];
    proptest::sample::select(fixed.to_vec()).prop_map(str::to_owned)
}

/// A value with blanks wherever they may be.
fn value(comments: bool) -> impl Strategy<Value = String> {
    scalar().prop_recursive(4, 24, 4, move |inner| {
        let name = proptest::sample::select(vec![
            "\"a\"",
            "\"command\"",
            "\"hooks\"",
            "\"b\\u0061\"",
            "\"version\"",
        ]);
        let member = (name, blank(comments), inner.clone())
            .prop_map(|(name, blank, value)| format!("{name}:{blank}{value}"));
        prop_oneof![
            joined(member, comments).prop_map(|members| format!("{{{members}}}")),
            joined(inner, comments).prop_map(|values| format!("[{values}]")),
        ]
    })
}

fn joined(one: impl Strategy<Value = String> + 'static, comments: bool) -> impl Strategy<Value = String> {
    let padded = (blank(comments), one, blank(comments)).prop_map(|(a, one, b)| a + &one + &b);
    (blank(comments), prop::collection::vec(padded, 0..4))
        .prop_map(|(empty, values)| if values.is_empty() { empty } else { values.join(",") })
}

/// A file of an agent's: anything, with lists of some of its events.
fn file(agent: Agent) -> impl Strategy<Value = String> {
    let place = agents::place(agent);
    let comments = place.comments;
    let lists = joined(value(comments), comments).prop_map(|values| format!("[{values}]"));
    let events: Vec<String> =
        place.events.iter().map(|(event, _)| format!("\"{event}\"")).chain(["\"Else\"".to_owned()]).collect();
    let most = events.len().min(3);
    let names = proptest::sample::subsequence(events, 0..=most);
    let events = (names, prop::collection::vec((lists, blank(comments)), most), blank(comments));
    let events = events.prop_map(|(names, lists, empty)| {
        let members = names.iter().zip(lists).map(|(name, (list, blank))| format!("{blank}{name}:{list}"));
        let members = members.collect::<Vec<_>>().join(",");
        if members.is_empty() { empty } else { members }
    });
    let version = place.version.map(|version| format!("\"version\": {version}"));
    let others = joined(value(comments).prop_map(|value| format!("\"x\":{value}")), comments);
    (blank(comments), blank(comments), events, others, any::<[bool; 3]>()).prop_map(
        move |(before, after, events, others, [has_events, first, has_version])| {
            let hooks = match place.form {
                Form::Events => Some(events).filter(|events| events.contains('"')),
                _ => Some(format!("\"hooks\":{{{events}}}")),
            };
            let hooks = hooks.filter(|_| has_events);
            let others = Some(others).filter(|others| others.contains("\"x\":") || hooks.is_none());
            // One that is missing beside hooks stays: see above.
            let version = version.clone().filter(|_| has_version || hooks.is_some());
            let mut members: Vec<String> = [hooks, others].into_iter().flatten().collect();
            if first {
                members.reverse();
            }
            members.extend(version);
            let members: Vec<String> =
                members.iter().filter(|member| member.contains(':') || members.len() == 1).cloned().collect();
            format!("{before}{{{}}}{after}", members.join(","))
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Nothing makes the reader panic, and what it takes is as it was.
    #[test]
    fn any_text_is_left_alone_or_as_it_was(
        agent in proptest::sample::select(vec![Agent::GeminiCli, Agent::Droid, Agent::Cursor]),
        text in "\\PC{0,40}|[{}\\[\\],:\"\\\\/* a1\\r\\n\u{feff}ü]{0,40}|(\\{|\\}|\\[|\\]|,|:|//\\n|/[*]|[*]/|\"hooks\"|\"a\"|1| ){0,14}",
    ) {
        let folder = tempfile::tempdir().unwrap();
        let settings = settings(agent, folder.path());
        fs::create_dir_all(settings.file.parent().unwrap()).unwrap();
        fs::write(&settings.file, &text).unwrap();
        if let Ok(change) = install(&settings) {
            // A version that was missing beside hooks stays: see above.
            if agent == Agent::Cursor && text.contains("hooks") {
                return Ok(());
            }
            put(&change);
            let after = uninstall(agent, &settings.file).unwrap().after;
            prop_assert_eq!(after.as_deref(), Some(text.as_str()));
        }
    }

    #[test]
    fn any_file_is_as_it_was_once_the_hook_is_taken_out(
        (agent, text) in proptest::sample::select(shared().collect::<Vec<_>>())
            .prop_flat_map(|agent| file(agent).prop_map(move |text| (agent, text)))
    ) {
        let folder = tempfile::tempdir().unwrap();
        there_and_back(&settings(agent, folder.path()), Some(&text));
    }
}
