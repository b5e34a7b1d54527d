//! Cells of VALUES whose values do not depend on when they are computed.
//!
//! They are computed before their rows are written, those of one shape together
//! ([`mayfly_sql::constants`]). All others are computed row by row, among them each that warns or
//! fails: what is said of a row comes with its row. **Cost**: one part of a plan for a thousand
//! rows, where each row of its own takes one.

use std::time::{Duration, Instant};

use datafusion::sql::sqlparser::ast::Expr;
use mayfly_sql::compute::TypedValue;
use mayfly_sql::constants::{Constant, Constants, Shapes, may_assign};
use mayfly_sql::plan::Planner;
use mayfly_sql::typing::type_planner;
use mayfly_types::MySqlError;

use super::Job;
use super::evaluate::is_plain;
use super::write::Writer;
use crate::errors;

/// Rows whose cells are computed together first, at most, and at least.
const ROWS_FIRST: usize = 64;
const ROWS_TOGETHER: usize = 1024;
const ROWS_LEAST: usize = 16;
/// How long that takes. What takes longer than a short plan waits for a turn.
const TIME_TOGETHER: Duration = Duration::from_millis(20);
/// Bytes of long values from which on there are fewer.
const BYTES_TOGETHER: usize = 1 << 20;

/// Computes the cells of one statement.
pub(super) struct RowValues {
    shapes: Shapes,
    /// How many rows are computed together next.
    next: usize,
    /// Whether a row may give variables of the user other values.
    assigns: bool,
}

/// The values of some rows that are known before the rows are written.
#[derive(Default)]
pub(super) struct KnownValues {
    rows: usize,
    width: usize,
    values: Vec<Option<TypedValue>>,
}

impl KnownValues {
    /// How many rows it is about.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The value of a cell, if it is known.
    pub(super) fn take(&mut self, row: usize, position: usize) -> Option<TypedValue> {
        self.values.get_mut(row * self.width + position)?.take()
    }
}

impl RowValues {
    /// For a statement of these rows.
    pub(super) fn of(rows: &[Vec<Option<Expr>>]) -> RowValues {
        RowValues {
            shapes: Shapes::default(),
            next: ROWS_FIRST,
            assigns: rows.iter().flatten().flatten().any(may_assign),
        }
    }

    /// Computes what can be computed of the first of some rows, each of which has as many cells as
    /// there are columns to fill.
    pub(super) async fn known(
        &mut self,
        job: &Job,
        rows: &[Vec<Option<Expr>>],
        writer: &Writer,
        filled: &[usize],
    ) -> Result<KnownValues, MySqlError> {
        let rows = &rows[..rows.len().min(self.next)];
        let mut known = KnownValues {
            rows: rows.len(),
            width: filled.len(),
            values: Vec::new(),
        };
        // The cells of a row alone are planned together as they stand.
        if rows.len() < 2 {
            return Ok(known);
        }
        let constants = self.constants(rows, writer, filled);
        if constants.count() < 2 {
            return Ok(known);
        }
        let bindings = job.bindings(&constants.references()).await?;
        let mut shapes = std::mem::take(&mut self.shapes);
        let computed = job.compute(move |job| {
            let began = Instant::now();
            let planner = Planner {
                state: job.connection.state()?,
                type_planner: Some(type_planner()),
                bindings: &bindings,
            };
            let computed = planner.constants(constants, &mut shapes);
            let computed = computed.map_err(|error| errors::from_plan(&error))?;
            Ok((shapes, computed, began.elapsed()))
        });
        let (shapes, computed, took) = computed.await?;
        self.shapes = shapes;
        let by_bytes = match computed.bytes > BYTES_TOGETHER {
            true => rows.len() * BYTES_TOGETHER / computed.bytes,
            false => ROWS_TOGETHER,
        };
        let by_time = TIME_TOGETHER.as_secs_f64() / took.as_secs_f64().max(1e-6);
        let by_time = (rows.len() as f64 * by_time) as usize;
        let next = by_bytes.min(by_time).min(self.next * 2);
        self.next = next.clamp(ROWS_LEAST, ROWS_TOGETHER);
        known.values.resize(rows.len() * known.width, None);
        for (place, value) in computed.values {
            known.values[place] = Some(value);
        }
        Ok(known)
    }

    /// The cells that are constant, with their places among the cells of all rows.
    fn constants(
        &self,
        rows: &[Vec<Option<Expr>>],
        writer: &Writer,
        filled: &[usize],
    ) -> Constants {
        let mut constants = Constants::default();
        for (row, cells) in rows.iter().enumerate() {
            for (position, (cell, column)) in cells.iter().zip(filled).enumerate() {
                let expression = match cell {
                    Some(expression) if is_plain(expression) => continue,
                    Some(expression) => expression,
                    None => match writer.default_expression(*column) {
                        Some(expression) => expression,
                        None => continue,
                    },
                };
                let constant = Constant::of(expression);
                let constant = constant.filter(|of| !(self.assigns && of.reads_variables()));
                if let Some(constant) = constant {
                    constants.add(row * filled.len() + position, constant);
                }
            }
        }
        constants
    }
}
