//! A conversation with a client that may say anything, made of bytes.
//!
//! Shared by the test `random` and the fuzz target of `fuzz/`: what one finds, the other repeats.
//!
//! ```text
//!   input:  [what kind of client] [capabilities, 4 bytes] then
//!     raw          bytes, as they are
//!     response     the payload of a handshake response, and a COM_PING
//!     commands     [number, or 0 for the first of a command] [length] payload, ...
//!     compressed   the same after a login that asks for compression; what lies in the frames is
//!                  framed by the client, but for every eighth byte that says not to
//! ```

use std::sync::LazyLock;
use std::time::Duration;

use mayfly_wire::{Capabilities, ConnectionError, Endpoint, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};

use crate::parrot::Parrot;

/// What one conversation may take. The server's own limits are shorter.
const PATIENCE: Duration = Duration::from_secs(8);
/// What a command of few bytes may be answered with: all types, for each statement of a text.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// Bytes of an input that are used.
const INPUT_BYTES_MAX: usize = 8 << 10;

/// What a client needs to be served at all.
const LEAST: Capabilities = Capabilities::PROTOCOL_41.with(Capabilities::SECURE_CONNECTION);

pub static ENDPOINT: LazyLock<Endpoint<Parrot>> = LazyLock::new(|| {
    let mut settings = Settings::new("8.4.0-Parrot");
    settings.local_infile = true;
    settings.max_packet_bytes = 64 << 10;
    settings.max_statements = 20;
    settings.connect_timeout = Duration::from_secs(3);
    settings.read_timeout = Duration::from_secs(2);
    settings.write_timeout = Duration::from_secs(2);
    Endpoint::new(Parrot::new(), settings)
});

thread_local! {
    static RUNTIME: Runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
}

/// Kinds of clients.
pub const RAW: u8 = 0;
pub const RESPONSE: u8 = 1;
pub const COMMANDS: u8 = 2;
pub const COMPRESSED: u8 = 3;
pub const KINDS: u8 = 4;

/// Speaks with the server as the input says, and gives the bytes of its answers.
///
/// # Panics
/// If the server does, takes too long, answers too much, or breaks its own frames.
pub fn converse(input: &[u8]) -> usize {
    let input = &input[..input.len().min(INPUT_BYTES_MAX)];
    let (kind, sent) = sent_by(input);
    let (ended, answers) = RUNTIME.with(|runtime| runtime.block_on(speak(&sent)));
    assert!(
        answers.len() < ANSWER_BYTES_MAX,
        "{} bytes of answers to {} bytes",
        answers.len(),
        sent.len()
    );
    // Others may have asked for compression.
    if kind == COMMANDS {
        check_frames(&answers, &ended);
    }
    answers.len()
}

async fn speak(sent: &[u8]) -> (Result<(), ConnectionError>, Vec<u8>) {
    let endpoint = &*ENDPOINT;
    let (ours, theirs) = tokio::io::duplex(4 << 10);
    let (mut read, mut write) = tokio::io::split(ours);
    let serve = endpoint.serve(theirs, endpoint.server().next_peer());
    let say = async {
        // The server may have gone.
        let _sent = write.write_all(sent).await;
        let _closed = write.shutdown().await;
    };
    let hear = async {
        let mut answers = Vec::new();
        let _read = read.read_to_end(&mut answers).await;
        answers
    };
    let spoken = async { tokio::join!(serve, say, hear) };
    let ended = tokio::time::timeout(PATIENCE, spoken).await;
    let (how, (), answers) = ended.expect("the server came to an end by itself");
    (how, answers)
}

/// Whatever is sent, the server sends whole packets, but for the last to a client that was gone.
fn check_frames(mut answers: &[u8], ended: &Result<(), ConnectionError>) {
    let was_gone = matches!(ended, Err(ConnectionError::Transport(_)));
    while let Some((header, rest)) = answers.split_first_chunk::<4>() {
        let len = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        if was_gone && len > rest.len() {
            return;
        }
        assert!(
            len <= rest.len(),
            "a packet of {len} bytes of {}: {ended:?}",
            rest.len()
        );
        answers = &rest[len..];
    }
    assert!(answers.is_empty() || was_gone, "the beginning of a header");
}

/// What a client says, by its input.
fn sent_by(input: &[u8]) -> (u8, Vec<u8>) {
    let Some((kind, rest)) = input.split_first() else {
        return (RAW, Vec::new());
    };
    let kind = kind % KINDS;
    if kind == RAW {
        return (kind, rest.to_vec());
    }
    let mut sent = Vec::new();
    if kind == RESPONSE {
        push_packet(&mut sent, 1, rest);
        push_packet(&mut sent, 0, b"\x0E");
        return (kind, sent);
    }
    let (bits, mut rest) = match rest.split_first_chunk::<4>() {
        Some((bits, rest)) => (u32::from_le_bytes(*bits), rest),
        None => (0, rest),
    };
    let not_now = Capabilities::SSL
        .with(Capabilities::COMPRESS)
        .with(Capabilities::ZSTD_COMPRESSION_ALGORITHM);
    let mut capabilities = Capabilities::from_bits(bits).without(not_now).with(LEAST);
    if kind == COMPRESSED {
        capabilities = capabilities.with(match bits & 1 {
            0 => Capabilities::COMPRESS,
            _ => Capabilities::ZSTD_COMPRESSION_ALGORITHM,
        });
    }
    push_packet(&mut sent, 1, &response(capabilities));
    while let Some(([number, len], more)) = rest.split_first_chunk::<2>() {
        let (payload, more) = more.split_at(more.len().min(usize::from(*len)));
        rest = more;
        if kind == COMMANDS {
            push_packet(&mut sent, *number, payload);
            continue;
        }
        let mut packet = Vec::new();
        push_packet(&mut packet, 0, payload);
        if number % 8 == 7 {
            packet = payload.to_vec();
        }
        let plain_len = if number % 8 > 4 {
            packet.len() as u32
        } else {
            0
        };
        push_packet(&mut sent, number / 128, &[]);
        let header = sent.len() - 4;
        sent[header..header + 3].copy_from_slice(&(packet.len() as u32).to_le_bytes()[..3]);
        sent.extend_from_slice(&plain_len.to_le_bytes()[..3]);
        sent.extend_from_slice(&packet);
    }
    (kind, sent)
}

pub fn response(capabilities: Capabilities) -> Vec<u8> {
    let mut packet = capabilities.bits().to_le_bytes().to_vec();
    packet.extend_from_slice(&(1_u32 << 24).to_le_bytes());
    packet.push(8);
    packet.extend_from_slice(&[0; 23]);
    packet.extend_from_slice(b"root\0");
    packet.push(0);
    if capabilities.contains(Capabilities::CONNECT_WITH_DB) {
        packet.extend_from_slice(b"test\0");
    }
    if capabilities.contains(Capabilities::PLUGIN_AUTH) {
        packet.extend_from_slice(b"mysql_native_password\0");
    }
    if capabilities.contains(Capabilities::CONNECT_ATTRS) {
        packet.extend_from_slice(b"\x04\x01a\x01b");
    }
    if capabilities.contains(Capabilities::ZSTD_COMPRESSION_ALGORITHM) {
        packet.push(3);
    }
    packet
}

fn push_packet(out: &mut Vec<u8>, number: u8, payload: &[u8]) {
    let header = payload.len() as u32 | u32::from(number) << 24;
    out.extend_from_slice(&header.to_le_bytes());
    out.extend_from_slice(payload);
}

/// Numbers that look random and are not: splitmix64.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// What clients say, and with `mutated` what they nearly say. Packets of a file go on counting.
#[rustfmt::skip]
const COMMAND_PACKETS: &[(u8, &[u8])] = &[
    (0, b"\x01"), (0, b"\x02other"), (0, b"\x03r"), (0, b"\x03done;r;e"), (0, b"\x03l"), (0, b"\x03u"),
    (0, b"\x03a \xC3\xBC"), (0, b"\x03e\xE6\xBC\xA2"), (0, b"\x03file"), (2, b"piece"), (3, b""),
    (0, b"\x03gone"), (2, b"piece"), (3, b"piece"), (4, b""), (0, b"\x03file"), (2, b""), (0, b"\x04table\0%pattern"), (0, b"\x09"),
    (0, b"\x0C\x07\0\0\0"), (0, b"\x0E"), (0, b"\x11root\0\0db\0\x08\0mysql_native_password\0"),
    (2, b""), (0, b"\x11root\0\0db\0\x08\0mysql_native_password\0\x04\x01a\x01b"), (2, b""),
    (0, b"\x11sha2\0\0db\0\xFF\0caching_sha2_password\0\0"),
    (2, b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), (4, b"\x02"), (6, b"secret\0"),
    (0, b"\x16r"), (0, b"\x16echo ?, ?, ?"), (0, b"\x17\x01\0\0\0\0\x01\0\0\0"),
    (0, b"\x17\x02\0\0\0\0\x01\0\0\0\0\x01\xFD\0\x0C\0\x08\x80\x02ab\x04\xE8\x07\x01\x01\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"),
    (0, b"\x17\x02\0\0\0\0\x01\0\0\0\x07\0"), (0, b"\x17\x01\0\0\0\x01\x01\0\0\0"),
    (0, b"\x1C\x01\0\0\0\x07\0\0\0"), (0, b"\x1C\x01\0\0\0\xFF\xFF\xFF\xFF"),
    (0, b"\x18\x02\0\0\0\x01\0long data"), (0, b"\x18\x01\0\0\0\0\0data"), (0, b"\x1A\x01\0\0\0"),
    (0, b"\x19\x02\0\0\0"), (0, b"\x1B\0\0"), (0, b"\x1B\x01\0"), (0, b"\x1F"), (0, b"\x08"), (0, b""),
];

/// An input that says what clients say, more or less.
pub fn plausible(seed: u64) -> Vec<u8> {
    let mut numbers = Numbers(seed);
    let kind = match numbers.below(10) {
        0 => RAW,
        1 | 2 => RESPONSE,
        3 | 4 => COMPRESSED,
        _ => COMMANDS,
    };
    let mut input = vec![kind];
    let bits = match numbers.below(3) {
        0 => numbers.next() as u32,
        1 => u32::MAX,
        _ => 0,
    };
    match kind {
        RAW => {
            let mut sent = Vec::new();
            push_packet(&mut sent, 1, &response(Capabilities::from_bits(bits)));
            push_packet(&mut sent, 0, b"\x03r");
            input.extend_from_slice(&sent);
        }
        RESPONSE => input.extend_from_slice(&response(Capabilities::from_bits(bits))),
        _ => {
            input.extend_from_slice(&bits.to_le_bytes());
            for _ in 0..numbers.below(25) {
                let place = numbers.below(COMMAND_PACKETS.len());
                // What belongs together often stands together.
                let together = 1 + numbers.below(6);
                for (number, payload) in COMMAND_PACKETS.iter().skip(place).take(together) {
                    input.extend_from_slice(&[*number, payload.len() as u8]);
                    input.extend_from_slice(payload);
                }
            }
        }
    }
    for _ in 0..numbers.below(4) {
        mutate(&mut input, &mut numbers);
    }
    input
}

fn mutate(input: &mut Vec<u8>, numbers: &mut Numbers) {
    let at = numbers.below(input.len());
    match numbers.below(4) {
        0 if at > 0 => input.truncate(at),
        1 => input.insert(at, numbers.next() as u8),
        2 if input.len() > 1 => drop(input.remove(at)),
        _ => input[at] = numbers.next() as u8,
    }
}
