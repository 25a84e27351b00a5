//! Where credentials are kept.
//!
//! A pattern without a slash describes a file or folder of that name anywhere, one with slashes that sequence of
//! names anywhere, one that begins with `/` or `~/` a place. What is below a secret folder is secret.
//! Letters match in both cases, because some file systems do not tell them apart.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;
use std::sync::LazyLock;

use portcullis_core::names::NameHasher;

use super::glob::{Component, Secret, is_glob};
use crate::Surroundings;

/// Names of files and folders, sorted.
const NAMES: [&str; 47] = [
    ".aws",
    ".boto",
    ".claude.json",
    ".credentials.json",
    ".dockercfg",
    ".env",
    ".envrc",
    ".fetchmailrc",
    ".git-credentials",
    ".gnupg",
    ".htpasswd",
    ".kube",
    ".msmtprc",
    ".my.cnf",
    ".mylogin.cnf",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".s3cfg",
    ".secrets",
    ".ssh",
    ".terraformrc",
    ".vault-token",
    ".yarnrc.yml",
    "_netrc",
    "agent.token",
    "application_default_credentials.json",
    "approver.token",
    "client_secret.json",
    "client_secrets.json",
    "cookies.sqlite",
    "credentials.db",
    "credentials.json",
    "credentials.yaml",
    "credentials.yml",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_rsa",
    "key4.db",
    "login data",
    "logins.json",
    "master.key",
    "terraform.tfstate",
    "wallet.dat",
];

/// Patterns of names.
const NAME_PATTERNS: [&str; 32] = [
    ".env.*",
    "*.env",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.ppk",
    "*.kdbx",
    "*.kdb",
    "*.agekey",
    "*.ovpn",
    "*.tfvars",
    "*.tfstate",
    "*.tfstate.backup",
    "*.keychain",
    "*.keychain-db",
    "id_rsa*",
    "id_ed25519*",
    "id_ecdsa*",
    "client_secret*.json",
    "service-account*.json",
    "service_account*.json",
    "secrets.json",
    "secrets.toml",
    "secrets.y*ml",
    "secrets.env",
    "secrets.ini",
    "secrets.properties",
    "secrets.txt",
    "secrets.enc",
];

/// Histories of shells and clients hold what was typed, passwords included.
const HISTORIES: [&str; 10] = [
    ".bash_history",
    ".zsh_history",
    ".zhistory",
    ".sh_history",
    ".ash_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    "fish_history",
];

/// Places.
const PLACES: [&str; 50] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/master.passwd",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssh/ssh_host_*",
    "/etc/ssl/private",
    "/etc/kubernetes",
    "/etc/krb5.keytab",
    "/etc/security/opasswd",
    "/etc/wireguard",
    "/etc/networkmanager/system-connections",
    "/etc/letsencrypt/live",
    "/etc/letsencrypt/archive",
    "/proc/*/environ",
    "/proc/*/mem",
    "/proc/kcore",
    "/dev/mem",
    "/dev/kmem",
    "/run/secrets",
    "/var/run/secrets",
    "/run/credentials",
    "/var/lib/docker",
    "/var/lib/sss/db",
    "credentials/agent.token",
    "credentials/approver.token",
    "portcullis/credentials",
    ".azure",
    ".config/gcloud",
    ".config/gh/hosts.yml",
    ".config/hub",
    ".config/rclone/rclone.conf",
    ".config/op",
    ".config/sops/age",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".docker/config.json",
    ".gem/credentials",
    ".local/share/keyrings",
    ".m2/settings.xml",
    ".terraform.d/credentials.tfrc.json",
    "library/keychains",
    ".mozilla/firefox",
    ".config/google-chrome",
    ".config/chromium",
    ".config/bravesoftware",
    "library/application support/google/chrome",
    "library/application support/firefox",
];

/// Files that look like secrets and are made to be shared.
fn is_shared(name: &str) -> bool {
    let example = name.starts_with(".env.")
        && [".example", ".sample", ".template", ".dist", ".defaults", ".schema"]
            .iter()
            .any(|end| name.ends_with(end));
    let public = name.ends_with(".pub") && !is_glob(name);
    example || public || matches!(name, ".env.d.ts" | "example.env" | "sample.env" | "template.env")
}

static NAMES_AND_PATTERNS: LazyLock<Vec<Secret>> = LazyLock::new(|| {
    NAMES.iter().chain(&NAME_PATTERNS).chain(&HISTORIES).map(|name| Secret::new(name)).collect()
});
static PATTERNS: LazyLock<Vec<Secret>> =
    LazyLock::new(|| NAME_PATTERNS.iter().map(|name| Secret::new(name)).collect());
static TAKEN_APART: LazyLock<Vec<Place>> =
    LazyLock::new(|| PLACES.iter().map(|place| Place::new(place, None)).collect());
/// What a plain name of a path has to be for the path to be in one of [`PLACES`]: how one of them begins.
static BEGINNINGS: LazyLock<HashSet<&str, BuildHasherDefault<NameHasher>>> = LazyLock::new(|| {
    PLACES.iter().filter_map(|place| place.split('/').find(|part| !part.is_empty())).collect()
});

/// Whether the path is, or is in, a place where credentials are kept.
pub(super) fn is_secret(components: &[Component], absolute: bool, surroundings: &Surroundings<'_>) -> bool {
    if components.last().is_some_and(|name| is_shared(name.text())) {
        return false;
    }
    components.iter().any(is_secret_name)
        || may_begin(components) && TAKEN_APART.iter().any(|place| place.holds(components, absolute))
        || surroundings
            .settings
            .secrets
            .iter()
            .any(|pattern| Place::new(&pattern.to_lowercase(), surroundings.home).holds(components, absolute))
}

/// Whether one of [`PLACES`], none of which begins with a pattern, may begin in the path.
fn may_begin(components: &[Component]) -> bool {
    components.iter().any(|name| name.is_glob() || BEGINNINGS.contains(name.text()))
}

fn is_secret_name(name: &Component) -> bool {
    if name.is_glob() {
        return NAMES_AND_PATTERNS.iter().any(|secret| name.may_be(secret, true));
    }
    NAMES.binary_search(&name.text()).is_ok()
        || HISTORIES.contains(&name.text())
        || may_fit_a_pattern(name.text()) && PATTERNS.iter().any(|pattern| name.may_be(pattern, true))
}

/// Whether a plain name has what every name has that one of [`NAME_PATTERNS`] matches.
fn may_fit_a_pattern(name: &str) -> bool {
    name.contains('.') || name.starts_with("id_")
}

/// A description of secrets, taken apart.
#[derive(Debug)]
struct Place {
    parts: Vec<Secret>,
    /// Whether the path has to begin with it.
    anchored: bool,
}

impl Place {
    /// Takes a description apart, which is in lower case.
    fn new(pattern: &str, home: Option<&str>) -> Self {
        let from_home =
            pattern.strip_prefix("~/").map(|rest| format!("{}/{rest}", home.unwrap_or("~").to_lowercase()));
        let pattern = from_home.as_deref().unwrap_or(pattern);
        let parts = pattern.split('/').filter(|part| !part.is_empty()).map(Secret::new).collect();
        Self { parts, anchored: pattern.starts_with('/') }
    }

    /// Whether the path matches the description or is below something that does. Steps through the path with the
    /// set of parts that have been reached; `**` stands for any number of folders.
    fn holds(&self, components: &[Component], absolute: bool) -> bool {
        if self.parts.is_empty() || self.anchored && !absolute {
            return false;
        }
        // Names alone ask more of a pattern in the path than places do.
        let strict = self.parts.len() == 1;
        // Nearly always the path does not even begin to fit.
        let places = if self.anchored { components.get(..1).unwrap_or_default() } else { components };
        let begins =
            |part: &Secret| part.is("**") || places.iter().any(|component| component.may_be(part, strict));
        if !self.parts.first().is_some_and(begins) {
            return false;
        }
        let mut reached = vec![false; self.parts.len() + 1];
        let mut next = reached.clone();
        if let Some(start) = reached.first_mut() {
            *start = true;
        }
        for component in components {
            self.skip_any_folders(&mut reached);
            next.fill(false);
            for (at, part) in self.parts.iter().enumerate().filter(|&(at, _)| reached.get(at) == Some(&true))
            {
                let any = part.is("**");
                if any || component.may_be(part, strict) {
                    let to = if any { at } else { at + 1 };
                    next.get_mut(to).into_iter().for_each(|place| *place = true);
                }
            }
            if !self.anchored {
                next.first_mut().into_iter().for_each(|place| *place = true);
            }
            std::mem::swap(&mut reached, &mut next);
            if reached.last() == Some(&true) {
                return true;
            }
            if !reached.contains(&true) {
                return false;
            }
        }
        self.skip_any_folders(&mut reached);
        reached.last() == Some(&true)
    }

    fn skip_any_folders(&self, reached: &mut [bool]) {
        for (at, part) in self.parts.iter().enumerate() {
            if reached.get(at) == Some(&true) && part.is("**") {
                reached.get_mut(at + 1).into_iter().for_each(|place| *place = true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_fit_no_pattern_are_known_at_a_glance() {
        for pattern in NAME_PATTERNS {
            let fixed = pattern.trim_start_matches('*');
            assert!(fixed.contains('.') || pattern.starts_with("id_"), "{pattern}");
        }
    }

    #[test]
    fn no_place_begins_with_a_pattern() {
        assert!(BEGINNINGS.iter().all(|name| !is_glob(name)));
        assert!(BEGINNINGS.contains("etc") && BEGINNINGS.contains(".config"));
    }
}
