//! Commands on prepared statements, checked against a model.
//!
//! An input is a program: each step is one command. The model knows which statements there are,
//! their parameter types, the long data that wait for them and their cursors, so it says of each
//! answer what must stand in it. The server's statements give their parameters back as texts, so
//! the values that arrived are compared with the values that were sent.
//!
//! ```text
//!   input:  [flags] then steps
//!     flags    bit 0: the client deprecates EOF; bit 1: packets are spoiled, and only their
//!              frames are checked
//!     step     [what % 8] and its arguments, read as far as there are bytes; then zeros
//! ```

mod answers;
mod model;
mod values;

use mayfly_testkit::Random;
use mayfly_wire::Capabilities;

use super::client::{LEAST, Then, payloads, push_packet, response, speak};
use answers::Answers;
use model::Model;
use values::Input;

/// Bytes of an input that are used.
const INPUT_BYTES_MAX: usize = 8 << 10;
/// Bytes that a client may send: what long data repeat is counted.
const SENT_BYTES_MAX: usize = 512 << 10;
const DEPRECATES_EOF: u8 = 1;
const IS_SPOILED: u8 = 2;

/// How many answers were compared with the model, by kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checked {
    pub prepared: u64,
    pub executed: u64,
    pub parameters: u64,
    pub cursors: u64,
    pub fetched: u64,
    pub reset: u64,
    pub refused: u64,
    pub spoiled: u64,
}

impl Checked {
    pub fn add(&mut self, other: Checked) {
        self.prepared += other.prepared;
        self.executed += other.executed;
        self.parameters += other.parameters;
        self.cursors += other.cursors;
        self.fetched += other.fetched;
        self.reset += other.reset;
        self.refused += other.refused;
        self.spoiled += other.spoiled;
    }

    /// That everything was reached.
    ///
    /// # Panics
    /// If something was not.
    pub fn expect_more_than(&self, least: u64) {
        let all = [
            self.prepared,
            self.executed,
            self.parameters,
            self.cursors,
            self.fetched,
            self.reset,
            self.refused,
            self.spoiled,
        ];
        assert!(all.iter().all(|count| *count > least), "{self:?}, {least}");
    }
}

/// Runs a program.
///
/// # Panics
/// If an answer is not that of the model.
pub fn check(input: &[u8]) -> Checked {
    let mut program = Input(&input[..input.len().min(INPUT_BYTES_MAX)]);
    let flags = program.byte();
    let is_spoiled = flags & IS_SPOILED != 0;
    let mut capabilities = LEAST;
    if flags & DEPRECATES_EOF != 0 {
        capabilities = capabilities.with(Capabilities::DEPRECATE_EOF);
    }
    let mut sent = Vec::new();
    push_packet(&mut sent, 1, &response(capabilities));
    let mut model = Model::default();
    let mut expected = Vec::new();
    while !program.is_empty() && sent.len() < SENT_BYTES_MAX {
        let (mut packet, answer) = model.step(&mut program);
        if is_spoiled {
            let at = usize::from(program.byte()) % packet.len();
            packet[at] ^= program.byte();
        }
        push_packet(&mut sent, 0, &packet);
        expected.push(answer);
    }
    push_packet(&mut sent, 0, b"\x01");
    let (ended, answers) = match is_spoiled {
        true => speak(&sent, Then::Closes),
        false => speak(&sent, Then::Waits),
    };
    let packets = payloads(&answers, &ended);
    if is_spoiled {
        return Checked {
            spoiled: expected.len() as u64,
            ..Checked::default()
        };
    }
    // The greeting, and the OK of the login.
    let mut packets = Answers {
        packets: packets.get(2..).expect("a login"),
        ended: format!("{ended:?}"),
        deprecates_eof: flags & DEPRECATES_EOF != 0,
        checked: Checked::default(),
    };
    for answer in &expected {
        packets.expect(answer);
    }
    assert!(packets.packets.is_empty(), "more than was asked for");
    assert!(ended.is_ok(), "{ended:?}");
    packets.checked
}

/// A program that does something.
pub fn plausible(random: &mut Random) -> Vec<u8> {
    let mut input = vec![random.below(8) as u8 & 5 | u8::from(random.chance(0.1)) << 1];
    for _ in 0..1 + random.below(3) {
        input.extend_from_slice(&[0, random.next_u64() as u8]);
    }
    for _ in 0..random.below(40) {
        // What, and which statement.
        input.extend_from_slice(&[random.next_u64() as u8, random.next_u64() as u8]);
        for _ in 0..random.below(60) {
            input.push(random.next_u64() as u8);
        }
    }
    input
}
