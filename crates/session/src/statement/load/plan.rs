//! What the fields of a file become: columns of the table, or variables of the user.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use mayfly_records::Record;
use mayfly_sql::statement::{LoadData, LoadTarget};
use mayfly_table::{Column, Table};
use mayfly_types::{ColumnType, ErrorCode, MySqlError};

use crate::errors;
use crate::statement::defaults::Fallback;

/// What the fields of a file become.
pub(super) struct Plan {
    /// One text column for each field.
    pub(super) schema: SchemaRef,
    /// What each field is where a line ends before it.
    pub(super) absent: Vec<Absent>,
    /// The columns of the table that get fields, in the order of these.
    pub(super) names: Vec<String>,
    /// Which of the fields these columns get.
    places: Vec<usize>,
    /// The variables that get fields, and which.
    pub(super) variables: Vec<(String, usize)>,
}

impl Plan {
    pub(super) fn new(load: &LoadData, table: &Table) -> Result<Plan, MySqlError> {
        let targets: Vec<LoadTarget> = if load.targets.is_empty() {
            let columns = table.columns().iter();
            columns
                .filter(|column| !column.is_invisible)
                .map(|column| LoadTarget::Column(column.name.clone()))
                .collect()
        } else {
            load.targets.clone()
        };
        let mut plan = Plan {
            schema: Arc::new(Schema::empty()),
            absent: Vec::with_capacity(targets.len()),
            names: Vec::new(),
            places: Vec::new(),
            variables: Vec::new(),
        };
        let mut fields = Vec::with_capacity(targets.len());
        let last = last_mentions(&targets);
        for (place, (target, is_last)) in targets.into_iter().zip(last).enumerate() {
            let mut absent = Absent::Variable;
            let mut of = DataType::BinaryView;
            match target {
                _ if !is_last => {}
                LoadTarget::Column(name) => {
                    let column = column(table, &name)?;
                    absent = Absent::of(column)?;
                    if !column.column_type.is_binary() {
                        of = DataType::Utf8View;
                    }
                    plan.names.push(name);
                    plan.places.push(place);
                }
                LoadTarget::Variable(name) => {
                    of = DataType::Utf8View;
                    plan.variables.push((name, place));
                }
            }
            fields.push(Field::new(format!("field {place}"), of, true));
            plan.absent.push(absent);
        }
        plan.schema = Arc::new(Schema::new(fields));
        Ok(plan)
    }

    /// The fields that columns get, without those of variables.
    pub(super) fn of_columns(&self, batch: &RecordBatch) -> Result<RecordBatch, MySqlError> {
        let fields = batch.project(&self.places);
        fields.map_err(|error| errors::from_plan(&error.into()))
    }

    /// Whether a line has too few or too many fields; variables need none.
    pub(super) fn miscount(&self, record: &Record) -> Option<Miscount> {
        let missing = self.absent.get(record.count()..);
        let Some(missing) = missing else {
            return Some(Miscount::TooMany);
        };
        let columns = missing.iter().filter(|it| **it != Absent::Variable);
        match columns.count() {
            0 => None,
            columns => Some(Miscount::TooFew(columns)),
        }
    }
}

fn column<'a>(table: &'a Table, name: &str) -> Result<&'a Column, MySqlError> {
    let place = table.definition().column(name);
    let column = place.and_then(|place| table.columns().get(place));
    column.ok_or_else(|| MySqlError::new(ErrorCode::UnknownColumn, &[&name, &"field list"]))
}

/// A line that has not as many fields as there are targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Miscount {
    /// So many columns get no field; each is told.
    TooFew(usize),
    TooMany,
}

/// What a target is where a line ends before its field, and the last of these where its field is
/// NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absent {
    /// NULL, and nobody is told.
    Variable,
    /// NULL: that is the default, or the type has no zero.
    Null,
    /// The zero of the type, whatever the default is.
    Zero(&'static str),
    /// The time at which the statement began.
    Now,
}

impl Absent {
    /// That of a column.
    ///
    /// **Source**: `Field::load_data_set_no_data` of MariaDB, `field.cc`: a column keeps a default
    /// of NULL, and is reset otherwise.
    fn of(column: &Column) -> Result<Absent, MySqlError> {
        let default = Fallback::of(column)?;
        let is_null = matches!(&default, Fallback::Value(value) if value.is_null());
        if is_null && !column.is_auto_increment {
            return Ok(Absent::Null);
        }
        Ok(match &column.column_type {
            ColumnType::Timestamp { .. } if !column.is_nullable => Absent::Now,
            // There are no zero dates.
            ColumnType::Date | ColumnType::DateTime { .. } | ColumnType::Timestamp { .. } => {
                Absent::Null
            }
            ColumnType::Time { .. } => Absent::Zero("00:00:00"),
            ColumnType::Year => Absent::Zero("0000"),
            ColumnType::Bit { .. } => Absent::Zero("\0"),
            column_type if column_type.is_numeric() => Absent::Zero("0"),
            _ => Absent::Zero(""),
        })
    }
}

/// For each target, whether no later one names the same column or variable: the last value wins.
fn last_mentions(targets: &[LoadTarget]) -> Vec<bool> {
    let mut later = HashSet::new();
    let mut last: Vec<bool> = targets
        .iter()
        .rev()
        .map(|target| {
            later.insert(match target {
                LoadTarget::Column(name) => (false, name.to_lowercase()),
                LoadTarget::Variable(name) => (true, name.to_lowercase()),
            })
        })
        .collect();
    last.reverse();
    last
}
