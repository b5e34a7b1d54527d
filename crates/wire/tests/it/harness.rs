//! A server with canned answers, on a free port and a Unix socket.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mayfly_testkit::repository;
use mayfly_wire::{Account, Endpoint, Listener, Method, Secret, Settings, Tls};
use tempfile::TempDir;
use tokio::net::{TcpListener, UnixListener};

use crate::canned::{Canned, Shared, account};

/// The longest that a test waits for something that happens in the background.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Running {
    pub port: u16,
    pub socket: PathBuf,
    pub shared: Arc<Shared>,
    _directory: TempDir,
}

pub fn password(password: &str, method: Method) -> Account {
    account(Secret::of_password(password.as_bytes(), method).unwrap())
}

/// The user of the operating system that runs the test.
pub fn own_user_id() -> u32 {
    std::fs::metadata("/proc/self").unwrap().uid()
}

pub fn certificate() -> PathBuf {
    repository().join("crates/wire/tests/it/certificate/certificate.pem")
}

pub fn tls() -> Tls {
    let key = certificate().with_file_name("key.pem");
    Tls::from_pem_files(&certificate(), &key).unwrap()
}

pub fn canned() -> Canned {
    let peer = Account {
        secret: Secret::Locked,
        socket_user_id: Some(own_user_id()),
    };
    Canned {
        accounts: HashMap::from([
            ("root".to_owned(), account(Secret::Empty)),
            ("native".to_owned(), password("secret", Method::Native)),
            ("sha2".to_owned(), password("secret", Method::CachingSha2)),
            ("peer".to_owned(), peer),
        ]),
        places_max: 100,
        shared: Arc::new(Shared::default()),
        last_id: AtomicU32::new(0),
        idle_timeout: Duration::from_secs(28_800),
        memory_max: usize::MAX,
    }
}

pub async fn start(configure: impl FnOnce(&mut Settings, &mut Canned)) -> Running {
    let directory = TempDir::new().unwrap();
    let socket = directory.path().join("wire.sock");
    let mut settings = Settings::new("8.4.0-Canned");
    let mut canned = canned();
    configure(&mut settings, &mut canned);
    let shared = Arc::clone(&canned.shared);
    let endpoint = Arc::new(Endpoint::new(canned, settings));
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = tcp.local_addr().unwrap().port();
    let unix = UnixListener::bind(&socket).unwrap();
    for listener in [Listener::Tcp(tcp), Listener::Unix(unix)] {
        let endpoint = Arc::clone(&endpoint);
        tokio::spawn(async move {
            while let Ok(incoming) = listener.accept().await {
                let endpoint = Arc::clone(&endpoint);
                tokio::spawn(async move { endpoint.serve_incoming(incoming).await });
            }
        });
    }
    Running {
        port,
        socket,
        shared,
        _directory: directory,
    }
}

/// Waits until a counter has a value.
pub async fn until(counter: &AtomicUsize, wanted: usize, what: &str) {
    let started = Instant::now();
    while counter.load(Ordering::SeqCst) != wanted {
        let found = counter.load(Ordering::SeqCst);
        assert!(
            started.elapsed() < PATIENCE,
            "{what}: {found}, not {wanted}"
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
