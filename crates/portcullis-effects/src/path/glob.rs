//! Patterns in paths, one component at a time.
//!
//! Questions asked of them are *may* questions: may the pattern match a name that another pattern matches? A
//! bracket expression counts as any character, a brace group that has too many expansions as any text.

/// Most expansions of braces that are looked at.
const EXPANSIONS_MAX: usize = 64;
/// Longest component that is matched as a pattern, in characters; file systems take 255.
const COMPONENT_MAX: usize = 256;

/// Whether the component stands for several names.
pub(super) fn is_glob(component: &str) -> bool {
    component.contains(['*', '?', '[', ']', '{', '}'])
}

/// Whether the pattern may match `..`, or is a piece of a pattern that holds a slash.
pub(super) fn may_leave(component: &str) -> bool {
    if !is_glob(component) {
        return false;
    }
    let extended = component.contains('(') && component.contains("..");
    extended
        || !is_balanced(component)
        || has_range_of_signs(component)
        || expansions(component).is_none_or(|all| {
            all.iter().any(|name| name.starts_with('.') && may_match(&tokens(name), &tokens("..")))
        })
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

/// The component with its braces expanded; none if there are too many.
fn expansions(component: &str) -> Option<Vec<String>> {
    let mut done = Vec::new();
    let mut open = vec![component.to_owned()];
    while let Some(text) = open.pop() {
        if done.len() + open.len() >= EXPANSIONS_MAX {
            return None;
        }
        match innermost(&text) {
            Some((before, group, after)) => {
                for choice in group.split(',') {
                    open.push(format!("{before}{choice}{after}"));
                }
            }
            None => done.push(text),
        }
    }
    Some(done)
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
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        match c {
            '*' if tokens.last() == Some(&Token::Any) => {}
            '*' => tokens.push(Token::Any),
            '?' => tokens.push(Token::AnyOne),
            // A closing bracket right after the opening one belongs to the set.
            '[' => match rest.char_indices().skip(1).find(|&(_, c)| c == ']') {
                Some((at, _)) => {
                    tokens.push(Token::AnyOne);
                    rest = rest.get(at + 1..).unwrap_or_default();
                }
                None => tokens.push(Token::One('[')),
            },
            c => tokens.push(Token::One(c)),
        }
    }
    tokens
}

/// Whether some name is matched by both.
fn may_match(a: &[Token], b: &[Token]) -> bool {
    agreement(a, b).is_some()
}

/// How many letters of `b` can be letters of `a` in a name that both match; none if no name is matched by both.
/// Cost is the product of the lengths.
fn agreement(a: &[Token], b: &[Token]) -> Option<usize> {
    if a.len() > COMPONENT_MAX || b.len() > COMPONENT_MAX {
        return Some(b.len());
    }
    // Row by row: the agreement of the first tokens of `a` with the first tokens of `b`.
    let mut row: Vec<Option<usize>> = Vec::new();
    for i in 0..=a.len() {
        let left = i.checked_sub(1).and_then(|i| a.get(i)).copied();
        let mut next: Vec<Option<usize>> = Vec::with_capacity(b.len() + 1);
        for j in 0..=b.len() {
            let right = j.checked_sub(1).and_then(|j| b.get(j)).copied();
            let above = row.get(j).copied().flatten();
            let before = next.last().copied().flatten();
            let both = j.checked_sub(1).and_then(|j| row.get(j)).copied().flatten();
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
        }
        row = next;
    }
    row.last().copied().flatten()
}

/// Whether a component of a path may be one that `secret` describes; both in lower case.
///
/// A pattern in the path has to show that it is meant: `*.json` may match `credentials.json` and is not about
/// it, `cred*.json` is. It is meant if half of the secret's letters stand in it. In a folder that is named
/// (not `strict`) any match will do, except that names with a leading dot need a pattern with one.
pub(super) fn may_be(component: &str, secret: &str, strict: bool) -> bool {
    if !is_glob(component) {
        return component == secret || is_glob(secret) && may_match(&tokens(component), &tokens(secret));
    }
    let Some(expanded) = expansions(component) else { return true };
    let secret_tokens = tokens(secret);
    let letters = secret_tokens.iter().filter(|token| matches!(token, Token::One(_))).count();
    expanded.iter().any(|name| {
        let Some(agreed) = agreement(&tokens(name), &secret_tokens) else { return false };
        let any_match_will_do = match (name.starts_with('.'), secret.starts_with('.')) {
            // `.*`, `.[a-z]*` and the like: all hidden names.
            (true, true) if strict => {
                !tokens(name).iter().any(|token| matches!(token, Token::One(c) if *c != '.'))
            }
            (true, true) => true,
            (false, true) => false,
            _ => !strict,
        };
        any_match_will_do || agreed * 2 >= letters
    })
}
