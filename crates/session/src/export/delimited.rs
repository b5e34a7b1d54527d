//! The text of SELECT ... INTO OUTFILE as MySQL writes it: what LOAD DATA reads.
//!
//! Owns the spelling of rows; never knows a file. What it writes, LOAD DATA with the same FIELDS
//! and LINES reads back.
//!
//! **Source**: `select_export::prepare` and `send_data` of MariaDB 11.8, `sql_class.cc`: which
//! bytes are escaped depends on whether the field is enclosed, and on whether its quotes or its end
//! could be taken for an escape or a number. An end that could be is escaped in no field without
//! quotes: such a file has a warning, and cannot be read back.

use std::borrow::Cow;

use arrow::record_batch::RecordBatch;
use mayfly_sql::statement::FileFormat;
use mayfly_types::{CharacterSet, ColumnType};

use crate::column_info::ColumnInfo;
use crate::render;

/// Bytes that mean something behind an escape. The last, here and there, is the end of MariaDB's
/// list, which it finds in the list too.
const ESCAPES: &[u8] = b"ntrb0ZN\0";
/// Bytes of numbers.
const NUMBERS: &[u8] = b".0123456789e+-\0";

/// How rows are written.
pub(super) struct DelimitedRows {
    columns: Vec<Column>,
    /// Texts are written in this set.
    set: CharacterSet,
    field_end: Vec<u8>,
    line_start: Vec<u8>,
    line_end: Vec<u8>,
    enclosure: Option<u8>,
    escape: Option<u8>,
    /// What ends a field: its quote, or the first byte of its terminator.
    separator: Option<u8>,
    /// Whether the end of a field without quotes cannot be told from what stands in it.
    is_end_ambiguous: bool,
}

struct Column {
    column_type: ColumnType,
    is_text: bool,
    is_enclosed: bool,
    is_escaped: bool,
}

impl DelimitedRows {
    pub(super) fn new(
        format: &FileFormat,
        set: CharacterSet,
        columns: Vec<ColumnInfo>,
    ) -> DelimitedRows {
        let byte = |c: Option<char>| c.and_then(|c| u8::try_from(c).ok());
        let field_end = format.field_terminator.clone().into_bytes();
        // Without an end of lines, fields go on.
        let line_end = match format.line_terminator.as_str() {
            "" => field_end.clone(),
            end => end.as_bytes().to_vec(),
        };
        let enclosure = byte(format.enclosure);
        let separator = enclosure.or_else(|| field_end.first().copied());
        let is_of_number = |byte: Option<u8>| byte.is_some_and(|byte| NUMBERS.contains(&byte));
        let looks_like_a_number = is_of_number(separator);
        let end = field_end.first().copied();
        let has_text = columns.iter().any(|column| is_text(&column.column_type));
        let has_number = columns.iter().any(|column| !is_text(&column.column_type));
        let is_bare = enclosure.is_none();
        let is_end_ambiguous = is_bare && is_ambiguous(end) && (has_text || is_of_number(end))
            || (is_bare || format.optionally_enclosed) && has_number && is_of_number(end);
        let columns = columns.into_iter().map(|column| {
            let is_text = is_text(&column.column_type);
            Column {
                is_text: column.column_type.is_text() || column.column_type == ColumnType::Json,
                column_type: column.column_type,
                is_enclosed: enclosure.is_some() && (is_text || !format.optionally_enclosed),
                is_escaped: is_text || looks_like_a_number,
            }
        });
        DelimitedRows {
            columns: columns.collect(),
            set,
            field_end,
            line_start: format.line_start.clone().into_bytes(),
            line_end,
            enclosure,
            escape: byte(format.escape),
            separator,
            is_end_ambiguous,
        }
    }

    /// Whether fields may hold what ends them, unescaped.
    pub(super) fn is_end_ambiguous(&self) -> bool {
        self.is_end_ambiguous
    }

    /// Appends a row; `cell` is memory to work in.
    pub(super) fn write_row(
        &self,
        out: &mut Vec<u8>,
        cell: &mut Vec<u8>,
        batch: &RecordBatch,
        row: usize,
    ) {
        out.extend_from_slice(&self.line_start);
        for (index, (array, column)) in batch.columns().iter().zip(&self.columns).enumerate() {
            if index > 0 {
                out.extend_from_slice(&self.field_end);
            }
            cell.clear();
            if render::write_cell(cell, array, row, &column.column_type) {
                let value = match column.is_text {
                    true => self.set.encode(cell),
                    false => Cow::Borrowed(cell.as_slice()),
                };
                self.write_value(out, &value, column);
            } else {
                match self.escape {
                    Some(escape) => out.extend_from_slice(&[escape, b'N']),
                    None => out.extend_from_slice(b"NULL"),
                }
            }
        }
        out.extend_from_slice(&self.line_end);
    }

    fn write_value(&self, out: &mut Vec<u8>, value: &[u8], column: &Column) {
        let quote = self.enclosure.filter(|_| column.is_enclosed);
        out.extend(quote);
        match self.escape.filter(|_| column.is_escaped) {
            None => out.extend_from_slice(value),
            Some(escape) => {
                for byte in value {
                    if self.needs_escape(*byte, escape, quote.is_some()) {
                        out.push(self.escape_of(*byte, escape));
                        out.push(if *byte == 0 { b'0' } else { *byte });
                    } else {
                        out.push(*byte);
                    }
                }
            }
        }
        out.extend(quote);
    }

    fn needs_escape(&self, byte: u8, escape: u8, is_enclosed: bool) -> bool {
        let field_end = self.field_end.first().copied();
        if !is_enclosed && self.is_end_ambiguous && Some(byte) == field_end {
            return false;
        }
        let end = match is_enclosed {
            true => self.separator,
            false => field_end,
        };
        let ends = [end, self.line_end.first().copied()];
        byte == 0 || byte == escape || ends.contains(&Some(byte))
    }

    /// What stands in front of an escaped byte: a quote that reads like an escape is doubled.
    fn escape_of(&self, byte: u8, escape: u8) -> u8 {
        match Some(byte) == self.separator && is_ambiguous(self.separator) {
            true => byte,
            false => escape,
        }
    }
}

/// Whether a byte behind an escape would mean something else.
fn is_ambiguous(byte: Option<u8>) -> bool {
    byte.is_some_and(|byte| ESCAPES.contains(&byte))
}

/// Whether MySQL treats values of this type as texts: moments are, bits are not.
fn is_text(column_type: &ColumnType) -> bool {
    !column_type.is_numeric() && !matches!(column_type, ColumnType::Year | ColumnType::Bit { .. })
}
