//! Paths.
//!
//! A path is what its text says after lexical normalisation: `.`, `..`, repeated slashes, `~` and `file:` are
//! taken out, relative paths start from the working directory. Nothing asks the file system, so where a symbolic
//! link leads is not known here.
//!
//! Attributes hold to one rule: whatever leaves a doubt about which file is meant (a control character, a
//! backslash, a look-alike of a slash, percent-encoding, a variable, a missing working directory) sets
//! `resolved` to false, and what is not resolved is neither inside the workspace nor temporary. `secret` is the
//! other way round: it is set if any reading of the text could name a place where credentials are kept.

mod control;
pub(crate) mod glob;
pub(crate) mod own;
mod secret;

use std::borrow::Cow;
use std::ops::Range;

use portcullis_core::effect::{Attributes, Effect, Resource, ResourceKind, Verb};
use portcullis_core::principal::Attribute;

use crate::limits::PATH_BYTES_MAX;
use crate::{Sink, Surroundings};

/// Folders for temporary files on Linux and macOS.
const TEMPORARY: [&str; 6] =
    ["/tmp", "/var/tmp", "/dev/shm", "/private/tmp", "/private/var/tmp", "/private/var/folders"];
/// Names in the longest path of a link of `/proc` that is followed.
const PROCESS_LINK_PARTS_MAX: usize = 4;
/// Devices from which and to which anything may be copied.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/stdout",
    "/dev/stderr",
];

/// Reads `text` as a path to which `verb` is done.
pub(crate) fn read_as(verb: Verb, text: &str, surroundings: &Surroundings<'_>, sink: &mut Sink<'_>) {
    sink.add(Effect::new(verb, resource(text, surroundings)), 0..text.len());
    note_length(text, surroundings, 0..text.len(), sink);
}

/// The path that `text` names, with all attributes of paths.
pub fn resource(text: &str, surroundings: &Surroundings<'_>) -> Resource {
    resource_of(text, surroundings, true)
}

/// Like [`resource`] for a text of which only a part is known, because a variable or the output of a command
/// is in it: not resolved, but `secret` where the known part says so.
pub fn unresolved(text: &str, surroundings: &Surroundings<'_>) -> Resource {
    resource_of(text, surroundings, false)
}

/// What goes with `deleted`, a path that is deleted with all below it, and is what the project has of its past: the
/// repository in the workspace.
pub(crate) fn repository_in(deleted: &Resource, surroundings: &Surroundings<'_>) -> Option<Resource> {
    let workspace = surroundings.workspace?.trim_end_matches('/');
    let holds = |folder: &str| {
        workspace
            .strip_prefix(folder.trim_end_matches('/'))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let whole = deleted.is("resolved") && !deleted.is("glob") && holds(&deleted.name);
    whole.then(|| resource(&format!("{workspace}/.git"), surroundings))
}

fn resource_of(text: &str, surroundings: &Surroundings<'_>, known: bool) -> Resource {
    // Nearly every path is of letters that nobody reads in two ways.
    let plain = is_plain(text);
    let mut normal = Normal::of(text, surroundings);
    // What is too long is so after `./` and similar are gone; what is beyond is not looked at.
    let whole = known && normal.shorten();
    // The query of a `file:` URL is no part of its path, and still makes its text one that some read otherwise.
    let foreign = !plain && (is_windows(text) || has_foreign_scheme(text));
    let resolved = normal.exact && whole && !foreign && (plain || !is_doubtful(text));
    let literal = normal.components.iter().take_while(|component| !glob::is_glob(component)).count();
    let glob = literal < normal.components.len();
    let literal = normal.components.get(..literal).unwrap_or_default();
    let in_folder = |folder: &str| resolved && lies_in(literal, folder);
    let workspace = surroundings.workspace.filter(|folder| is_plain_folder(folder));
    let parts = glob::taken_apart(&normal.components);
    let other = if plain { None } else { other_spelling(text, surroundings) };
    let secret = secret::is_secret(&parts, normal.absolute, surroundings)
        || other.is_some_and(|spelling| {
            let mut other = Normal::of(&spelling, surroundings);
            other.shorten();
            secret::is_secret(&glob::taken_apart(&other.components), other.absolute, surroundings)
        });
    let own = own::by_name(&parts);
    let inside = workspace.is_some_and(in_folder);
    let temporary = TEMPORARY.iter().any(|folder| in_folder(folder));
    let shown = if foreign { cut(text).to_owned() } else { normal.name() };
    let name = visible(shown);
    let device = resolved && !glob && (DEVICES.contains(&name.as_str()) || is_standard_stream(&mut normal));
    let attributes = [
        ("control", control::is_control(&parts)),
        ("device", device),
        ("gate", own != own::Own::Nothing),
        ("glob", glob),
        ("inside", inside),
        ("resolved", resolved),
        ("secret", secret || own == own::Own::Secret),
        ("temporary", temporary),
    ];
    let attributes = Attributes::from(attributes.map(|(name, holds)| (name, Attribute::Boolean(holds))));
    Resource { attributes, ..Resource::new(ResourceKind::Path, name) }
}

/// The text as far as a path may go.
fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(PATH_BYTES_MAX)).unwrap_or_default()
}

/// Whether what a text names is longer than a path may be, so that not all of it is looked at.
pub(crate) fn is_too_long(text: &str, surroundings: &Surroundings<'_>) -> bool {
    text.len() + surroundings.directory.map_or(0, str::len) > PATH_BYTES_MAX
        && !Normal::of(text, surroundings).shorten()
}

/// Notes a path that is not looked at as a whole.
pub(crate) fn note_length(
    text: &str,
    surroundings: &Surroundings<'_>,
    range: Range<usize>,
    sink: &mut Sink<'_>,
) {
    if is_too_long(text, surroundings) {
        sink.unknown("path", format!("it is longer than {PATH_BYTES_MAX} bytes"), range);
    }
}

/// Whether a text has only letters that mean one thing to everybody: it is not doubtful, has no other spelling, and
/// every part of it can be shown as it is.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'_' | b'-'))
}

/// Whether a path begins with the parts of a folder.
fn lies_in(path: &[String], folder: &str) -> bool {
    let mut path = path.iter();
    let mut folder = folder.split('/').filter(|part| !matches!(*part, "" | "."));
    folder.all(|part| path.next().is_some_and(|name| name == part))
}

/// Whether a folder of the surroundings is one that components can be compared with.
fn is_plain_folder(folder: &str) -> bool {
    folder.starts_with('/') && !folder.split('/').any(|part| part == "..")
}

/// A path taken apart.
struct Normal {
    components: Vec<String>,
    absolute: bool,
    /// Whether the components are all there is to say.
    exact: bool,
    braces: glob::Expansion,
}

impl Normal {
    fn of(text: &str, surroundings: &Surroundings<'_>) -> Self {
        let mut normal = Self {
            components: Vec::new(),
            absolute: false,
            exact: true,
            braces: glob::Expansion::of_a_path(),
        };
        let file = without_file_scheme(text);
        let text = match &file {
            Some(file) => {
                normal.exact = file.exact;
                file.path.as_ref()
            }
            None => text,
        };
        let directory = surroundings.directory.filter(|folder| is_plain_folder(folder));
        if text.starts_with('/') {
            normal.absolute = true;
            normal.walk(text, directory);
        } else if let Some(rest) = text.strip_prefix('~') {
            match (surroundings.home.filter(|folder| is_plain_folder(folder)), rest.starts_with('/')) {
                (Some(home), below) if below || rest.is_empty() => {
                    normal.absolute = true;
                    normal.walk(home, directory);
                    normal.walk(rest, directory);
                }
                _ => {
                    normal.exact = false;
                    normal.walk(text, directory);
                }
            }
        } else if let Some(folder) = directory {
            normal.absolute = true;
            // An empty path means this folder to some, the root to others.
            normal.exact &= !text.is_empty();
            normal.walk(folder, directory);
            normal.walk(text, directory);
        } else {
            normal.exact = false;
            normal.walk(text, directory);
        }
        normal
    }

    /// Goes along `text` from where it stands.
    fn walk(&mut self, text: &str, directory: Option<&str>) {
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => self.up(),
                _ => {
                    self.exact &= !glob::may_leave(part, &mut self.braces);
                    self.components.push(part.to_owned());
                    self.follow_process_links(directory);
                }
            }
        }
    }

    /// Drops what is beyond the longest path; whether there was nothing.
    fn shorten(&mut self) -> bool {
        let mut bytes = 0;
        let mut fits = |component: &String| {
            bytes += component.len() + 1;
            bytes <= PATH_BYTES_MAX
        };
        let kept = self.components.iter().take_while(|component| fits(component)).count();
        let whole = kept == self.components.len();
        if let Some(first) = self.components.get_mut(kept) {
            // A part of a name that is too long says what it begins with.
            *first = cut(first).to_owned();
            self.components.truncate(kept + 1);
        }
        whole
    }

    fn up(&mut self) {
        match self.components.last() {
            Some(last) if last != ".." => {
                // What a pattern matches may be a link, and `..` of that leads elsewhere.
                self.exact &= !glob::is_glob(last);
                self.components.pop();
            }
            _ if self.absolute => {}
            _ => self.components.push("..".to_owned()),
        }
    }

    /// `/proc` has links that are known without asking the file system.
    fn follow_process_links(&mut self, directory: Option<&str>) {
        let first = self.components.first().map(String::as_str);
        if !self.absolute
            || self.components.len() > PROCESS_LINK_PARTS_MAX
            || !matches!(first, Some("proc" | "dev"))
        {
            return;
        }
        let parts: Vec<&str> = self.components.iter().map(String::as_str).collect();
        let own = |process: &str| matches!(process, "self" | "thread-self");
        match *parts.as_slice() {
            ["proc", _, "task", _] => self.components.truncate(2),
            ["proc", process, "cwd"] => match directory.filter(|_| own(process)) {
                Some(folder) => {
                    let folder = folder.split('/').filter(|part| !matches!(*part, "" | "."));
                    self.components = folder.map(str::to_owned).collect();
                }
                None => self.exact = false,
            },
            ["proc", process, "root"] => {
                self.exact &= own(process);
                self.components.clear();
            }
            ["proc", _, "fd", number] | ["dev", "fd", number] => {
                self.exact &= matches!(number, "0" | "1" | "2");
            }
            _ => {}
        }
    }

    fn name(&self) -> String {
        let joined = self.components.join("/");
        match (self.absolute, joined.is_empty()) {
            (true, _) => format!("/{joined}"),
            (false, true) => ".".to_owned(),
            (false, false) => joined,
        }
    }
}

fn is_standard_stream(normal: &mut Normal) -> bool {
    let parts: Vec<&str> = normal.components.iter().map(String::as_str).collect();
    matches!(
        *parts.as_slice(),
        ["dev", "stdin"] | ["dev", "fd", "0" | "1" | "2"] | ["proc", "self", "fd", "0" | "1" | "2"]
    )
}

/// The path of a `file:` URL.
struct FileUrl<'t> {
    path: Cow<'t, str>,
    exact: bool,
}

fn without_file_scheme(text: &str) -> Option<FileUrl<'_>> {
    let (scheme, rest) = text.split_at_checked(5)?;
    if !scheme.eq_ignore_ascii_case("file:") {
        return None;
    }
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let rest = rest.get(..end).unwrap_or(rest);
    let (path, mut exact) = match rest.strip_prefix("//") {
        None => (rest, true),
        Some(after) => {
            let (host, path) =
                after.find('/').and_then(|at| after.split_at_checked(at)).unwrap_or((after, "/"));
            match host.to_ascii_lowercase().as_str() {
                "" | "localhost" | "127.0.0.1" | "[::1]" => (path, true),
                // Another machine's file, or a path that someone wrote with two slashes.
                _ => (rest, false),
            }
        }
    };
    let decoded = percent_decoded(path);
    // Whether an encoded slash separates folders depends on who decodes it.
    exact &= decoded.matches('/').count() == path.matches('/').count();
    Some(FileUrl { path: decoded, exact })
}

fn percent_decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digit = |at: usize| after.get(at).and_then(|&byte| char::from(byte).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether the text may name another file than it seems to.
fn is_doubtful(text: &str) -> bool {
    let file_url = without_file_scheme(text);
    let path = file_url.as_ref().map_or(text, |url| url.path.as_ref());
    path.trim() != path
        || path.chars().any(|c| c.is_control() || is_look_alike(c) || c == char::REPLACEMENT_CHARACTER)
        || is_windows(path)
        || has_foreign_scheme(text)
        || has_encoded_separator(path)
        || has_variable(path)
}

/// Backslashes are separators on Windows and letters elsewhere; `C:` is a drive there.
fn is_windows(text: &str) -> bool {
    let mut start = text.chars();
    let drive = start.next().is_some_and(|c| c.is_ascii_alphabetic()) && start.next() == Some(':');
    text.contains('\\') || drive && matches!(start.next(), None | Some('/'))
}

/// `scheme://`, other than `file:`.
pub(crate) fn has_foreign_scheme(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
            && !scheme.eq_ignore_ascii_case("file")
    })
}

/// Characters that normalisation forms, fonts or tools turn into dots, slashes, tildes or nothing.
fn is_look_alike(c: char) -> bool {
    matches!(
        c,
        '\u{2024}' | '\u{2025}' | '\u{2044}' | '\u{2215}' | '\u{29f8}' | '\u{29f9}' | '\u{2216}' | '\u{fe52}'
            | '\u{fe68}' | '\u{ff0e}' | '\u{ff0f}' | '\u{ff3c}' | '\u{ff5e}' | '\u{3002}' | '\u{ff61}'
            | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// `%2e`, `%2f`, `%5c`, `%00` or an encoded percent sign: whether a tool decodes them is not known.
fn has_encoded_separator(text: &str) -> bool {
    text.split('%').skip(1).any(|rest| {
        let code = rest.get(..2).unwrap_or_default().to_ascii_lowercase();
        matches!(code.as_str(), "2e" | "2f" | "5c" | "00" | "25" | "7e")
    })
}

/// `$HOME`, `${x}`, `$(x)`, a backtick or `%USERPROFILE%`: whether a tool puts a value there is not known.
/// `$id` in lower case is a file name of web frameworks.
fn has_variable(text: &str) -> bool {
    let dollar = text
        .split('$')
        .skip(1)
        .any(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase() || matches!(c, '{' | '(' | '_')));
    let percent = text.split('%').skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
        && text.matches('%').count() > 1;
    dollar || percent || text.contains('`')
}

/// What a tool makes of the text that decodes, expands `$HOME` or knows Windows, or `None` if that is nothing else.
fn other_spelling(text: &str, surroundings: &Surroundings<'_>) -> Option<String> {
    let home = surroundings.home.unwrap_or("~");
    let decoded = percent_decoded(text).replace('\\', "/").replace("${HOME}", home).replace("$HOME", home);
    let kept: String = decoded.trim().chars().filter(|&c| !c.is_control()).collect();
    (kept != text).then_some(kept)
}

/// The name with control and invisible characters written out.
fn visible(name: String) -> String {
    let hidden = |c: char| c.is_control() || is_look_alike(c);
    if name.bytes().all(|byte| matches!(byte, b' '..=b'~')) || !name.chars().any(hidden) {
        return name;
    }
    let mut visible = String::with_capacity(name.len());
    for c in name.chars() {
        if hidden(c) {
            visible.extend(c.escape_unicode());
        } else {
            visible.push(c);
        }
    }
    visible
}
