//! Plans, and whether they have the four steps that every plan has.

use crate::limits::MAX_PLAN_BYTES;
use crate::tag::without_thoughts;

/// What each step is for, in the words of the question.
pub(super) const STEPS: [&str; 4] = [
    "Summarise the guard requests and list their keywords.",
    "From the guard requests, take the parts that matter for the input of the target agent.",
    "Summarise the output log of the target agent and find what in it bears on these parts.",
    "Compare the two, and say with which functions a program decides it.",
];

/// A plan of four steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan(String);

impl Plan {
    /// Reads a model's answer.
    ///
    /// # Errors
    /// What it lacks.
    pub(super) fn read(answer: &str) -> Result<Self, String> {
        let text = without_thoughts(answer).trim();
        if text.len() > MAX_PLAN_BYTES {
            return Err(format!("brevity: it has {} bytes, and {MAX_PLAN_BYTES} are taken", text.len()));
        }
        let mut said = [false; STEPS.len()];
        let mut current = None;
        for line in text.lines() {
            let (step, rest) = match step(line) {
                // Lists within a step have numbers, too: a step comes after the one before it.
                Some((number, rest)) if number == current.map_or(1, |at: usize| at + 2) => {
                    (Some(number - 1), rest)
                }
                _ => (current, line),
            };
            current = step.filter(|at| *at < STEPS.len()).or(current);
            if let Some(said) = current.and_then(|at| said.get_mut(at)) {
                *said |= rest.chars().any(char::is_alphanumeric);
            }
        }
        match said.iter().position(|said| !said) {
            None => Ok(Self(text.to_owned())),
            Some(missing) => Err(format!("step {}", missing + 1)),
        }
    }

    /// Its text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }
}

/// The number with which a line begins a step, and the rest of the line.
fn step(line: &str) -> Option<(usize, &str)> {
    let line = line.trim_start_matches(['#', '*', '-', ' ', '\t']);
    let after = line.get(..4).filter(|word| word.eq_ignore_ascii_case("step")).and_then(|_| line.get(4..));
    let named = after.is_some();
    let line = after.unwrap_or(line).trim_start();
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number = line.get(..digits)?.parse().ok()?;
    let rest = line.get(digits..)?;
    let stripped = rest.trim_start_matches(['*', ' ']).strip_prefix(['.', ')', ':']);
    match stripped {
        Some(rest) => Some((number, rest)),
        None if named => Some((number, rest)),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_has_its_four_steps_however_they_are_numbered() {
        for text in [
            "1. a\n2. b\n3. c\n4. d",
            "Here is the plan.\n\nStep 1: a\nmore\nStep 2: b\nStep 3: c\nStep 4: d",
            "**Step 1.** a\n**Step 2.** b\n\n**Step 3.** c\n**Step 4.** d",
            "### Step 1\na\n### Step 2\nb\n### Step 3\nc\n### Step 4\nd",
            "1) a\n  1. one\n  2. two\n2) b\n3) c\n4) d",
            "<think>1. x</think>1. a\n2. b\n3. c\n4. d",
        ] {
            assert!(Plan::read(text).is_ok(), "{text}: {:?}", Plan::read(text));
        }
    }

    #[test]
    fn a_step_that_is_missing_or_empty_is_named() {
        for (text, lacks) in [
            ("", "step 1"),
            ("I cannot help.", "step 1"),
            ("1. a\n2. b\n4. d", "step 3"),
            ("1. a\n2. b\n3. c", "step 4"),
            ("1. a\n2.\n3. c\n4. d", "step 2"),
            ("2. b\n3. c\n4. d", "step 1"),
        ] {
            assert_eq!(Plan::read(text).unwrap_err(), lacks, "{text}");
        }
        let long = format!("1. {}\n2. b\n3. c\n4. d", "a".repeat(MAX_PLAN_BYTES));
        assert!(Plan::read(&long).unwrap_err().starts_with("brevity"));
    }
}
