//! Values of a query that assign variables: `SELECT @n := @n + 1, t.* FROM t`.
//!
//! Such a value hangs on the rows before, in their order, so that no plan has it. The query is left
//! with what the value reads, and the value is computed beside the plan, row by row. Owns the
//! division of the one from the other. Never: takes an assignment inside of another expression, or
//! anywhere but in the list of the outermost SELECT; that one stays, and is refused.

use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, Ident, OrderByKind, Query, SelectItem, SetExpr, Value,
    Visitor,
};
use mayfly_types::{ErrorCode, MySqlError};

use crate::references::{Variable, variable};
use crate::select_list::is_wildcard;
use crate::walk::{self, change_expressions, finds, has_subquery};

/// What is computed beside a plan.
#[derive(Debug)]
pub struct Assigned {
    /// The values, in the order of the list.
    pub items: Vec<Item>,
    /// How many columns the query has gained at its end: `input 0`, ...
    pub inputs: usize,
}

/// A value that is computed beside a plan.
#[derive(Debug)]
pub struct Item {
    /// Where it stands in the list.
    pub place: Place,
    /// The variable that it assigns, in lower case.
    pub variable: Option<String>,
    /// The value over the columns that the query has gained, and those of variables.
    pub value: Expr,
}

/// A place in a list of which a wildcard may be part.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// So many columns stand before it.
    FromStart(usize),
    /// So many stand behind it.
    FromEnd(usize),
}

/// The name of a column that a query has gained.
pub fn input_name(number: usize) -> String {
    format!("\u{1}input {number}")
}

/// The name of the column that has the value of a variable.
pub fn variable_name(name: &str) -> String {
    format!("\u{1}variable {name}")
}

/// Takes the values that hang on assigned variables out of a query; `None` if it assigns none in
/// its list. `aggregates` are the names of functions that aggregate, in lower case.
///
/// # Errors
/// 1235 where the order of the rows means nothing, or a value cannot be computed alone.
pub fn split(
    query: &mut Query,
    aggregates: &HashSet<String>,
) -> Result<Option<Assigned>, MySqlError> {
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Ok(None);
    };
    let names: BTreeSet<String> = { select.projection.iter() }
        .filter_map(|item| assignment(expression(item)?))
        .map(|(name, _)| name)
        .collect();
    if names.is_empty() {
        return Ok(None);
    }
    let groups = match &select.group_by {
        GroupByExpr::Expressions(keys, with) => !keys.is_empty() || !with.is_empty(),
        GroupByExpr::All(_) => true,
    };
    let reads = |expr: &Expr| mentions(expr, &names).is_some();
    let ordered = query
        .order_by
        .iter()
        .flat_map(|order_by| match &order_by.kind {
            OrderByKind::Expressions(list) => list.as_slice(),
            OrderByKind::All(_) => &[],
        });
    let ordered: Vec<&Expr> = ordered.map(|by| &by.expr).collect();
    let is_read_else = select.selection.iter().any(reads) || ordered.iter().any(|by| reads(by));
    if groups || select.distinct.is_some() || select.having.is_some() || is_read_else {
        return Err(refused());
    }
    let count = select.projection.len();
    let wildcards: Vec<usize> = (0..count)
        .filter(|place| is_wildcard(&select.projection[*place]))
        .collect();
    let mut items = Vec::new();
    let mut inputs: Vec<Expr> = Vec::new();
    for (index, item) in select.projection.iter_mut().enumerate() {
        let alias = match &*item {
            SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.to_lowercase()),
            _ => None,
        };
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
            continue;
        };
        let (variable, mut value) = match assignment(expr) {
            Some((name, value)) => (Some(name), value.clone()),
            None if reads(expr) => (None, expr.clone()),
            None => continue,
        };
        let is_ordered_by = |by: &&Expr| match by {
            Expr::Identifier(name) => Some(name.value.to_lowercase()) == alias,
            Expr::Value(number) => number.value == Value::Number((index + 1).to_string(), false),
            _ => false,
        };
        if ordered.iter().any(is_ordered_by) {
            return Err(refused());
        }
        if !reads(&value) {
            // What hangs on no row before is the plan's.
            let name = Ident::with_quote('`', input_name(inputs.len()));
            inputs.push(std::mem::replace(&mut value, Expr::Identifier(name)));
        } else if has_subquery(&value) || finds(&value, &mut |expr| is_beyond(expr, aggregates)) {
            return Err(refused());
        }
        change_expressions(&mut value, &mut |expr| take_out(expr, &names, &mut inputs));
        let place = match (wildcards.first(), wildcards.last()) {
            (Some(first), _) if index < *first => Place::FromStart(index),
            (_, Some(last)) if index > *last => Place::FromEnd(count - 1 - index),
            (None, _) => Place::FromStart(index),
            _ => return Err(refused()),
        };
        items.push(Item {
            place,
            variable,
            value,
        });
        // In parentheses, so that it is labelled as it was written, and not as a constant.
        *expr = Expr::Nested(Box::new(Expr::Value(Value::Null.into())));
    }
    let gained = inputs.len();
    let inputs = inputs.into_iter().enumerate();
    select
        .projection
        .extend(inputs.map(|(number, expr)| SelectItem::ExprWithAlias {
            expr,
            alias: Ident::with_quote('`', input_name(number)),
        }));
    Ok(Some(Assigned {
        items,
        inputs: gained,
    }))
}

fn refused() -> MySqlError {
    let what = "assignment to a user variable in an expression";
    MySqlError::new(ErrorCode::NotSupportedYet, &[&what])
}

fn expression(item: &SelectItem) -> Option<&Expr> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

/// Whether an expression is computed from several rows, or assigns a variable itself.
fn is_beyond(expr: &Expr, aggregates: &HashSet<String>) -> bool {
    match expr {
        Expr::BinaryOp { op, .. } => *op == BinaryOperator::Assignment,
        Expr::Function(function) => {
            let name = function.name.to_string().to_ascii_lowercase();
            function.over.is_some() || aggregates.contains(&name)
        }
        _ => false,
    }
}

/// The variable and the value of an assignment.
fn assignment(expr: &Expr) -> Option<(String, &Expr)> {
    match expr {
        Expr::Nested(inner) => assignment(inner),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Assignment,
            right,
        } => match variable(left)? {
            Variable::User(name) => Some((name, right)),
            Variable::System(_) => None,
        },
        _ => None,
    }
}

/// Puts columns that the query gains, and variables that it assigns, in the place of what is read.
fn take_out(expr: &mut Expr, names: &BTreeSet<String>, inputs: &mut Vec<Expr>) {
    let name = match variable(expr) {
        Some(Variable::User(name)) if names.contains(&name) => variable_name(&name),
        Some(_) => return,
        None => match expr {
            Expr::Identifier(name) if name.value.starts_with('\u{1}') => return,
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => {
                let known = inputs.iter().position(|input| input == expr);
                input_name(known.unwrap_or_else(|| {
                    inputs.push(expr.clone());
                    inputs.len() - 1
                }))
            }
            _ => return,
        },
    };
    *expr = Expr::Identifier(Ident::with_quote('`', name));
}

/// The variable of some that an expression reads, in its subqueries too.
fn mentions(expr: &Expr, names: &BTreeSet<String>) -> Option<String> {
    struct Find<'a> {
        names: &'a BTreeSet<String>,
        found: Option<String>,
    }
    impl Visitor for Find<'_> {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match variable(expr) {
                Some(Variable::User(name)) if self.names.contains(&name) => {
                    self.found = Some(name);
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }
    let mut find = Find { names, found: None };
    let _ = walk::read(expr, &mut find);
    find.found
}
