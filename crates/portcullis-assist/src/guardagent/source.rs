//! The program in a model's answer.

use crate::limits::MAX_SOURCE_BYTES;
use crate::model::Finish;
use crate::tag::{between, without_thoughts};

/// The tag that the model is asked to use.
pub(super) const TAG: &str = "program";
/// What begins and ends a block of code in Markdown.
const FENCE: &str = "```";

/// Reads the program.
///
/// # Errors
/// There is none, or it was cut. The words are for the model.
pub(super) fn read(answer: &str, finish: Finish) -> Result<String, String> {
    if finish == Finish::Length {
        return Err("the answer was cut off at its limit of tokens; write a shorter program".to_owned());
    }
    let tagged = between(answer, TAG, true);
    let inner = tagged.unwrap_or_else(|| without_thoughts(answer));
    let program = match block(inner) {
        Some(block) => block,
        None if tagged.is_some() => inner,
        None => return Err(format!("the answer has no program between <{TAG}> and </{TAG}>")),
    };
    if program.trim().is_empty() {
        return Err("the program is empty".to_owned());
    }
    if program.len() > MAX_SOURCE_BYTES {
        return Err(format!("the program has {} bytes; at most {MAX_SOURCE_BYTES} are taken", program.len()));
    }
    Ok(format!("{}\n", program.trim_end()))
}

/// The first block of code.
fn block(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once(FENCE)?;
    // The language stands beside the fence.
    let (_, rest) = rest.split_once('\n')?;
    Some(rest.split_once(FENCE).map_or(rest, |(block, _)| block))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_in_tags_or_in_a_block() {
        for answer in [
            "<program>\ndef f():\n    pass\n</program>",
            "Sure.\n<program>\n```python\ndef f():\n    pass\n```\n</program>\nDone.",
            "```starlark\ndef f():\n    pass\n```",
            "<think>```\nno\n```</think>\n```\ndef f():\n    pass\n```",
        ] {
            assert_eq!(read(answer, Finish::Stop).as_deref(), Ok("def f():\n    pass\n"), "{answer}");
        }
    }

    #[test]
    fn what_is_no_program_says_so() {
        for (answer, finish, why) in [
            ("I cannot do that.", Finish::Stop, "no program between"),
            ("<program>\n</program>", Finish::Stop, "empty"),
            ("<program>\nx = 1\n</program>", Finish::Length, "cut off"),
        ] {
            assert!(read(answer, finish).unwrap_err().contains(why), "{answer}");
        }
        let long = format!("<program>\n{}\n</program>", "x".repeat(MAX_SOURCE_BYTES + 1));
        assert!(read(&long, Finish::Stop).unwrap_err().contains("at most"));
    }
}
