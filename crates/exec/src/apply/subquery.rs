//! The subquery of an Apply.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::physical_plan::ExecutionPlan;

use crate::short_plan::ShortPlan;
use crate::slots::OuterRow;

/// What a subquery has for an outer row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Yield {
    /// One value, or NULL where there is no row; several rows are an error.
    Value,
    /// Any number of rows. Where there is none, the outer row is dropped.
    Rows,
    /// The same, but an outer row without any stands beside NULL.
    RowsOrNull,
}

/// A subquery and what it names of the outer rows.
#[derive(Clone)]
pub(super) struct Subquery {
    pub(super) plan: Arc<dyn ExecutionPlan>,
    /// Its steps, for runs that have little to do.
    pub(super) short: Option<Arc<ShortPlan>>,
    pub(super) row: Arc<OuterRow>,
    /// The outer columns by the places of their values, with their types.
    pub(super) columns: Vec<(usize, DataType)>,
    /// Whether it may have another value for the same outer row.
    pub(super) varies: bool,
    pub(super) yields: Yield,
}
