//! The terms of a condition over rows whose columns are read late.
//!
//! Owns: in which order terms are asked, and of which rows each reads its columns. Never: evaluates
//! a term; `terms` does.
//!
//! A term reads its columns and no others. Where few rows are open, it reads them of those rows.
//! Cheap terms change places with each other, so that those of numbers, which are read at little
//! cost, leave few rows to those of texts.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::physical_expr::PhysicalExpr;

use super::integer_ranges::IntegerRanges;
use super::terms::{Terms, is_silent, sides_in_order};
use crate::open_scan::{OpenRows, is_costly_to_read};
use crate::other_columns::over_read_columns;
use crate::selection::Selection;

/// To find a number of a row among all costs some times what it costs to compare it.
const ROWS_PER_NUMBER: usize = 8;
/// A text of a row costs as much by itself as among all.
const ROWS_PER_TEXT: usize = 4;

/// A condition whose terms read their own columns.
#[derive(Debug)]
pub(crate) struct LateTerms(Vec<LateTerm>);

#[derive(Debug)]
struct LateTerm {
    /// The columns that it reads.
    columns: Vec<usize>,
    schema: SchemaRef,
    reads_texts: bool,
    /// What a page can be asked for in its place.
    ranges: Option<IntegerRanges>,
    /// Whether it reads one column of texts, and may be asked of texts that no row has.
    is_of_texts: bool,
    /// The term over these.
    over_columns: Terms,
}

impl LateTerms {
    /// The terms of a condition over rows of a schema; `None` where it is not known what one reads.
    pub(super) fn of(condition: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<LateTerms> {
        let mut terms = Vec::new();
        let mut cheap = Vec::new();
        for (expr, is_cheap) in sides_in_order(condition, schema) {
            let term = LateTerm::of(&expr, schema)?;
            if is_cheap {
                cheap.push(term);
                continue;
            }
            append_cheap(&mut terms, &mut cheap);
            terms.push(term);
        }
        append_cheap(&mut terms, &mut cheap);
        Some(LateTerms(terms))
    }

    /// Closes the open rows for which the condition is not true.
    ///
    /// # Errors
    /// As the terms that are evaluated, and where a page cannot be read.
    pub(super) fn narrow(&self, rows: &mut OpenRows, mut open: Selection) -> Result<Selection> {
        for term in &self.0 {
            if matches!(open, Selection::None) {
                break;
            }
            open = term.narrow(rows, open)?;
        }
        Ok(open)
    }
}

/// Moves terms that may change places behind others, those of texts last.
fn append_cheap(terms: &mut Vec<LateTerm>, cheap: &mut Vec<LateTerm>) {
    cheap.sort_by_key(|term| term.reads_texts);
    terms.append(cheap);
}

impl LateTerm {
    fn of(expr: &Arc<dyn PhysicalExpr>, whole: &Schema) -> Option<LateTerm> {
        let (over_columns, columns) = over_read_columns(expr).ok()?;
        let schema = whole.project(&columns).ok()?;
        let mut fields = schema.fields().iter();
        let is_of_texts = match schema.fields().as_ref() {
            [field] => {
                matches!(field.data_type(), DataType::Utf8View | DataType::BinaryView)
                    && is_silent(&over_columns, &schema)
            }
            _ => false,
        };
        Some(LateTerm {
            is_of_texts,
            ranges: IntegerRanges::of(expr, whole),
            reads_texts: fields.any(|field| is_costly_to_read(field.data_type())),
            over_columns: Terms::one(&over_columns, &schema),
            columns,
            schema: Arc::new(schema),
        })
    }

    fn narrow(&self, rows: &mut OpenRows, open: Selection) -> Result<Selection> {
        let rows_per_open = match self.reads_texts {
            true => ROWS_PER_TEXT,
            false => ROWS_PER_NUMBER,
        };
        if let Some(IntegerRanges { column, ranges }) = &self.ranges
            && !rows.are_few(&open, rows_per_open)
            && let Some(within) = rows.within(*column, ranges)?
        {
            return Ok(open.and(within));
        }
        if self.is_of_texts
            && let Some(passing) =
                rows.passing_by_text(&open, self.columns[0], &self.schema, |texts| {
                    self.over_columns.open_rows(texts)
                })?
        {
            return Ok(open.and(passing));
        }
        let columns = (self.columns.as_slice(), &self.schema);
        rows.narrow(open, rows_per_open, columns, |batch, open| {
            self.over_columns.narrow(batch, open)
        })
    }
}
