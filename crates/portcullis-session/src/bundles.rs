//! The bundles in use, reloaded when their folders change.
//!
//! A reload is atomic: the new files become a bundle as a whole, or the old one stays in force and the mistake
//! is reported.

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

    /// Files that are part of the program.
    fn shipped(files: &BTreeMap<String, Vec<u8>>) -> Result<Self, BundleError> {
        let bundle = crate::policy::load(files).map_err(|diagnostics| BundleError::Mistakes {
            folder: PathBuf::from("(shipped)"),
            diagnostics,
            files: files.clone(),
        })?;
        Ok(Self::of(Arc::new(bundle), true))
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
        let mut loaded = BTreeMap::new();
        loaded.insert(None, Loaded::shipped(shipped)?);
        let bundles = Self { default, loaded: Mutex::new(loaded) };
        bundles.get(None)?;
        Ok(bundles)
    }

    /// Adds a bundle that ships under a name.
    pub fn with_shipped(self, name: &str, files: &BTreeMap<String, Vec<u8>>) -> Result<Self, BundleError> {
        self.lock().insert(Some(PathBuf::from(name)), Loaded::shipped(files)?);
        Ok(self)
    }

    /// Whether a bundle of that name ships.
    pub fn ships(&self, name: &str) -> bool {
        self.lock().get(&Some(PathBuf::from(name))).is_some_and(|loaded| loaded.ships)
    }

    /// The bundle in `folder`, or the default one. Loads it at first use.
    pub fn get(&self, folder: Option<&Path>) -> Result<(Source, Arc<Bundle>), BundleError> {
        let source = folder.map(Path::to_owned).or_else(|| self.default.clone());
        if let Some(known) = self.lock().get(&source) {
            return Ok((source, Arc::clone(&known.bundle)));
        }
        let Some(folder) = &source else {
            return Err(BundleError::Io { path: PathBuf::new(), source: std::io::Error::other("no bundle") });
        };
        let bundle = Arc::new(bundle_dir::load(folder)?);
        let mut loaded = self.lock();
        if loaded.len() >= BUNDLES_MAX {
            let why = format!("{BUNDLES_MAX} bundles are in use, which is the limit");
            return Err(BundleError::Io { path: folder.clone(), source: std::io::Error::other(why) });
        }
        loaded.insert(source.clone(), Loaded::of(Arc::clone(&bundle), false));
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
            match bundle_dir::load(folder) {
                Ok(bundle) if bundle.digest() == old.digest() => self.set_refused(&source, None),
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

    /// Why changes are not in force, if any are not.
    pub fn refusals(&self) -> Vec<String> {
        self.lock().values().filter_map(|loaded| loaded.refused.clone()).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Source, Loaded>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
