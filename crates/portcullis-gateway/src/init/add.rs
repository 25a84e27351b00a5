//! Drafting one more server's tools into a bundle that is there. No file of it changes.

use std::collections::BTreeMap;
use std::path::Path;

use portcullis_core::bundle::Bundle;
use portcullis_session::bundle_dir;

use super::probe::Found;
use super::render::more_tools;
use super::{InitError, Rendering, mismatch};

/// Names of tools that an error lists.
const NAMES_SHOWN_MAX: usize = 8;

/// Drafts the tools of `found` for the bundle in `folder`.
///
/// # Errors
/// There is no bundle that loads, one of the tools is in it already, or its tests hold only without the new tools.
pub(super) fn draft(found: &Found, folder: &Path) -> Result<Rendering, InitError> {
    let files = bundle_dir::read_files(folder).map_err(|source| no_bundle(folder, source.to_string()))?;
    let there = portcullis_session::policy::load(&files)
        .map_err(|mistakes| no_bundle(folder, super::list(&mistakes)))?;
    let mut rendering = more_tools(&found.tools, &found.server, &files);
    refuse_clashes(&rendering, &there, folder)?;
    let held = mismatch(&files)?.is_none();
    if let Err(InitError::Test(_)) = with(&files, &rendering).and_then(|files| holds(&files)) {
        // Policies that were written since may judge the new tools otherwise than a fresh draft does.
        let tests = rendering.files.extract_if(.., |path, _| path.starts_with("tests/"));
        let left_out: Vec<String> = tests.map(|(path, _)| path).collect();
        rendering.warnings.push(format!(
            "`{}` was not drafted, because the policies of the bundle judge the new tools otherwise than a draft \
             does; add cases for them",
            left_out.join("`, `")
        ));
        let files = with(&files, &rendering)?;
        if let Some(broken) = mismatch(&files)?.filter(|_| held) {
            return Err(InitError::Test(format!(
                "the new tools change what the bundle's tests say: {broken}"
            )));
        }
    }
    rendering.warnings.extend(not_allowed(&rendering, &there));
    Ok(rendering)
}

fn no_bundle(folder: &Path, why: String) -> InitError {
    InitError::NoBundle { folder: folder.to_owned(), why }
}

fn refuse_clashes(rendering: &Rendering, there: &Bundle, folder: &Path) -> Result<(), InitError> {
    let clashing: Vec<&str> = rendering
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .filter(|name| there.registry.get(name).is_some())
        .collect();
    if clashing.is_empty() {
        return Ok(());
    }
    let shown: Vec<String> = clashing.iter().take(NAMES_SHOWN_MAX).map(|name| format!("`{name}`")).collect();
    let more = clashing.len().saturating_sub(NAMES_SHOWN_MAX);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    Err(InitError::Clash { folder: folder.to_owned(), tools: format!("{}{more}", shown.join(", ")) })
}

/// The files of the bundle and the new ones.
fn with(
    files: &BTreeMap<String, Vec<u8>>,
    rendering: &Rendering,
) -> Result<BTreeMap<String, Vec<u8>>, InitError> {
    let new = rendering.files.iter().map(|(path, text)| (path.clone(), text.clone().into_bytes()));
    let files: BTreeMap<String, Vec<u8>> = files.clone().into_iter().chain(new).collect();
    portcullis_session::policy::load(&files).map_err(InitError::Mistakes)?;
    Ok(files)
}

fn holds(files: &BTreeMap<String, Vec<u8>>) -> Result<(), InitError> {
    mismatch(files)?.map_or(Ok(()), |broken| Err(InitError::Test(broken)))
}

/// Tools that the default policy denies because of their type.
fn not_allowed(rendering: &Rendering, there: &Bundle) -> Option<String> {
    let policy = there.policy(there.default_policy())?;
    let denied = |tool_type: &str| !policy.allowed_types.iter().any(|allowed| allowed == tool_type);
    let mut types: Vec<&str> = rendering.tools.iter().map(|tool| tool.tool_type.as_str()).collect();
    types.retain(|tool_type| denied(tool_type));
    types.sort_unstable();
    types.dedup();
    (!types.is_empty()).then(|| {
        format!(
            "policy `{}` denies tools of type {} until `allowed_types` lists it",
            there.default_policy(),
            types.join(", ")
        )
    })
}
