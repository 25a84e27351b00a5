//! The shipped bundle against the simulated tools: they must describe the same tools, every call in a
//! plan must work, and every plan must end where it is meant to end under either policy.
//!
//! The files are read here as plain TOML, and the ladder of the runtime policies is written down a
//! second time, in its shortest form, so that a mistake in the real loader or guard cannot hide one in
//! the bundle.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use portcullis_core::bundle::Bundle;
use portcullis_sim::tools::{TOOLS, Workspace};
use serde_json::{Value, json};

fn bundle() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/bundle")
}

/// The tables named `key` in all files of the folder `part`, in the files' order.
fn tables(part: &str, key: &str) -> Vec<Value> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(bundle().join(part)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut found = Vec::new();
    for file in files {
        let parsed: Value = toml::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(parsed.as_object().unwrap().len(), 1, "{}", file.display());
        found.extend(parsed[key].as_array().unwrap().iter().cloned());
    }
    found
}

fn by_name(tables: Vec<Value>) -> BTreeMap<String, Value> {
    let len = tables.len();
    let named: BTreeMap<String, Value> =
        tables.into_iter().map(|table| (table["name"].as_str().unwrap().to_owned(), table)).collect();
    assert_eq!(named.len(), len, "names are unique");
    named
}

fn knowledge() -> BTreeMap<String, String> {
    serde_json::from_str(&std::fs::read_to_string(bundle().join("knowledge.json")).unwrap()).unwrap()
}

fn text<'a>(table: &'a Value, key: &str) -> &'a str {
    table[key].as_str().unwrap()
}

/// All files of the bundle, with `portcullis.toml` as `turn` turns it.
fn files(turn: impl Fn(&str) -> String) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for folder in ["", "policies/", "tools/", "plans/"] {
        for entry in std::fs::read_dir(bundle().join(folder)).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_file() {
                let name = format!("{folder}{}", entry.file_name().to_str().unwrap());
                files.insert(name, std::fs::read(entry.path()).unwrap());
            }
        }
    }
    let main = String::from_utf8(files["portcullis.toml"].clone()).unwrap();
    files.insert("portcullis.toml".to_owned(), turn(&main).into_bytes());
    files
}

#[test]
fn the_loader_reads_the_whole_bundle() {
    let bundle = Bundle::load(&files(str::to_owned)).unwrap();
    assert_eq!(bundle.default_policy(), "Strict Compliance Policy");
    assert_eq!((bundle.policies().len(), bundle.plans.len(), bundle.knowledge.len()), (2, 7, 4));
    let tools =
        bundle.plans.iter().flat_map(|plan| &plan.steps).filter_map(|step| Some((step.tool.as_ref()?, step)));
    for (name, step) in tools {
        let tool = bundle.registry.get(name).unwrap();
        assert_eq!(tool.args.check(&step.args), Ok(()), "{}", step.action);
    }
}

#[test]
fn the_settings_that_are_commented_out_are_valid_as_well() {
    let settings = |line: &str| {
        let code = line.strip_prefix("# ")?;
        let sets = code.split_whitespace().nth(1) == Some("=");
        (sets || code.starts_with("[[")).then(|| code.to_owned())
    };
    let uncommented = |main: &str| {
        main.lines()
            .map(|line| settings(line).unwrap_or_else(|| line.to_owned()))
            .collect::<Vec<_>>()
            .join("\n")
    };
    let bundle = Bundle::load(&files(uncommented)).unwrap();
    assert_eq!(bundle.credentials.len(), 1);
    // They are the defaults.
    assert_eq!(bundle.approvals, Bundle::load(&files(str::to_owned)).unwrap().approvals);
}

#[test]
fn the_registry_describes_the_simulated_tools() {
    let registry = tables("tools", "tool");
    assert_eq!(registry.len(), TOOLS.len());
    for (registered, tool) in registry.iter().zip(TOOLS) {
        assert_eq!(text(registered, "id"), tool.id);
        assert_eq!(text(registered, "name"), tool.name);
        assert_eq!(text(registered, "description"), tool.description);
        let args = &registered["args"];
        let declared = Value::Object(tool.input_schema());
        // A bare property map says no more than the properties.
        if args["type"] == "object" {
            assert_eq!(args, &declared);
        } else {
            assert_eq!(args, &declared["properties"]);
        }
        // What changes the folder must be registered as a side effect. The reverse does not hold: a
        // query changes nothing and is one.
        assert!(tool.read_only || registered["side_effecting"] == true, "{}", tool.id);
    }
}

#[test]
fn ids_and_side_effects_are_the_documented_ones() {
    let ids: Vec<String> = knowledge().into_keys().collect();
    assert_eq!(ids, ["doc_001", "doc_002", "doc_003", "doc_004"]);
    let side_effecting: Vec<bool> =
        tables("tools", "tool").iter().map(|tool| tool["side_effecting"].as_bool().unwrap()).collect();
    assert_eq!(side_effecting, [false, true, true, true, false]);
}

/// Where a plan ends under a policy: after its last step, or at the step that is first denied or held,
/// with the reason.
fn end(plan: &Value, policy: &Value, tools: &BTreeMap<String, Value>) -> String {
    let mut side_effects = 0;
    for (number, step) in (1..).zip(plan["step"].as_array().unwrap()) {
        let tool = step.get("tool").map(|name| &tools[name.as_str().unwrap()]);
        let effect = tool.is_some_and(|tool| tool["side_effecting"] == true);
        let allowed = policy["allowed_types"].as_array().unwrap();
        let said =
            format!("{} {}", text(step, "action"), step.get("args").unwrap_or(&Value::Null)).to_lowercase();
        let keyword = policy["restricted_keywords"]
            .as_array()
            .unwrap()
            .iter()
            .find(|k| said.contains(k.as_str().unwrap()));
        let stop = if tool.is_some_and(|tool| !allowed.contains(&tool["type"])) {
            "type"
        } else if number > policy["max_steps"].as_i64().unwrap() {
            "steps"
        } else if keyword.is_some() {
            "keyword"
        } else if effect && policy["approval_for_side_effects"] == true {
            "approval"
        } else if effect && side_effects >= policy["max_side_effects"].as_i64().unwrap() {
            "side effects"
        } else {
            side_effects += i64::from(effect);
            continue;
        };
        return format!("{number}: {stop}");
    }
    "end".to_owned()
}

#[test]
fn every_plan_ends_where_it_should_under_both_policies() {
    let tools = by_name(tables("tools", "tool"));
    let policies = by_name(tables("policies", "policy"));
    let plans = by_name(tables("plans", "plan"));
    let ends: Vec<(&str, String, String)> = plans
        .iter()
        .map(|(name, plan)| {
            let under = |policy: &str| end(plan, &policies[policy], &tools);
            (name.as_str(), under("Strict Compliance Policy"), under("Permissive Exploration Policy"))
        })
        .collect();
    let expected = [
        ("Calculation Task", "end"),
        ("Compliance Inquiry", "3: type"),
        ("Compliance Report Generation", "end"),
        ("Email Policy Update", "2: type"),
        ("Exceed Step Limit", "6: steps"),
        ("Handle Data Access Request", "2: type"),
        ("Unauthorized Transfer Attempt", "2: type"),
    ];
    assert_eq!(ends, expected.map(|(name, strict)| (name, strict.to_owned(), "end".to_owned())));
}

#[test]
fn every_call_of_every_plan_works() {
    let tools = by_name(tables("tools", "tool"));
    for plan in tables("plans", "plan") {
        let dir = tempfile::tempdir().unwrap();
        let workspace = Workspace::create(dir.path(), &knowledge()).unwrap();
        let steps = plan["step"].as_array().unwrap();
        for step in steps {
            let Some(tool) = step.get("tool") else { continue };
            let output = workspace.call(text(&tools[tool.as_str().unwrap()], "id"), &step["args"]);
            let output = output.unwrap_or_else(|error| panic!("{}: {error}", text(step, "action")));
            for empty in ["documents", "rows"] {
                assert_ne!(output.structured.get(empty), Some(&json!([])), "{}", text(step, "action"));
            }
        }
        assert!(steps.last().unwrap().get("tool").is_none(), "{} ends with an answer", text(&plan, "name"));
    }
}

#[test]
fn the_permissive_policy_lets_the_override_through() {
    // What the simulated damage looks like: a mail and a file that the strict policy prevents.
    let tools = by_name(tables("tools", "tool"));
    let plans = by_name(tables("plans", "plan"));
    let dir = tempfile::tempdir().unwrap();
    let workspace = Workspace::create(dir.path(), &knowledge()).unwrap();
    for step in plans["Unauthorized Transfer Attempt"]["step"].as_array().unwrap() {
        if let Some(tool) = step.get("tool") {
            workspace.call(text(&tools[tool.as_str().unwrap()], "id"), &step["args"]).unwrap();
        }
    }
    let mail = std::fs::read_to_string(dir.path().join("outbox/00001.eml")).unwrap();
    assert!(mail.contains("$100,000"));
    assert!(dir.path().join("storage/controls/override.txt").exists());
}
