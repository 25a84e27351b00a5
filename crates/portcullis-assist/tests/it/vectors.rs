//! The acceptance vectors A1 to A12 of the fourth seed, each by its name. What surrounds them is in the other files.

use portcullis_assist::{Detect, Ended, Judge, Settings, Standing, Strategy, Task, detect};
use portcullis_contracts::{Context, compile};

use crate::stand_in::{Answer, StandIn};
use crate::strategies::{Case, JUDGED, contracts, settings, single, table};

const DONE: &str = "calm warm brief";

fn retry(attempts: u32) -> Strategy {
    Strategy::Retry { attempts }
}

fn best(samples: u32) -> Strategy {
    Strategy::BestOf { samples, oracle: false }
}

async fn kinds_of(how: Detect) -> String {
    let server = StandIn::start(&[]).await;
    let (client, _) = server.client();
    let contracts = contracts(JUDGED);
    let task = Task { context: Context::default(), reply: "calm", contracts: &contracts };
    assert_eq!(detect(Judge::Model(&client, how), &task).await.judgements.len(), 3);
    server.kinds()
}

#[tokio::test]
async fn a1_detection_is_one_call_in_a_batch_and_m_one_by_one() {
    assert_eq!(kinds_of(Detect::Batch).await, "D");
    assert_eq!(kinds_of(Detect::Single).await, "DDD");
}

#[tokio::test]
async fn a2_batch_repair_is_one_rewrite() {
    table(
        &Case::default(),
        &[(settings(Strategy::Batch), "DR", DONE), (single(Strategy::Batch), "DDDR", DONE)],
    )
    .await;
}

#[tokio::test]
async fn a3_iterative_repair_is_v_rewrites_with_a_detection_after_each() {
    let case = Case { rewrites: &["calm", "calm warm", DONE], ..Case::default() };
    table(
        &case,
        &[
            (settings(Strategy::Iterative), "DRDRDRD", DONE),
            (single(Strategy::Iterative), "DDDRDDDRDDDRDDD", DONE),
        ],
    )
    .await;
}

#[tokio::test]
async fn a4_retry_is_k_rewrites_and_detections_and_stops_when_clean() {
    // k = 1, 2, and r.
    table(&Case::default(), &[(settings(retry(5)), "DRD", DONE), (single(retry(5)), "DDDRDDD", DONE)]).await;
    let second = Case { rewrites: &["calm", DONE], ..Case::default() };
    table(&second, &[(settings(retry(5)), "DRDRD", DONE)]).await;
    let never = Case { rewrites: &["calm"], ..Case::default() };
    table(&never, &[(settings(retry(4)), "DRDRDRDRD", "calm")]).await;
}

#[tokio::test]
async fn a5_best_of_n_is_n_rewrites_and_detections_and_stops_when_clean() {
    table(&Case::default(), &[(settings(best(5)), "DRD", DONE), (single(best(5)), "DDDRDDD", DONE)]).await;
    let never = Case { rewrites: &["calm"], ..Case::default() };
    table(&never, &[(settings(best(5)), "DRDRDRDRDRD", "calm")]).await;
}

#[tokio::test]
async fn a6_candidate_0_is_returned_when_all_are_worse() {
    let case = Case { reply: "calm warm", rewrites: &["brief", "x", "calm"], ..Case::default() };
    for strategy in [retry(3), best(3), Strategy::Iterative] {
        let (_, repaired, _) = case.run(&settings(strategy)).await;
        assert_eq!((&*repaired.reply, repaired.chosen), ("calm warm", 0), "{strategy}");
    }
}

#[tokio::test]
async fn a7_no_degrade_refuses_a_rewrite_that_breaks_what_held() {
    let case = Case { reply: "calm", rewrites: &["warm brief"], ..Case::default() };
    let strict = Settings { no_degrade: true, ..settings(retry(1)) };
    table(&case, &[(settings(retry(1)), "DRD", "warm brief"), (strict, "DRD", "calm")]).await;
}

async fn standing_of(answer: Answer) -> Standing {
    let server = StandIn::scripted(&[], &[answer]).await;
    let (client, _) = server.client();
    let contracts = contracts(&JUDGED[..1]);
    let task = Task { context: Context::default(), reply: "x", contracts: &contracts };
    let found = detect(Judge::Model(&client, Detect::Batch), &task).await;
    found.judgements[0].standing
}

#[tokio::test]
async fn a8_yes_in_capitals_in_fences_and_cut_off_is_read_right() {
    for (answer, standing) in [
        (Answer::Text(r#"[{"n":1,"answer":"Yes"}]"#), Standing::Holds),
        (Answer::Text(r#"[{"n":1,"answer":"YES"}]"#), Standing::Holds),
        (Answer::Text("```json\n[{\"n\":1,\"answer\":\"yes\"}]\n```"), Standing::Holds),
        (Answer::Text(r#"[{"n":1,"answer":"NO"}]"#), Standing::Broken),
        (Answer::Cut(r#"[{"n":1,"answer":"Yes"},{"n":2,"ans"#), Standing::Holds),
        (Answer::Cut(r#"[{"n":1,"answer":"Ye"#), Standing::Undecided),
    ] {
        let shown = format!("{answer:?}");
        assert_eq!(standing_of(answer).await, standing, "{shown}");
    }
}

#[tokio::test]
async fn a9_too_few_rows_fail_the_detection() {
    let case = Case::default();
    let server = StandIn::scripted(case.rewrites, &[Answer::Text(r#"[{"n":1,"answer":"Yes"}]"#)]).await;
    let (kinds, repaired) = case.run_on(&server, &settings(retry(5))).await;
    // What nobody decided is neither compliance nor rewritten on suspicion.
    assert_eq!((&*kinds, &*repaired.reply, repaired.is_clean()), ("D", "x", false));
    let undecided = repaired.after.iter().filter(|one| one.standing == Standing::Undecided);
    assert!(
        undecided.clone().count() == 2 && undecided.clone().all(|one| one.explanation.contains("failed"))
    );
}

#[tokio::test]
async fn a10_map_reduce_is_v_rewrites_and_one_merge() {
    table(&Case::default(), &[(settings(Strategy::MapReduce), "DRRRM", DONE)]).await;
    let two = Case { reply: "warm", ..Case::default() };
    table(&two, &[(settings(Strategy::MapReduce), "DRRM", DONE)]).await;
}

#[tokio::test]
async fn a11_batch_and_single_agree_with_a_deterministic_model() {
    for reply in ["x", "calm", "warm brief", DONE] {
        let case = Case { reply, ..Case::default() };
        let quiet = Strategy::Mechanical;
        let (_, batch, _) = case.run(&settings(quiet)).await;
        let (_, one_by_one, _) = case.run(&single(quiet)).await;
        assert_eq!(batch.after, one_by_one.after, "{reply}");
    }
}

#[tokio::test]
async fn a12_policies_in_conflict_are_flagged_before_a_rewrite_is_paid_for() {
    let statements = ["Do not use any commas.", "Include the phrase \"alpha, beta\"."];
    assert_eq!(portcullis_contracts::conflicts(&compile(&statements).unwrap(), None).len(), 1);
    let case = Case { statements: &statements, reply: "calm", ..Case::default() };
    let (kinds, repaired, _) = case.run(&settings(retry(5))).await;
    assert_eq!((&*kinds, repaired.conflicts.len(), &*repaired.gave_way), ("", 1, &["c2".to_owned()][..]));
    assert_eq!(repaired.ended, Ended::Done);
}
