//! Requests, specifications and demonstrations, compiled in. Their source is `examples/guardagent`.

use portcullis_assist::guardagent::{Memory, demonstration};

use super::Suite;

/// What a suite asks for unless told otherwise.
#[derive(Debug, Clone, Copy)]
pub struct Shipped {
    /// The guard requests.
    pub requests: &'static str,
    /// What the target agent is.
    pub specification: &'static str,
    demonstrations: &'static [(&'static str, &'static str)],
}

macro_rules! shipped {
    ($suite:literal, $($demonstration:literal),*) => {
        Shipped {
            requests: include_str!(concat!("../../../../examples/guardagent/", $suite, "/requests.md")),
            specification: include_str!(concat!("../../../../examples/guardagent/", $suite, "/specification.md")),
            demonstrations: &[$(($demonstration, include_str!(concat!(
                "../../../../examples/guardagent/", $suite, "/demonstrations/", $demonstration, ".toml"
            )))),*],
        }
    };
}

const EICU: Shipped = shipped!("eicu-ac", "nursing-cost");
const WEB: Shipped = shipped!("mind2web-sc", "flight", "hotel", "music");
const CSQA: Shipped = shipped!("csqa", "two-rules");

/// What is shipped for a suite.
pub fn of(suite: Suite) -> Shipped {
    match suite {
        Suite::EicuAc => EICU,
        Suite::Mind2WebSc => WEB,
        Suite::Csqa => CSQA,
    }
}

impl Shipped {
    /// The demonstrations as a memory.
    pub fn memory(&self) -> Memory {
        let mut memory = Memory::new();
        for (name, text) in self.demonstrations {
            // A test holds each to its form.
            if let Ok(example) = demonstration(name, text) {
                let _full = memory.add(example);
            }
        }
        memory
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_demonstration_of_the_examples_is_shipped_and_can_be_read() {
        for suite in [Suite::EicuAc, Suite::Mind2WebSc, Suite::Csqa] {
            let folder = format!("../../examples/guardagent/{}/demonstrations", suite.as_str());
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
            let written = portcullis_assist::guardagent::demonstrations(&folder).unwrap();
            let shipped = of(suite).memory();
            assert!(shipped.examples().eq(written.examples()), "{}", suite.as_str());
            assert!(!shipped.is_empty());
        }
    }
}
