//! Expressions over the rows of one table, made ready once and run on any number of batches.
//!
//! Owns the way past the plan: such an expression is typed as one of a select list is, and then
//! runs alone. **Cost**: making one ready takes some tens of microseconds, where a plan takes a
//! millisecond.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::{DFSchema, ScalarValue, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, EmptyRelation, Expr, ExprSchemable, LogicalPlan, Projection, Values,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::sql::sqlparser::ast;
use mayfly_exec::batch_of;
use mayfly_types::ColumnType;

use crate::functions::arithmetic::refusing_zero_in;
use crate::functions::has_waiting;
use crate::functions::own::KEPT_AS;
use crate::in_turn::asked;
use crate::plan::Planner;
use crate::planning;
use crate::walk::finds;

/// An expression that is ready to run.
#[derive(Debug, Clone)]
pub struct Computed {
    expression: Arc<dyn PhysicalExpr>,
    field: FieldRef,
}

impl Computed {
    /// Its values for the rows of a batch, whose columns are those that it was made ready for.
    ///
    /// # Errors
    /// Those of its functions.
    pub fn values(&self, rows: &RecordBatch) -> Result<ArrayRef> {
        self.expression.evaluate(rows)?.into_array(rows.num_rows())
    }

    /// What its values are, their MySQL type included.
    pub fn field(&self) -> &FieldRef {
        &self.field
    }
}

/// A value with its MySQL type.
#[derive(Debug, Clone, PartialEq)]
pub struct TypedValue {
    /// The value.
    pub value: ScalarValue,
    /// Its type, where it is the value of a column or shows other digits of a second than its Arrow
    /// type has. Of all others the Arrow type tells enough: a BIT and a YEAR that are computed are
    /// numbers and a word of a list is a text to whatever column they come to, as in MariaDB.
    pub field: Option<FieldRef>,
}

impl From<ScalarValue> for TypedValue {
    fn from(value: ScalarValue) -> TypedValue {
        TypedValue { value, field: None }
    }
}

impl TypedValue {
    /// A value of an expression with this field. `is_of_column` says whether the expression is a
    /// column, by [`is_column_value`].
    pub fn of(value: ScalarValue, field: &FieldRef, is_of_column: bool) -> TypedValue {
        let field = deciding(field, is_of_column);
        TypedValue { value, field }
    }

    /// Its MySQL type.
    pub fn column_type(&self) -> ColumnType {
        match &self.field {
            Some(field) => ColumnType::from_arrow(field),
            None => ColumnType::from_data_type(&self.value.data_type()),
        }
    }

    /// The field of an array of such values.
    pub fn field_of(&self, name: &str) -> Field {
        let field = Field::new(name, self.value.data_type(), true);
        match &self.field {
            Some(of) => field.with_metadata(of.metadata().clone()),
            None => field,
        }
    }

    /// Whether values of both may stand in one array.
    pub fn has_type_of(&self, other: &TypedValue) -> bool {
        self.value.data_type() == other.value.data_type()
            && match (&self.field, &other.field) {
                (None, None) => true,
                (Some(left), Some(right)) => {
                    Arc::ptr_eq(left, right) || left.metadata() == right.metadata()
                }
                _ => false,
            }
    }
}

/// A field whose MySQL type says more of its values than the Arrow type does.
pub(crate) fn deciding(field: &FieldRef, is_of_column: bool) -> Option<FieldRef> {
    let of = ColumnType::from_arrow(field);
    let decides = is_of_column || of.is_temporal();
    let decides = decides && of != ColumnType::from_data_type(field.data_type());
    decides.then(|| Arc::clone(field))
}

/// Whether an expression is what a column has or would have, and nothing else: to another column
/// such a value is what the column is, as in an UPDATE, a number for a word of a list and bytes for
/// a BIT.
pub fn is_column_value(expression: &ast::Expr) -> bool {
    match expression {
        ast::Expr::Nested(expr)
        | ast::Expr::UnaryOp {
            op: ast::UnaryOperator::Plus,
            expr,
        } => is_column_value(expr),
        ast::Expr::Function(call) => match call.name.0.as_slice() {
            [ast::ObjectNamePart::Identifier(name)] => name.value.starts_with(KEPT_AS),
            _ => false,
        },
        _ => false,
    }
}

impl Planner<'_> {
    /// Makes expressions ready that are computed from the columns of a schema.
    ///
    /// # Errors
    /// As for the same expressions in a select list.
    pub fn computed(&self, expressions: Vec<ast::Expr>, schema: &Schema) -> Result<Vec<Computed>> {
        let lower = schema.fields().iter().map(|field| {
            let field = field.as_ref().clone();
            let name = field.name().to_lowercase();
            field.with_name(name).with_nullable(true)
        });
        let schema = Arc::new(DFSchema::try_from(Schema::new(lower.collect::<Vec<_>>()))?);
        let mut list = self.marked(expressions, &schema)?;
        for (index, expression) in list.iter_mut().enumerate() {
            let marked = std::mem::take(expression);
            *expression = marked.alias(format!("\u{1}value {index}"));
        }
        let rows = LogicalPlan::EmptyRelation(EmptyRelation {
            produce_one_row: false,
            schema: Arc::clone(&schema),
        });
        let plan = LogicalPlan::Projection(Projection::try_new(list, Arc::new(rows))?);
        let LogicalPlan::Projection(typed) = self.typed(plan)? else {
            return internal_err!("a select list has become something else");
        };
        let list = typed.expr.into_iter().map(|expression| {
            let expression = expression.unalias();
            Ok(Computed {
                field: expression.to_field(&schema)?.1,
                expression: self.state.create_physical_expr(expression, &schema)?,
            })
        });
        list.collect()
    }

    /// The values of expressions without columns; `None` where they take a plan: with subqueries,
    /// with functions that wait.
    ///
    /// # Errors
    /// As for the same expressions in a select list.
    pub fn values(&self, expressions: Vec<ast::Expr>) -> Result<Option<Vec<TypedValue>>> {
        if expressions.iter().any(has_query) {
            return Ok(None);
        }
        let schema = DFSchema::empty();
        let are_of_columns: Vec<bool> = expressions.iter().map(is_column_value).collect();
        let Some(list) = self.typed_values(self.marked(expressions, &schema)?)? else {
            return Ok(None);
        };
        let rows = batch_of(schema.inner(), Vec::new(), 1)?;
        let list = list.into_iter().zip(are_of_columns);
        let values = list.map(|(expression, is_of_column)| {
            let field = expression.to_field(&schema)?.1;
            let ready = self.state.create_physical_expr(expression, &schema)?;
            let value = match asked(ready)?.data.evaluate(&rows)? {
                ColumnarValue::Scalar(value) => value,
                ColumnarValue::Array(array) => ScalarValue::try_from_array(&array, 0)?,
            };
            Ok(TypedValue::of(value, &field, is_of_column))
        });
        values.collect::<Result<_>>().map(Some)
    }

    /// Values without columns, with their types; `None` where one of them takes a plan.
    pub(crate) fn typed_values(&self, values: Vec<Expr>) -> Result<Option<Vec<Expr>>> {
        let schema = Arc::new(DFSchema::empty());
        // It has no names, which are most of what a select list costs.
        let plan = LogicalPlan::Values(Values {
            schema: Arc::clone(&schema),
            values: vec![values],
        });
        let LogicalPlan::Values(mut typed) = self.typed(plan)? else {
            return internal_err!("values have become something else");
        };
        let list = typed.values.pop().unwrap_or_default();
        for expression in &list {
            let of_type = expression.get_type(schema.as_ref())?;
            if has_waiting(expression) || matches!(of_type, DataType::Struct(_)) {
                return Ok(None);
            }
        }
        Ok(Some(list))
    }

    /// Expressions that say whether they are divided by zero.
    fn marked(&self, expressions: Vec<ast::Expr>, schema: &DFSchema) -> Result<Vec<Expr>> {
        let marked = |expression| refusing_zero_in(self.expression(expression, schema)?);
        expressions.into_iter().map(marked).collect()
    }

    /// A plan whose expressions have their types.
    fn typed(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        planning::analyzed(self.state, plan)
    }
}

/// Whether an expression has a subquery.
fn has_query(expression: &ast::Expr) -> bool {
    finds(expression, &mut |part| is_query(part))
}

/// Whether an expression asks a subquery.
pub(crate) fn is_query(expression: &ast::Expr) -> bool {
    use ast::Expr::{AllOp, AnyOp, Exists, InSubquery, Subquery};
    matches!(
        expression,
        Subquery(_) | InSubquery { .. } | Exists { .. } | AnyOp { .. } | AllOp { .. }
    )
}
