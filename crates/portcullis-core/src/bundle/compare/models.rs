//! Models that are asked about calls.

use super::super::{Bundle, CallModel, PerAction};
use super::{Direction, Found};

impl Found {
    pub(super) fn models(&mut self, old: &Bundle, new: &Bundle) {
        self.contract_model(old.contract_model.as_ref(), new.contract_model.as_ref());
        let (old, new) = (&old.call_models, &new.call_models);
        self.second_opinion(old.second_opinion.as_ref(), new.second_opinion.as_ref());
        self.per_action(old.per_action.as_ref(), new.per_action.as_ref());
    }

    /// A model that is asked may lift a hold.
    fn second_opinion(&mut self, old: Option<&CallModel>, new: Option<&CallModel>) {
        match (old, new) {
            (Some(old), Some(new)) => self.call_model("[second_opinion]", old, new),
            (None, Some(new)) => {
                self.push("[second_opinion]", "none".into(), new.endpoint.clone(), Direction::Loosened);
            }
            (Some(old), None) => {
                self.push("[second_opinion]", old.endpoint.clone(), "gone".into(), Direction::Tightened);
            }
            (None, None) => {}
        }
    }

    /// What is written for single calls can only narrow.
    fn per_action(&mut self, old: Option<&PerAction>, new: Option<&PerAction>) {
        let (old, new) = match (old, new) {
            (Some(old), Some(new)) => (old, new),
            (None, Some(new)) => {
                let endpoint = new.model.endpoint.clone();
                return self.push("[per_action]", "none".into(), endpoint, Direction::Tightened);
            }
            (Some(old), None) => {
                let endpoint = old.model.endpoint.clone();
                return self.push("[per_action]", endpoint, "gone".into(), Direction::Loosened);
            }
            (None, None) => return,
        };
        let PerAction { model, tools, requests, specification } = old;
        self.call_model("[per_action]", model, &new.model);
        self.list("[per_action] tools", tools, &new.tools, false);
        self.value("[per_action] requests", requests, &new.requests);
        self.value("[per_action] specification", specification, &new.specification);
    }

    fn call_model(&mut self, part: &str, old: &CallModel, new: &CallModel) {
        let CallModel { endpoint, model, key_env, time_ms } = old;
        if *endpoint != new.endpoint {
            // Requests of users go to another server.
            let (old, new) = (endpoint.clone(), new.endpoint.clone());
            self.push(format!("{part} endpoint"), old, new, Direction::Loosened);
        }
        if *key_env != new.key_env {
            // Another secret of the daemon's environment is sent, or none.
            let shown = |name: &Option<String>| name.clone().unwrap_or_else(|| "none".to_owned());
            let direction = if new.key_env.is_some() { Direction::Loosened } else { Direction::Tightened };
            self.push(format!("{part} key_env"), shown(key_env), shown(&new.key_env), direction);
        }
        self.value(format!("{part} model"), model, &new.model);
        self.value(format!("{part} time_ms"), time_ms, &new.time_ms);
    }
}
