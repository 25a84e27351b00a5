//! Signals from a terminal reach the server as well as the gate.

use super::*;

/// The server ends before the gate hears of the signal: that is no fault of the server.
#[tokio::test]
async fn a_server_that_a_terminal_ends_with_the_gate_did_not_end_by_itself() {
    for signal in [StopSignal::Interrupt, StopSignal::Hangup] {
        let mut stage = stage(kind).await;
        stage.client.send(&call("1", "t")).await;
        stage.server.expect(&call("1", "t")).await;
        stage.process.take().unwrap().send("signal: 2 (SIGINT)").unwrap();
        stage.server.to = None;
        tokio::time::sleep(SIGNAL_AFTER / 4).await;
        stage.signal.take().unwrap().send(signal).unwrap();
        let ended = timeout(PATIENCE, &mut stage.gate).await.unwrap().unwrap();
        assert_eq!(ended.unwrap(), Some(signal));
        assert_eq!(stage.asked("/outcomes")[0]["status"], "unknown");
        assert_eq!(stage.asked("/close").len(), 1);
    }
}
