//! The columns that CREATE TABLE ... SELECT declares.
//!
//! Values are planned with the widest type that holds them, a table is declared with the narrowest:
//! `1` is an INT, `'abc'` a VARCHAR(3). The rules are MariaDB's and MySQL's; they look at what
//! a plan computes, so they need the plan before it is optimised.
//!
//! **Never** changes what a query computes. A length that is too short would be error 1406 when the
//! row is written, never a text that was cut.
//!
//! **Source**: answers of MariaDB 10.11 to SHOW CREATE TABLE.

mod aggregates;
mod calls;
mod shape;

use std::cell::Cell;

use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{Case, WindowFunction};
use datafusion::logical_expr::{
    Expr, ExprSchemable, JoinType, LogicalPlan, Operator, WindowFunctionDefinition,
};
use mayfly_types::ColumnType;

use crate::typing::except::is_set_operation;
use shape::{Kind, Shape, together};

/// A column of a new table.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Its type.
    pub column_type: ColumnType,
    /// Whether it takes NULL.
    pub nullable: bool,
}

/// The columns that take the rows of a plan.
pub fn columns(plan: &LogicalPlan) -> Vec<Stored> {
    STEPS.set(u32::MAX);
    (0..plan.schema().fields().len())
        .map(|index| {
            let shape = column(plan, index);
            let column_type = if is_union(plan) {
                shape.type_in_union()
            } else {
                shape.column_type()
            };
            Stored {
                column_type,
                nullable: shape.nullable,
            }
        })
        .collect()
}

/// What a client is told of the columns of a plan that are computed.
pub(crate) fn computed(
    plan: &LogicalPlan,
    is_computed: &dyn Fn(usize) -> bool,
) -> Vec<Option<Stored>> {
    STEPS.set(STEPS_MAX);
    let described = |index: usize| {
        is_computed(index).then(|| {
            let shape = column(plan, index);
            Stored {
                column_type: shape.type_in_union(),
                nullable: shape.nullable,
            }
        })
    };
    (0..plan.schema().fields().len()).map(described).collect()
}

/// How many columns are looked at for one statement: one that names a column twice, of a derived
/// table that does so too, and so on, would be looked at for ever.
const STEPS_MAX: u32 = 10_000;

thread_local! {
    static STEPS: Cell<u32> = const { Cell::new(STEPS_MAX) };
}

/// Whether another column may be looked at.
fn has_step() -> bool {
    STEPS.with(|steps| {
        let left = steps.get();
        steps.set(left.saturating_sub(1));
        left > 0
    })
}

fn is_union(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Union(_) => true,
        LogicalPlan::Join(join) => is_set_operation(join),
        // EXCEPT ALL and INTERSECT ALL leave out the numbers of equal rows.
        LogicalPlan::Projection(projection) => match projection.input.as_ref() {
            LogicalPlan::Join(join) => is_set_operation(join),
            _ => false,
        },
        LogicalPlan::Distinct(_) | LogicalPlan::Sort(_) | LogicalPlan::Limit(_) => {
            plan.inputs().into_iter().all(is_union)
        }
        _ => false,
    }
}

/// The values of a column of a plan.
fn column(plan: &LogicalPlan, index: usize) -> Shape {
    if !has_step() {
        return nullable(of_field(plan.schema(), index));
    }
    match plan {
        LogicalPlan::Projection(projection) => shape(&projection.expr[index], &projection.input),
        LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Distinct(_)
        | LogicalPlan::Repartition(_)
        | LogicalPlan::Subquery(_) => match plan.inputs().as_slice() {
            [input] if input.schema().fields().len() > index => column(input, index),
            _ => of_field(plan.schema(), index),
        },
        LogicalPlan::Window(window) => {
            let width = window.input.schema().fields().len();
            match index.checked_sub(width) {
                None => column(&window.input, index),
                Some(index) => shape(&window.window_expr[index], &window.input),
            }
        }
        LogicalPlan::Aggregate(aggregate) => {
            let plain = !matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]);
            match index.checked_sub(aggregate.group_expr.len()) {
                None if plain => shape(&aggregate.group_expr[index], &aggregate.input),
                Some(index) if plain => shape(&aggregate.aggr_expr[index], &aggregate.input),
                _ => nullable(of_field(plan.schema(), index)),
            }
        }
        LogicalPlan::Join(join) if is_set_operation(join) => {
            together(&[column(&join.left, index), column(&join.right, index)])
        }
        LogicalPlan::Join(join) => {
            let width = join.left.schema().fields().len();
            let (left, right) = match join.join_type {
                JoinType::Inner => (false, false),
                JoinType::Left => (false, true),
                JoinType::Right => (true, false),
                JoinType::Full => (true, true),
                JoinType::LeftSemi | JoinType::LeftAnti => {
                    return of_field(plan.schema(), index).without_list();
                }
                _ => return of_field(plan.schema(), index),
            };
            let (shape, outer) = match index.checked_sub(width) {
                None => (column(&join.left, index), left),
                Some(index) => (column(&join.right, index), right),
            };
            if outer { nullable(shape) } else { shape }
        }
        LogicalPlan::Union(union) => {
            let shapes: Vec<Shape> = union
                .inputs
                .iter()
                .map(|input| column(input, index))
                .collect();
            together(&shapes)
        }
        plan => of_field(plan.schema(), index),
    }
}

fn of_field(schema: &DFSchema, index: usize) -> Shape {
    let field = schema.field(index);
    Shape::of(&ColumnType::from_arrow(field), field.is_nullable())
}

fn nullable(shape: Shape) -> Shape {
    Shape {
        nullable: true,
        ..shape
    }
}

/// The values of an expression over the rows of a plan.
fn shape(expr: &Expr, input: &LogicalPlan) -> Shape {
    let of = |expr: &Expr| shape(expr, input);
    match expr {
        Expr::Alias(alias) => of(&alias.expr),
        Expr::Column(named) => match input.schema().maybe_index_of_column(named) {
            Some(index) => column(input, index),
            None => by_field(expr, input),
        },
        Expr::Literal(value, _) => literal(value),
        Expr::ScalarFunction(call) => {
            // Once: calls in calls are as deep as they are long.
            let shapes: Vec<Shape> = call.args.iter().map(of).collect();
            let is_never_null = calls::is_never_null(call.func.name())
                || calls::is_double(call, &shapes).is_some_and(|nullable| !nullable);
            let shape = calls::shape(call, shapes).unwrap_or_else(|| by_field(expr, input));
            if is_never_null {
                shape.computed(false)
            } else {
                shape
            }
        }
        Expr::AggregateFunction(call) => {
            let arguments: Vec<Shape> = call.params.args.iter().map(of).collect();
            aggregates::shape(call.func.name(), &arguments).unwrap_or_else(|| by_field(expr, input))
        }
        Expr::WindowFunction(window) => {
            of_window(window, &of).unwrap_or_else(|| by_field(expr, input))
        }
        Expr::Case(case) => of_case(case, &of),
        Expr::Cast(cast) => calls::cast(&of(&cast.expr), &ColumnType::from_arrow(&cast.field)),
        Expr::BinaryExpr(binary) => {
            let (left, right) = (of(&binary.left), of(&binary.right));
            let never_null = matches!(
                binary.op,
                Operator::IsDistinctFrom | Operator::IsNotDistinctFrom
            );
            let nullable = !never_null && (left.nullable || right.nullable);
            Shape::small(1, nullable)
        }
        Expr::Not(inner) => Shape::small(1, of(inner).nullable),
        Expr::Like(like) => Shape::small(1, of(&like.expr).nullable || of(&like.pattern).nullable),
        Expr::Between(between) => Shape::small(
            1,
            [&between.expr, &between.low, &between.high]
                .into_iter()
                .any(|expr| of(expr).nullable),
        ),
        Expr::InList(list) => Shape::small(
            1,
            of(&list.expr).nullable || list.list.iter().any(|expr| of(expr).nullable),
        ),
        Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::IsNotUnknown(_)
        | Expr::Exists(_) => Shape::small(1, false),
        Expr::InSubquery(_) => Shape::small(1, true),
        Expr::ScalarSubquery(query) => {
            let is_constant = matches!(
                query.subquery.as_ref(),
                LogicalPlan::Projection(projection)
                    if matches!(projection.input.as_ref(), LogicalPlan::EmptyRelation(_))
            );
            let found = column(&query.subquery, 0);
            Shape {
                nullable: found.nullable || !is_constant,
                ..found.without_list()
            }
        }
        _ => by_field(expr, input),
    }
}

/// What the plan says of an expression.
fn by_field(expr: &Expr, input: &LogicalPlan) -> Shape {
    match expr.to_field(input.schema()) {
        Ok((_, field)) => {
            let of = Shape::of(&ColumnType::from_arrow(&field), true);
            of.computed(true)
        }
        Err(_) => Shape::new(Kind::Null, true),
    }
}

fn digits(mut value: u128) -> u32 {
    let mut count = 1;
    while value >= 10 {
        value /= 10;
        count += 1;
    }
    count
}

fn literal(value: &ScalarValue) -> Shape {
    let int = |value: i128, unsigned: bool| {
        let digits = digits(value.unsigned_abs());
        let chars = digits + u32::from(value < 0);
        let kind = Kind::Int {
            unsigned,
            digits,
            chars,
            is_int: chars < 10,
        };
        Shape::new(kind, false)
    };
    if value.is_null() {
        return Shape::new(Kind::Null, true);
    }
    match value {
        ScalarValue::Boolean(_) => Shape::small(1, false),
        ScalarValue::Int64(Some(value)) => int((*value).into(), false),
        ScalarValue::UInt64(Some(value)) => int((*value).into(), true),
        ScalarValue::Decimal128(Some(value), _, scale) => {
            let scale = u32::from(scale.unsigned_abs());
            let all = digits(value.unsigned_abs()).max(scale + 1);
            let before = all - scale;
            Shape::new(Kind::Decimal { before, scale }, false)
        }
        ScalarValue::Binary(Some(bytes)) | ScalarValue::BinaryView(Some(bytes)) => {
            let bytes = bytes.len() as u64;
            Shape::new(Kind::Bytes { bytes }, false)
        }
        value => match value.try_as_str() {
            Some(Some(text)) => Shape::text(text.chars().count() as u64, false),
            _ => {
                let of = ColumnType::from_data_type(&value.data_type());
                Shape::of(&of, false).computed(false)
            }
        },
    }
}

fn of_case(case: &Case, of: &dyn Fn(&Expr) -> Shape) -> Shape {
    let mut branches: Vec<Shape> = case
        .when_then_expr
        .iter()
        .map(|(_, then)| of(then))
        .collect();
    match &case.else_expr {
        Some(otherwise) => branches.push(of(otherwise)),
        None => branches.push(Shape::new(Kind::Null, true)),
    }
    let all = together(&branches);
    let nullable = all.nullable;
    all.computed(nullable)
}

fn of_window(window: &WindowFunction, of: &dyn Fn(&Expr) -> Shape) -> Option<Shape> {
    let arguments: Vec<Shape> = window.params.args.iter().map(of).collect();
    match &window.fun {
        WindowFunctionDefinition::AggregateUDF(function) => {
            Some(aggregates::shape(function.name(), &arguments)?.without_list())
        }
        WindowFunctionDefinition::WindowUDF(function) => match function.name() {
            "row_number" | "rank" | "dense_rank" | "ntile" => Some(Shape::big(false, false)),
            "lag" | "lead" | "first_value" | "last_value" | "nth_value" => {
                Some(arguments.first()?.clone().computed(true))
            }
            _ => None,
        },
    }
}
