//! A server for a test, and clients that connect to it.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use mysql_async::{Conn, Error, OptsBuilder};

use crate::program::{Ran, run_command};

/// A server that ends with its test.
pub struct Server {
    child: Child,
    pub port: u16,
    pub directory: tempfile::TempDir,
    /// Where it shows its counters.
    pub metrics: Option<String>,
}

impl Server {
    /// Starts `mayfly serve` in 64 MiB on a port that is free, and with a socket.
    pub fn start(arguments: &[&str]) -> Server {
        let directory = tempfile::tempdir().expect("a fresh directory");
        let mut command = Command::new(env!("CARGO_BIN_EXE_mayfly"));
        command.args(["serve", "--memory", "64M"]).args(arguments);
        let started = Server::start_command(command, directory);
        started.expect("the binary was built with this test")
    }

    /// The same by a command that says all but where it listens and writes.
    pub fn start_command(
        mut command: Command,
        directory: tempfile::TempDir,
    ) -> std::io::Result<Server> {
        command
            .args(["--port", "0", "--threads", "2"])
            .arg("--socket")
            .arg(directory.path().join("socket"))
            .arg("--temp-dir")
            .arg(directory.path())
            .stdin(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let stderr = child.stderr.take().expect("it is piped");
        let mut lines = BufReader::new(stderr).lines();
        let ready = lines
            .by_ref()
            .map_while(Result::ok)
            .find(|line| line.contains("ready for connections"))
            .expect("the server says when it is ready");
        // mayfly 8.4.6-Mayfly-0.1.0 is ready for connections: 127.0.0.1:40123, /tmp/...
        let (_, addresses) = ready.split_once("connections: ").expect(&ready);
        let (_, port) = addresses
            .split(',')
            .next()
            .and_then(|tcp| tcp.rsplit_once(':'))
            .expect(&ready);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                eprintln!("server: {line}");
            }
        });
        Ok(Server {
            child,
            port: port.parse().expect("a port"),
            directory,
            metrics: ready
                .split_once("counters: ")
                .map(|(_, url)| url.trim().to_owned()),
        })
    }

    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    /// How a client of that name connects over TCP.
    pub fn options(&self, user: &str, password: &str) -> OptsBuilder {
        OptsBuilder::default()
            .ip_or_hostname("127.0.0.1")
            .tcp_port(self.port)
            .user(Some(user))
            .pass(Some(password))
            .prefer_socket(false)
    }

    /// A client over TCP.
    pub async fn connect(&self) -> Conn {
        Conn::new(self.options("root", "")).await.expect("own user")
    }

    /// Tells the server to stop, and waits until it has.
    pub fn stop(&mut self) -> ExitStatus {
        self.signal("TERM");
        self.child.wait().expect("the server ends")
    }

    /// Sends the server a signal.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args(["-s", name, &self.child.id().to_string()])
            .status();
        assert!(sent.expect("kill is everywhere").success());
    }

    /// Sets a limit of the system for the server, as `prlimit` names it: `nofile`, `nproc`.
    pub fn limit(&self, name: &str, most: u64) {
        let pid = self.child.id().to_string();
        // The soft limit alone, so that it can be raised again.
        let limit = format!("--{name}={most}:");
        let owner = std::fs::metadata(format!("/proc/{pid}")).expect("it runs");
        let set = Command::new("prlimit")
            .args(["--pid", &pid, &limit])
            .uid(owner.uid())
            .gid(owner.gid())
            .status();
        assert!(set.expect("prlimit is everywhere").success());
    }

    /// The bytes of memory that the server has.
    pub fn resident_bytes(&self) -> u64 {
        self.status_bytes("VmRSS:")
    }

    /// The most that it had at any time.
    pub fn peak_bytes(&self) -> u64 {
        self.status_bytes("VmHWM:")
    }

    fn status_bytes(&self, name: &str) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(path).expect("it runs");
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB"));
        kib.and_then(|kib| kib.parse::<u64>().ok()).expect("a size") << 10
    }

    /// The threads that the server has.
    pub fn threads(&self) -> usize {
        let path = format!("/proc/{}/task", self.child.id());
        std::fs::read_dir(path).expect("it runs").count()
    }

    /// The files that the server has open, but the rings of the kernel: the threads that write and
    /// read the temp file open one each when they are first needed, whatever clients do.
    pub fn open_files(&self) -> usize {
        let path = format!("/proc/{}/fd", self.child.id());
        let links = std::fs::read_dir(path).expect("it runs");
        let is_ring = |link: &std::io::Result<std::fs::DirEntry>| {
            let link = link.as_ref().ok().map(std::fs::DirEntry::path);
            let file = link.and_then(|link| std::fs::read_link(link).ok());
            file.is_some_and(|file| file.as_os_str() == "anon_inode:[io_uring]")
        };
        links.filter(|link| !is_ring(link)).count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the command of a server says that does not start.
pub fn refused(mut command: Command) -> Ran {
    let ran = run_command(command.args(["--port", "0"]), "");
    assert_eq!(ran.code, Some(1));
    ran
}

/// The number of an error of the server.
pub fn code(error: &Error) -> u16 {
    match error {
        Error::Server(error) => error.code,
        other => panic!("not an error of the server: {other}"),
    }
}
