//! The answers of the server, read as a client reads them.

use super::Checked;
use super::model::Answer;
use crate::all_types;

const CURSOR_EXISTS: u16 = 0x40;
const LAST_ROW_SENT: u16 = 0x80;

/// The answers of the server, compared with those of the model.
pub struct Answers<'a> {
    pub packets: &'a [(u8, &'a [u8])],
    /// How the server ended.
    pub ended: String,
    pub deprecates_eof: bool,
    pub checked: Checked,
}

impl<'a> Answers<'a> {
    fn next(&mut self) -> &'a [u8] {
        let (first, rest) = self.packets.split_first().unwrap_or_else(|| {
            panic!("no answer any more: {}", self.ended);
        });
        self.packets = rest;
        first.1
    }

    /// Takes the packets of an answer.
    pub fn expect(&mut self, answer: &Answer) {
        let checked = &mut self.checked;
        match answer {
            Answer::Nothing => {}
            Answer::Ok => {
                checked.reset += 1;
                assert_eq!(self.next()[0], 0);
            }
            Answer::Error(code) => {
                checked.refused += 1;
                self.expect_error(*code);
            }
            Answer::Prepared {
                id,
                parameters,
                columns,
            } => {
                checked.prepared += 1;
                let mut wanted = vec![0];
                wanted.extend_from_slice(&id.to_le_bytes());
                wanted.extend_from_slice(&columns.to_le_bytes());
                wanted.extend_from_slice(&parameters.to_le_bytes());
                assert_eq!(self.next()[..9], wanted);
                for count in [parameters, columns] {
                    self.skip_definitions(usize::from(*count));
                }
            }
            Answer::Echo(values) => {
                checked.executed += 1;
                checked.parameters += values.len() as u64;
                self.expect_count(values.len());
                self.skip_definitions(values.len());
                self.expect_row(values);
                self.expect_end();
            }
            Answer::EchoTooLong(columns) => {
                checked.refused += 1;
                self.expect_count(*columns);
                self.skip_definitions(*columns);
                self.expect_error(1153);
            }
            Answer::Rows(count) => {
                checked.executed += 1;
                let columns = all_types::all().0.len();
                self.expect_count(columns);
                self.skip_definitions(columns);
                for _ in 0..*count {
                    assert_eq!(self.next()[0], 0);
                }
                self.expect_end();
            }
            Answer::Cursor => {
                checked.cursors += 1;
                let columns = all_types::all().0.len();
                self.expect_count(columns);
                for _ in 0..columns {
                    self.next();
                }
                assert_ne!(self.expect_end() & CURSOR_EXISTS, 0);
            }
            Answer::Fetched { rows, is_over } => {
                checked.fetched += 1;
                for _ in 0..*rows {
                    assert_eq!(self.next()[0], 0);
                }
                let status = self.expect_end();
                assert_eq!(status & LAST_ROW_SENT != 0, *is_over);
                assert_eq!(status & CURSOR_EXISTS != 0, !is_over);
            }
        }
    }

    fn expect_error(&mut self, code: u16) {
        let packet = self.next();
        assert_eq!(packet[0], 0xFF, "not error {code}: {packet:?}");
        assert_eq!(u16::from_le_bytes([packet[1], packet[2]]), code);
    }

    fn expect_count(&mut self, count: usize) {
        let packet = self.next();
        match u8::try_from(count) {
            Ok(count @ 0..=250) => assert_eq!(packet, [count]),
            _ => assert_eq!(packet[1..], (count as u16).to_le_bytes()),
        }
    }

    fn skip_definitions(&mut self, count: usize) {
        for _ in 0..count {
            assert_eq!(self.next()[..4], *b"\x03def");
        }
        if count > 0 && !self.deprecates_eof {
            assert_eq!(self.next()[0], 0xFE);
        }
    }

    /// A row of texts in the binary protocol.
    fn expect_row(&mut self, values: &[Vec<u8>]) {
        let mut wanted = vec![0; 1 + (values.len() + 2).div_ceil(8)];
        for value in values {
            match value.len() {
                0..=250 => wanted.push(value.len() as u8),
                len => {
                    wanted.push(0xFC);
                    wanted.extend_from_slice(&(len as u16).to_le_bytes());
                }
            }
            wanted.extend_from_slice(value);
        }
        let row = self.next();
        assert!(row == wanted, "{row:?}\n{wanted:?}");
    }

    /// The end of rows; gives the status.
    fn expect_end(&mut self) -> u16 {
        let packet = self.next();
        assert_eq!(packet[0], 0xFE);
        // Behind the count of warnings, or the numbers of rows and of the last insert, both zero.
        u16::from_le_bytes([packet[3], packet[4]])
    }
}
