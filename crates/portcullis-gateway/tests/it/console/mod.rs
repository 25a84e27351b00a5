//! The console, as browsers and others meet it: over HTTP byte by byte, and in a real Chromium.

mod answers;
mod browser;
mod desk;
mod evidence;
mod full;
mod http;
mod pages;
mod simulate;

use portcullis_console::Role;
use portcullis_gateway::api::{MakeLink, ReportInput, Role as Speaker};
use portcullis_gateway::daemon::ConsoleAt;

use portcullis_session::engine::Reach;

use crate::daemon::Daemon;

use self::http::Http;

/// What the user says.
fn said(text: &str) -> ReportInput {
    ReportInput { text: text.into(), role: Speaker::User, reach: Reach::Replace }
}

/// A daemon with a console.
pub(crate) struct Console {
    pub(crate) daemon: Daemon,
    /// As a browser reaches it.
    pub(crate) origin: String,
}

impl Console {
    pub(crate) async fn start() -> Self {
        Self::of(
            Daemon::start_with(|options| {
                options.console = Some(ConsoleAt { address: "127.0.0.1:0".parse().unwrap(), origin: None });
            })
            .await,
        )
        .await
    }

    async fn of(daemon: Daemon) -> Self {
        let origin = daemon.approver().console_link(&MakeLink::default()).await.unwrap().origin;
        Self { daemon, origin }
    }

    /// A link that signs in.
    pub(crate) async fn link(&self) -> String {
        self.daemon.approver().console_link(&MakeLink::default()).await.unwrap().url
    }

    /// A link that invites somebody.
    async fn invitation(&self, name: &str, role: Role) -> String {
        let make = MakeLink { invite: Some(name.into()), role: Some(role.as_str().into()) };
        self.daemon.approver().console_link(&make).await.unwrap().url
    }

    pub(crate) fn http(&self) -> Http {
        Http::at(&self.origin)
    }

    /// Somebody who came by a link.
    pub(crate) async fn admin(&self) -> Http {
        let mut http = self.http();
        http.follow(&self.link().await).await;
        http
    }

    /// Somebody with a password.
    pub(crate) async fn person(&self, name: &str, role: Role) -> Http {
        let mut http = self.http();
        let link = self.invitation(name, role).await;
        let token = link.rsplit('=').next().unwrap();
        let password = "correct horse battery";
        let fields = [("token", token), ("password", password), ("again", password)];
        let answer = http.post("/sign-in/invitation", &fields).await;
        assert_eq!(answer.status, 303, "{}", answer.body);
        http
    }
}
