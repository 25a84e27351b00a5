//! Plans and requests are simulated from the page.

use serde_json::{Value, json};

use super::Console;
use super::browser::Browser;

/// What each plan comes to under the strict policy: the step that is denied and its rule, or nothing. Under the permissive
/// one all of them complete, those included that wire $100,000 and write an override.
const STRICT: [(&str, Option<(u32, &str)>); 5] = [
    ("Compliance Inquiry", Some((3, "runtime-policy/tool-type"))),
    ("Unauthorized Transfer Attempt", Some((2, "runtime-policy/tool-type"))),
    ("Email Policy Update", Some((2, "runtime-policy/tool-type"))),
    ("Calculation Task", None),
    ("Exceed Step Limit", Some((6, "runtime-policy/step-limit"))),
];

/// Presses *Run Simulation* and waits for its end.
async fn run(browser: &Browser) -> String {
    browser.run("window.scrollTo(0, 0)").await.unwrap();
    let before = browser.eval("location.pathname").await;
    browser.press(".simform .main").await;
    let done = "document.querySelector('#sim') !== null && !document.querySelector('#sim .spin')";
    browser.until(&format!("location.pathname !== {before} && {done}")).await;
    browser.text("#sim").await
}

async fn choose(browser: &Browser, field: &str, value: &str) {
    let script = format!(
        "const field = document.querySelector({field:?}); field.value = {value:?}; return field.value"
    );
    assert_eq!(browser.run(&script).await.unwrap(), json!(value), "{field} has no {value}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_plan_under_both_policies_gives_the_traces_that_are_known() {
    let console = Console::start().await;
    let Some(browser) = Browser::start().await else { return };
    browser.sign_in(&console.link().await).await;
    browser.open(&format!("{}/simulate", console.origin)).await;
    browser.pictures("simulate").await;
    browser.accessible("simulate").await;
    for (plan, stopped) in STRICT {
        choose(&browser, "#pl", plan).await;
        choose(&browser, "#p1", "Strict Compliance Policy").await;
        choose(&browser, "#p2", "Permissive Exploration Policy").await;
        let page = run(&browser).await;
        let completed = "Permissive Exploration Policy: all";
        assert!(page.contains(completed), "{plan}: {page}");
        // The first column of verdicts, then the second.
        let column = |side: u32| {
            format!(
                "Array.from(document.querySelectorAll('.sim tbody tr')).map((row) => row.cells[{}].innerText.split('\\n').filter(Boolean))",
                side + 2
            )
        };
        let strict = browser.eval(&column(0)).await;
        let permissive = browser.eval(&column(1)).await;
        let rows = strict.as_array().unwrap();
        for (place, cell) in permissive.as_array().unwrap().iter().enumerate() {
            assert_eq!(cell[0], "allow", "{plan}, step {}: {cell}", place + 1);
        }
        for (place, cell) in rows.iter().enumerate() {
            let number = u32::try_from(place).unwrap() + 1;
            let words: Vec<&str> = cell.as_array().unwrap().iter().filter_map(Value::as_str).collect();
            match stopped {
                Some((at, rule)) if number == at => {
                    assert_eq!(words[0], "deny", "{plan}, step {number}: {words:?}");
                    assert!(words.contains(&rule), "{plan}, step {number}: {words:?}");
                }
                Some((at, _)) if number > at => assert_eq!(words, ["not reached"], "{plan}, step {number}"),
                _ => assert_eq!(words[0], "allow", "{plan}, step {number}: {words:?}"),
            }
        }
        match stopped {
            Some((at, _)) => assert!(
                page.contains(&format!("Simulation stopped: step {at} violates the policy.")),
                "{plan}: {page}"
            ),
            None => {
                assert!(page.contains("Simulation Completed! Strict Compliance Policy"), "{plan}: {page}")
            }
        }
        // One thinking step is one step, and a blocked one counts.
        let traced = browser.eval("Array.from(document.querySelectorAll('details')).filter((one) => one.innerText.startsWith('Trace under')).map((one) => { one.open = true; return one.innerText })").await;
        let strict = traced[0].as_str().unwrap();
        assert_eq!(strict.contains("TOOL_BLOCKED"), stopped.is_some(), "{plan}: {strict}");
        if plan == "Unauthorized Transfer Attempt" {
            browser.pictures("simulate-transfer").await;
            browser.accessible("simulate-transfer").await;
        }
    }
    browser.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_of_ones_own_is_taken_step_by_step_and_requests_are_judged() {
    let console = Console::start().await;
    let Some(browser) = Browser::start().await else { return };
    browser.sign_in(&console.link().await).await;
    browser.open(&format!("{}/simulate/plan", console.origin)).await;
    browser.write("#n", "Two sums").await;
    browser.write("#pr", "Add, then mail it.").await;
    browser.write("#a0", "Add two numbers.").await;
    choose(&browser, "#t0", "Perform Calculation").await;
    browser.write("#j0", "{\"expression\": \"2 + 3\"}").await;
    browser.write("#a1", "Mail the sum.").await;
    choose(&browser, "#t1", "Send Email").await;
    browser.write("#j1", "{\"recipient\": \"a@example.com\", \"subject\": \"Sum\", \"body\": \"5\"}").await;
    browser.until("document.querySelector('#outcome').innerText.includes('plans/two-sums.toml') && document.querySelector('#outcome').innerText.includes('a@example.com')").await;
    browser.pictures("plan-new").await;
    browser.accessible("plan-new").await;
    browser.press(".savebar .main").await;
    browser
        .until("document.querySelector('#pl') !== null && document.querySelector('#pl').value === 'Two sums'")
        .await;

    choose(&browser, "#p1", "mail").await;
    choose(&browser, "#p2", "").await;
    browser.press("input[name=stepwise]").await;
    browser.press(".simform .main").await;
    browser.until("document.querySelector('#sim') !== null && document.querySelector('#sim').innerText.includes('Waits for the next step')").await;
    let cells = "Array.from(document.querySelectorAll('.sim tbody tr')).map((row) => row.cells[2].innerText.split('\\n')[0].trim())";
    assert_eq!(browser.eval(cells).await, json!(["…", "…"]));
    browser.press("button[value=next]").await;
    browser.until("document.querySelector('.sim tbody').innerText.includes('deny')").await;
    browser.pictures("simulate-step").await;
    let page = browser.text("#sim").await;
    assert!(page.contains("CALCULATE is not allowed"), "{page}");

    // A request is judged while one types.
    browser.write("#rq", "Hack the mail server").await;
    browser.until("document.querySelector('#judged').innerText.includes('because of hack')").await;
    browser.pictures("simulate-request").await;
    browser.accessible("simulate-request").await;
    let judged = browser.text("#judged").await;
    assert!(judged.contains("look for a way in"), "{judged}");

    // A scenario is played up to the turn that is stopped.
    browser.open(&format!("{}/simulate?scenario=misuse-01#scenarios", console.origin)).await;
    let played = browser.text("#scenarios").await;
    assert!(played.contains("it has to reach at least") && played.contains("the user:"), "{played}");
    browser.pictures("simulate-scenario").await;
    browser.accessible("simulate-scenario").await;
    browser.end().await;
}
