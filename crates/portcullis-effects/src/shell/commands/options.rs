//! Arguments taken apart by the options that a program lists, as `getopt_long` does it.
//!
//! Clusters of letters (`-rf`), values attached or apart (`-ofile`, `-o file`, `--out=file`, `--out file`), long
//! options cut short (`--recurs`), `--` as the end of options. An option that is not listed is remembered; the
//! words after it are read as if it took no value, so that a path among them is never missed.

use super::super::interpreter::Call;
use super::super::word::Word;
use super::opt::{Opt, Role, Takes};
use super::words;

/// How a program writes its options.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Style {
    /// The first operand ends the options: what follows belongs to another program.
    pub(super) stops: bool,
    /// Long options have one dash: `-name value`. Letters cannot be clustered.
    pub(super) single_dash: bool,
    /// An option counts only as it is listed: none is cut short or taken back, no `=` follows a letter, no number is
    /// a count, and a word that is not known completely may be any option.
    pub(super) exact: bool,
}

/// An option that was given.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) opt: &'static Opt,
    /// As it is listed.
    pub(super) name: &'static str,
    pub(super) value: Option<Word>,
}

/// Arguments taken apart.
#[derive(Debug)]
pub(in crate::shell) struct Parsed<'c> {
    pub(super) call: &'c Call<'c>,
    /// The name of the subcommand, empty without one.
    pub(super) subcommand: String,
    pub(super) found: Vec<Found>,
    pub(in crate::shell) operands: Vec<Word>,
    /// What follows an option such as `-exec`: a command with its arguments.
    pub(super) command: Vec<Word>,
    /// How many operands precede the first `--`.
    pub(super) dashes: Option<usize>,
    /// An option was given that is not listed.
    pub(in crate::shell) unlisted: bool,
}

impl<'c> Parsed<'c> {
    /// The options before the command that a program runs, or before the names that a builtin takes. Where they
    /// end decides what runs, so nothing is guessed.
    pub(in crate::shell) fn before_words(call: &'c Call<'c>, listed: &[&'static [Opt]]) -> Self {
        Self::new(call, call.args, listed, Style { stops: true, single_dash: false, exact: true })
    }

    /// Takes `args` apart by the options that are `listed`.
    pub(super) fn new(call: &'c Call<'c>, args: &[Word], listed: &[&'static [Opt]], style: Style) -> Self {
        let mut parsed = Self {
            call,
            subcommand: String::new(),
            found: Vec::new(),
            operands: Vec::new(),
            command: Vec::new(),
            dashes: None,
            unlisted: false,
        };
        parsed.read(args, listed, style);
        parsed
    }

    fn read(&mut self, args: &[Word], listed: &[&'static [Opt]], style: Style) {
        let mut rest = args.iter();
        while let Some(word) = rest.next() {
            let text = words::text(word);
            let number =
                !style.exact && text.strip_prefix('-').is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
            if text == "--" && (!style.stops || self.operands.is_empty()) {
                self.dashes = Some(self.operands.len());
                self.operands.extend(rest.cloned());
                return;
            } else if text == "-" || !text.starts_with('-') {
                self.operands.push(word.clone());
                if style.stops {
                    self.operands.extend(rest.cloned());
                    return;
                }
            } else if number && find(listed, text.get(..2).unwrap_or(text), true).is_none() {
                // `head -20`, `git log -5`: a count.
            } else {
                self.unlisted |= style.exact && word.value.is_none() && !text.contains('=');
                if text.starts_with("--") || style.single_dash || is_long_with_one_dash(listed, text) {
                    self.long(word, listed, style, &mut rest);
                } else {
                    self.cluster(word, listed, style, &mut rest);
                }
            }
        }
    }

    fn long<'w>(
        &mut self,
        word: &Word,
        listed: &[&'static [Opt]],
        style: Style,
        rest: &mut impl Iterator<Item = &'w Word>,
    ) {
        let attached = words::split(word, '=');
        let mut name = attached.as_ref().map_or(words::text(word), |(name, _)| words::text(name)).to_owned();
        if style.single_dash {
            name = format!("-{}", name.trim_start_matches('-'));
        }
        let attached = attached.map(|(_, value)| value);
        let Some((opt, name)) = find(listed, &name, style.single_dash || style.exact) else {
            let negated = name.strip_prefix("--no-").filter(|_| !style.exact).map(|name| format!("--{name}"));
            let negated = negated.and_then(|name| find(listed, &name, true));
            self.unlisted |= negated.is_none();
            if let Some((taken_back, _)) = negated {
                // Only what makes a call harmless is taken back: `--dry-run --no-dry-run`.
                self.found.retain(|found| {
                    !(matches!(found.opt.role, Role::Dry) && std::ptr::eq(found.opt, taken_back))
                });
            }
            return;
        };
        let value = match opt.takes {
            Takes::Rest => {
                self.command = attached.into_iter().chain(rest.cloned()).collect();
                None
            }
            Takes::Pair => rest.nth(1).cloned(),
            Takes::Value if attached.is_none() => rest.next().cloned(),
            Takes::Nothing
                if !style.exact && attached.as_ref().is_some_and(|value| is_no(words::text(value))) =>
            {
                return;
            }
            _ => attached,
        };
        self.found.push(Found { opt, name, value });
    }

    fn cluster<'w>(
        &mut self,
        word: &Word,
        listed: &[&'static [Opt]],
        style: Style,
        rest: &mut impl Iterator<Item = &'w Word>,
    ) {
        let text = words::text(word);
        for (at, letter) in text.char_indices().skip(1) {
            let Some((opt, name)) = find(listed, &format!("-{letter}"), true) else {
                self.unlisted = true;
                continue;
            };
            if opt.takes == Takes::Nothing {
                self.found.push(Found { opt, name, value: None });
                continue;
            }
            let attached = text.get(at + letter.len_utf8()..).unwrap_or_default();
            let value = attached.strip_prefix('=').filter(|_| !style.exact);
            let attached = value.unwrap_or(attached);
            let value = match (attached.is_empty(), opt.takes) {
                (_, Takes::Rest) => {
                    self.command = rest.cloned().collect();
                    None
                }
                (_, Takes::Pair) => rest.nth(1).cloned(),
                (true, Takes::Value) => rest.next().cloned(),
                (true, _) => None,
                (false, _) => Some(words::part(word, attached)),
            };
            self.found.push(Found { opt, name, value });
            return;
        }
    }

    /// Whether an option was given, by any of its names.
    pub(in crate::shell) fn has(&self, name: &str) -> bool {
        self.found.iter().any(|found| found.name == name)
    }

    /// Whether one of these options was given.
    pub(in crate::shell) fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.has(name))
    }

    /// The values of these options, in order.
    pub(in crate::shell) fn given<'p>(&'p self, names: &'p [&'p str]) -> impl Iterator<Item = &'p Word> {
        let named = self.found.iter().filter(|found| names.contains(&found.name));
        named.filter_map(|found| found.value.as_ref())
    }

    /// A copy of the values of these options, in order.
    pub(super) fn values(&self, names: &[&str]) -> Vec<Word> {
        self.given(names).cloned().collect()
    }

    /// Whether an option with that role was given.
    pub(super) fn any_role(&self, is: impl Fn(&Role) -> bool) -> bool {
        self.found.iter().any(|found| is(&found.opt.role))
    }

    /// The known part of the operand at that place, or nothing.
    pub(super) fn operand(&self, at: usize) -> &str {
        self.operands.get(at).map_or("", words::text)
    }

    /// The operands from that place on.
    pub(in crate::shell) fn rest(&self, from: usize) -> &[Word] {
        self.operands.get(from..).unwrap_or_default()
    }
}

/// Some programs have options such as `-nv` among their letters.
fn is_long_with_one_dash(listed: &[&'static [Opt]], text: &str) -> bool {
    text.len() > 2 && find(listed, text, true).is_some()
}

/// Whether the value of a flag takes it back.
pub(super) fn is_no(value: &str) -> bool {
    matches!(value, "false" | "0" | "no" | "none" | "off")
}

/// The option of that name; unless `exact`, a long one may be cut short.
fn find(listed: &[&'static [Opt]], name: &str, exact: bool) -> Option<(&'static Opt, &'static str)> {
    let with =
        |fits: &dyn Fn(&str) -> bool| {
            listed.iter().copied().flatten().find_map(|opt| {
                opt.names.split_ascii_whitespace().find(|own| fits(own)).map(|own| (opt, own))
            })
        };
    with(&|own| own == name).or_else(|| {
        let short = exact || !name.starts_with("--") || name.len() < 4;
        if short { None } else { with(&|own| own.starts_with(name)) }
    })
}
