//! Values that are the same all through a statement and may be others in the next one: those of
//! its clock and of its session.
//!
//! Owns: which calls have such a value (`NOW()`, `DATABASE()`), the largest expressions of a plan
//! that depend on nothing else (`NOW() - INTERVAL 1 DAY`), and how their values are computed when
//! a plan runs again. Never: keeps a value, nor finds one where computing it warns or fails, which
//! is for a statement that goes the long way.
//!
//! A value is computed with the configuration of whoever runs the plan, as it is a plan of many:
//! what functions read there is the clock, the time zone and the user of this statement.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF, Volatility,
};
use datafusion::sql::sqlparser::ast::{self, FunctionArguments};

use crate::call::name_of;
use crate::functions::{aside, define, looked_at, own_name};
use crate::long_values::without_long_values;

/// The functions that read the clock or the session; in order. SYSDATE() is not among them, as it
/// moves within a statement, nor are FOUND_ROWS() and ROW_COUNT(), which each query changes.
const FUNCTIONS: [&str; 12] = [
    "connection_id",
    "curdate",
    "curtime",
    "database",
    "last_insert_id",
    "now",
    "unix_timestamp",
    "user",
    "utc_date",
    "utc_time",
    "utc_timestamp",
    "version",
];
/// Those that do so only without an argument.
const WITHOUT_ARGUMENT: [&str; 2] = ["last_insert_id", "unix_timestamp"];

/// Whether a call, as it is written, has such a value.
pub fn is_call(function: &ast::Function) -> bool {
    let Some(name) = name_of(&function.name) else {
        return false;
    };
    let is_empty = match &function.args {
        FunctionArguments::None => true,
        FunctionArguments::List(list) => list.args.is_empty(),
        FunctionArguments::Subquery(_) => return false,
    };
    let name = own_name(&name).unwrap_or(&name);
    function.over.is_none() && reads_session(name, is_empty)
}

fn reads_session(name: &str, is_empty: bool) -> bool {
    FUNCTIONS.binary_search(&name).is_ok() && (is_empty || !WITHOUT_ARGUMENT.contains(&name))
}

/// An expression of a plan that has such a value.
#[derive(Debug, Clone)]
pub struct StatementValue {
    expr: Expr,
    part: Part,
    field: FieldRef,
    /// The type that the plan asks for, which holds it exactly or not at all.
    wanted: DataType,
    /// Whether it may be NULL.
    is_nullable: bool,
}

impl PartialEq for StatementValue {
    fn eq(&self, other: &Self) -> bool {
        let is_same = self.expr == other.expr && self.wanted == other.wanted;
        is_same && self.is_nullable == other.is_nullable
    }
}

/// How a value is computed.
#[derive(Debug, Clone)]
enum Part {
    Constant(ScalarValue),
    Call {
        function: Arc<ScalarUDF>,
        arguments: Vec<Part>,
        fields: Vec<FieldRef>,
        field: FieldRef,
    },
    Cast {
        of: Box<Part>,
        to: DataType,
    },
}

impl StatementValue {
    /// The value of an expression that has its types; `None` if it has none of these.
    ///
    /// # Errors
    /// If a part of it has no type.
    pub fn of(expr: &Expr) -> Result<Option<StatementValue>> {
        let mut reads = false;
        let Some(part) = Part::of(expr, &mut reads)? else {
            return Ok(None);
        };
        if !reads {
            return Ok(None);
        }
        let (_, field) = expr.to_field(&DFSchema::empty())?;
        Ok(Some(StatementValue {
            expr: expr.clone(),
            part,
            wanted: field.data_type().clone(),
            field,
            is_nullable: true,
        }))
    }

    /// The same value in another type.
    #[must_use]
    pub fn in_type(self, wanted: DataType) -> StatementValue {
        StatementValue { wanted, ..self }
    }

    /// The same for a plan that is good for statements in which it is no NULL, if it is none in
    /// this one: a client is told whether a column may be NULL. `None` where it has no value.
    #[must_use]
    pub fn as_now(self, options: &Arc<ConfigOptions>) -> Option<StatementValue> {
        let is_nullable = self.now(options)?.is_null();
        Some(StatementValue {
            is_nullable,
            ..self
        })
    }

    /// Its column, of the type that the plan asks for.
    pub fn field(&self) -> FieldRef {
        let field = self.field.as_ref().clone();
        let field = field.with_data_type(self.wanted.clone());
        Arc::new(field.with_nullable(self.is_nullable))
    }

    /// The value in a statement of this configuration; `None` where it warns, fails or is none that
    /// the plan is good for.
    pub fn now(&self, options: &Arc<ConfigOptions>) -> Option<ScalarValue> {
        let compute = || aside(|| without_long_values(|| self.part.value(options)));
        let ((value, warnings), _) = looked_at(compute);
        let value = value.ok().filter(|_| warnings.is_empty())?;
        if value.is_null() && !self.is_nullable {
            return None;
        }
        if value.data_type() == self.wanted {
            return Some(value);
        }
        let of_type = value.data_type();
        let is_whole = of_type.is_integer() || matches!(of_type, DataType::Decimal128(_, 0));
        let is_held = of_type == *self.field.data_type() && is_whole && self.wanted.is_integer();
        // What the type does not hold is an error.
        is_held.then(|| value.cast_to(&self.wanted).ok()).flatten()
    }
}

impl Part {
    /// How an expression is computed that has no column; `None` if it is not known here. Tells if
    /// it reads the clock or the session.
    fn of(expr: &Expr, reads: &mut bool) -> Result<Option<Part>> {
        Ok(match expr {
            Expr::Literal(value, _) => Some(Part::Constant(value.clone())),
            Expr::Cast(cast) => Part::of(&cast.expr, reads)?.map(|of| Part::Cast {
                of: Box::new(of),
                to: cast.field.data_type().clone(),
            }),
            Expr::ScalarFunction(call) => {
                if call.func.signature().volatility == Volatility::Volatile {
                    return Ok(None);
                }
                let arguments = call.args.iter().map(|of| Part::of(of, reads).transpose());
                let arguments: Option<Result<Vec<Part>>> = arguments.collect();
                let Some(arguments) = arguments else {
                    return Ok(None);
                };
                let name = define::name_of(&call.func);
                *reads |= name.is_some_and(|name| reads_session(name, call.args.is_empty()));
                let schema = DFSchema::empty();
                let fields = call.args.iter().map(|of| Ok(of.to_field(&schema)?.1));
                Some(Part::Call {
                    function: Arc::clone(&call.func),
                    arguments: arguments?,
                    fields: fields.collect::<Result<_>>()?,
                    field: expr.to_field(&schema)?.1,
                })
            }
            _ => None,
        })
    }

    fn value(&self, options: &Arc<ConfigOptions>) -> Result<ScalarValue> {
        match self {
            Part::Constant(value) => Ok(value.clone()),
            Part::Cast { of, to } => of.value(options)?.cast_to(to),
            Part::Call {
                function,
                arguments,
                fields,
                field,
            } => {
                let arguments = arguments.iter();
                let arguments = arguments.map(|of| of.value(options).map(ColumnarValue::Scalar));
                let value = function.invoke_with_args(ScalarFunctionArgs {
                    args: arguments.collect::<Result<_>>()?,
                    arg_fields: fields.clone(),
                    number_rows: 1,
                    return_field: Arc::clone(field),
                    config_options: Arc::clone(options),
                })?;
                match value {
                    ColumnarValue::Scalar(value) => Ok(value),
                    ColumnarValue::Array(values) => ScalarValue::try_from_array(&values, 0),
                }
            }
        }
    }
}

/// A plan that has its types, with what `place` says in the place of each of the largest
/// expressions that have such a value.
///
/// # Errors
/// If an expression has no type, and those of `place`.
pub fn replaced(
    plan: LogicalPlan,
    mut place: impl FnMut(StatementValue) -> Result<Expr>,
) -> Result<LogicalPlan> {
    let plan = plan.transform_down_with_subqueries(|node| {
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let replaced = expr.transform_down(|part| {
                Ok(match StatementValue::of(&part)? {
                    Some(value) => Transformed::new(place(value)?, true, TreeNodeRecursion::Jump),
                    None => Transformed::no(part),
                })
            })?;
            Ok(replaced.update_data(|expr| name.restore(expr)))
        })
    })?;
    Ok(plan.data)
}
