//! What a command says when it cannot do its work: `error:` what and where, `help:` what to do next.

use std::fmt;
use std::io::{self, Write as _};
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use anstyle::{AnsiColor, Style};
use portcullis_core::bundle::Diagnostic;
use serde_json::json;

use crate::advice::advice;
use crate::exit;
use crate::out::clean;

/// The most mistakes of one bundle that are shown to people; programs get them all.
const DIAGNOSTICS_SHOWN_MAX: usize = 20;

/// Why a command gives up.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something to tell.
    Told(Box<Told>),
    /// Whoever read the output went away, and nothing else was to be done: nobody is left to tell.
    OutputClosed,
}

/// A failure with what to tell about it.
#[derive(Debug)]
pub(crate) struct Told {
    /// For programs, in `snake_case`.
    code: &'static str,
    exit: u8,
    message: String,
    help: Option<String>,
    diagnostics: Vec<Shown>,
}

/// A mistake in a file, with the file's text.
#[derive(Debug)]
struct Shown {
    diagnostic: Diagnostic,
    /// The path to show.
    path: String,
    source: String,
}

impl Failure {
    /// Something that could not be read, started or written.
    pub(crate) fn unreadable(message: impl fmt::Display) -> Self {
        Self::new("could_not_read", exit::UNREADABLE, message)
    }

    /// The answer is no.
    pub(crate) fn no(message: impl fmt::Display) -> Self {
        Self::new("failed", exit::NO, message)
    }

    /// Something is missing that the answer needs.
    pub(crate) fn incomplete(message: impl fmt::Display) -> Self {
        Self::new("incomplete", exit::INCOMPLETE, message)
    }

    /// Somebody else's command cannot be started: it is missing, or may not be executed.
    pub(crate) fn not_started(message: impl fmt::Display, missing: bool) -> Self {
        let exit = if missing { exit::NOT_FOUND } else { exit::NOT_EXECUTABLE };
        Self::new("not_started", exit, message)
    }

    /// A command line that cannot be meant.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self::new("usage", exit::USAGE, message)
    }

    /// Mistakes in files. `code` is the word for programs, `place` gives the path and the text of a file.
    pub(crate) fn mistakes(
        code: &'static str,
        message: impl fmt::Display,
        diagnostics: Vec<Diagnostic>,
        place: impl Fn(&str) -> (String, String),
    ) -> Self {
        let shown = |diagnostic: Diagnostic| {
            let (path, source) = place(&diagnostic.file);
            Shown { diagnostic, path, source }
        };
        let failure = Self::new(code, exit::UNREADABLE, message);
        failure.with(|told| told.diagnostics = diagnostics.into_iter().map(shown).collect())
    }

    fn new(code: &'static str, exit: u8, message: impl fmt::Display) -> Self {
        let message = message.to_string();
        Self::Told(Box::new(Told { code, exit, message, help: None, diagnostics: Vec::new() }))
    }

    /// Says what to do next.
    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        self.with(|told| told.help = Some(help.into()))
    }

    /// What went wrong.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Told(told) => &told.message,
            Self::OutputClosed => "the output was closed",
        }
    }

    /// What to do next.
    pub(crate) fn help_text(&self) -> Option<&str> {
        match self {
            Self::Told(told) => told.help.as_deref(),
            Self::OutputClosed => None,
        }
    }

    /// Whether it shows places in files.
    pub(crate) fn has_places(&self) -> bool {
        matches!(self, Self::Told(told) if !told.diagnostics.is_empty())
    }

    fn with(mut self, change: impl FnOnce(&mut Told)) -> Self {
        if let Self::Told(told) = &mut self {
            change(told);
        }
        self
    }

    /// Tells it, on standard error for people and on standard output for programs; the exit code.
    pub(crate) fn tell(&self, as_json: bool) -> u8 {
        // Whoever looked at the first lines has seen enough.
        let Self::Told(told) = self else { return exit::YES };
        // When even this cannot be written, the exit code has to say it.
        let _unwritten = if as_json { told.as_json() } else { told.for_people() };
        told.exit
    }
}

impl From<io::Error> for Failure {
    /// A failure to write output. Errors of reading are turned into failures where the file is known.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::unreadable(format!("cannot write the output: {error}")),
        }
    }
}

impl Told {
    fn as_json(&self) -> io::Result<()> {
        let diagnostics: Vec<_> = self
            .diagnostics
            .iter()
            .map(|Shown { diagnostic, path, .. }| {
                json!({
                    "file": path, "line": diagnostic.line, "column": diagnostic.column,
                    "message": diagnostic.message, "help": diagnostic.help,
                })
            })
            .collect();
        let help = self.help.as_deref().map(advice);
        let mut error = json!({"code": self.code, "message": advice(&self.message), "help": help});
        if let (false, Some(error)) = (diagnostics.is_empty(), error.as_object_mut()) {
            error.insert("diagnostics".to_owned(), diagnostics.into());
        }
        let mut out = anstream::stdout().lock();
        writeln!(out, "{}", json!({ "error": error }))?;
        out.flush()
    }

    fn for_people(&self) -> io::Result<()> {
        let mut out = anstream::stderr().lock();
        for shown in self.diagnostics.iter().take(DIAGNOSTICS_SHOWN_MAX) {
            writeln!(out, "{}\n", shown.render())?;
        }
        if let Some(more) = self.diagnostics.len().checked_sub(DIAGNOSTICS_SHOWN_MAX).filter(|more| *more > 0)
        {
            writeln!(out, "... and {more} more; --json gives all\n")?;
        }
        let error = Style::new().bold().fg_color(Some(AnsiColor::BrightRed.into()));
        let help = Style::new().bold().fg_color(Some(AnsiColor::BrightCyan.into()));
        writeln!(out, "{error}error{error:#}: {}", clean(&advice(&self.message)))?;
        if let Some(text) = &self.help {
            writeln!(out, "{help}help{help:#}: {}", clean(&advice(text)))?;
        }
        Ok(())
    }
}

impl Shown {
    fn render(&self) -> String {
        render(Level::ERROR, &self.diagnostic, &self.path, &self.source)
    }
}

/// The place in its file, with a caret under it.
pub(crate) fn render(level: Level<'_>, diagnostic: &Diagnostic, path: &str, source: &str) -> String {
    let title = level.primary_title(&*diagnostic.message);
    let snippet = Snippet::source(source)
        .path(path)
        .annotation(AnnotationKind::Primary.span(within(source, diagnostic.span.clone())));
    let mut group = title.element(snippet);
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(&**help));
    }
    Renderer::styled().render(&[group])
}

/// The span, moved to where the text has characters.
fn within(source: &str, span: Range<usize>) -> Range<usize> {
    let start = source.floor_char_boundary(span.start);
    start..source.ceil_char_boundary(span.end.max(start))
}
