//! The shells `mariadb` and `mysql` where they are installed.

use std::path::Path;
use std::process::Command;

use crate::harness::{Running, certificate, start, tls};

/// Runs a shell; `None` if none is installed.
async fn run(server: &Running, arguments: &[&str]) -> Option<(bool, String, String)> {
    let found = ["mariadb", "mysql"].into_iter().find_map(|name| {
        let path = std::env::var_os("PATH")?;
        let mut places = std::env::split_paths(&path).map(|place| place.join(name));
        places.find(|place| Path::is_file(place))
    });
    let Some(shell) = found else {
        println!("skipped: neither mariadb nor mysql is installed");
        return None;
    };
    let mut command = Command::new(shell);
    command.arg("--no-defaults");
    if !arguments
        .iter()
        .any(|argument| argument.starts_with("--socket"))
    {
        command.args(["--host=127.0.0.1", &format!("--port={}", server.port)]);
    }
    command.args(arguments);
    let ran = tokio::task::spawn_blocking(move || command.output().unwrap());
    let output = ran.await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    Some((output.status.success(), out, err))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_logs_in_and_asks() {
    let server = start(|_, _| {}).await;
    let socket = format!("--socket={}", server.socket.display());
    for arguments in [
        ["--user=root", "--batch"].as_slice(),
        &["--user=root", "--batch", "--compress"],
        &["--user=native", "--password=secret", "--batch"],
        &["--user=sha2", "--password=secret", "--batch"],
        &["--user=peer", "--batch", &socket],
        &["--user=sha2", "--password=secret", "--batch", &socket],
    ] {
        let arguments = [arguments, &["-e", "rows 4; insert; one"]].concat();
        let Some((ok, out, err)) = run(&server, &arguments).await else {
            return;
        };
        assert!(ok, "{arguments:?}: {err}");
        let rows = "n\tword\n0\tword number 0\n1\tword number 1\n2\tword number 2\n3\tNULL\n1\n1\n";
        assert_eq!(out, rows, "{arguments:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_shows_errors() {
    let server = start(|_, _| {}).await;
    for (arguments, expected) in [
        (
            ["--user=root", "-e", "fail"],
            "ERROR 1146 (42S02) at line 1: Table 'test.t' doesn't exist",
        ),
        (
            ["--user=root", "-e", "failamid"],
            "ERROR 1041 (HY000) at line 1: Out of memory.",
        ),
        (
            ["--user=sha2", "--password=wrong", "-eone"],
            "ERROR 1045 (28000): Access denied for user 'sha2'@'localhost' (using password: YES)",
        ),
        (
            ["--user=nobody", "--password=any", "-eone"],
            "ERROR 1045 (28000): Access denied for user 'nobody'@'localhost' (using password: YES)",
        ),
    ] {
        let Some((ok, _, err)) = run(&server, &arguments).await else {
            return;
        };
        assert!(!ok);
        assert_eq!(err.trim().lines().last().unwrap(), expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_sends_files_and_speaks_tls() {
    let server = start(|settings, _| {
        settings.local_infile = true;
        settings.tls = Some(tls());
    })
    .await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), vec![b'z'; 1_000_000]).unwrap();
    let authority = format!("--ssl-ca={}", certificate().display());
    let load = format!("load {}", file.path().display());
    let arguments = [
        "--user=sha2",
        "--password=secret",
        "--local-infile=1",
        "-vv",
        &authority,
        "-e",
        &load,
    ];
    let Some((ok, out, err)) = run(&server, &arguments).await else {
        return;
    };
    assert!(ok, "{err}");
    assert!(out.contains("Query OK, 1000000 rows affected"), "{out}");
    let arguments = ["--user=root", &authority, "--batch", "-e", "whoami"];
    let (ok, out, err) = run(&server, &arguments).await.unwrap();
    assert!(ok, "{err}");
    assert!(out.contains("\tTLSv1.3\t"), "{out}");
}
