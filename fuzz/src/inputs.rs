//! What agents and MCP servers send.

use portcullis_wire::hook::Agent;
use portcullis_wire::jsonrpc::peek;
use portcullis_wire::mcp::headers;
use portcullis_wire::mcp::translate::{Translator, Unmatched};
use portcullis_wire::sse::EventDecoder;

/// The most bytes of one event: small enough that inputs go over it.
const EVENT_MAX: usize = 4096;

/// One input of a hook, as each agent would have sent it.
pub(crate) fn hooks(bytes: &[u8]) {
    for agent in Agent::ALL {
        drop(agent.parse(bytes));
    }
}

/// An event stream in two pieces, cut where its first byte says: the cut must not change what is read.
pub(crate) fn stream(bytes: &[u8]) {
    let Some((&cut, bytes)) = bytes.split_first() else { return };
    drop(headers::decode(bytes));
    let (first, second) = bytes.split_at(usize::from(cut).min(bytes.len()));
    assert_eq!(events(&[first, second]), events(&[bytes]), "cut after {} bytes", first.len());
}

/// What a client of one generation says before a server of the other, and what the server answers.
const MEETINGS: [&[(bool, &str)]; 2] = [
    &[
        (
            true,
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{},"clientInfo":{}}}"#,
        ),
        (false, r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"no"}}"#),
        (
            false,
            r#"{"jsonrpc":"2.0","id":"portcullis-discover","result":{"supportedVersions":["2026-07-28"]}}"#,
        ),
        (true, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#),
    ],
    &[
        (
            true,
            r#"{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
        ),
        (false, r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"no"}}"#),
        (
            false,
            r#"{"jsonrpc":"2.0","id":"portcullis-initialize","result":{"protocolVersion":"2025-11-25"}}"#,
        ),
        (true, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#),
    ],
];

/// Lines of both sides once they have met: the first byte says who is who, and the first of each line whose it is.
pub(crate) fn generations(bytes: &[u8]) {
    let Some((&first, bytes)) = bytes.split_first() else { return };
    let mut translator = Translator::new(Unmatched::LeaveOut);
    for (client, line) in MEETINGS[usize::from(first) % MEETINGS.len()] {
        say(&mut translator, *client, line.as_bytes());
    }
    assert!(translator.is_decided() && !translator.is_settled());
    for line in bytes.split(|byte| *byte == b'\n') {
        let Some((&whose, line)) = line.split_first() else { continue };
        say(&mut translator, whose % 2 == 0, line);
    }
}

/// Whatever the translator makes of a message is a message again.
fn say(translator: &mut Translator, client: bool, line: &[u8]) {
    let turn = if client { translator.client_says(line) } else { translator.server_says(line) };
    let ended = turn.iter().flat_map(|turn| turn.ended.iter().map(|ended| &ended.line));
    for line in turn.iter().flat_map(|turn| turn.to_server.iter().chain(&turn.to_client)).chain(ended) {
        assert!(peek(line).is_ok(), "{}", String::from_utf8_lossy(line));
    }
}

/// The data of all events, and whether the stream ended with an error.
fn events(pieces: &[&[u8]]) -> (Vec<Vec<u8>>, bool) {
    let mut decoder = EventDecoder::new(EVENT_MAX);
    let mut data = Vec::new();
    for piece in pieces {
        decoder.feed(piece);
        loop {
            match decoder.next_event() {
                Ok(Some(event)) => data.push(event.data.into()),
                Ok(None) => break,
                Err(_) => return (data, true),
            }
        }
    }
    (data, false)
}
