//! Cursors of prepared statements, by packets: client libraries open them behind options.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::running::Server;

const CURSOR_EXISTS: u16 = 0x40;
const LAST_ROW_SENT: u16 = 0x80;
const IN_TRANS: u16 = 0x01;

/// A client of the protocol of 4.1, which EOF packets are sent to.
struct Client {
    stream: TcpStream,
    sequence: u8,
}

/// The end of a result.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Status(u16),
    Error(u16),
}

impl Client {
    fn connect(server: &Server) -> Client {
        let stream = TcpStream::connect(("127.0.0.1", server.port)).expect("it listens");
        let mut client = Client {
            stream,
            sequence: 0,
        };
        client.read();
        // LONG_PASSWORD, CONNECT_WITH_DB, PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH
        let capabilities = 0x0001_u32 | 0x0008 | 0x0200 | 0x8000 | 0x8_0000;
        let mut packet = capabilities.to_le_bytes().to_vec();
        packet.extend_from_slice(&(1_u32 << 24).to_le_bytes());
        packet.push(255);
        packet.extend_from_slice(&[0; 23]);
        packet.extend_from_slice(b"root\0\0test\0mysql_native_password\0");
        client.write(&packet);
        let mut answer = client.read();
        while answer[0] == 0xFE {
            client.write(b"");
            answer = client.read();
        }
        assert_eq!(answer[0], 0, "{answer:?}");
        client
    }

    fn write(&mut self, payload: &[u8]) {
        let len = u32::try_from(payload.len()).expect("a short packet");
        let header = len | u32::from(self.sequence) << 24;
        let packet = [&header.to_le_bytes(), payload].concat();
        self.stream.write_all(&packet).expect("the server reads");
        self.sequence = self.sequence.wrapping_add(1);
    }

    fn read(&mut self) -> Vec<u8> {
        let mut header = [0; 4];
        self.stream.read_exact(&mut header).expect("a packet");
        self.sequence = header[3].wrapping_add(1);
        let len = u32::from_le_bytes([header[0], header[1], header[2], 0]);
        let mut payload = vec![0; len as usize];
        self.stream.read_exact(&mut payload).expect("the packet");
        payload
    }

    fn command(&mut self, number: u8, rest: &[u8]) {
        self.sequence = 0;
        self.write(&[&[number], rest].concat());
    }

    /// Packets up to EOF or an error.
    fn rows(&mut self) -> (Vec<Vec<u8>>, End) {
        let mut rows = Vec::new();
        loop {
            let packet = self.read();
            match packet[0] {
                0xFE if packet.len() == 5 => {
                    let status = u16::from_le_bytes([packet[3], packet[4]]);
                    return (rows, End::Status(status));
                }
                0xFF => {
                    let number = u16::from_le_bytes([packet[1], packet[2]]);
                    return (rows, End::Error(number));
                }
                _ => rows.push(packet),
            }
        }
    }

    /// Runs a statement without rows.
    fn run(&mut self, statement: &str) {
        self.command(3, statement.as_bytes());
        let answer = self.read();
        assert_eq!(
            answer[0],
            0,
            "{statement}: {}",
            String::from_utf8_lossy(&answer)
        );
    }

    fn prepare(&mut self, statement: &str) -> u32 {
        self.command(0x16, statement.as_bytes());
        let answer = self.read();
        assert_eq!(answer[0], 0, "{}", String::from_utf8_lossy(&answer));
        if answer[5..7] != [0, 0] {
            self.rows();
        }
        u32::from_le_bytes([answer[1], answer[2], answer[3], answer[4]])
    }

    /// Executes with a cursor; the columns, or the one packet of an answer without rows.
    fn open(&mut self, id: u32) -> (Vec<Vec<u8>>, End) {
        self.command(0x17, &[&id.to_le_bytes()[..], &[1, 1, 0, 0, 0]].concat());
        let first = self.read();
        match first[0] {
            0 => (vec![first], End::Status(0)),
            0xFF => (
                Vec::new(),
                End::Error(u16::from_le_bytes([first[1], first[2]])),
            ),
            _ => self.rows(),
        }
    }

    fn fetch(&mut self, id: u32, count: u32) -> (Vec<Vec<u8>>, End) {
        self.command(0x1C, &[id.to_le_bytes(), count.to_le_bytes()].concat());
        self.rows()
    }

    /// The first column of rows, a BIGINT.
    fn numbers(&mut self, id: u32, count: u32) -> (Vec<i64>, End) {
        let (rows, end) = self.fetch(id, count);
        let number = |row: &Vec<u8>| {
            // A header, NULL bits of up to six columns, and the value.
            i64::from_le_bytes(row[2..10].try_into().expect("a row"))
        };
        (rows.iter().map(number).collect(), end)
    }
}

fn has(end: &End, flag: u16) -> bool {
    matches!(end, End::Status(status) if status & flag != 0)
}

#[test]
fn rows_are_fetched_while_other_statements_run() {
    let server = Server::start(&[]);
    let mut client = Client::connect(&server);
    client.run("CREATE TEMPORARY TABLE t (a BIGINT, b VARCHAR(20))");
    client.run("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL), (4, 'd'), (5, 'e')");
    let first = client.prepare("SELECT a, b FROM t ORDER BY a");
    let second = client.prepare("SELECT a + 10 FROM t ORDER BY a DESC");
    for _ in 0..2 {
        let (columns, end) = client.open(first);
        assert_eq!(columns.len(), 2);
        assert!(
            has(&end, CURSOR_EXISTS) && !has(&end, LAST_ROW_SENT),
            "{end:?}"
        );
        let (columns, end) = client.open(second);
        assert_eq!(columns.len(), 1);
        assert!(has(&end, CURSOR_EXISTS));
        let (numbers, end) = client.numbers(first, 2);
        assert_eq!(numbers, [1, 2]);
        assert!(
            has(&end, CURSOR_EXISTS) && !has(&end, LAST_ROW_SENT),
            "{end:?}"
        );
        // What others do to the table, and the transaction, is not seen.
        client.run("BEGIN");
        client.run("UPDATE t SET a = a + 100");
        client.run("INSERT INTO t VALUES (7, 'new')");
        let (numbers, end) = client.numbers(second, 1);
        assert_eq!(numbers, [15]);
        assert!(has(&end, IN_TRANS));
        client.run("ROLLBACK");
        // Nothing has come to an end by the last row alone.
        let (numbers, end) = client.numbers(first, 3);
        assert_eq!(numbers, [3, 4, 5]);
        assert!(has(&end, CURSOR_EXISTS));
        let (numbers, end) = client.numbers(first, 1);
        assert_eq!(numbers, [0; 0]);
        assert!(
            has(&end, LAST_ROW_SENT) && !has(&end, CURSOR_EXISTS),
            "{end:?}"
        );
        assert_eq!(client.fetch(first, 1), (Vec::new(), End::Error(1421)));
    }
    client.run("DROP TABLE t");
    assert_eq!(client.numbers(second, 100).0, [14, 13, 12, 11]);
    assert_eq!(client.open(second), (Vec::new(), End::Error(1146)));
}

#[test]
fn a_cursor_ends_with_its_statement() {
    let server = Server::start(&[]);
    let mut client = Client::connect(&server);
    let numbers = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 10) \
                   SELECT CAST(i AS SIGNED) AS j FROM n ORDER BY j";
    let id = client.prepare(numbers);
    client.open(id);
    assert_eq!(client.numbers(id, 1).0, [1]);
    // Executed again: from the beginning.
    client.open(id);
    assert_eq!(client.numbers(id, 2).0, [1, 2]);
    client.command(0x1A, &id.to_le_bytes());
    assert_eq!(client.read()[0], 0);
    assert_eq!(client.fetch(id, 1).1, End::Error(1421));
    // Executed without a cursor.
    client.open(id);
    client.command(0x17, &[&id.to_le_bytes()[..], &[0, 1, 0, 0, 0]].concat());
    client.rows();
    assert_eq!(client.rows().0.len(), 10);
    assert_eq!(client.fetch(id, 1).1, End::Error(1421));
    client.open(id);
    client.command(0x19, &id.to_le_bytes());
    assert_eq!(client.fetch(id, 1).1, End::Error(1243));
    let id = client.prepare(numbers);
    client.open(id);
    client.command(0x1F, b"");
    assert_eq!(client.read()[0], 0);
    assert_eq!(client.fetch(id, 1).1, End::Error(1243));
    // Statements without rows, with none, and with an error amid them.
    client.run("CREATE TEMPORARY TABLE t (a BIGINT)");
    let insert = client.prepare("INSERT INTO t VALUES (1), (0)");
    assert_eq!(client.open(insert).0[0][..2], [0, 2]);
    let none = client.prepare("SELECT a FROM t WHERE a > 5");
    assert!(has(&client.open(none).1, CURSOR_EXISTS));
    let (rows, end) = client.fetch(none, 10);
    assert!(rows.is_empty() && has(&end, LAST_ROW_SENT));
    let fails = client.prepare("SELECT a, (SELECT a FROM t) FROM t");
    assert_eq!(client.open(fails), (Vec::new(), End::Error(1242)));
    assert_eq!(client.fetch(fails, 1).1, End::Error(1421));
}

#[test]
fn rows_beyond_memory_wait_on_disk() {
    let server = Server::start(&[]);
    let mut client = Client::connect(&server);
    client.run("SET SESSION cte_max_recursion_depth = 10000");
    client.run(
        "CREATE TEMPORARY TABLE n WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n \
         WHERE i < 1000) SELECT i FROM n",
    );
    // 100 MB twice, where the memory is 64 MiB.
    let query = "SELECT CAST(x.i * 1000 + y.i AS SIGNED), REPEAT('x', 400) FROM n AS x, n AS y \
                 WHERE x.i <= 250";
    let ids = [client.prepare(query), client.prepare(query)];
    for id in ids {
        assert!(has(&client.open(id).1, CURSOR_EXISTS));
    }
    let mut totals = [(0, 0), (0, 0)];
    let mut open = 2;
    while open > 0 {
        for (id, (count, sum)) in ids.into_iter().zip(&mut totals) {
            let (rows, end) = client.numbers(id, 20_000);
            *count += rows.len();
            *sum += rows.iter().sum::<i64>();
            if has(&end, LAST_ROW_SENT) {
                open -= 1;
            }
        }
        // Others find memory.
        client.command(
            3,
            b"SELECT COUNT(DISTINCT x.i * 1000 + y.i) FROM n AS x, n AS y WHERE x.i <= 300",
        );
        assert_eq!(client.read(), [1]);
        client.rows();
        let (rows, end) = client.rows();
        assert_eq!(
            (rows, has(&end, 0xFFFF)),
            (vec![b"\x06300000".to_vec()], true)
        );
    }
    let sum: i64 = (1..=250).map(|x| x * 1_000_000 + 500_500).sum();
    assert_eq!(totals, [(250_000, sum); 2]);
    // A quota holds for them too, and one that is given up gives its space back.
    client.run("SET mayfly_max_tmp_statement_space_usage = 1048576");
    let (_, end) = client.open(ids[0]);
    assert!(matches!(end, End::Error(_)), "{end:?}");
}
