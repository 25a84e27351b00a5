//! From a [`Spec`] and the arguments to effects.

use portcullis_core::effect::{Effect, Resource, ResourceKind, Verb};

use super::super::interpreter::{Call, Interpreter};
use super::super::word::Word;
use super::options::{Parsed, Style, is_no};
use super::spec::{Act, Operands, Opt, Role, Spec};
use super::{environment, git, packages, words};

/// Adds the effects of a call with these arguments. False when not all of it is understood.
pub(super) fn run(spec: &Spec, call: &Call<'_>, shell: &mut Interpreter<'_, '_>) -> bool {
    read(spec, Parsed::new(call, call.args, &[spec.options], before_subcommand(spec)), &[], shell)
}

/// The options before a subcommand end with it.
fn before_subcommand(spec: &Spec) -> Style {
    Style { stops: spec.style.stops || !spec.subcommands.is_empty(), ..spec.style }
}

/// The subcommand of a call.
pub(super) fn subcommand<'w>(spec: &Spec, call: &Call<'w>) -> Option<&'w str> {
    if spec.subcommands.is_empty() && !spec.has_verb {
        return None;
    }
    let parsed = Parsed::new(call, call.args, &[spec.options], Style { stops: true, ..spec.style });
    let at = call.args.len().checked_sub(parsed.operands.len())?;
    call.args.get(at)?.value.as_deref()
}

fn read(spec: &Spec, parsed: Parsed<'_>, around: &[&'static [Opt]], shell: &mut Interpreter<'_, '_>) -> bool {
    let named = parsed.operands.first().and_then(|word| word.value.as_deref());
    let subcommand = named.and_then(|name| spec.subcommands.iter().find(|own| own.is_named(name)));
    let alone = parsed.operands.is_empty();
    let Some(subcommand) = subcommand else {
        let understood = parsed.effects(spec, shell);
        // Without a subcommand a program says how it is used; one that is not listed can do anything.
        return understood && (spec.subcommands.is_empty() || spec.model.is_some() || alone);
    };
    let around = [&[spec.options], around].concat();
    let listed = [&[subcommand.options], around.as_slice()].concat();
    let mut inner = Parsed::new(parsed.call, parsed.rest(1), &listed, before_subcommand(subcommand));
    inner.subcommand = format!("{} {}", parsed.subcommand, named.unwrap_or_default()).trim().to_owned();
    inner.unlisted |= parsed.unlisted && !spec.lenient;
    if parsed.unlisted {
        shell.sink.presume();
    }
    inner.found.splice(0..0, parsed.found);
    read(subcommand, inner, &around, shell)
}

impl Parsed<'_> {
    fn effects(&self, spec: &Spec, shell: &mut Interpreter<'_, '_>) -> bool {
        // The value of an option that is not listed may look like the option for help.
        if !self.unlisted && self.any_role(|role| matches!(role, Role::Help)) {
            return true;
        }
        let mut operands = spec.operands;
        for found in &self.found {
            if let (Role::Does(act) | Role::Operands(_, act), Some(value)) = (found.opt.role, &found.value) {
                self.act(act, value, shell);
            }
            match found.opt.role {
                Role::Operands(other, _) => operands = other,
                Role::Also(acts) => self.always(acts, shell),
                _ => {}
            }
        }
        self.always(spec.always, shell);
        self.meet(operands, &self.operands, shell);
        if self.unlisted && !spec.inert {
            shell.sink.presume();
        }
        let understood = spec.model.is_none_or(|model| model(self, shell));
        understood && (spec.lenient || !self.unlisted)
    }

    /// Acts on given words.
    pub(super) fn always(&self, acts: &[(Act, &'static str)], shell: &mut Interpreter<'_, '_>) {
        for (act, word) in acts {
            self.act_plainly(*act, &self.literal(word), &[], shell);
        }
    }

    fn meet(&self, operands: Operands, given: &[Word], shell: &mut Interpreter<'_, '_>) {
        match operands {
            Operands::EachOr(act, default) if given.is_empty() => {
                self.act(act, &self.literal(default), shell);
            }
            Operands::Each(act) | Operands::EachOr(act, _) => self.act_on_each(act, given, shell),
            Operands::First(act, others) => {
                if let Some((first, rest)) = given.split_first() {
                    self.act(act, first, shell);
                    self.meet(*others, rest, shell);
                }
            }
            Operands::Into { from, to } => {
                let targets: Vec<&Word> = self.with_role(|role| matches!(role, Role::Target)).collect();
                match given.split_last() {
                    Some((last, sources)) if targets.is_empty() && !sources.is_empty() => {
                        self.act_on_each(from, sources, shell);
                        self.act(to, last, shell);
                    }
                    _ => {
                        self.act_on_each(from, given, shell);
                        targets.into_iter().for_each(|target| self.act(to, target, shell));
                    }
                }
            }
        }
    }

    /// A word that the arguments imply.
    pub(super) fn literal(&self, text: &str) -> Word {
        words::literal(text, self.call.range.clone())
    }

    fn with_role(&self, is: impl Fn(&Role) -> bool) -> impl Iterator<Item = &Word> {
        self.found.iter().filter(move |found| is(&found.opt.role)).filter_map(|found| found.value.as_ref())
    }

    /// The path as the program sees it, after options such as `-C`.
    pub(super) fn path(&self, word: &Word) -> Word {
        let bases = self.with_role(|role| matches!(role, Role::Base));
        let base = bases.cloned().reduce(|outer, inner| words::below(&outer, &inner));
        base.map_or_else(|| word.clone(), |base| words::below(&base, word))
    }

    /// Whether nothing is changed, only shown.
    pub(super) fn is_dry(&self) -> bool {
        self.found.iter().any(|found| {
            let taken_back = found.value.as_ref().is_some_and(|value| is_no(words::text(value)));
            matches!(found.opt.role, Role::Dry) && !taken_back
        })
    }

    /// An act on each of the words.
    pub(super) fn act_on_each(&self, act: Act, words: &[Word], shell: &mut Interpreter<'_, '_>) {
        for word in words {
            self.act(act, word, shell);
        }
    }

    /// An act on a word, with the attributes that options give.
    pub(super) fn act(&self, act: Act, word: &Word, shell: &mut Interpreter<'_, '_>) {
        let mut attributes = Vec::new();
        for found in &self.found {
            if let Role::Marks(marks) = found.opt.role {
                attributes.extend(marks);
            }
        }
        attributes.sort_unstable();
        attributes.dedup();
        self.act_plainly(act, word, &attributes, shell);
    }

    /// An act on a word, with these attributes.
    pub(super) fn act_plainly(
        &self,
        act: Act,
        word: &Word,
        attributes: &[&'static str],
        shell: &mut Interpreter<'_, '_>,
    ) {
        let text = words::text(word);
        let also =
            |more: &'static str| -> Vec<&'static str> { attributes.iter().copied().chain([more]).collect() };
        match act {
            Act::Text => {}
            Act::Path(_) | Act::Tree(_) | Act::Upload if text == "-" || text.is_empty() => {}
            Act::Path(verb) => self.on_path(self.verb(verb), word, attributes, shell),
            Act::Tree(verb) => self.on_path(self.verb(verb), word, &also("recursive"), shell),
            Act::Upload => self.on_path(Verb::Read, word, &also("upload"), shell),
            Act::AtFile => {
                if let Some(file) = words::strip(word, "@") {
                    self.act_plainly(Act::Upload, &file, attributes, shell);
                }
            }
            Act::Place(verb) => match words::strip(word, "file://") {
                Some(path) => self.act_plainly(Act::Path(verb), &path, attributes, shell),
                None if text.contains("://") => shell.url(self.verb(verb), word, attributes),
                None => self.act_plainly(Act::Path(verb), word, attributes, shell),
            },
            Act::Url(_) | Act::Host(_) if text.is_empty() => {}
            Act::Url(verb) if text.starts_with(['/', '.', '~']) => {
                self.act_plainly(Act::Path(verb), word, attributes, shell);
            }
            Act::Url(verb) | Act::Host(verb) if text.contains("://") || text.starts_with("file:") => {
                self.act_plainly(Act::Place(verb), word, attributes, shell);
            }
            Act::Url(verb) => shell.url(self.verb(verb), &words::prefixed("http://", word), attributes),
            Act::Host(verb) => on_host(self.verb(verb), word, attributes, shell),
            Act::Named(verb, kind, prefix) => {
                shell.resource(self.verb(verb), kind, &words::prefixed(prefix, word), attributes);
            }
            Act::Secret(verb, prefix) => {
                let resource = Resource::new(ResourceKind::Setting, format!("{prefix}{text}"));
                shell.add(Effect::new(verb, resource.with("secret", true)), word.range.clone());
            }
            Act::Package(verb, ecosystem) => packages::package(verb, ecosystem, self, word, shell),
            Act::Repository(verb) => git::repository(verb, self, word, attributes, shell),
            Act::Script => shell.script(word),
            Act::Code(language) => shell.code(language, word),
            Act::Sql => shell.sql(word),
            Act::Environment(verb) => environment::read(verb, word, shell),
            Act::By(model) => model(word, shell),
            Act::All(acts) => {
                for act in acts {
                    self.act_plainly(*act, word, attributes, shell);
                }
            }
        }
    }

    /// An effect on a path. A tilde that is still there begins a part of a word, such as the value of an option: not
    /// all shells and programs leave it as it is.
    fn on_path(&self, verb: Verb, word: &Word, attributes: &[&'static str], shell: &mut Interpreter<'_, '_>) {
        let path = self.path(word);
        let home = shell.surroundings().home.map(ToOwned::to_owned);
        let below_home = words::strip(&path, "~").filter(|_| path.path().starts_with('~'));
        let path = match (below_home, home) {
            (Some(rest), Some(home)) if matches!(words::text(&rest).chars().next(), None | Some('/')) => {
                words::prefixed(&home, &rest)
            }
            _ => path,
        };
        // git clears what it has a copy of, and leaves its own folder alone.
        let with_all = attributes.contains(&"recursive") || self.call.program.ends_with("mv");
        shell.path_with(verb, &path, attributes);
        if verb == Verb::Delete && with_all && self.call.program != "git" {
            shell.delete_repository_in(&path, attributes);
        }
    }

    /// The verb, or reading where nothing is changed.
    pub(super) fn verb(&self, verb: Verb) -> Verb {
        match verb {
            Verb::Write | Verb::Delete | Verb::Configure | Verb::Send if self.is_dry() => Verb::Read,
            other => other,
        }
    }
}

/// An effect on a machine that is named without a scheme: `HOST`, `USER@HOST`, `HOST:PORT`.
fn on_host(verb: Verb, word: &Word, attributes: &[&'static str], shell: &mut Interpreter<'_, '_>) {
    let text = words::text(word);
    let (user, place) = text.rsplit_once('@').map_or((None, text), |(user, place)| (Some(user), place));
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port.parse::<u16>().ok()),
        _ => (place, None),
    };
    let found = crate::url::host_resource(host);
    let mut resource =
        found.unwrap_or_else(|| Resource::new(ResourceKind::Host, text).with("resolved", false));
    if word.value.is_none() {
        resource = resource.with("resolved", false);
    }
    if user.is_some_and(|user| user.contains(':')) {
        resource = resource.with("userinfo", true);
    }
    if let Some(port) = port {
        resource = resource.with("port", i64::from(port));
    }
    let effect = attributes.iter().fold(Effect::new(verb, resource), |effect, name| effect.with(name, true));
    shell.add(effect, word.range.clone());
}
