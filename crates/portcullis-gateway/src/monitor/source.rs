//! Where a log is read from: its public folder, or a server of it.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use portcullis_ledger::log::Tiles;
use portcullis_proof::log::note::NOTE_BYTES_MAX;
use portcullis_proof::log::tile::{ENTRY_BYTES_MAX, TILE_WIDTH};
use portcullis_proof::log::{TileId, TileKind, TileSource};
use tokio::runtime::Runtime;

use crate::fetch::Fetcher;

/// How long one request may take.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(20);

/// A log's files, wherever they are. What is read from here is believed only for its hashes and signatures.
#[derive(Debug)]
pub struct LogSource(Place);

#[derive(Debug)]
enum Place {
    Folder(PathBuf, Tiles),
    Http(RefCell<Http>),
}

#[derive(Debug)]
struct Http {
    runtime: Runtime,
    fetcher: Fetcher,
}

impl LogSource {
    /// The log at a place: an address that begins with `http://` or `https://`, else a folder.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub fn at(place: &str) -> Result<Self, String> {
        if !place.starts_with("http://") && !place.starts_with("https://") {
            let folder = Path::new(place);
            return Ok(Self(Place::Folder(folder.to_owned(), Tiles::at(folder))));
        }
        let fetcher = Fetcher::new(place, REQUEST_TIME_MAX)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("cannot start: {error}"))?;
        Ok(Self(Place::Http(RefCell::new(Http { runtime, fetcher }))))
    }

    /// The published checkpoint.
    ///
    /// # Errors
    /// When it could not be read.
    pub fn checkpoint(&self) -> Result<Vec<u8>, String> {
        match &self.0 {
            Place::Folder(folder, _) => {
                let path = folder.join("checkpoint");
                let failed = |error: std::io::Error| format!("`{}`: {error}", path.display());
                if fs::metadata(&path).map_err(failed)?.len() > NOTE_BYTES_MAX as u64 {
                    return Err(format!("`{}`: more than {NOTE_BYTES_MAX} bytes", path.display()));
                }
                fs::read(&path).map_err(failed)
            }
            Place::Http(http) => match get(http, "checkpoint", NOTE_BYTES_MAX)? {
                (200, body) => Ok(body),
                (status, _) => Err(format!("`checkpoint` is answered with {status}")),
            },
        }
    }
}

fn get(http: &RefCell<Http>, path: &str, bytes_max: usize) -> Result<(u16, Vec<u8>), String> {
    let Http { runtime, fetcher } = &mut *http.borrow_mut();
    runtime.block_on(fetcher.get(path, bytes_max))
}

impl TileSource for LogSource {
    type Error = String;

    fn tile(&self, tile: TileId) -> Result<Vec<u8>, String> {
        let http = match &self.0 {
            Place::Folder(_, tiles) => return tiles.tile(tile),
            Place::Http(http) => http,
        };
        let bytes_max = match tile.kind() {
            TileKind::Hashes { .. } => usize::from(TILE_WIDTH) * 32,
            TileKind::Entries => usize::from(TILE_WIDTH) * (2 + ENTRY_BYTES_MAX),
        };
        // Once a tile is full, the partial ones may be gone.
        for tile in [tile, tile.full()] {
            match get(http, &tile.to_string(), bytes_max)? {
                (200, body) => return Ok(body),
                (404 | 410, _) => {}
                (status, _) => return Err(format!("the server answers {status}")),
            }
        }
        Err("the server has no such tile".to_owned())
    }
}
