//! Bytes that no client sends: nothing panics, hangs or grows.

use std::time::{Duration, Instant};

use mayfly_wire::{Capabilities, ConnectionError};
use proptest::prelude::*;
use tokio::runtime::Builder;

use crate::packets::{Client, NEW, OLD, error_code, response};

/// What one connection of strange bytes may take.
const LIMIT: Duration = Duration::from_secs(20);

/// Packets that a client could send after it has logged in.
fn commands() -> impl Strategy<Value = Vec<u8>> {
    let plausible = prop::sample::select(vec![
        b"\x03types".to_vec(),
        b"\x03one; insert; rows 20".to_vec(),
        b"\x03failamid".to_vec(),
        b"\x16echo ?,?,?".to_vec(),
        b"\x16rows 2000".to_vec(),
        b"\x17\x01\0\0\0\0\x01\0\0\0\0\x01\xFD\0\x0C\0\x08\0\x02ab\x04\xE8\x07\x01\x01\xFF"
            .to_vec(),
        b"\x17\x01\0\0\0\x01\x01\0\0\0".to_vec(),
        b"\x1C\x01\0\0\0\xFF\0\0\0".to_vec(),
        b"\x18\x01\0\0\0\0\0data".to_vec(),
        b"\x1A\x01\0\0\0".to_vec(),
        b"\x19\x01\0\0\0".to_vec(),
        b"\x11root\0\0shop\0\xFF\0mysql_native_password\0".to_vec(),
        b"\x1F".to_vec(),
        b"\x04numbers\0%".to_vec(),
    ]);
    prop_oneof![
        plausible.clone(),
        (plausible, any::<prop::sample::Index>(), any::<u8>()).prop_map(
            |(mut packet, at, byte)| {
                let at = at.index(packet.len());
                packet[at] = byte;
                packet
            }
        ),
        (0_u8..0x22, prop::collection::vec(any::<u8>(), 0..60)).prop_map(|(number, rest)| [
            vec![number],
            rest
        ]
        .concat()),
    ]
}

/// Sends bytes, reads what comes, closes; the server must come back by itself.
async fn send(mut client: Client, bytes: &[u8]) {
    client.write_raw(bytes).await;
    let ended = tokio::time::timeout(LIMIT, client.close()).await;
    let ended = ended.expect("the server came to an end");
    // A panic of the server's task is an error of the join.
    drop(ended.expect("no panic"));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_handshake_of_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { send(Client::connect(|_, _| {}), &bytes).await });
    }

    #[test]
    fn a_response_with_mistakes(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in 0_usize..40,
        flags in any::<u32>(),
    ) {
        let mut packet = response(Capabilities::from_bits(flags) | OLD);
        let at = at.index(packet.len());
        packet[at] = byte;
        packet.truncate(packet.len() - cut);
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut client = Client::connect(|_, _| {});
            client.read().await;
            client.write(&packet).await;
            send(client, b"\x01\0\0\0\x0E").await;
        });
    }

    #[test]
    fn commands_with_mistakes(
        packets in prop::collection::vec(commands(), 1..20),
        is_new in any::<bool>(),
        sequence in prop_oneof![9 => Just(0_u8), 1 => any::<u8>()],
    ) {
        let mut bytes = Vec::new();
        for packet in &packets {
            let len = packet.len() as u32;
            bytes.extend_from_slice(&(len | u32::from(sequence) << 24).to_le_bytes());
            bytes.extend_from_slice(packet);
        }
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = Client::log_in(if is_new { NEW } else { OLD }).await;
            send(client, &bytes).await;
        });
    }

    #[test]
    fn compressed_bytes_with_mistakes(
        method in prop::sample::select(vec![
            Capabilities::COMPRESS,
            Capabilities::ZSTD_COMPRESSION_ALGORITHM,
        ]),
        body in prop::collection::vec(any::<u8>(), 0..100),
        plain_len in prop_oneof![Just(0_u32), 0_u32..300, Just(0xFF_FFFF)],
    ) {
        let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
        bytes.extend_from_slice(&plain_len.to_le_bytes()[..3]);
        bytes.extend_from_slice(&body);
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = Client::log_in(OLD | method).await;
            send(client, &bytes).await;
        });
    }
}

#[tokio::test]
async fn a_handshake_has_a_time_limit() {
    let limit = Duration::from_millis(300);
    let mut client = Client::connect(|settings, _| settings.connect_timeout = limit);
    client.read().await;
    // A byte now and then does not buy time.
    client.write_raw(b"\x20\0\0\x01").await;
    let started = Instant::now();
    while !client.ended.is_finished() {
        assert!(started.elapsed() < LIMIT);
        client.write_raw(b"\0").await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let ended = client.ended.await.unwrap();
    assert!(matches!(ended, Err(ConnectionError::HandshakeTimeout)));
}

#[tokio::test]
async fn an_idle_client_is_told_and_disconnected() {
    let limit = Duration::from_millis(200);
    let mut client = Client::connect(|_, server| server.idle_timeout = limit);
    client.read().await;
    client.write(&response(NEW)).await;
    assert_eq!(client.read().await[0], 0);
    assert_eq!(client.ask(0x0E, b"").await[0], 0);
    client.expect_sequence(0);
    // 4031.
    assert_eq!(client.read().await[..3], [0xFF, 0xBF, 0x0F]);
    let ended = client.ended.await.unwrap();
    assert!(matches!(ended, Err(ConnectionError::IdleTimeout)));
}

#[tokio::test]
async fn a_client_that_does_not_read_is_disconnected() {
    let limit = Duration::from_millis(200);
    let mut client = Client::connect(|settings, _| settings.write_timeout = limit);
    client.read().await;
    client.write(&response(NEW)).await;
    client.read().await;
    client.command(3, b"rows 1000000").await;
    is_given_up(&mut client).await;
}

#[tokio::test]
async fn a_packet_that_stops_is_given_up() {
    let limit = Duration::from_millis(200);
    let mut client = Client::connect(|settings, _| settings.read_timeout = limit);
    client.read().await;
    client.write(&response(NEW)).await;
    client.read().await;
    // The beginning of a command, and no more: the client could be idle for hours.
    client.write_raw(b"\x10\0\0\0\x03one").await;
    is_given_up(&mut client).await;
}

/// Waits for the end of a client that stays, which has to come from the other side.
async fn is_given_up(client: &mut Client) {
    let ended = tokio::time::timeout(LIMIT, &mut client.ended).await;
    let ended = ended.expect("it is given up").unwrap();
    assert!(
        matches!(ended, Err(ConnectionError::Transport(_))),
        "{ended:?}"
    );
}

#[tokio::test]
async fn a_file_that_stops_is_given_up() {
    let limit = Duration::from_millis(200);
    let mut client = Client::connect(|settings, _| {
        settings.local_infile = true;
        settings.read_timeout = limit;
    });
    client.read().await;
    client
        .write(&response(NEW | Capabilities::LOCAL_FILES))
        .await;
    client.read().await;
    client.command(3, b"load /a/file").await;
    assert_eq!(client.read().await[0], 0xFB);
    client.write_raw(b"\x10\0\0\x02half").await;
    is_given_up(&mut client).await;
}

#[tokio::test]
async fn a_long_promise_reserves_nothing() {
    let mut client = Client::log_in(NEW).await;
    client.write_raw(b"\xFF\xFF\xFF\0").await;
    client.write_raw(&[3; 1000]).await;
    let ended = client.close().await;
    assert!(matches!(ended, Ok(Err(ConnectionError::Transport(_)))));
}

#[tokio::test]
async fn a_long_handshake_is_refused() {
    let mut client = Client::connect(|_, _| {});
    client.read().await;
    client.write_raw(b"\xFF\xFF\xFF\x01").await;
    assert!(matches!(
        client.ended.await.unwrap(),
        Err(ConnectionError::Refused(_))
    ));
}

/// The file of a statement that has failed is read to its end, which a client may never send.
#[tokio::test]
async fn a_killed_client_does_not_go_on_sending_its_file() {
    let client = Client::connect(|settings, _| settings.local_infile = true);
    let mut client = client.logged_in(NEW | Capabilities::LOCAL_FILES).await;
    for kills in [false, true] {
        client.command(3, b"loadpart x").await;
        assert_eq!(client.read().await[0], 0xFB);
        let piece = vec![b'x'; 64 << 10];
        // The pipe holds one of them: when the last is sent, the statement has failed.
        for _ in 0..4 {
            client.write(&piece).await;
        }
        if !kills {
            client.write(b"").await;
            assert_eq!(error_code(&client.read().await), 1146);
            continue;
        }
        client.shared.kill.notify_one();
        for _ in 0..100 {
            client.write(&piece).await;
        }
        assert!(client.ended.is_finished(), "the client is still read from");
    }
    client.ended.await.unwrap().unwrap();
}
