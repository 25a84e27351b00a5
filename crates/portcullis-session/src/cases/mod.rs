//! Markdown tests: a transcript and the verdict each step must get. One format serves the project's own guard
//! tests and users' policy tests (`portcullis policy test`). The page for users is `docs/policy-tests.md`.
//!
//! A file is prose with fenced blocks. A block marked `toml PATH` or `json PATH` replaces or adds that file of
//! the bundle for the rest of the file, so that a case can show the policy it is about. A block marked `run` is
//! one run, named by the heading above it; each of its lines is a step:
//!
//! ```text
//! policy "Strict Compliance Policy"                          the runtime policy; the default otherwise
//! input "Please send Bob the figures."                       the user speaks
//! plan "I will mail the figures to Bob."                     planned action of the next call
//! confidence 0.5                                             how sure the agent says it is of the next call
//! call send_email {"recipient": "bob@example.com"} => deny runtime-policy/tool-type
//! think "What next?" => allow                                a thinking step
//! result error "mailbox unavailable"                         outcome of the last call; `ok` if left out
//! grant                                                      a person approves what is held; `grant tool`
//! refuse                                                     a person refuses
//! pause | halt | resume                                      a person takes hold of the run
//! output "Done."                                             the agent replies
//! directory /srv/project/src                                 the working directory of the calls from here on
//! # a comment
//! ```
//!
//! After `=>` stand the verdict, then optionally the rule of the headline, then optionally `at POINTER` with a
//! place that one of its spans must have.

mod observed;
mod parse;
mod run;

pub use parse::{Case, CaseError, CaseFile, Expectation, Step, StepKind};
pub use run::{Mismatch, Report, run_file};
