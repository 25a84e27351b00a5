//! What runs contained, and what it may do then.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Direction, Found};
use crate::bundle::{Below, ContainSettings, McpServer};
use crate::profile::{Background, Git, Level, Limits, Network, Profile, Sockets};

impl Found {
    pub(super) fn contain(&mut self, old: &ContainSettings, new: &ContainSettings) {
        let ContainSettings { default, below, more, tools, commands, servers, profiles, places: _ } = old;
        self.chosen("[contain] default", Some(default), Some(&new.default));
        let rank = |below: Below| below as u32;
        self.ranked("[contain] below", rank(*below), rank(new.below), below, &new.below);
        self.ranked("[contain] more", *more as u32, new.more as u32, more, &new.more);
        self.all_chosen("[contain.tools]", tools, &new.tools);
        self.all_chosen("[contain.commands]", commands, &new.commands);
        self.profiles("profile", profiles, &new.profiles, Direction::Changed);
        self.profiles("contained server", servers, &new.servers, Direction::Tightened);
    }

    /// Which servers the daemon stands in front of, and where they are.
    pub(super) fn servers(&mut self, old: &BTreeMap<String, McpServer>, new: &BTreeMap<String, McpServer>) {
        let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
        names.sort();
        names.dedup();
        for name in names {
            self.value(format!("server `{name}`"), &old.get(name), &new.get(name));
        }
    }

    fn all_chosen(
        &mut self,
        part: &str,
        old: &BTreeMap<String, Option<String>>,
        new: &BTreeMap<String, Option<String>>,
    ) {
        let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
        names.sort();
        names.dedup();
        for name in names {
            self.chosen(&format!("{part} `{name}`"), old.get(name), new.get(name));
        }
    }

    /// A profile by its name, none, or nothing that is said.
    fn chosen(&mut self, part: &str, old: Option<&Option<String>>, new: Option<&Option<String>>) {
        if old == new {
            return;
        }
        let shown = |choice: Option<&Option<String>>| match choice {
            None => "nothing said".to_owned(),
            Some(None) => "none".to_owned(),
            Some(Some(name)) => format!("`{name}`"),
        };
        let direction = match (old, new) {
            (_, Some(None)) => Direction::Loosened,
            (Some(None), Some(Some(_))) => Direction::Tightened,
            _ => Direction::Changed,
        };
        self.push(part, shown(old), shown(new), direction);
    }

    fn profiles(
        &mut self,
        part: &str,
        old: &BTreeMap<String, Profile>,
        new: &BTreeMap<String, Profile>,
        added: Direction,
    ) {
        for (name, profile) in old {
            let part = format!("{part} `{name}`");
            match new.get(name) {
                Some(other) => self.profile(&part, profile, other),
                None if added == Direction::Tightened => {
                    self.push(part, "there".into(), "gone".into(), Direction::Loosened);
                }
                None => self.push(part, "there".into(), "gone".into(), Direction::Changed),
            }
        }
        for name in new.keys().filter(|name| !old.contains_key(*name)) {
            self.push(format!("{part} `{name}`"), "none".into(), "added".into(), added);
        }
    }

    fn profile(&mut self, part: &str, old: &Profile, new: &Profile) {
        let Profile {
            name: _,
            version: _,
            level,
            read,
            execute,
            write,
            network,
            sockets,
            background,
            git,
            remotes,
            watch,
            environment,
            limits,
        } = old;
        let of = |field: &str| format!("{part} {field}");
        let rank = |level: Level| level as u32;
        self.ranked(of("level"), rank(*level), rank(new.level), level, &new.level);
        let names = |paths: &[PathBuf]| -> Vec<String> {
            paths.iter().map(|path| path.display().to_string()).collect()
        };
        self.list(&of("read"), &names(read), &names(&new.read), true);
        self.list(&of("execute"), &names(execute), &names(&new.execute), true);
        self.list(&of("write"), &names(write), &names(&new.write), true);
        self.network(&of("network"), network, &new.network);
        let kind = |sockets: &Sockets| match sockets {
            Sockets::None => (1, Sockets::None),
            Sockets::Own | Sockets::Paths(_) => (0, Sockets::Own),
        };
        let ((old_rank, old_kind), (new_rank, new_kind)) = (kind(sockets), kind(&new.sockets));
        self.ranked(of("sockets"), old_rank, new_rank, &old_kind, &new_kind);
        self.list(&of("sockets"), &names(sockets.paths()), &names(new.sockets.paths()), true);
        let keeps = |background: Background| background == Background::Keep;
        self.flag(of("background keep"), keeps(*background), keeps(new.background), false);
        let works = |git: Git| git == Git::Works;
        self.flag(of("git works"), works(*git), works(new.git), false);
        self.list(&of("remotes"), remotes, &new.remotes, true);
        self.ranked(of("watch"), *watch as u32, new.watch as u32, watch, &new.watch);
        self.list(&of("environment"), environment, &new.environment, true);
        let Limits {
            wall_seconds,
            cpu_seconds,
            processes,
            file_bytes,
            memory_bytes,
            output_bytes,
            background_seconds,
        } = *limits;
        self.limit(of("memory_bytes"), memory_bytes, new.limits.memory_bytes);
        self.limit(of("background_seconds"), background_seconds, new.limits.background_seconds);
        self.limit(of("wall_seconds"), wall_seconds, new.limits.wall_seconds);
        self.limit(of("cpu_seconds"), cpu_seconds, new.limits.cpu_seconds);
        self.limit(of("processes"), processes, new.limits.processes);
        self.limit(of("file_bytes"), file_bytes, new.limits.file_bytes);
        self.limit(of("output_bytes"), output_bytes, new.limits.output_bytes);
    }

    fn network(&mut self, part: &str, old: &Network, new: &Network) {
        match (old, new) {
            (Network::Hosts(old), Network::Hosts(new)) => self.list(part, old, new, true),
            (Network::Loopback(_), Network::Loopback(_)) => self.value(part, old, new),
            _ => {
                let rank = |network: &Network| match network {
                    Network::Hosts(_) => 0,
                    Network::Loopback(_) => 1,
                    Network::None => 2,
                };
                if rank(old) != rank(new) {
                    let direction =
                        if rank(new) < rank(old) { Direction::Loosened } else { Direction::Tightened };
                    self.push(part, format!("{old:?}"), format!("{new:?}"), direction);
                }
            }
        }
    }
}
