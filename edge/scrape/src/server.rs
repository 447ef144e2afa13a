//! The thread that serves the page.

use crate::answer::page;
use crate::{Head, LONGEST_HEAD, Refusal};
use std::collections::VecDeque;
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::runtime;
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout};

/// Most connections. A new one beyond them takes the place of the oldest.
pub const MOST_CLIENTS: usize = 64;

/// Time for a connection.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Time for which a page is served again.
pub const FRESH: Duration = Duration::from_secs(1);

/// Time for the daemon to write a page.
const WRITING: Duration = Duration::from_secs(5);

/// Time after which the next connection is accepted: a flood of connections finds the processor
/// as idle as 500 a second do.
const EACH: Duration = Duration::from_millis(2);

/// Time until the next attempt after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// A socket that listens and does not block.
#[derive(Debug)]
pub enum Listener {
    /// Of TCP.
    Tcp(TcpListener),
    /// A Unix socket.
    Unix(UnixListener),
}

/// The thread, which ends with this.
#[derive(Debug)]
pub struct Server {
    pages: Arc<Pages>,
    /// Ends the thread when it is dropped.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The page on its way from the daemon to clients.
struct Pages {
    wanted: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
    latest: watch::Sender<Option<Page>>,
    /// Time for a connection.
    patience: Duration,
}

#[derive(Clone)]
struct Page {
    text: Arc<str>,
    written: Instant,
}

impl Server {
    /// Starts the thread. It calls `wake` when a page is wanted.
    pub fn start(listener: Listener, wake: impl Fn() + Send + Sync + 'static) -> io::Result<Self> {
        Self::start_with(listener, wake, PATIENCE)
    }

    /// Starts the thread with another time for a connection.
    pub(crate) fn start_with(
        listener: Listener,
        wake: impl Fn() + Send + Sync + 'static,
        patience: Duration,
    ) -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let acceptor = {
            let _entered = runtime.enter();
            Acceptor::new(listener)?
        };
        let pages = Arc::new(Pages {
            wanted: AtomicBool::new(false),
            wake: Box::new(wake),
            latest: watch::Sender::new(None),
            patience,
        });
        let (end, ended) = oneshot::channel();
        runtime.spawn(accept(acceptor, Arc::clone(&pages)));
        let thread = Builder::new().name("metrics".to_owned()).spawn(move || {
            // Ends as an error, as the sender is only dropped.
            let _ = runtime.block_on(ended);
        })?;
        Ok(Self {
            pages,
            end: Some(end),
            thread: Some(thread),
        })
    }

    /// Returns true if a page is wanted since the last call. [`Self::publish`] has to follow.
    pub fn is_wanted(&self) -> bool {
        self.pages.wanted.swap(false, Ordering::AcqRel)
    }

    /// Hands a page over to the clients that wait.
    pub fn publish(&self, text: String) {
        self.pages.latest.send_replace(Some(Page {
            text: text.into(),
            written: Instant::now(),
        }));
    }
}

impl Drop for Server {
    /// Closes all connections.
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Pages {
    /// Returns a page that is fresh, as soon as there is one.
    async fn fresh(&self) -> Option<Arc<str>> {
        let mut latest = self.latest.subscribe();
        loop {
            let page = latest.borrow_and_update().clone();
            if let Some(page) = page.filter(|page| page.written.elapsed() < FRESH) {
                return Some(page.text);
            }
            if !self.wanted.swap(true, Ordering::AcqRel) {
                (self.wake)();
            }
            latest.changed().await.ok()?;
        }
    }
}

impl std::fmt::Debug for Pages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pages").finish_non_exhaustive()
    }
}

/// A listener of the thread's runtime.
enum Acceptor {
    Tcp(tokio::net::TcpListener),
    Unix(tokio::net::UnixListener),
}

impl Acceptor {
    fn new(listener: Listener) -> io::Result<Self> {
        Ok(match listener {
            Listener::Tcp(listener) => Self::Tcp(tokio::net::TcpListener::from_std(listener)?),
            Listener::Unix(listener) => Self::Unix(tokio::net::UnixListener::from_std(listener)?),
        })
    }

    /// Accepts a connection, and serves it in a task of its own.
    async fn next(&self, pages: &Arc<Pages>) -> io::Result<AbortHandle> {
        let pages = Arc::clone(pages);
        Ok(match self {
            Self::Tcp(listener) => spawn(listener.accept().await?.0, pages),
            Self::Unix(listener) => spawn(listener.accept().await?.0, pages),
        })
    }
}

async fn accept(acceptor: Acceptor, pages: Arc<Pages>) {
    let mut clients: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        // Without a free descriptor, the next attempt would fail at once.
        let Ok(client) = acceptor.next(&pages).await else {
            sleep(PAUSE).await;
            continue;
        };
        clients.retain(|client| !client.is_finished());
        clients.push_back(client);
        if clients.len() > MOST_CLIENTS
            && let Some(oldest) = clients.pop_front()
        {
            oldest.abort();
        }
        sleep(EACH).await;
    }
}

fn spawn(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    pages: Arc<Pages>,
) -> AbortHandle {
    let served = async move {
        // A client that fails or is late is gone.
        let _ = timeout(pages.patience, serve(stream, &pages)).await;
    };
    tokio::spawn(served).abort_handle()
}

/// Answers one request.
async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, pages: &Pages) -> io::Result<()> {
    let refusal = match read(&mut stream).await? {
        None => match timeout(WRITING, pages.fresh()).await {
            Ok(Some(text)) => {
                stream.write_all(page(text.len()).as_bytes()).await?;
                stream.write_all(text.as_bytes()).await?;
                return stream.shutdown().await;
            }
            _ => Refusal::Late,
        },
        Some(refusal) => refusal,
    };
    stream.write_all(refusal.answer().as_bytes()).await?;
    stream.shutdown().await?;
    // The kernel resets a connection that is closed with octets unread, and the client may not see
    // the answer.
    let mut rest = [0; LONGEST_HEAD];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}

/// Reads a request. Returns the reason why it is not for the page.
async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Option<Refusal>> {
    let mut buffer = [0; LONGEST_HEAD];
    let mut filled = 0;
    loop {
        match stream.read(&mut buffer[filled..]).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => filled += count,
        }
        match Head::read(&buffer[..filled]) {
            Head::Incomplete => {}
            Head::Page => return Ok(None),
            Head::Refused(why) => return Ok(Some(why)),
        }
    }
}
