//! Columns and parameters between a session and the protocol.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use mayfly_session::{ColumnInfo, ColumnOrigin, KeyRole, Parameter};
use mayfly_types::CharacterSet;
use mayfly_wire::{ColumnDefinition, ColumnFlags, Parameter as Sent};

/// A column as the protocol tells it.
pub fn definition(column: &ColumnInfo) -> ColumnDefinition {
    let definition = ColumnDefinition::new(
        column.name.clone(),
        column.column_type.clone(),
        column.nullable,
    );
    let Some(origin) = &column.origin else {
        return definition;
    };
    ColumnDefinition {
        schema: Arc::clone(&origin.database),
        table: Arc::clone(&origin.alias),
        original_table: Arc::clone(&origin.table),
        original_name: Arc::clone(&origin.column),
        flags: flags(origin),
        ..definition
    }
}

fn flags(origin: &ColumnOrigin) -> ColumnFlags {
    let of_key = match origin.key {
        KeyRole::Primary => ColumnFlags::PRI_KEY,
        KeyRole::Unique => ColumnFlags::UNIQUE_KEY,
        KeyRole::Repeated => ColumnFlags::MULTIPLE_KEY,
        KeyRole::None => ColumnFlags::empty(),
    };
    [
        (origin.is_in_key, ColumnFlags::PART_KEY),
        (origin.is_auto_increment, ColumnFlags::AUTO_INCREMENT),
        (origin.needs_value, ColumnFlags::NO_DEFAULT_VALUE),
        (origin.sets_itself, ColumnFlags::ON_UPDATE_NOW),
    ]
    .into_iter()
    .filter(|(is_set, _)| *is_set)
    .fold(of_key, |flags, (_, flag)| flags | flag)
}

/// A value that a client sent for a parameter, with memory for what must be spelled.
pub enum Value<'a> {
    Ready(Parameter<'a>),
    Text(String),
}

impl<'a> Value<'a> {
    /// A text is in the character set that the client speaks; one that is none of it is bytes.
    pub fn of(sent: &Sent<'a>, set: CharacterSet) -> Value<'a> {
        Value::Ready(match *sent {
            Sent::Null => Parameter::Null,
            Sent::Integer(number) => Parameter::Integer(number),
            Sent::Unsigned(number) => Parameter::Unsigned(number),
            Sent::Float(number) => Parameter::Double(f64::from(number)),
            Sent::Double(number) => Parameter::Double(number),
            Sent::Decimal(digits) => match std::str::from_utf8(digits) {
                Ok(digits) => Parameter::Decimal(digits),
                Err(_) => Parameter::Bytes(digits),
            },
            Sent::Text(bytes) => match set.decode(bytes) {
                Ok(Cow::Borrowed(text)) => Parameter::Text(text),
                Ok(Cow::Owned(text)) => return Value::Text(text),
                Err(_) => Parameter::Bytes(bytes),
            },
            Sent::Bytes(bytes) => Parameter::Bytes(bytes),
            Sent::Date { year, month, day } => {
                return Value::Text(format!("{year:04}-{month:02}-{day:02}"));
            }
            Sent::DateTime {
                year,
                month,
                day,
                hour,
                minute,
                second,
                micros,
            } => {
                let day = format!("{year:04}-{month:02}-{day:02}");
                let mut text = format!("{day} {hour:02}:{minute:02}:{second:02}");
                push_micros(&mut text, micros);
                return Value::Text(text);
            }
            Sent::Time {
                negative,
                days,
                hours,
                minutes,
                seconds,
                micros,
            } => {
                let sign = if negative { "-" } else { "" };
                let hours = { u64::from(days).saturating_mul(24) }.saturating_add(u64::from(hours));
                let mut text = format!("{sign}{hours:02}:{minutes:02}:{seconds:02}");
                push_micros(&mut text, micros);
                return Value::Text(text);
            }
            // What the protocol may learn to send.
            _ => Parameter::Null,
        })
    }

    pub fn parameter(&self) -> Parameter<'_> {
        match self {
            Value::Ready(parameter) => *parameter,
            Value::Text(text) => Parameter::Text(text),
        }
    }
}

fn push_micros(text: &mut String, micros: u32) {
    if micros > 0 {
        let _ = write!(text, ".{micros:06}");
    }
}
