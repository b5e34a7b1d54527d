//! Which columns of an input a join keeps, and where they are in its rows.
//!
//! Kept are the values that are compared, and those columns that the result or the condition has.
//! A column that is compared as it is stands in the key alone; not so a number with a point, which
//! is compared by value (`-0.0` is `0.0`) and returned bit by bit. Dictionaries are kept as their
//! values, and a column that can only be NULL is not kept at all.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::{JoinSide, JoinType, Result};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::joins::utils::{ColumnIndex, build_join_schema};
use mayfly_table::rows::{KeyColumn, RowLayout, Stored};

/// The columns of both sides, or marks, that the results of a join have: those chosen by
/// `projection`, or all of its kind of join.
pub(crate) fn result_columns(
    [left, right]: [&SchemaRef; 2],
    kind: JoinType,
    projection: Option<&[usize]>,
) -> Vec<ColumnIndex> {
    let (_, columns) = build_join_schema(left, right, &kind);
    match projection {
        Some(chosen) => chosen.iter().map(|at| columns[*at].clone()).collect(),
        None => columns,
    }
}

/// The places of columns of one side, in order, each once.
pub(crate) fn columns_of_side<'a>(
    side: JoinSide,
    columns: impl IntoIterator<Item = &'a ColumnIndex>,
) -> Vec<usize> {
    let columns = columns.into_iter().filter(|column| column.side == side);
    let mut places: Vec<usize> = columns.map(|column| column.index).collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// Where a column is kept.
#[derive(Clone, Copy, Debug)]
enum Place {
    Stored(Stored),
    /// Nowhere: all its values are NULL.
    Null,
}

/// The columns of one side.
#[derive(Clone, Debug)]
pub(super) struct SideColumns {
    /// What is compared.
    keys: Vec<PhysicalExprRef>,
    key_types: Vec<DataType>,
    /// The columns of the input that are needed.
    needed: Vec<usize>,
    /// Their types, and the places of each.
    types: Vec<DataType>,
    places: Vec<Place>,
    /// Those of the needed columns that are payload, with their types there.
    payload: Vec<(usize, DataType)>,
    pub(super) layout: RowLayout,
}

/// The type as which rows keep a value; `None` where they cannot.
fn kept_type(data_type: &DataType) -> Option<&DataType> {
    match data_type {
        DataType::Dictionary(_, values) => kept_type(values),
        kept => RowLayout::supports(kept).then_some(kept),
    }
}

/// Whether values of two types are equal exactly if they are the same bytes in a row.
fn are_comparable(left: &DataType, right: &DataType) -> bool {
    use DataType::*;
    let is_text = |data_type: &DataType| matches!(data_type, Utf8 | LargeUtf8 | Utf8View);
    let is_binary = |data_type: &DataType| matches!(data_type, Binary | LargeBinary | BinaryView);
    left == right || (is_text(left) && is_text(right)) || (is_binary(left) && is_binary(right))
}

/// The key columns of both sides, which are encoded alike; `None` where rows cannot hold or
/// compare them.
pub(super) fn key_columns(
    on: &[(PhysicalExprRef, PhysicalExprRef)],
    left: &Schema,
    right: &Schema,
) -> Result<Option<[Vec<KeyColumn>; 2]>> {
    let mut columns = [Vec::new(), Vec::new()];
    for (left_key, right_key) in on {
        let types = (left_key.data_type(left)?, right_key.data_type(right)?);
        let (Some(left_type), Some(right_type)) = (kept_type(&types.0), kept_type(&types.1)) else {
            return Ok(None);
        };
        if !are_comparable(left_type, right_type) {
            return Ok(None);
        }
        let nullable = left_key.nullable(left)? || right_key.nullable(right)?;
        for (columns, data_type) in columns.iter_mut().zip([left_type, right_type]) {
            columns.push(KeyColumn {
                data_type: data_type.clone(),
                nullable,
            });
        }
    }
    Ok(Some(columns))
}

impl SideColumns {
    /// The columns of a side, of whose input `needed` are needed; `None` where rows cannot hold
    /// one.
    pub(super) fn try_new(
        schema: &Schema,
        keys: Vec<PhysicalExprRef>,
        key_columns: &[KeyColumn],
        needed: Vec<usize>,
        null_keys_match: bool,
    ) -> Option<SideColumns> {
        let mut places = Vec::with_capacity(needed.len());
        let mut payload = Vec::new();
        let mut payload_columns = Vec::new();
        for (position, column) in needed.iter().enumerate() {
            let field = schema.field(*column);
            if *field.data_type() == DataType::Null {
                places.push(Place::Null);
                continue;
            }
            let data_type = kept_type(field.data_type())?;
            let is_key = |key: &PhysicalExprRef| {
                let found = key.downcast_ref::<Column>();
                found.is_some_and(|found| found.index() == *column)
            };
            let key = keys.iter().position(is_key);
            places.push(Place::Stored(
                match key.filter(|_| !data_type.is_floating()) {
                    Some(key) => Stored::Key(key),
                    None => {
                        payload.push((position, data_type.clone()));
                        payload_columns.push(KeyColumn {
                            data_type: data_type.clone(),
                            nullable: field.is_nullable(),
                        });
                        Stored::Payload(payload.len() - 1)
                    }
                },
            ));
        }
        let layout = RowLayout::for_join(key_columns, &payload_columns, null_keys_match)?;
        let type_of = |column: &usize| schema.field(*column).data_type().clone();
        let key_type_of = |column: &KeyColumn| column.data_type.clone();
        Some(SideColumns {
            types: needed.iter().map(type_of).collect(),
            keys,
            key_types: key_columns.iter().map(key_type_of).collect(),
            needed,
            places,
            payload,
            layout,
        })
    }

    /// The place of a column of the input among those that are needed.
    pub(super) fn position(&self, column: usize) -> usize {
        let position = self.needed.iter().position(|needed| *needed == column);
        position.expect("every column that is used is needed")
    }

    /// The values of a batch that are compared.
    pub(super) fn evaluate_keys(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let keys = self.keys.iter().zip(&self.key_types);
        keys.map(|(key, data_type)| {
            let values = key.evaluate(batch)?.into_array(batch.num_rows())?;
            as_type(&values, data_type)
        })
        .collect()
    }

    /// The columns of a batch that are needed.
    pub(super) fn pick(&self, batch: &RecordBatch) -> Vec<ArrayRef> {
        let column = |column: &usize| Arc::clone(batch.column(*column));
        self.needed.iter().map(column).collect()
    }

    /// What rows carry of the columns that are needed.
    pub(super) fn payload(&self, needed: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        let columns = self.payload.iter();
        columns
            .map(|(position, data_type)| as_type(&needed[*position], data_type))
            .collect()
    }

    /// Some of the needed columns of `rows` rows, out of what `decode` makes of the places where
    /// they are kept.
    pub(super) fn restore(
        &self,
        positions: &[usize],
        rows: usize,
        decode: impl FnOnce(&[Stored]) -> Result<Vec<ArrayRef>>,
    ) -> Result<Vec<ArrayRef>> {
        let stored = positions
            .iter()
            .filter_map(|position| match self.places[*position] {
                Place::Stored(stored) => Some(stored),
                Place::Null => None,
            });
        let mut decoded = decode(&stored.collect::<Vec<_>>())?.into_iter();
        let columns = positions.iter().map(|position| {
            let data_type = &self.types[*position];
            match self.places[*position] {
                Place::Stored(_) => {
                    let values = decoded.next().expect("as many columns as were asked for");
                    as_type(&values, data_type)
                }
                Place::Null => Ok(new_null_array(data_type, rows)),
            }
        });
        columns.collect()
    }

    /// All positions of needed columns.
    pub(super) fn all(&self) -> Vec<usize> {
        (0..self.needed.len()).collect()
    }

    /// The type of a needed column.
    pub(super) fn type_of(&self, position: usize) -> &DataType {
        &self.types[position]
    }

    /// The types of what is compared, as it is kept.
    pub(super) fn key_types(&self) -> impl Iterator<Item = &DataType> {
        self.key_types.iter()
    }

    /// What is compared.
    pub(super) fn keys(&self) -> &[PhysicalExprRef] {
        &self.keys
    }
}

fn as_type(values: &ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if values.data_type() == data_type {
        return Ok(Arc::clone(values));
    }
    Ok(cast(values, data_type)?)
}

/// The rows of which no key is NULL; `None` where that are all.
pub(super) fn rows_without_null(keys: &[ArrayRef], rows: usize) -> Option<Vec<u32>> {
    let with_nulls = keys.iter().filter(|key| key.null_count() > 0);
    let with_nulls: Vec<&ArrayRef> = with_nulls.collect();
    if with_nulls.is_empty() {
        return None;
    }
    let has_all = |row: &u32| with_nulls.iter().all(|key| key.is_valid(*row as usize));
    Some((0..rows as u32).filter(has_all).collect())
}
