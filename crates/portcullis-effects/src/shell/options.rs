//! Options of programs that run other programs: where they end decides what runs.

use super::word::Word;

/// Which options a program has.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spec {
    /// Letters without a value.
    pub(super) flags: &'static str,
    /// Letters with a value, joined or as the next word.
    pub(super) valued: &'static str,
    /// Letters with a value that can only be joined.
    pub(super) optional: &'static str,
    /// Long options without a value, or with one after `=`.
    pub(super) long: &'static [&'static str],
    /// Long options with a value.
    pub(super) long_valued: &'static [&'static str],
}

/// Options as they were given.
#[derive(Debug, Default)]
pub(super) struct Options {
    /// Each with its value; letters as one-letter names.
    given: Vec<(String, Option<Word>)>,
    /// Where the other words start.
    pub(super) end: usize,
    /// An unknown option was given.
    pub(super) odd: bool,
}

impl Options {
    /// Reads the options before the first other word.
    pub(super) fn read(args: &[Word], spec: &Spec) -> Self {
        let mut options = Self::default();
        while let Some(word) = args.get(options.end) {
            let text = word.shape.as_str();
            if !text.starts_with('-') || text == "-" {
                break;
            }
            options.end += 1;
            if text == "--" {
                break;
            }
            let next = args.get(options.end);
            if let Some(long) = text.strip_prefix("--") {
                options.long(long, word, next, spec);
            } else {
                options.letters(word, next, spec);
            }
            options.odd |= word.value.is_none() && !text.contains('=');
        }
        options.end = options.end.min(args.len());
        options
    }

    fn long(&mut self, text: &str, word: &Word, next: Option<&Word>, spec: &Spec) {
        if let Some((name, _)) = text.split_once('=') {
            self.odd |= !spec.long_valued.contains(&name) && !spec.long.contains(&name);
            self.given.push((name.to_owned(), Some(word.tail(name.len() + 3))));
        } else if spec.long_valued.contains(&text) {
            self.given.push((text.to_owned(), next.cloned()));
            self.end += 1;
        } else {
            self.odd |= !spec.long.contains(&text);
            self.given.push((text.to_owned(), None));
        }
    }

    fn letters(&mut self, word: &Word, next: Option<&Word>, spec: &Spec) {
        for (at, letter) in word.shape.char_indices().skip(1) {
            let after = at + letter.len_utf8();
            if spec.valued.contains(letter) {
                if after < word.shape.len() {
                    self.given.push((letter.to_string(), Some(word.tail(after))));
                } else {
                    self.given.push((letter.to_string(), next.cloned()));
                    self.end += 1;
                }
                return;
            }
            if spec.optional.contains(letter) {
                let value = (after < word.shape.len()).then(|| word.tail(after));
                self.given.push((letter.to_string(), value));
                return;
            }
            self.odd |= !spec.flags.contains(letter);
            self.given.push((letter.to_string(), None));
        }
    }

    /// Whether one of these options was given.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.given.iter().any(|(name, _)| names.contains(&name.as_str()))
    }

    /// The values of one of these options.
    pub(super) fn values<'o>(&'o self, names: &'o [&'o str]) -> impl Iterator<Item = &'o Word> {
        self.given
            .iter()
            .filter(|(name, _)| names.contains(&name.as_str()))
            .filter_map(|(_, value)| value.as_ref())
    }
}

/// Words joined by blanks, if all are known.
pub(super) fn joined(words: &[Word]) -> Option<String> {
    let values: Option<Vec<&str>> = words.iter().map(Word::literal).collect();
    values.map(|values| values.join(" "))
}
