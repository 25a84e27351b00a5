//! The OpenAPI document of the API, made from the types of its handlers.
//!
//! A route is added to the router and described in one call, so that neither has one that the other lacks. What a
//! handler takes says what is sent and who may send it; what it gives says what is answered. The schemas are those of
//! the types, with their doc comments.

use std::sync::OnceLock;

use axum::Json;
use axum::Router;
use axum::extract::{Path, State};
use axum::handler::Handler;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, get, post};
use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use super::Shared;
use super::auth::{Approver, Caller};
use super::error::Failure;
use super::oauth::{Denied, McpCaller};
use super::routes::{self, JsonBody, Queried};
use super::seen::Seen;
use super::webhooks::SignedBody;
use crate::api;

mod schemas;

const ABOUT: &str = "The API of the gate in front of an AI agent: it judges what the agent wants to do, holds what a \
person has to decide, and records all of it. `docs/http-api.md` explains it. Requests are read strictly: an unknown \
field is an error. Answers may gain fields.";

/// The routes of the API: what is served, or what is written down of it.
pub(super) enum Routes {
    /// To be served.
    Served(Box<Router<Shared>>),
    /// To be described.
    Described(Box<Document>),
}

impl Routes {
    /// A route that is looked at.
    pub(super) fn get<H, T, D>(self, path: &str, summary: &str, handler: H) -> Self
    where
        H: Handler<T, Shared> + Described<D>,
        T: 'static,
    {
        self.with("get", path, summary, JSON, handler, get)
    }

    /// A route that is looked at, and answers with a file.
    pub(super) fn file<H, T, D>(self, path: &str, summary: &str, media: &str, handler: H) -> Self
    where
        H: Handler<T, Shared> + Described<D>,
        T: 'static,
    {
        self.with("get", path, summary, media, handler, get)
    }

    /// A route that something is sent to.
    pub(super) fn post<H, T, D>(self, path: &str, summary: &str, handler: H) -> Self
    where
        H: Handler<T, Shared> + Described<D>,
        T: 'static,
    {
        self.with("post", path, summary, JSON, handler, post)
    }

    fn with<H, D>(
        self,
        method: &str,
        path: &str,
        summary: &str,
        media: &str,
        handler: H,
        on: fn(H) -> MethodRouter<Shared>,
    ) -> Self
    where
        H: Described<D>,
    {
        match self {
            Self::Served(router) => Self::Served(Box::new(router.route(path, on(handler)))),
            Self::Described(mut document) => {
                document.add::<H, D>(method, path, summary, media);
                Self::Described(document)
            }
        }
    }

    /// The router, without routes where they are described.
    pub(super) fn into_router(self) -> Router<Shared> {
        match self {
            Self::Served(router) => *router,
            Self::Described(_) => Router::new(),
        }
    }
}

const JSON: &str = "application/json";

/// The document, as text.
pub fn document() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let document = match routes::table(Routes::Described(Box::default())) {
            Routes::Described(document) => document.finish(),
            Routes::Served(_) => Value::Null,
        };
        format!("{document:#}\n")
    })
}

/// `GET /v1/openapi.json`. It says nothing of this gate in particular, so that nobody is asked for a token.
pub(super) async fn served() -> Result<Response, Failure> {
    Ok(([(CONTENT_TYPE, JSON)], document()).into_response())
}

/// What is known so far.
pub(super) struct Document {
    paths: Map<String, Value>,
    /// Types as they are read.
    requests: SchemaGenerator,
    /// Types as they are written.
    answers: SchemaGenerator,
}

impl Default for Document {
    fn default() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.meta_schema = None;
            })
        };
        let (requests, answers) = (settings().for_deserialize(), settings().for_serialize());
        Self { paths: Map::new(), requests: requests.into_generator(), answers: answers.into_generator() }
    }
}

impl Document {
    fn add<H: Described<D>, D>(&mut self, method: &str, path: &str, summary: &str, media: &str) {
        let path = path.replace("{*", "{");
        let mut operation = Operation { parameters: path_parameters(&path), ..Operation::default() };
        H::describe(self, &mut operation);
        let written = operation.written(method, &path, summary, media);
        let methods = self.paths.entry(path).or_insert_with(|| json!({}));
        if let Some(methods) = methods.as_object_mut() {
            methods.insert(method.to_owned(), written);
        }
    }

    fn finish(mut self) -> Value {
        let failure = self.answers.subschema_for::<api::ErrorBody>().to_value();
        let requests = self.requests.take_definitions(true);
        let answers = self.answers.take_definitions(true);
        let mut paths = Value::Object(self.paths);
        let schemas = schemas::together(requests, answers, &mut paths);
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Portcullis",
                "version": env!("CARGO_PKG_VERSION"),
                "description": ABOUT,
                "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
            },
            "servers": [{ "url": "/", "description": "The socket `gate.sock` of the state folder, or the address of `portcullis serve --http`." }],
            "paths": paths,
            "components": {
                "schemas": schemas,
                "responses": { "Failure": {
                    "description": "It failed. `code` is for programs, `message` for people.",
                    "content": { JSON: { "schema": failure } },
                } },
                "securitySchemes": {
                    "agent": { "type": "http", "scheme": "bearer", "description": "The agent's token, or one that the bundle maps to an agent." },
                    "approver": { "type": "http", "scheme": "bearer", "description": "The approver's token, or one that the bundle maps to an approver." },
                },
            },
        })
    }
}

/// One operation, as far as its handler has told.
#[derive(Default)]
pub(super) struct Operation {
    parameters: Vec<Value>,
    body: Option<Value>,
    answer: Option<Value>,
    /// Who may call; empty: anybody.
    callers: Vec<&'static str>,
}

impl Operation {
    fn written(self, method: &str, path: &str, summary: &str, media: &str) -> Value {
        let Self { parameters, body, answer, callers } = self;
        let tag = path.split('/').find(|part| !part.is_empty() && *part != "v1");
        let schema =
            answer.unwrap_or_else(|| if media == JSON { json!({}) } else { json!({ "type": "string" }) });
        let security: Vec<Value> = callers.iter().map(|caller| json!({ *caller: [] })).collect();
        let mut written = json!({
            "operationId": format!("{method}_{}", name_of(path)),
            "summary": summary,
            "tags": [tag],
            "security": security,
            "parameters": parameters,
            "responses": {
                "200": { "description": "It is done.", "content": { media: { "schema": schema } } },
                "default": { "$ref": "#/components/responses/Failure" },
            },
        });
        if let (Some(body), Some(written)) = (body, written.as_object_mut()) {
            let body = json!({ "required": true, "content": { JSON: { "schema": body } } });
            written.insert("requestBody".to_owned(), body);
        }
        written
    }
}

/// A name made of a path: `/v1/runs/{run}/actions` is `run_actions`.
fn name_of(path: &str) -> String {
    let mut names: Vec<String> = Vec::new();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != "v1") {
        match (part.strip_prefix('{').and_then(|part| part.strip_suffix('}')), names.last_mut()) {
            // One of several.
            (Some(_), Some(last)) if last.ends_with('s') => last.truncate(last.len() - 1),
            (Some(name), _) => names.push(name.to_owned()),
            (None, _) => names.push(part.replace(['-', '.'], "_")),
        }
    }
    names.join("_")
}

/// The parameters in a path.
fn path_parameters(path: &str) -> Vec<Value> {
    let named = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parameter = |name: &str| {
        let about = match name {
            "run" | "approval" => "The id, or a prefix of at least 6 hex digits that only one has.",
            "fact" => "The id: the run and the number of the event, as in `0199ab3c….17`.",
            "webhook" => "Its name in the bundle.",
            "path" => "A tile, as C2SP `tlog-tiles` names it.",
            _ => "The name of the file.",
        };
        json!({ "name": name, "in": "path", "required": true, "description": about, "schema": { "type": "string" } })
    };
    named.map(parameter).collect()
}

/// What a handler says of itself by its type.
pub(super) trait Described<T> {
    /// Writes it down.
    fn describe(document: &mut Document, operation: &mut Operation);
}

/// What a handler takes.
pub(super) trait Taken {
    /// Writes down what is to be sent for it.
    fn taken(document: &mut Document, operation: &mut Operation);
}

/// What a handler gives.
pub(super) trait Given {
    /// Writes down what is answered.
    fn given(document: &mut Document, operation: &mut Operation);
}

macro_rules! described {
    ($($taken:ident),*) => {
        impl<H, Answer, $($taken),*> Described<($($taken,)*)> for H
        where
            H: Fn($($taken),*) -> Answer,
            Answer: Future,
            Answer::Output: Given,
            $($taken: Taken,)*
        {
            fn describe(document: &mut Document, operation: &mut Operation) {
                $($taken::taken(document, operation);)*
                <Answer::Output as Given>::given(document, operation);
            }
        }
    };
}

described!();
described!(A);
described!(A, B);
described!(A, B, C);
described!(A, B, C, D);
described!(A, B, C, D, E);

impl Taken for State<Shared> {
    fn taken(_: &mut Document, _: &mut Operation) {}
}

/// The path itself says what it has.
impl<T> Taken for Path<T> {
    fn taken(_: &mut Document, _: &mut Operation) {}
}

impl Taken for Caller {
    fn taken(_: &mut Document, operation: &mut Operation) {
        operation.callers = vec!["agent", "approver"];
    }
}

/// Access tokens of issuers, too, which `docs/remote-auth.md` describes.
impl Taken for McpCaller {
    fn taken(document: &mut Document, operation: &mut Operation) {
        Caller::taken(document, operation);
    }
}

impl Taken for Approver {
    fn taken(_: &mut Document, operation: &mut Operation) {
        operation.callers = vec!["approver"];
    }
}

impl<T: JsonSchema> Taken for JsonBody<T> {
    fn taken(document: &mut Document, operation: &mut Operation) {
        operation.body = Some(document.requests.subschema_for::<T>().to_value());
    }
}

impl<T: JsonSchema> Taken for SignedBody<T> {
    fn taken(document: &mut Document, operation: &mut Operation) {
        JsonBody::<T>::taken(document, operation);
    }
}

/// The signature of a webhook's answer, which `docs/approvals.md` describes.
impl Taken for HeaderMap {
    fn taken(_: &mut Document, _: &mut Operation) {}
}

impl<T: JsonSchema> Taken for Queried<T> {
    fn taken(document: &mut Document, operation: &mut Operation) {
        let schema = T::json_schema(&mut document.requests).to_value();
        for (name, schema) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let mut schema = schema.clone();
            let about = schema.as_object_mut().and_then(|schema| schema.remove("description"));
            let parameter = json!({ "name": name, "in": "query", "required": false, "description": about, "schema": schema });
            operation.parameters.push(parameter);
        }
    }
}

impl<T: Given> Given for Result<T, Failure> {
    fn given(document: &mut Document, operation: &mut Operation) {
        T::given(document, operation);
    }
}

impl<T: Given> Given for Result<T, Denied> {
    fn given(document: &mut Document, operation: &mut Operation) {
        T::given(document, operation);
    }
}

impl<T: JsonSchema> Given for Json<T> {
    fn given(document: &mut Document, operation: &mut Operation) {
        operation.answer = Some(document.answers.subschema_for::<T>().to_value());
    }
}

impl<T: JsonSchema> Given for Seen<T> {
    fn given(document: &mut Document, operation: &mut Operation) {
        Json::<T>::given(document, operation);
    }
}

/// A file, whose media type the route names.
impl Given for Response {
    fn given(_: &mut Document, _: &mut Operation) {}
}
