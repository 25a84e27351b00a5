//! Where permits come from.
//!
//! Inside the session's crate the type system says where a permit is made. Across the daemon's socket it is made of an
//! answer, by a public function that only the client of the socket may call: no type can say that, so this does.

use super::Files;

/// Makes a permit of the daemon's answer.
const RECEIVED: &str = concat!("Proposed::", "received");
/// Where it may be called.
const CLIENT: &str = "crates/portcullis-gateway/src/client/mod.rs";

/// Every other place that makes a permit of an answer.
pub(super) fn check(files: &Files) -> Vec<String> {
    let code = files.iter().filter(|(path, _)| path.ends_with(".rs") && *path != CLIENT);
    let mut problems = Vec::new();
    for (path, text) in code.filter(|(path, _)| !path.ends_with("tests.rs") && !path.contains("/tests/")) {
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            if line.contains(RECEIVED) && !line.trim_start().starts_with("//") {
                let line = number + 1;
                problems
                    .push(format!("{path}:{line}: only `{CLIENT}` makes permits of the daemon's answers"));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_client_of_the_socket_makes_permits_of_answers() {
        let call = format!("fn f() {{ {RECEIVED}(answer) }}\n");
        let of = |path: &str, text: &str| check(&Files::from([(path.to_owned(), text.to_owned())]));
        assert!(of(CLIENT, &call).is_empty());
        let problems = of("crates/portcullis-gateway/src/hook/mod.rs", &call);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(of("crates/portcullis-gateway/src/hook/tests.rs", &call).is_empty());
        let in_tests = format!("fn f() {{}}\n#[cfg(test)]\nmod tests {{ {call} }}\n");
        assert!(of("crates/portcullis-session/src/permit.rs", &in_tests).is_empty());
    }
}
