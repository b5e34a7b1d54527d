//! `sql_safe_updates`: UPDATE and DELETE that would read all rows of a table are refused.
//!
//! MySQL asks its optimizer whether a key is used. Here the conditions are asked whether they could
//! use one: each table must have a key whose first column is compared with a constant, or is equal
//! to a column of another table that has one. What leaves the rows of a few keys out (`<>`) is no
//! use of it, nor is a comparison with what each row computes anew (RAND()).

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, JoinConstraint,
    JoinOperator, Query, SelectItem, SetExpr, TableFactor, TableWithJoins, UnaryOperator, Value,
};
use mayfly_sql::change::{self, Mention};
use mayfly_sql::statement::RowChoice;
use mayfly_sql::{join_constraint, walk};
use mayfly_table::Table;
use mayfly_types::{ErrorCode, MySqlError};

use super::super::Job;
use super::super::evaluate::names_columns;

/// Functions that each row calls.
const CALLED_BY_ROW: [&str; 10] = [
    "get_lock",
    "is_free_lock",
    "is_used_lock",
    "rand",
    "release_all_locks",
    "release_lock",
    "sleep",
    "sysdate",
    "uuid",
    "uuid_short",
];

/// A table of the statement.
struct Part<'a> {
    mention: &'a Mention,
    table: Arc<Table>,
    /// Whether its rows are found by a key.
    is_found: bool,
}

impl Part<'_> {
    /// Whether an expression is a column that a key of the table begins with.
    fn begins_key(&self, expression: &Expr) -> bool {
        let Some(column) = self.column(expression) else {
            return false;
        };
        let mut keys = self.table.definition().keys.iter();
        keys.any(|key| key.parts.first().is_some_and(|part| part.column == column))
    }

    /// The place of the column that an expression is.
    fn column(&self, expression: &Expr) -> Option<usize> {
        let name = match expression {
            Expr::Nested(inner) => return self.column(inner),
            Expr::Identifier(name) => name,
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [.., table, name] if table.value == self.mention.alias => name,
                _ => return None,
            },
            _ => return None,
        };
        self.table.definition().column(&name.value)
    }

    /// Whether an expression is a column that a key begins with, and may be NULL.
    fn begins_nullable_key(&self, expression: &Expr) -> bool {
        let columns = &self.table.definition().columns;
        let column = self.column(expression);
        self.begins_key(expression) && column.is_some_and(|column| columns[column].is_nullable)
    }

    /// Whether an expression is a text that a key begins with.
    fn begins_text_key(&self, expression: &Expr) -> bool {
        let is_text = self.column(expression).is_some_and(|column| {
            let column_type = &self.table.definition().columns[column].column_type;
            column_type.is_text() || column_type.is_binary()
        });
        is_text && self.begins_key(expression)
    }

    /// Whether a condition, or its contrary, finds rows by a key, with constants alone.
    fn is_keyed(&self, condition: &Expr, is_contrary: bool) -> bool {
        match condition {
            Expr::Nested(inner) => self.is_keyed(inner, is_contrary),
            Expr::UnaryOp {
                op: UnaryOperator::Not,
                expr,
            } => self.is_keyed(expr, !is_contrary),
            Expr::BinaryOp { left, op, right } => match op {
                BinaryOperator::And | BinaryOperator::Or => {
                    let needs_both = (*op == BinaryOperator::Or) != is_contrary;
                    let (left, right) = (
                        self.is_keyed(left, is_contrary),
                        self.is_keyed(right, is_contrary),
                    );
                    if needs_both {
                        left && right
                    } else {
                        left || right
                    }
                }
                _ if is_comparison(op, is_contrary) => {
                    self.begins_key(left) && is_constant(right)
                        || self.begins_key(right) && is_constant(left)
                }
                _ => false,
            },
            Expr::Between {
                expr,
                negated,
                low,
                high,
            } => {
                let one = |bound: &Expr| self.begins_key(bound);
                let is_outside = *negated != is_contrary;
                self.begins_key(expr) && is_constant(low) && is_constant(high)
                    || !is_outside && is_constant(expr) && (one(low) || one(high))
            }
            Expr::InList {
                expr,
                list,
                negated,
            } => *negated == is_contrary && self.is_keyed_list(expr, list),
            Expr::InSubquery {
                expr,
                subquery,
                negated,
            } => *negated == is_contrary && self.begins_key(expr) && is_one_row(subquery),
            Expr::AnyOp {
                left,
                compare_op: BinaryOperator::Eq,
                right,
                ..
            } => {
                let is_one = matches!(&**right, Expr::Subquery(query) if is_one_row(query));
                !is_contrary && is_one && self.begins_key(left)
            }
            Expr::IsNull(column) | Expr::IsNotNull(column) => {
                match matches!(condition, Expr::IsNull(_)) != is_contrary {
                    true => self.begins_key(column),
                    // All rows are met where no row is NULL.
                    false => self.begins_nullable_key(column),
                }
            }
            Expr::Like {
                negated,
                expr,
                pattern,
                ..
            } => *negated == is_contrary && self.begins_text_key(expr) && has_beginning(pattern),
            // NOT of a column: it is zero.
            column => is_contrary && self.begins_key(column),
        }
    }

    /// Whether a column, or one of several, is a key's and compared with constants.
    fn is_keyed_list(&self, expression: &Expr, list: &[Expr]) -> bool {
        let Expr::Tuple(columns) = expression else {
            return self.begins_key(expression) && list.iter().all(is_constant);
        };
        let is_keyed = |(place, column): (usize, &Expr)| {
            let is_of_constants = |row: &Expr| matches!(row, Expr::Tuple(values) if values.get(place).is_some_and(is_constant));
            self.begins_key(column) && list.iter().all(is_of_constants)
        };
        columns.iter().enumerate().any(is_keyed)
    }
}

/// Whether a comparison, or its contrary, is one that a key can answer.
fn is_comparison(op: &BinaryOperator, is_contrary: bool) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq, Spaceship};
    match op {
        Lt | LtEq | Gt | GtEq => true,
        Eq | Spaceship => !is_contrary,
        NotEq => is_contrary,
        _ => false,
    }
}

/// A subquery is one: what it has of the outer tables is not looked at.
fn is_constant(expression: &Expr) -> bool {
    matches!(expression, Expr::Subquery(_))
        || !names_columns(expression) && !is_called_by_row(expression)
}

fn is_called_by_row(expression: &Expr) -> bool {
    walk::finds(expression, &mut |expr| {
        let Expr::Function(function) = expr else {
            return false;
        };
        let name = function.name.to_string();
        { CALLED_BY_ROW.iter() }.any(|known| known.eq_ignore_ascii_case(&name))
    })
}

/// Whether a subquery reads no table, so that its value is a constant.
fn is_one_row(query: &Query) -> bool {
    let SetExpr::Select(select) = &*query.body else {
        return false;
    };
    let is_plain = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
            is_constant(expr) && !matches!(expr, Expr::Subquery(_))
        }
        _ => false,
    };
    select.from.is_empty() && select.selection.is_none() && select.projection.iter().all(is_plain)
}

/// Whether a pattern of LIKE says with what a text begins.
fn has_beginning(pattern: &Expr) -> bool {
    match pattern {
        Expr::Nested(inner) => has_beginning(inner),
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => !text.starts_with(['%', '_']),
            Value::Number(..) => true,
            _ => false,
        },
        Expr::Function(function)
            if { &function.name }
                .to_string()
                .eq_ignore_ascii_case("concat") =>
        {
            let FunctionArguments::List(list) = &function.args else {
                return false;
            };
            let first = list.args.first();
            matches!(first, Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(first)))
                if !is_empty_text(first) && has_beginning(first))
                && !names_columns(pattern)
                && !is_called_by_row(pattern)
        }
        _ => false,
    }
}

fn is_empty_text(expression: &Expr) -> bool {
    matches!(expression, Expr::Value(value)
        if matches!(&value.value, Value::SingleQuotedString(text) if text.is_empty()))
}

/// Whether an expression is made of literals and operators alone.
fn is_literal(expression: &Expr) -> bool {
    match expression {
        Expr::Value(value) => !matches!(value.value, Value::Placeholder(_)),
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => is_literal(inner),
        Expr::BinaryOp { left, op, right } => {
            *op != BinaryOperator::Assignment && is_literal(left) && is_literal(right)
        }
        _ => false,
    }
}

/// The largest parts of a condition that are made of literals.
fn literals<'a>(condition: &'a Expr, found: &mut Vec<&'a Expr>) {
    match condition {
        _ if is_literal(condition) => found.push(condition),
        Expr::Nested(inner) => literals(inner, found),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And | BinaryOperator::Or,
            right,
        } => {
            literals(left, found);
            literals(right, found);
        }
        _ => {}
    }
}

/// Whether no row meets a condition, where some of its parts are never met.
fn is_never(condition: &Expr, never: &[&Expr]) -> bool {
    match condition {
        _ if never.contains(&condition) => true,
        Expr::Nested(inner) => is_never(inner, never),
        Expr::BinaryOp { left, op, right } => {
            let sides = (is_never(left, never), is_never(right, never));
            match op {
                BinaryOperator::And => sides.0 || sides.1,
                BinaryOperator::Or => sides.0 && sides.1,
                _ => false,
            }
        }
        _ => false,
    }
}

/// What a table is called in the statement.
fn name_of(table: &TableFactor) -> Option<&str> {
    let TableFactor::Table { name, alias, .. } = table else {
        return None;
    };
    match alias {
        Some(alias) => Some(&alias.name.value),
        None => name.0.last()?.as_ident().map(|name| name.value.as_str()),
    }
}

/// A condition, and the tables whose rows it leaves out.
struct Term<'a> {
    condition: &'a Expr,
    kept: Kept<'a>,
}

/// Which table an outer join keeps all rows of, whatever its condition is.
#[derive(Clone, Copy)]
enum Kept<'a> {
    Nothing,
    /// LEFT JOIN: all but the table that is joined.
    AllBut(&'a str),
    /// RIGHT JOIN: the table that is joined.
    Only(&'a str),
}

impl Kept<'_> {
    fn holds(self, part: &Part<'_>) -> bool {
        match self {
            Kept::Nothing => false,
            Kept::AllBut(name) => part.mention.alias != name,
            Kept::Only(name) => part.mention.alias == name,
        }
    }
}

/// What an outer join keeps. It is an inner one if a condition of WHERE asks for a value of a table
/// that it fills up with NULL.
fn kept<'a>(operator: &JoinOperator, name: Option<&'a str>) -> Kept<'a> {
    match (operator, name) {
        (JoinOperator::Left(_) | JoinOperator::LeftOuter(_), Some(name)) => Kept::AllBut(name),
        (JoinOperator::Right(_) | JoinOperator::RightOuter(_), Some(name)) => Kept::Only(name),
        _ => Kept::Nothing,
    }
}

/// Whether a condition is met by no row whose columns of a table are NULL.
fn rejects_nulls(part: &Part<'_>, condition: &Expr) -> bool {
    let is_value = match condition {
        Expr::BinaryOp { op, .. } => *op != BinaryOperator::Spaceship && is_comparison(op, false),
        Expr::Between { .. } | Expr::InList { .. } | Expr::Like { .. } => true,
        _ => false,
    };
    is_value && part.is_keyed(condition, false)
}

/// The conditions of the joins; USING and NATURAL are equalities of columns.
fn join_conditions<'a>(from: &'a [TableWithJoins], parts: &[Part<'_>]) -> Vec<(Expr, Kept<'a>)> {
    let part_of = |table: &TableFactor| {
        let name = name_of(table)?;
        parts.iter().find(|part| part.mention.alias == name)
    };
    let mut conditions = Vec::new();
    for tables in from {
        let mut before: Vec<&Part<'_>> = part_of(&tables.relation).into_iter().collect();
        for join in &tables.joins {
            let joined = part_of(&join.relation);
            let kept = kept(&join.join_operator, name_of(&join.relation));
            let names: Vec<&str> = match (join_constraint(&join.join_operator), joined) {
                (Some(JoinConstraint::On(condition)), _) => {
                    conditions.push((condition.clone(), kept));
                    Vec::new()
                }
                (Some(JoinConstraint::Using(names)), _) => { names.iter() }
                    .filter_map(|name| name.0.last()?.as_ident())
                    .map(|name| name.value.as_str())
                    .collect(),
                (Some(JoinConstraint::Natural), Some(joined)) => {
                    let columns = joined.table.definition().columns.iter();
                    columns.map(|column| column.name.as_str()).collect()
                }
                _ => Vec::new(),
            };
            let Some(joined) = joined else {
                continue;
            };
            for name in names {
                let has = |part: &&&Part<'_>| part.table.definition().column(name).is_some();
                for other in before.iter().filter(has) {
                    let equality = Expr::BinaryOp {
                        left: Box::new(column_of(other, name)),
                        op: BinaryOperator::Eq,
                        right: Box::new(column_of(joined, name)),
                    };
                    conditions.push((equality, kept));
                }
            }
            before.push(joined);
        }
    }
    conditions
}

fn column_of(part: &Part<'_>, name: &str) -> Expr {
    Expr::CompoundIdentifier(vec![Ident::new(&part.mention.alias), Ident::new(name)])
}

/// Whether each table of the statement is found by a key, some of them by columns of others.
fn all_found(parts: &mut [Part<'_>], terms: &[Term<'_>]) -> bool {
    for part in &mut *parts {
        part.is_found = { terms.iter() }
            .any(|term| !term.kept.holds(part) && part.is_keyed(term.condition, false));
    }
    loop {
        let next = (0..parts.len()).find(|place| {
            let part = &parts[*place];
            let is_of_found = |other: &Expr| {
                let mut found = parts.iter().filter(|part| part.is_found);
                found.any(|part| part.column(other).is_some())
            };
            let joins = |term: &Term<'_>| match term.condition {
                _ if term.kept.holds(part) => false,
                Expr::BinaryOp {
                    left,
                    op: BinaryOperator::Eq | BinaryOperator::Spaceship,
                    right,
                } => {
                    part.begins_key(left) && is_of_found(right)
                        || part.begins_key(right) && is_of_found(left)
                }
                _ => false,
            };
            !part.is_found && terms.iter().any(joins)
        });
        match next {
            Some(place) => parts[place].is_found = true,
            None => return parts.iter().all(|part| part.is_found),
        }
    }
}

impl Job {
    /// Refuses a change that finds its rows without a key, where `sql_safe_updates` is on.
    ///
    /// # Errors
    /// 1175.
    pub(super) async fn check_safe_change(
        &self,
        choice: &RowChoice,
        found: &[Mention],
        is_delete: bool,
    ) -> Result<(), MySqlError> {
        if !self.connection.local().variables.is_on("sql_safe_updates") {
            return Ok(());
        }
        let refused = || MySqlError::new(ErrorCode::UpdateWithoutKey, &[]);
        let is_alone = found.len() == 1 && change::only_table(&choice.from).is_some();
        let condition = choice.condition.as_ref();
        // A LIMIT is no condition of DELETE.
        if is_delete && is_alone && condition.is_none_or(is_constant) {
            return Err(refused());
        }
        if choice.limit.is_some() || self.is_never_met(condition).await? {
            return Ok(());
        }
        let mut parts = Vec::with_capacity(found.len());
        for mention in found {
            // Others are told why one is not there; what is made anew has no rows to protect.
            if let Ok(table) = self.table(&mention.table) {
                parts.push(Part {
                    mention,
                    table,
                    is_found: false,
                });
            }
        }
        let mut joins = join_conditions(&choice.from, &parts);
        let found = condition.map_or_else(Vec::new, walk::conjuncts);
        for (_, kept) in &mut joins {
            let mut filled = parts.iter().filter(|part| match *kept {
                Kept::Nothing => false,
                Kept::AllBut(_) | Kept::Only(_) => !kept.holds(part),
            });
            if filled.any(|part| found.iter().any(|term| rejects_nulls(part, term))) {
                *kept = Kept::Nothing;
            }
        }
        let all = |condition| Term {
            condition,
            kept: Kept::Nothing,
        };
        let mut terms: Vec<Term<'_>> = found.into_iter().map(all).collect();
        for (condition, kept) in &joins {
            let found = walk::conjuncts(condition).into_iter();
            terms.extend(found.map(|condition| Term {
                condition,
                kept: *kept,
            }));
        }
        match all_found(&mut parts, &terms) {
            true => Ok(()),
            false => Err(refused()),
        }
    }

    /// Whether what is made of literals in a condition says that no row meets it.
    async fn is_never_met(&self, condition: Option<&Expr>) -> Result<bool, MySqlError> {
        let Some(condition) = condition else {
            return Ok(false);
        };
        let mut found = Vec::new();
        literals(condition, &mut found);
        let mut never = Vec::new();
        for literal in found {
            let truth = Expr::IsTrue(Box::new(Expr::Nested(Box::new(literal.clone()))));
            let truth = self.evaluate(&truth).await?.cast_to(&DataType::Boolean);
            let is_false = matches!(truth, Ok(ScalarValue::Boolean(Some(false))));
            if is_false {
                never.push(literal);
            }
        }
        Ok(is_never(condition, &never))
    }
}
