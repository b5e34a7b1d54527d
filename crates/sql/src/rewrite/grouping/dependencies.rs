//! Which columns the equalities of a FROM list and of WHERE make depend on others.
//!
//! In WHERE and in the condition of an inner join, `a = b` makes each side depend on the other, and
//! `a = 1` makes `a` depend on nothing. An outer join can leave out that condition, with NULL for
//! the columns of its optional side, so there
//!
//! - two columns of the optional side still depend on each other: both are NULL, or both are equal;
//! - a column of it that equals a column of the other side or a constant depends on all columns of
//!   the other side in the condition: they decide whether there is a partner.
//!
//! An outer join whose optional side WHERE wants to have a value is an inner join.

use std::collections::HashSet;
use std::ops::Range;
use std::rc::Rc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, JoinConstraint, JoinOperator, ObjectNamePart, Select,
    TableFactor, TableWithJoins, UnaryOperator, Value,
};
use mayfly_types::COLLATION_KEY;

use super::tables::{Place, Tables};
use crate::comparison::compares;
use crate::functions::own::{MARK, SET_LAST_INSERT_ID};
use crate::{from_list, repeatable, walk};

/// A column has one value where others have one value each.
pub(super) struct Dependency {
    pub(super) from: Rc<[Place]>,
    pub(super) to: Place,
    /// Whether an outer join around the tables leaves it true: columns that are all NULL depend on
    /// columns that are all NULL.
    survives: bool,
}

/// The dependencies of a select by its conditions.
pub(super) fn dependencies(select: &Select, tables: &Tables<'_>) -> Vec<Dependency> {
    let mut conditions = select
        .selection
        .as_ref()
        .map_or_else(Vec::new, walk::conjuncts);
    let wanted = conditions.iter().flat_map(|condition| wanted(condition));
    let mut joins = Joins {
        tables,
        wanted: wanted
            .filter_map(|column| Some(tables.find(column)?.table))
            .collect(),
        next: 0,
        found: Vec::new(),
    };
    for table in &select.from {
        conditions.extend(joins.joined(table).conditions);
    }
    let equalities: Vec<Equality<'_>> = { conditions.iter() }
        .filter_map(|condition| equality(condition, tables))
        .collect();
    let mut found = joins.found;
    for Equality { column, other } in equalities {
        let from = match other {
            Other::Column(other) => {
                found.push(Dependency::of(vec![column], other));
                vec![other]
            }
            Other::Constant(constant) if fits(constant, tables.field(column)) => Vec::new(),
            Other::Constant(_) => continue,
        };
        found.push(Dependency::of(from, column));
    }
    found
}

impl Dependency {
    pub(super) fn of(from: impl Into<Rc<[Place]>>, to: Place) -> Dependency {
        Dependency {
            from: from.into(),
            to,
            survives: true,
        }
    }
}

/// Tables that are joined, and the conditions that all rows of the join meet.
struct Nest<'a> {
    tables: Range<usize>,
    conditions: Vec<&'a Expr>,
}

/// Walks through joins.
struct Joins<'a, 'b> {
    // fixed
    tables: &'b Tables<'a>,
    /// The tables of which WHERE wants a column that is not NULL.
    wanted: HashSet<usize>,
    // state
    /// The number of the next table.
    next: usize,
    /// The dependencies of outer joins.
    found: Vec<Dependency>,
}

impl Joins<'_, '_> {
    fn factor<'q>(&mut self, factor: &'q TableFactor) -> Nest<'q> {
        if let TableFactor::NestedJoin {
            table_with_joins, ..
        } = factor
        {
            return self.joined(table_with_joins);
        }
        let table = self.next;
        self.next += 1;
        Nest {
            tables: table..self.next,
            conditions: Vec::new(),
        }
    }

    fn joined<'q>(&mut self, table: &'q TableWithJoins) -> Nest<'q> {
        let mut left = self.factor(&table.relation);
        for join in &table.joins {
            let right = self.factor(&join.relation);
            let on = match from_list::constraint(&join.join_operator) {
                Some(JoinConstraint::On(condition)) => walk::conjuncts(condition),
                _ => Vec::new(),
            };
            let tables = left.tables.start..right.tables.end;
            let conditions = match &join.join_operator {
                JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => self.outer(left, right, on),
                JoinOperator::Right(_) | JoinOperator::RightOuter(_) => self.outer(right, left, on),
                JoinOperator::Join(_)
                | JoinOperator::Inner(_)
                | JoinOperator::StraightJoin(_)
                | JoinOperator::CrossJoin(_) => {
                    let both = left.conditions.into_iter().chain(right.conditions);
                    both.chain(on).collect()
                }
                _ => Vec::new(),
            };
            left = Nest { tables, conditions };
        }
        left
    }

    /// Finds the dependencies of an outer join; returns the conditions that all its rows meet.
    fn outer<'q>(&mut self, strong: Nest<'q>, weak: Nest<'q>, on: Vec<&'q Expr>) -> Vec<&'q Expr> {
        let mut conditions = weak.conditions;
        conditions.extend(on);
        if weak
            .tables
            .clone()
            .any(|table| self.wanted.contains(&table))
        {
            conditions.extend(strong.conditions);
            return conditions;
        }
        let is_weak = |place: &Place| weak.tables.contains(&place.table);
        self.found
            .retain(|found| found.survives || !is_weak(&found.to));
        let outside = self.outside(&conditions, &weak.tables);
        for condition in conditions {
            let Some(Equality { column, other }) = equality(condition, self.tables) else {
                continue;
            };
            match (other, &outside) {
                (Other::Column(other), _) if is_weak(&column) && is_weak(&other) => {
                    self.found.push(Dependency::of(vec![column], other));
                    self.found.push(Dependency::of(vec![other], column));
                }
                (Other::Column(other), Some(outside)) if is_weak(&column) != is_weak(&other) => {
                    let to = if is_weak(&column) { column } else { other };
                    self.found.push(Dependency::of(outside.clone(), to));
                }
                (Other::Constant(constant), Some(outside))
                    if is_weak(&column) && fits(constant, self.tables.field(column)) =>
                {
                    // A row of the other side may have a partner and NULL in these columns.
                    self.found.push(Dependency {
                        survives: false,
                        ..Dependency::of(outside.clone(), column)
                    });
                }
                _ => {}
            }
        }
        strong.conditions
    }

    /// The columns of other tables in a condition; `None` if they do not decide of each row whether
    /// it is met.
    fn outside(&self, conditions: &[&Expr], weak: &Range<usize>) -> Option<Rc<[Place]>> {
        let mut outside = HashSet::new();
        for condition in conditions {
            let is_unknown = walk::finds(*condition, &mut |expr| match expr {
                Expr::Identifier(_) | Expr::CompoundIdentifier(_) => match self.tables.find(expr) {
                    Some(place) => {
                        if !weak.contains(&place.table) {
                            outside.insert(place);
                        }
                        false
                    }
                    None => true,
                },
                Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => true,
                Expr::Function(function) => !is_repeatable(function),
                _ => false,
            });
            if is_unknown {
                return None;
            }
        }
        Some(outside.into_iter().collect())
    }
}

fn is_repeatable(function: &Function) -> bool {
    let is_own = match function.name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] => {
            name.value.starts_with(MARK) && name.value != SET_LAST_INSERT_ID
        }
        _ => false,
    };
    is_own || repeatable::is_function(function)
}

/// A column and what equals it.
struct Equality<'a> {
    column: Place,
    other: Other<'a>,
}

enum Other<'a> {
    Column(Place),
    Constant(&'a Expr),
}

/// The sides of `column = column` or `column = constant`; `None` if equal values can differ.
fn equality<'a>(condition: &'a Expr, tables: &Tables<'_>) -> Option<Equality<'a>> {
    let Expr::BinaryOp {
        left,
        op: BinaryOperator::Eq,
        right,
    } = condition
    else {
        return None;
    };
    let (column, other) = match (tables.find(left), tables.find(right)) {
        (Some(left), Some(right)) if are_alike(tables.field(left), tables.field(right)) => {
            (left, Other::Column(right))
        }
        (Some(left), None) => (left, Other::Constant(right)),
        (None, Some(right)) => (right, Other::Constant(left)),
        _ => return None,
    };
    Some(Equality { column, other })
}

/// Whether values of two columns that are equal are one value.
fn are_alike(one: Option<FieldRef>, other: Option<FieldRef>) -> bool {
    let (Some(one), Some(other)) = (one, other) else {
        return false;
    };
    let are_whole = one.data_type().is_integer() && other.data_type().is_integer();
    let collation = |field: &FieldRef| field.metadata().get(COLLATION_KEY).cloned();
    are_whole || (one.data_type() == other.data_type() && collation(&one) == collation(&other))
}

/// Whether an expression is a constant, and one that only one value of a column equals: a text
/// compared with a number is equal to `'1'` and to `'01'`.
fn fits(constant: &Expr, column: Option<FieldRef>) -> bool {
    let Some(column) = column else {
        return false;
    };
    let is_number = column.data_type().is_numeric();
    let is_text = matches!(
        column.data_type(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    );
    match constant {
        Expr::Nested(inner) => fits(inner, Some(column)),
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => is_number && fits(expr, Some(column)),
        Expr::Value(value) => match &value.value {
            Value::Number(..) => is_number,
            Value::SingleQuotedString(_) => is_text || column.data_type().is_temporal(),
            _ => false,
        },
        _ => false,
    }
}

/// What is not NULL if a condition is met, as far as it may be a column.
fn wanted(condition: &Expr) -> Vec<&Expr> {
    match condition {
        Expr::BinaryOp { left, op, right } if compares(op) => vec![left, right],
        Expr::IsNotNull(expr)
        | Expr::InList { expr, .. }
        | Expr::Between { expr, .. }
        | Expr::Like { expr, .. } => vec![expr],
        _ => Vec::new(),
    }
}
