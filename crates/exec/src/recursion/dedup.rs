//! The rows of a recursion that were there before.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, BooleanArray};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::record_batch::RecordBatch;
use arrow::row::{RowConverter, SortField};
use datafusion::common::Result;
use mayfly_space::{Account, Error as SpaceError};
use mayfly_table::rows::{GroupNumbering, KeyColumn, Level, RowLayout};

use crate::error::{rows_error, space_error};

/// All rows that a recursion has returned, each once, in pages that are accounted for.
pub(super) struct Seen {
    rows: GroupNumbering,
    /// Makes bytes of the rows where one of their columns is of a nested type.
    converter: Option<RowConverter>,
    account: Account,
    numbers: Vec<u32>,
}

impl Seen {
    pub(super) fn new(schema: &SchemaRef, account: &Account) -> Result<Seen> {
        let fields = schema.fields();
        let mut columns: Vec<KeyColumn> = fields
            .iter()
            .map(|field| KeyColumn::nullable(field.data_type().clone()))
            .collect();
        let mut converter = None;
        if !columns
            .iter()
            .all(|column| RowLayout::supports(&column.data_type))
        {
            let fields = columns
                .into_iter()
                .map(|column| SortField::new(column.data_type));
            converter = Some(RowConverter::new(fields.collect())?);
            columns = vec![KeyColumn::nullable(DataType::Binary)];
        }
        let page_class = account.space().default_page_class();
        let rows = GroupNumbering::new(&columns, account, page_class, Level::default());
        let rows = rows.map_err(rows_error)?;
        Ok(Seen {
            rows: rows.ok_or_else(|| short(account))?,
            converter,
            account: account.clone(),
            numbers: Vec::new(),
        })
    }

    /// The rows of a batch that come for the first time.
    pub(super) fn new_rows(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut next = self.rows.groups() as u32;
        self.numbers.clear();
        let bytes: ArrayRef;
        let columns = match &self.converter {
            Some(converter) => {
                let rows = converter.convert_columns(batch.columns())?;
                let rows: BinaryArray = rows.try_into_binary()?;
                bytes = Arc::new(rows);
                std::slice::from_ref(&bytes)
            }
            None => batch.columns(),
        };
        let assigned = self
            .rows
            .assign(batch.num_rows(), columns, &mut self.numbers);
        if !assigned.map_err(rows_error)? {
            return Err(short(&self.account));
        }
        // Rows are numbered in the order in which they come.
        let is_new = self.numbers.iter().map(|number| {
            let is_new = *number == next;
            next += u32::from(is_new);
            Some(is_new)
        });
        let is_new: BooleanArray = is_new.collect();
        Ok(filter_record_batch(batch, &is_new)?)
    }
}

fn short(account: &Account) -> datafusion::common::DataFusionError {
    let limit_bytes = account.space().memory_bytes();
    space_error(SpaceError::BudgetExceeded {
        asked_bytes: account.space().default_page_class().bytes() as u64,
        available_bytes: 0,
        limit_bytes,
    })
}
