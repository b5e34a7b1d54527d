//! What a sort sorts: the columns that travel, and which of them are keys.
//!
//! Owns: the mapping between the input's schema and the schema of rows inside the operator.
//! Never: holds rows.
//!
//! Inside, dictionaries are their values, and a sort key that is not a plain column is one more
//! column: it is evaluated once, so a key such as `rand()` means the same in every merge.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, RecordBatch};
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

/// Strings of up to this many bytes live in the view itself.
const INLINE_BYTES: u32 = 12;
/// Bytes that a view takes beside what it points to.
const VIEW_BYTES: usize = 16;

/// Bytes of a column that a copy of it would take.
fn column_bytes(column: &dyn Array) -> usize {
    let views = match column.data_type() {
        DataType::Utf8View => column.as_string_view().views(),
        DataType::BinaryView => column.as_binary_view().views(),
        _ => return column.to_data().get_slice_memory_size().unwrap_or_default(),
    };
    let nulls = if column.nulls().is_some() {
        column.len() / 8 + 1
    } else {
        0
    };
    nulls + views.len() * VIEW_BYTES + outline_bytes(views)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a view's length is its lower 32 bits"
)]
fn outline_bytes(views: &[u128]) -> usize {
    views
        .iter()
        .map(|&view| view as u32)
        .filter(|&len| len > INLINE_BYTES)
        .map(|len| len as usize)
        .sum()
}

/// Bytes that a copy of a batch would take.
pub(super) fn batch_bytes(batch: &RecordBatch) -> usize {
    batch
        .columns()
        .iter()
        .map(|column| column_bytes(column.as_ref()))
        .sum()
}

/// How much more than its own strings a column may keep alive before it is copied.
const WASTE_FACTOR: usize = 2;
/// Bytes of waste that are not worth a copy.
const WASTE_BYTES_MIN: usize = 4096;

/// A batch that keeps alive little more than its own rows.
pub(super) fn compact(batch: RecordBatch) -> Result<RecordBatch> {
    copy_views(batch, |used, held| {
        held > WASTE_FACTOR * used + WASTE_BYTES_MIN
    })
}

/// A batch that shares no string buffer with anything, pages least of all.
pub(super) fn detach(batch: RecordBatch) -> Result<RecordBatch> {
    copy_views(batch, |_, held| held > 0)
}

fn copy_views(batch: RecordBatch, must: impl Fn(usize, usize) -> bool) -> Result<RecordBatch> {
    let rows = batch.num_rows();
    let (schema, mut columns, _) = batch.into_parts();
    for column in &mut columns {
        let held = |buffers: &[arrow::buffer::Buffer]| -> usize {
            buffers.iter().map(arrow::buffer::Buffer::capacity).sum()
        };
        let copied: Option<ArrayRef> = match column.data_type() {
            DataType::Utf8View => {
                let array = column.as_string_view();
                must(outline_bytes(array.views()), held(array.data_buffers()))
                    .then(|| Arc::new(array.gc()) as ArrayRef)
            }
            DataType::BinaryView => {
                let array: &BinaryViewArray = column.as_binary_view();
                must(outline_bytes(array.views()), held(array.data_buffers()))
                    .then(|| Arc::new(array.gc()) as ArrayRef)
            }
            _ => None,
        };
        if let Some(copied) = copied {
            *column = copied;
        }
    }
    batch_of(&schema, columns, rows)
}
