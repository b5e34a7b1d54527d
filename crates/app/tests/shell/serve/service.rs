//! A server under a service manager: what it is given, and what it tells.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::running::{Server, refused};

/// A server with a users file among its credentials, whose mode is that.
fn serve(credentials: &Path, mode: u32) -> Command {
    let users = credentials.join("users.toml");
    fs::write(&users, "").unwrap();
    fs::set_permissions(&users, Permissions::from_mode(mode)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_mayfly"));
    command
        .args(["serve", "--memory", "64M", "--users"])
        .arg(&users)
        .env("CREDENTIALS_DIRECTORY", credentials);
    command
}

#[test]
fn a_service_manager_is_told_when_clients_may_come() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("notify");
    let manager = UnixDatagram::bind(&socket).unwrap();
    manager
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let told = || {
        let mut bytes = [0; 64];
        let len = manager.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..len].to_vec()).unwrap()
    };
    // The mask of an access list that lets the service's user read the file.
    let mut command = serve(directory.path(), 0o440);
    command.env("NOTIFY_SOCKET", &socket);
    let mut server = Server::start_command(command, tempfile::tempdir().unwrap()).unwrap();
    assert_eq!(told(), "READY=1");
    assert!(server.stop().success());
    assert_eq!(told(), "STOPPING=1");
}

#[test]
fn credentials_that_all_can_read_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let ran = refused(serve(directory.path(), 0o444));
    assert!(ran.err.contains("chmod 600"), "{}", ran.err);
}

#[test]
fn without_a_directory_of_credentials_the_group_may_not_read_users() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = serve(directory.path(), 0o640);
    command.env("CREDENTIALS_DIRECTORY", "");
    let ran = refused(command);
    assert!(ran.err.contains("chmod 600"), "{}", ran.err);
}

#[test]
fn what_the_unit_gives_may_be_given_once_more() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = serve(directory.path(), 0o600);
    command.args(["--socket", "/nowhere/a", "--socket", "/nowhere/b"]);
    command.args(["--users", "/nowhere/users.toml"]);
    let ran = refused(command);
    assert!(ran.err.contains("'/nowhere/users.toml'"), "{}", ran.err);
}
