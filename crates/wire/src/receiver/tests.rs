//! Packets that come slowly, and frames that are long.

use tokio::io::AsyncWriteExt;

use super::*;

#[tokio::test]
async fn a_packet_that_has_begun_is_told_from_silence() {
    let (mut ours, theirs) = tokio::io::duplex(64);
    let receiver = Arc::new(Mutex::new(Receiver::new(Box::new(theirs), 1 << 20)));
    for part in [&b"\x03\0"[..], b"\0\0", b"ab"] {
        ours.write_all(part).await.expect("there is room");
        assert!(beginning_of_packet(&receiver).await.is_none());
    }
    ours.write_all(b"c").await.expect("there is room");
    match rest_of_packet(&receiver, Duration::from_secs(60)).await {
        Ok(Some(packet)) => assert_eq!(packet, &b"abc"[..]),
        _ => panic!("the packet is whole"),
    }
}

#[tokio::test]
async fn a_read_that_takes_too_long_is_an_error() {
    let (mut ours, theirs) = tokio::io::duplex(64);
    let receiver = Arc::new(Mutex::new(Receiver::new(Box::new(theirs), 1 << 20)));
    ours.write_all(b"\x03\0\0\0a").await.expect("there is room");
    let received = rest_of_packet(&receiver, Duration::from_millis(20)).await;
    let Err(ReceiveError::Transport(error)) = received else {
        panic!("the packet is not whole");
    };
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
}

/// Polls once.
async fn polled(receiver: &SharedReceiver) -> Option<Result<Option<Bytes>, ReceiveError>> {
    // With a fresh budget of the runtime, without which a pipe says that nothing has come.
    tokio::task::yield_now().await;
    poll_fn(|context| {
        Poll::Ready(match lock(receiver).poll_packet(context) {
            Poll::Ready(packet) => Some(packet),
            Poll::Pending => None,
        })
    })
    .await
}

/// A client declares the longest packet and sends it in drops: the room for it grows with what
/// has come.
#[tokio::test]
async fn a_slow_packet_holds_what_has_come_of_it() {
    const LEN: usize = PAYLOAD_BYTES_MAX - 1;
    for drop_bytes in [1000, 4096, 100_000] {
        let (mut ours, theirs) = tokio::io::duplex(LEN + HEADER_BYTES);
        let receiver = Arc::new(Mutex::new(Receiver::new(Box::new(theirs), LEN)));
        ours.write_all(&[0xFE, 0xFF, 0xFF, 0]).await.expect("room");
        assert!(polled(&receiver).await.is_none());
        assert!(lock(&receiver).held_bytes() <= FREE_BYTES);
        let mut came = 0;
        while came < LEN {
            let drop = vec![b'x'; drop_bytes.min(LEN - came)];
            ours.write_all(&drop).await.expect("room");
            came += drop.len();
            let packet = polled(&receiver).await;
            if came == LEN {
                let packet = packet.expect("it is whole").expect("no error");
                assert_eq!(packet.map(|packet| packet.len()), Some(LEN));
                break;
            }
            assert!(packet.is_none());
            let held = lock(&receiver).held_bytes();
            let bound = (2 * (came + HEADER_BYTES + READ_BYTES)).max(FREE_BYTES);
            assert!(held <= bound.min(LEN + HEADER_BYTES), "{held} for {came}");
        }
        // Given back with the next look for a packet.
        assert!(polled(&receiver).await.is_none());
        assert!(lock(&receiver).held_bytes() <= KEPT_BYTES);
        assert_eq!(lock(&receiver).share.bytes(), 0);
    }
}

/// Progress is counted and not timed: with a limit of nothing each look is a pause.
#[tokio::test]
async fn a_packet_that_comes_in_drops_is_given_up() {
    let (mut ours, theirs) = tokio::io::duplex(64 << 10);
    let receiver = Arc::new(Mutex::new(Receiver::new(Box::new(theirs), 1 << 20)));
    ours.write_all(&[0xFF, 0xFF, 0x0F, 0]).await.expect("room");
    let enough = usize::try_from(PROGRESS_BYTES).expect("it is short");
    for came in [enough - 1, 1] {
        ours.write_all(&vec![0; came]).await.expect("room");
        let before = lock(&receiver).total_bytes();
        let received = rest_of_packet(&receiver, Duration::ZERO).await;
        assert!(
            matches!(&received, Err(ReceiveError::Transport(error))
                if error.kind() == io::ErrorKind::TimedOut),
            "{came} bytes: {received:?}"
        );
        assert!(lock(&receiver).total_bytes() > before, "it has looked");
    }
}

/// A frame that is not compressed.
fn frame(sequence: u8, packets: &[u8]) -> Vec<u8> {
    let header = crate::sender::header(packets.len(), sequence);
    [&header[..], &[0; 3], packets].concat()
}

fn compressed(stream: tokio::io::DuplexStream) -> SharedReceiver {
    let mut receiver = Receiver::new(Box::new(stream), 16 << 20);
    let method = crate::compression::Method::Zlib;
    receiver.decompress(Decompressor::new(method).expect("a decompressor"));
    Arc::new(Mutex::new(receiver))
}

#[tokio::test]
async fn a_long_frame_leaves_no_buffer_behind() {
    let long = [&[0, 0, 0x30, 0][..], &vec![b'x'; 0x30_0000]].concat();
    // One packet, pieces of one, and many packets that are short.
    let short = [1, 0, 0, 0, b'y'].repeat(200_000);
    let cases = [
        (vec![&long[..]], 1),
        (long.chunks(100_000).collect(), 1),
        (vec![&short[..]], 200_000),
    ];
    for (frames, packets) in cases {
        let (mut ours, theirs) = tokio::io::duplex(4 << 20);
        let receiver = compressed(theirs);
        for (sequence, packets) in frames.iter().enumerate() {
            let frame = frame(sequence as u8, packets);
            ours.write_all(&frame).await.expect("room");
        }
        for number in 0..packets {
            let packet = polled(&receiver).await.expect("it has come");
            assert!(packet.expect("no error").is_some(), "{number}");
        }
        assert!(polled(&receiver).await.is_none());
        let receiver = lock(&receiver);
        assert!(receiver.raw_room_bytes <= KEPT_BYTES);
        assert!(receiver.plain_room_bytes <= KEPT_BYTES);
        assert!(receiver.raw.capacity() <= KEPT_BYTES);
        assert_eq!(receiver.share.bytes(), 0);
    }
}
