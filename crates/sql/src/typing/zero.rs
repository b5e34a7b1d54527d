//! One zero: where values are sorted or looked up by their bits, `-0.0` becomes `0.0`.
//!
//! IEEE 754 has two zeros that are equal. Arrow's sort order and its hash tables tell them apart;
//! comparisons by operators and our own GROUP BY do not, and MySQL never does.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{InList, Sort, WindowFunction};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator, lit};

use super::nameless::data_type_of;

/// Keys of a sort.
pub(super) fn in_keys(keys: Vec<Sort>, schema: &DFSchema) -> Result<Vec<Sort>> {
    keys.into_iter()
        .map(|key| {
            Ok(Sort {
                expr: one(key.expr, schema)?,
                ..key
            })
        })
        .collect()
}

/// What a window is cut and sorted by.
pub(super) fn in_window(mut window: WindowFunction, schema: &DFSchema) -> Result<WindowFunction> {
    let params = &mut window.params;
    params.order_by = in_keys(std::mem::take(&mut params.order_by), schema)?;
    params.partition_by = std::mem::take(&mut params.partition_by)
        .into_iter()
        .map(|expr| one(expr, schema))
        .collect::<Result<_>>()?;
    Ok(window)
}

/// A list that a value is looked up in.
pub(super) fn in_list(list: InList, schema: &DFSchema) -> Result<InList> {
    let items = list.list.into_iter().map(|item| one(item, schema));
    Ok(InList {
        expr: Box::new(one(*list.expr, schema)?),
        list: items.collect::<Result<_>>()?,
        negated: list.negated,
    })
}

fn one(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let zero = match data_type_of(&expr, schema)? {
        DataType::Float32 => lit(0_f32),
        DataType::Float64 => lit(0_f64),
        _ => return Ok(expr),
    };
    let is_done = match &expr {
        Expr::BinaryExpr(sum) => sum.op == Operator::Plus && *sum.right == zero,
        Expr::Literal(ScalarValue::Float64(value), _) => !value.is_some_and(|v| v == 0.0),
        _ => false,
    };
    Ok(match is_done {
        true => expr,
        false => Expr::BinaryExpr(BinaryExpr::new(
            Box::new(expr),
            Operator::Plus,
            Box::new(zero),
        )),
    })
}
