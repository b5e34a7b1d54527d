//! Which key of a table answers the conditions of a query.
//!
//! Owns the reading of conditions: a column and a constant, compared. Never decides what a row is
//! worth: every condition is checked again above the scan, so that a search may find too much.
//!
//! A key is worth its while when it finds few of the rows; how many it finds is counted in the
//! index itself, not guessed.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Bound;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::utils::split_binary;
use datafusion::logical_expr::{BinaryExpr, Expr, Like, Operator};
use mayfly_table::{Search, Table};
use mayfly_types::ColumnType;

use super::limits::{ROWS_FEW, ROWS_MAX, ROWS_PER_SEARCHED};
use crate::error::table_error;

/// Searches of one scan: values of an IN list, or products of several.
const SEARCHES_MAX: usize = 1024;

/// A key and what is asked of it.
pub(crate) struct Choice {
    /// The place of the key.
    pub(crate) key: usize,
    pub(crate) searches: Vec<Search>,
    /// How many of its columns are used.
    pub(crate) parts: usize,
    /// About how many rows it finds.
    pub(crate) rows: u64,
    pub(crate) access: Access,
    /// Whether the rows are read off the key.
    pub(crate) is_covered: bool,
}

/// What conditions ask of a key whose order is to be kept: one value for each of its first parts,
/// and bounds of the part behind them.
pub(super) struct InOrder {
    pub(super) search: Search,
    /// How many of its parts are asked for.
    pub(super) parts: usize,
    pub(super) access: Access,
}

/// How MySQL calls a way to rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// One row at most, by constants: `const`.
    Const,
    /// One row at most for each row of another table: `eq_ref`.
    EqRef,
    /// All rows of one value: `ref`.
    Ref,
    /// Several values, or from one to another: `range`.
    Range,
    /// All rows in the order of the key: `index`.
    Index,
}

impl Access {
    /// The word in EXPLAIN.
    pub fn name(self) -> &'static str {
        match self {
            Access::Const => "const",
            Access::EqRef => "eq_ref",
            Access::Ref => "ref",
            Access::Range => "range",
            Access::Index => "index",
        }
    }
}

/// What conditions say of one column.
#[derive(Clone, Default)]
pub(super) struct Wanted {
    /// The values that it may have.
    pub(super) equal: Option<Vec<ArrayRef>>,
    pub(super) low: Option<Bound<ArrayRef>>,
    pub(super) high: Option<Bound<ArrayRef>>,
}

/// Whether a condition may help a key to be used.
pub(crate) fn is_searchable(table: &Table, filter: &Expr) -> bool {
    if table.definition().keys.is_empty() {
        return false;
    }
    let wanted = wanted(table, [filter]);
    !wanted.is_empty() || branches(table, filter, &wanted).is_some()
}

/// The key that finds the fewest rows, if they are few enough. `covered` says which keys hold all
/// that is read.
///
/// # Errors
/// If an index cannot be read.
pub(crate) fn choose(
    table: &Table,
    filters: &[Expr],
    covered: impl Fn(usize) -> bool,
) -> Result<Option<Choice>> {
    let definition = table.definition();
    if definition.keys.is_empty() || filters.is_empty() {
        return Ok(None);
    }
    let alternatives = alternatives(table, filters);
    let mut best: Option<Choice> = None;
    for key in 0..definition.keys.len() {
        let Some((searches, parts, access)) = all_searches(table, key, &alternatives) else {
            continue;
        };
        let mut rows = 0_u64;
        for search in &searches {
            rows = rows.saturating_add(table.estimate(search).map_err(table_error)?);
        }
        let is_covered = covered(key);
        let is_better = |best: &Choice| (rows, !is_covered) < (best.rows, !best.is_covered);
        if best.as_ref().is_none_or(is_better) {
            best = Some(Choice {
                key,
                searches,
                parts,
                rows,
                access,
                is_covered,
            });
        }
    }
    let is_few = |rows: u64| {
        let few = rows <= ROWS_FEW || rows.saturating_mul(ROWS_PER_SEARCHED) < table.row_count();
        few && rows <= ROWS_MAX
    };
    Ok(best.filter(|choice| is_few(choice.rows)))
}

/// What conditions ask of a key whose order is to be kept.
pub(super) fn in_order(table: &Table, key: usize, filters: &[Expr]) -> InOrder {
    let mut wanted = wanted(table, filters);
    for of_column in wanted.values_mut() {
        let several = |values: &mut Vec<ArrayRef>| values.len() != 1;
        of_column.equal.take_if(several);
    }
    match searches(table, key, &wanted) {
        Some((mut searches, parts, access)) if searches.len() == 1 => InOrder {
            search: searches.remove(0),
            parts,
            access,
        },
        _ => InOrder {
            search: Search::equal(key, Vec::new()),
            parts: 0,
            access: Access::Index,
        },
    }
}

/// What is asked of one key by any of several alternatives; `None` when one of them asks nothing of
/// its first column.
fn all_searches(
    table: &Table,
    key: usize,
    alternatives: &[HashMap<usize, Wanted>],
) -> Option<(Vec<Search>, usize, Access)> {
    let mut found = (Vec::new(), 0, Access::Range);
    for wanted in alternatives {
        let (searches, parts, access) = searches(table, key, wanted)?;
        found.0.extend(searches);
        found.1 = parts.max(found.1);
        if alternatives.len() == 1 {
            found.2 = access;
        }
    }
    (found.0.len() <= SEARCHES_MAX).then_some(found)
}

/// What is asked of one key, and how many of its columns that uses; `None` when nothing is asked of
/// its first column.
pub(super) fn searches(
    table: &Table,
    key: usize,
    wanted: &HashMap<usize, Wanted>,
) -> Option<(Vec<Search>, usize, Access)> {
    let definition = &table.definition().keys[key];
    let mut equal: Vec<Vec<ArrayRef>> = vec![Vec::new()];
    let mut parts = 0;
    let mut bounds = (Bound::Unbounded, Bound::Unbounded);
    let mut access = Access::Ref;
    for part in &definition.parts {
        let Some(of_column) = wanted.get(&part.column) else {
            break;
        };
        if let Some(values) = &of_column.equal {
            if equal.len() * values.len() > SEARCHES_MAX {
                break;
            }
            equal = equal
                .iter()
                .flat_map(|before| {
                    values.iter().map(|value| {
                        let mut values = before.clone();
                        values.push(ArrayRef::clone(value));
                        values
                    })
                })
                .collect();
            parts += 1;
            continue;
        }
        if !keeps_order(&table.columns()[part.column].column_type) {
            break;
        }
        let bound = |bound: &Option<Bound<ArrayRef>>| bound.clone().unwrap_or(Bound::Unbounded);
        bounds = (bound(&of_column.low), bound(&of_column.high));
        parts += 1;
        access = Access::Range;
        break;
    }
    if parts == 0 {
        return None;
    }
    if equal.len() != 1 {
        access = Access::Range;
    }
    if access == Access::Ref && parts == definition.parts.len() && definition.is_unique() {
        access = Access::Const;
    }
    let searches = equal.into_iter().map(|equal| Search {
        key,
        equal,
        low: bounds.0.clone(),
        high: bounds.1.clone(),
    });
    Some((searches.collect(), parts, access))
}

/// Whether the bytes of a key lie in the order in which the type compares: words of ENUM and SET
/// compare by their places.
pub(super) fn keeps_order(column_type: &ColumnType) -> bool {
    !matches!(column_type, ColumnType::Enum(_) | ColumnType::Set(_))
}

/// What rows must have, by one of several alternatives: those of the first OR whose every branch
/// says something, each with what the other conditions say.
fn alternatives(table: &Table, filters: &[Expr]) -> Vec<HashMap<usize, Wanted>> {
    let wanted = wanted(table, filters);
    let mut conditions = filters
        .iter()
        .flat_map(|filter| split_binary(filter, Operator::And));
    let found = conditions.find_map(|condition| branches(table, condition, &wanted));
    found.unwrap_or_else(|| vec![wanted])
}

/// The branches of an OR with what is wanted beside it; `None` if one says nothing of a column of
/// its own.
fn branches(
    table: &Table,
    condition: &Expr,
    beside: &HashMap<usize, Wanted>,
) -> Option<Vec<HashMap<usize, Wanted>>> {
    let branches = split_binary(condition, Operator::Or);
    if !(2..=SEARCHES_MAX).contains(&branches.len()) {
        return None;
    }
    let alternatives = branches.into_iter().map(|branch| {
        let own = wanted(table, [branch]);
        if own.is_empty() {
            return None;
        }
        let mut both = beside.clone();
        both.extend(own);
        Some(both)
    });
    alternatives.collect()
}

/// The column and the constants of `column = 1 OR column = 2 ...`.
fn equalities<'e>(table: &Table, filter: &'e Expr) -> Option<(&'e str, Vec<Expr>)> {
    let mut found: Option<&str> = None;
    let mut values = Vec::new();
    for side in split_binary(filter, Operator::Or) {
        // What is left of a NULL among the values of IN.
        if matches!(side, Expr::Literal(value, _) if value.is_null()) {
            continue;
        }
        let Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Eq,
            right,
        }) = side
        else {
            return None;
        };
        let (column, value) = match (left.as_ref(), right.as_ref()) {
            (column, value @ Expr::Literal(..)) | (value @ Expr::Literal(..), column) => {
                (column_of(table, column)?, value)
            }
            _ => return None,
        };
        if found.is_some_and(|found| found != column) {
            return None;
        }
        found = Some(column);
        values.push(value.clone());
    }
    Some((found?, values))
}

/// The texts that begin as a pattern of LIKE does: from the first, and up to the one behind them.
fn beginning(pattern: &str) -> Option<(String, Option<String>)> {
    let end = pattern.find(['%', '_', '\\']).unwrap_or(pattern.len());
    let beginning = &pattern[..end];
    if beginning.is_empty() {
        return None;
    }
    // The next text of no greater length: its last character that has a next one is that.
    let mut behind = beginning.to_owned();
    let next = loop {
        let Some(last) = behind.pop() else { break None };
        let next = (u32::from(last) + 1..=u32::from(last) + 0x801).find_map(char::from_u32);
        if let Some(next) = next {
            behind.push(next);
            break Some(behind);
        }
    };
    Some((beginning.to_owned(), next))
}

/// What conditions say of columns, all of them together.
pub(super) fn wanted<'a>(
    table: &Table,
    conditions: impl IntoIterator<Item = &'a Expr>,
) -> HashMap<usize, Wanted> {
    let mut wanted = HashMap::new();
    for condition in conditions {
        read(table, condition, &mut wanted);
    }
    wanted
}

/// Reads one condition.
fn read(table: &Table, filter: &Expr, wanted: &mut HashMap<usize, Wanted>) {
    match filter {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::And,
            right,
        }) => {
            read(table, left, wanted);
            read(table, right, wanted);
        }
        Expr::BinaryExpr(BinaryExpr {
            op: Operator::Or, ..
        }) => {
            if let Some((column, values)) = equalities(table, filter) {
                one_of(table, column, &values, wanted);
            }
        }
        Expr::Like(Like {
            negated: false,
            expr,
            pattern,
            escape_char: None,
            case_insensitive: false,
        }) => {
            if let (Expr::Column(column), Expr::Literal(pattern, _)) =
                (expr.as_ref(), pattern.as_ref())
                && let Some((low, high)) = pattern.try_as_str().flatten().and_then(beginning)
            {
                let text = |text: String| ScalarValue::Utf8View(Some(text));
                compare(table, &column.name, Operator::GtEq, &text(low), wanted);
                if let Some(high) = high {
                    compare(table, &column.name, Operator::Lt, &text(high), wanted);
                }
            }
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            if let (Some(column), Expr::Literal(value, _)) =
                (column_of(table, left), right.as_ref())
            {
                compare(table, column, *op, value, wanted);
            } else if let (Expr::Literal(value, _), Some(column)) =
                (left.as_ref(), column_of(table, right))
                && let Some(op) = op.swap()
            {
                compare(table, column, op, value, wanted);
            }
        }
        Expr::InList(InList {
            expr,
            list,
            negated: false,
        }) => {
            if let Some(column) = column_of(table, expr) {
                one_of(table, column, list, wanted);
            }
        }
        Expr::IsNull(expr) => {
            if let Expr::Column(column) = expr.as_ref() {
                compare(
                    table,
                    &column.name,
                    Operator::IsNotDistinctFrom,
                    &ScalarValue::Null,
                    wanted,
                );
            }
        }
        Expr::Between(between) if !between.negated => {
            if let (Expr::Column(column), Expr::Literal(low, _), Expr::Literal(high, _)) = (
                between.expr.as_ref(),
                between.low.as_ref(),
                between.high.as_ref(),
            ) {
                compare(table, &column.name, Operator::GtEq, low, wanted);
                compare(table, &column.name, Operator::LtEq, high, wanted);
            }
        }
        _ => {}
    }
}

/// The name of a column, which may be an integer that is widened to be compared.
fn column_of<'e>(table: &Table, expr: &'e Expr) -> Option<&'e str> {
    match expr {
        Expr::Column(column) => Some(&column.name),
        Expr::Cast(cast) => {
            let Expr::Column(column) = cast.expr.as_ref() else {
                return None;
            };
            let place = table.definition().column(&column.name)?;
            let of_type = table.schema().field(place).data_type();
            let to = cast.field.data_type();
            let is_wider = to.primitive_width() > of_type.primitive_width();
            let are_integers = of_type.is_integer() && to.is_integer();
            (are_integers && is_wider).then_some(&column.name)
        }
        _ => None,
    }
}

/// On which side of all integers of a type another one lies.
fn beyond(number: &ScalarValue, of_type: &DataType) -> Option<Ordering> {
    if !of_type.is_integer() || !number.data_type().is_integer() {
        return None;
    }
    let number = number.cast_to(&DataType::Decimal128(20, 0)).ok()?;
    let ScalarValue::Decimal128(Some(number), _, _) = number else {
        return None;
    };
    let bits = of_type.primitive_width()? * 8;
    let (least, greatest) = match of_type.is_unsigned_integer() {
        true => (0, (1_i128 << bits) - 1),
        false => (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
    };
    match number {
        number if number > greatest => Some(Ordering::Greater),
        number if number < least => Some(Ordering::Less),
        _ => None,
    }
}

fn compare(
    table: &Table,
    column: &str,
    op: Operator,
    value: &ScalarValue,
    wanted: &mut HashMap<usize, Wanted>,
) {
    let Some(place) = table.definition().column(column) else {
        return;
    };
    let of_type = table.schema().field(place).data_type();
    let is_null = value.is_null();
    if is_null && op != Operator::IsNotDistinctFrom {
        return;
    }
    if let Some(side) = beyond(value, of_type) {
        let is_never = match op {
            Operator::Eq => true,
            Operator::Gt | Operator::GtEq => side == Ordering::Greater,
            Operator::Lt | Operator::LtEq => side == Ordering::Less,
            _ => false,
        };
        if is_never {
            wanted.entry(place).or_default().equal = Some(Vec::new());
        }
        return;
    }
    let Some(value) = key_value(value, of_type) else {
        return;
    };
    match op {
        Operator::Eq | Operator::IsNotDistinctFrom => {
            let of_column = wanted.entry(place).or_default();
            // Of two equalities one will do; the other is checked above.
            of_column.equal = Some(vec![value]);
        }
        Operator::Gt | Operator::GtEq => {
            let of_column = wanted.entry(place).or_default();
            of_column.low = Some(match op {
                Operator::Gt => Bound::Excluded(value),
                _ => Bound::Included(value),
            });
        }
        Operator::Lt | Operator::LtEq => {
            let of_column = wanted.entry(place).or_default();
            of_column.high = Some(match op {
                Operator::Lt => Bound::Excluded(value),
                _ => Bound::Included(value),
            });
        }
        _ => {}
    }
}

fn one_of(table: &Table, column: &str, list: &[Expr], wanted: &mut HashMap<usize, Wanted>) {
    let Some(place) = table.definition().column(column) else {
        return;
    };
    let of_type = table.schema().field(place).data_type();
    let mut values = Vec::with_capacity(list.len());
    for value in list {
        let Expr::Literal(value, _) = value else {
            return;
        };
        // NULL is equal to nothing, and no value of the column to what it cannot hold.
        if value.is_null() || beyond(value, of_type).is_some() {
            continue;
        }
        match key_value(value, of_type) {
            Some(value) => values.push(value),
            None => return,
        }
    }
    if values.len() <= SEARCHES_MAX {
        let of_column = wanted.entry(place).or_default();
        if of_column.equal.is_none() {
            of_column.equal = Some(values);
        }
    }
}

/// A constant as a value of a column of a key, where the two compare as values of that type and
/// nothing is lost.
pub fn key_value(value: &ScalarValue, of_type: &DataType) -> Option<ArrayRef> {
    let found = value.data_type();
    let fits = found == *of_type
        || value.is_null()
        || (is_text(&found) && is_text(of_type))
        || (is_binary(&found) && is_binary(of_type));
    if fits {
        return value.cast_to(of_type).ok()?.to_array().ok();
    }
    if found.is_integer() && of_type.is_integer() {
        let cast = value.cast_to(of_type).ok().filter(|cast| !cast.is_null())?;
        let back = cast.cast_to(&found).ok()?;
        return (back == *value).then(|| cast.to_array().ok()).flatten();
    }
    None
}

fn is_text(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

fn is_binary(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView
    )
}

#[cfg(test)]
mod tests {
    use super::beginning;

    #[test]
    fn texts_that_begin_alike_lie_between_two() {
        let between = |pattern: &str| {
            let (low, high) = beginning(pattern)?;
            Some(format!("{low}..{}", high.unwrap_or_default()))
        };
        assert_eq!(between("abc%").as_deref(), Some("abc..abd"));
        assert_eq!(between("ab_c").as_deref(), Some("ab..ac"));
        assert_eq!(between("a\\%b%").as_deref(), Some("a..b"));
        assert_eq!(between("%a"), None);
        assert_eq!(
            between("a\u{d7ff}%").as_deref(),
            Some("a\u{d7ff}..a\u{e000}")
        );
        assert_eq!(between("a\u{10ffff}%").as_deref(), Some("a\u{10ffff}..b"));
        assert_eq!(between("\u{10ffff}%").as_deref(), Some("\u{10ffff}.."));
    }
}
