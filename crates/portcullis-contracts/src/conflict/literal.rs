//! Texts that a contract demands word for word.

use crate::context::Context;
use crate::family::Family;
use crate::verify::OPENING;

/// The texts that a family demands, all of them; of fixed options, which are alternatives, none.
pub(super) fn literals<'a>(family: &'a Family, context: &Context<'a>) -> Vec<&'a str> {
    match family {
        Family::BeginsWith { phrase } | Family::EndsWith { phrase } => vec![phrase],
        Family::RepeatRequest { request } => {
            request.as_deref().or(context.prompt).map(str::trim).into_iter().collect()
        }
        Family::Postscript { marker } => vec![marker],
        Family::Sections { marker, count } if count.at_least > 0 => vec![marker],
        Family::Includes { keywords } => keywords.iter().map(String::as_str).collect(),
        Family::KeywordCount { keyword, count } if count.at_least > 0 => vec![keyword],
        Family::ParagraphWord { word, .. } => vec![word],
        Family::Responses { separator, count } if *count > 1 => vec![separator],
        Family::Cites { present: true, .. } => vec![OPENING, "]"],
        _ => Vec::new(),
    }
}
