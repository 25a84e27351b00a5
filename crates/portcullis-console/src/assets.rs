//! The files that pages name: a style sheet and a script, both our own.

use std::sync::LazyLock;

use portcullis_core::id::DigestBuilder;

/// The style sheet.
pub const STYLE: &str = concat!(include_str!("../assets/console.css"), include_str!("../assets/pages.css"));
/// The script. Every page works without it.
pub const SCRIPT: &str = include_str!("../assets/console.js");
/// Path of the style sheet: it has the digest of its content, so it never changes under its name.
pub fn style_path() -> &'static str {
    static PATH: LazyLock<String> = LazyLock::new(|| path("console", STYLE, "css"));
    &PATH
}

/// Path of the script.
pub fn script_path() -> &'static str {
    static PATH: LazyLock<String> = LazyLock::new(|| path("console", SCRIPT, "js"));
    &PATH
}

fn path(name: &str, content: &str, extension: &str) -> String {
    let digest = DigestBuilder::new("portcullis/asset/v1").part(content.as_bytes()).finish().to_string();
    let hex = digest.rsplit(':').next().unwrap_or_default();
    format!("/assets/{name}-{}.{extension}", hex.get(..12).unwrap_or_default())
}

/// What a browser may do with a page: load the two files, send forms here, and nothing else.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
