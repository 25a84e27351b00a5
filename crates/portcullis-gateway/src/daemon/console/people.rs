//! People who sign in with a password: a file of the state folder, and the page that invites them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use axum::extract::State;
use axum::response::{IntoResponse as _, Redirect, Response};
use maud::html;
use portcullis_console::door::{self, Person};
use portcullis_console::frame::Place;
use portcullis_console::marks::Standing;
use portcullis_console::{Markup, Role};
use portcullis_core::id::RunId;
use portcullis_core::principal::{CredentialKind, Principal};
use portcullis_ledger::clock;
use portcullis_session::credentials::Identity;
use portcullis_session::engine::Reach;
use portcullis_session::surface::Surface as _;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::super::error::Failure;
use super::Seen;
use super::links::{Good, address};
use super::page;
use super::visitor::{Form, Visitor};
use crate::{api, state_file};

/// File in the console's folder.
const FILE: &str = "people.json";
/// The surface of runs that record who may sign in.
pub(super) const SURFACE: &str = "console";
/// People who may sign in.
const PEOPLE_MAX: usize = 1_000;
/// Size of the file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Longest name, in bytes.
const NAME_BYTES_MAX: usize = 64;
/// Longest password, in bytes: hashing is work that a stranger can ask for.
const PASSWORD_BYTES_MAX: usize = 1_024;
/// Passwords that are checked at once: each takes 19 MiB for some milliseconds.
const CHECKED_AT_ONCE: usize = 2;

/// Somebody with a password.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Account {
    name: String,
    role: String,
    /// Argon2id, in the form of the PHC.
    password: String,
    invited_by: String,
    since: String,
}

/// Those with a password.
#[derive(Debug)]
pub(super) struct People {
    file: PathBuf,
    accounts: Mutex<Vec<Account>>,
    room: Semaphore,
}

/// Whether a name can be somebody's: it stands in the record and in addresses of pages.
pub(super) fn check_name(name: &str) -> Result<(), &'static str> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'@');
    match () {
        () if name.is_empty() || name.len() > NAME_BYTES_MAX => Err("a name has 1 to 64 characters"),
        () if !name.bytes().all(fits) => Err("a name has ASCII letters, digits, and `.-_@`"),
        () if name.starts_with("local-") => Err("names that begin with `local-` are the gate’s own"),
        () => Ok(()),
    }
}

/// Whether a password may be one.
pub(super) fn check_password(password: &str) -> Result<(), String> {
    if password.chars().count() < door::PASSWORD_CHARS_MIN || password.len() > PASSWORD_BYTES_MAX {
        return Err(format!("A password has at least {} characters.", door::PASSWORD_CHARS_MIN));
    }
    Ok(())
}

impl People {
    pub(super) fn load(folder: &Path) -> Result<Self, (PathBuf, io::Error)> {
        let file = folder.join(FILE);
        let failed = |error| (file.clone(), error);
        let accounts = match fs::metadata(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(failed(error)),
            Ok(meta) if meta.len() > FILE_BYTES_MAX => {
                return Err(failed(io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes"))));
            }
            Ok(_) => {
                let text = fs::read(&file).map_err(failed)?;
                serde_json::from_slice(&text).map_err(|error| failed(io::Error::other(error)))?
            }
        };
        Ok(Self { accounts: Mutex::new(accounts), room: Semaphore::new(CHECKED_AT_ONCE), file })
    }

    fn with<T>(&self, look: impl FnOnce(&mut Vec<Account>) -> T) -> T {
        look(&mut self.accounts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn are_there(&self) -> bool {
        self.with(|accounts| !accounts.is_empty())
    }

    /// As what somebody may sign in now.
    pub(super) fn role_of(&self, name: &str) -> Option<Role> {
        self.with(|accounts| {
            let account = accounts.iter().find(|account| account.name == name)?;
            Role::from_name(&account.role)
        })
    }

    /// Whether this is the password of that name. Takes as long for a name that nobody has.
    pub(super) async fn is_password(&self, name: &str, password: &str) -> bool {
        if password.len() > PASSWORD_BYTES_MAX {
            return false;
        }
        let stored = self.with(|accounts| {
            accounts.iter().find(|account| account.name == name).map(|account| account.password.clone())
        });
        let Ok(_room) = self.room.acquire().await else { return false };
        let password = password.to_owned();
        let checked = tokio::task::spawn_blocking(move || match stored {
            Some(stored) => PasswordHash::new(&stored)
                .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok()),
            None => {
                let _same_work = Argon2::default().hash_password(password.as_bytes());
                false
            }
        });
        checked.await.unwrap_or(false)
    }

    /// Gives somebody a password.
    pub(super) async fn set(&self, name: &str, role: Role, by: &str, password: &str) -> Result<(), String> {
        check_password(password)?;
        let Ok(_room) = self.room.acquire().await else { return Err("The daemon ends.".to_owned()) };
        let password = password.to_owned();
        let hashed = tokio::task::spawn_blocking(move || {
            Argon2::default().hash_password(password.as_bytes()).map(|hash| hash.to_string())
        });
        let hashed = hashed.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        let account = Account {
            name: name.to_owned(),
            role: role.as_str().to_owned(),
            password: hashed,
            invited_by: by.to_owned(),
            since: clock::now().without_fraction(),
        };
        self.change(|accounts| {
            accounts.retain(|account| account.name != name);
            if accounts.len() >= PEOPLE_MAX {
                return Err(format!("{PEOPLE_MAX} people have a password already; remove some first"));
            }
            accounts.push(account);
            Ok(())
        })
    }

    fn remove(&self, name: &str) -> Result<bool, String> {
        self.change(|accounts| {
            let before = accounts.len();
            accounts.retain(|account| account.name != name);
            Ok(accounts.len() < before)
        })
    }

    /// Changes who is there, on the disk first.
    fn change<T>(&self, change: impl FnOnce(&mut Vec<Account>) -> Result<T, String>) -> Result<T, String> {
        self.with(|accounts| {
            let mut changed = accounts.clone();
            let answer = change(&mut changed)?;
            let text = serde_json::to_vec_pretty(&changed).map_err(|error| error.to_string())?;
            state_file::write_private(&self.file, &text)
                .map_err(|error| format!("cannot write `{}`: {error}", self.file.display()))?;
            *accounts = changed;
            Ok(answer)
        })
    }
}

/// Whether people with a password may do more than look. Where the bundle maps an approver, deciding was moved out of
/// reach of this machine's files, so that a file of this machine cannot give it back.
pub(super) fn may_decide(seen: &Seen) -> bool {
    let Ok((_, bundle)) = seen.shared.gate.bundles().get(None) else { return false };
    !bundle.credentials.iter().any(|credential| credential.kind == CredentialKind::Approver)
}

pub(super) async fn page(State(seen): State<Seen>, visitor: Visitor) -> Response {
    match visitor.at_least(Role::Admin) {
        Ok(()) => shown(&seen, &visitor, None).await,
        Err(refused) => refused.page(&seen, &visitor).await,
    }
}

async fn shown(seen: &Seen, visitor: &Visitor, told: Option<(Standing, Markup)>) -> Response {
    let people: Vec<Person> = seen.console.people.with(|accounts| {
        let person = |account: &Account| Person {
            name: account.name.clone(),
            role: Role::from_name(&account.role).unwrap_or(Role::Viewer),
            invited: format!("by {}, {}", account.invited_by, account.since),
            here: seen.console.sessions.has(&account.name),
        };
        accounts.iter().map(person).collect()
    });
    let told = told.as_ref().map(|(standing, told)| (*standing, told));
    let body = door::people(&people, &visitor.session.csrf, told, may_decide(seen));
    page::framed(seen, visitor, Place::People, "People", body).await
}

/// Records a change of who may sign in, before it is made: as a run of its own, opened for whoever makes it, in which
/// the operator says what is done. Gives that run.
pub(super) async fn record(seen: &Seen, by: Principal, what: String) -> Result<RunId, Failure> {
    let kind = CredentialKind::Approver;
    let by = Identity { kind, principal: by, policy: None, of_this_machine: false };
    let open = api::OpenRun { surface: SURFACE.to_owned(), ..api::OpenRun::default() };
    let opened = seen.shared.local.open(by.clone(), open).await?;
    let run = seen.shared.local.run(&by, opened.run)?;
    run.input(api::ReportInput { text: what, role: api::Role::Operator, reach: Reach::Replace }).await?;
    run.close().await?;
    Ok(opened.run)
}

pub(super) async fn invite(State(seen): State<Seen>, visitor: Visitor, form: Form) -> Response {
    if let Err(refused) = visitor.at_least(Role::Admin).and_then(|()| form.of(&visitor)) {
        return refused.page(&seen, &visitor).await;
    }
    let (name, role) = (form.get("name").trim(), Role::from_name(form.get("role")));
    let told = match invited(&seen, &visitor, name, role).await {
        Err(why) => (Standing::Bad, html! { p { "Nobody was invited: " (why) "." } }),
        Ok((url, role)) => (
            Standing::Ok,
            html! {
                p { "A link for " b { (name) } ", " (role.as_str()) ". It works once, within a day; it is not shown again." }
                p { code .wrap #invitation { (url) } }
            },
        ),
    };
    shown(&seen, &visitor, Some(told)).await
}

async fn invited(
    seen: &Seen,
    visitor: &Visitor,
    name: &str,
    role: Option<Role>,
) -> Result<(String, Role), String> {
    check_name(name)?;
    let role = role.ok_or("choose what they may do")?;
    let by = visitor.session.principal.clone();
    let what = format!("{name} is invited to the console as {}", role.as_str());
    record(seen, by.clone(), what).await.map_err(|failure| failure.told().1)?;
    let made = seen.console.links.make(Good::Invitation { name: name.to_owned(), role, by: by.id });
    let token = made.map_err(|error| error.to_string())?.ok_or("too many links wait to be used")?;
    Ok((address(&seen.console.origin, &token), role))
}

pub(super) async fn remove(State(seen): State<Seen>, visitor: Visitor, form: Form) -> Response {
    if let Err(refused) = visitor.at_least(Role::Admin).and_then(|()| form.of(&visitor)) {
        return refused.page(&seen, &visitor).await;
    }
    let name = form.get("name");
    let removed = async {
        if seen.console.people.role_of(name).is_none() {
            return Ok(());
        }
        let what = format!("{name} may not sign in to the console any more");
        let recorded = record(&seen, visitor.session.principal.clone(), what).await;
        recorded.map_err(|failure| failure.told().1)?;
        seen.console.people.remove(name)?;
        seen.console.sessions.end_all_of(name);
        Ok::<(), String>(())
    };
    match removed.await {
        Ok(()) => Redirect::to("/people").into_response(),
        Err(why) => shown(&seen, &visitor, Some((Standing::Bad, html! { p { (why) } }))).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn passwords_are_kept_as_hashes_and_outlast_the_daemon() {
        let folder = tempfile::tempdir().unwrap();
        let people = People::load(folder.path()).unwrap();
        assert!(people.set("ada", Role::Approver, "me", "short").await.unwrap_err().contains("12"));
        people.set("ada", Role::Approver, "me", "correct horse battery").await.unwrap();
        let text = fs::read_to_string(folder.path().join(FILE)).unwrap();
        assert!(text.contains("$argon2id$") && !text.contains("horse"), "{text}");
        let again = People::load(folder.path()).unwrap();
        assert_eq!(again.role_of("ada"), Some(Role::Approver));
        assert!(again.is_password("ada", "correct horse battery").await);
        assert!(!again.is_password("ada", "correct horse").await);
        assert!(!again.is_password("bob", "correct horse battery").await);
        assert!(again.remove("ada").unwrap() && !again.are_there());
        assert!(!People::load(folder.path()).unwrap().is_password("ada", "correct horse battery").await);
    }

    #[test]
    fn names_are_plain() {
        assert!(check_name("anna.berg@corp-1").is_ok());
        for wrong in ["", "a b", "é", "local-approver", "a/b", &"x".repeat(65)] {
            assert!(check_name(wrong).is_err(), "{wrong}");
        }
    }
}
