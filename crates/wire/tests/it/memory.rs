//! What clients make the server hold: granted before it is held, refused where there is no room,
//! and the client goes on.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mayfly_wire::{Capabilities, ConnectionError, Endpoint, Settings};

use crate::canned::Canned;
use crate::harness::canned;
use crate::packets::{Client, NEW, OLD, error_code, response};

const OUT_OF_MEMORY: u16 = 1041;
const MIB: usize = 1 << 20;

/// A server whose clients may hold so much together.
fn server(memory_max: usize, configure: impl FnOnce(&mut Settings)) -> Arc<Endpoint<Canned>> {
    let mut settings = Settings::new("8.4.0-Canned");
    configure(&mut settings);
    let mut canned = canned();
    canned.memory_max = memory_max;
    canned.places_max = 1000;
    Arc::new(Endpoint::new(canned, settings))
}

async fn client_of(server: &Arc<Endpoint<Canned>>) -> Client {
    Client::of(server).logged_in(NEW).await
}

async fn prepare(client: &mut Client, id: u8) {
    assert_eq!(client.ask(0x16, b"length ?").await[..2], [0, id]);
    client.read().await;
}

fn long_data(id: u8, parameter: u8, bytes: usize) -> Vec<u8> {
    let mut packet = vec![id, 0, 0, 0, parameter, 0];
    packet.resize(6 + bytes, b'x');
    packet
}

async fn execute(client: &mut Client, id: u8) -> Vec<u8> {
    let parameters = b"\0\0\0\0\x01\0\0\0\0\x01\xFC\0";
    client.ask(0x17, &[&[id], &parameters[..]].concat()).await
}

fn held(server: &Endpoint<Canned>) -> usize {
    server.server().shared.held_bytes.load(Ordering::SeqCst)
}

#[tokio::test]
async fn a_hundred_clients_with_long_data_stay_within_the_bound() {
    const MAX: usize = 20 * MIB;
    let server = server(MAX, |_| {});
    let mut clients = Vec::new();
    for _ in 0..100 {
        let mut client = client_of(&server).await;
        // Of two statements each, and piece by piece.
        for id in 1..=2 {
            prepare(&mut client, id).await;
            for _ in 0..4 {
                client.command(0x18, &long_data(id, 0, MIB / 2)).await;
            }
        }
        assert_eq!(client.ask(0x0E, b"").await[0], 0);
        clients.push(client);
    }
    let shared = &server.server().shared;
    let most = shared.most_held_bytes.load(Ordering::SeqCst);
    assert!(most > MAX / 2, "little was granted: {most}");
    assert!(most <= MAX, "{most} bytes were held");
    let (mut served, mut refused) = (0, 0);
    for client in &mut clients {
        for id in 1..=2 {
            let answer = execute(client, id).await;
            match answer[0] {
                0 => served += 1,
                _ => {
                    assert_eq!(error_code(&answer), OUT_OF_MEMORY);
                    refused += 1;
                }
            }
        }
        // What was sent is forgotten, and the next data finds room.
        client.command(0x18, &long_data(1, 0, 100)).await;
        assert_eq!(execute(client, 1).await[..2], [0, 100]);
    }
    assert!(
        served > 0 && refused > 0,
        "{served} served, {refused} refused"
    );
    drop(clients);
    tokio::task::yield_now().await;
}

#[tokio::test]
async fn long_data_is_given_back() {
    let server = server(16 * MIB, |_| {});
    let mut client = client_of(&server).await;
    prepare(&mut client, 1).await;
    let idle = held(&server);
    for end in 0..4_u8 {
        client.command(0x18, &long_data(1, 0, 4 * MIB)).await;
        assert_eq!(client.ask(0x0E, b"").await[0], 0);
        assert!(held(&server) >= idle + 4 * MIB);
        match end {
            0 => drop(execute(&mut client, 1).await),
            1 => drop(client.ask(0x1A, b"\x01\0\0\0").await),
            2 => {
                client.command(0x19, b"\x01\0\0\0").await;
                prepare(&mut client, 2).await;
                client.command(0x18, &long_data(2, 0, 4 * MIB)).await;
                drop(execute(&mut client, 2).await);
                client.command(0x19, b"\x02\0\0\0").await;
                prepare(&mut client, 3).await;
                break;
            }
            _ => {}
        }
        assert_eq!(client.ask(0x0E, b"").await[0], 0);
        assert_eq!(held(&server), idle, "after end {end}");
    }
    assert_eq!(client.ask(0x1F, b"").await[0], 0);
    assert_eq!(client.ask(0x0E, b"").await[0], 0);
    assert_eq!(held(&server), 0);
}

#[tokio::test]
async fn parameters_without_bytes_are_counted_too() {
    let server = server(MIB, |_| {});
    let mut client = client_of(&server).await;
    let marks = ["?"; 20_000].join(",");
    assert_eq!(
        client.ask(0x16, format!("insert {marks}").as_bytes()).await[0],
        0
    );
    for _ in 0..20_000 {
        client.read().await;
    }
    // Each entry takes more than the nothing that was sent for it.
    for parameter in 0..20_000_u16 {
        let [low, high] = parameter.to_le_bytes();
        client.command(0x18, &[1, 0, 0, 0, low, high]).await;
    }
    // All of them have been taken when this is answered.
    assert_eq!(client.ask(0x0E, b"").await[0], 0);
    assert!(held(&server) <= MIB);
    assert_eq!(error_code(&execute(&mut client, 1).await), OUT_OF_MEMORY);
}

#[tokio::test]
async fn a_long_packet_without_room_is_passed_over() {
    let server = server(8 * MIB, |_| {});
    for (len, is_served) in [(2 * MIB, true), (12 * MIB, false), (40 * MIB, false)] {
        let mut client = client_of(&server).await;
        let mut text = b"length ".to_vec();
        text.resize(len, b'x');
        let payload = [&[3], text.as_slice()].concat();
        client.write_raw(&packets_of(&payload)).await;
        client.expect_sequence(payload.chunks((1 << 24) - 1).count() as u8);
        let answer = client.read().await;
        match is_served {
            true => assert_eq!(answer[0], 0),
            false => assert_eq!(error_code(&answer), OUT_OF_MEMORY, "{len}"),
        }
        assert_eq!(client.ask(0x03, b"insert").await[0], 0);
        assert_eq!(held(&server), 0);
        // Long data has no answer: the execution tells.
        prepare(&mut client, 1).await;
        client.command(0x18, &long_data(1, 0, 12 * MIB)).await;
        assert_eq!(error_code(&execute(&mut client, 1).await), OUT_OF_MEMORY);
        assert_eq!(client.ask(0x0E, b"").await[0], 0);
    }
    assert!(
        server
            .server()
            .shared
            .most_held_bytes
            .load(Ordering::SeqCst)
            <= 8 * MIB
    );
}

/// The payload of a statement in packets that are full but for the last.
fn packets_of(payload: &[u8]) -> Vec<u8> {
    let mut packets = Vec::new();
    for (number, part) in payload.chunks((1 << 24) - 1).enumerate() {
        let header = part.len() as u32 | (number as u32) << 24;
        packets.extend_from_slice(&header.to_le_bytes());
        packets.extend_from_slice(part);
    }
    packets
}

/// Reads a frame of that number, which may be compressed by zlib.
async fn read_frame(client: &mut Client, number: u8) -> Vec<u8> {
    let header = client.read_raw(7).await;
    assert_eq!(header[3], number, "the number of a frame");
    let length = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]) as usize;
    let frame = client.read_raw(length(&header)).await;
    match length(&header[4..]) {
        0 => frame,
        plain_len => {
            let mut plain = Vec::with_capacity(plain_len);
            let mut zlib = flate2::Decompress::new(true);
            zlib.decompress_vec(&frame, &mut plain, flate2::FlushDecompress::Finish)
                .unwrap();
            plain
        }
    }
}

/// The last packet of a payload finds no room beside those before it. Nothing more comes, and the
/// client is told.
#[tokio::test]
async fn a_last_part_without_room_is_answered() {
    // For ever.
    let server = server(40 * MIB, |settings| settings.read_timeout = Duration::MAX);
    let mut client = client_of(&server).await;
    client.write_raw(&packets_of(&vec![3; 17 * MIB])).await;
    client.expect_sequence(2);
    assert_eq!(error_code(&client.read().await), OUT_OF_MEMORY);
    assert_eq!(client.ask(0x03, b"insert").await[0], 0);
    assert_eq!(held(&server), 0);
}

/// Packets of a payload that finds no room are passed over inside of frames, too.
#[tokio::test]
async fn compressed_parts_without_room_are_passed_over() {
    let server = server(72 * MIB, |_| {});
    let mut client = Client::of(&server)
        .logged_in(OLD | Capabilities::COMPRESS)
        .await;
    let packets = packets_of(&vec![3; 40 * MIB]);
    let frames = packets.chunks(MIB).enumerate();
    for (number, frame) in frames.clone() {
        // Not compressed.
        let header = frame.len() as u32 | (number as u32) << 24;
        client.write_raw(&header.to_le_bytes()).await;
        client.write_raw(&[0, 0, 0]).await;
        client.write_raw(frame).await;
    }
    let answer = read_frame(&mut client, frames.count() as u8).await;
    assert_eq!(error_code(&answer[4..]), OUT_OF_MEMORY);
    let ended = client.close().await.expect("no panic");
    assert!(ended.is_ok(), "{ended:?}");
    assert_eq!(held(&server), 0);
}

#[tokio::test]
async fn a_compressed_packet_without_room_ends_its_connection() {
    let server = server(MIB, |_| {});
    let mut client = Client::of(&server)
        .logged_in(OLD | Capabilities::COMPRESS)
        .await;
    // A frame that is not compressed, of one packet.
    let len = 4 * MIB as u32;
    let mut frame = (len + 4).to_le_bytes();
    frame[3] = 0;
    client.write_raw(&frame).await;
    client.write_raw(&[0, 0, 0]).await;
    client.write_raw(&len.to_le_bytes()).await;
    client.write_raw(&vec![3; len as usize]).await;
    let ended = client.close().await.expect("no panic");
    match ended {
        Err(ConnectionError::Refused(error)) => assert_eq!(error.code, OUT_OF_MEMORY),
        other => panic!("{other:?}"),
    }
    assert_eq!(held(&server), 0);
}

/// A frame of a few bytes that says that it becomes millions: they are asked for before they are
/// unpacked.
#[tokio::test]
async fn what_a_frame_claims_is_granted_first() {
    let mut packed = Vec::with_capacity(MIB);
    let plain = [&(8_u32 << 20).to_le_bytes()[..], &vec![3; 8 * MIB]].concat();
    flate2::Compress::new(flate2::Compression::best(), true)
        .compress_vec(&plain, &mut packed, flate2::FlushCompress::Finish)
        .unwrap();
    for (memory_max, is_served) in [(MIB, false), (32 * MIB, true)] {
        let server = server(memory_max, |_| {});
        let mut client = Client::of(&server)
            .logged_in(OLD | Capabilities::COMPRESS)
            .await;
        client.write_raw(&(packed.len() as u32).to_le_bytes()).await;
        client
            .write_raw(&(plain.len() as u32).to_le_bytes()[..3])
            .await;
        client.write_raw(&packed).await;
        let answer = read_frame(&mut client, 1).await;
        let shared = &server.server().shared;
        let most = shared.most_held_bytes.load(Ordering::SeqCst);
        match is_served {
            // No statement, but it was read.
            true => {
                assert_eq!(error_code(&answer[4..]), 1064);
                assert!(most >= 8 * MIB, "{most}");
            }
            false => {
                assert_eq!(error_code(&answer[4..]), OUT_OF_MEMORY);
                assert_eq!(most, 0);
            }
        }
        drop(client.close().await.expect("no panic"));
        assert_eq!(held(&server), 0);
    }
}

/// A client that declares a packet of 16 MB and sends it in drops: it holds what it has sent, the
/// others are served, and when it pauses it is given up.
#[tokio::test]
async fn a_slow_packet_holds_what_has_come() {
    const DROP_BYTES: usize = 50_000;
    let server = server(8 * MIB, |settings| settings.read_timeout = Duration::MAX);
    let mut slow = Vec::new();
    for _ in 0..8 {
        let mut client = client_of(&server).await;
        client.write_raw(&[0xFE, 0xFF, 0xFF, 0]).await;
        slow.push(client);
    }
    let mut other = client_of(&server).await;
    for number in 1..=8 {
        for client in &mut slow {
            client.write_raw(&[3; DROP_BYTES]).await;
        }
        // Its pipe is as short as theirs: what they have sent is read with its commands.
        assert_eq!(other.ask(0x0E, b"").await[0], 0);
        assert_eq!(other.ask(0x03, b"insert").await[0], 0);
        // Twice of it, rounded up to the steps of grants.
        let most = 8 * (2 * number * DROP_BYTES + (256 << 10));
        assert!(held(&server) <= most, "{} of {most}", held(&server));
    }
    assert!(held(&server) > 0);
    drop(slow);
    assert_eq!(other.ask(0x0E, b"").await[0], 0);
}

/// Some bytes now and then are a pause too.
#[tokio::test]
async fn a_slow_packet_is_given_up() {
    let limit = Duration::from_millis(200);
    let server = server(usize::MAX, |settings| settings.read_timeout = limit);
    let mut other = client_of(&server).await;
    let mut slow = client_of(&server).await;
    slow.write_raw(&[0xFE, 0xFF, 0xFF, 0]).await;
    while !slow.ended.is_finished() {
        slow.write_raw(b"x").await;
        assert_eq!(other.ask(0x0E, b"").await[0], 0);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let ended = slow.ended.await.expect("no panic");
    assert!(
        matches!(ended, Err(ConnectionError::Transport(_))),
        "{ended:?}"
    );
    assert_eq!(held(&server), 0);
    assert_eq!(other.ask(0x03, b"insert").await[0], 0);
}

#[tokio::test]
async fn the_values_of_an_execution_are_counted() {
    let server = server(MIB, |_| {});
    let mut client = client_of(&server).await;
    let marks = ["?"; 60_000].join(",");
    let prepared = client.ask(0x16, format!("insert {marks}").as_bytes()).await;
    assert_eq!(prepared[0], 0);
    for _ in 0..60_000 {
        client.read().await;
    }
    // All of them NULL, without types.
    let nulls = [&[1, 0, 0, 0, 0, 1, 0, 0, 0][..], &[0xFF; 7500], &[0]].concat();
    assert_eq!(error_code(&client.ask(0x17, &nulls).await), OUT_OF_MEMORY);
    assert!(held(&server) <= MIB);
    // The statement is there for one who has more.
    assert_eq!(client.ask(0x1A, b"\x01\0\0\0").await[0], 0);
}

/// The packets of a COM_CHANGE_USER are as short as those of a login, and so is its own.
#[tokio::test]
async fn what_is_said_of_another_user_is_short() {
    let server = server(usize::MAX, |_| {});
    let mut client = client_of(&server).await;
    let long = [&vec![b'u'; MIB][..], b"\0\0\0\xFF\0mysql_native_password\0"].concat();
    assert_eq!(error_code(&client.ask(0x11, &long).await), 1835);
    assert_eq!(client.ask(0x0E, b"").await[0], 0);
    let user = b"native\0\0\0\xFF\0mysql_native_password\0";
    assert_eq!(client.ask(0x11, user).await[0], 0xFE);
    client.write(&vec![7; MIB]).await;
    // 1153.
    assert_eq!(client.read_raw(7).await[4..], [0xFF, 0x81, 0x04]);
    assert!(client.ended.await.expect("no panic").is_err());
    assert_eq!(held(&server), 0);
}

#[tokio::test]
async fn a_long_row_without_room_is_an_error() {
    let server = server(8 * MIB, |_| {});
    let mut client = client_of(&server).await;
    for (len, is_served) in [(MIB, true), (12 * MIB, false), (MIB, true)] {
        client.command(3, format!("big {len}").as_bytes()).await;
        client.read().await;
        client.read().await;
        let row = client.read().await;
        match is_served {
            true => {
                assert!(row.len() > len);
                client.read().await;
            }
            false => assert_eq!(error_code(&row), OUT_OF_MEMORY),
        }
        assert_eq!(client.ask(0x0E, b"").await[0], 0);
        assert_eq!(held(&server), 0);
    }
}

#[tokio::test]
async fn a_packet_that_stops_coming_ends_its_connection() {
    let limit = Duration::from_millis(200);
    let server = server(usize::MAX, |settings| settings.read_timeout = limit);
    let mut client = client_of(&server).await;
    client.write_raw(b"\x00\x10\x00\0\x03SELECT").await;
    let ended = client.ended.await.expect("no panic");
    assert!(
        matches!(ended, Err(ConnectionError::Transport(_))),
        "{ended:?}"
    );
}

#[tokio::test]
async fn clients_that_say_nothing_keep_nobody_out() {
    let server = server(usize::MAX, |settings| settings.max_pending_logins = 4);
    let mut silent = Vec::new();
    for _ in 0..20 {
        let mut client = Client::of(&server);
        assert_eq!(client.read().await[0], 10);
        silent.push(client);
        // Whoever means it gets through at any moment.
        let mut other = client_of(&server).await;
        assert_eq!(other.ask(0x0E, b"").await[0], 0);
    }
    for client in silent.drain(..16) {
        let ended = client.ended.await.expect("no panic");
        assert!(
            matches!(ended, Err(ConnectionError::Displaced)),
            "{ended:?}"
        );
    }
    // One that is left may still log in.
    let mut last = silent.pop().expect("four are left");
    last.write(&response(NEW)).await;
    assert_eq!(last.read().await[0], 0);
}
