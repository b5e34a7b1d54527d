//! A conversation with a client that may say anything, made of bytes.
//!
//! ```text
//!   input:  [what kind of client] [capabilities, 4 bytes] then
//!     raw          bytes, as they are
//!     response     the payload of a handshake response, and a COM_PING
//!     commands     [number, or 0 for the first of a command] [length] payload, ...
//!     compressed   the same after a login that asks for compression; what lies in the frames is
//!                  framed by the client, but for every eighth byte that says not to
//! ```

use mayfly_testkit::Random;
use mayfly_wire::Capabilities;

use super::client::{LEAST, Then, payloads, push_packet, response, speak};

/// What a command of few bytes may be answered with: all types, for each statement of a text.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// Bytes of an input that are used.
const INPUT_BYTES_MAX: usize = 8 << 10;

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
    let (ended, answers) = speak(&sent, Then::Closes);
    assert!(
        answers.len() < ANSWER_BYTES_MAX,
        "{} bytes of answers to {} bytes",
        answers.len(),
        sent.len()
    );
    // Others may have asked for compression.
    if kind == COMMANDS {
        payloads(&answers, &ended);
    }
    answers.len()
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

/// What clients say. Packets of a file go on counting.
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

/// An input that says what clients say.
pub fn plausible(random: &mut Random) -> Vec<u8> {
    let kind = match random.below(10) {
        0 => RAW,
        1 | 2 => RESPONSE,
        3 | 4 => COMPRESSED,
        _ => COMMANDS,
    };
    let mut input = vec![kind];
    let bits = match random.below(3) {
        0 => random.next_u64() as u32,
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
            for _ in 0..random.below(25) {
                let place = random.below(COMMAND_PACKETS.len() as u64) as usize;
                // What belongs together often stands together.
                let together = 1 + random.below(6) as usize;
                for (number, payload) in COMMAND_PACKETS.iter().skip(place).take(together) {
                    input.extend_from_slice(&[*number, payload.len() as u8]);
                    input.extend_from_slice(payload);
                }
            }
        }
    }
    input
}
