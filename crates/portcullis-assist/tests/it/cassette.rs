//! What is recorded replays byte for byte, and nothing but what is recorded.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use portcullis_assist::{
    Client, Clock, Http, Key, Model as _, ModelError, Options, Recorder, Repaired, Replay, Request, Strategy,
    Task, Timeouts, Transport, VirtualClock, repair,
};

use crate::stand_in::{Answer, StandIn};
use crate::strategies::{JUDGED, contracts, settings};

async fn run(transport: Arc<dyn Transport>, clock: Arc<dyn Clock>) -> Repaired {
    let client = Client::new(Options::new("stand-in"), transport, Arc::clone(&clock));
    let contracts = contracts(JUDGED);
    let task = Task { context: Some("Grüße?").into(), reply: "x", contracts: &contracts };
    repair(&client, &*clock, &task, &settings(Strategy::BestOf { samples: 3, oracle: false })).await.unwrap()
}

fn recorder(path: &Path, inner: Arc<dyn Transport>) -> (Arc<Recorder>, Arc<VirtualClock>) {
    let clock = Arc::new(VirtualClock::new());
    let waits: Arc<dyn Clock> = Arc::<VirtualClock>::clone(&clock);
    (Arc::new(Recorder::create(path, inner, waits).unwrap()), clock)
}

#[tokio::test]
async fn a_repair_replays_without_a_server_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first.jsonl"), folder.path().join("second.jsonl"));
    // A refusal, an answer that dies, and samples of one request that differ.
    let troubles = [
        Answer::Status(429, "retry-after: 2\r\n", "{}".into()),
        Answer::Proper,
        Answer::Dies("data: {\"choices\":[{\"delta\":{\"content\":\"\u{fc}"),
    ];
    let server = StandIn::scripted(&["calm ü", "calm warm", "calm \"warm\"\n\tbrief"], &troubles).await;
    let (recording, clock) = recorder(&first, server.http(None));
    let live = run(recording, clock).await;
    assert_eq!((server.kinds().as_str(), live.reply.as_str()), ("DDRRDRDRDA", "calm \"warm\"\n\tbrief"));
    drop(server);

    let replay = Arc::new(Replay::open(&first).unwrap());
    let (recording, _) = recorder(&second, Arc::<Replay>::clone(&replay));
    let again = run(recording, replay.clock()).await;
    assert_eq!(replay.left(), 0);
    assert_eq!(again, live);
    assert_eq!(fs::read(&second).unwrap(), fs::read(&first).unwrap());
}

#[tokio::test]
async fn what_is_not_on_the_cassette_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.jsonl");
    let server = StandIn::start(&[]).await;
    let ask = |transport: Arc<dyn Transport>, text: &'static str| async move {
        let client = Client::new(Options::new("stand-in"), transport, Arc::new(VirtualClock::new()));
        client.complete(&Request::new("Say hello.", text, 64)).await
    };
    let (recording, _) = recorder(&path, server.http(None));
    ask(recording, "a").await.unwrap();
    let replay = Arc::new(Replay::open(&path).unwrap());
    let other = ask(Arc::<Replay>::clone(&replay), "b").await.unwrap_err();
    assert!(other.to_string().ends_with("has no answer to this request; record it again"), "{other}");
    assert_eq!(ask(Arc::<Replay>::clone(&replay), "a").await.unwrap().text, "Hello");
    let more = ask(replay, "a").await.unwrap_err();
    assert!(more.to_string().contains("has no more answers to this request"), "{more}");
    assert_eq!(server.calls().len(), 1);
    // Recordings are not mixed.
    let again = Recorder::create(&path, server.http(None), Arc::new(VirtualClock::new())).unwrap_err();
    assert!(again.to_string().starts_with("cannot use the cassette"), "{again}");
}

#[tokio::test]
async fn a_key_is_never_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.jsonl");
    let secret = std::env::var("CARGO_MANIFEST_DIR").unwrap();
    let echo = |status| Answer::Status(status, "", format!("{{\"error\":{{\"message\":\"bad {secret}\"}}}}"));
    let server = StandIn::scripted(&[], &[echo(401), echo(413), Answer::Proper]).await;
    let (recording, clock) = recorder(&path, server.http(Some(Key::from_env("CARGO_MANIFEST_DIR").unwrap())));
    let client = Client::new(Options::new("stand-in"), recording, clock);
    let request = Request::new("Say hello.", "a", 64);
    assert!(matches!(client.complete(&request).await, Err(ModelError::Refused { status: 401, .. })));
    assert!(client.complete(&request).await.is_err());
    client.complete(&request).await.unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(!text.contains(&secret) && !text.to_lowercase().contains("bearer"));
    // The header, and the one exchange without a secret.
    assert_eq!(text.lines().count(), 2);
}

#[tokio::test]
async fn errors_replay_in_the_same_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.jsonl");
    let answers = [Answer::Silent, Answer::Dies(""), Answer::Status(413, "", "too long".into())];
    let server = StandIn::scripted(&[], &answers).await;
    let gone = Http::new("http://127.0.0.1:1/v1", None, Timeouts::default()).unwrap();
    let ask = |transport: Arc<dyn Transport>| async move {
        let mut options = Options::new("stand-in");
        options.retries.attempts = 1;
        let client = Client::new(options, transport, Arc::new(VirtualClock::new()));
        let mut errors = Vec::new();
        for _ in 0..3 {
            errors.push(client.complete(&Request::new("Say hello.", "a", 64)).await.unwrap_err());
        }
        errors
    };
    let (recording, _) = recorder(&path, server.http_with(None, Duration::from_secs(1)));
    let live = ask(recording).await;
    assert!(matches!(
        &*live,
        [ModelError::TimedOut(_), ModelError::Broken(_), ModelError::Refused { status: 413, .. }]
    ));
    assert_eq!(ask(Arc::new(Replay::open(&path).unwrap())).await, live);

    let path = folder.path().join("two.jsonl");
    let (recording, _) = recorder(&path, Arc::new(gone));
    let live = ask(recording).await;
    assert!(matches!(&live[0], ModelError::Connect(_)), "{live:?}");
    assert_eq!(ask(Arc::new(Replay::open(&path).unwrap())).await, live);
}

#[test]
fn a_cassette_that_is_none_says_where() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.jsonl");
    let exchange =
        r#"{"request":"{}","status":200,"media_type":"","body":{"hex":"fg"},"end":"complete","ms":0}"#;
    for (text, why) in [
        (String::new(), "the file is empty"),
        ("{\"cassette\":2}\n".to_owned(), "version 2 is not 1"),
        ("[]\n".to_owned(), "line 1"),
        ("{\"cassette\":1}\n{\"request\":\"{}\"}\n".to_owned(), "line 2"),
        (format!("{{\"cassette\":1}}\n{exchange}\n"), "hexadecimal"),
        (format!("{{\"cassette\":1}}\n{exchange}"), "cut off"),
    ] {
        fs::write(&path, &text).unwrap();
        let error = Replay::open(&path).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    assert!(Replay::open(&folder.path().join("none")).is_err());
}

#[tokio::test]
async fn the_vector_of_the_format_replays() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specs/vectors/cassette/hello.jsonl");
    let replay = Arc::new(Replay::open(&path).unwrap());
    let clock = replay.clock();
    let transport: Arc<dyn Transport> = Arc::<Replay>::clone(&replay);
    let waits: Arc<dyn Clock> = Arc::<VirtualClock>::clone(&clock);
    let client = Client::new(Options::new("stand-in"), transport, waits);
    let answer = client.complete(&Request::new("Say hello.", "Hello?", 64)).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.attempts, replay.left()), ("Grüß Gott", 3, 0));
    // 100 ms of exchanges, two seconds as asked, and half to all of a second.
    assert!((2_600..=3_100).contains(&clock.now().as_millis()), "{:?}", clock.now());
}
