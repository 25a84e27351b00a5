//! Answers in JSON that people look at.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use portcullis_core::display::write_json;
use serde::Serialize;

use super::error::Failure;

/// An answer like [`axum::Json`], in which what cannot be seen is escaped.
pub(super) struct Seen<T>(pub(super) T);

impl<T: Serialize> IntoResponse for Seen<T> {
    fn into_response(self) -> Response {
        let mut body = Vec::with_capacity(256);
        match write_json(&mut body, &self.0) {
            Ok(()) => ([(CONTENT_TYPE, "application/json")], body).into_response(),
            Err(error) => {
                let message = format!("the answer cannot be written as JSON: {error}");
                Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message).into_response()
            }
        }
    }
}
