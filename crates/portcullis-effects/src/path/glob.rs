//! Patterns in paths, one component at a time.
//!
//! Questions asked of them are *may* questions: may the pattern match a name that another pattern matches? A
//! bracket expression counts as any character, a brace group that has too many expansions as any text.

/// Most expansions of braces that are looked at in one component.
const EXPANSIONS_MAX: usize = 64;
/// Most bytes that the braces of one path expand to, steps in between included.
const EXPANDED_BYTES_MAX: usize = 8 << 10;
/// Longest component that is matched as a pattern, in characters; file systems take 255.
const COMPONENT_MAX: usize = 256;

/// Whether the component is a pattern for several names.
pub(super) fn is_glob(component: &str) -> bool {
    let mut signs =
        component.bytes().filter(|byte| matches!(byte, b'*' | b'?' | b'[' | b']' | b'{' | b'}' | b'('));
    // Nearly no component has any of them.
    signs.next().is_some_and(|first| first != b'(' || signs.any(|sign| sign != b'(') || has_group(component))
}

/// Whether it holds `@(…)` or one of its kind, which some shells take for a pattern.
fn has_group(component: &str) -> bool {
    component
        .match_indices('(')
        .any(|(at, _)| component.get(..at).is_some_and(|before| before.ends_with(['@', '+', '?', '*', '!'])))
}

/// Whether the pattern may match `..`, or is a piece of a pattern that holds a slash.
pub(super) fn may_leave(component: &str, left: &mut Expansion) -> bool {
    if !is_glob(component) {
        return false;
    }
    // A group that is not closed goes on behind a slash.
    has_group(component) && component.matches('(').count() != component.matches(')').count()
        || !is_balanced(component)
        || has_range_of_signs(component)
        || left.expand(component).is_none_or(|all| {
            all.iter().any(|name| may_be_dots(name) && may_match(&tokens(name), &tokens("..")))
        })
}

/// Whether the pattern names a dot to begin with; only then it matches names that do.
fn may_be_dots(name: &str) -> bool {
    name.starts_with('.') || name.contains('.') && has_group(name)
}

/// Whether some name may be matched by both patterns; braces are letters.
pub(crate) fn overlap(a: &str, b: &str) -> bool {
    may_match(&tokens(a), &tokens(b))
}

fn is_balanced(component: &str) -> bool {
    component.matches('{').count() == component.matches('}').count()
        && component.matches('[').count() == component.matches(']').count()
}

/// `{+..:}` runs over the dot and the slash.
fn has_range_of_signs(component: &str) -> bool {
    component.split('{').skip(1).any(|group| {
        let group = group.split('}').next().unwrap_or_default();
        group.split_once("..").is_some_and(|(from, to)| {
            !from.contains(',')
                && !to.contains(',')
                && !group.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
                || from.is_empty()
                || to.starts_with('.')
        })
    })
}

/// How much more the braces of a path may expand to.
#[derive(Debug)]
pub(super) struct Expansion {
    bytes: usize,
}

impl Expansion {
    /// For one path.
    pub(super) fn of_a_path() -> Self {
        Self { bytes: EXPANDED_BYTES_MAX }
    }

    /// The component with its braces expanded, or `None` if that is too much.
    fn expand(&mut self, component: &str) -> Option<Vec<String>> {
        let mut done = Vec::new();
        let mut open = vec![component.to_owned()];
        while let Some(text) = open.pop() {
            let Some((before, group, after)) = innermost(&text) else {
                done.push(text);
                continue;
            };
            for choice in group.split(',') {
                let bytes = before.len() + choice.len() + after.len();
                self.bytes = self.bytes.checked_sub(bytes)?;
                if done.len() + open.len() >= EXPANSIONS_MAX {
                    return None;
                }
                open.push(format!("{before}{choice}{after}"));
            }
        }
        Some(done)
    }
}

/// The first group without groups in it.
fn innermost(text: &str) -> Option<(&str, &str, &str)> {
    let close = text.find('}')?;
    let (head, after) = text.split_at_checked(close)?;
    let (before, group) = head.rsplit_once('{')?;
    Some((before, group, after.strip_prefix('}')?))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    /// That character.
    One(char),
    /// Any one character.
    AnyOne,
    /// Any characters.
    Any,
}

fn tokens(pattern: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = pattern;
    // Once a bracket stays open, so do all after it.
    let mut closes = true;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        match c {
            '@' | '+' | '?' | '*' | '!' if rest.starts_with('(') => {
                // Any text, which takes in what the group holds.
                rest = after_group(rest);
                if tokens.last() != Some(&Token::Any) {
                    tokens.push(Token::Any);
                }
            }
            '*' if tokens.last() == Some(&Token::Any) => {}
            '*' => tokens.push(Token::Any),
            '?' => tokens.push(Token::AnyOne),
            // A closing bracket right after the opening one belongs to the set.
            '[' if closes => match rest.char_indices().skip(1).find(|&(_, c)| c == ']') {
                Some((at, _)) => {
                    tokens.push(Token::AnyOne);
                    rest = rest.get(at + 1..).unwrap_or_default();
                }
                None => {
                    closes = false;
                    tokens.push(Token::One('['));
                }
            },
            c => tokens.push(Token::One(c)),
        }
    }
    tokens
}

/// What stands behind the group that a text begins with; nothing where it stays open.
fn after_group(text: &str) -> &str {
    let mut level = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => level += 1,
            ')' => level -= 1,
            _ => {}
        }
        if level == 0 {
            return text.get(at + c.len_utf8()..).unwrap_or_default();
        }
    }
    ""
}

/// Whether some name is matched by both.
fn may_match(a: &[Token], b: &[Token]) -> bool {
    agreement(a, b).is_some()
}

/// Whether the pattern matches a plain name. Most names are plain, so this needs no memory: a star first takes
/// nothing, and one letter more each time that what follows does not fit.
fn matches(name: &str, pattern: &[Token]) -> bool {
    if name.len() > COMPONENT_MAX && name.chars().count() > COMPONENT_MAX {
        return true;
    }
    let (mut rest, mut at) = (name.chars(), 0);
    let mut star = None;
    loop {
        let mut after = rest.clone();
        match (pattern.get(at), after.next()) {
            (None, None) => return true,
            (Some(Token::Any), _) => {
                at += 1;
                star = Some((rest.clone(), at));
            }
            (Some(Token::One(wanted)), Some(letter)) if *wanted == letter => (rest, at) = (after, at + 1),
            (Some(Token::AnyOne), Some(_)) => (rest, at) = (after, at + 1),
            _ => {
                let Some((mut taken, next)) = star else { return false };
                if taken.next().is_none() {
                    return false;
                }
                (rest, at) = (taken.clone(), next);
                star = Some((taken, next));
            }
        }
    }
}

/// How many letters of `b` can be letters of `a` in a name that both match, or `None` if no name is matched by both.
/// Cost is the product of the lengths.
fn agreement(a: &[Token], b: &[Token]) -> Option<usize> {
    if a.len() > COMPONENT_MAX || b.len() > COMPONENT_MAX {
        return Some(b.len());
    }
    let differ = |pair: (Option<&Token>, Option<&Token>)| matches!(pair, (Some(Token::One(a)), Some(Token::One(b))) if a != b);
    if differ((a.first(), b.first())) || differ((a.last(), b.last())) {
        return None;
    }
    // Row by row: the agreement of the first tokens of `a` with the first tokens of `b`.
    let mut row: Vec<Option<usize>> = Vec::with_capacity(b.len() + 1);
    let mut next: Vec<Option<usize>> = Vec::with_capacity(b.len() + 1);
    for left in std::iter::once(None).chain(a.iter().copied().map(Some)) {
        next.clear();
        let mut both = None;
        for (j, right) in std::iter::once(None).chain(b.iter().copied().map(Some)).enumerate() {
            let above = row.get(j).copied().flatten();
            let before = next.last().copied().flatten();
            let any = left == Some(Token::Any) || right == Some(Token::Any);
            next.push(match (left, right) {
                (None, None) => Some(0),
                (Some(Token::Any), None) => above,
                (None, Some(Token::Any)) => before,
                (None, _) | (_, None) => None,
                // The star ends here, or takes one more of the other side.
                _ if any => above.max(before),
                (Some(Token::One(a)), Some(Token::One(b))) => both.filter(|_| a == b).map(|score| score + 1),
                _ => both,
            });
            both = above;
        }
        std::mem::swap(&mut row, &mut next);
    }
    row.last().copied().flatten()
}

/// A name in a description of secrets.
#[derive(Debug)]
pub(super) struct Secret {
    text: String,
    pattern: Pattern,
}

impl Secret {
    /// Takes a name or pattern apart, which is in lower case and has no braces.
    pub(super) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), pattern: Pattern::new(text) }
    }

    /// Whether its name begins with a dot.
    pub(super) fn is_hidden(&self) -> bool {
        self.pattern.hidden
    }

    /// Whether it is that text.
    pub(super) fn is(&self, text: &str) -> bool {
        self.text == text
    }
}

/// A component of a path, ready to be asked about many secrets.
#[derive(Debug)]
pub(super) struct Component {
    text: String,
    /// What its braces expand to, or `None` if that is too much. A plain name has none.
    patterns: Option<Vec<Pattern>>,
    glob: bool,
}

impl Component {
    /// Takes a component apart; letters become small.
    pub(super) fn new(text: &str, left: &mut Expansion) -> Self {
        let text = if text.is_ascii() { text.to_ascii_lowercase() } else { text.to_lowercase() };
        let glob = is_glob(&text);
        let patterns = match glob {
            true => left.expand(&text).map(|all| all.iter().map(|name| Pattern::new(name)).collect()),
            false => Some(Vec::new()),
        };
        Self { text, patterns, glob }
    }

    /// Whether it is a pattern for several names.
    pub(super) fn is_glob(&self) -> bool {
        self.glob
    }

    /// Whether all that it may match was checked.
    pub(super) fn is_looked_through(&self) -> bool {
        self.patterns.is_some()
    }

    /// The text in small letters.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the component may be one that `secret` describes.
    ///
    /// A pattern in the path has to show that it is meant: `*.json` may match `credentials.json` and is not about
    /// it, `cred*.json` is. It is meant if half of the secret's letters are in it. In a folder that is named
    /// (not `strict`) any match will do, except that names with a leading dot need a pattern with one.
    #[inline]
    pub(super) fn may_be(&self, secret: &Secret, strict: bool) -> bool {
        let Some(patterns) = &self.patterns else { return true };
        if !self.glob {
            return self.text == secret.text || secret.pattern.glob && secret.pattern.matches(&self.text);
        }
        patterns.iter().any(|name| name.means(&secret.pattern, strict))
    }

    /// The same for a name that stands alone. Of that a pattern has to show more than the ending, however short the rest
    /// of it: `*.json` is about files of a kind.
    pub(super) fn may_be_alone(&self, name: &Secret) -> bool {
        let is_meant = |own: &Pattern| own.means(&name.pattern, true) && !own.is_the_ending_of(&name.pattern);
        match &self.patterns {
            Some(patterns) if self.glob => patterns.iter().any(is_meant),
            _ => self.may_be(name, true),
        }
    }
}

/// The components of one path, taken apart.
pub(super) fn taken_apart(components: &[String]) -> Vec<Component> {
    let mut left = Expansion::of_a_path();
    components.iter().map(|component| Component::new(component, &mut left)).collect()
}

/// A pattern without braces.
#[derive(Debug)]
struct Pattern {
    tokens: Vec<Token>,
    /// The last byte of every name that it matches, or `None` if that can be any.
    last: Option<u8>,
    /// How many of the tokens are letters.
    letters: usize,
    /// Whether it begins with a dot.
    hidden: bool,
    /// Whether it has letters that are no dots.
    named: bool,
    glob: bool,
}

impl Pattern {
    fn new(text: &str) -> Self {
        let tokens = tokens(text);
        let letters = tokens.iter().filter(|token| matches!(token, Token::One(_))).count();
        let named = tokens.iter().any(|token| matches!(token, Token::One(c) if *c != '.'));
        let last = match tokens.last() {
            Some(Token::One(_)) => text.bytes().last(),
            _ => None,
        };
        Self { letters, hidden: text.starts_with('.'), named, glob: is_glob(text), last, tokens }
    }

    /// Whether it matches a plain name.
    #[inline]
    fn matches(&self, name: &str) -> bool {
        // Most patterns say how a name ends, and most names end otherwise. Names that are too long may be anything.
        let ends = self.last.is_none() || self.last == name.bytes().last() || name.len() > COMPONENT_MAX;
        ends && matches(name, &self.tokens)
    }

    fn means(&self, secret: &Self, strict: bool) -> bool {
        let any_match_will_do = match (self.hidden, secret.hidden) {
            // `.*`, `.[a-z]*` and similar: all hidden names.
            (true, true) => !strict || !self.named,
            (false, true) => false,
            _ => !strict,
        };
        // Patterns with few letters agree in few.
        (any_match_will_do || self.letters * 2 >= secret.letters)
            && agreement(&self.tokens, &secret.tokens)
                .is_some_and(|agreed| any_match_will_do || agreed * 2 >= secret.letters)
    }

    /// Whether it is any text, and then what is behind the last dot of a name.
    fn is_the_ending_of(&self, name: &Self) -> bool {
        let dot = name.tokens.iter().rposition(|token| *token == Token::One('.'));
        let ending = dot.filter(|dot| *dot > 0).and_then(|dot| name.tokens.get(dot..));
        matches!((self.tokens.split_first(), ending), (Some((Token::Any, rest)), Some(ending)) if rest == ending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_name_is_matched_as_patterns_are() {
        let names = ["", "a", "ab", "aab", "abab", "ba", "b.a", "é", "aé", &"a".repeat(300)];
        let patterns =
            ["", "*", "a", "a*", "*a", "*ab", "a*b", "*a*b*", "?", "a?", "?*a", "[x]b", "*.a", "é*"];
        for name in names {
            for pattern in patterns {
                let (plain, both) = (tokens(name), tokens(pattern));
                assert_eq!(matches(name, &both), may_match(&plain, &both), "{name:?} {pattern:?}");
            }
        }
    }
}
