//! What a model of a program is made of: data.
//!
//! A [`Spec`] lists the options of a program as far as they change what it touches, and says what its operands
//! are. Programs with subcommands have a [`Spec`] for each. What a table cannot say is a function ([`Spec::by`]).

use super::super::interpreter::Interpreter;
pub(super) use super::opt::*;
use super::options::{Parsed, Style};

/// Effects that a table cannot tell. Returns false when the call is not understood.
pub(super) type Model = fn(&Parsed<'_>, &mut Interpreter<'_, '_>) -> bool;

/// The model of a program, or of one of its subcommands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spec {
    /// The names it goes by, separated by spaces.
    pub(super) names: &'static str,
    /// Its options.
    pub(super) options: &'static [Opt],
    /// What its operands are.
    pub(super) operands: Operands,
    /// What it does with any operands: an act and the word it is done to.
    pub(super) always: &'static [(Act, &'static str)],
    /// Models of its subcommands; the options above are then those before and after the subcommand.
    pub(super) subcommands: &'static [Spec],
    /// What the tables do not tell. Runs after them.
    pub(super) model: Option<Model>,
    /// How its options are written.
    pub(super) style: Style,
    /// The first operand says what to do, though it has no model of its own.
    pub(super) has_verb: bool,
    /// An option that is not listed cannot matter: it is a flag that touches nothing. Elsewhere such an option
    /// makes the call one that is not understood.
    pub(super) lenient: bool,
    /// Every edition of the program only tells something, whatever its options: none has to be listed, and one that is
    /// not is no doubt.
    pub(super) inert: bool,
}

/// Begins the model of a program.
pub(super) const fn spec(names: &'static str) -> Spec {
    Spec {
        names,
        options: &[],
        operands: Operands::Each(Act::Text),
        always: &[],
        subcommands: &[],
        model: None,
        style: Style { stops: false, single_dash: false, exact: false },
        has_verb: false,
        lenient: false,
        inert: false,
    }
}

impl Spec {
    pub(super) const fn options(mut self, options: &'static [Opt]) -> Self {
        self.options = options;
        self
    }

    /// Every operand meets with this act.
    pub(super) const fn each(mut self, act: Act) -> Self {
        self.operands = Operands::Each(act);
        self
    }

    pub(super) const fn operands(mut self, operands: Operands) -> Self {
        self.operands = operands;
        self
    }

    pub(super) const fn always(mut self, always: &'static [(Act, &'static str)]) -> Self {
        self.always = always;
        self
    }

    pub(super) const fn subcommands(mut self, subcommands: &'static [Self]) -> Self {
        self.subcommands = subcommands;
        self
    }

    pub(super) const fn by(mut self, model: Model) -> Self {
        self.model = Some(model);
        self
    }

    pub(super) const fn stops(mut self) -> Self {
        self.style.stops = true;
        self
    }

    pub(super) const fn single_dash(mut self) -> Self {
        self.style.single_dash = true;
        self
    }

    pub(super) const fn has_verb(mut self) -> Self {
        self.has_verb = true;
        self
    }

    pub(super) const fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }

    pub(super) const fn inert(mut self) -> Self {
        self.lenient = true;
        self.inert = true;
        self
    }

    /// Whether `name` is one of the names.
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.names.split_ascii_whitespace().any(|own| own == name)
    }
}
