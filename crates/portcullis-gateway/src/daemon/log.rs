//! `/log`: the published files of the transparency log, as C2SP `tlog-tiles` names them.
//!
//! No credential is asked for. What is here is what the log publishes for everybody: hashes, ids and counts, no
//! payload. Monitors and mirrors of a log have no account at the gate, and their tools send no token. On TCP the
//! checks of `Host` and `Origin` hold here as everywhere, so a web page cannot read it through a visitor's browser.

use std::io;
use std::path::PathBuf;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use portcullis_proof::log::TileId;
use portcullis_proof::log::note::NOTE_BYTES_MAX;
use portcullis_proof::log::tile::{ENTRY_BYTES_MAX, TILE_WIDTH};

use super::Shared;
use super::error::Failure;

/// A tile never changes under its name.
const FOR_EVER: &str = "public, max-age=31536000, immutable";
/// A checkpoint is what a reader asks for to learn what is new.
const NEVER: &str = "no-store";
/// The longest tile: a full bundle of the longest leaves.
const TILE_BYTES_MAX: u64 = TILE_WIDTH as u64 * (2 + ENTRY_BYTES_MAX as u64);

pub(super) async fn checkpoint(State(shared): State<Shared>) -> Result<Response, Failure> {
    let path = shared.home.store().log().checkpoint();
    file(path, NOTE_BYTES_MAX as u64, "text/plain; charset=utf-8", NEVER).await
}

pub(super) async fn tile(
    State(shared): State<Shared>,
    Path(path): Path<String>,
) -> Result<Response, Failure> {
    // A path in its one spelling has nothing in it but numbers.
    let tile: TileId =
        format!("tile/{path}").parse().map_err(|error| Failure::not_found(format!("{error}")))?;
    let path = shared.home.store().log().public.join(tile.to_string());
    file(path, TILE_BYTES_MAX, "application/octet-stream", FOR_EVER).await
}

async fn file(path: PathBuf, bytes_max: u64, media: &str, cache: &str) -> Result<Response, Failure> {
    let read = tokio::task::spawn_blocking(move || {
        let bytes = std::fs::metadata(&path)?.len();
        if bytes > bytes_max {
            return Err(io::Error::other(format!("{bytes} bytes; such a file has at most {bytes_max}")));
        }
        std::fs::read(path)
    });
    match read.await.unwrap_or_else(|error| Err(io::Error::other(error))) {
        Ok(bytes) => Ok(([(CONTENT_TYPE, media), (CACHE_CONTROL, cache)], Body::from(bytes)).into_response()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Failure::not_found("the log has not published such a file"))
        }
        Err(error) => {
            let message = format!("the published file cannot be read: {error}");
            Err(Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message))
        }
    }
}
