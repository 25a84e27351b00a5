//! What the text is read against.

use portcullis_core::action::Action;
use portcullis_core::bundle::{Bundle, EffectSettings};
use portcullis_core::state::RunState;

/// What relative paths, `~` and names in a text mean.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// The bundle's settings: known tables, functions, patterns of secrets.
    pub settings: &'a EffectSettings,
    /// The folder that the agent was given to work in.
    pub workspace: Option<&'a str>,
    /// What `~` means.
    pub home: Option<&'a str>,
    /// The working directory: what relative paths start from.
    pub directory: Option<&'a str>,
}

impl<'a> Surroundings<'a> {
    /// The surroundings of a run: what its surface said, else what the bundle says.
    pub fn of_run(bundle: &'a Bundle, run: &'a RunState) -> Self {
        let settings = &bundle.effects;
        let place = run.place();
        let workspace = place.and_then(|place| place.workspace.as_deref()).or(settings.workspace.as_deref());
        let home = place.and_then(|place| place.home.as_deref()).or(settings.home.as_deref());
        Self { settings, workspace, home, directory: workspace }
    }

    /// The surroundings of an action: what its surface said, else what the bundle says.
    pub fn of(bundle: &'a Bundle, run: &'a RunState, action: &'a Action) -> Self {
        let of_run = Self::of_run(bundle, run);
        Self { directory: action.directory.as_deref().or(of_run.directory), ..of_run }
    }
}
