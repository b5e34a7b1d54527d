//! `mayfly serve`: an engine that MySQL's clients connect to.
//!
//! **Owns** the sockets, the threads that speak with clients, and who may come in. **Never** knows
//! a packet: that is `wire`; and never a plan: a client's commands are statements of its session.
//!
//! ```text
//!   accept -> thread of clients (a few; each speaks with many) -> session -> engine's workers
//! ```
//!
//! A client stays on the thread that took it in, the one with the fewest clients. Statements on
//! few rows run there; all others run on the engine's workers, so that a large query does not hold
//! up the clients of its thread.

#![deny(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

mod accounts;
mod columns;
mod connection;
mod log;
mod metrics;
mod notify;
mod refresh;
mod shared;
mod users;

use std::fs::Permissions;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use mayfly_session::{Accounts, Endpoints, Engine, FileAccess, VERSION, shorten_slices};
use mayfly_types::MySqlError;
use mayfly_wire::{
    Account, Balance, ConnectionError, Endpoint, Incoming, Listener, Login, Method, Peer, Server,
    Settings, Tls,
};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::args::{ServeArguments, UserArguments, UserCommand};
use crate::config::{self, Config};
use accounts::ServerAccounts;
use connection::Client;
use metrics::Metrics;
use shared::{Place, Shared};

/// Stack of a thread that speaks with clients: short statements are read and run on it.
const STACK_BYTES: usize = 8 << 20;
/// How long clients may take to finish their statements when the server stops.
const DRAIN: Duration = Duration::from_secs(10);
/// How often the memory that clients let go is given back to the system.
const TIDYING: Duration = Duration::from_secs(2);
/// How long they may take to read that they are stopped.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long statements whose clients are gone may take to stop.
const LEAVE: Duration = Duration::from_secs(2);
/// Between two looks at what only time mends: a system without descriptors that are left, and
/// statements that have to stop.
const PAUSE: Duration = Duration::from_millis(50);

/// The server as the protocol sees it.
struct MySqlServer(Arc<Shared>);

impl Server for MySqlServer {
    /// A client in the handshake takes no place: who cannot log in keeps nobody out.
    type Place = ();
    type Connection = Client;

    fn admit(&self, peer: &Peer) -> Result<(u32, ()), MySqlError> {
        if self.0.connections.load(Ordering::Relaxed) >= self.0.places(peer) {
            return Err(self.0.refuse());
        }
        let id = self.0.engine.next_connection_id();
        Ok((u32::try_from(id).unwrap_or(u32::MAX), ()))
    }

    async fn account(&self, user: &str, peer: &Peer) -> Option<Account> {
        let users = self.0.users.now();
        users.account(user, peer, &self.0.listening)
    }

    fn ended(&self, peer: &Peer, login: Option<&Login>, error: &ConnectionError) {
        match login {
            Some(_) => self.0.engine.clients().aborted(),
            None => self.0.engine.clients().aborted_login(),
        }
        log::ended(peer, login, error);
    }

    async fn connect(&self, (): (), login: &Login) -> Result<Client, MySqlError> {
        let place = Place::take(&self.0, &login.peer)?;
        log::connected(login);
        Client::open(Arc::clone(&self.0), place, login).await
    }
}

/// Runs the server until it is told to stop.
///
/// # Errors
/// When the engine, a socket or a file of the options cannot be had.
pub fn serve(arguments: ServeArguments) -> Result<ExitCode> {
    log::start(&arguments);
    let mut config = Config::load(&arguments.engine)?;
    config.engine.files = match &arguments.secure_file_priv {
        Some(directory) => {
            let found = std::fs::metadata(directory);
            let found = found.with_context(|| option_of(directory))?;
            if !found.is_dir() {
                bail!("{}: not a directory", option_of(directory));
            }
            FileAccess::Under(directory.clone())
        }
        None => FileAccess::Nothing,
    };
    config.engine.slow_log.clone_from(&arguments.slow_log);
    let threads = config.threads;
    let addresses = addresses(&arguments)?;
    let outside = addresses.iter().map(SocketAddr::ip).find(is_outside);
    let users = Arc::new(ServerAccounts::read(arguments.users.as_deref(), outside)?);
    let sockets = Sockets::open(&arguments, addresses)?;
    let mut settings = Settings::new(VERSION);
    settings.default_method = match arguments.native_passwords {
        true => Method::Native,
        false => Method::CachingSha2,
    };
    settings.tls = match (&arguments.tls_cert, &arguments.tls_key) {
        (Some(certificates), Some(key)) => Some(Tls::from_pem_files(certificates, key)?),
        (None, None) => None,
        _ => bail!("--tls-cert and --tls-key go together"),
    };
    // Whether it is allowed is asked when it is: `local_infile` can change.
    settings.local_infile = true;
    config.engine.endpoints = sockets.endpoints(settings.tls.is_some());
    let accounts: Arc<dyn Accounts> = Arc::clone(&users) as _;
    config.engine.accounts = Some(accounts);
    let engine = config::open(config.engine)?;
    if let Some(metrics) = &sockets.metrics {
        metrics.serve(engine.clone())?;
    }
    let shared = Shared {
        engine,
        users,
        listening: sockets.addresses(),
        connections: AtomicU64::new(0),
        has_let_go: AtomicBool::new(false),
    };
    tracing::info!(
        version = VERSION,
        memory_bytes = shared.engine.space().memory_bytes(),
        workers = shared.engine.threads(),
        client_threads = threads,
        users_file = arguments.users.is_some(),
        tls = settings.tls.is_some(),
        listening = sockets.describe(),
        "started"
    );
    let engine = shared.engine.clone();
    let endpoint = Endpoint::new(MySqlServer(Arc::new(shared)), settings);
    let ended = run(&Arc::new(endpoint), &sockets, threads);
    wait_for_statements(&engine);
    ended?;
    Ok(ExitCode::SUCCESS)
}

/// Waits for statements that were ended amid their work: they stop at their next step, and remove
/// the files that they were writing.
fn wait_for_statements(engine: &Engine) {
    let started = Instant::now();
    while engine.has_connections() && started.elapsed() < LEAVE {
        thread::sleep(PAUSE);
    }
}

fn option_of(directory: &Path) -> String {
    format!("--secure-file-priv {}", directory.display())
}

/// `mayfly user`.
///
/// # Errors
/// When the users file cannot be read or written.
pub fn user(arguments: UserArguments) -> Result<ExitCode> {
    let UserCommand::Add(add) = arguments.command;
    let password = match add.no_password {
        true => String::new(),
        false => read_password()?,
    };
    if password.is_empty() && !add.no_password {
        bail!("the password is empty; --no-password makes a user without one");
    }
    let method = match add.native {
        true => Method::Native,
        false => Method::CachingSha2,
    };
    users::add(&add.users, &add.name, password.as_bytes(), method)?;
    eprintln!(
        "'{}' is written; a server that runs reads it at FLUSH PRIVILEGES and SIGHUP",
        add.users.display()
    );
    Ok(ExitCode::SUCCESS)
}

/// The addresses of TCP that the options name.
fn addresses(arguments: &ServeArguments) -> Result<Vec<SocketAddr>> {
    let at = (arguments.bind.as_str(), arguments.port);
    let addresses = at.to_socket_addrs();
    let addresses = addresses.with_context(|| format!("--bind {}", arguments.bind))?;
    Ok(addresses.collect())
}

/// Whether other machines can reach an address.
fn is_outside(address: &IpAddr) -> bool {
    !address.to_canonical().is_loopback()
}

/// The password of a terminal's user, unseen, or the first line of what is piped in.
fn read_password() -> Result<String> {
    use std::io::IsTerminal;
    if std::io::stdin().is_terminal() {
        return Ok(rpassword::prompt_password("Password: ")?);
    }
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Where clients come in.
struct Sockets {
    tcp: Vec<TcpListener>,
    unix: Option<UnixSocket>,
    metrics: Option<Metrics>,
}

/// A Unix socket, whose file goes when it does.
struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Sockets {
    fn open(arguments: &ServeArguments, addresses: Vec<SocketAddr>) -> Result<Sockets> {
        let mut tcp = Vec::new();
        for address in addresses {
            let listener =
                TcpListener::bind(address).with_context(|| format!("listening on {address}"))?;
            listener.set_nonblocking(true)?;
            tcp.push(listener);
        }
        let unix = match &arguments.socket {
            Some(path) => Some(UnixSocket::open(path, arguments.users.is_some())?),
            None => None,
        };
        let metrics = match arguments.metrics_port {
            Some(port) => {
                Some(Metrics::open(port).with_context(|| format!("--metrics-port {port}"))?)
            }
            None => None,
        };
        Ok(Sockets { tcp, unix, metrics })
    }

    /// What a thread speaks with clients by: a reactor, and the sockets once more in it.
    fn reactor(&self) -> Result<(Runtime, Vec<Listener>)> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let entered = runtime.enter();
        let mut listeners = Vec::new();
        for listener in &self.tcp {
            let listener = tokio::net::TcpListener::from_std(listener.try_clone()?)?;
            listeners.push(Listener::Tcp(listener));
        }
        if let Some(socket) = &self.unix {
            let listener = tokio::net::UnixListener::from_std(socket.listener.try_clone()?)?;
            listeners.push(Listener::Unix(listener));
        }
        drop(entered);
        Ok((runtime, listeners))
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        let tcp = self.tcp.iter();
        tcp.filter_map(|listener| listener.local_addr().ok())
            .collect()
    }

    /// What clients are told of where they come in.
    fn endpoints(&self, has_tls: bool) -> Endpoints {
        Endpoints {
            port: self.addresses().first().map(SocketAddr::port),
            socket: self.unix.as_ref().map(|socket| socket.path.clone()),
            has_tls,
        }
    }

    fn describe(&self) -> String {
        let tcp = self.addresses().into_iter();
        let tcp = tcp.map(|address| address.to_string());
        let unix = self
            .unix
            .iter()
            .map(|socket| socket.path.display().to_string());
        let mut text = tcp.chain(unix).collect::<Vec<_>>().join(", ");
        if let Some(metrics) = &self.metrics {
            text.push_str("; counters: ");
            text.push_str(&metrics.describe());
        }
        text
    }
}

impl UnixSocket {
    fn open(path: &Path, is_for_others: bool) -> Result<UnixSocket> {
        // A socket that a killed server left, and nobody listens to.
        let is_socket =
            std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
        let is_left = is_socket
            && matches!(UnixStream::connect(path),
                Err(error) if error.kind() == ErrorKind::ConnectionRefused);
        if is_left {
            std::fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)
            .with_context(|| format!("listening on '{}'", path.display()))?;
        listener.set_nonblocking(true)?;
        let mode = if is_for_others { 0o666 } else { 0o600 };
        std::fs::set_permissions(path, Permissions::from_mode(mode))?;
        Ok(UnixSocket {
            listener,
            path: path.to_owned(),
        })
    }
}

/// Speaks with clients on some threads until a signal says to stop.
fn run(endpoint: &Arc<Endpoint<MySqlServer>>, sockets: &Sockets, threads: usize) -> Result<()> {
    let stopping = watch::Sender::new(false);
    let balance = &Balance::new(threads);
    // All of them before it is said that clients may come: what cannot be had ends the start.
    let reactors = (0..threads).map(|_| sockets.reactor());
    let reactors: Vec<_> = reactors.collect::<Result<_>>()?;
    thread::scope(|scope| -> Result<()> {
        let mut speaking = Vec::new();
        let mut refused = None;
        for (number, (runtime, listeners)) in reactors.into_iter().enumerate() {
            let stopped = stopping.subscribe();
            let thread = thread::Builder::new()
                .name(format!("mayfly-client-{number}"))
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, move || {
                    speak(endpoint, &runtime, listeners, (balance, number), stopped)
                });
            match thread {
                Ok(thread) => speaking.push(thread),
                Err(error) => refused = Some(error),
            }
        }
        let waited = match refused {
            None => wait_for_signal(&endpoint.server().0, sockets),
            Some(error) => Err(error).context("a thread for clients"),
        };
        notify::tell(notify::STOPPING);
        endpoint.stop();
        stopping.send_replace(true);
        for thread in speaking {
            let ended = thread.join();
            ended.unwrap_or_else(|_| bail!("a thread of clients panicked"))?;
        }
        waited
    })
}

/// Says that clients may come, and waits for SIGTERM or SIGINT; SIGHUP does what FLUSH SLOW LOGS,
/// PRIVILEGES does. Meanwhile what clients that are gone have left is given back.
fn wait_for_signal(shared: &Shared, sockets: &Sockets) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let (mut ends, mut interrupts, mut hangups) = (
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
            signal(SignalKind::hangup())?,
        );
        eprintln!(
            "mayfly {VERSION} is ready for connections: {}",
            sockets.describe()
        );
        notify::tell(notify::READY);
        loop {
            tokio::select! {
                _ = ends.recv() => {
                    tracing::info!(signal = "SIGTERM", "shutting down");
                    return Ok(());
                }
                _ = interrupts.recv() => {
                    tracing::info!(signal = "SIGINT", "shutting down");
                    return Ok(());
                }
                _ = hangups.recv() => {
                    let signal = "SIGHUP";
                    match shared.engine.reopen_slow_log() {
                        Ok(()) => tracing::info!(signal, "the slow query log is open anew"),
                        Err(error) => tracing::error!(signal, %error, "the slow query log"),
                    }
                    match shared.engine.read_accounts_again() {
                        Ok(()) => tracing::info!(signal, "the users are read again"),
                        Err(error) => tracing::error!(signal, %error, "the users stay as they were"),
                    }
                }
                () = tokio::time::sleep(TIDYING) => {
                    if shared.has_let_go.swap(false, Ordering::Relaxed) {
                        shared.engine.space().give_heaps_back();
                    }
                }
            }
        }
    })
}

/// Takes clients in and speaks with them, all on this thread.
fn speak(
    endpoint: &Arc<Endpoint<MySqlServer>>,
    runtime: &Runtime,
    listeners: Vec<Listener>,
    (balance, thread): (&Arc<Balance>, usize),
    mut stopped: watch::Receiver<bool>,
) -> Result<()> {
    // An answer takes 10 us, and should not wait for 3 ms of a statement that computes.
    if let Err(error) = shorten_slices() {
        tracing::debug!(%error, "the kernel's slices stay as they are");
    }
    runtime.block_on(async {
        let mut clients = JoinSet::new();
        loop {
            let incoming = tokio::select! {
                _ = stopped.wait_for(|stopped| *stopped) => break,
                incoming = balance.next(thread, || accept(&listeners)) => incoming,
                // What ended is let go.
                Some(_) = clients.join_next() => continue,
            };
            match incoming {
                Ok(incoming) => {
                    let endpoint = Arc::clone(endpoint);
                    let counted = balance.enter(thread);
                    clients.spawn(async move {
                        let _counted = counted;
                        // How it ended was logged.
                        let _ = endpoint.serve_incoming(incoming).await;
                    });
                }
                Err(_) => {
                    endpoint.server().0.engine.clients().not_accepted();
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        drop(listeners);
        for patience in [DRAIN, FAREWELL] {
            let drained = async { while clients.join_next().await.is_some() {} };
            let _ = tokio::time::timeout(patience, drained).await;
            if clients.is_empty() {
                break;
            }
            // Those that are left are told.
            endpoint.stop_now();
        }
        Ok(())
    })
}

/// The next client of any socket.
async fn accept(listeners: &[Listener]) -> std::io::Result<Incoming> {
    let waiting = listeners.iter().map(|listener| Box::pin(listener.accept()));
    futures::future::select_all(waiting).await.0
}
