//! Values in a kept plan that each statement has of its own: its clock, its user, its database.
//!
//! Owns their places in a plan, behind those of its constants, and what they are for the statement
//! that runs it (see [`mayfly_sql::statement_values`]). Rules see placeholders in these places, so
//! what they make holds for all values. Never: trusts that no other expression of the plan reads
//! such a value: who makes or runs a plan counts what its functions read
//! ([`Values::reads`](mayfly_sql::functions::Values)).

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan};
use datafusion::scalar::ScalarValue;
use mayfly_exec::slots::placeholder;
use mayfly_sql::comparison::compares_in_plan;
use mayfly_sql::statement_values::{StatementValue, replaced};

use super::plan_constants::StatementValues;
use super::typed_comparisons::{narrower, schema_below};
use crate::connection::Connection;

impl StatementValues {
    /// A plan that has its types, with places for such values behind so many others.
    ///
    /// # Errors
    /// If one has no value now.
    pub(super) fn placed(
        plan: LogicalPlan,
        places_before: usize,
        options: &Arc<ConfigOptions>,
    ) -> Result<(LogicalPlan, StatementValues)> {
        let mut places = Places {
            before: places_before,
            options,
            values: Vec::new(),
        };
        let plan = plan.transform_down_with_subqueries(|node| {
            // Elsewhere a comparison may be what a column is named by.
            if !matches!(node, LogicalPlan::Filter(_) | LogicalPlan::Join(_)) {
                return Ok(Transformed::no(node));
            }
            let schema = schema_below(&node);
            node.map_expressions(|expr| {
                expr.transform_down(|expr| match expr {
                    Expr::BinaryExpr(of) if compares_in_plan(of.op) => places.narrow(of, &schema),
                    expr => Ok(Transformed::no(expr)),
                })
            })
        })?;
        let plan = replaced(plan.data, |value| places.of(value))?;
        Ok((plan, StatementValues(places.values)))
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the values of the statement that the connection is in; `None` where one warns, fails,
    /// or is none that its place may have.
    pub(super) fn add(
        &self,
        mut values: Vec<ScalarValue>,
        connection: &Connection,
    ) -> Option<Vec<ScalarValue>> {
        if !self.is_empty() {
            let context = connection.few_rows_context()?;
            let options = context.session_config().options();
            for value in &self.0 {
                values.push(value.now(options)?);
            }
        }
        Some(values)
    }
}

/// Places that are given to values.
struct Places<'a> {
    before: usize,
    options: &'a Arc<ConfigOptions>,
    values: Vec<StatementValue>,
}

impl Places<'_> {
    /// What stands for a value in the plan.
    fn of(&mut self, value: StatementValue) -> Result<Expr> {
        let Some(value) = value.as_now(self.options) else {
            return plan_err!("a value that this statement does not have");
        };
        Ok(self.placed(value))
    }

    fn placed(&mut self, value: StatementValue) -> Expr {
        let field = value.field();
        let place = self.values.iter().position(|of| *of == value);
        let place = place.unwrap_or_else(|| {
            self.values.push(value);
            self.values.len() - 1
        });
        placeholder(self.before + place, field)
    }

    /// Compares whole numbers in the type of the other side, by which a key is searched.
    fn narrow(&mut self, mut of: BinaryExpr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        for is_left in [true, false] {
            let (side, other) = match is_left {
                true => (&of.left, &of.right),
                false => (&of.right, &of.left),
            };
            let Some((inner, of_type)) = narrower(other, schema) else {
                continue;
            };
            let Some(value) = StatementValue::of(side)? else {
                continue;
            };
            let Some(value) = value.in_type(of_type).as_now(self.options) else {
                continue;
            };
            let placed = Box::new(self.placed(value));
            let inner = Box::new(inner);
            (of.left, of.right) = match is_left {
                true => (placed, inner),
                false => (inner, placed),
            };
            return Ok(Transformed::yes(Expr::BinaryExpr(of)));
        }
        Ok(Transformed::no(Expr::BinaryExpr(of)))
    }
}
