//! What agents and MCP servers send.

use portcullis_wire::hook::Agent;
use portcullis_wire::mcp::headers;
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
