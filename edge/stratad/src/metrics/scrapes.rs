//! The listener for collectors, if `[metrics]` asks for one.

use anyhow::{Context, Result, anyhow};
use config::{Config, MetricsAddress};
use control::{Access, CannotListen, Socket};
use os::{Listener, Waker};
use scrape::Server;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;

/// The listener, and the descriptor that is readable when a page is wanted.
pub struct Scrapes {
    waker: Arc<Waker>,
    running: Option<Running>,
}

struct Running {
    address: MetricsAddress,
    server: Server,
    /// The file of a Unix socket.
    _socket: Option<Socket>,
}

impl Scrapes {
    /// Listens if the configuration asks for it.
    pub fn open(config: &Config) -> Result<Self> {
        let waker = Arc::new(Waker::new()?);
        let address = config.metrics.as_ref();
        let running = address.map(|address| Running::start(address, config, &waker));
        Ok(Self {
            running: running.transpose()?,
            waker,
        })
    }

    /// Listens at the address of another configuration. If that fails, the listener stays.
    pub fn reconfigure(&mut self, config: &Config) -> Result<()> {
        let before = self.running.as_ref().map(|running| running.address.clone());
        if before == config.metrics {
            return Ok(());
        }
        // Closed first: both addresses may have the same port.
        self.running = None;
        let start = |address: &MetricsAddress| Running::start(address, config, &self.waker);
        match config.metrics.as_ref().map(start).transpose() {
            Ok(running) => self.running = running,
            Err(error) => {
                self.running = before.as_ref().and_then(|before| start(before).ok());
                return Err(error);
            }
        }
        Ok(())
    }

    /// Returns true if a page is wanted. [`Self::publish`] has to follow.
    pub fn is_wanted(&self) -> bool {
        self.waker.heard();
        let running = self.running.as_ref();
        running.is_some_and(|running| running.server.is_wanted())
    }

    /// Hands the page over.
    pub fn publish(&self, text: String) {
        if let Some(running) = &self.running {
            running.server.publish(text);
        }
    }
}

impl AsFd for Scrapes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}

impl Running {
    fn start(address: &MetricsAddress, config: &Config, waker: &Arc<Waker>) -> Result<Self> {
        let (listener, socket) = match address {
            MetricsAddress::Tcp(address) => {
                let listener = Listener::bind(*address, None)?;
                (scrape::Listener::Tcp(listener.into()), None)
            }
            MetricsAddress::Unix(path) => {
                let socket = bind(path, config.readers.as_deref())?;
                let listener = socket.listener().try_clone()?;
                (scrape::Listener::Unix(listener), Some(socket))
            }
        };
        let wake = Arc::clone(waker);
        let server = Server::start(listener, move || wake.wake());
        Ok(Self {
            address: address.clone(),
            server: server.context("starting the thread for metrics")?,
            _socket: socket,
        })
    }
}

/// Listens on a Unix socket for the group of readers, or for the user of the daemon alone.
fn bind(path: &Path, readers: Option<&str>) -> Result<Socket> {
    let access = readers.map_or(Ok(Access::Owner), Access::of_group)?;
    Socket::bind(path, access).map_err(|error| {
        let what = match error {
            CannotListen::Running(_) => "another process listens there".to_owned(),
            CannotListen::InTheWay(_) => "the file exists and is not a socket".to_owned(),
            CannotListen::Failed { source, .. } => source.to_string(),
            error @ (CannotListen::NoGroup(_) | CannotListen::NotGiven { .. }) => {
                return error.into();
            }
        };
        let path = path.display();
        anyhow!("cannot listen on {path}: {what}\n  fix: correct `listen` in [metrics]")
    })
}
