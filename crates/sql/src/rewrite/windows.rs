//! Windows that are made from named ones: `OVER (w ORDER BY a)`, `WINDOW w2 AS (w1)`.
//!
//! The planner ignores the name in the parentheses. Here what the named window says is written out;
//! what is left are `OVER (...)` without a name and `OVER w`.
//!
//! **Source**: "Named Windows" of the MySQL manual.

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, NamedWindowDefinition, NamedWindowExpr, OrderByKind, Query, Select, SelectItem,
    SetExpr, WindowSpec, WindowType,
};
use mayfly_types::{ErrorCode, MySqlError};

use crate::walk::change_expressions;

/// Writes out the windows of a select list and of WINDOW.
///
/// # Errors
/// 3579 to 3583 and 3591 for names that are not there, several, or do not go together.
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
            && spec.window_name.is_some()
        {
            match whole(spec, "<unnamed window>", named, named.len()) {
                Ok(written) => *spec = written,
                Err(error) => failed = Err(error),
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
