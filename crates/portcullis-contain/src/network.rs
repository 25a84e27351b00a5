//! What a driver can give to the proxy of a command: where names lead, and who is told of each connection.

use std::fmt;
use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::Arc;

use portcullis_core::observed::Connection;

/// Says which addresses a name has.
pub trait Names: Send + Sync + fmt::Debug {
    /// The addresses of a name, in the order in which they are tried. It may block: it runs on a thread of its own.
    ///
    /// # Errors
    /// The name has none, or nobody answers.
    fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The names that this machine knows: its files and its name servers.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemNames;

impl Names for SystemNames {
    fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok((name, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
    }
}

/// What is called for each connection.
type Function = dyn Fn(&Connection) + Send + Sync;

/// Who is told of each connection of a command when it has ended, while the command still runs. It is called from the
/// proxy's threads: it should not wait.
#[derive(Clone, Default)]
pub struct OnConnection(Option<Arc<Function>>);

impl OnConnection {
    /// Calls this for each connection.
    pub fn call(function: impl Fn(&Connection) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(function)))
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn tell(&self, connection: &Connection) {
        if let Some(function) = &self.0 {
            function(connection);
        }
    }
}

impl fmt::Debug for OnConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "OnConnection(a function)" } else { "OnConnection(nobody)" })
    }
}
