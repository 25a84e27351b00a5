//! What each strategy asks, and how often: `D` detection, `R` rewrite, `M` merge, `A` whether the reply still answers.

use portcullis_assist::{
    Answers, Budget, Detect, Ended, Exhausted, Priorities, Repaired, Settings, Strategy, Task, repair,
};
use portcullis_contracts::{Checker, Context, Contract, Priority, compile};

use crate::stand_in::StandIn;

/// Three judged statements; the stand-in looks for their last word.
pub(crate) const JUDGED: &[&str] =
    &["The reply sounds calm.", "The reply sounds warm.", "The reply sounds brief."];
const EXACT: &[&str] = &["Include the word \"alpha\".", "Include the word \"beta\"."];

pub(crate) fn contracts(statements: &[&str]) -> Vec<Contract> {
    let contracts = compile(statements).unwrap();
    for contract in &contracts {
        let judged = JUDGED.contains(&&*contract.statement);
        assert_eq!(contract.checker == Checker::Judged, judged, "{}", contract.statement);
    }
    contracts
}

pub(crate) fn settings(strategy: Strategy) -> Settings {
    Settings { strategy, ..Settings::default() }
}

const NO_COMMAS: &str = "Do not use any commas.";

const RETRY: Strategy = Strategy::Retry { attempts: 5 };
const BEST: Strategy = Strategy::BestOf { samples: 5, oracle: false };
const ORACLE: Strategy = Strategy::BestOf { samples: 5, oracle: true };

pub(crate) struct Case<'a> {
    pub(crate) statements: &'a [&'a str],
    pub(crate) prompt: Option<&'a str>,
    pub(crate) reply: &'a str,
    pub(crate) rewrites: &'a [&'a str],
}

impl Default for Case<'_> {
    fn default() -> Self {
        Self { statements: JUDGED, prompt: None, reply: "x", rewrites: &["calm warm brief"] }
    }
}

impl Case<'_> {
    pub(crate) async fn run(&self, settings: &Settings) -> (String, Repaired, StandIn) {
        let server = StandIn::start(self.rewrites).await;
        let (kinds, repaired) = self.run_on(&server, settings).await;
        (kinds, repaired, server)
    }

    pub(crate) async fn run_on(&self, server: &StandIn, settings: &Settings) -> (String, Repaired) {
        let (client, clock) = server.client();
        let contracts = contracts(self.statements);
        let task = Task { context: self.prompt.into(), reply: self.reply, contracts: &contracts };
        let repaired = repair(&client, &*clock, &task, settings).await.unwrap();
        assert_eq!(usize::try_from(repaired.spent.calls).unwrap(), server.calls().len());
        (server.kinds(), repaired)
    }
}

/// Runs each and compares what was asked and what came out.
pub(crate) async fn table(case: &Case<'_>, rows: &[(Settings, &str, &str)]) {
    for (settings, asked, reply) in rows {
        let (kinds, repaired, _) = case.run(settings).await;
        assert_eq!((&*kinds, &*repaired.reply), (*asked, *reply), "{settings:?}");
    }
}

pub(crate) fn single(strategy: Strategy) -> Settings {
    Settings { detect: Detect::Single, ..settings(strategy) }
}

fn verified(strategy: Strategy) -> Settings {
    Settings { verify: true, ..settings(strategy) }
}

#[tokio::test]
async fn a_clean_reply_costs_one_detection() {
    let case = Case { reply: "calm warm brief", ..Case::default() };
    for strategy in [Strategy::Batch, Strategy::Iterative, RETRY, BEST, ORACLE, Strategy::MapReduce] {
        table(&case, &[(settings(strategy), "D", case.reply), (single(strategy), "DDD", case.reply)]).await;
    }
}

#[tokio::test]
async fn the_first_rewrite_is_clean() {
    let done = "calm warm brief";
    table(
        &Case::default(),
        &[
            (settings(Strategy::Batch), "DR", done),
            (verified(Strategy::Batch), "DRD", done),
            (Settings { no_degrade: true, ..settings(Strategy::Batch) }, "DRD", done),
            (Settings { detect: Detect::Single, ..verified(Strategy::Batch) }, "DDDRDDD", done),
            (settings(Strategy::Iterative), "DRD", done),
            (settings(RETRY), "DRD", done),
            (single(RETRY), "DDDRDDD", done),
            (settings(BEST), "DRD", done),
            (settings(Strategy::MapReduce), "DRRRM", done),
            (verified(Strategy::MapReduce), "DRRRMD", done),
            (Settings { no_degrade: true, ..settings(Strategy::MapReduce) }, "DRRRMD", done),
        ],
    )
    .await;
}

#[tokio::test]
async fn rewrites_mend_one_at_a_time() {
    let case = Case { rewrites: &["calm", "calm warm", "calm warm brief"], ..Case::default() };
    let done = "calm warm brief";
    table(
        &case,
        &[
            (settings(Strategy::Iterative), "DRDRDRD", done),
            (single(Strategy::Iterative), "DDDRDDDRDDDRDDD", done),
            (settings(RETRY), "DRDRDRD", done),
            (settings(Strategy::Retry { attempts: 2 }), "DRDRD", "calm warm"),
            (settings(BEST), "DRDRDRD", done),
            (settings(Strategy::BestOf { samples: 1, oracle: false }), "DRD", "calm"),
        ],
    )
    .await;
}

#[tokio::test]
async fn what_is_mended_along_the_way_is_skipped() {
    let case = Case { rewrites: &["calm brief", "calm brief warm"], ..Case::default() };
    table(&case, &[(settings(Strategy::Iterative), "DRDRD", "calm brief warm")]).await;
}

#[tokio::test]
async fn never_clean_uses_all_attempts_and_keeps_the_first_of_the_best() {
    let case =
        Case { rewrites: &["calm 1", "calm warm 2", "calm warm 3", "warm 4", "x 5"], ..Case::default() };
    table(
        &case,
        &[
            (settings(RETRY), "DRDRDRDRDRD", "calm warm 2"),
            (settings(BEST), "DRDRDRDRDRD", "calm warm 2"),
            (single(Strategy::BestOf { samples: 2, oracle: false }), "DDDRDDDRDDD", "calm warm 2"),
        ],
    )
    .await;
}

#[tokio::test]
async fn candidate_0_is_returned_when_all_are_worse() {
    let case = Case { reply: "calm warm", rewrites: &["brief", "x", "calm"], ..Case::default() };
    for strategy in [RETRY, BEST, Strategy::Iterative] {
        let (_, repaired, _) = case.run(&settings(strategy)).await;
        assert_eq!((&*repaired.reply, repaired.chosen), ("calm warm", 0), "{strategy}");
        assert_eq!(repaired.ended, Ended::Done);
        assert_eq!(repaired.before, repaired.after);
    }
    for strategy in [Strategy::Batch, Strategy::MapReduce] {
        let (_, repaired, _) = case.run(&verified(strategy)).await;
        assert_eq!((&*repaired.reply, repaired.chosen), ("calm warm", 0), "{strategy}");
    }
}

#[tokio::test]
async fn no_degrade_refuses_what_breaks_a_contract_that_held() {
    let case = Case { reply: "calm", rewrites: &["warm brief"], ..Case::default() };
    for strategy in [Strategy::Batch, Strategy::Iterative, RETRY, BEST, Strategy::MapReduce] {
        let strict = Settings { no_degrade: true, ..settings(strategy) };
        let (_, repaired, _) = case.run(&strict).await;
        assert_eq!((&*repaired.reply, repaired.degraded()), ("calm", vec![]), "{strategy}");
    }
    let (_, repaired, _) = case.run(&settings(BEST)).await;
    assert_eq!((&*repaired.reply, repaired.degraded()), ("warm brief", vec!["c1"]));
}

#[tokio::test]
async fn without_judged_contracts_detection_is_free() {
    let case = Case { statements: EXACT, rewrites: &["alpha", "alpha beta"], ..Case::default() };
    let done = "alpha beta";
    table(
        &case,
        &[
            (settings(Strategy::Batch), "R", "alpha"),
            (single(Strategy::Iterative), "RR", done),
            (settings(RETRY), "RR", done),
            (settings(BEST), "RR", done),
            (settings(ORACLE), "RR", done),
            (verified(Strategy::MapReduce), "RRM", done),
        ],
    )
    .await;
    let clean = Case { statements: EXACT, reply: "alpha beta", ..Case::default() };
    table(&clean, &[(settings(RETRY), "", "alpha beta")]).await;
}

#[tokio::test]
async fn the_oracle_asks_about_its_choice_alone() {
    let statements = [EXACT, JUDGED].concat();
    let case = Case { statements: &statements, rewrites: &["alpha", "alpha beta calm"], ..Case::default() };
    let case_never = Case { statements: &statements, rewrites: &["alpha", "beta"], ..Case::default() };
    table(
        &case,
        &[(settings(ORACLE), "DRRD", "alpha beta calm"), (single(ORACLE), "DDDRRDDD", "alpha beta calm")],
    )
    .await;
    table(&case_never, &[(settings(ORACLE), "DRRRRRD", "alpha")]).await;
    // Judged, the choice loses more than code saw it gain: candidate 0 stays.
    let worse = Case {
        statements: &statements,
        reply: "beta calm warm",
        rewrites: &["alpha beta"],
        ..Case::default()
    };
    table(&worse, &[(settings(ORACLE), "DRD", "beta calm warm")]).await;
}

#[tokio::test]
async fn a_rewrite_that_nobody_judged_is_taken_only_for_what_it_was_made_for() {
    // Made for an exact contract, it has to mend it: what it does to the judged one is not known.
    let statements = [EXACT[0], JUDGED[0]];
    let idle = Case { statements: &statements, reply: "calm", rewrites: &["still calm"], ..Case::default() };
    table(&idle, &[(settings(Strategy::Batch), "DR", "calm")]).await;
    let mended = Case { rewrites: &["alpha"], ..idle };
    table(&mended, &[(settings(Strategy::Batch), "DR", "alpha"), (verified(Strategy::Batch), "DRD", "calm")])
        .await;
    // Made for a judged one, it must not lose an exact one.
    let lost = Case { statements: &statements, reply: "alpha", rewrites: &["calm"], ..Case::default() };
    table(&lost, &[(settings(Strategy::Batch), "DR", "alpha")]).await;
}

#[tokio::test]
async fn map_reduce_asks_for_v_rewrites_and_one_merge() {
    let one = Case { reply: "calm warm", ..Case::default() };
    table(&one, &[(settings(Strategy::MapReduce), "DRM", "calm warm brief")]).await;
    let (_, repaired, server) = Case::default().run(&settings(Strategy::MapReduce)).await;
    let calls = server.calls();
    for (call, statement) in calls[1..4].iter().zip(JUDGED) {
        let (_, mend) = call.user.split_once("has to keep:\n").unwrap();
        assert_eq!(mend.matches("The reply sounds").count(), 1);
        assert!(mend.contains(statement));
    }
    assert_eq!(calls[4].user.matches("<revision>").count(), 3);
    assert_eq!((repaired.chosen, repaired.attempts.len()), (4, 4));
    // Nobody asked again: what was judged is not known to hold.
    assert!(!repaired.is_clean());
    assert_eq!(repaired.ended, Ended::Done);
}

#[tokio::test]
async fn the_post_check_has_the_last_word() {
    let case = Case { prompt: Some("How are you?"), ..Case::default() };
    for (said, answers, reply) in [
        ("Yes", Answers::Yes, "calm warm brief"),
        ("{\"explanation\":\"It is about something else.\",\"answer\":\"NO\"}", Answers::No, "x"),
        ("Hmm.", Answers::Undecided, "x"),
    ] {
        let server = StandIn::start(case.rewrites).await;
        server.still_answers(said);
        let (kinds, repaired) = case.run_on(&server, &settings(RETRY)).await;
        assert_eq!((&*kinds, repaired.answers, &*repaired.reply), ("DRDA", answers, reply));
        assert_eq!(repaired.is_clean(), answers == Answers::Yes);
    }
    let off = Settings { post_check: false, ..settings(RETRY) };
    table(&case, &[(off, "DRD", "calm warm brief")]).await;
    // Candidate 0 is not asked about.
    let kept = Case { prompt: Some("How are you?"), reply: "calm", rewrites: &["x"], ..Case::default() };
    table(&kept, &[(settings(BEST), "DRDRDRDRDRD", "calm")]).await;
}

#[tokio::test]
async fn the_model_sees_only_what_mechanical_repair_leaves() {
    let statements = [NO_COMMAS, JUDGED[0]];
    let case = Case { statements: &statements, reply: "x, y", rewrites: &["calm, y"], ..Case::default() };
    let (kinds, repaired, server) = case.run(&settings(RETRY)).await;
    assert_eq!((&*kinds, &*repaired.reply), ("DRD", "calm; y"));
    assert!(repaired.is_clean() && repaired.mechanical.unwrap().text == "x; y");
    let rewrite = server.calls()[1].user.clone();
    let (keep, mend) = rewrite.split_once("Statements that the reply breaks").unwrap();
    assert!(keep.contains("any commas") && !mend.contains("any commas"), "{rewrite}");
    assert!(rewrite.contains("<reply>\nx; y\n</reply>"));
    // All that is exact mended: no rewrite at all. Without mechanical repair, one.
    let exact = Case { statements: &statements[..1], reply: "x, y", rewrites: &["x y"], ..case };
    table(&exact, &[(settings(BEST), "", "x; y")]).await;
    table(&exact, &[(Settings { mechanical: false, ..settings(BEST) }, "R", "x y")]).await;
}

#[tokio::test]
async fn what_cannot_hold_together_is_flagged_and_not_paid_for() {
    let statements = [NO_COMMAS, "Include the phrase \"alpha, beta\".", JUDGED[0]];
    let with = |priorities, strategy| Settings { priorities, ..settings(strategy) };
    let case =
        Case { statements: &statements, reply: "calm", rewrites: &["calm alpha, beta"], ..Case::default() };
    for strategy in [Strategy::Batch, Strategy::Iterative, RETRY, BEST, ORACLE, Strategy::MapReduce] {
        // Nothing is left to ask for: of equals the one that is broken gives way.
        let (kinds, repaired, _) = case.run(&settings(strategy)).await;
        assert_eq!((&*kinds, &*repaired.reply, repaired.ended), ("D", "calm", Ended::Done), "{strategy}");
        assert_eq!(repaired.conflicts[0].contracts, ["c1", "c2"]);
        assert_eq!(repaired.gave_way, ["c2"]);
    }
    // The phrase is worth more: the commas give way, and neither list of the prompt has them.
    let ranks = Priorities::Ranks(vec![2, 1, 3]);
    let (kinds, repaired, server) = case.run(&with(ranks.clone(), BEST)).await;
    assert_eq!((&*kinds, &*repaired.reply, repaired.degraded()), ("DRD", "calm alpha, beta", vec!["c1"]));
    assert!(!server.calls()[1].user.contains("any commas"));
    // Unless nothing that holds may be lost.
    let strict = Settings { no_degrade: true, ..with(ranks, BEST) };
    table(&case, &[(strict, "D", "calm")]).await;
    // What has given way does not keep a rewrite from being clean.
    let other = Case { reply: "x", rewrites: &["calm"], ..case };
    table(&other, &[(settings(BEST), "DRD", "calm"), (settings(RETRY), "DRD", "calm")]).await;
}

#[tokio::test]
async fn priorities_say_what_is_mended_first_and_what_is_better() {
    let first = |settings: Settings| async move {
        let (_, _, server) = Case::default().run(&settings).await;
        let (_, mend) = server.calls()[1]
            .user
            .clone()
            .split_once("has to keep:\n")
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .unwrap();
        JUDGED.iter().position(|statement| mend.contains(statement)).unwrap()
    };
    let with = |priorities, strategy| Settings { priorities, ..settings(strategy) };
    assert_eq!(first(with(Priorities::Contracts, Strategy::Iterative)).await, 0);
    assert_eq!(first(with(Priorities::Ranks(vec![3, 1, 2]), Strategy::Iterative)).await, 1);
    assert_eq!(first(with(Priorities::Weights(vec![1, 2, 3]), Strategy::Iterative)).await, 2);

    let case = Case { rewrites: &["calm", "warm brief", "x"], ..Case::default() };
    table(
        &case,
        &[
            (settings(BEST), "DRDRDRDRDRD", "warm brief"),
            (with(Priorities::Ranks(vec![1, 2, 3]), BEST), "DRDRDRDRDRD", "calm"),
            (with(Priorities::Weights(vec![2, 1, 1]), BEST), "DRDRDRDRDRD", "calm"),
            (with(Priorities::Weights(vec![3, 2, 2]), BEST), "DRDRDRDRDRD", "warm brief"),
        ],
    )
    .await;

    let server = StandIn::start(case.rewrites).await;
    let (client, clock) = server.client();
    let mut tagged = contracts(JUDGED);
    tagged[0].priority = Priority::HIGH;
    let task = Task { context: Context::default(), reply: "x", contracts: &tagged };
    let repaired = repair(&client, &*clock, &task, &settings(BEST)).await.unwrap();
    assert_eq!(repaired.reply, "calm");
}

#[tokio::test]
async fn a_budget_of_calls_keeps_the_best_until_then() {
    let case = Case { rewrites: &["calm", "calm warm", "calm warm brief"], ..Case::default() };
    for (calls, asked, reply) in
        [(0, "", "x"), (1, "D", "x"), (2, "DR", "x"), (3, "DRD", "calm"), (6, "DRDRDR", "calm warm")]
    {
        let bounded =
            Settings { budget: Budget { calls: Some(calls), ..Budget::default() }, ..settings(RETRY) };
        let (kinds, repaired, _) = case.run(&bounded).await;
        assert_eq!((&*kinds, &*repaired.reply), (asked, reply));
        assert_eq!(repaired.ended, Ended::Budget(Exhausted::Calls(calls)));
        assert!(!repaired.is_clean());
    }
}

#[tokio::test]
async fn budgets_of_tokens_and_money_end_a_repair_and_cut_its_answers() {
    use portcullis_assist::Prices;
    let case = Case { rewrites: &["calm", "calm warm", "calm warm brief"], ..Case::default() };
    // The stand-in says 120 tokens a call.
    let tokens = Settings { budget: Budget { tokens: Some(350), ..Budget::default() }, ..settings(RETRY) };
    let (kinds, repaired, server) = case.run(&tokens).await;
    assert_eq!((&*kinds, &*repaired.reply), ("DRD", "calm"));
    assert_eq!(repaired.ended, Ended::Budget(Exhausted::Tokens(350)));
    assert_eq!((repaired.spent.input_tokens, repaired.spent.output_tokens), (300, 60));
    let limits: Vec<u64> =
        server.calls().iter().map(|call| call.body["max_tokens"].as_u64().unwrap()).collect();
    assert_eq!(limits, [350, 230, 110]);

    // 100 tokens at 1 and 20 at 4 millionths: 180 a call.
    let prices = Some(Prices { input: 1_000_000, output: 4_000_000 });
    let budget = Budget { cost_micros: Some(500), prices, ..Budget::default() };
    let (kinds, repaired, server) = case.run(&Settings { budget, ..settings(RETRY) }).await;
    assert_eq!((&*kinds, repaired.spent.cost_micros), ("DRD", Some(540)));
    assert_eq!(repaired.ended, Ended::Budget(Exhausted::Cost(500)));
    assert_eq!(server.calls()[2].body["max_tokens"], 35);
}
