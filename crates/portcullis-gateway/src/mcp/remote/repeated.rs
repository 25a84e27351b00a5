//! Calls of tools whose arguments headers repeat, by clients that have not listed them.
//!
//! Which arguments those are stands in the list of tools. A server that misses their headers refuses the call, so it was
//! not carried out: the gate reads the list, and makes the call with them. The list goes nowhere else.

use hyper::body::Bytes;
use portcullis_wire::jsonrpc::{Id, Message, peek};
use portcullis_wire::mcp::TOOLS_LIST;
use portcullis_wire::mcp::replace::value_at;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::answer::Pending;
use super::failure::Failure;
use super::request::{Mirrored, stateless_version};
use super::{Sent, Shared};

/// The most pages that are read.
const PAGES_MAX: usize = 16;
const ID: &str = "portcullis-list";

impl Shared {
    /// The same call, with the headers that the server's list of tools asks for.
    pub(super) async fn with_listed_headers(&self, sent: &Sent) -> Result<Sent, Failure> {
        let meta = value_at(&sent.body, &["params", "_meta"]).ok().flatten().ok_or(Failure::Status(400))?;
        let mut cursor = None;
        for _ in 0..PAGES_MAX {
            cursor = self.list_page(meta, cursor).await?;
            if cursor.is_none() {
                break;
            }
        }
        let mirrored = self.mirrored(&sent.body)?;
        Ok(Sent { mirrored: Some(mirrored), ..sent.clone() })
    }

    /// Reads one page of the list, and notes its tools. Where the next one begins.
    async fn list_page(&self, meta: &RawValue, cursor: Option<Value>) -> Result<Option<Value>, Failure> {
        let mut params = json!({"_meta": meta});
        if let (Some(params), Some(cursor)) = (params.as_object_mut(), cursor) {
            params.insert("cursor".to_owned(), cursor);
        }
        let body = json!({"jsonrpc": "2.0", "id": ID, "method": TOOLS_LIST, "params": params});
        let body = Bytes::from(body.to_string());
        let id = Id::String(ID.into());
        let listing = Sent {
            mirrored: Some(self.mirrored(&body)?),
            asked: vec![id.clone()],
            method: Some(TOOLS_LIST.to_owned()),
            body,
        };
        let mut pending =
            Pending { kept: Some(Vec::new()), ..Pending::new(vec![id], listing.method.clone(), true) };
        self.ask_itself(&listing, &mut pending).await?;
        let line = pending.kept.unwrap_or_default();
        let next = value_at(&line, &["result", "nextCursor"]).ok().flatten();
        Ok(next.and_then(|next| serde_json::from_str(next.get()).ok()))
    }

    /// The headers that repeat a message, by what is known of the tools.
    fn mirrored(&self, body: &[u8]) -> Result<Mirrored, Failure> {
        let unfit = |why: String| Failure::Unfit(why);
        let message: Message<'_> = peek(body).map_err(|error| unfit(error.to_string()))?;
        let version = stateless_version(&message).ok_or_else(|| unfit("it says no revision".to_owned()))?;
        Mirrored::of(&message, &version, &self.arguments)
    }
}
