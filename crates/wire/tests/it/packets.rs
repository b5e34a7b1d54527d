//! A client that is nothing but packets, over a pipe in memory: what real clients do not show.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mayfly_wire::{Capabilities, ConnectionError, Endpoint, Peer, ServerStatus, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;

use crate::canned::{Canned, Shared};
use crate::harness::{canned, own_user_id};

/// What an old client says it can do.
pub const OLD: Capabilities = Capabilities::PROTOCOL_41
    .with(Capabilities::SECURE_CONNECTION)
    .with(Capabilities::LONG_PASSWORD)
    .with(Capabilities::TRANSACTIONS);
/// What a client of our days says.
pub const NEW: Capabilities = OLD
    .with(Capabilities::DEPRECATE_EOF)
    .with(Capabilities::SESSION_TRACK)
    .with(Capabilities::MULTI_STATEMENTS)
    .with(Capabilities::PLUGIN_AUTH);

/// The client's end.
pub struct Client {
    stream: DuplexStream,
    sequence: u8,
    pub ended: JoinHandle<Result<(), ConnectionError>>,
    pub shared: Arc<Shared>,
    pub endpoint: Arc<Endpoint<Canned>>,
}

impl Client {
    /// A client that has not been greeted.
    pub fn connect(configure: impl FnOnce(&mut Settings, &mut Canned)) -> Client {
        let mut settings = Settings::new("8.4.0-Canned");
        let mut server = canned();
        configure(&mut settings, &mut server);
        let endpoint = Arc::new(Endpoint::new(server, settings));
        Client::of(&endpoint)
    }

    /// Another client of the same server.
    pub fn of(endpoint: &Arc<Endpoint<Canned>>) -> Client {
        let (stream, theirs) = tokio::io::duplex(64 << 10);
        let peer = Peer::Unix {
            user_id: own_user_id(),
        };
        let serving = Arc::clone(endpoint);
        Client {
            stream,
            sequence: 0,
            ended: tokio::spawn(async move { serving.serve(theirs, peer).await }),
            shared: Arc::clone(&endpoint.server().shared),
            endpoint: Arc::clone(endpoint),
        }
    }

    /// A client that is logged in as a user without password.
    pub async fn log_in(capabilities: Capabilities) -> Client {
        Client::connect(|_, _| {}).logged_in(capabilities).await
    }

    /// The same client, after it has logged in.
    pub async fn logged_in(mut self, capabilities: Capabilities) -> Client {
        self.read().await;
        self.write(&response(capabilities)).await;
        assert_eq!(self.read().await[0], 0);
        self
    }

    /// Writes a packet.
    pub async fn write(&mut self, payload: &[u8]) {
        let len = payload.len() as u32;
        let mut packet = (len | u32::from(self.sequence) << 24)
            .to_le_bytes()
            .to_vec();
        packet.extend_from_slice(payload);
        self.sequence = self.sequence.wrapping_add(1);
        // The server may have gone; reading shows it.
        let _sent = self.stream.write_all(&packet).await;
    }

    /// Writes bytes that may be no packet.
    pub async fn write_raw(&mut self, bytes: &[u8]) {
        let _sent = self.stream.write_all(bytes).await;
    }

    /// Reads a packet; empty at the end.
    pub async fn read(&mut self) -> Vec<u8> {
        let mut header = [0; 4];
        if self.stream.read_exact(&mut header).await.is_err() {
            return Vec::new();
        }
        assert_eq!(header[3], self.sequence, "the number of a packet");
        self.sequence = self.sequence.wrapping_add(1);
        let len = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        let mut payload = vec![0; len];
        self.stream.read_exact(&mut payload).await.unwrap();
        payload
    }

    /// Reads so many bytes.
    pub async fn read_raw(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).await.unwrap();
        bytes
    }

    /// The next packet begins a count.
    pub fn expect_sequence(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    /// Says nothing more and reads what comes until the server is through.
    pub async fn close(mut self) -> Result<Result<(), ConnectionError>, tokio::task::JoinError> {
        let _closed = self.stream.shutdown().await;
        let mut rest = Vec::new();
        let _read = self.stream.read_to_end(&mut rest).await;
        self.ended.await
    }

    /// Sends a command.
    pub async fn command(&mut self, number: u8, rest: &[u8]) {
        self.sequence = 0;
        self.write(&[&[number], rest].concat()).await;
    }

    /// Sends a command and reads one packet.
    pub async fn ask(&mut self, number: u8, rest: &[u8]) -> Vec<u8> {
        self.command(number, rest).await;
        self.read().await
    }

    /// Reads packets up to one that ends a result: EOF, or an OK in its place, or an error.
    pub async fn read_to_end(&mut self) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        loop {
            let packet = self.read().await;
            let is_end = matches!(packet[0], 0xFE if packet.len() < 50) || packet[0] == 0xFF;
            packets.push(packet);
            if is_end {
                return packets;
            }
        }
    }
}

/// A handshake response of `root`, which has no password.
pub fn response(capabilities: Capabilities) -> Vec<u8> {
    let mut packet = capabilities.bits().to_le_bytes().to_vec();
    packet.extend_from_slice(&(1_u32 << 24).to_le_bytes());
    packet.push(255);
    packet.extend_from_slice(&[0; 23]);
    packet.extend_from_slice(b"root\0\0");
    if capabilities.contains(Capabilities::PLUGIN_AUTH) {
        packet.extend_from_slice(b"mysql_native_password\0");
    }
    packet
}

pub fn error_code(packet: &[u8]) -> u16 {
    assert_eq!(packet[0], 0xFF, "{packet:?}");
    u16::from_le_bytes([packet[1], packet[2]])
}

/// Status flags of an EOF packet, or of an OK with few rows in its place.
fn end_status(packet: &[u8]) -> ServerStatus {
    assert_eq!(packet[0], 0xFE);
    ServerStatus::from_bits(u16::from_le_bytes([packet[3], packet[4]]))
}

#[tokio::test]
async fn the_greeting_offers_what_is_served() {
    let mut client = Client::connect(|settings, _| settings.local_infile = true);
    let greeting = client.read().await;
    assert_eq!(greeting[0], 10);
    assert_eq!(&greeting[1..14], b"8.4.0-Canned\0");
    let at = 14 + 4 + 8 + 1;
    let low = u32::from(u16::from_le_bytes([greeting[at], greeting[at + 1]]));
    assert_eq!(greeting[at + 2], 255);
    let high = u32::from(u16::from_le_bytes([greeting[at + 5], greeting[at + 6]]));
    let offered = Capabilities::from_bits(low | high << 16);
    assert!(offered.contains(NEW | Capabilities::LOCAL_FILES | Capabilities::COMPRESS));
    assert!(!offered.contains(Capabilities::SSL));
    assert_eq!(greeting[at + 7], 21);
    assert!(greeting.ends_with(b"caching_sha2_password\0"));
}

#[tokio::test]
async fn eof_packets_stand_where_old_clients_expect_them() {
    let mut client = Client::log_in(OLD).await;
    client.command(3, b"rows 2").await;
    assert_eq!(client.read().await, [2]);
    let columns = client.read_to_end().await;
    assert_eq!(columns.len(), 3);
    assert_eq!(columns[2].len(), 5);
    let rows = client.read_to_end().await;
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[1], b"\x011\x0Dword number 1");
    assert_eq!(rows[2], [0xFE, 0, 0, 2, 0]);
}

#[tokio::test]
async fn an_ok_packet_stands_for_eof_when_the_client_says_so() {
    let mut client = Client::log_in(NEW).await;
    client.command(3, b"rows 5").await;
    assert_eq!(client.read().await, [2]);
    let packets = client.read_to_end().await;
    assert_eq!(packets.len(), 2 + 5 + 1);
    assert_eq!(packets[2 + 3], b"\x013\xFB");
    assert_eq!(packets[7], [0xFE, 0, 0, 2, 0, 0, 0]);
}

#[tokio::test]
async fn more_results_are_announced_in_both_styles() {
    let more = ServerStatus::MORE_RESULTS_EXISTS;
    for capabilities in [OLD | Capabilities::MULTI_STATEMENTS, NEW] {
        let mut client = Client::log_in(capabilities).await;
        let is_old = !capabilities.contains(Capabilities::DEPRECATE_EOF);
        client.command(3, b"one; insert; one").await;
        for expect_more in [true, false] {
            assert_eq!(client.read().await, [1]);
            if is_old {
                client.read_to_end().await;
            }
            let rows = client.read_to_end().await;
            let end = rows.last().unwrap();
            assert_eq!(end_status(end).contains(more), expect_more, "{end:?}");
            if expect_more {
                let ok = client.read().await;
                assert_eq!(&ok[..3], [0, 3, 7]);
                let status = ServerStatus::from_bits(u16::from_le_bytes([ok[3], ok[4]]));
                assert!(status.contains(more));
            }
        }
    }
}

#[tokio::test]
async fn several_statements_need_the_client_to_allow_them() {
    let mut client = Client::log_in(OLD).await;
    assert_eq!(error_code(&client.ask(3, b"insert; insert").await), 1064);
    // COM_SET_OPTION turns it on and off.
    assert_eq!(client.ask(0x1B, &[0, 0]).await[0], 0xFE);
    assert_eq!(client.ask(3, b"insert; insert").await[0], 0);
    assert_eq!(client.read().await[0], 0);
    assert_eq!(client.ask(0x1B, &[1, 0]).await[0], 0xFE);
    assert_eq!(error_code(&client.ask(3, b"insert; insert").await), 1064);
    assert_eq!(error_code(&client.ask(0x1B, &[2, 0]).await), 1047);
}

#[tokio::test]
async fn changes_of_the_session_are_told_to_those_who_listen() {
    let mut client = Client::log_in(NEW).await;
    let ok = client.ask(3, b"track").await;
    assert_eq!(&ok[..7], [0, 0, 0, 0x02, 0x40, 0, 0]);
    let mut changes = b"\x00\x0E\x0Aautocommit\x02ON".to_vec();
    changes.extend_from_slice(b"\x01\x06\x05other\x02\x011");
    assert_eq!(ok[7], 0);
    assert_eq!(usize::from(ok[8]), ok.len() - 9);
    assert_eq!(&ok[9..], changes);
    let mut client = Client::log_in(OLD).await;
    assert_eq!(client.ask(3, b"track").await, [0, 0, 0, 2, 0, 0, 0]);
}

#[tokio::test]
async fn small_commands_are_answered() {
    for capabilities in [OLD, NEW] {
        let mut client = Client::log_in(capabilities).await;
        assert_eq!(client.ask(0x0E, b"").await, [0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(client.ask(2, b"shop").await[0], 0);
        assert_eq!(error_code(&client.ask(2, b"missing").await), 1049);
        assert!(client.ask(9, b"").await.starts_with(b"Uptime: 1  Threads"));
        assert_eq!(error_code(&client.ask(0x0C, &[9, 0, 0, 0]).await), 1094);
        assert_eq!(client.ask(7, b"").await, [0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(client.ask(7, &[0x3F]).await, [0, 0x3F, 0, 2, 0, 0, 0]);
        assert_eq!(error_code(&client.ask(7, &[0xFF]).await), 1235);
        client.command(0x0A, b"").await;
        let mut list = client.read_to_end().await;
        if capabilities == OLD {
            assert_eq!(list.pop().unwrap().len(), 5);
            list.extend(client.read_to_end().await);
        }
        // The count of columns, one of them, a row and the end.
        assert_eq!(list.len(), 4);
        assert_eq!(list[2], b"\x011");
        let debugged = client.ask(0x0D, b"").await;
        match capabilities == OLD {
            true => assert_eq!(debugged, [0xFE, 0, 0, 2, 0]),
            false => assert_eq!(debugged, [0xFE, 0, 0, 2, 0, 0, 0]),
        }
        assert_eq!(client.shared.debugged.load(Ordering::SeqCst), 1);
        client.command(4, b"numbers\0").await;
        let fields = client.read_to_end().await;
        assert_eq!(fields.len(), 3);
        assert_eq!(fields[0].last(), Some(&0xFB));
        assert_eq!(error_code(&client.ask(4, b"missing\0").await), 1146);
        for unknown in [0, 5, 6, 8, 0x0B, 0x0F, 0x12, 0x1D, 0x1E, 0x20, 0xFF] {
            assert_eq!(
                error_code(&client.ask(unknown, b"rest").await),
                1047,
                "{unknown}"
            );
        }
        assert_eq!(error_code(&client.ask(0x0C, b"\x01").await), 1835);
        client.command(1, b"").await;
        assert_eq!(client.read().await, b"");
        client.ended.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn cursors_are_fetched_piece_by_piece() {
    for capabilities in [OLD, NEW] {
        let mut client = Client::log_in(capabilities).await;
        client.command(0x16, b"rows 2500").await;
        let prepared = client.read().await;
        assert_eq!(prepared, [0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0]);
        let definitions = if capabilities == OLD { 3 } else { 2 };
        for _ in 0..definitions {
            client.read().await;
        }
        client.command(0x17, &[1, 0, 0, 0, 1, 1, 0, 0, 0]).await;
        assert_eq!(client.read().await, [2]);
        let packets = client.read_to_end().await;
        assert_eq!(packets.len(), 3);
        assert!(end_status(&packets[2]).contains(ServerStatus::CURSOR_EXISTS));
        let mut total = 0;
        for wanted in [10_u32, 995, 1000, 495, 0, 1, 1] {
            // Other commands run between fetches.
            assert_eq!(client.ask(0x0E, b"").await[0], 0);
            client
                .command(0x1C, &[[1, 0, 0, 0], wanted.to_le_bytes()].concat())
                .await;
            let mut rows = client.read_to_end().await;
            let end = rows.pop().unwrap();
            if total == 2500 && wanted > 0 {
                if end[0] == 0xFF {
                    assert_eq!(error_code(&end), 1421);
                    continue;
                }
                assert!(rows.is_empty());
                assert!(end_status(&end).contains(ServerStatus::LAST_ROW_SENT));
                assert!(!end_status(&end).contains(ServerStatus::CURSOR_EXISTS));
                continue;
            }
            assert_eq!(rows.len(), wanted as usize);
            if let Some(row) = rows.first() {
                assert_eq!(&row[..2], [0, if total % 10 == 3 { 8 } else { 0 }]);
                assert_eq!(row[2..10], (total as u64).to_le_bytes());
            }
            total += rows.len();
            assert!(end_status(&end).contains(ServerStatus::CURSOR_EXISTS));
        }
        assert_eq!(total, 2500);
        // A statement without a cursor is answered in full.
        client.command(0x16, b"one").await;
        client.read().await;
        client.command(0x17, &[2, 0, 0, 0, 1, 1, 0, 0, 0]).await;
        assert_eq!(client.read().await, [1]);
        if capabilities == OLD {
            client.read_to_end().await;
        }
        let rows = client.read_to_end().await;
        let end = rows.last().unwrap();
        assert!(!end_status(end).contains(ServerStatus::CURSOR_EXISTS));
        assert_eq!(rows[rows.len() - 2], [0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        // COM_STMT_RESET closes a cursor, COM_STMT_CLOSE the statement.
        client.command(0x17, &[1, 0, 0, 0, 1, 1, 0, 0, 0]).await;
        client.read().await;
        client.read_to_end().await;
        assert_eq!(client.ask(0x1A, &[1, 0, 0, 0]).await[0], 0);
        assert_eq!(
            error_code(&client.ask(0x1C, &[1, 0, 0, 0, 1, 0, 0, 0]).await),
            1421
        );
        client.command(0x19, &[1, 0, 0, 0]).await;
        assert_eq!(error_code(&client.ask(0x1A, &[1, 0, 0, 0]).await), 1243);
        assert_eq!(
            error_code(&client.ask(0x17, &[1, 0, 0, 0, 0, 1, 0, 0, 0]).await),
            1243
        );
    }
}

#[tokio::test]
async fn long_data_is_gathered_and_limited() {
    let mut client = Client::connect(|settings, _| settings.max_packet_bytes = 1 << 20);
    client.read().await;
    client.write(&response(NEW)).await;
    client.read().await;
    client.command(0x16, b"length ?").await;
    client.read().await;
    client.read().await;
    let execute = b"\x01\0\0\0\0\x01\0\0\0\0\x01\xFC\0";
    for (pieces, affected) in [(3, Some(300)), (11, None), (1, Some(100))] {
        let piece = vec![b'x'; if pieces == 11 { 100_000 } else { 100 }];
        for _ in 0..pieces {
            client
                .command(0x18, &[b"\x01\0\0\0\0\0", piece.as_slice()].concat())
                .await;
        }
        let answer = client.ask(0x17, execute).await;
        match affected {
            Some(300) => assert_eq!(answer[..4], [0, 0xFC, 0x2C, 0x01]),
            Some(_) => assert_eq!(answer[..2], [0, 100]),
            None => assert_eq!(error_code(&answer), 1105),
        }
    }
    // Without types there is nothing to read the values by.
    client.command(0x16, b"echo ?").await;
    for _ in 0..3 {
        client.read().await;
    }
    assert_eq!(
        error_code(&client.ask(0x17, b"\x02\0\0\0\0\x01\0\0\0\0\0").await),
        1210
    );
    assert_eq!(
        error_code(&client.ask(0x17, b"\x02\0\0\0\0\x01\0\0\0").await),
        1210
    );
    // Nor of a type that there is not, nor for a parameter that there is not.
    let unknown = b"\x02\0\0\0\0\x01\0\0\0\0\x01\x77\0\x01a";
    assert_eq!(error_code(&client.ask(0x17, unknown).await), 1210);
    client.command(0x18, b"\x01\0\0\0\x05\0x").await;
    assert_eq!(error_code(&client.ask(0x17, execute).await), 1210);
}

#[tokio::test]
async fn commands_may_be_sent_ahead() {
    let mut client = Client::log_in(NEW).await;
    let mut bytes = Vec::new();
    for _ in 0..100 {
        bytes.extend_from_slice(b"\x07\0\0\0\x03insert");
        bytes.extend_from_slice(b"\x01\0\0\0\x0E");
    }
    client.write_raw(&bytes).await;
    for _ in 0..200 {
        client.sequence = 1;
        assert_eq!(client.read().await[0], 0);
    }
}

#[tokio::test]
async fn an_unknown_user_looks_like_a_wrong_password() {
    let packets_of = async |user: &str| {
        let mut client = Client::connect(|_, _| {});
        client.read().await;
        let capabilities = NEW | Capabilities::PLUGIN_AUTH_LENENC_CLIENT_DATA;
        let mut packet = capabilities.bits().to_le_bytes().to_vec();
        packet.extend_from_slice(&[0; 4 + 1 + 23]);
        packet.extend_from_slice(user.as_bytes());
        packet.extend_from_slice(b"\0\x20");
        packet.extend_from_slice(&[7; 32]);
        packet.extend_from_slice(b"caching_sha2_password\0");
        client.write(&packet).await;
        let more = client.read().await;
        client.write(b"wrong\0").await;
        let error = String::from_utf8_lossy(&client.read().await).replace(user, "user");
        assert_eq!(client.read().await, b"");
        (more, error)
    };
    let wrong = packets_of("sha2").await;
    assert_eq!(wrong.0, [1, 4]);
    assert!(wrong.1.contains("28000Access denied for user"));
    assert_eq!(packets_of("nobody").await, wrong);
}

#[tokio::test]
async fn zstd_frames_hold_packets() {
    let mut client = Client::connect(|_, _| {});
    client.read().await;
    let mut packet = response(OLD | Capabilities::ZSTD_COMPRESSION_ALGORITHM);
    packet.push(7);
    client.write(&packet).await;
    client.read().await;
    for round in 0..3 {
        // A long command goes compressed, the short one as it is.
        let text = [b"length ".as_slice(), &vec![b'x'; round * 100_000]].concat();
        let mut plain = ((text.len() + 1) as u32).to_le_bytes().to_vec();
        plain.push(3);
        plain.extend_from_slice(&text);
        let compressed = zstd::bulk::compress(&plain, 3).unwrap();
        let (body, plain_len) = match round {
            0 => (&plain, 0),
            _ => (&compressed, plain.len() as u32),
        };
        let mut frame = (body.len() as u32).to_le_bytes().to_vec();
        frame.extend_from_slice(&plain_len.to_le_bytes()[..3]);
        frame.extend_from_slice(body);
        client.write_raw(&frame).await;
        let mut header = [0; 7];
        client.stream.read_exact(&mut header).await.unwrap();
        // Too short to be worth compressing.
        assert_eq!(header[3..], [1, 0, 0, 0]);
        let mut ok = vec![0; usize::from(header[0])];
        client.stream.read_exact(&mut ok).await.unwrap();
        assert_eq!(ok[3..5], [1, 0]);
        let count = ok.get(5).copied().unwrap();
        assert_eq!(count, if round == 0 { 7 } else { 0xFD });
    }
    // Over several frames the numbers of packets go on, those of frames count apart.
    client
        .write_raw(b"\x0E\0\0\0\0\0\0\x0A\0\0\0\x03rows 3000")
        .await;
    let mut plain = Vec::new();
    let mut frames = 0;
    while !plain.ends_with(&[0xFE, 0, 0, 2, 0]) {
        let mut header = [0; 7];
        client.stream.read_exact(&mut header).await.unwrap();
        frames += 1;
        assert_eq!(header[3], frames);
        let u24 = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], 0]);
        let mut body = vec![0; u24(0) as usize];
        client.stream.read_exact(&mut body).await.unwrap();
        plain.extend(match u24(4) {
            0 => body,
            len => zstd::bulk::decompress(&body, len as usize).unwrap(),
        });
    }
    assert!(frames > 1);
    let mut rest = plain.as_slice();
    let mut sequence = 1_u8;
    while let Some((header, behind)) = rest.split_first_chunk::<4>() {
        assert_eq!(header[3], sequence);
        sequence = sequence.wrapping_add(1);
        let len = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        rest = &behind[len..];
    }
}

#[tokio::test]
async fn a_killed_connection_is_closed() {
    let mut client = Client::log_in(NEW).await;
    assert_eq!(client.ask(0x0E, b"").await[0], 0);
    client.shared.kill.notify_one();
    assert_eq!(client.read().await, b"");
    client.ended.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_stop_ends_idle_connections() {
    let mut client = Client::log_in(NEW).await;
    client.endpoint.stop();
    client.sequence = 0;
    assert_eq!(error_code(&client.read().await), 1053);
    assert_eq!(client.read().await, b"");
    client.ended.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_client_that_goes_stops_its_statement() {
    for text in ["sleep", "rows 100000000"] {
        let mut client = Client::log_in(NEW).await;
        client.command(3, text.as_bytes()).await;
        if text != "sleep" {
            client.read().await;
        }
        let Client {
            stream,
            ended,
            shared,
            ..
        } = client;
        drop(stream);
        assert!(matches!(
            ended.await.unwrap(),
            Err(ConnectionError::Transport(_))
        ));
        crate::harness::until(&shared.stopped, 1, "statements stopped").await;
        crate::harness::until(&shared.places, 0, "places").await;
    }
}

#[tokio::test]
async fn rows_wait_for_a_slow_client() {
    let mut client = Client::log_in(NEW).await;
    client.command(3, b"rows 1000000").await;
    client.read().await;
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let made = client
        .shared
        .rows_made
        .load(std::sync::atomic::Ordering::SeqCst);
    assert!(
        made < 20_000,
        "{made} rows were made for a client that does not read"
    );
    let rows = client.read_to_end().await;
    assert_eq!(rows.len(), 1_000_000 + 2 + 1);
}

#[tokio::test]
async fn a_statement_may_stop_waiting_for_its_client() {
    let mut client = Client::log_in(NEW).await;
    client.command(3, b"impatient").await;
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    client.read().await;
    let packets = client.read_to_end().await;
    assert_eq!(error_code(packets.last().unwrap()), 1317);
    let rows = &packets[2..packets.len() - 1];
    assert!(rows.len() > 1000);
    for (index, row) in rows.iter().enumerate() {
        let number = (index % 1000).to_string();
        assert_eq!(row[1..=number.len()], *number.as_bytes());
    }
    assert_eq!(client.ask(0x0E, b"").await[0], 0);
}
