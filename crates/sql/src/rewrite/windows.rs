//! Windows that are made from named ones: `OVER (w ORDER BY a)`, `WINDOW w2 AS (w1)`.
//!
//! The planner ignores the name in the parentheses. Here what the named window says is written out;
//! what is left are `OVER (...)` without a name and `OVER w`.
//!
//! The planner has a number for the distance of a frame, whose text it hands on. Here an interval
//! becomes two numbers, its months and its microseconds, which the typing reads again
//! (`typing/frames.rs`).
//!
//! **Source**: "Named Windows" and "Window Function Frame Specification" of the MySQL manual.

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Interval, NamedWindowDefinition, NamedWindowExpr, OrderByKind, Query, Select,
    SelectItem, SetExpr, UnaryOperator, Value, WindowFrameBound, WindowFrameUnits, WindowSpec,
    WindowType,
};
use mayfly_types::{ErrorCode, MySqlError};

use crate::functions::date::interval;
use crate::typing::syntax;
use crate::walk::change_expressions;

/// What a window without a name is called in errors.
const UNNAMED: &str = "<unnamed window>";

/// Writes out the windows of a select list and of WINDOW.
///
/// # Errors
/// 3579 to 3583 and 3591 for names that are not there, several, or do not go together; 3586 and
/// 3596 for intervals that are no distance.
pub(super) fn write_out(select: &mut Select) -> Result<(), MySqlError> {
    let named = select.named_window.clone();
    for (at, definition) in named.iter().enumerate() {
        if named[..at]
            .iter()
            .any(|earlier| is_same(&earlier.0, &definition.0))
        {
            let name = &definition.0.value;
            return Err(MySqlError::new(ErrorCode::WindowDuplicateName, &[name]));
        }
        if let NamedWindowExpr::WindowSpec(spec) = &mut select.named_window[at].1 {
            *spec = whole(spec, &definition.0.value, &named, named.len())?;
            write_distances(spec, &definition.0.value)?;
        }
    }
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            in_expression(expr, &named)?;
        }
    }
    Ok(())
}

/// Writes out the windows of an ORDER BY.
///
/// # Errors
/// As [`write_out`].
pub(super) fn write_out_order(query: &mut Query) -> Result<(), MySqlError> {
    let (SetExpr::Select(select), Some(order_by)) = (query.body.as_ref(), &mut query.order_by)
    else {
        return Ok(());
    };
    let OrderByKind::Expressions(list) = &mut order_by.kind else {
        return Ok(());
    };
    { list.iter_mut() }.try_for_each(|by| in_expression(&mut by.expr, &select.named_window))
}

fn in_expression(expr: &mut Expr, named: &[NamedWindowDefinition]) -> Result<(), MySqlError> {
    let mut failed = Ok(());
    change_expressions(expr, &mut |expr| {
        if let Expr::Function(function) = expr
            && let Some(WindowType::WindowSpec(spec)) = &mut function.over
        {
            let written = match spec.window_name.is_some() {
                true => whole(spec, UNNAMED, named, named.len()).map(|written| *spec = written),
                false => Ok(()),
            };
            if let Err(error) = written.and_then(|()| write_distances(spec, UNNAMED)) {
                failed = Err(error);
            }
        }
    });
    failed
}

fn is_same(a: &Ident, b: &Ident) -> bool {
    a.value.eq_ignore_ascii_case(&b.value)
}

/// A window with what the one says that it is made from; `depth` names may still be followed.
fn whole(
    spec: &WindowSpec,
    name: &str,
    named: &[NamedWindowDefinition],
    depth: usize,
) -> Result<WindowSpec, MySqlError> {
    let Some(base_name) = &spec.window_name else {
        return Ok(spec.clone());
    };
    let base = base(base_name, named, depth)?;
    if !spec.partition_by.is_empty() {
        return Err(MySqlError::new(ErrorCode::WindowNoPartition, &[]));
    }
    if base.window_frame.is_some() {
        let arguments: [&dyn std::fmt::Display; 1] = [&base_name.value];
        return Err(MySqlError::new(ErrorCode::WindowNoInheritFrame, &arguments));
    }
    if !spec.order_by.is_empty() && !base.order_by.is_empty() {
        let code = ErrorCode::WindowNoRedefineOrder;
        return Err(MySqlError::new(code, &[&name, &base_name.value]));
    }
    let order_by = match base.order_by.is_empty() {
        true => spec.order_by.clone(),
        false => base.order_by,
    };
    Ok(WindowSpec {
        window_name: None,
        partition_by: base.partition_by,
        order_by,
        window_frame: spec.window_frame.clone(),
    })
}

fn base(
    name: &Ident,
    named: &[NamedWindowDefinition],
    depth: usize,
) -> Result<WindowSpec, MySqlError> {
    let Some(definition) = named.iter().find(|window| is_same(&window.0, name)) else {
        return Err(MySqlError::new(ErrorCode::NoSuchWindow, &[&name.value]));
    };
    let Some(depth) = depth.checked_sub(1) else {
        return Err(MySqlError::new(ErrorCode::WindowCircular, &[]));
    };
    match &definition.1 {
        NamedWindowExpr::NamedWindow(other) => base(other, named, depth),
        NamedWindowExpr::WindowSpec(spec) => whole(spec, &definition.0.value, named, depth),
    }
}

/// Writes the intervals at the ends of a frame as the planner takes them.
fn write_distances(spec: &mut WindowSpec, window: &str) -> Result<(), MySqlError> {
    let Some(frame) = &mut spec.window_frame else {
        return Ok(());
    };
    for bound in [Some(&mut frame.start_bound), frame.end_bound.as_mut()] {
        let Some(
            WindowFrameBound::Preceding(Some(distance))
            | WindowFrameBound::Following(Some(distance)),
        ) = bound
        else {
            continue;
        };
        let Expr::Interval(interval) = distance.as_ref() else {
            continue;
        };
        if frame.units != WindowFrameUnits::Range {
            return Err(MySqlError::new(ErrorCode::WindowRowsInterval, &[&window]));
        }
        let text = distance_text(interval, window)?;
        // The planner hands the text of a number on as it is.
        **distance = Expr::Value(Value::Number(text, false).with_empty_span());
    }
    Ok(())
}

/// The months and the microseconds of an interval.
fn distance_text(written: &Interval, window: &str) -> Result<String, MySqlError> {
    let (amount, unit) = syntax::parts(written.clone());
    let Some(amount) = constant_text(&amount) else {
        let what = "an expression as the distance of a frame";
        return Err(MySqlError::new(ErrorCode::NotSupportedYet, &[&what]));
    };
    let interval = amount.and_then(|amount| interval::of_text(&amount, &unit));
    match interval.filter(|interval| interval.months >= 0 && interval.micros >= 0) {
        Some(interval) => Ok(format!("{} {}", interval.months, interval.micros)),
        None => Err(MySqlError::new(ErrorCode::WindowFrame, &[&window])),
    }
}

/// The text of a constant, which is none where it is NULL.
fn constant_text(expr: &Expr) -> Option<Option<String>> {
    match expr {
        Expr::Nested(inner) => constant_text(inner),
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => Some(constant_text(expr)?.map(|text| format!("-{text}"))),
        Expr::Value(value) => match &value.value {
            Value::Null => Some(None),
            Value::Number(text, _)
            | Value::SingleQuotedString(text)
            | Value::DoubleQuotedString(text) => Some(Some(text.clone())),
            _ => None,
        },
        _ => None,
    }
}
