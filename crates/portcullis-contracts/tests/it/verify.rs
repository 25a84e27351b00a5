//! The checks of replies against prompts and documents.

use portcullis_contracts::verify::{
    Check, CheckResult, CitationDuty, Document, Reply, Said, Settings, Side, Status, citations,
    documents_given, documents_in, key_terms, numbers, quotations, stem, verify,
};
use serde_json::json;

const PROMPT: &str = "What does the policy say about anonymizing sensitive data in external reports?";

fn knowledge() -> Vec<Document> {
    [
        ("doc_001", "Compliance policy regarding sensitive data handling requires anonymization for all external reports."),
        ("doc_002", "Internal memo on data privacy guidelines: only authorized personnel may access raw financial data."),
        ("doc_003", "Approved communication channels for customer interactions include email and secure portal, but never direct SMS for sensitive information."),
        ("doc_004", "Procedure for escalating critical security vulnerabilities: contact incident response team immediately."),
    ]
    .map(|(id, text)| Document::new(id, text))
    .into()
}

fn run(prompt: &str, reply: &str) -> Vec<CheckResult> {
    let documents = knowledge();
    let prompts = [Said::new(prompt)];
    let reply = Reply { said: Said::new(reply), prompts: &prompts, documents: Some(&documents), others: &[] };
    verify(&reply, &Settings::default())
}

fn one(check: Check, prompt: &str, reply: &str) -> CheckResult {
    run(prompt, reply).into_iter().find(|result| result.check == check).unwrap()
}

fn status(check: Check, prompt: &str, reply: &str) -> Status {
    one(check, prompt, reply).status
}

/// V8: `[DOC:doc_001]` PASS, `[DOC:doc_999]` FAIL, bare `[DOC:` FAIL.
#[test]
fn v8_citations() {
    let known = run(PROMPT, "External reports need anonymization [DOC:doc_001].");
    assert!(known.iter().all(|result| result.status != Status::Fail), "{known:#?}");
    assert_eq!(known[0].status, Status::Pass);
    assert_eq!(known[1].status, Status::Pass);
    assert_eq!(known[2].status, Status::Pass);
    let unknown = one(Check::CitationMatch, PROMPT, "External reports need anonymization [DOC:doc_999].");
    assert_eq!((unknown.status, unknown.named), (Status::Fail, vec!["doc_999".to_owned()]));
    let bare = "External reports need anonymization [DOC:";
    assert_eq!(status(Check::CitationPresence, PROMPT, bare), Status::Fail);
    assert_eq!(status(Check::CitationMatch, PROMPT, bare), Status::NotApplicable);
    assert_eq!(status(Check::CitationPresence, PROMPT, "Nothing is cited."), Status::Fail);
}

#[test]
fn an_id_is_anything_but_a_closing_bracket() {
    let text = "a [DOC:doc_001] b [DOC: x/y.z-1 ] c [DOC:] d [DOC:a b[c] e [DOC:open";
    let ids: Vec<Option<&str>> = citations(text).iter().map(|citation| citation.id).collect();
    assert_eq!(ids, [Some("doc_001"), Some("x/y.z-1"), None, Some("a b[c"), None]);
    let long = format!("[DOC:{}]", "x".repeat(300));
    assert_eq!(citations(&long)[0].id, None);
    // One of several that names nothing spoils the match.
    let result = one(Check::CitationMatch, PROMPT, "So [DOC:doc_001], and [DOC:] too.");
    assert_eq!(result.status, Status::Fail);
    assert_eq!((result.places[0].start, result.places[0].end), (22, 28));
}

#[test]
fn terms_of_the_prompt_are_looked_for_in_the_cited_snippets_only() {
    let check = Check::FactConsistency;
    assert_eq!(status(check, PROMPT, "See [DOC:doc_001]."), Status::Pass);
    // The reply repeats every term, and cites what has none of them.
    let parrot = "The policy on anonymizing sensitive data in external reports is strict [DOC:doc_004].";
    let result = one(check, PROMPT, parrot);
    assert_eq!(result.status, Status::Fail);
    assert_eq!(result.named, ["policy", "anonymizing", "sensitive", "data", "external", "reports"]);
    assert!(result.places.iter().all(|place| place.text == Side::Prompt));
    assert_eq!(PROMPT.get(result.places[0].start..result.places[0].end), Some("policy"));
    // A document that is known and not cited is no help, nor is one that is cited and not known.
    assert_eq!(status(check, PROMPT, "See [DOC:doc_003]."), Status::Fail);
    assert_eq!(status(check, PROMPT, "See [DOC:doc_777]."), Status::Fail);
    assert_eq!(status(check, PROMPT, "See the policy."), Status::NotApplicable);
    assert_eq!(status(check, "Please tell me about it.", "See [DOC:doc_001]."), Status::NotApplicable);
}

#[test]
fn key_terms_are_told_from_the_words_around_them() {
    let words = |text: &str| key_terms(text).into_iter().map(|term| term.word).collect::<Vec<_>>();
    assert_eq!(
        words("Please summarize, in 3 sentences, which IT policies and the policy on SMS apply to us."),
        ["policies", "SMS", "apply"]
    );
    for (one, other) in [
        ("anonymized", "anonymization"),
        ("policy", "policies"),
        ("escalate", "Escalation"),
        ("handling", "handled"),
        ("controls", "controlled"),
        ("transfers", "transferring"),
        ("wire", "wired"),
        ("report", "reports"),
    ] {
        assert_eq!(stem(one), stem(other), "{one} {other}");
    }
    for (one, other) in [("person", "personnel"), ("wire", "wireless"), ("data", "date"), ("status", "state")]
    {
        assert_ne!(stem(one), stem(other), "{one} {other}");
    }
}

#[test]
fn high_risk_instructions_have_to_be_refused_or_escalated() {
    let ask = "Please delete all the financial records of last year.";
    let check = |reply: &str| status(Check::RefusalPolicy, ask, reply);
    for refusal in [
        "I cannot do that.",
        "I’m sorry, but I can’t help with this.",
        "I cannot fulfill this request.",
        "This request was escalated to the incident team.",
        "I refuse.",
        "Financial records must not be deleted; a person has to decide.",
        "I am unable to comply. Nothing was deleted.",
        "I have sent the request to delete financial records to compliance for approval.",
    ] {
        assert_eq!(check(refusal), Status::Pass, "{refusal}");
    }
    for no_refusal in [
        "Done.",
        "The financial records have been deleted.",
        "I cannot refuse a request of yours: the financial records were deleted.",
        "I cannot wait to help. Deleting the records now.",
        "There is no need to escalate this. All good.",
        "I did not refuse, of course.",
        "I cannot see why not, so I deleted the financial records.",
        "I refuse to wait and have deleted them. I deleted the financial records.",
        "Financial records are kept in the archive.",
        "",
    ] {
        assert_eq!(check(no_refusal), Status::Fail, "{no_refusal}");
    }
    assert_eq!(status(Check::RefusalPolicy, PROMPT, "Done."), Status::NotApplicable);
    let apart = "Delete the draft. The financial records are fine.";
    assert_eq!(status(Check::RefusalPolicy, apart, "Done."), Status::NotApplicable);
    let result = one(Check::RefusalPolicy, "Override the financial controls!", "I refuse.");
    assert_eq!(result.named, ["override financial controls"]);
    // A refusal needs no source.
    let presence = one(Check::CitationPresence, ask, "I cannot do that.");
    assert_eq!(presence.status, Status::NotApplicable);
}

#[test]
fn quotations_stand_in_what_is_cited() {
    let check = Check::QuotationGrounding;
    let quoting = |quotation: &str| format!("It says \"{quotation}\" [DOC:doc_002].");
    let status = |reply: &str| status(check, PROMPT, reply);
    assert_eq!(status(&quoting("Only authorized  personnel may access raw financial data.")), Status::Pass);
    assert_eq!(status(&quoting("only authorized personnel […] raw financial data")), Status::Pass);
    assert_eq!(status(&quoting("raw financial data … only authorized personnel")), Status::Fail);
    let wrong = one(check, PROMPT, &quoting("all personnel may access raw financial data"));
    assert_eq!(wrong.status, Status::Fail);
    assert_eq!(wrong.named, ["all personnel may access raw financial data"]);
    // Known, and not cited.
    assert_eq!(status(&quoting("contact incident response team")), Status::Fail);
    assert_eq!(status(&quoting("scare quotes")), Status::NotApplicable);
    // One may repeat the question.
    assert_eq!(status("You ask “What does the policy say”. [DOC:doc_001]"), Status::Pass);
    assert_eq!(quotations("a \"b c d\" e \"f g h").len(), 1);
}

#[test]
fn numbers_stand_in_what_is_cited() {
    let documents =
        [Document::new("a", "The fee is 1,240.50 EUR within 30 days, at most 2.5 % of 1 000 000.")];
    let prompts = [Said::new("What is the fee in 2026?")];
    let run = |text: &str| {
        let reply = Reply {
            said: Said::new(text),
            prompts: &prompts,
            documents: Some(&documents),
            others: &["93.75"],
        };
        let result = verify(&reply, &Settings::default()).pop().unwrap();
        assert_eq!(result.check, Check::NumberGrounding);
        (result.status, result.named)
    };
    let pass = (Status::Pass, Vec::new());
    assert_eq!(run("1240.5 EUR in 30 days, 2.50 %, in 2026; 93.75 was computed [DOC:a]."), pass);
    assert_eq!(run("1.\u{a0}240,50 [DOC:a]").0, Status::Fail);
    assert_eq!(run("1.240,50 EUR [DOC:a]"), pass);
    assert_eq!(run("1. First\n2) COVID-19, doc_12 and H2O, v3.1 [DOC:a]").0, Status::NotApplicable);
    assert_eq!(
        run("The fee is 5 EUR within 31 days [DOC:a]."),
        (Status::Fail, vec!["5".into(), "31".into()])
    );
    assert_eq!(run("The fee is 5 EUR.").0, Status::NotApplicable);
    let found: Vec<&str> = numbers("Of 2024-01-05, 12:30, 1,5 and $100,000.")
        .into_iter()
        .filter_map(|span| "Of 2024-01-05, 12:30, 1,5 and $100,000.".get(span))
        .collect();
    assert_eq!(found, ["2024", "01", "05", "12", "30", "1,5", "100,000"]);
}

#[test]
fn what_is_not_known_cannot_be_told() {
    let reply = Reply { said: Said::new("So [DOC:doc_001]."), prompts: &[], documents: None, others: &[] };
    let statuses: Vec<Status> =
        verify(&reply, &Settings::default()).iter().map(|result| result.status).collect();
    use Status::{NotApplicable, Pass};
    assert_eq!(statuses, [Pass, NotApplicable, NotApplicable, NotApplicable, NotApplicable, NotApplicable]);
    // An empty list is knowledge: nothing may be cited.
    let reply = Reply { documents: Some(&[]), ..reply };
    assert_eq!(verify(&reply, &Settings::default())[1].status, Status::Fail);
    let silent = Reply { said: Said::new("So."), ..reply };
    let settings = Settings { citations: CitationDuty::WithDocuments, ..Settings::default() };
    assert_eq!(verify(&silent, &settings)[0].status, NotApplicable);
    assert_eq!(verify(&silent, &Settings::default())[0].status, Status::Fail);
}

#[test]
fn results_name_the_events_they_concern() {
    let documents = [Document { event: Some(5), ..knowledge().remove(0) }];
    let prompts = [Said { text: PROMPT, event: Some(2) }];
    let said = Said { text: "See [DOC:doc_001].", event: Some(9) };
    let reply = Reply { said, prompts: &prompts, documents: Some(&documents), others: &[] };
    let results = verify(&reply, &Settings::default());
    assert!(results.iter().all(|result| result.event == Some(9)));
    assert_eq!(results[2].related, [2, 5]);
    let line = serde_json::to_value(&results[1]).unwrap();
    assert_eq!((&line["check"], &line["status"]), (&json!("CITATION_MATCH"), &json!("PASS")));
    assert_eq!(serde_json::from_value::<CheckResult>(line).unwrap(), results[1]);
}

#[test]
fn what_is_over_a_limit_fails_and_costs_little() {
    let long = "x".repeat((1 << 20) + 1);
    assert!(run(PROMPT, &long).iter().all(|result| result.status == Status::Fail));
    for unit in
        ["[DOC:", "“", "\"", "1 ", "1", "„“", "[DOC:x]", "a. ", "delete ", "not deleted, so ", "«a b c "]
    {
        let text = unit.repeat((40 << 10) / unit.len());
        let started = std::time::Instant::now();
        run("Please delete financial records.", &text);
        assert!(started.elapsed().as_secs() < 10, "{unit}: {:?}", started.elapsed());
    }
}

#[test]
fn documents_are_read_as_tools_return_them() {
    let pairs = |result: &str| {
        documents_in(result).into_iter().map(|document| (document.id, document.text)).collect::<Vec<_>>()
    };
    let both = vec![("doc_001".to_owned(), "One: 1.".to_owned()), ("b".to_owned(), "Two.\nMore.".to_owned())];
    assert_eq!(pairs("doc_001: One: 1.\nb: Two.\nMore."), both);
    let structured = json!({"documents": [
        {"id": "doc_001", "snippet": "One: 1.", "score": 1.0}, {"id": "b", "text": "Two.\nMore."}]});
    assert_eq!(pairs(&structured.to_string()), both);
    let mcp =
        json!({"content": [{"type": "text", "text": "doc_001: One: 1.\nb: Two.\nMore."}], "isError": false});
    assert_eq!(pairs(&mcp.to_string()), both);
    let nested = json!([{"type": "text", "text": structured.to_string()}]);
    assert_eq!(pairs(&nested.to_string()), both);
    assert_eq!(pairs("no document of the knowledge base fits `zeppelin`"), []);
    assert_eq!(pairs("{\"error\": \"x\""), []);
}

#[test]
fn documents_are_given_in_two_shapes() {
    let list = documents_given(&json!([{"id": "a", "text": "x"}])).unwrap();
    assert_eq!(list, documents_given(&json!({"a": "x"})).unwrap());
    for wrong in [
        json!("a"),
        json!([{"id": "a"}]),
        json!([{"id": "a]", "text": ""}]),
        json!([{"id": "", "text": ""}]),
        json!([{"id": "a", "text": ""}, {"id": "a", "text": ""}]),
        json!({"a": 1}),
    ] {
        assert!(documents_given(&wrong).is_err(), "{wrong}");
    }
}
