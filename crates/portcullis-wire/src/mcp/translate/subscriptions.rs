//! Changes that a server without sessions tells: one subscription for its lists, and one for each resource.

use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::edit::with_meta;
use super::upwards::{Upwards, borrowed, cancelled, own};
use super::{OWN, Turn};
use crate::fields;
use crate::jsonrpc::{INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, Id, result_response};
use crate::mcp::{
    CANCELLED, META_SUBSCRIPTION, SUBSCRIPTIONS_ACKNOWLEDGED, SUBSCRIPTIONS_LISTEN, cancelled_request,
};

/// Resources that are subscribed to.
const SUBSCRIPTIONS_MAX: usize = 256;
/// The pause before a subscription that broke off is opened again, for each time in a row, and the longest.
const LISTENS_AGAIN: Duration = Duration::from_secs(1);
const LISTENS_AGAIN_MAX: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) enum Subscription {
    Lists {
        wanted: Value,
    },
    Resource {
        uri: String,
        /// The client's request, until it is answered.
        request: Option<Box<RawValue>>,
    },
}

impl Upwards {
    pub(super) fn listen(&mut self, notifications: &Value, subscription: Subscription) -> Turn {
        let id = format!("{OWN}listen-{}", self.number());
        let params = json!({"notifications": notifications});
        let line = json!({"jsonrpc": "2.0", "id": id, "method": SUBSCRIPTIONS_LISTEN, "params": params});
        self.subscriptions.insert(id, subscription);
        match with_meta(line.to_string().as_bytes(), &[], &borrowed(&self.meta)) {
            Ok(line) => Turn::server(line),
            Err(_) => Turn::nothing(),
        }
    }

    pub(super) fn subscribe(&mut self, uri: &str, id_raw: &RawValue) -> Turn {
        if self.subscriptions.len() >= SUBSCRIPTIONS_MAX {
            let why = format!("{SUBSCRIPTIONS_MAX} resources are subscribed to already");
            return Turn::refused(Some(id_raw), INVALID_REQUEST, &why);
        }
        let wanted = json!({"resourceSubscriptions": [uri]});
        let request = Some(id_raw.to_owned());
        self.listen(&wanted, Subscription::Resource { uri: uri.to_owned(), request })
    }

    /// Ends all subscriptions to a resource. One that the client still waits for is answered as well.
    pub(super) fn unsubscribe(&mut self, uri: &str) -> Turn {
        let is_of = |subscription: &Subscription| matches!(subscription, Subscription::Resource { uri: of, .. } if of == uri);
        self.broken.retain(|_, subscription| !is_of(subscription));
        let ids = self.subscriptions.iter().filter(|(_, subscription)| is_of(subscription));
        let ids: Vec<String> = ids.map(|(id, _)| id.clone()).collect();
        ids.iter().fold(Turn::nothing(), |turn, id| {
            let ended = self
                .subscriptions
                .remove(id)
                .map_or_else(Turn::nothing, |ended| subscription_ended(ended, None));
            turn.and(Turn::server(cancelled(id))).and(ended)
        })
    }

    /// A subscription broke off: it is opened again after a pause. One that was never open is not.
    pub(super) fn broke_off(&mut self, id: &str, subscription: Subscription) -> Turn {
        if matches!(subscription, Subscription::Resource { request: Some(_), .. }) {
            return subscription_ended(subscription, None);
        }
        self.broken.insert(id.to_owned(), subscription);
        self.breaks = self.breaks.saturating_add(1);
        let pause = LISTENS_AGAIN.saturating_mul(self.breaks).min(LISTENS_AGAIN_MAX);
        Turn { later: Some((pause, Id::String(id.into()))), ..Turn::default() }
    }

    /// A notification: of a subscription, it is told as one of the session.
    pub(super) fn told(&mut self, line: &[u8], method: &str, params: &RawValue) -> Option<Turn> {
        if method == CANCELLED {
            // So a server on standard input and output ends a subscription.
            let id = cancelled_request(Some(params))?;
            let id = own(&id)?;
            let ended = self.subscriptions.remove(id);
            return Some(ended.map_or_else(Turn::nothing, |ended| self.broke_off(id, ended)));
        }
        let [meta, notifications] = fields::read(params.get(), &["_meta", "notifications"]).ok()?;
        let [of] = fields::read(fields::present(meta)?.get(), &[META_SUBSCRIPTION]).ok()?;
        let of = fields::string(of?)?;
        let subscription = self.subscriptions.get_mut(of.as_ref())?;
        self.breaks = 0;
        if method != SUBSCRIPTIONS_ACKNOWLEDGED {
            return Some(
                with_meta(line, &[META_SUBSCRIPTION], &[]).map_or_else(|_| Turn::nothing(), Turn::client),
            );
        }
        let Subscription::Resource { uri, request } = subscription else { return Some(Turn::nothing()) };
        let Some(request) = request.take() else { return Some(Turn::nothing()) };
        let agreed = notifications.and_then(|agreed| fields::value(agreed).ok());
        let agreed = agreed.is_some_and(|agreed| {
            let uris = agreed.get("resourceSubscriptions").and_then(Value::as_array);
            uris.is_some_and(|uris| uris.iter().any(|agreed| agreed.as_str() == Some(uri)))
        });
        if agreed {
            return Some(Turn::client(result_response(&request, &json!({}))));
        }
        let why = "the server does not tell of changes to this resource";
        self.subscriptions.remove(of.as_ref());
        Some(Turn::server(cancelled(&of)).and(Turn::refused(Some(&request), INVALID_PARAMS, why)))
    }
}

/// What a client of sessions is told of the changes of lists without asking.
pub(super) fn changing_lists(capabilities: &Value) -> Option<Value> {
    let changes = |of: &str| capabilities.get(of)?.get("listChanged")?.as_bool().filter(|changes| *changes);
    let lists = [
        ("tools", "toolsListChanged"),
        ("prompts", "promptsListChanged"),
        ("resources", "resourcesListChanged"),
    ];
    let wanted: serde_json::Map<String, Value> = lists
        .iter()
        .filter(|(of, _)| changes(of).is_some())
        .map(|(_, field)| ((*field).to_owned(), true.into()))
        .collect();
    (!wanted.is_empty()).then_some(Value::Object(wanted))
}

/// A subscription has ended: a client that waits for it is told.
pub(super) fn subscription_ended(subscription: Subscription, error: Option<&RawValue>) -> Turn {
    let Subscription::Resource { request: Some(request), .. } = subscription else { return Turn::nothing() };
    match error {
        Some(error) => Turn::client(
            format!(r#"{{"jsonrpc":"2.0","id":{request},"error":{}}}"#, error.get()).into_bytes(),
        ),
        None => Turn::refused(
            Some(&request),
            INTERNAL_ERROR,
            "the server does not tell of changes to this resource",
        ),
    }
}
