//! The bundles in use, reloaded when their folders change.
//!
//! A reload is atomic: the new files become a bundle as a whole, or the old one stays in force and the mistake
//! is reported. Bundles that ship in the program are loaded at first use, as those in folders are.
//!
//! Folders besides the default one are named by the opener of a run. Such a bundle is kept while a live run uses it; of
//! the others, those that were used last are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use portcullis_core::bundle::Bundle;
use portcullis_core::id::Digest;

use crate::bundle_dir::{self, BundleError};

/// Bundles that may be in use at once.
const BUNDLES_MAX: usize = 256;
/// Bundles that are kept though no live run uses them: all folders that are kept are read every second.
const IDLE_MAX: usize = 16;

/// Where a bundle comes from: a folder, the name of one that ships in the binary, or the one that ships as the
/// default.
pub type Source = Option<PathBuf>;

/// All bundles in use.
#[derive(Debug)]
pub struct Bundles {
    default: Mutex<Source>,
    /// The files of those that ship.
    shipped: BTreeMap<Source, BTreeMap<String, Vec<u8>>>,
    loaded: Mutex<BTreeMap<Source, Loaded>>,
    /// Counts the uses of bundles, which puts them in order.
    uses: AtomicU64,
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
    /// The number of its last use.
    used: u64,
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
        let default = Mutex::new(default);
        let bundles = Self { default, shipped, loaded: Mutex::default(), uses: AtomicU64::new(0) };
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

    /// The folder, or the default one where none is named.
    pub fn source(&self, folder: Option<&Path>) -> Source {
        folder.map(Path::to_owned).or_else(|| self.default())
    }

    fn default(&self) -> Source {
        self.default.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes a folder the default bundle of new runs. Runs that are open go on under theirs.
    ///
    /// # Errors
    /// The folder is not a bundle: the default stays as it was.
    pub fn adopt(&self, folder: PathBuf) -> Result<(), BundleError> {
        self.get(Some(&folder))?;
        *self.default.lock().unwrap_or_else(PoisonError::into_inner) = Some(folder);
        Ok(())
    }

    /// Whether it is the default bundle: the one that the operator chose.
    pub fn is_default(&self, source: &Source) -> bool {
        *source == self.default()
    }

    /// The bundle in `folder`, or the default one. Loads it at first use.
    pub fn get(&self, folder: Option<&Path>) -> Result<(Source, Arc<Bundle>), BundleError> {
        // Bundles that may be in use stay.
        let (source, in_use) = (self.source(folder), self.lock().keys().cloned().collect());
        let bundle = self.get_for_run(source.clone(), &in_use)?;
        Ok((source, bundle))
    }

    /// The bundle of a source as it is in force, if it is loaded. Touches no file.
    pub fn known(&self, source: &Source) -> Option<Arc<Bundle>> {
        let used = self.uses.fetch_add(1, Ordering::Relaxed);
        self.lock().get_mut(source).map(|known| {
            known.used = used;
            Arc::clone(&known.bundle)
        })
    }

    /// The same for a run that is about to be opened. A bundle that is loaded takes the place of the idle one whose
    /// last use is longest ago, where there are too many; `in_use` are those that live runs use.
    ///
    /// # Errors
    /// The bundle cannot be loaded, or too many are in use.
    pub fn get_for_run(&self, source: Source, in_use: &BTreeSet<Source>) -> Result<Arc<Bundle>, BundleError> {
        if let Some(known) = self.known(&source) {
            return Ok(known);
        }
        let shipped = self.shipped.get(&source);
        let folder = source.clone().unwrap_or_else(|| PathBuf::from("(shipped)"));
        let bundle = match shipped {
            Some(files) => bundle_dir::load_files(&folder, files.clone())?,
            None => bundle_dir::load(&folder)?,
        };
        let (bundle, ships) = (Arc::new(bundle), shipped.is_some());
        let used = self.uses.fetch_add(1, Ordering::Relaxed);
        let mut loaded = self.lock();
        self.evict(&mut loaded, in_use);
        // The operator's and those of the program always have room.
        if loaded.len() >= BUNDLES_MAX && !ships && !self.is_default(&source) {
            let why =
                format!("live runs use {BUNDLES_MAX} bundles, which is the limit; close some of these runs");
            return Err(BundleError::Io { path: folder, source: std::io::Error::other(why) });
        }
        loaded.insert(
            source.clone(),
            Loaded { bundle: Arc::clone(&bundle), refused: None, seen: None, ships, used },
        );
        Ok(bundle)
    }

    /// Makes room for one more among those that no live run uses.
    fn evict(&self, loaded: &mut BTreeMap<Source, Loaded>, in_use: &BTreeSet<Source>) {
        let mut idle: Vec<(u64, Source)> = loaded
            .iter()
            .filter(|(source, known)| !known.ships && !self.is_default(source) && !in_use.contains(*source))
            .map(|(source, known)| (known.used, source.clone()))
            .collect();
        idle.sort_unstable();
        let surplus = (idle.len() + 1).saturating_sub(IDLE_MAX);
        let missing = (loaded.len() + 1).saturating_sub(BUNDLES_MAX);
        for (_, source) in idle.into_iter().take(surplus.max(missing)) {
            loaded.remove(&source);
        }
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
        if let Some(entry) = self.lock().get_mut(&changed.source) {
            *entry = Loaded { bundle: changed.bundle, refused: None, seen: None, ..entry.clone() };
        }
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

    /// The files of the bundle with that digest, if a bundle in use still has them.
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

    /// Why the latest change of the default bundle is not in force.
    pub fn refusal(&self) -> Option<String> {
        let default = self.default();
        self.lock().get(&default).and_then(|loaded| loaded.refused.clone())
    }

    /// Why changes of bundles that runs named are not in force.
    pub fn refusals_of_others(&self) -> Vec<String> {
        let loaded = self.lock();
        let others = loaded.iter().filter(|(source, _)| !self.is_default(source));
        others.filter_map(|(_, loaded)| loaded.refused.clone()).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Source, Loaded>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
