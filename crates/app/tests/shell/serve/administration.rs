//! The commands of the protocol that `mysqladmin` sends.

use std::process::Command;

use super::raw::{NO_EOF, OkPacket, Raw};
use super::running::Server;
use crate::program::run_command;

const REFRESH: u8 = 0x07;
const STATISTICS: u8 = 0x09;
const PROCESS_INFO: u8 = 0x0A;
const DEBUG: u8 = 0x0D;

#[test]
fn refresh_does_what_flush_does() {
    let server = Server::start(&[]);
    let mut client = Raw::connect(&server, 0);
    let done = |client: &mut Raw| client.query("SHOW STATUS LIKE 'Com_do'").row(0)[1].clone();
    client.query("DO 1");
    assert_eq!(done(&mut client), "1");
    // Everything but STATUS, RESET REPLICA and RESET MASTER, which reset nothing here.
    client.command(REFRESH, &[0x2F]);
    assert_eq!(client.read(), [0, 0, 0, 2, 0, 0, 0]);
    assert_eq!(done(&mut client), "1");
    client.command(REFRESH, &[0x10]);
    assert_eq!(client.read(), [0, 0, 0, 2, 0, 0, 0]);
    assert_eq!(done(&mut client), "0");
    client.command(REFRESH, b"");
    assert_eq!(client.read(), [0, 0, 0, 2, 0, 0, 0]);
    for what in [0x40, 0x80] {
        client.command(REFRESH, &[what]);
        assert_eq!(client.read(), [0, 0, 0, 2, 0, 0, 0]);
    }
    // It commits what was open.
    client.query("CREATE TEMPORARY TABLE t (a INT)");
    client.query("BEGIN");
    client.query("INSERT INTO t VALUES (1)");
    client.command(REFRESH, &[0x04]);
    assert_eq!(OkPacket::parse(&client.read()).status & 1, 0);
    client.query("ROLLBACK");
    assert_eq!(client.query("SELECT COUNT(*) FROM t").row(0), ["1"]);
    // So it does if it names nothing.
    client.query("BEGIN");
    client.query("INSERT INTO t VALUES (2)");
    client.command(REFRESH, &[0x00]);
    assert_eq!(client.read(), [0, 0, 0, 2, 0, 0, 0]);
    client.query("ROLLBACK");
    assert_eq!(client.query("SELECT COUNT(*) FROM t").row(0), ["2"]);
}

#[test]
fn the_state_of_the_server_is_told() {
    let server = Server::start(&[]);
    for (capabilities, end) in [
        (0, &[0xFE, 0, 0, 2, 0][..]),
        (NO_EOF, &[0xFE, 0, 0, 2, 0, 0, 0]),
    ] {
        let mut client = Raw::connect(&server, capabilities);
        client.command(PROCESS_INFO, b"");
        let list = client.answer();
        let shown = client.query("SHOW PROCESSLIST");
        assert_eq!(list.columns, shown.columns);
        let own = list.rows.len() - 1;
        assert_eq!(list.row(own)[1], "root");
        assert_eq!(list.end, end);
        client.command(DEBUG, b"");
        assert_eq!(client.read(), end);
        client.command(STATISTICS, b"");
        let statistics = String::from_utf8(client.read()).expect("text");
        let names: Vec<&str> = statistics
            .split("  ")
            .filter_map(|counter| Some(counter.split_once(": ")?.0))
            .collect();
        let expected = "Uptime,Threads,Questions,Slow queries,Opens,Open tables,\
                        Queries per second avg";
        assert_eq!(names.join(","), expected);
    }
}

#[test]
fn mysqladmin_is_served() {
    let server = Server::start(&[]);
    let found = ["mariadb-admin", "mysqladmin"].into_iter().find(|name| {
        let found = Command::new(name).arg("--version").output();
        found.is_ok_and(|output| output.status.success())
    });
    let Some(name) = found else {
        println!("skipped: mysqladmin is not installed");
        return;
    };
    for asked in [
        "ping",
        "status",
        "version",
        "variables",
        "extended-status",
        "processlist",
        "debug",
        "refresh",
        "reload",
        "flush-logs",
        "flush-hosts",
        "flush-tables",
        "flush-threads",
        "flush-status",
        "flush-privileges",
    ] {
        let mut command = Command::new(name);
        command
            .args(["--no-defaults", "--host=127.0.0.1", "--user=root"])
            .arg(format!("--port={}", server.port))
            .arg(asked);
        let ran = run_command(&mut command, "");
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{asked}");
    }
}
