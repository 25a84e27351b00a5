//! Licences, bans and sources of every package we build on, held to `deny.toml`.
//!
//! The file is cargo-deny's and can be given to it; what is read here is the part that decides what may be shipped,
//! from cargo's own metadata, so that no further tool has to be built first.

use serde_json::Value;

use crate::process::{Failure, Result, doing};

/// How deep a licence expression may nest.
const DEPTH_MAX: usize = 16;

/// The rules of `deny.toml`.
struct Rules {
    licences: Vec<String>,
    exceptions: Vec<(String, Vec<String>)>,
    banned: Vec<String>,
    registries: Vec<String>,
}

/// How many packages the metadata names.
pub(super) fn count(metadata: &Value) -> usize {
    metadata.get("packages").and_then(Value::as_array).map_or(0, Vec::len)
}

/// Every package that the rules do not allow.
///
/// # Errors
/// `deny.toml` or the metadata cannot be read.
pub(super) fn check(metadata: &Value, rules: &str) -> Result<Vec<String>> {
    let rules = read_rules(rules)?;
    let packages = metadata
        .get("packages")
        .and_then(Value::as_array)
        .ok_or_else(|| Failure::new("cargo's metadata has no `packages`"))?;
    Ok(packages.iter().flat_map(|package| problems(package, &rules)).collect())
}

fn problems(package: &Value, rules: &Rules) -> Vec<String> {
    let field = |name: &str| package.get(name).and_then(Value::as_str);
    let name = field("name").unwrap_or("a package without a name");
    let mut problems = Vec::new();
    if rules.banned.iter().any(|banned| banned == name) {
        problems.push(format!("{name}: banned by deny.toml; `cargo tree -i {name}` says who wants it"));
    }
    if let Some(source) = field("source")
        && !rules.registries.iter().any(|registry| source.strip_prefix("registry+") == Some(registry))
    {
        problems.push(format!("{name}: comes from `{source}`, which deny.toml does not allow"));
    }
    let excepted =
        rules.exceptions.iter().filter(|(crate_name, _)| crate_name == name).flat_map(|(_, more)| more);
    let allowed: Vec<&str> = rules.licences.iter().chain(excepted).map(String::as_str).collect();
    match field("license") {
        None => problems.push(format!("{name}: names no licence; look into its files before allowing it")),
        Some(licence) => match satisfied(licence, &allowed) {
            Some(true) => {}
            Some(false) => problems.push(format!("{name}: `{licence}` is not allowed by deny.toml")),
            None => problems.push(format!("{name}: `{licence}` is no licence expression that can be read")),
        },
    }
    problems
}

fn read_rules(text: &str) -> Result<Rules> {
    let table: toml::Table = doing("read `deny.toml`", text.parse())?;
    let list = |section: &str, key: &str| {
        let found = table.get(section).and_then(|section| section.get(key)).and_then(toml::Value::as_array);
        found.ok_or_else(|| Failure::new(format!("`deny.toml` has no list `{key}` in [{section}]")))
    };
    let strings =
        |values: &[toml::Value]| values.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect();
    let exceptions = list("licenses", "exceptions")?.iter().filter_map(|entry| {
        let allow = entry.get("allow")?.as_array()?;
        Some((entry.get("crate")?.as_str()?.to_owned(), strings(allow)))
    });
    let banned =
        list("bans", "deny")?.iter().filter_map(|entry| Some(entry.get("crate")?.as_str()?.to_owned()));
    Ok(Rules {
        licences: strings(list("licenses", "allow")?),
        exceptions: exceptions.collect(),
        banned: banned.collect(),
        registries: strings(list("sources", "allow-registry")?),
    })
}

/// Whether an SPDX expression can be met with the allowed licences; `None` when it is not one.
fn satisfied(expression: &str, allowed: &[&str]) -> Option<bool> {
    // The older `MIT/Apache-2.0` means either.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    let met = either(&mut words, allowed, 0)?;
    words.next().is_none().then_some(met)
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn either(words: &mut Words<'_>, allowed: &[&str], depth: usize) -> Option<bool> {
    let mut met = both(words, allowed, depth)?;
    while words.next_if_eq(&"OR").is_some() {
        met |= both(words, allowed, depth)?;
    }
    Some(met)
}

fn both(words: &mut Words<'_>, allowed: &[&str], depth: usize) -> Option<bool> {
    let mut met = single(words, allowed, depth)?;
    while words.next_if_eq(&"AND").is_some() {
        met &= single(words, allowed, depth)?;
    }
    Some(met)
}

fn single(words: &mut Words<'_>, allowed: &[&str], depth: usize) -> Option<bool> {
    match words.next()? {
        "(" if depth < DEPTH_MAX => {
            let met = either(words, allowed, depth + 1)?;
            words.next_if_eq(&")").map(|_| met)
        }
        "(" | ")" | "AND" | "OR" | "WITH" => None,
        licence if words.next_if_eq(&"WITH").is_some() => {
            let whole = format!("{licence} WITH {}", words.next()?);
            Some(allowed.contains(&whole.as_str()))
        }
        licence => Some(allowed.contains(&licence)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const RULES: &str = r#"
        [licenses]
        allow = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"]
        exceptions = [{ allow = ["MPL-2.0"], crate = "webby" }]
        [bans]
        deny = [{ crate = "openssl-sys" }]
        [sources]
        allow-registry = ["https://example.com/index"]
    "#;

    fn problems(name: &str, licence: Option<&str>, source: Option<&str>) -> Vec<String> {
        let package = json!({"name": name, "license": licence, "source": source});
        check(&json!({"packages": [package]}), RULES).unwrap()
    }

    #[test]
    fn expressions_are_read_as_spdx_reads_them() {
        let allowed = ["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"];
        for (expression, expected) in [
            ("MIT", Some(true)),
            ("GPL-3.0", Some(false)),
            ("GPL-3.0 OR MIT", Some(true)),
            ("GPL-3.0 AND MIT", Some(false)),
            ("GPL-3.0 AND Zlib OR MIT", Some(true)),
            ("(GPL-3.0 OR MIT) AND Zlib", Some(true)),
            ("MIT AND (GPL-3.0 AND Zlib)", Some(false)),
            ("MIT/Apache-2.0", Some(true)),
            ("Apache-2.0 WITH LLVM-exception", Some(true)),
            ("Apache-2.0", Some(false)),
            ("MIT OR", None),
            ("(MIT", None),
            ("MIT)", None),
            ("", None),
        ] {
            assert_eq!(satisfied(expression, &allowed), expected, "{expression}");
        }
        let deep = format!("{}MIT{}", "(".repeat(100), ")".repeat(100));
        assert_eq!(satisfied(&deep, &allowed), None);
    }

    #[test]
    fn what_the_rules_forbid_fires() {
        assert_eq!(problems("a", Some("GPL-3.0"), None).len(), 1);
        assert_eq!(problems("a", None, None).len(), 1);
        assert_eq!(problems("openssl-sys", Some("MIT"), None).len(), 1);
        assert_eq!(problems("a", Some("MIT"), Some("git+https://example.com/index")).len(), 1);
        assert_eq!(problems("a", Some("MPL-2.0"), None).len(), 1);
    }

    #[test]
    fn what_they_allow_is_silent() {
        assert_eq!(
            problems("a", Some("MIT OR GPL-3.0"), Some("registry+https://example.com/index")).len(),
            0
        );
        assert_eq!(problems("webby", Some("MPL-2.0"), None).len(), 0);
    }

    #[test]
    fn rules_without_a_list_are_an_error() {
        assert!(check(&json!({"packages": []}), "[licenses]\nallow = []").is_err());
    }
}
