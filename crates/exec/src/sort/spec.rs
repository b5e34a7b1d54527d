//! What a sort sorts: the columns that travel, and which of them are keys.
//!
//! Owns: the mapping between the input's schema and the schema of rows inside the operator.
//! Never: holds rows.
//!
//! Inside, dictionaries are their values, and a sort key that is not a plain column is one more
//! column: it is evaluated once, so a key such as `rand()` means the same in every merge.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::{SortOptions, cast};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::row::{RowConverter, SortField};
use datafusion::common::Result;
use datafusion::physical_expr::{LexOrdering, PhysicalExprRef};
use datafusion::physical_plan::expressions::Column;

use crate::batches::batch_of;

/// The layout of a sort.
#[derive(Debug)]
pub(super) struct SortSpec {
    /// Schema of the batches that come in and go out.
    pub outer: SchemaRef,
    /// Schema of the batches inside: the input's columns, then computed keys.
    pub inner: SchemaRef,
    /// Keys that are no plain columns, in the order of their columns in `inner`.
    computed: Vec<PhysicalExprRef>,
    /// Position in `inner` and options of each key.
    pub keys: Vec<(usize, SortOptions)>,
}

/// The type in which a column of `outer` travels.
fn inner_type(outer: &DataType) -> DataType {
    match outer {
        DataType::Dictionary(_, values) => inner_type(values),
        other => other.clone(),
    }
}

impl SortSpec {
    /// The layout for an input, or none when a key has no normalised form.
    pub(super) fn new(outer: &SchemaRef, ordering: &LexOrdering) -> Result<Option<Self>> {
        let mut fields: Vec<Field> = outer
            .fields()
            .iter()
            .map(|field| {
                Field::new(
                    field.name(),
                    inner_type(field.data_type()),
                    field.is_nullable(),
                )
            })
            .collect();
        let mut computed = Vec::new();
        let mut keys = Vec::new();
        for sort in ordering.iter() {
            let position = match sort.expr.downcast_ref::<Column>() {
                Some(column) => column.index(),
                None => {
                    let data_type = inner_type(&sort.expr.data_type(outer)?);
                    let nullable = sort.expr.nullable(outer)?;
                    let name = format!("sort_key_{}", computed.len());
                    fields.push(Field::new(name, data_type, nullable));
                    computed.push(Arc::clone(&sort.expr));
                    fields.len() - 1
                }
            };
            keys.push((position, sort.options));
        }
        let sort_fields: Vec<SortField> = keys
            .iter()
            .map(|(index, options)| {
                SortField::new_with_options(fields[*index].data_type().clone(), *options)
            })
            .collect();
        Ok(RowConverter::supports_fields(&sort_fields).then(|| Self {
            outer: Arc::clone(outer),
            inner: Arc::new(Schema::new(fields)),
            computed,
            keys,
        }))
    }

    /// Whether every key is a plain column of the input.
    pub(super) fn keys_are_columns(&self) -> bool {
        self.computed.is_empty()
    }

    /// A batch of the input as it travels inside.
    pub(super) fn enter(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut columns = Vec::with_capacity(self.inner.fields().len());
        for column in batch.columns() {
            columns.push(cast_to(column, &inner_type(column.data_type()))?);
        }
        for (expr, field) in self
            .computed
            .iter()
            .zip(&self.inner.fields()[columns.len()..])
        {
            let column = expr.evaluate(batch)?.into_array(batch.num_rows())?;
            columns.push(cast_to(&column, field.data_type())?);
        }
        batch_of(&self.inner, columns, batch.num_rows())
    }

    /// A batch from inside as the consumer expects it.
    pub(super) fn leave(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let fields = self.outer.fields().iter();
        let columns = fields
            .zip(batch.columns())
            .map(|(field, column)| cast_to(column, field.data_type()))
            .collect::<Result<_>>()?;
        batch_of(&self.outer, columns, batch.num_rows())
    }
}

fn cast_to(column: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if column.data_type() == data_type {
        return Ok(Arc::clone(column));
    }
    Ok(cast(column, data_type)?)
}
