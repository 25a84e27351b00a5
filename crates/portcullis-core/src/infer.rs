//! Inference of a tool's classification from what its server says about it: name, description, argument
//! schema and hints.
//!
//! It drafts; people decide. Everything it reads was written by the server, so it follows two rules. The
//! *name* decides, because it is what the agent calls and what a person sees; the other evidence can make a
//! tool look more dangerous than its name, never less. And whatever is not understood is taken to have side
//! effects. The words it knows are general English verbs, nothing of any one server.
//!
//! The order of evidence, each step recorded in [`Inferred::reasons`]:
//! 1. the verb of the name: its first word or the first word after a prefix (`server.`, `mcp__server__`). A
//!    verb further in (`git_push`) counts where it changes things or the description says it too; where it
//!    reads, only if the description does, since the unknown word before it may be the real verb;
//! 2. the first verb of the description: decides if the name has none, supports or raises otherwise;
//! 3. a changing verb after `and`, `or`, `then`, in the name or the description's first sentence: raises;
//! 4. the arguments: a shell command, code or SQL makes the tool as dangerous as what can be written in it; a
//!    password handed to a verb such as *verify* makes it act;
//! 5. the hints: `readOnlyHint: false` and `destructiveHint` raise; `readOnlyHint: true` is noted, no more.

mod words;

use serde_json::Value;
use words::{Class, is_filler, is_outward, is_vague, prose, prose_verb, segments, verb_class};
pub use words::{WORDS_MAX, is_working_directory, word_places, words_of};

/// What an argument of a tool may hold.
pub const EFFECTS: [&str; 9] = ["sql", "shell", "path", "url", "email", "money", "code", "task", "patch"];

/// Tool types that inference can answer, besides the seed's six.
pub const TOOL_TYPES: [&str; 5] = ["EXECUTE", "PAY", "DELETE", "MODIFY", "OTHER"];
/// Most arguments of a schema that are looked at.
pub const ARGUMENTS_MAX: usize = 256;
/// The risk of a tool about which nothing is understood.
pub const UNKNOWN_RISK: f64 = 0.5;
/// Least risk of a tool with side effects whose server calls it destructive.
pub const DESTRUCTIVE_RISK: f64 = 0.8;
/// What is added to the risk where only the description, not the name, says what the tool does.
pub const DESCRIBED_ONLY_RISK: f64 = 0.1;

/// An argument and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectArgument {
    /// Name of the argument.
    pub argument: String,
    /// One of [`EFFECTS`].
    pub effect: String,
}

/// What a server claims about a tool (`annotations` of the Model Context Protocol). Claims, not facts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hints {
    /// `readOnlyHint`: the tool changes nothing.
    pub read_only: Option<bool>,
    /// `destructiveHint`: what it changes cannot be undone.
    pub destructive: Option<bool>,
    /// `idempotentHint`: calling it again with the same arguments changes nothing more.
    pub idempotent: Option<bool>,
    /// `openWorldHint`: it reaches beyond a closed system.
    pub open_world: Option<bool>,
}

/// A drafted classification.
#[derive(Debug, Clone, PartialEq)]
pub struct Inferred {
    /// One of the registry's seed types or of [`TOOL_TYPES`].
    pub tool_type: String,
    /// Whether it changes something, or may.
    pub side_effecting: bool,
    /// 0 to 1.
    pub risk: f64,
    /// Arguments whose contents say what a call would touch.
    pub effects: Vec<EffectArgument>,
    /// Why, in the order in which the evidence was weighed.
    pub reasons: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Verb {
    word: String,
    class: Class,
    from_description: bool,
}

/// Drafts the classification of a tool; see the module for how. Pure, total and bounded.
#[must_use]
pub fn infer(name: &str, description: &str, schema: &Value, hints: &Hints) -> Inferred {
    let mut reasons = Vec::new();
    let tool =
        Words { name: segments(name), description: prose(description), properties: properties(schema) };
    let mut verb = tool.verb(&mut reasons);
    if let Some(found) = &verb
        && !found.class.changes()
        && let Some(raised) = tool.raised(found, &mut reasons)
    {
        verb = Some(raised);
    }
    let effects = tool.effects(verb.as_ref());
    let mut tool_type = verb.as_ref().map_or("OTHER", |verb| tool.tool_type(verb, &effects));
    let mut side_effecting = verb.as_ref().is_none_or(|verb| verb.class.changes());
    let mut by_arguments = |kinds: &[&str], to: &'static str| {
        let Some(found) = effects.iter().find(|effect| kinds.contains(&effect.effect.as_str())) else {
            return;
        };
        reasons.push(format!("argument `{}` holds {}: it can change things", found.argument, found.effect));
        (tool_type, side_effecting) = (to, true);
    };
    by_arguments(&["sql"], "QUERY_DB");
    by_arguments(&["shell", "code"], "EXECUTE");

    let mut risk = risk_of(tool_type);
    if verb.as_ref().is_some_and(|verb| verb.from_description) {
        risk = (risk + DESCRIBED_ONLY_RISK).min(1.0);
    }
    match (hints.read_only, side_effecting) {
        (Some(true), true) => reasons.push("the server says read-only; not trusted".to_owned()),
        (Some(true), false) => reasons.push("the server says read-only, which agrees".to_owned()),
        (Some(false), false) => {
            reasons.push("the server itself says that it is not read-only".to_owned());
            (tool_type, side_effecting, risk) = ("OTHER", true, risk.max(UNKNOWN_RISK));
        }
        _ => {}
    }
    if hints.destructive == Some(true) && side_effecting && hints.read_only != Some(true) {
        reasons.push("the server says destructive".to_owned());
        risk = risk.max(DESTRUCTIVE_RISK);
    }
    Inferred { tool_type: tool_type.to_owned(), side_effecting, risk, effects, reasons }
}

fn risk_of(tool_type: &str) -> f64 {
    match tool_type {
        "CALCULATE" => 0.05,
        "RETRIEVE_DOCS" => 0.1,
        "WEB_FETCH" => 0.3,
        "QUERY_DB" | "WRITE_FILE" | "MODIFY" => 0.5,
        "SEND_EMAIL" => 0.7,
        "DELETE" => 0.8,
        "EXECUTE" | "PAY" => 0.9,
        _ => UNKNOWN_RISK,
    }
}

fn properties(schema: &Value) -> Vec<(&str, &Value)> {
    let object = schema.as_object();
    let listed = object.and_then(|object| object.get("properties")).and_then(Value::as_object);
    // A bare property map has no `properties`; all that it holds are arguments.
    let bare = object.filter(|object| !object.contains_key("type") && object.values().all(Value::is_object));
    let map = listed.or(bare).map_or_else(Vec::new, |map| map.iter().take(ARGUMENTS_MAX).collect());
    map.into_iter().map(|(name, property)| (name.as_str(), property)).collect()
}

/// Everything said about a tool, as words.
struct Words<'a> {
    name: Vec<Vec<String>>,
    description: Vec<String>,
    properties: Vec<(&'a str, &'a Value)>,
}

impl Words<'_> {
    /// Whether the name or the description's first sentence speaks of one of these things.
    fn mentions(&self, things: &[&str]) -> bool {
        self.name_mentions(things) || self.description.iter().any(|word| things.contains(&word.as_str()))
    }

    fn name_mentions(&self, things: &[&str]) -> bool {
        self.name.iter().flatten().any(|word| things.contains(&word.as_str()))
    }

    /// The first verb of the description, fillers aside.
    fn described(&self) -> Option<Verb> {
        let mut words = self.description.iter().skip_while(|word| is_filler(word));
        let first = prose_verb(words.next()?)?;
        // "Performs a web search": the act is the noun.
        let act = matches!(first.0.as_str(), "perform" | "do" | "make")
            .then(|| words.take(3).find_map(|word| prose_verb(word)));
        let (word, class, _) = act.flatten().unwrap_or(first);
        Some(Verb { word, class, from_description: true })
    }

    /// Steps 1 and 2: the verb that decides.
    fn verb(&self, reasons: &mut Vec<String>) -> Option<Verb> {
        let described = self.described();
        let reads = described.as_ref().is_some_and(|verb| !verb.class.changes());
        let found = self.leading_verb(reads).or_else(|| self.inner_verb(described.as_ref()));
        if let Some(verb) = &found {
            reasons.push(format!("the name says `{}`", verb.word));
            return found;
        }
        match &described {
            Some(verb) => {
                reasons.push(format!("the name has no known verb; the description says `{}`", verb.word))
            }
            None => reasons.push("no known verb in the name or at the start of the description".to_owned()),
        }
        described
    }

    /// The first word of the last segment, unless another segment leads with a verb that changes things.
    fn leading_verb(&self, description_reads: bool) -> Option<Verb> {
        let leads = |segment: &Vec<String>| {
            let word = segment.first()?;
            let (class, noun) = verb_class(word)?;
            let noun_here = noun && description_reads && segment.len() > 1;
            (!noun_here).then(|| Verb { word: word.clone(), class, from_description: false })
        };
        let last = self.name.last().and_then(leads);
        if last.as_ref().is_some_and(|verb| verb.class.changes()) {
            return last;
        }
        let (_, prefixes) = self.name.split_last()?;
        // A noun as a prefix (`mail.search`) is the name of a server.
        let strong =
            |verb: &Verb| verb.class.changes() && verb_class(&verb.word).is_some_and(|(_, noun)| !noun);
        prefixes.iter().filter_map(leads).find(strong).or(last)
    }

    /// The first verb inside the name that the description says too, or else the first that changes things,
    /// or else, where the description reads, the first of any kind.
    fn inner_verb(&self, described: Option<&Verb>) -> Option<Verb> {
        let inner: Vec<&String> = self.name.iter().flat_map(|segment| segment.iter().skip(1)).collect();
        if let Some(both) = described.filter(|described| inner.contains(&&described.word)) {
            return Some(Verb { from_description: false, ..both.clone() });
        }
        let reads = described.is_some_and(|verb| !verb.class.changes());
        let mut verbs = inner.into_iter().filter_map(|word| {
            let (class, noun) = verb_class(word)?;
            (!noun).then(|| Verb { word: word.clone(), class, from_description: false })
        });
        verbs.find(|verb| verb.class.changes() || reads)
    }

    /// Steps 2 to 4, for a tool whose verb only reads: the verb that makes it look more dangerous.
    fn raised(&self, verb: &Verb, reasons: &mut Vec<String>) -> Option<Verb> {
        let strong = |word: &str| {
            let (word, class, noun) = prose_verb(word)?;
            (class.changes() && !noun && !is_vague(&word)).then_some(Verb {
                word,
                class,
                from_description: false,
            })
        };
        if let Some(first) = self.described().and_then(|described| strong(&described.word)) {
            reasons.push(format!("the description says `{}`: it can change things", first.word));
            return Some(first);
        }
        let joined = |words: &[String]| {
            let pairs = words.iter().zip(words.iter().skip(1));
            let joins = |word: &str| matches!(word, "and" | "or" | "then");
            pairs.filter(|(before, _)| joins(before)).find_map(|(_, after)| strong(after))
        };
        let two_verbs = |segment: &Vec<String>| match segment.as_slice() {
            [_, second] => verb_class(second)
                .filter(|(class, noun)| class.changes() && !noun)
                .and_then(|_| strong(second)),
            _ => None,
        };
        let also = self.name.iter().find_map(|segment| joined(segment).or_else(|| two_verbs(segment)));
        if let Some(also) = also.or_else(|| joined(&self.description)) {
            reasons.push(format!("it also says `{}`: it can change things", also.word));
            return Some(also);
        }
        const SECRETS: [&str; 7] = ["otp", "password", "passcode", "pin", "secret", "token", "credential"];
        let secret = |name: &str| words_of(name).iter().any(|word| SECRETS.contains(&word.as_str()));
        let secret =
            self.properties.iter().find(|(name, _)| secret(name)).filter(|_| verb.class == Class::Check)?;
        reasons.push(format!("`{}` with the secret `{}` is an act", verb.word, secret.0));
        Some(Verb { class: Class::Modify, ..verb.clone() })
    }

    fn tool_type(&self, verb: &Verb, effects: &[EffectArgument]) -> &'static str {
        const MONEY: [&str; 8] =
            ["money", "payment", "payments", "transaction", "transactions", "funds", "payout", "salary"];
        let holds = |effect: &str| effects.iter().any(|found| found.effect == effect);
        match verb.class {
            Class::Read | Class::Check if holds("url") => "WEB_FETCH",
            Class::Read | Class::Check => "RETRIEVE_DOCS",
            Class::Calculate => "CALCULATE",
            Class::Delete => "DELETE",
            Class::Execute => "EXECUTE",
            Class::Pay => "PAY",
            _ if self.name_mentions(&MONEY) || (holds("money") && self.has_payee()) => "PAY",
            Class::Modify if verb.word == "checkout" && self.name_mentions(&["cart", "basket", "order"]) => {
                "PAY"
            }
            Class::Send if holds("email") || self.mentions(&MAIL) => "SEND_EMAIL",
            Class::Modify if self.name_mentions(&MAIL) && is_outward(&verb.word) => "SEND_EMAIL",
            Class::Modify if !self.name_mentions(&FILES) || is_outward(&verb.word) => "MODIFY",
            Class::Modify | Class::File => "WRITE_FILE",
            Class::Send => "MODIFY",
        }
    }

    fn has_payee(&self) -> bool {
        const PAYEES: [&str; 7] = ["recipient", "iban", "account", "payee", "to", "beneficiary", "receiver"];
        let payee = |name: &str| words_of(name).iter().any(|word| PAYEES.contains(&word.as_str()));
        self.properties.iter().any(|(name, _)| payee(name))
    }

    fn effects(&self, verb: Option<&Verb>) -> Vec<EffectArgument> {
        let found = self.properties.iter().filter_map(|(name, property)| {
            let effect = self.effect(&words_of(name), property, verb)?;
            Some(EffectArgument { argument: (*name).to_owned(), effect: effect.to_owned() })
        });
        let mut found: Vec<EffectArgument> = found.collect();
        // The order of a schema's properties means nothing.
        found.sort_by(|a, b| a.argument.cmp(&b.argument));
        found
    }

    /// What an argument holds, by its format, its last word, and what the tool is about.
    fn effect(&self, words: &[String], property: &Value, verb: Option<&Verb>) -> Option<&'static str> {
        let format =
            property.get("format").or_else(|| property.pointer("/items/format")).and_then(Value::as_str);
        match format {
            Some("uri" | "url" | "iri" | "uri-reference") => return Some("url"),
            Some("email" | "idn-email") => return Some("email"),
            _ => {}
        }
        let changes = verb.is_none_or(|verb| verb.class.changes());
        // What the argument's own description says of it.
        let said: Vec<String> =
            property.get("description").and_then(Value::as_str).map(prose).unwrap_or_default();
        let says = |things: &[&str]| said.iter().any(|word| things.contains(&word.as_str()));
        let runs = verb.is_some_and(|verb| verb.class == Class::Execute);
        let first = words.first()?.as_str();
        let last = words.last()?.as_str();
        let alone = words.len() == 1;
        match last {
            "sql" => Some("sql"),
            "query" | "statement" if self.mentions(&SQL) || says(&SQL) => Some("sql"),
            "cmd" => Some("shell"),
            "command" | "commands"
                if changes || self.mentions(&SHELL) || says(&SHELL) || says(&["run", "execute"]) =>
            {
                Some("shell")
            }
            "shell" | "bash" => Some("shell"),
            "script" => Some("code"),
            "code" if matches!(first, "source" | "python" | "js" | "javascript") => Some("code"),
            "code"
                if alone
                    && (runs
                        || self.mentions(&CODE)
                        || says(&["python", "javascript", "run", "execute"])) =>
            {
                Some("code")
            }
            "path" | "paths" | "file" | "files" | "filename" | "filenames" | "filepath" | "dir"
            | "directory" | "folder" | "cwd" | "workdir" => Some("path"),
            "source" | "src" | "destination" | "dest" | "dst" if self.name_mentions(&FILES) => Some("path"),
            "url" | "urls" | "uri" | "uris" | "link" | "href" | "endpoint" | "website" => Some("url"),
            "email" | "emails" | "mail" | "cc" | "bcc" => Some("email"),
            "to" | "recipient" | "recipients" | "address" | "addresses"
                if self.mentions(&["email", "emails", "mail"]) =>
            {
                Some("email")
            }
            "amount" | "price" | "payment" if changes => Some("money"),
            _ => None,
        }
    }
}

/// Words for databases that are asked in SQL.
const SQL: [&str; 5] = ["sql", "select", "postgres", "mysql", "sqlite"];

/// Words for command lines.
const SHELL: [&str; 3] = ["shell", "terminal", "bash"];

/// Words for programs.
const CODE: [&str; 4] = ["python", "javascript", "code", "snippet"];

/// Words for what is kept in a file system.
const FILES: [&str; 6] = ["file", "files", "directory", "dir", "folder", "path"];

/// Words for what is sent to people.
const MAIL: [&str; 10] =
    ["email", "emails", "mail", "message", "messages", "sms", "dm", "tweet", "invitation", "comment"];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn draft(name: &str, description: &str, schema: &Value) -> Inferred {
        infer(name, description, schema, &Hints::default())
    }

    fn seen(name: &str, description: &str, arguments: &[&str]) -> (String, bool) {
        let properties: serde_json::Map<String, Value> =
            arguments.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
        let drafted = draft(name, description, &json!({"type": "object", "properties": properties}));
        (drafted.tool_type, drafted.side_effecting)
    }

    #[test]
    fn the_verb_of_the_name_decides() {
        for (name, arguments, expected) in [
            ("list_orders", &["page"][..], ("RETRIEVE_DOCS", false)),
            ("readFile", &["path"], ("RETRIEVE_DOCS", false)),
            ("fetch", &["url"], ("WEB_FETCH", false)),
            ("calculate-tax", &["income"], ("CALCULATE", false)),
            ("send_email", &["to"], ("SEND_EMAIL", true)),
            ("send_money", &["amount", "iban"], ("PAY", true)),
            ("write_file", &["path", "content"], ("WRITE_FILE", true)),
            ("create_ticket", &["title"], ("MODIFY", true)),
            ("purge_cache", &[], ("DELETE", true)),
            ("execute_query", &["sql"], ("QUERY_DB", true)),
            ("bash", &["command"], ("EXECUTE", true)),
            ("checkout_basket", &[], ("PAY", true)),
            ("mcp__tracker__get_issue", &["id"], ("RETRIEVE_DOCS", false)),
            ("mail.search", &["text"], ("RETRIEVE_DOCS", false)),
            ("delete.query", &["id"], ("DELETE", true)),
            ("post_history", &[], ("MODIFY", true)),
            ("frobnicate", &["x"], ("OTHER", true)),
            ("", &[], ("OTHER", true)),
        ] {
            let found = seen(name, "", arguments);
            assert_eq!((found.0.as_str(), found.1), expected, "{name}");
        }
    }

    #[test]
    fn the_description_decides_only_where_the_name_has_no_verb() {
        assert_eq!(
            seen("weather", "Returns the weather of a city.", &["city"]),
            ("RETRIEVE_DOCS".into(), false)
        );
        assert_eq!(
            seen("directory_tree", "Safely get a tree view", &["path"]),
            ("RETRIEVE_DOCS".into(), false)
        );
        assert_eq!(seen("web_lookup", "Performs a web search", &["q"]), ("RETRIEVE_DOCS".into(), false));
        assert_eq!(seen("record", "This tool deletes a record", &["id"]), ("DELETE".into(), true));
        assert_eq!(seen("delete_all", "Returns what is left.", &[]), ("DELETE".into(), true));
        let described = draft("weather", "Returns the weather", &json!({}));
        assert!((described.risk - 0.2).abs() < 1e-9, "{}", described.risk);
    }

    #[test]
    fn an_inner_verb_that_reads_needs_the_description() {
        assert!(!seen("git_get_keys", "Get the keys", &[]).1);
        assert_eq!(seen("git_get_keys", "", &[]), ("OTHER".into(), true));
        assert_eq!(seen("mute_list", "Mutes everybody on a list", &[]), ("OTHER".into(), true));
        assert_eq!(seen("git_push", "", &["path"]), ("MODIFY".into(), true));
        assert!(!seen("door_lock_list", "List the locks", &[]).1);
    }

    #[test]
    fn other_evidence_raises() {
        for (name, description, arguments) in [
            ("get_or_create_user", "Gets a user", &[][..]),
            ("findReplace", "Finds text", &[]),
            ("get_page", "Deletes a page.", &[]),
            ("browse_page", "Visits a page, or triggers its buttons", &["url"]),
            ("view_log", "Shows the log", &["command", "shell"]),
            ("query", "Run a read-only SQL query", &["sql"]),
            ("verify_account", "Verify your account", &["otp"]),
        ] {
            assert!(seen(name, description, arguments).1, "{name}");
        }
        assert!(!seen("verify_address", "Verify an address", &["street"]).1);
        assert!(
            !seen("get_log", "Gets the log. Use delete_log to delete it and create_log to create it.", &[]).1
        );
    }

    #[test]
    fn hints_never_lower() {
        let hint = |read_only, destructive| Hints { read_only, destructive, ..Hints::default() };
        let claimed = infer("delete_file", "", &json!({}), &hint(Some(true), Some(false)));
        let silent = infer("delete_file", "", &json!({}), &Hints::default());
        assert_eq!((claimed.side_effecting, claimed.risk), (true, silent.risk));
        assert!(claimed.reasons.iter().any(|reason| reason.contains("not trusted")), "{:?}", claimed.reasons);
        let admitted = infer("get_file", "", &json!({}), &hint(Some(false), None));
        assert_eq!((admitted.side_effecting, admitted.tool_type.as_str()), (true, "OTHER"));
        let destructive = infer("update_file", "", &json!({}), &hint(None, Some(true)));
        assert!((destructive.risk - DESTRUCTIVE_RISK).abs() < 1e-9);
    }

    #[test]
    fn arguments_say_what_a_call_touches() {
        let effects = |name: &str, description: &str, schema: Value| -> Vec<String> {
            let drafted = draft(name, description, &schema);
            drafted.effects.iter().map(|found| format!("{}:{}", found.argument, found.effect)).collect()
        };
        let schema = json!({"type": "object", "properties": {
            "sourcePath": {}, "file_id": {}, "target": {"type": "string", "format": "uri"},
            "notify": {"type": "array", "items": {"format": "email"}}, "amount": {"type": "number"}, "code": {}}});
        assert_eq!(
            effects("pay_bill", "", schema),
            ["amount:money", "notify:email", "sourcePath:path", "target:url"]
        );
        // A bare property map, and a price that is only searched for.
        assert_eq!(effects("search_goods", "", json!({"price": {"type": "number"}, "url": {}})), ["url:url"]);
        assert_eq!(effects("query", "Runs SQL", json!({"query": {"type": "string"}})), ["query:sql"]);
        assert_eq!(
            effects("run_python", "Runs Python code", json!({"code": {"type": "string"}})),
            ["code:code"]
        );
        assert_eq!(
            effects("verify", "Verify a number", json!({"code": {"type": "string"}})),
            Vec::<String>::new()
        );
        assert_eq!(effects("send_email", "", json!({"to": {}, "subject": {}})), ["to:email"]);
    }

    #[test]
    fn an_argument_that_is_run_makes_a_reading_name_act() {
        for (argument, description) in [
            ("cmd", ""),
            ("command", "shell command to run"),
            ("script", ""),
            ("code", "Python to execute"),
            ("query", "a SQL query"),
        ] {
            let schema = json!({"type": "object", "properties": {argument: {"type": "string", "description": description}}});
            assert!(draft("list_files", "List files.", &schema).side_effecting, "{argument}");
        }
        let table = json!({"type": "object", "properties": {"query": {"type": "string", "description": "SQL to run"}}});
        assert_eq!(draft("show_table", "Show a table.", &table).effects.len(), 1);
        let plain = json!({"type": "object", "properties": {"query": {"description": "words to look for"}}});
        assert!(!draft("search_notes", "Search notes.", &plain).side_effecting);
    }

    #[test]
    fn answers_stay_within_the_vocabulary() {
        let known = |found: &Inferred| {
            crate::tool::SEED_TYPES.contains(&found.tool_type.as_str())
                || TOOL_TYPES.contains(&found.tool_type.as_str())
        };
        for name in ["get", "verify", "sum", "calculate", "set", "save", "send", "drop", "run", "pay", "zzz"]
        {
            assert!(known(&draft(name, "", &json!({}))), "{name}");
        }
    }

    proptest! {
        #[test]
        fn total_and_within_bounds(name in ".{0,40}", description in ".{0,80}", argument in ".{0,12}", read_only: Option<bool>, destructive: Option<bool>) {
            let hints = Hints { read_only, destructive, ..Hints::default() };
            let drafted = infer(&name, &description, &json!({"properties": {argument: {}}}), &hints);
            prop_assert!((0.0..=1.0).contains(&drafted.risk));
            prop_assert!(!drafted.reasons.is_empty());
            prop_assert!(drafted.effects.iter().all(|found| EFFECTS.contains(&found.effect.as_str())));
        }

        #[test]
        fn no_description_or_hint_makes_a_changing_name_harmless(
            verb in prop::sample::select(vec!["delete", "send", "write", "pay", "run", "update", "create"]),
            description in "(Returns|Gets|Lists|Read-only:|Safely views|Calculates) [a-z ]{0,30}", noun in "[a-z]{1,8}",
        ) {
            let hints = Hints { read_only: Some(true), destructive: Some(false), ..Hints::default() };
            let drafted = infer(&format!("{verb}_{noun}"), &description, &json!({}), &hints);
            prop_assert!(drafted.side_effecting);
        }
    }
}
