//! The words of an expression of `find`: which narrow down, which take values, where a command ends.

use super::word::Word;

/// Tests that leave only some of the files.
pub(super) const NARROWING: [&str; 14] = [
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-regex",
    "-iregex",
    "-type",
    "-mtime",
    "-mmin",
    "-size",
    "-empty",
    "-newer",
    "-user",
];

/// Other words that take a value.
const VALUED: [&str; 31] = [
    "-amin",
    "-anewer",
    "-atime",
    "-cmin",
    "-cnewer",
    "-context",
    "-ctime",
    "-files0-from",
    "-fls",
    "-fprint",
    "-fprint0",
    "-fstype",
    "-gid",
    "-group",
    "-ilname",
    "-inum",
    "-iwholename",
    "-links",
    "-lname",
    "-maxdepth",
    "-mindepth",
    "-perm",
    "-printf",
    "-regextype",
    "-samefile",
    "-uid",
    "-used",
    "-xtype",
    "-flags",
    "-Bmin",
    "-Btime",
];

/// How many words the command after `-exec` has.
pub(super) fn command_length(words: &[Word]) -> usize {
    let files = |before: Option<usize>| {
        before.and_then(|before| words.get(before)).is_some_and(|word| word.shape == "{}")
    };
    let ends = |(at, word): (usize, &Word)| match word.literal() {
        Some(";") => true,
        Some("+") => files(at.checked_sub(1)),
        _ => false,
    };
    words.iter().enumerate().position(ends).unwrap_or(words.len())
}

/// How many words after a word of the expression are its values.
pub(super) fn values(test: &str) -> usize {
    match test {
        "-fprintf" => 2,
        "-empty" => 0,
        _ if test.starts_with("-newer") || VALUED.contains(&test) || NARROWING.contains(&test) => 1,
        _ => 0,
    }
}
