//! What programs may call, read from the manual that the engine prints: the one source for people, models and this check.

use std::collections::BTreeSet;

/// Functions whose answer is the answer of a program: without them it could say nothing.
const ANSWERS: [&str; 2] = ["deny", "hold"];

/// The functions of the toolbox, all of them or some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolbox {
    functions: Vec<Function>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Function {
    name: String,
    /// Signature and description, as the manual has them.
    line: String,
    offered: bool,
}

impl Toolbox {
    /// Reads the manual: lines of the form `` `name(parameters)`: description ``.
    #[must_use]
    pub fn read(manual: &str) -> Self {
        let function = |line: &str| {
            let (name, _) = line.strip_prefix('`')?.split_once('(')?;
            let plain = !name.is_empty() && name.chars().all(is_of_name);
            plain.then(|| Function { name: name.to_owned(), line: line.trim().to_owned(), offered: true })
        };
        Self { functions: manual.lines().filter_map(function).collect() }
    }

    /// The same with the answers alone: what a model has without a toolbox.
    #[must_use]
    pub fn answers_alone(mut self) -> Self {
        for function in &mut self.functions {
            function.offered = ANSWERS.contains(&function.name.as_str());
        }
        self
    }

    /// What is offered, a line a function.
    #[must_use]
    pub fn manual(&self) -> String {
        let lines = self.functions.iter().filter(|one| one.offered).map(|one| one.line.as_str());
        lines.collect::<Vec<_>>().join("\n")
    }

    /// A function of the toolbox that a program uses and that is not offered. Names that nobody knows are the engine's to
    /// refuse.
    pub(super) fn not_offered(&self, program: &str) -> Option<&str> {
        let hidden = self.functions.iter().filter(|one| !one.offered);
        let used = names(program);
        hidden.map(|one| one.name.as_str()).find(|name| used.contains(name))
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Names that a program uses and does not define, without those in texts and comments and after a dot.
fn names(program: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    let mut defined = BTreeSet::new();
    let (mut rest, mut before, mut after_def) = (program, '\n', false);
    while let Some(c) = rest.chars().next() {
        let length = if c == '#' {
            rest.find('\n').unwrap_or(rest.len())
        } else if c == '"' || c == '\'' {
            text_length(rest, c)
        } else if is_of_name(c) {
            let length = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
            let name = rest.get(..length).unwrap_or_default();
            if after_def {
                defined.insert(name);
            } else if before != '.' {
                found.insert(name);
            }
            after_def = name == "def";
            length
        } else {
            c.len_utf8()
        };
        if !c.is_whitespace() {
            before = c;
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    found.retain(|name| !defined.contains(name));
    found
}

/// The length of a text from its opening quote to its closing one, or to the end.
fn text_length(rest: &str, quote: char) -> usize {
    let triple = quote.to_string().repeat(3);
    let closing = if rest.starts_with(&triple) { triple } else { quote.to_string() };
    let mut at = closing.len();
    while let Some(next) = rest.get(at..).and_then(|rest| rest.chars().next()) {
        if next == '\\' {
            at += 1 + rest.get(at + 1..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        } else if rest.get(at..).is_some_and(|rest| rest.starts_with(&closing)) {
            return at + closing.len();
        } else {
            at += next.len_utf8();
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANUAL: &str = "### Answers\n\n`deny(reasons, resources=None)`: Denies.\n\n`hold(reasons)`: Holds.\n\n\
        ### Access\n\n`check_access(allowed, needed)`: What is not allowed; see `columns(action)`.\n";

    #[test]
    fn the_manual_is_read_and_what_is_not_offered_is_found() {
        let all = Toolbox::read(MANUAL);
        assert_eq!(all.manual().lines().count(), 3);
        let program = "def check(action, run, principal):\n    return deny(check_access({}, {}))\n";
        assert_eq!(all.not_offered(program), None);
        let few = all.answers_alone();
        assert_eq!(few.manual().lines().count(), 2);
        assert_eq!(few.not_offered(program), Some("check_access"));
        assert_eq!(few.not_offered("f = check_access\n"), Some("check_access"));
    }

    #[test]
    fn texts_comments_attributes_and_own_functions_are_not_calls() {
        let few = Toolbox::read(MANUAL).answers_alone();
        for program in [
            "# check_access(x)\n",
            "x = \"check_access(\"\n",
            "x = 'a\\'check_access('\n",
            "x = \"\"\"a\n\"check_access(\"\n\"\"\"\n",
            "x = y.check_access\n",
            "def check_access(a, b):\n    return []\nx = check_access({}, {})\n",
        ] {
            assert_eq!(few.not_offered(program), None, "{program}");
        }
        assert_eq!(few.not_offered("x = \"\" + check_access\n"), Some("check_access"));
    }
}
