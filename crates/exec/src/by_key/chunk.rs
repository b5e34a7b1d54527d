//! Some outer rows of a join by key, with the rows that they find.
//!
//! Owns: which pairs are joined and what is shown of them. Never: reads the outer side.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::cmp::eq;
use arrow::compute::take;
use arrow::datatypes::SchemaRef;
use datafusion::common::{JoinSide, Result};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::joins::utils::JoinFilter;
use mayfly_table::Lookup;

use super::join_key::KeyValues;
use super::pipeline::Steps;
use crate::batches::batch_of;
use crate::filter::{true_rows, valid_only};
use crate::source::Source;

/// What a join by key shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Both rows of a pair.
    Inner,
    /// The same, and outer rows without a pair.
    Outer,
    /// Outer rows that have a pair.
    Semi,
    /// Outer rows that have none.
    Anti,
    /// Rows of the table that have a pair.
    InnerSemi,
}

/// What is joined with what.
pub(super) struct Spec {
    pub(super) kind: Kind,
    /// The side of the stock join that is looked up.
    pub(super) outer: JoinSide,
    /// What is done to the rows of the table.
    pub(super) steps: Steps,
    pub(super) key: usize,
    /// What the key is asked for.
    pub(super) values: KeyValues,
    /// Equalities that the key does not see to: of the outer side and of the table.
    pub(super) equal: Vec<(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)>,
    pub(super) filter: Option<JoinFilter>,
    /// What is shown: columns of either side.
    pub(super) columns: Vec<(JoinSide, usize)>,
    pub(super) schema: SchemaRef,
}

impl Spec {
    /// Whether pairs are checked further than by the key.
    pub(super) fn is_checked(&self) -> bool {
        !self.equal.is_empty() || self.filter.is_some() || self.steps.has_filter()
    }
}

/// A chunk of a join.
pub(super) struct Chunk {
    outer: RecordBatch,
    /// The sides of the equalities that are checked.
    equal: Vec<ArrayRef>,
    /// The number of a row of the table and the place of an outer row; sorted.
    pairs: Vec<(u64, u32)>,
    /// The pairs before are done.
    at: usize,
    /// Which outer rows have a pair.
    is_matched: Vec<bool>,
    is_done: bool,
    /// The row of the table that was shown last.
    shown: Option<u64>,
}

/// Pairs of rows: places in the outer rows and in rows of the table.
struct Pairs {
    outer: UInt32Array,
    inner: UInt32Array,
}

impl Pairs {
    /// Those for which a condition is true.
    fn kept(&self, holds: &BooleanBuffer) -> Pairs {
        let kept = |places: &UInt32Array| -> UInt32Array {
            let places = places.values().iter().zip(holds);
            places
                .filter(|(_, holds)| *holds)
                .map(|(place, _)| *place)
                .collect()
        };
        Pairs {
            outer: kept(&self.outer),
            inner: kept(&self.inner),
        }
    }
}

impl Chunk {
    pub(super) fn new(spec: &Spec, outer: RecordBatch, found: Lookup) -> Result<Self> {
        let mut is_matched = vec![false; outer.num_rows()];
        let mut pairs: Vec<(u64, u32)> = Vec::new();
        let asks_only = matches!(spec.kind, Kind::Semi | Kind::Anti);
        if asks_only && !spec.is_checked() {
            // That there are rows is all that counts.
            for place in found.places {
                is_matched[place as usize] = true;
            }
        } else {
            pairs = found.numbers.into_iter().zip(found.places).collect();
            pairs.sort_unstable();
        }
        let rows = outer.num_rows();
        let equal = spec.equal.iter();
        let equal = equal.map(|(value, _)| value.evaluate(&outer)?.into_array(rows));
        Ok(Self {
            equal: equal.collect::<Result<_>>()?,
            outer,
            pairs,
            at: 0,
            is_matched,
            is_done: false,
            shown: None,
        })
    }

    /// The next rows of the join, perhaps none; `None` at the end.
    pub(super) fn next(
        &mut self,
        spec: &Spec,
        source: &Source,
        rows_max: usize,
    ) -> Result<Option<RecordBatch>> {
        if self.at < self.pairs.len() {
            let from = self.at;
            self.at = (from + rows_max).min(self.pairs.len());
            return self.join(spec, source, from).map(Some);
        }
        if std::mem::replace(&mut self.is_done, true) {
            return Ok(None);
        }
        let wanted = match spec.kind {
            Kind::Inner | Kind::InnerSemi => return Ok(None),
            Kind::Semi => true,
            Kind::Outer | Kind::Anti => false,
        };
        let places = (0..).zip(&self.is_matched);
        let places = places.filter(|(_, is_matched)| **is_matched == wanted);
        let places: UInt32Array = places.map(|(place, _): (u32, _)| place).collect();
        let nulls = UInt32Array::new_null(places.len());
        let pairs = Pairs {
            outer: places,
            inner: nulls,
        };
        self.show(spec, &pairs, None).map(Some)
    }

    /// Joins the pairs from `from` on.
    fn join(&mut self, spec: &Spec, source: &Source, from: usize) -> Result<RecordBatch> {
        let pairs = &self.pairs[from..self.at];
        let mut numbers: Vec<u64> = pairs.iter().map(|(number, _)| *number).collect();
        numbers.dedup();
        let rows = source.rows(&numbers)?;
        let (inner, places) = spec.steps.run(rows)?;
        // Where each row that was read is now.
        let mut now = vec![None; numbers.len()];
        for (index, place) in places.values().iter().enumerate() {
            now[*place as usize] = Some(index as u32);
        }
        let mut joined = Vec::with_capacity(pairs.len());
        let mut read = 0;
        for (number, place) in pairs {
            while numbers[read] != *number {
                read += 1;
            }
            joined.extend(now[read].map(|index| (*place, index)));
        }
        let pairs = Pairs {
            outer: joined.iter().map(|(place, _)| *place).collect(),
            inner: joined.iter().map(|(_, index)| *index).collect(),
        };
        let pairs = self.checked(spec, pairs, &inner)?;
        for place in pairs.outer.values() {
            self.is_matched[*place as usize] = true;
        }
        match spec.kind {
            Kind::Inner | Kind::Outer => self.show(spec, &pairs, Some(&inner)),
            Kind::Semi | Kind::Anti => Ok(RecordBatch::new_empty(Arc::clone(&spec.schema))),
            Kind::InnerSemi => {
                // The pairs of a row lie side by side, in this batch or over its end.
                let mut rows = pairs.inner.values().to_vec();
                rows.dedup();
                let number = |row: u32| numbers[places.value(row as usize) as usize];
                if rows
                    .first()
                    .is_some_and(|row| self.shown == Some(number(*row)))
                {
                    rows.remove(0);
                }
                self.shown = rows.last().map(|row| number(*row)).or(self.shown);
                let pairs = Pairs {
                    outer: UInt32Array::new_null(rows.len()),
                    inner: rows.into(),
                };
                self.show(spec, &pairs, Some(&inner))
            }
        }
    }

    /// The pairs for which all conditions hold.
    fn checked(&self, spec: &Spec, pairs: Pairs, inner: &RecordBatch) -> Result<Pairs> {
        let mut pairs = pairs;
        // Each for the pairs that those before it keep.
        for (outer, (_, value)) in self.equal.iter().zip(&spec.equal) {
            let value = value.evaluate(inner)?.into_array(inner.num_rows())?;
            let left = take(outer, &pairs.outer, None)?;
            let right = take(&value, &pairs.inner, None)?;
            let (are_equal, nulls) = eq(&left, &right)?.into_parts();
            pairs = pairs.kept(&valid_only(are_equal, nulls.as_ref()));
        }
        if let Some(filter) = &spec.filter {
            let columns = filter.column_indices().iter();
            let columns = columns.map(|column| match column.side == spec.outer {
                true => Ok(take(self.outer.column(column.index), &pairs.outer, None)?),
                false => Ok(take(inner.column(column.index), &pairs.inner, None)?),
            });
            let columns = columns.collect::<Result<Vec<_>>>()?;
            let rows = batch_of(filter.schema(), columns, pairs.outer.len())?;
            pairs = pairs.kept(&true_rows(filter.expression(), &rows)?);
        }
        Ok(pairs)
    }

    /// The columns that are shown of pairs.
    fn show(&self, spec: &Spec, pairs: &Pairs, inner: Option<&RecordBatch>) -> Result<RecordBatch> {
        let fields = spec.schema.fields().iter();
        let columns = spec
            .columns
            .iter()
            .zip(fields)
            .map(|((side, column), field)| {
                Ok(match inner {
                    _ if *side == spec.outer => {
                        take(self.outer.column(*column), &pairs.outer, None)?
                    }
                    Some(inner) => take(inner.column(*column), &pairs.inner, None)?,
                    None => arrow::array::new_null_array(field.data_type(), pairs.outer.len()),
                })
            });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        batch_of(&spec.schema, columns, pairs.outer.len())
    }
}
