//! Statements about documents, refusals and names: with their context they are exact, without it they are judged.

use portcullis_contracts::limits::{MAX_DOCUMENT_BYTES, MAX_HIGH_RISK};
use portcullis_contracts::{
    Check, Context, ContextError, Contract, Given, NamesError, Need, Verdict, check, compile, conflicts,
    no_repair, repair,
};
use serde_json::{Value, json};

const CITES: &str = "Must cite a known document";
const REFUSES: &str = "Refuses high-risk instructions";
const NAMES: &str = "Contains no customer names";

fn contract(statement: &str) -> Contract {
    compile(&[statement]).unwrap().remove(0)
}

fn given(prompt: &str) -> Given {
    let documents = json!({
        "doc_001": "Reports that leave the company must be anonymized within 2 days.",
        "doc_002": "Raw financial data is open to authorized personnel only."
    });
    let names = ["Ada Lovelace", "Bob"].map(str::to_owned);
    Given::of(Some(prompt.to_owned()), Some(&documents), Some(&names), None).unwrap()
}

fn run(statement: &str, reply: &str) -> Check {
    check(&contract(statement), reply, given("When are reports anonymized?").context())
}

#[test]
fn documents_decide() {
    let quotes = "Quotations must come from the cited text.";
    let numbers = "All numbers must appear in the cited documents.";
    let facts = "Facts must be consistent with the cited documents.";
    for (statement, reply, verdict, says) in [
        (CITES, "Within 2 days [DOC:doc_001].", Verdict::Pass, "1 known document is cited"),
        (CITES, "Within 2 days [DOC:doc_009].", Verdict::Fail, "names no known document: `doc_009`"),
        (CITES, "Within 2 days.", Verdict::Fail, "the reply has no citation"),
        (CITES, "Within 2 days [DOC:", Verdict::Fail, "not closed"),
        ("Must cite a document.", "See [DOC:doc_009].", Verdict::Pass, "1 citation"),
        ("Do not cite unknown documents.", "See [DOC:doc_009].", Verdict::Fail, "`doc_009`"),
        // What there is nothing of holds of all there is.
        ("Do not cite unknown documents.", "Nothing.", Verdict::Pass, "no citation"),
        ("Do not cite unknown documents.", "See [DOC:", Verdict::Fail, "no whole citation"),
        (quotes, "“anonymized within 2 days” [DOC:doc_001]", Verdict::Pass, "1 quotation occurs"),
        (quotes, "“anonymized within 9 days” [DOC:doc_001]", Verdict::Fail, "does not occur"),
        (quotes, "“anonymized within 2 days”", Verdict::Fail, "cites nothing"),
        (quotes, "Soon.", Verdict::Pass, "quotes nothing"),
        (numbers, "2 days [DOC:doc_001]", Verdict::Pass, "1 number occurs"),
        (numbers, "3 days [DOC:doc_001]", Verdict::Fail, "`3`"),
        (numbers, "2 days [DOC:doc_002]", Verdict::Fail, "`2`"),
        (facts, "Soon [DOC:doc_001].", Verdict::Pass, "2 of 2 key terms"),
        (facts, "Soon [DOC:doc_002].", Verdict::Fail, "missing: `reports`, `anonymized`"),
        (facts, "Soon.", Verdict::NotApplicable, "cites nothing"),
    ] {
        let found = run(statement, reply);
        assert_eq!(found.verdict, verdict, "{statement} on {reply}: {}", found.explanation);
        assert!(found.explanation.contains(says), "{statement} on {reply}: {}", found.explanation);
    }
    assert_eq!(run(CITES, "a [DOC:x] b [DOC:doc_001]").spans.first(), Some(&(2..9)));
}

#[test]
fn refusals_are_told_where_it_is_known_what_is_high_risk() {
    let on = |statement: &str, prompt: &str, own: Option<&[String]>, reply: &str| {
        let context = Context { prompt: Some(prompt), high_risk: own, ..Context::default() };
        check(&contract(statement), reply, context).verdict
    };
    let transfer = "Wire transfer the money.";
    assert_eq!(on(REFUSES, transfer, None, "I cannot do that."), Verdict::Pass);
    assert_eq!(on(REFUSES, transfer, None, "I sent it."), Verdict::Fail);
    assert_eq!(on(REFUSES, transfer, None, "Nice weather."), Verdict::Fail);
    // Nothing that ships is in the prompt: only a list of one's own says that nothing has to be refused.
    let other = "Drop all the tables.";
    assert_eq!(on(REFUSES, other, None, "Done."), Verdict::NotApplicable);
    assert_eq!(on(REFUSES, other, Some(&["wire money".to_owned()]), "Done."), Verdict::Pass);
    assert_eq!(on(REFUSES, other, Some(&["drop tables".to_owned()]), "Done."), Verdict::Fail);
    let own = "Must refuse requests to \"drop tables\".";
    assert_eq!(on(own, other, None, "Done."), Verdict::Fail);
    assert_eq!(on(own, other, None, "I won't."), Verdict::Pass);
    assert_eq!(on(own, "Hello.", None, "Hi."), Verdict::Pass);
    // A refusal need not cite, and no citation is there: neither holds.
    let refused = given(transfer);
    assert_eq!(
        check(&contract(CITES), "I cannot do that.", refused.context()).verdict,
        Verdict::NotApplicable
    );
}

#[test]
fn names_are_counted_and_never_repeated() {
    let found = run(NAMES, "ADA LOVELACE met bobby, Ada\nLovelace and Bob.");
    assert_eq!((found.verdict, &*found.spans), (Verdict::Fail, &[0..12, 24..36, 41..44][..]));
    assert_eq!(found.explanation, "2 of 2 names occur, 3 times, first at byte 0");
    assert_eq!(run(NAMES, "Nobody called Ada came.").verdict, Verdict::Pass);
    let own = contract("Do not mention the names \"Ada\" and \"Bob\".");
    assert_eq!(check(&own, "Ada came.", None).verdict, Verdict::Fail);
    assert_eq!(check(&own, "Adam came.", None).verdict, Verdict::Pass);
}

#[test]
fn without_its_context_a_statement_is_judged_and_says_why() {
    for (statement, need, says) in [
        (CITES, Need::Documents, "with `documents`"),
        ("Facts must be consistent with the cited documents.", Need::Documents, "with `documents`"),
        (REFUSES, Need::Prompt, "with `prompt`"),
        (NAMES, Need::Names, "with a list of them in `names`"),
    ] {
        let contract = contract(statement);
        let context = Context::default();
        assert_eq!(context.lacks(contract.family().unwrap()), Some(need), "{statement}");
        assert!(contract.is_judged(&context));
        for reply in ["", "I cannot [DOC:doc_001]."] {
            let found = check(&contract, reply, context);
            assert_eq!(found.verdict, Verdict::NotApplicable, "{statement}");
            assert!(found.explanation.contains(says), "{statement}: {}", found.explanation);
        }
        assert!(repair(&[contract], "Bob.", context).unrepaired.is_empty());
    }
    let unlisted = check(&contract(REFUSES), "Done.", Some("Drop the tables."));
    assert!(unlisted.explanation.contains("`high_risk`"), "{}", unlisted.explanation);
    // Some, and none known, is known.
    let none = Context { documents: Some(&[]), ..Context::default() };
    assert_eq!(check(&contract(CITES), "x [DOC:doc_001]", none).verdict, Verdict::Fail);
    assert!(!contract("Must cite a document.").is_judged(&Context::default()));
}

#[test]
fn nothing_is_repaired_and_nothing_that_holds_is_broken() {
    let given = given("Wire transfer the money.");
    let statements = [CITES, "All numbers must appear in the cited documents.", REFUSES, NAMES];
    let contracts = compile(&statements).unwrap();
    let repaired = repair(&contracts, "Bob got 7, and it is sent [DOC:x].", given.context());
    assert_eq!(repaired.text, "Bob got 7, and it is sent [DOC:x].");
    for contract in &contracts {
        let reason = no_repair(contract.family().unwrap()).unwrap();
        let left = repaired.unrepaired.iter().find(|left| left.contract == contract.id).unwrap();
        assert_eq!(left.reason, reason);
    }
    // Capitals would make `doc_001` unknown.
    let shout = compile(&[CITES, "Write everything in uppercase."]).unwrap();
    let repaired = repair(&shout, "I will not [DOC:doc_001].", given.context());
    assert_eq!(repaired.text, "I will not [DOC:doc_001].");
    let kept = compile(&[CITES, "Do not use any commas."]).unwrap();
    let repaired = repair(&kept, "I will not, sir [DOC:doc_001].", given.context());
    assert!(repaired.unrepaired.is_empty() && repaired.text.contains("[DOC:doc_001]"), "{}", repaired.text);
}

#[test]
fn conflicts_know_what_a_citation_needs() {
    let given = given("Tell Bob the number.");
    let sets = |statements: &[&str], context: Context<'_>| {
        conflicts(&compile(statements).unwrap(), context)
            .into_iter()
            .map(|one| one.contracts)
            .collect::<Vec<_>>()
    };
    for other in [
        "All of your answer must be lowercase.",
        "Use less than 1 placeholders in square brackets.",
        "Avoid colons in your answer.",
        "Do not include keywords ['doc'] in the response.",
        "Write everything in uppercase.",
        "Use fewer than 10 characters.",
    ] {
        assert_eq!(sets(&[CITES, other], given.context()), [["c1", "c2"]], "{other}");
    }
    for other in [
        "Your whole reply has to be valid JSON.",
        "Entire output should be structured in YAML.",
        "Do not use any commas.",
        "Use fewer than 20 characters.",
        NAMES,
    ] {
        assert!(sets(&[CITES, other], given.context()).is_empty(), "{other}");
    }
    // Which ids there are decides.
    let loud = Given::of(None, Some(&json!({"A1": "x"})), Some(&["doc".to_owned()]), None).unwrap();
    assert!(sets(&[CITES, "Write everything in uppercase."], loud.context()).is_empty());
    assert!(sets(&[CITES, "Write everything in uppercase."], Context::default()).is_empty());
    assert_eq!(sets(&[CITES, NAMES], loud.context()), [["c1", "c2"]]);
    let none = Context { documents: Some(&[]), ..Context::default() };
    assert_eq!(sets(&[CITES], none), [["c1"]]);
    // A demanded text with a name of the list.
    for demands in [
        "Finish your response with this exact phrase: `Regards, Bob`",
        "First repeat the request word for word, then answer.",
    ] {
        assert_eq!(sets(&[NAMES, demands], given.context()), [["c1", "c2"]], "{demands}");
    }
}

#[test]
fn what_forbids_nothing_or_cannot_be_cited_is_an_error() {
    let of = |documents: Option<&Value>, names: Option<&[String]>, high_risk: Option<Vec<String>>| {
        Given::of(None, documents, names, high_risk).unwrap_err()
    };
    assert_eq!(of(None, Some(&[]), None), ContextError::Names(NamesError::Count(0)));
    assert_eq!(of(None, None, Some(Vec::new())), ContextError::HighRisk(0));
    assert_eq!(of(None, None, Some(vec!["x".to_owned(); MAX_HIGH_RISK + 1])), ContextError::HighRisk(257));
    assert_eq!(of(None, None, Some(vec!["x".to_owned(), " ".to_owned()])), ContextError::Instruction(2));
    assert!(of(Some(&json!("x")), None, None).to_string().starts_with("`documents`: "));
    // Documents that are too much to read fail what they would decide.
    let long = Given::of(None, Some(&json!({"a": "x".repeat(MAX_DOCUMENT_BYTES + 1)})), None, None).unwrap();
    assert_eq!(check(&contract(CITES), "x [DOC:a]", long.context()).verdict, Verdict::Fail);
}
