//! What one caller takes of the daemon leaves room for others.

use portcullis_core::principal::CredentialKind;
use portcullis_gateway::api::{ReportInput, Role};
use portcullis_session::engine::Reach;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use crate::daemon::{Daemon, open, token};

#[tokio::test(flavor = "multi_thread")]
async fn exports_that_an_agent_does_not_read_leave_room_for_others() {
    let daemon = Daemon::start().await;
    let (agent, approver) = (daemon.agent(), daemon.approver());
    let run = agent.open_run(&open("mail", None)).await.unwrap().run;
    // More than sockets and pieces take up, so that an export that is not read does not end.
    for _ in 0..6 {
        let said = ReportInput { text: "word ".repeat(190_000), role: Role::User, reach: Reach::Replace };
        agent.input(run, &said).await.unwrap();
    }
    let path = format!("/v1/runs/{run}/export");
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: gate\r\nAuthorization: Bearer {}\r\n\r\n",
        token(&daemon.home, CredentialKind::Agent)
    );
    let mut unread = Vec::new();
    let mut statuses = Vec::new();
    for _ in 0..8 {
        let mut stream = UnixStream::connect(daemon.home.socket()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.unwrap();
        statuses.push(String::from_utf8_lossy(&status[9..]).into_owned());
        unread.push(stream);
    }
    assert_eq!(statuses[..2], ["200", "200"], "{statuses:?}");
    assert!(statuses[2..].iter().all(|status| status == "503"), "{statuses:?}");
    let mut export = Vec::new();
    approver.export(&run.to_string(), &mut export).await.unwrap();
    assert!(export.len() > 5_000_000, "{}", export.len());
    drop(unread);
}
