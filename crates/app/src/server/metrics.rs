//! What a monitor reads: the status counters over HTTP, in Prometheus' text format.
//!
//! **Owns** a loopback port of its own and the thread behind it. **Never** writes, and answers one
//! path. Names are those of Prometheus' mysqld_exporter, so that its dashboards show this server.
//!
//! One request a connection, and few connections at a time: who does not send his request soon, or
//! does not read the answer, is hung up on, and so is who comes while all places are taken. Cost:
//! nothing while nobody asks; an answer reads the counters once.

use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Result, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mayfly_session::{Engine, FileStatus, VERSION};

/// How long a client may take to send its request, and to read the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest request.
const REQUEST_BYTES_MAX: usize = 8 << 10;
/// Clients that are answered at a time: one that says nothing must not keep a monitor out.
const CLIENTS_MAX: usize = 16;
/// Stack of a thread that answers one.
const STACK_BYTES: usize = 256 << 10;

/// The counters that may fall; all others only grow.
const GAUGES: [&str; 12] = [
    "Max_memory_used",
    "Max_tmp_space_used",
    "Mayfly_memory_bytes",
    "Mayfly_peak_memory_bytes",
    "Mayfly_resident_bytes",
    "Memory_used",
    "Prepared_stmt_count",
    "Threads_cached",
    "Threads_connected",
    "Threads_running",
    "Tmp_space_used",
    "Uptime",
];

/// Where metrics are asked for.
pub struct Metrics {
    listener: TcpListener,
}

impl Metrics {
    /// Listens on a port of this machine, for this machine.
    ///
    /// # Errors
    /// Where the port is taken.
    pub fn open(port: u16) -> Result<Metrics> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        Ok(Metrics { listener })
    }

    /// Where it listens.
    pub fn describe(&self) -> String {
        let address = self.listener.local_addr();
        address.map_or_else(
            |error| error.to_string(),
            |at| format!("http://{at}/metrics"),
        )
    }

    /// Answers for as long as the program runs.
    ///
    /// # Errors
    /// Where there is no thread or descriptor left.
    pub fn serve(&self, engine: Engine) -> Result<()> {
        let listener = self.listener.try_clone()?;
        let thread = std::thread::Builder::new().name("mayfly-metrics".to_owned());
        let places = Arc::new(AtomicUsize::new(0));
        thread.spawn(move || {
            for client in listener.incoming() {
                match client {
                    Ok(client) => answer_aside(client, &engine, &places),
                    Err(_) => std::thread::sleep(PATIENCE),
                }
            }
        })?;
        Ok(())
    }
}

/// A place among those that are answered.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers a client on a thread of its own, or hangs up if too many are being answered.
fn answer_aside(client: TcpStream, engine: &Engine, places: &Arc<AtomicUsize>) {
    let before = places.fetch_add(1, Ordering::Relaxed);
    let place = Place(Arc::clone(places));
    if before >= CLIENTS_MAX {
        return;
    }
    let engine = engine.clone();
    let thread = std::thread::Builder::new()
        .name("mayfly-metrics".to_owned())
        .stack_size(STACK_BYTES);
    // How a request ended is between its client and the network; without a thread there is none.
    let _started = thread.spawn(move || {
        let _ended = answer(client, &engine);
        drop(place);
    });
}

/// Reads one request and answers it.
fn answer(mut client: TcpStream, engine: &Engine) -> Result<()> {
    let request = read_request(&mut client)?;
    let (status, body) = match request_line(&request) {
        Some(("GET", "/metrics")) => ("200 OK", text(&engine.status(), &engine.space().files())),
        Some(("GET", _)) => ("404 Not Found", "There is /metrics.\n".to_owned()),
        Some(_) => ("405 Method Not Allowed", String::new()),
        None => ("400 Bad Request", String::new()),
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    send(&mut client, answer.as_bytes())
}

/// Sends an answer to a client that reads it in time.
fn send(client: &mut TcpStream, mut answer: &[u8]) -> Result<()> {
    let started = Instant::now();
    while !answer.is_empty() {
        let rest = PATIENCE.saturating_sub(started.elapsed());
        if rest.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        client.set_write_timeout(Some(rest))?;
        match client.write(answer)? {
            0 => return Err(ErrorKind::WriteZero.into()),
            count => answer = answer.get(count..).unwrap_or_default(),
        }
    }
    client.flush()
}

/// The bytes up to the empty line behind the headers.
fn read_request(client: &mut TcpStream) -> Result<Vec<u8>> {
    let started = Instant::now();
    let mut request = Vec::new();
    let mut part = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let rest = PATIENCE.saturating_sub(started.elapsed());
        if rest.is_zero() || request.len() > REQUEST_BYTES_MAX {
            return Err(ErrorKind::InvalidData.into());
        }
        client.set_read_timeout(Some(rest))?;
        match client.read(&mut part)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count => request.extend_from_slice(part.get(..count).unwrap_or_default()),
        }
    }
    Ok(request)
}

/// Method and path of a request, the path without its query.
fn request_line(request: &[u8]) -> Option<(&str, &str)> {
    let line = request.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    let path = target.split('?').next()?;
    (version.starts_with("HTTP/1.") && words.next().is_none()).then_some((method, path))
}

/// The counters in Prometheus' format.
fn text(status: &[(&'static str, u64)], files: &[FileStatus]) -> String {
    let mut text = String::with_capacity(8 << 10);
    let mut metric = |name: &str, kind: &str, labels: &str, value: u64, is_first: bool| {
        if is_first {
            let _ = writeln!(text, "# TYPE {name} {kind}");
        }
        let _ = writeln!(text, "{name}{labels} {value}");
    };
    metric("mysql_up", "gauge", "", 1, true);
    let labels = format!("{{version=\"{VERSION}\"}}");
    metric("mysql_version_info", "gauge", &labels, 1, true);
    let (commands, others): (Vec<_>, Vec<_>) = status
        .iter()
        .partition(|(name, _)| name.starts_with("Com_"));
    for (number, (name, value)) in commands.into_iter().enumerate() {
        let command = name.strip_prefix("Com_").unwrap_or(name);
        let labels = format!("{{command=\"{command}\"}}");
        let name = "mysql_global_status_commands_total";
        metric(name, "counter", &labels, value, number == 0);
    }
    for (name, value) in others {
        let kind = match GAUGES.contains(&name) {
            true => "gauge",
            false => "counter",
        };
        let name = format!("mysql_global_status_{}", name.to_ascii_lowercase());
        metric(&name, kind, "", value, true);
    }
    type Read = fn(&FileStatus) -> Option<u64>;
    let of_files: [(&str, Read); 4] = [
        ("allocated_bytes", |file| Some(file.allocated_bytes)),
        ("used_bytes", |file| Some(file.used_bytes)),
        ("cached_bytes", |file| Some(file.cached?.cached)),
        ("dirty_bytes", |file| Some(file.cached?.dirty)),
    ];
    for (name, read) in of_files {
        let name = format!("mayfly_temp_file_{name}");
        for (number, file) in files.iter().enumerate() {
            let directory = escaped(&file.dir.to_string_lossy());
            let labels = format!("{{directory=\"{directory}\"}}");
            if let Some(value) = read(file) {
                metric(&name, "gauge", &labels, value, number == 0);
            }
        }
    }
    text
}

/// The value of a label.
fn escaped(value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    value.replace('\n', "\\n")
}
