//! Contracts, and the model that they may ask.

use super::super::{ContractJudge, ContractModel, ContractSettings, OnFail};
use super::{Direction, Found};

impl Found {
    pub(super) fn contracts(&mut self, old: &[ContractSettings], new: &[ContractSettings]) {
        let there =
            |all: &[ContractSettings], one: &ContractSettings| all.iter().any(|other| other.name == one.name);
        let part = |contract: &ContractSettings| format!("contract `{}`", contract.name);
        for contract in old {
            match new.iter().find(|other| other.name == contract.name) {
                Some(other) => self.contract(&part(contract), contract, other),
                None => self.push(part(contract), "there".into(), "gone".into(), Direction::Loosened),
            }
        }
        for contract in new.iter().filter(|contract| !there(old, contract)) {
            self.push(part(contract), "none".into(), "added".into(), Direction::Tightened);
        }
    }

    fn contract(&mut self, part: &str, old: &ContractSettings, new: &ContractSettings) {
        let ContractSettings { name: _, statement, on_fail, surfaces, tools, judge, strategy } = old;
        self.value(format!("{part} statement"), statement, &new.statement);
        let rank = |on_fail: OnFail| on_fail as u32;
        self.ranked(format!("{part} on_fail"), rank(*on_fail), rank(new.on_fail), on_fail, &new.on_fail);
        self.scope(&format!("{part} surfaces"), surfaces, &new.surfaces, "all");
        if tools.is_empty() != new.tools.is_empty() {
            self.value(format!("{part} tools"), tools, &new.tools);
        } else {
            self.scope(&format!("{part} tools"), tools, &new.tools, "none");
        }
        if *judge != new.judge {
            // Without a judge, what code cannot decide fails.
            let direction = match (judge, &new.judge) {
                (ContractJudge::Nobody, _) => Direction::Loosened,
                (_, ContractJudge::Nobody) => Direction::Tightened,
                _ => Direction::Changed,
            };
            self.push(format!("{part} judge"), shown(judge), shown(&new.judge), direction);
        }
        if *strategy != new.strategy {
            let direction = match (strategy, new.strategy) {
                (None, _) => Direction::Loosened,
                (_, None) => Direction::Tightened,
                _ => Direction::Changed,
            };
            let word = |strategy: Option<&str>| strategy.unwrap_or("none").to_owned();
            self.push(format!("{part} repair"), word(*strategy), word(new.strategy), direction);
        }
    }

    /// A list that limits: empty, it limits nothing.
    fn scope(&mut self, part: &str, old: &[String], new: &[String], empty: &str) {
        match (old.is_empty(), new.is_empty()) {
            (true, false) => self.push(part, empty.to_owned(), new.join(", "), Direction::Loosened),
            (false, true) => self.push(part, old.join(", "), empty.to_owned(), Direction::Tightened),
            _ => self.list(part, old, new, false),
        }
    }

    pub(super) fn contract_model(&mut self, old: Option<&ContractModel>, new: Option<&ContractModel>) {
        let (old, new) = match (old, new) {
            (Some(old), Some(new)) => (old, new),
            (None, None) => return,
            (None, Some(new)) => {
                return self.push("[contracts]", "none".into(), new.endpoint.clone(), Direction::Loosened);
            }
            (Some(old), None) => {
                return self.push("[contracts]", old.endpoint.clone(), "gone".into(), Direction::Tightened);
            }
        };
        let ContractModel { endpoint, model, key_env, calls, time_s } = old;
        if *endpoint != new.endpoint {
            // Texts go to another server.
            let (old, new) = (endpoint.clone(), new.endpoint.clone());
            self.push("[contracts] endpoint", old, new, Direction::Loosened);
        }
        if *key_env != new.key_env {
            // Another secret of the daemon's environment is sent, or none.
            let shown = |name: &Option<String>| name.clone().unwrap_or_else(|| "none".to_owned());
            let direction = if new.key_env.is_some() { Direction::Loosened } else { Direction::Tightened };
            self.push("[contracts] key_env", shown(key_env), shown(&new.key_env), direction);
        }
        self.value("[contracts] model", model, &new.model);
        self.limit("[contracts] calls", Some((*calls).into()), Some(new.calls.into()));
        self.limit("[contracts] time_s", Some((*time_s).into()), Some(new.time_s.into()));
    }
}

fn shown(judge: &ContractJudge) -> String {
    match judge {
        ContractJudge::Nobody => "none".to_owned(),
        ContractJudge::Model => "the model".to_owned(),
        ContractJudge::Program(path) => path.clone(),
    }
}
