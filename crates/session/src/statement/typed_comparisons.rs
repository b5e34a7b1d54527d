//! Sides of comparisons in a plan that has its types.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};

/// The columns that the expressions of a node see.
pub(super) fn schema_below(node: &LogicalPlan) -> DFSchema {
    match node {
        LogicalPlan::TableScan(scan) => {
            let all = scan.source.schema();
            let seen = DFSchema::try_from_qualified_schema(scan.table_name.clone(), &all);
            seen.unwrap_or_else(|_| DFSchema::empty())
        }
        node => merge_schema(&node.inputs()),
    }
}

/// A whole number of a narrower type that is widened to be compared, and that type.
pub(super) fn narrower(side: &Expr, schema: &DFSchema) -> Option<(Expr, DataType)> {
    let Expr::Cast(cast) = side else { return None };
    let of_type = cast.expr.get_type(schema).ok()?;
    let is_wider = match cast.field.data_type() {
        DataType::Int64 => !matches!(of_type, DataType::Int64 | DataType::UInt64),
        DataType::Decimal128(precision, scale) => *precision >= 20 && *scale == 0,
        _ => false,
    };
    let is_narrower = of_type.is_integer() && is_wider;
    is_narrower.then(|| ((*cast.expr).clone(), of_type))
}
