//! A log that serves whatever a test wants it to, over HTTP, and signs it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use portcullis_proof::log::leaf::LeafSigner;
use portcullis_proof::log::tile::{TILE_WIDTH, bundle_bytes, tile_bytes, tiles_to_write};
use portcullis_proof::log::tree::root;
use portcullis_proof::log::{
    Checkpoint, KeyKind, Leaf, NodeSource, NoteSigner, RunHead, RunState, TileKind, TreeHead, leaf_hash,
    node_hash,
};
use portcullis_proof::{Digest, Hex};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

pub(crate) const ORIGIN: &str = "portcullis/lying";

/// The key of the log.
pub(crate) fn log_key() -> NoteSigner {
    NoteSigner::from_seed(ORIGIN, KeyKind::Ed25519, &[1; 32]).unwrap()
}

/// A tree in memory.
#[derive(Clone, Default)]
pub(crate) struct Tree {
    pub(crate) leaves: Vec<Vec<u8>>,
}

impl NodeSource for Tree {
    type Error = Infallible;

    fn node(&self, level: u8, index: u64) -> Result<Digest, Infallible> {
        if level == 0 {
            return Ok(leaf_hash(&self.leaves[usize::try_from(index).unwrap()]));
        }
        Ok(node_hash(self.node(level - 1, 2 * index)?, self.node(level - 1, 2 * index + 1)?))
    }
}

impl Tree {
    pub(crate) fn size(&self) -> u64 {
        self.leaves.len() as u64
    }

    /// The tree of the first leaves.
    pub(crate) fn first(&self, size: u64) -> Tree {
        Tree { leaves: self.leaves[..usize::try_from(size).unwrap()].to_vec() }
    }

    pub(crate) fn head(&self) -> TreeHead {
        TreeHead { size: self.size(), root: root(self, self.size()).unwrap() }
    }

    pub(crate) fn signed(&self) -> String {
        self.signed_by(&log_key())
    }

    pub(crate) fn signed_by(&self, key: &NoteSigner) -> String {
        Checkpoint::new(key.verifier().name(), self.head()).unwrap().sign(&[key]).unwrap()
    }

    /// What an honest log publishes of it, the checkpoint included.
    pub(crate) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::from([("checkpoint".to_owned(), self.signed().into_bytes())]);
        for tile in tiles_to_write(0, self.size()) {
            let bytes = match tile.kind() {
                TileKind::Hashes { .. } => tile_bytes(self, tile).unwrap().unwrap(),
                TileKind::Entries => {
                    let first = usize::try_from(tile.index()).unwrap() * usize::from(TILE_WIDTH);
                    bundle_bytes(&self.leaves[first..first + usize::from(tile.width())]).unwrap()
                }
            };
            files.insert(tile.to_string(), bytes);
        }
        files
    }
}

/// A writer that the log has enrolled, and what it signs.
pub(crate) struct Writer {
    signer: LeafSigner,
}

impl Writer {
    /// A tree with the enrolment of a writer.
    pub(crate) fn enrolled(tree: &mut Tree) -> Writer {
        let (admin, signer) = (LeafSigner::from_seed(&[1; 32]), LeafSigner::from_seed(&[2; 32]));
        let (origin, label) = (ORIGIN.to_owned(), "gate".to_owned());
        let leaf = Leaf::Enrol { origin, public: signer.public(), label, admin: admin.id() };
        tree.leaves.push(leaf.sign(&admin).unwrap().bytes().to_vec());
        Writer { signer }
    }

    /// A run of this number opens and, where wanted, closes.
    pub(crate) fn run(&self, tree: &mut Tree, number: u64, close: bool) {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&number.to_be_bytes());
        let mut head = RunHead {
            origin: ORIGIN.to_owned(),
            run: Hex(id),
            segment: Hex(id),
            ordinal: 0,
            parent: None,
            writer: self.signer.id(),
            epoch: 0,
            run_no: number,
            state: RunState::Open,
            count: 0,
            link: Hex([5; 32]),
            bundle: Hex([6; 32]),
            previous: None,
            signer: self.signer.id(),
        };
        let open = Leaf::Head(head.clone()).sign(&self.signer).unwrap();
        tree.leaves.push(open.bytes().to_vec());
        if close {
            (head.state, head.count, head.previous) = (RunState::Closed, 7, Some(open.hash()));
            tree.leaves.push(Leaf::Head(head).sign(&self.signer).unwrap().bytes().to_vec());
        }
    }
}

/// An honest log of an enrolment and closed runs.
pub(crate) fn honest(runs: u64) -> Tree {
    let mut tree = Tree::default();
    let writer = Writer::enrolled(&mut tree);
    (0..runs).for_each(|number| writer.run(&mut tree, number, true));
    tree
}

/// Like [`honest`], with another history from run `at` on.
pub(crate) fn other_history(at: u64, runs: u64) -> Tree {
    let mut tree = Tree::default();
    let writer = Writer::enrolled(&mut tree);
    (0..at).for_each(|number| writer.run(&mut tree, number, true));
    (at..runs).rev().for_each(|number| writer.run(&mut tree, number, true));
    tree
}

/// What is served, and what was asked for.
#[derive(Default)]
struct Shelf {
    files: BTreeMap<String, (u16, Vec<u8>)>,
    asked: Vec<String>,
}

type Files = Arc<Mutex<Shelf>>;

/// What is served, and the server.
pub(crate) struct Served {
    files: Files,
    address: SocketAddr,
    _runtime: Runtime,
}

async fn serve(State(files): State<Files>, uri: Uri) -> (StatusCode, Vec<u8>) {
    let path = uri.path().strip_prefix("/log/").unwrap_or_default();
    let mut shelf = files.lock().unwrap();
    shelf.asked.push(path.to_owned());
    let found = shelf.files.get(path).cloned().unwrap_or((404, b"no such file".to_vec()));
    (StatusCode::from_u16(found.0).unwrap(), found.1)
}

impl Served {
    pub(crate) fn start() -> Served {
        let files = Files::default();
        let runtime = runtime();
        let router = Router::new().fallback(serve).with_state(Arc::clone(&files));
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async move { axum::serve(listener, router).await });
        Served { files, address, _runtime: runtime }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/log", self.address)
    }

    /// Serves these files and no others.
    pub(crate) fn serve(&self, files: BTreeMap<String, Vec<u8>>) {
        self.files.lock().unwrap().files =
            files.into_iter().map(|(path, bytes)| (path, (200, bytes))).collect();
    }

    /// Changes one file, which has to be there.
    pub(crate) fn change(&self, path: &str, change: impl FnOnce(&mut (u16, Vec<u8>))) {
        change(self.files.lock().unwrap().files.get_mut(path).unwrap());
    }

    /// What was asked for since this was called last.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.files.lock().unwrap().asked)
    }
}

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// One request, byte by byte: status, head and body.
pub(crate) fn request(address: SocketAddr, method: &str, path: &str, body: &[u8]) -> (u16, String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // A server that refuses a long body may not read it to its end.
    let _refused = stream.write_all(body);
    let mut answer = Vec::new();
    let _reset = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, head.to_ascii_lowercase(), body.to_owned())
}
