//! What the server must know of its client's statements, and so what it must answer.

use mayfly_wire::Parameter;

use super::super::client::{PACKET_BYTES_MAX, STATEMENTS_MAX};
use super::super::parrot::{CURSOR_ROWS, PARAMETERS_MAX};
use super::values::{Input, TYPES, counted, counted_bytes, push_value, spelled};
use crate::all_types;

/// What must come.
pub enum Answer {
    Nothing,
    Ok,
    Error(u16),
    Prepared {
        id: u32,
        parameters: u16,
        columns: u16,
    },
    /// One row of the texts of all parameters.
    Echo(Vec<Vec<u8>>),
    /// So many columns, and an error in place of the row.
    EchoTooLong(usize),
    /// Rows of all types.
    Rows(usize),
    Cursor,
    Fetched {
        rows: usize,
        is_over: bool,
    },
}

/// What the server knows of its client.
#[derive(Default)]
pub struct Model {
    last_id: u32,
    statements: Vec<Statement>,
}

struct Statement {
    id: u32,
    has_rows: bool,
    parameter_count: u16,
    types: Vec<[u8; 2]>,
    long_data: Vec<(u16, Vec<u8>)>,
    /// The error that long data had first.
    long_data_error: Option<u16>,
    /// Rows that are left.
    cursor: Option<usize>,
}

impl Statement {
    fn forget_long_data(&mut self) {
        self.long_data.clear();
        self.long_data_error = None;
    }
}

impl Model {
    /// The next command, and its answer.
    pub fn step(&mut self, input: &mut Input<'_>) -> (Vec<u8>, Answer) {
        match input.byte() % 8 {
            0 => self.prepare(input),
            1..=3 => self.execute(input),
            4 => self.send_long_data(input),
            5 => self.fetch(input),
            6 => self.reset(input),
            _ => self.close(input),
        }
    }

    fn prepare(&mut self, input: &mut Input<'_>) -> (Vec<u8>, Answer) {
        let kind = input.byte();
        let has_rows = kind & 1 != 0;
        let marks = match kind >> 1 {
            0..=39 => 0,
            40..=119 => usize::from(kind >> 1) % 13,
            _ => PARAMETERS_MAX + 1,
        };
        let mut packet = vec![0x16, if has_rows { b'r' } else { b'd' }];
        packet.resize(packet.len() + marks, b'?');
        if self.statements.len() == STATEMENTS_MAX {
            return (packet, Answer::Error(1461));
        }
        self.last_id += 1;
        let statement = Statement {
            id: self.last_id,
            has_rows,
            parameter_count: marks.min(PARAMETERS_MAX) as u16,
            types: Vec::new(),
            long_data: Vec::new(),
            long_data_error: None,
            cursor: None,
        };
        let columns = if has_rows {
            all_types::all().0.len()
        } else {
            0
        };
        let answer = Answer::Prepared {
            id: statement.id,
            parameters: statement.parameter_count,
            columns: columns as u16,
        };
        self.statements.push(statement);
        (packet, answer)
    }

    /// A number, mostly of a statement that there is.
    fn place(&self, input: &mut Input<'_>) -> (u32, Option<usize>) {
        let byte = usize::from(input.byte());
        match self.statements.get(byte % (self.statements.len() + 1)) {
            Some(statement) => {
                let place = self.statements.iter().position(|at| at.id == statement.id);
                (statement.id, place)
            }
            None => (self.last_id + 1, None),
        }
    }

    fn execute(&mut self, input: &mut Input<'_>) -> (Vec<u8>, Answer) {
        let (id, place) = self.place(input);
        let flags = input.byte();
        let wants_cursor = flags & 1 != 0;
        let mut packet = vec![0x17];
        packet.extend_from_slice(&id.to_le_bytes());
        packet.push(u8::from(wants_cursor));
        packet.extend_from_slice(&1_u32.to_le_bytes());
        let Some(statement) = place.map(|place| &mut self.statements[place]) else {
            return (packet, Answer::Error(1243));
        };
        let answer = statement.execute(wants_cursor, flags & 2 != 0, input, &mut packet);
        statement.forget_long_data();
        (packet, answer)
    }

    fn send_long_data(&mut self, input: &mut Input<'_>) -> (Vec<u8>, Answer) {
        let (id, place) = self.place(input);
        let count = place.map_or(0, |place| self.statements[place].parameter_count);
        // Mostly one that there is.
        let parameter = u16::from(input.byte()) % (count + count / 8 + 1);
        let [byte, len] = input.array();
        let data = vec![byte; usize::from(len) * usize::from(len) / 2];
        let mut packet = vec![0x18];
        packet.extend_from_slice(&id.to_le_bytes());
        packet.extend_from_slice(&parameter.to_le_bytes());
        packet.extend_from_slice(&data);
        if let Some(statement) = place.map(|place| &mut self.statements[place]) {
            let held: usize = statement.long_data.iter().map(|(_, data)| data.len()).sum();
            let before = statement.long_data.iter_mut();
            let mut before = before.filter(|(of, _)| *of == parameter);
            let error = if parameter >= count {
                Some(1210)
            } else if held + data.len() > PACKET_BYTES_MAX {
                Some(1105)
            } else {
                None
            };
            if statement.long_data_error.is_some() || error.is_some() {
                // What was there is let go, and nothing more is kept.
                statement.long_data_error = statement.long_data_error.or(error);
            } else if let Some((_, so_far)) = before.next() {
                so_far.extend_from_slice(&data);
            } else {
                statement.long_data.push((parameter, data));
            }
        }
        (packet, Answer::Nothing)
    }

    fn fetch(&mut self, input: &mut Input<'_>) -> (Vec<u8>, Answer) {
        let (id, place) = self.place(input);
        let wanted = match input.byte() {
            byte @ 0..=199 => u32::from(byte % 50),
            _ => u32::MAX,
        };
        let mut packet = vec![0x1C];
        packet.extend_from_slice(&id.to_le_bytes());
        packet.extend_from_slice(&wanted.to_le_bytes());
        let Some(statement) = place.map(|place| &mut self.statements[place]) else {
            return (packet, Answer::Error(1243));
        };
        let Some(left) = statement.cursor else {
            return (packet, Answer::Error(1421));
        };
        let rows = left.min(wanted as usize);
        let is_over = (wanted as usize) > left;
        statement.cursor = (!is_over).then_some(left - rows);
        (packet, Answer::Fetched { rows, is_over })
    }

    fn reset(&mut self, input: &mut Input<'_>) -> (Vec<u8>, Answer) {
        let (id, place) = self.place(input);
        let packet = [&[0x1A][..], &id.to_le_bytes()].concat();
        let Some(statement) = place.map(|place| &mut self.statements[place]) else {
            return (packet, Answer::Error(1243));
        };
        statement.forget_long_data();
        statement.cursor = None;
        (packet, Answer::Ok)
    }

    fn close(&mut self, input: &mut Input<'_>) -> (Vec<u8>, Answer) {
        let (id, place) = self.place(input);
        if let Some(place) = place {
            self.statements.remove(place);
        }
        let packet = [&[0x19][..], &id.to_le_bytes()].concat();
        (packet, Answer::Nothing)
    }
}

impl Statement {
    fn execute(
        &mut self,
        wants_cursor: bool,
        declares: bool,
        input: &mut Input<'_>,
        packet: &mut Vec<u8>,
    ) -> Answer {
        let values = self.push_values(declares, input, packet);
        self.cursor = None;
        if let Some(error) = self.long_data_error {
            return Answer::Error(error);
        }
        let Some(values) = values else {
            return Answer::Error(1210);
        };
        if self.has_rows && wants_cursor {
            self.cursor = Some(CURSOR_ROWS);
            return Answer::Cursor;
        }
        if values.is_empty() {
            return match self.has_rows {
                true => Answer::Rows(all_types::all().1.num_rows() + 1),
                false => Answer::Ok,
            };
        }
        let row_bytes: usize = values.iter().map(|value| counted_bytes(value.len())).sum();
        match 1 + (values.len() + 2).div_ceil(8) + row_bytes > PACKET_BYTES_MAX {
            true => Answer::EchoTooLong(values.len()),
            false => Answer::Echo(values),
        }
    }

    /// Appends NULL bits, types and values, and gives the values as the server spells them; `None`
    /// if they cannot be read. The server takes over types even if a value behind them is missing.
    fn push_values(
        &mut self,
        declares: bool,
        input: &mut Input<'_>,
        packet: &mut Vec<u8>,
    ) -> Option<Vec<Vec<u8>>> {
        let count = usize::from(self.parameter_count);
        if count == 0 {
            return Some(Vec::new());
        }
        let nulls: Vec<bool> = (0..count).map(|_| input.byte() & 7 == 7).collect();
        for bits in nulls.chunks(8) {
            let bits = bits.iter().enumerate();
            packet.push(bits.fold(0, |byte, (at, is_null)| byte | u8::from(*is_null) << at));
        }
        packet.push(u8::from(declares));
        // Long data that are refused end the execution before its packet is read.
        let is_read = self.long_data_error.is_none();
        let mut types = self.types.clone();
        if declares {
            types = (0..count)
                .map(|_| {
                    let byte = input.byte();
                    [TYPES[usize::from(byte) % TYPES.len()], byte & 0x80]
                })
                .collect();
            types.iter().for_each(|each| packet.extend_from_slice(each));
            if is_read {
                self.types.clone_from(&types);
            }
        }
        let mut values = Vec::new();
        for (index, is_null) in nulls.into_iter().enumerate() {
            let sent_ahead = self.long_data.iter();
            let mut sent_ahead = sent_ahead.filter(|(of, _)| usize::from(*of) == index);
            let value = match (types.get(index), sent_ahead.next()) {
                (Some(declared), Some((_, data))) => Some(spelled(counted(declared[0], data))),
                (_, None) if is_null => Some(spelled(Parameter::Null)),
                (Some(declared), None) => push_value(*declared, input, packet),
                (None, _) => None,
            };
            values.push(value?);
        }
        Some(values)
    }
}
