//! The client against servers that are busy, broken, slow or of another mind.

use std::sync::Arc;
use std::time::Duration;

use portcullis_assist::{
    Client, Clock as _, Completion, Finish, Http, Key, Model as _, ModelError, Options, Request, Schema,
    Timeouts, Usage, VirtualClock,
};
use serde_json::json;

use crate::stand_in::{Answer, StandIn};

fn request() -> Request {
    Request::new("Say hello.", "Hello?", 64)
}

async fn ask(answers: &[Answer]) -> (Result<Completion, ModelError>, StandIn, Duration) {
    let server = StandIn::scripted(&[], answers).await;
    let (client, clock) = server.client();
    let answer = client.complete(&request()).await;
    (answer, server, clock.now())
}

fn busy(more: &'static str) -> Answer {
    Answer::Status(429, more, json!({"error": {"message": "slow down"}}).to_string())
}

#[tokio::test]
async fn an_answer_is_streamed_with_its_tokens() {
    let (answer, server, waited) = ask(&[]).await;
    let usage = Some(Usage { input_tokens: 100, output_tokens: 20 });
    assert_eq!(
        answer.unwrap(),
        Completion { text: "Hello".into(), finish: Finish::Stop, usage, attempts: 1 }
    );
    assert_eq!(waited, Duration::ZERO);
    let call = &server.calls()[0];
    assert_eq!(
        call.body.to_string(),
        "{\"model\":\"stand-in\",\"messages\":[{\"role\":\"system\",\"content\":\"Say hello.\"},{\"role\":\"user\",\
         \"content\":\"Hello?\"}],\"temperature\":0.0,\"max_tokens\":64,\"stream\":true,\"stream_options\":\
         {\"include_usage\":true}}"
    );
    assert!(!call.headers.to_lowercase().contains("authorization"));
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_read_too() {
    let document =
        json!({"choices": [{"message": {"content": "Hi"}, "finish_reason": "length"}]}).to_string();
    let (answer, ..) = ask(&[Answer::Status(200, "content-type: application/json\r\n", document)]).await;
    let answer = answer.unwrap();
    assert_eq!((&*answer.text, answer.finish, answer.usage), ("Hi", Finish::Length, None));
}

#[tokio::test]
async fn a_busy_server_is_asked_again_no_sooner_than_it_says() {
    let down = Answer::Status(503, "", "<html>".into());
    let (answer, server, waited) = ask(&[busy("retry-after: 7\r\n"), down]).await;
    assert_eq!(answer.unwrap().attempts, 3);
    assert_eq!(server.calls().len(), 3);
    // Seven seconds as asked, then half to all of the second wait of a second.
    assert!((Duration::from_millis(7_500)..=Duration::from_secs(8)).contains(&waited), "{waited:?}");
}

#[tokio::test]
async fn attempts_end() {
    let (answer, server, _) = ask(&[busy(""), busy(""), busy(""), busy(""), busy("")]).await;
    assert_eq!(answer.unwrap_err().to_string(), "the model's server refused with status 429: slow down");
    assert_eq!(server.calls().len(), 4);
    let (answer, server, waited) = ask(&[busy("retry-after: 3600\r\n")]).await;
    assert!(answer.is_err());
    assert_eq!((server.calls().len(), waited), (1, Duration::ZERO));
}

#[tokio::test]
async fn a_wait_that_the_time_does_not_allow_is_not_begun() {
    let server = StandIn::scripted(&[], &[busy("retry-after: 7\r\n")]).await;
    let (client, clock) = server.client();
    let hurried = Request { time_left: Some(Duration::from_secs(5)), ..request() };
    assert!(matches!(client.complete(&hurried).await, Err(ModelError::Refused { status: 429, .. })));
    assert_eq!((server.calls().len(), clock.now()), (1, Duration::ZERO));
}

#[tokio::test]
async fn an_answer_that_dies_half_way_is_not_used_and_asked_for_again() {
    let half = "data: {\"choices\":[{\"delta\":{\"content\":\"Hal\"}}]}\n\ndata: {\"choi";
    let (answer, server, _) = ask(&[Answer::Dies(half), Answer::Dies("")]).await;
    assert_eq!(answer.unwrap().text, "Hello");
    assert_eq!(server.calls().len(), 3);
    let always = [Answer::Dies(half), Answer::Dies(half), Answer::Dies(half), Answer::Dies(half)];
    let (answer, ..) = ask(&always).await;
    assert!(matches!(answer, Err(ModelError::Broken(_))));
}

#[tokio::test]
async fn a_server_that_is_silent_or_only_drips_is_given_up() {
    let server = StandIn::scripted(&[], &[Answer::Silent, Answer::Drips]).await;
    let asks = |transport| {
        let mut options = Options::new("stand-in");
        options.retries.attempts = 1;
        Client::new(options, transport, Arc::new(VirtualClock::new()))
    };
    let silent = ModelError::TimedOut("sent nothing for 0.2 s".into());
    let hasty = server.http_with(None, Duration::from_millis(200));
    assert_eq!(asks(hasty).complete(&request()).await, Err(silent));
    let client = asks(server.http(None));
    let slow = ModelError::TimedOut("did not finish its answer for 0.5 s".into());
    let hurried = Request { time_left: Some(Duration::from_millis(500)), ..request() };
    assert_eq!(client.complete(&hurried).await, Err(slow));
}

#[tokio::test]
async fn nobody_at_the_address_is_an_error() {
    let port = StandIn::start(&[]).await.port;
    let http = Http::new(&format!("http://127.0.0.1:{port}"), None, Timeouts::default()).unwrap();
    let client = Client::new(Options::new("x"), Arc::new(http), Arc::new(VirtualClock::new()));
    // The server is gone, its task perhaps not yet.
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(matches!(client.complete(&request()).await, Err(ModelError::Connect(_))));
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_a_page_is_no_answer() {
    let (answer, server, _) =
        ask(&[Answer::Status(307, "location: http://127.0.0.1:1/\r\n", String::new())]).await;
    assert!(matches!(answer, Err(ModelError::Refused { status: 307, .. })));
    assert_eq!(server.calls().len(), 1);
    let (answer, ..) = ask(&[Answer::Status(200, "content-type: text/html\r\n", "<html>".into())]).await;
    assert!(matches!(answer, Err(ModelError::NotACompletion(_))));
}

#[tokio::test]
async fn a_server_without_schemas_is_asked_plainly_and_remembered() {
    let unknown = Answer::Status(400, "", json!({"error": {"message": "response_format?"}}).to_string());
    let server = StandIn::scripted(&[], &[unknown]).await;
    let (client, _) = server.client();
    let schema = Some(Schema { name: "answer", schema: json!({"type": "object"}) });
    let formed = Request { schema, ..request() };
    assert_eq!(client.complete(&formed).await.unwrap().attempts, 2);
    assert_eq!(client.complete(&formed).await.unwrap().attempts, 1);
    let formats: Vec<bool> =
        server.calls().iter().map(|call| call.body.get("response_format").is_some()).collect();
    assert_eq!(formats, [true, false, false]);
    assert_eq!(
        server.calls()[0].body["response_format"],
        json!({"type": "json_schema", "json_schema": {"name": "answer", "strict": true, "schema": {"type": "object"}}})
    );
}

#[tokio::test]
async fn a_server_without_usage_in_streams_is_asked_barely_and_remembered() {
    let unknown = || Answer::Status(422, "", json!({"error": {"message": "extra inputs"}}).to_string());
    let server = StandIn::scripted(&[], &[unknown()]).await;
    let (client, _) = server.client();
    assert_eq!(client.complete(&request()).await.unwrap().attempts, 2);
    assert_eq!(client.complete(&request()).await.unwrap().attempts, 1);
    let options: Vec<bool> =
        server.calls().iter().map(|call| call.body.get("stream_options").is_some()).collect();
    assert_eq!(options, [true, false, false]);
    assert_eq!(server.calls()[1].body["stream"], json!(true));
}

#[tokio::test]
async fn a_refusal_that_has_nothing_to_do_with_forms_stays_one() {
    let wrong = |message: &str| Answer::Status(400, "", json!({"error": {"message": message}}).to_string());
    let server = StandIn::scripted(&[], &[wrong("first"), wrong("second"), wrong("no such model")]).await;
    let (client, _) = server.client();
    let schema = Some(Schema { name: "answer", schema: json!({"type": "object"}) });
    let formed = Request { schema, ..request() };
    let error = client.complete(&formed).await.unwrap_err();
    assert!(error.to_string().ends_with("status 400: no such model"), "{error}");
    // It is not held against the server.
    client.complete(&formed).await.unwrap();
    assert!(server.calls()[3].body.get("response_format").is_some());
}

#[tokio::test]
async fn the_key_goes_to_the_server_and_nowhere_else() {
    // Cargo sets this variable for every test; its value stands for a key here.
    let key = Key::from_env("CARGO_MANIFEST_DIR").unwrap();
    let secret = std::env::var("CARGO_MANIFEST_DIR").unwrap();
    let echo = |status| {
        Answer::Status(status, "", json!({"error": {"message": format!("bad {secret}")}}).to_string())
    };
    let server = StandIn::scripted(&[], &[echo(401), echo(429), Answer::Proper]).await;
    let http = server.http(Some(key));
    let mut options = Options::new("stand-in");
    options.retries.attempts = 1;
    let client = Client::new(options, http, Arc::new(VirtualClock::new()));
    for status in [401, 429] {
        let error = client.complete(&request()).await.unwrap_err();
        assert!(matches!(error, ModelError::Refused { status: found, .. } if found == status));
        assert!(!format!("{error} {error:?}").contains(&secret), "{error}");
    }
    client.complete(&request()).await.unwrap();
    assert!(!format!("{client:?}").contains(&secret));
    assert!(server.calls()[2].headers.contains(&format!("authorization: Bearer {secret}\r\n")));
}
