//! Redirections: files that are read and written without a program that says so.

use std::ops::Range;
use std::rc::Rc;

use brush_parser::ast;
use portcullis_core::effect::{Effect, Resource, ResourceKind, Verb};

use super::interpreter::{Input, Interpreter};
use super::unit::Unit;
use super::word::Word;

impl Interpreter<'_, '_> {
    /// Applies a redirection; `input` is what the command reads afterwards.
    pub(super) fn redirect(
        &mut self,
        unit: &Rc<Unit>,
        redirect: &ast::IoRedirect,
        input: &mut Input,
        around: &Range<usize>,
    ) {
        match redirect {
            ast::IoRedirect::File(descriptor, kind, target) => {
                let standard_input = descriptor.is_none_or(|number| number == 0);
                self.file(unit, kind, target, standard_input, input, around);
            }
            ast::IoRedirect::OutputAndError(word, _) => {
                if let Some(target) = self.target(unit, word, around) {
                    self.redirected(&[Verb::Write], &target);
                }
            }
            ast::IoRedirect::HereString(descriptor, word) => {
                let text = self.target(unit, word, around);
                if descriptor.is_none_or(|number| number == 0) {
                    *input =
                        text.and_then(|word| word.value).map_or(Input::Pipe, |text| Input::Text(text.into()));
                }
            }
            ast::IoRedirect::HereDocument(descriptor, document) => {
                let text = match unit.document(document.doc.loc.as_ref()) {
                    Some((body, true, range)) => self.expand_document(body, &range).value,
                    Some((body, false, _)) => Some(body.to_owned()),
                    None => None,
                };
                if descriptor.is_none_or(|number| number == 0) {
                    *input = text.map_or(Input::Pipe, |text| Input::Text(text.into()));
                }
            }
        }
    }

    fn target(&mut self, unit: &Rc<Unit>, word: &ast::Word, around: &Range<usize>) -> Option<Word> {
        let Some((raw, range)) = unit.raw(word.loc.as_ref()) else {
            self.unknown("shell", "a redirection cannot be read", around.clone());
            return None;
        };
        let word = self.expand_one(raw, &range);
        // A process on the other end: its commands were walked.
        if raw.starts_with(['<', '>']) { None } else { Some(word) }
    }

    fn file(
        &mut self,
        unit: &Rc<Unit>,
        kind: &ast::IoFileRedirectKind,
        target: &ast::IoFileRedirectTarget,
        standard_input: bool,
        input: &mut Input,
        around: &Range<usize>,
    ) {
        use ast::IoFileRedirectKind as K;
        let word = match target {
            ast::IoFileRedirectTarget::Filename(word) | ast::IoFileRedirectTarget::Duplicate(word) => word,
            ast::IoFileRedirectTarget::Fd(_) => return,
            ast::IoFileRedirectTarget::ProcessSubstitution(..) => {
                return self.unknown("shell", "a redirection cannot be read", around.clone());
            }
        };
        let target = self.target(unit, word, around);
        match kind {
            K::Read | K::ReadAndWrite if standard_input => {
                *input = if target.is_some() { Input::File } else { Input::Pipe };
            }
            K::DuplicateInput if standard_input => *input = Input::Pipe,
            _ => {}
        }
        let Some(target) = target else { return };
        let verbs: &[Verb] = match kind {
            K::Read => &[Verb::Read],
            K::Write | K::Append | K::Clobber => &[Verb::Write],
            K::ReadAndWrite => &[Verb::Read, Verb::Write],
            K::DuplicateInput | K::DuplicateOutput if is_descriptor(&target) => return,
            K::DuplicateInput => &[Verb::Read],
            K::DuplicateOutput => &[Verb::Write],
        };
        self.redirected(verbs, &target);
    }

    fn redirected(&mut self, verbs: &[Verb], target: &Word) {
        if let Some((host, port)) = network(&target.shape) {
            let host = crate::url::host_resource(host)
                .unwrap_or_else(|| Resource::new(ResourceKind::Host, host).with("resolved", false));
            let host = if target.value.is_none() { host.with("resolved", false) } else { host };
            let host = match port.parse::<u16>() {
                Ok(port) => host.with("port", i64::from(port)),
                Err(_) => host,
            };
            return self.add(Effect::new(Verb::Send, host), target.range.clone());
        }
        for verb in verbs {
            self.path(*verb, target);
        }
    }
}

/// `2>&1`, `3<&-`, `4>&5-`.
fn is_descriptor(word: &Word) -> bool {
    let text = word.shape.strip_suffix('-').unwrap_or(&word.shape);
    word.value.is_some() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Host and port of `/dev/tcp/HOST/PORT`, which bash connects to.
fn network(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix("/dev/tcp/").or_else(|| path.strip_prefix("/dev/udp/"))?.split_once('/')
}
