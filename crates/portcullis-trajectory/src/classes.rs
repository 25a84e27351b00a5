//! The classes of words that grammar needs to find an order.

/// What a word is, or is good for; several at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Classes(u64);

impl Classes {
    /// Begins a noun: *the*, *my*.
    pub const DETERMINER: Self = Self(1);
    /// *my*, *your*.
    pub const POSSESSIVE: Self = Self(1 << 1);
    /// Of the speaker: *I*, *me*, *my*.
    pub const FIRST: Self = Self(1 << 2);
    /// Stands as the object of a verb: *it*, *him*, *everything*.
    pub const OBJECT: Self = Self(1 << 3);
    /// Of a closed class: never a verb of doing, never a thing.
    pub const FUNCTION: Self = Self(1 << 4);
    /// May stand before the verb of an order: *please*, *then*.
    pub const SKIP: Self = Self(1 << 5);
    /// *please*.
    pub const POLITE: Self = Self(1 << 6);
    /// *must*, *should*.
    pub const MODAL: Self = Self(1 << 7);
    /// A verb may follow after *to*: *need to*.
    pub const WANTS: Self = Self(1 << 8);
    /// *do* the tasks.
    pub const DELEGATE_VERB: Self = Self(1 << 9);
    /// do the *tasks*.
    pub const DELEGATE_NOUN: Self = Self(1 << 10);
    /// *accordingly*.
    pub const DELEGATE_WORD: Self = Self(1 << 11);
    /// Says nothing about what a tool is for.
    pub const GENERIC: Self = Self(1 << 12);
    /// Names an argument that holds a text.
    pub const CONTENT: Self = Self(1 << 13);
    /// Names something private.
    pub const SECRETIVE: Self = Self(1 << 14);
    /// A verb that says little without its noun.
    pub const VAGUE: Self = Self(1 << 15);
    /// *can* you: asks for something.
    pub const ASKS: Self = Self(1 << 16);
    /// Joins verbs: *and*.
    pub const JOINS: Self = Self(1 << 17);
    /// Introduces a tool without saying what it does.
    pub const TOOLISH: Self = Self(1 << 18);
    /// Names a credential.
    pub const CREDENTIAL: Self = Self(1 << 19);
    /// Its change is grave.
    pub const GRAVE: Self = Self(1 << 20);
    /// Puts something on record.
    pub const ENTRY: Self = Self(1 << 21);
    /// Names an argument that says to whom, or where to.
    pub const TARGET: Self = Self(1 << 22);
    /// What a model or agent is called.
    pub const AGENT: Self = Self(1 << 23);
    /// *not*, *without*.
    pub const NEGATION: Self = Self(1 << 24);
    /// Names what someone may have written: *mail*, *checklist*.
    pub const SOURCE: Self = Self(1 << 25);
    /// Names an argument whose value says what is done.
    pub const OPERATION: Self = Self(1 << 26);
    /// Names an argument that holds a file which goes along.
    pub const ATTACHMENT: Self = Self(1 << 27);
    /// Makes things safer.
    pub const SAFE: Self = Self(1 << 28);
    /// Someone who may do more once added.
    pub const POWER: Self = Self(1 << 29);
    /// Names an argument of an order or a payment.
    pub const AMOUNT: Self = Self(1 << 30);
    /// A verb that leaves open what is to be done.
    pub const OPEN: Self = Self(1 << 31);
    /// Names nothing grave, though its stem is that of what does.
    pub const EVERYDAY: Self = Self(1 << 32);
    /// As an argument it narrows down what is asked for, unless the tool says that it changes something.
    pub const QUERY: Self = Self(1 << 33);
    /// Never a verb in a tool's name, though its stem is one's.
    pub const NOUN: Self = Self(1 << 34);
    /// Lets someone in when it is open.
    pub const ENTRANCE: Self = Self(1 << 35);
    /// Says that something has been decided: *agreed*, *waived*.
    pub const SETTLED: Self = Self(1 << 36);
    /// Says as what something is to be taken: *counts* as.
    pub const TAKEN: Self = Self(1 << 37);
    /// Classes whose words count in all their forms.
    pub const IN_ALL_FORMS: Self = Self(
        Self::GENERIC.0
            | Self::CREDENTIAL.0
            | Self::CONTENT.0
            | Self::SECRETIVE.0
            | Self::VAGUE.0
            | Self::GRAVE.0
            | Self::ENTRY.0
            | Self::TARGET.0
            | Self::AGENT.0
            | Self::SOURCE.0
            | Self::SAFE.0
            | Self::OPEN.0
            | Self::POWER.0
            | Self::AMOUNT.0
            | Self::OPERATION.0
            | Self::ATTACHMENT.0
            | Self::DELEGATE_VERB.0
            | Self::DELEGATE_NOUN.0
            | Self::ENTRANCE.0,
    );

    /// The class of this name in the data.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "determiner" => Self::DETERMINER,
            "possessive" => Self::POSSESSIVE,
            "first" => Self::FIRST,
            "object" => Self::OBJECT,
            "function" => Self::FUNCTION,
            "skip" => Self::SKIP,
            "polite" => Self::POLITE,
            "modal" => Self::MODAL,
            "wants" => Self::WANTS,
            "delegate_verb" => Self::DELEGATE_VERB,
            "delegate_noun" => Self::DELEGATE_NOUN,
            "delegate_word" => Self::DELEGATE_WORD,
            "generic" => Self::GENERIC,
            "content" => Self::CONTENT,
            "secretive" => Self::SECRETIVE,
            "vague" => Self::VAGUE,
            "asks" => Self::ASKS,
            "joins" => Self::JOINS,
            "toolish" => Self::TOOLISH,
            "credential" => Self::CREDENTIAL,
            "grave" => Self::GRAVE,
            "entry" => Self::ENTRY,
            "target" => Self::TARGET,
            "agent" => Self::AGENT,
            "negation" => Self::NEGATION,
            "source" => Self::SOURCE,
            "open" => Self::OPEN,
            "power" => Self::POWER,
            "amount" => Self::AMOUNT,
            "safe" => Self::SAFE,
            "operation" => Self::OPERATION,
            "attachment" => Self::ATTACHMENT,
            "everyday" => Self::EVERYDAY,
            "query" => Self::QUERY,
            "noun" => Self::NOUN,
            "entrance" => Self::ENTRANCE,
            "settled" => Self::SETTLED,
            "taken" => Self::TAKEN,
            _ => return None,
        })
    }

    /// Whether it is any of these.
    pub const fn is(self, any: Self) -> bool {
        self.0 & any.0 != 0
    }

    /// Both together.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
