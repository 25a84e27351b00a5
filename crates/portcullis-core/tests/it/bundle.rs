//! What a bundle's author is told.

use expect_test::{Expect, expect};
use portcullis_core::bundle::Bundle;

use crate::files;

#[track_caller]
fn check(more: &[(&str, &str)], expect: &Expect) {
    let diagnostics = Bundle::load(&files(more)).expect_err("the bundle has a mistake");
    let lines: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    expect.assert_eq(&lines.join("\n"));
}

#[test]
fn mistakes_have_a_place_and_advice() {
    check(
        &[("portcullis.toml", "version = 1\nmode = \"enforc\"\nunknwon_tools = \"deny\"\npolicy = \"P\"\n")],
        &expect![[r#"
            portcullis.toml:2:8: `enforc` is not a value of `mode` (did you mean `enforce`?)
            portcullis.toml:3:1: unknown field `unknwon_tools` in the file (did you mean `unknown_tools`?)
            portcullis.toml:4:10: there is no runtime policy `P` (did you mean `p`?)"#]],
    );
    check(
        &[(
            "policies/p.toml",
            "[[policy]]\nname = 'p'\nallowed_types = ['SEND_EMIAL']\nmax_steps = 0\nrestricted_keywords = ['']\n",
        )],
        &expect![[r#"
            policies/p.toml:4:13: `max_steps` must be a whole number from 1 to 4294967295, found 0
            policies/p.toml:1:1: the policy has no `max_side_effects`
            policies/p.toml:5:24: an empty keyword never matches"#]],
    );
    check(
        &[("tools/t.toml", "[[tool]]\nname = 'a'\ntype = 'X'\nside_effecting = 'yes'\nrisk = 2\n")],
        &expect![[r#"
            tools/t.toml:4:18: `side_effecting` must be true or false, found string
            tools/t.toml:5:8: `risk` must be a number from 0 to 1, found 2"#]],
    );
}

#[test]
fn a_budget_of_a_principal_says_what_it_limits() {
    let policy = |principal: &str| {
        format!(
            "[[policy]]\nname = 'q'\nallowed_types = []\nmax_steps = 1\nmax_side_effects = 0\n[policy.principal]\n{principal}"
        )
    };
    check(
        &[("policies/q.toml", &policy("per = 'week'\nmax_stps = 3\n"))],
        &expect![[r#"
        policies/q.toml:7:7: `week` is not a value of `per` (expected one of: hour, day)
        policies/q.toml:8:1: unknown field `max_stps` in the principal (did you mean `max_steps`?)
        policies/q.toml:6:1: the principal has no limit: set `max_steps`, `max_side_effects`, `max_bytes` or `max_cost`"#]],
    );
    check(
        &[("policies/q.toml", &policy("max_bytes = 0\n"))],
        &expect![[r#"
        policies/q.toml:6:1: the principal has no `per`
        policies/q.toml:7:13: `max_bytes` must be a whole number from 1 to 4294967295, found 0
        policies/q.toml:6:1: the principal has no limit: set `max_steps`, `max_side_effects`, `max_bytes` or `max_cost`"#]],
    );
    check(
        &[("policies/q.toml", &policy("per = 'day'\n"))],
        &expect![
            "policies/q.toml:6:1: the principal has no limit: set `max_steps`, `max_side_effects`, `max_bytes` or `max_cost`"
        ],
    );
}

#[test]
fn broken_files_are_named() {
    check(
        &[("portcullis.toml", "version = 1\nmode = \n")],
        &expect![[r#"portcullis.toml:2:8: string values must be quoted, expected literal string"#]],
    );
    check(
        &[("knowledge.json", "{\"a\": \"b\",\n \"c\": }")],
        &expect![[r#"knowledge.json:2:7: not JSON: expected value at line 2 column 7"#]],
    );
    check(
        &[("knowledge.json", "{\"a\": 1}")],
        &expect![[r#"knowledge.json:1:1: document `a` must be a string"#]],
    );
    check(
        &[("polices/p.toml", "")],
        &expect![[
            r#"polices/p.toml:1:1: this file does not belong in a bundle (did you mean `policies/`?)"#
        ]],
    );
}

#[test]
fn names_are_unique_and_references_resolve() {
    let tool = "[[tool]]\nname = 'a'\ntype = 'X'\nside_effecting = false\n";
    check(
        &[
            ("tools/a.toml", tool),
            ("tools/b.toml", tool),
            ("plans/p.toml", "[[plan]]\nname = 'x'\n[[plan.step]]\naction = 'y'\ntool = 'aa'\n"),
        ],
        &expect![[r#"
            tools/b.toml:2:8: the tool name `a` is used twice
            plans/p.toml:5:8: there is no tool `aa` (did you mean `a`?)"#]],
    );
    check(
        &[(
            "policies/q.toml",
            "[[policy]]\nname = 'p'\nallowed_types = ['SEND_EMIAL']\nmax_steps = 1\nmax_side_effects = 0\n",
        )],
        &expect![[r#"
            policies/q.toml:2:8: the runtime policy name `p` is used twice
            policies/q.toml:3:18: there is no tool type `SEND_EMIAL` (did you mean `SEND_EMAIL`?)"#]],
    );
}

#[test]
fn the_digest_names_the_files() {
    let digest = |more: &[(&str, &str)]| Bundle::load(&files(more)).unwrap().digest();
    assert_eq!(digest(&[]), digest(&[]));
    assert_ne!(digest(&[]), digest(&[("portcullis.toml", "version = 1\n\n")]));
    assert_ne!(digest(&[]), digest(&[("README.md", "")]));
}

#[test]
fn keywords_may_be_written_as_in_the_form_of_the_seed() {
    let policy = "[[policy]]\nname = 'p'\nallowed_types = []\nmax_steps = 1\nmax_side_effects = 0\n\
                  restricted_keywords = ' wire, , transfer funds ,'\n";
    let bundle = Bundle::load(&files(&[("policies/p.toml", policy)])).unwrap();
    assert_eq!(bundle.policies()[0].restricted_keywords, ["wire", "transfer funds"]);
}

#[test]
fn a_contract_says_all_that_is_wrong_with_it() {
    let contracts = "[[contract]]\nstatement = 'Be kind.'\non_fail = 'warn'\njudge = true\nprogram = '/bin/judge'\n\
        [[contract]]\nstatement = 'Be kind.'\nrepair = 'retry'\ntools = ['serach']\nsurfaces = []\n\
        [[contract]]\nstatement = '…'\n\
        [[contract]]\nname = 'No Commas'\nstatement = 'No commas.'\nprogram = 'judge'\n\
        [[contract]]\nname = 'x'\n";
    check(
        &[("contracts/c.toml", contracts)],
        &expect![[r#"
        contracts/c.toml:3:11: `warn` is not a value of `on_fail` (expected one of: annotate, repair, review, deny)
        contracts/c.toml:5:11: a contract has one judge: keep `judge` or `program`
        contracts/c.toml:6:1: `surfaces` must name 1 to 64 (without it, the contract is not limited)
        contracts/c.toml:6:1: `repair` says how a text is rewritten, and `on_fail` wants none rewritten (set `on_fail = "repair"`, or remove `repair`)
        contracts/c.toml:12:13: no name can be made of the statement (add `name`, of a-z, 0-9 and -)
        contracts/c.toml:16:11: `program` must be an absolute path: it runs wherever the daemon does
        contracts/c.toml:14:8: `name` must have 1 to 64 of a-z, 0-9 and -
        contracts/c.toml:17:1: the contract has no `statement`
        contracts/c.toml:9:10: there is no tool `serach`
        contracts/c.toml:7:13: the contract name `be-kind` is used twice (give one of them another `name`)
        contracts/c.toml:7:13: `be-kind` asks a model, and the bundle names none (add `[contracts]` with `endpoint` and `model` to portcullis.toml)"#]],
    );
}

#[test]
fn a_sequence_says_all_that_is_wrong_with_it() {
    let sequences = "[[mark]]\nname = 'export'\ntools = ['serach', 'export_*']\n\
        [[mark]]\nname = 'export'\ntools = []\namount = 'total'\n\
        [[sequence]]\nid = 'a'\ntools = ['q']\nafter = 'exprot'\nwithin = '10 minutes'\n\
        [[sequence]]\nid = 'b'\ntools = ['q']\nafter = 'export'\ncount = 'export'\nverdict = 'halt'\n\
        [[sequence]]\nid = 'c'\ntools = ['q']\nsum = 'export'\nat_most = 1\n\
        [[sequence]]\nid = 'd'\ntools = ['q']\ncount = 'export'\n\
        [[sequence]]\nid = 'd e'\ntools = ['q']\nbefore = 'export'\nsame = '/x'\n\
        [[sequence]]\nid = 'f'\ntools = ['q']\nbefore = 'export'\nsame = '/x'\n\
        [[sequence]]\nid = 'g'\nwithin = '1h'\n\
        [[sequence]]\nid = 'h'\ntools = ['q']\nafter = 'export'\nover = 'principal'\n\
        [[sequence]]\nid = 'i'\ntools = ['q']\nafter = 'export'\nover = 'principal'\nwithin = '8d'\n\
        [[sequence]]\nid = 'j'\ntools = ['q']\nafter = 'export'\nwhere = { env = 'prod' }\n\
        [[sequence]]\nid = 'k'\ntools = ['q']\nafter = 'export'\nwhere = { '/n' = { over = 'ten' } }\n\
        [[sequence]]\nid = 'l'\ntools = ['q']\nafter = 'export'\nwhere = { '/n' = { above = 1 } }\n\
        [[sequence]]\nid = 'm'\ntools = ['q']\nafter = 'export'\nwhere = { '/n' = [] }\n";
    let tools = "[[tool]]\nname = 'q'\ntype = 'QUERY_DB'\nside_effecting = false\n";
    check(
        &[("sequences/s.toml", sequences), ("tools/t.toml", tools)],
        &expect![[r#"
            sequences/s.toml:4:1: `tools` must name 1 to 64
            sequences/s.toml:7:10: `total` is no JSON pointer: write `/total`
            sequences/s.toml:12:10: `10 minutes` is no window: write `90s`, `10m`, `24h`, `7d` or `20 steps`
            sequences/s.toml:17:9: a sequence asks one question, and this one asks `after` already (make two sequences of it)
            sequences/s.toml:18:11: `halt` is not a value of `verdict` (expected one of: warn, review, deny)
            sequences/s.toml:24:1: the sequence has no `at_most`
            sequences/s.toml:29:6: `id` must have 1 to 64 of a-z, 0-9 and -
            sequences/s.toml:38:1: the sequence has no `tools`
            sequences/s.toml:38:1: a sequence asks one question: `after`, `before`, `count` or `sum`
            sequences/s.toml:56:9: `env` is no JSON pointer: write `/env` (write a value, a list of values, `{ not = … }`, or `{ over = … }`, `at_least`, `under`, `at_most` with a number)
            sequences/s.toml:61:9: `/n` has `over` without a number from 0 with at most six decimals (write a value, a list of values, `{ not = … }`, or `{ over = … }`, `at_least`, `under`, `at_most` with a number)
            sequences/s.toml:66:9: `/n` has the unknown condition `above` (write a value, a list of values, `{ not = … }`, or `{ over = … }`, `at_least`, `under`, `at_most` with a number)
            sequences/s.toml:71:9: `/n` names 0 values; name 1 to 64 (write a value, a list of values, `{ not = … }`, or `{ over = … }`, `at_least`, `under`, `at_most` with a number)
            sequences/s.toml:3:10: there is no tool `serach` (expected one of: q, q)
            sequences/s.toml:5:8: the mark name `export` is used twice
            sequences/s.toml:11:9: there is no mark `exprot` (did you mean `export`?)
            sequences/s.toml:19:1: `sum` needs an amount, and the mark `export` has no `amount`
            sequences/s.toml:33:1: `same` is compared with the key of marks, and the mark `export` has no `key`
            sequences/s.toml:41:1: `over = "principal"` needs `within`, a time of at most `7d`
            sequences/s.toml:46:1: `over = "principal"` needs `within`, a time of at most `7d`"#]],
    );
}

#[test]
fn lints_name_what_is_probably_not_meant() {
    let policy = "[[policy]]\nname = \"a\"\nallowed_types = [\"QUERY_DB\", \"CALCULATE\"]\nmax_steps = 2\n\
        max_side_effects = 3\nrestricted_keywords = [\"wire\", \"Wire transfer\", \"pay\"]\n\
        [[policy]]\nname = \"b\"\nallowed_types = [\"QUERY_DB\"]\nmax_steps = 5\nmax_side_effects = 0\n\
        approval_for_side_effects = true\n";
    let tools = "[[tool]]\nname = \"q\"\ntype = \"QUERY_DB\"\nside_effecting = true\n\
        [[tool]]\nname = \"m\"\ntype = \"SEND_EMAIL\"\nside_effecting = true\ninferred = true\n\
        [[tool]]\nname = \"off\"\ntype = \"WEB_FETCH\"\nside_effecting = true\nenabled = false\n";
    let bundle = Bundle::load(
        &[("portcullis.toml", "version = 1\n"), ("policies/p.toml", policy), ("tools/t.toml", tools)]
            .map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()))
            .into(),
    )
    .unwrap();
    let lints: Vec<String> = bundle
        .lint()
        .iter()
        .map(|lint| format!("{} {}:{}", lint.name, lint.diagnostic.file, lint.diagnostic.line))
        .collect();
    assert_eq!(
        lints,
        [
            "unused-type policies/p.toml:2",
            "shadowed-keyword policies/p.toml:2",
            "unreachable-limit policies/p.toml:2",
            "useless-approval policies/p.toml:8",
            "unreachable-tool tools/t.toml:6",
            "unconfirmed-tool tools/t.toml:6",
        ]
    );
}

#[test]
fn what_would_silently_weaken_a_policy_is_a_mistake() {
    let tool =
        |more: &str| format!("[[tool]]\nname = 'q'\ntype = 'QUERY_DB'\nside_effecting = false\n{more}");
    check(
        &[("tools/t.toml", &tool("effects = { qurey = 'sql' }\nargs.query = { type = 'string' }\n"))],
        &expect![[r#"
            tools/t.toml:5:13: `effects` names the argument `qurey`, which `args` does not declare (did you mean `query`?)"#]],
    );
    check(
        &[("tools/t.toml", &tool("effects = { query = 'sq' }\nargs.query = { type = 'string' }\n"))],
        &expect![[r#"
            tools/t.toml:5:21: `sq` is not an effect (did you mean `sql`?)"#]],
    );
    check(
        &[(
            "tools/t.toml",
            &tool(
                "args = { '$ref' = '#/$defs/a', '$defs' = { a = { allOf = [{ '$ref' = '#/$defs/b' }] }, b = { '$ref' = '#/$defs/a' } } }\n",
            ),
        )],
        &expect![[r##"
            tools/t.toml:5:8: `args` is a schema in which `#/$defs/a` leads back to itself"##]],
    );
    let token = "0".repeat(64);
    let credential = format!("[[credential]]\ntoken_sha256 = '{token}'\nprincipal = 'ann'\n");
    let main = format!(
        "version = 1\n[access]\nattributes = {{ department = 'text', age = 'integer' }}\n{credential}attributes = {{ departmant = 'x', age = 'old' }}\n"
    );
    check(
        &[("portcullis.toml", &main)],
        &expect![[r#"
            portcullis.toml:7:34: the attribute `age` must be a whole number, as `[access] attributes` says
            portcullis.toml:7:16: the attribute `departmant` is not declared in `[access] attributes` (did you mean `department`?)"#]],
    );
    let aliases =
        "version = 1\n[access]\nrole_aliases = { a = 'b', b = 'a', c = 'd', d = 'nurse', n = 'nurse' }\n";
    check(
        &[("portcullis.toml", aliases)],
        &expect![[r#"
            portcullis.toml:3:22: the alias `a` leads back to itself, not to a role (name a role that policies use)
            portcullis.toml:3:31: the alias `b` leads back to itself, not to a role (name a role that policies use)
            portcullis.toml:3:40: `d` is itself an alias (did you mean `nurse`?)"#]],
    );
    check(
        &[("access/clinic.ceder", "forbid (principal, action, resource);")],
        &expect![[r#"
            access/clinic.ceder:1:1: files in `access/` must end in `.cedar`, not in `.ceder` (rename it; with this name, it is not read)"#]],
    );
}

#[test]
fn what_only_looks_like_such_a_mistake_loads() {
    let tool =
        |more: &str| format!("[[tool]]\nname = 'q'\ntype = 'QUERY_DB'\nside_effecting = false\n{more}");
    for more in [
        // Any arguments.
        "effects = { query = 'sql' }\n",
        "effects = { query = 'sql' }\nargs = { type = 'object', patternProperties = { '^q' = {} } }\n",
        // Names that stand in a schema beside it.
        "effects = { query = 'sql' }\nargs = { '$ref' = '#/$defs/a', '$defs' = { a = { properties = { query = {} } } } }\n",
        "effects = { query = 'sql' }\nargs = { type = 'object', allOf = [{ properties = { query = {} } }] }\n",
        // A tree: the reference goes into the value.
        "args = { type = 'object', properties = { children = { type = 'array', items = { '$ref' = '#' } } } }\n",
    ] {
        let text = tool(more);
        assert!(Bundle::load(&files(&[("tools/t.toml", &text)])).is_ok(), "{more}");
    }
    // Nothing can depend on an attribute where no policy is.
    let token = "0".repeat(64);
    let main = format!(
        "version = 1\n[[credential]]\ntoken_sha256 = '{token}'\nprincipal = 'ann'\nattributes = {{ team = 'x' }}\n"
    );
    assert!(
        Bundle::load(&files(&[
            ("portcullis.toml", &main),
            ("access/README.md", "x"),
            ("tools/notes.txt", "x"),
            ("policies/p.toml~", "x")
        ]))
        .is_ok()
    );
}

/// The differences between the bundle of `files` and one that has these files instead.
fn differences(old: &[(&str, &str)], new: &[(&str, &str)]) -> Vec<String> {
    let load = |more| Bundle::load(&files(more)).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    let found = load(old).differences(&load(new));
    found
        .iter()
        .map(|found| format!("{} {}: {} -> {}", found.direction, found.part, found.old, found.new))
        .collect()
}

#[test]
fn every_loosened_part_is_named() {
    let policy = |steps: u32, more: &str| {
        format!(
            "[[policy]]\nname = 'p'\nallowed_types = ['QUERY_DB']\nmax_steps = {steps}\nmax_side_effects = 1\n{more}"
        )
    };
    let tool = |more: &str| format!("[[tool]]\nname = 'q'\ntype = 'QUERY_DB'\n{more}");
    let strict_tool = tool("side_effecting = true\nrisk = 0.9\neffects = { query = 'sql', path = 'path' }\n");
    let loose_tool = tool("side_effecting = false\nrisk = 0.1\neffects = { query = 'sql' }\n");
    let strict = "version = 1\nunknown_tools = 'deny'\n[effects]\nunknown = 'deny'\nsecrets = ['x.dat']\n[ledger]\nanchor = 'before-effects'\n[flow]\nstrict = true\n[monitors]\nscores = 'stop'\n[[escalation.row]]\ndrift = 0.5\nlevel = 'HUMAN_REVIEW'\n";
    let loose = "version = 1\nmode = 'observe'\ntrust_hints = true\nunknown_tools = 'allow'\n[effects]\nunknown = 'allow'\n[ledger]\nredact = false\n[loops]\nalike = 0\n[authority]\nhosts = ['api.example.com']\n[[escalation.row]]\ndrift = 0.6\nlevel = 'WARN'\n";
    let (old_policy, new_policy) = (
        policy(3, "approval_for_side_effects = true\nrestricted_keywords = ['wire']\n"),
        policy(4, "max_bytes = 7\n"),
    );
    let old = [("portcullis.toml", strict), ("policies/p.toml", &old_policy), ("tools/t.toml", &strict_tool)];
    let new = [("portcullis.toml", loose), ("policies/p.toml", &new_policy), ("tools/t.toml", &loose_tool)];
    expect![[r#"
        loosened mode: enforce -> observe
        loosened unknown_tools: deny -> allow
        loosened trust_hints: false -> true
        loosened policy `p` max_steps: 3 -> 4
        loosened policy `p` approval_for_side_effects: true -> false
        loosened policy `p` restricted_keywords: `wire` -> -
        loosened tool `q` side_effecting: true -> false
        loosened tool `q` risk: 0.9 -> 0.1
        loosened tool `q` effects: path = path, query = sql -> query = sql
        loosened [effects] unknown: deny -> allow
        loosened [effects] secrets: `x.dat` -> -
        loosened [ledger] redact: true -> false
        loosened [ledger] anchor: before-effects -> background
        loosened [loops] alike: 10 -> no limit
        loosened [flow] strict: true -> false
        loosened [authority] hosts: - -> `api.example.com`
        loosened [[escalation.row]] 1: drift >= 0.5, HUMAN_REVIEW -> drift >= 0.6, WARN
        loosened [monitors] scores: stop -> advise
        tightened policy `p` max_bytes: no limit -> 7"#]]
    .assert_eq(&differences(&old, &new).join("\n"));
    assert_eq!(differences(&old, &old), Vec::<String>::new());
    let back = differences(&new, &old);
    assert!(back.iter().any(|line| line == "tightened mode: observe -> enforce"), "{back:?}");
}

/// Each change alone is called loosened, with what it was and is.
#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases that share what their bundles are made of")]
fn loosened_credentials_tools_and_budgets_are_named() {
    let token = |digit: char| digit.to_string().repeat(64);
    let main = |unknown: &str, more: &str| format!("version = 1\nunknown_tools = '{unknown}'\n{more}");
    let credential = |digit: char, more: &str| {
        format!("[[credential]]\ntoken_sha256 = '{}'\nprincipal = 'ann'\n{more}\n", token(digit))
    };
    let policy = |name: &str, types: &str, more: &str| {
        format!(
            "[[policy]]\nname = '{name}'\nallowed_types = [{types}]\nmax_steps = 3\nmax_side_effects = 1\n{more}\n"
        )
    };
    let policies = policy("p", "'QUERY_DB'", "") + &policy("s", "", "");
    let tool_that = |acts: bool, more: &str| {
        format!("[[tool]]\nname = 'q'\ntype = 'QUERY_DB'\nside_effecting = {acts}\nrisk = 0.5\n{more}\n")
    };
    let tool = |more: &str| tool_that(true, more);
    let typed = |name: &str| tool("").replace("QUERY_DB", name);
    let contracts = |host: &str| format!("[contracts]\nendpoint = 'https://{host}/v1'\nmodel = 'm'\n");
    let approver = credential('b', "kind = 'approver'");
    type Files = Vec<(&'static str, String)>;
    let in_main = |text: String| -> Files {
        vec![("portcullis.toml", main("review", &text)), ("policies/p.toml", policies.clone())]
    };
    let in_tools = |unknown: &str, text: String| -> Files {
        vec![
            ("portcullis.toml", main(unknown, "")),
            ("policies/p.toml", policies.clone()),
            ("tools/t.toml", text),
        ]
    };
    let budget = |per: &str| -> Files {
        vec![
            ("portcullis.toml", main("review", "")),
            ("policies/p.toml", policy("p", "", &format!("principal = {{ per = '{per}', max_steps = 5 }}"))),
        ]
    };
    let contract = |more: &str| -> Files {
        let text = format!("[[contract]]\nstatement = 'No commas.'\n{more}\n");
        in_tools("review", tool("")).into_iter().chain([("contracts/c.toml", text)]).collect()
    };
    let closed = tool("args = { type = 'object', properties = { a = {} }, additionalProperties = false }");
    let open = tool("args = { type = 'object', properties = { a = {} } }");
    let cases: Vec<(Files, Files, &str)> = vec![
        (
            in_main(credential('a', "kind = 'agent'")),
            in_main(credential('a', "kind = 'approver'")),
            "loosened credential of `ann` kind: agent -> approver",
        ),
        (
            in_main(credential('a', "policy = 's'")),
            in_main(credential('a', "")),
            "loosened credential of `ann` policy: `s` -> the default",
        ),
        (
            in_main(credential('a', "policy = 's'")),
            in_main(credential('a', "policy = 'p'")),
            "loosened credential of `ann` policy: `s` -> `p`",
        ),
        (
            in_main(approver),
            in_main(String::new()),
            "loosened who decides approvals: mapped approvers -> the token in the state folder",
        ),
        (
            in_tools("review", String::new()),
            in_tools("review", tool_that(false, "")),
            "loosened tool `q`: not listed, unknown_tools = review -> listed, QUERY_DB, not side-effecting, risk",
        ),
        (in_tools("review", closed), in_tools("review", open), "loosened tool `q` args: "),
        (
            in_tools("review", typed("SECRET")),
            in_tools("review", typed("QUERY_DB")),
            "loosened tool `q` type: SECRET -> QUERY_DB",
        ),
        (
            in_tools("review", tool("effects = { path = 'path' }")),
            in_tools("review", tool("")),
            "loosened tool `q` effects: path = path -> none declared",
        ),
        (
            in_tools("allow", tool("enabled = false")),
            in_tools("allow", String::new()),
            "loosened tool `q`: listed, disabled",
        ),
        (
            in_main(contracts("a.example")),
            in_main(contracts("b.example")),
            "loosened [contracts] endpoint: https://a.example/v1 -> https://b.example/v1",
        ),
        (budget("day"), budget("hour"), "loosened policy `p` [principal] per: day -> hour"),
        (contract("on_fail = 'deny'"), contract(""), "loosened contract `no-commas` on_fail: deny -> review"),
        (
            contract("surfaces = ['http']"),
            contract(""),
            "tightened contract `no-commas` surfaces: http -> all",
        ),
        (contract(""), contract("program = '/j'"), "loosened contract `no-commas` judge: none -> /j"),
        (contract("tools = ['q']"), contract(""), "changed contract `no-commas` tools: "),
        (contract(""), in_tools("review", tool("")), "loosened contract `no-commas`: there -> gone"),
        (in_tools("review", tool("")), contract(""), "tightened contract `no-commas`: none -> added"),
    ];
    for (old, new, expected) in cases {
        let old: Vec<(&str, &str)> = old.iter().map(|(path, text)| (*path, text.as_str())).collect();
        let new: Vec<(&str, &str)> = new.iter().map(|(path, text)| (*path, text.as_str())).collect();
        let found = differences(&old, &new);
        assert!(found.iter().any(|line| line.starts_with(expected)), "{expected}: {found:?}");
    }
}

/// Long values are shown from the place where they part.
#[test]
fn long_values_are_shown_where_they_differ() {
    let tool = |most: u32| {
        let names = "abcdefghijklmnopqrstuvwxyz".repeat(6);
        format!(
            "[[tool]]\nname = 'q'\ntype = 'QUERY_DB'\nside_effecting = true\nrisk = 0.5\nargs = {{ type = 'object', properties = {{ {names} = {{ type = 'string', maxLength = {most} }} }} }}\n"
        )
    };
    let (old, new) = (tool(10), tool(99));
    let found = differences(&[("tools/t.toml", &old)], &[("tools/t.toml", &new)]);
    let [line] = found.as_slice() else { panic!("{found:?}") };
    assert!(
        line.starts_with("loosened tool `q` args: …") && line.contains("10") && line.contains("99"),
        "{line}"
    );
}
