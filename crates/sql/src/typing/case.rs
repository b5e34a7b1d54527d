//! CASE: conditions and results.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::{Expr, Operator};
use mayfly_types::ColumnType;

use super::compare::{compare, truth};
use super::nameless::{data_type_of, type_of};
use crate::functions::cast;
use crate::functions::unify::unify;

/// Conditions become truth values, results one type.
pub(super) fn case_of(case: Case, schema: &DFSchema) -> Result<Expr> {
    let Case {
        expr: operand,
        when_then_expr,
        else_expr,
    } = case;
    let mut results = Vec::new();
    for (_, then) in &when_then_expr {
        results.push(type_of(then, schema)?);
    }
    if let Some(otherwise) = &else_expr {
        results.push(type_of(otherwise, schema)?);
    }
    let booleans = results
        .iter()
        .all(|of| matches!(of, ColumnType::Bool | ColumnType::Null));
    let target = unify(&results);
    let convert = |expr: Box<Expr>| -> Result<Box<Expr>> {
        let data_type = data_type_of(&expr, schema)?;
        if booleans || data_type == DataType::Null {
            return Ok(expr);
        }
        if data_type == target.data_type() {
            return Ok(expr);
        }
        Ok(Box::new(cast::conversion(target.clone()).call(vec![*expr])))
    };
    let mut branches = Vec::with_capacity(when_then_expr.len());
    for (when, then) in when_then_expr {
        let when = match &operand {
            Some(operand) => compare(operand.as_ref().clone(), Operator::Eq, *when, schema)?,
            None => truth(*when, schema)?,
        };
        branches.push((Box::new(when), convert(then)?));
    }
    let otherwise = else_expr.map(convert).transpose()?;
    let case = Expr::Case(Case::new(None, branches, otherwise));
    Ok(with_digits(case, target))
}

/// A value of which the engine forgets how many digits are shown.
pub(super) fn with_digits(value: Expr, of: ColumnType) -> Expr {
    let has_digits = of.is_temporal() && of.second_digits() < 6 && of != ColumnType::Date
        || of.shown_digits().is_some();
    match has_digits {
        true => cast::conversion(of).call(vec![value]),
        false => value,
    }
}
