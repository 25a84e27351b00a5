//! The bundles in use, reloaded when their folders change.
//!
//! A reload is atomic: the new files become a bundle as a whole, or the old one stays in force and the mistake
//! is reported. Bundles that ship in the program are loaded at first use, as those in folders are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use portcullis_core::bundle::Bundle;
use portcullis_core::id::Digest;

use crate::bundle_dir::{self, BundleError};

/// Bundles that may be in use at once.
const BUNDLES_MAX: usize = 256;

/// Where a bundle comes from: a folder, the name of one that ships in the binary, or the one that ships as the
/// default.
pub type Source = Option<PathBuf>;

/// All bundles in use.
#[derive(Debug)]
pub struct Bundles {
    default: Source,
    /// The files of those that ship.
    shipped: BTreeMap<Source, BTreeMap<String, Vec<u8>>>,
    loaded: Mutex<BTreeMap<Source, Loaded>>,
}

#[derive(Debug, Clone)]
struct Loaded {
    bundle: Arc<Bundle>,
    /// Why the latest change is not in force.
    refused: Option<String>,
    /// A change that was seen once.
    seen: Option<Digest>,
    /// Part of the program, so that it never changes.
    ships: bool,
}

impl Loaded {
    fn of(bundle: Arc<Bundle>, ships: bool) -> Self {
        Self { bundle, refused: None, seen: None, ships }
    }
}

/// A bundle that changed on disk.
#[derive(Debug)]
pub struct Changed {
    /// Where.
    pub source: Source,
    /// The new bundle.
    pub bundle: Arc<Bundle>,
}

impl Bundles {
    /// Starts with the default bundle: the folder, or what `shipped` holds.
    pub fn new(default: Source, shipped: &BTreeMap<String, Vec<u8>>) -> Result<Self, BundleError> {
        let shipped = [(None, shipped.clone())].into();
        let bundles = Self { default, shipped, loaded: Mutex::new(BTreeMap::new()) };
        bundles.get(None)?;
        Ok(bundles)
    }

    /// Adds a bundle that ships under a name.
    #[must_use]
    pub fn with_shipped(mut self, name: &str, files: BTreeMap<String, Vec<u8>>) -> Self {
        self.shipped.insert(Some(PathBuf::from(name)), files);
        self
    }

    /// Whether a bundle of that name ships.
    pub fn ships(&self, name: &str) -> bool {
        self.shipped.contains_key(&Some(PathBuf::from(name)))
    }

    /// The bundle in `folder`, or the default one. Loads it at first use.
    pub fn get(&self, folder: Option<&Path>) -> Result<(Source, Arc<Bundle>), BundleError> {
        let source = folder.map(Path::to_owned).or_else(|| self.default.clone());
        if let Some(known) = self.lock().get(&source) {
            return Ok((source, Arc::clone(&known.bundle)));
        }
        let shipped = self.shipped.get(&source);
        let folder = source.clone().unwrap_or_else(|| PathBuf::from("(shipped)"));
        let bundle = match shipped {
            Some(files) => bundle_dir::load_files(&folder, files.clone())?,
            None => bundle_dir::load(&folder)?,
        };
        let bundle = Arc::new(bundle);
        let mut loaded = self.lock();
        if loaded.len() >= BUNDLES_MAX {
            let why = format!("{BUNDLES_MAX} bundles are in use, which is the limit");
            return Err(BundleError::Io { path: folder, source: std::io::Error::other(why) });
        }
        loaded.insert(source.clone(), Loaded::of(Arc::clone(&bundle), shipped.is_some()));
        Ok((source, bundle))
    }

    /// Reads all folders again. Gives the bundles that changed; what no longer loads is remembered as refused.
    ///
    /// With `settled` a change is given only when the look before saw the same.
    pub fn changed(&self, settled: bool) -> Vec<Changed> {
        let known: Vec<(Source, Arc<Bundle>)> = self
            .lock()
            .iter()
            .filter(|(_, loaded)| !loaded.ships)
            .map(|(source, loaded)| (source.clone(), Arc::clone(&loaded.bundle)))
            .collect();
        let mut changed = Vec::new();
        for (source, old) in known {
            let Some(folder) = &source else { continue };
            // Nearly always nothing has changed, and then nothing is loaded.
            let new = match bundle_dir::read_files(folder) {
                Ok(files) if Bundle::digest_of(&files) == old.digest() => {
                    self.set_refused(&source, None);
                    continue;
                }
                files => files.and_then(|files| bundle_dir::load_files(folder, files)),
            };
            match new {
                Ok(bundle) => {
                    if !settled || self.see(&source, bundle.digest()) {
                        changed.push(Changed { source, bundle: Arc::new(bundle) });
                    }
                }
                Err(error) => self.set_refused(&source, Some(error.to_string())),
            }
        }
        changed
    }

    /// Remembers a change; true when it was seen before.
    fn see(&self, source: &Source, digest: Digest) -> bool {
        let mut loaded = self.lock();
        loaded.get_mut(source).is_some_and(|entry| entry.seen.replace(digest) == Some(digest))
    }

    /// Puts a changed bundle in force for new runs.
    pub fn accept(&self, changed: Changed) {
        self.lock().insert(changed.source, Loaded::of(changed.bundle, false));
    }

    /// Remembers why a change is not in force.
    pub fn set_refused(&self, source: &Source, why: Option<String>) {
        let mut loaded = self.lock();
        if let Some(entry) = loaded.get_mut(source)
            && entry.refused != why
        {
            entry.refused = why;
        }
    }

    /// The files of the bundle of that digest, as far as one of those in use still has them.
    pub fn files_of(&self, digest: Digest) -> Option<BTreeMap<String, Vec<u8>>> {
        let shipped = self.shipped.values().find(|files| Bundle::digest_of(files) == digest);
        if let Some(files) = shipped {
            return Some(files.clone());
        }
        let sources: Vec<Source> = self.lock().keys().cloned().collect();
        let folders =
            sources.into_iter().flatten().filter(|folder| !self.shipped.contains_key(&Some(folder.clone())));
        let mut read = folders.filter_map(|folder| bundle_dir::read_files(&folder).ok());
        read.find(|files| Bundle::digest_of(files) == digest)
    }

    /// Why changes are not in force, if any are not.
    pub fn refusals(&self) -> Vec<String> {
        self.lock().values().filter_map(|loaded| loaded.refused.clone()).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Source, Loaded>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
