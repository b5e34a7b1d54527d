//! Conditions on the columns of one key: `k = ?`, `k BETWEEN ? AND ? OR k IN (?, ?)`.
//!
//! Owns the reading of such a condition, for any constants, and the searches of the key that it
//! comes to for some; and which parts of another condition lead to rows by a key. What is left of
//! it, [`parted`] hands back: to check it is the business of others.

use std::ops::Bound;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr};
use mayfly_sql::literal::{Literal, column_of as values_of};
use mayfly_sql::walk::{conjuncts, disjuncts};
use mayfly_table::{Search, Table};

use super::compile::{Constants, column_of};
use super::known::{Among, Branch, Cell, Choice};
use super::row_expression::{Of, RowExpression};

/// Most branches of a condition; each list of IN counts once.
const BRANCHES_MAX: usize = 1024;

/// Reads a condition; `None` unless some key leads to the rows of every branch, and nothing is left
/// to be checked.
pub(super) fn choice(
    condition: &Expr,
    table: &Table,
    alias: &str,
    constants: &mut Constants,
) -> Option<Choice> {
    let mut reader = Reader {
        table,
        alias,
        constants,
    };
    let branches = reader.branches(condition)?;
    (0..table.definition().keys.len()).find_map(|key| {
        let branches = branches.iter().map(|branch| branch.of_key(table, key));
        let branches = branches.collect::<Option<_>>()?;
        Some(Choice { key, branches })
    })
}

/// A condition of which some key leads to the rows of a part, and the rest is to be checked.
pub(super) struct Parted {
    pub(super) choice: Choice,
    pub(super) rest: Vec<RowExpression>,
}

/// Reads a condition, a part of which some key must lead to; `None` if no key does, or the rest is
/// of no kind that can be checked.
pub(super) fn parted(condition: &Expr, of: &Of<'_>, constants: &mut Constants) -> Option<Parted> {
    let mut terms = Vec::new();
    for term in conjuncts(condition) {
        // The constants of a term are the same, whoever reads it.
        let start = constants.0.len();
        let read = of.read_condition(term, constants);
        let of_rest = constants.0.split_off(start);
        let mut reader = Reader {
            table: of.table,
            alias: of.alias,
            constants,
        };
        let branches = reader.branches(term);
        match (&read, &branches) {
            (None, None) => return None,
            (Some(_), None) => {
                constants.0.truncate(start);
                constants.0.extend(of_rest);
            }
            (Some(_), Some(_)) if constants.0[start..] != of_rest[..] => return None,
            (_, Some(_)) => {}
        }
        terms.push((branches, read));
    }
    let branches: Vec<Option<&[Branch]>> = { terms.iter() }
        .map(|(branches, _)| branches.as_deref())
        .collect();
    let (choice, is_used) = choice_of_some(&branches, of.table)?;
    let rest = terms
        .into_iter()
        .zip(is_used)
        .filter(|(_, is_used)| !is_used);
    let rest = rest.map(|((_, read), _)| read).collect::<Option<_>>()?;
    Some(Parted { choice, rest })
}

/// Whether a key finds one row, how many of its columns are known, and by how many conditions.
type Worth = (bool, usize, usize);

/// The key that some conditions lead to the fewest rows by, and which of them do: a unique key of
/// which all columns are known, then the one of which most columns are known, then the one that
/// most conditions lead by. `k = 1 AND id < 500` finds rows by `k`.
fn choice_of_some(terms: &[Option<&[Branch]>], table: &Table) -> Option<(Choice, Vec<bool>)> {
    let mut best: Option<(Worth, Choice, Vec<bool>)> = None;
    for (key, definition) in table.definition().keys.iter().enumerate() {
        let columns: Vec<usize> = definition.parts.iter().map(|part| part.column).collect();
        for width in (1..=columns.len()).rev() {
            let Some((branches, is_used)) = combined(terms, &columns[..width]) else {
                continue;
            };
            let branches = branches.iter().map(|branch| branch.of_key(table, key));
            let Some(branches) = branches.collect::<Option<Vec<_>>>() else {
                continue;
            };
            let known = branches.iter().map(Branch::known_columns).min();
            let known = known.unwrap_or_default();
            let finds_one = definition.is_unique() && known == columns.len();
            let worth = (
                finds_one,
                known,
                is_used.iter().filter(|is_used| **is_used).count(),
            );
            if best.as_ref().is_none_or(|(other, ..)| worth > *other) {
                best = Some((worth, Choice { key, branches }, is_used));
            }
            break;
        }
    }
    best.map(|(_, choice, is_used)| (choice, is_used))
}

/// What the conditions on some columns say together, and which conditions these are; `None` if
/// there are none.
fn combined(terms: &[Option<&[Branch]>], columns: &[usize]) -> Option<(Vec<Branch>, Vec<bool>)> {
    let mut all = vec![Branch::default()];
    let mut is_used = vec![false; terms.len()];
    for (term, is_used) in terms.iter().zip(&mut is_used) {
        let Some(term) = term else { continue };
        let is_among = |branch: &Branch| branch.columns().all(|column| columns.contains(&column));
        if !term.iter().all(is_among) {
            continue;
        }
        if let Some(both) = both(&all, term) {
            all = both;
            *is_used = true;
        }
    }
    is_used.contains(&true).then_some((all, is_used))
}

/// The branches of two conditions that both hold.
fn both(left: &[Branch], right: &[Branch]) -> Option<Vec<Branch>> {
    if left.len() * right.len() > BRANCHES_MAX {
        return None;
    }
    let pairs = left
        .iter()
        .flat_map(|one| right.iter().map(|other| one.and(other)));
    pairs.collect()
}

/// Reads the conditions of one statement, whose constants come in the order of its text.
struct Reader<'a> {
    table: &'a Table,
    alias: &'a str,
    constants: &'a mut Constants,
}

impl Reader<'_> {
    /// What rows may be, by any of several branches.
    fn branches(&mut self, condition: &Expr) -> Option<Vec<Branch>> {
        let sides = disjuncts(condition);
        if sides.len() > 1 {
            let mut all = Vec::with_capacity(sides.len());
            for side in sides {
                all.extend(self.branches(side)?);
                if all.len() > BRANCHES_MAX {
                    return None;
                }
            }
            return Some(all);
        }
        let terms = conjuncts(condition);
        if let [term] = terms.as_slice() {
            return self.compared(term);
        }
        let mut all = vec![Branch::default()];
        for term in terms {
            all = both(&all, &self.branches(term)?)?;
        }
        Some(all)
    }

    /// The branches of one comparison.
    fn compared(&mut self, condition: &Expr) -> Option<Vec<Branch>> {
        let branch = match condition {
            Expr::BinaryOp { left, op, right } => self.operator(left, op, right)?,
            Expr::Between {
                expr,
                negated: false,
                low,
                high,
            } => {
                let column = self.column(expr)?;
                let low = Bound::Included(self.number(low, column)?);
                let high = Bound::Included(self.number(high, column)?);
                Branch::among(column, Among::Between(low, high))
            }
            Expr::InList {
                expr,
                list,
                negated: false,
            } => match expr.as_ref() {
                Expr::Tuple(columns) => {
                    let rows = list.iter().map(|row| match row {
                        Expr::Tuple(values) => self.row(columns, values),
                        _ => None,
                    });
                    return rows.collect();
                }
                column => {
                    let column = self.column(column)?;
                    let cells = list.iter().map(|value| self.number(value, column));
                    Branch::among(column, Among::In(cells.collect::<Option<_>>()?))
                }
            },
            _ => return None,
        };
        Some(vec![branch])
    }

    /// `(a, b)` of `(1, 2)`, column by column.
    fn row(&mut self, columns: &[Expr], values: &[Expr]) -> Option<Branch> {
        if columns.len() != values.len() {
            return None;
        }
        let mut all = Branch::default();
        for (column, value) in columns.iter().zip(values) {
            let column = self.column(column)?;
            let cell = self.equal(value, column)?;
            all = all.and(&Branch::equal(column, cell))?;
        }
        Some(all)
    }

    fn operator(&mut self, left: &Expr, op: &BinaryOperator, right: &Expr) -> Option<Branch> {
        if let (Expr::Tuple(columns), BinaryOperator::Eq, Expr::Tuple(values)) = (left, op, right) {
            return self.row(columns, values);
        }
        let (column, value, is_turned) = match self.column(left) {
            Some(column) => (column, right, false),
            None => (self.column(right)?, left, true),
        };
        let nothing = Bound::Unbounded;
        let among = match turned(op, is_turned) {
            BinaryOperator::Eq => return Some(Branch::equal(column, self.equal(value, column)?)),
            BinaryOperator::Gt => {
                Among::Between(Bound::Excluded(self.number(value, column)?), nothing)
            }
            BinaryOperator::GtEq => {
                Among::Between(Bound::Included(self.number(value, column)?), nothing)
            }
            BinaryOperator::Lt => {
                Among::Between(nothing, Bound::Excluded(self.number(value, column)?))
            }
            BinaryOperator::LtEq => {
                Among::Between(nothing, Bound::Included(self.number(value, column)?))
            }
            _ => return None,
        };
        Some(Branch::among(column, among))
    }

    fn column(&self, expr: &Expr) -> Option<usize> {
        column_of(expr, self.table, self.alias)
    }

    fn equal(&mut self, value: &Expr, column: usize) -> Option<Cell> {
        self.constants.equal(value, &self.table.columns()[column])
    }

    fn number(&mut self, value: &Expr, column: usize) -> Option<Cell> {
        self.constants.number(value, &self.table.columns()[column])
    }
}

/// The comparison with its sides exchanged, if they are to be.
fn turned(op: &BinaryOperator, is_turned: bool) -> BinaryOperator {
    match op {
        BinaryOperator::Gt if is_turned => BinaryOperator::Lt,
        BinaryOperator::GtEq if is_turned => BinaryOperator::LtEq,
        BinaryOperator::Lt if is_turned => BinaryOperator::Gt,
        BinaryOperator::LtEq if is_turned => BinaryOperator::GtEq,
        other => other.clone(),
    }
}

impl Branch {
    fn equal(column: usize, cell: Cell) -> Branch {
        Branch {
            parts: vec![(column, cell)],
            among: None,
        }
    }

    fn among(column: usize, among: Among) -> Branch {
        Branch {
            parts: Vec::new(),
            among: Some((column, among)),
        }
    }

    /// The columns that it says something of.
    fn columns(&self) -> impl Iterator<Item = usize> {
        let parts = self.parts.iter().map(|(column, _)| *column);
        parts.chain(self.among.iter().map(|(column, _)| *column))
    }

    /// How many columns are known: those that equal something, and the one that is in a list.
    fn known_columns(&self) -> usize {
        self.parts.len() + usize::from(matches!(self.among, Some((_, Among::In(_)))))
    }

    /// What both say; `None` where they say something of one column, unless that is its lower and
    /// its upper bound, or of two columns that equal nothing.
    fn and(&self, other: &Branch) -> Option<Branch> {
        let mut both = self.clone();
        both.among = match (&self.among, &other.among) {
            (among, None) | (None, among) => among.clone(),
            (
                Some((column, Among::Between(low, Bound::Unbounded))),
                Some((other, Among::Between(Bound::Unbounded, high))),
            )
            | (
                Some((column, Among::Between(Bound::Unbounded, high))),
                Some((other, Among::Between(low, Bound::Unbounded))),
            ) if column == other => Some((*column, Among::Between(low.clone(), high.clone()))),
            _ => return None,
        };
        both.parts.extend_from_slice(&other.parts);
        let mut columns: Vec<usize> = both.columns().collect();
        let count = columns.len();
        columns.sort_unstable();
        columns.dedup();
        (columns.len() == count).then_some(both)
    }

    /// The branch with its columns in the order of a key; `None` if they are not its first ones.
    fn of_key(&self, table: &Table, key: usize) -> Option<Branch> {
        let key = &table.definition().keys[key];
        let first = key.parts.get(..self.parts.len())?;
        if let Some((column, _)) = &self.among
            && key.parts.get(first.len()).map(|part| part.column) != Some(*column)
        {
            return None;
        }
        let parts = first.iter().map(|part| {
            let is_it = |(column, _): &&(usize, Cell)| *column == part.column;
            let found = self.parts.iter().find(is_it)?;
            part.prefix.is_none().then(|| found.clone())
        });
        Some(Branch {
            parts: parts.collect::<Option<_>>()?,
            among: self.among.clone(),
        })
    }

    /// Adds the searches for some constants; `None` where one of them is not a value of its column.
    fn searches(
        &self,
        table: &Table,
        key: usize,
        constants: &[Option<Literal<'_>>],
        searches: &mut Vec<Search>,
    ) -> Option<()> {
        let value = |column: usize, cell: &Cell| {
            let value = cell.value(constants)?;
            // How spaces at the end compare is not the business of a search.
            if value.is_text && value.spelled.ends_with(' ') {
                return None;
            }
            values_of(&[Some(value)], &table.columns()[column].column_type)
        };
        let mut equal = Vec::with_capacity(self.parts.len() + 1);
        for (column, cell) in &self.parts {
            equal.push(value(*column, cell)?);
        }
        match &self.among {
            None => searches.push(Search::equal(key, equal)),
            Some((column, Among::Between(low, high))) => {
                let bound = |bound: &Bound<Cell>| {
                    Some(match bound {
                        Bound::Included(cell) => Bound::Included(value(*column, cell)?),
                        Bound::Excluded(cell) => Bound::Excluded(value(*column, cell)?),
                        Bound::Unbounded => Bound::Unbounded,
                    })
                };
                let (low, high) = (bound(low)?, bound(high)?);
                searches.push(Search {
                    low,
                    high,
                    ..Search::equal(key, equal)
                });
            }
            Some((column, Among::In(cells))) => {
                for cell in cells {
                    let mut equal = equal.clone();
                    equal.push(value(*column, cell)?);
                    searches.push(Search::equal(key, equal));
                }
            }
        }
        Some(())
    }
}

impl Choice {
    /// Whether the rows that it finds lie in the order of a column: the key has that column behind
    /// others which have one value each.
    pub(super) fn is_in_order_of(&self, table: &Table, column: usize) -> bool {
        let [branch] = self.branches.as_slice() else {
            return false;
        };
        let parts = &table.definition().keys[self.key].parts;
        let place = parts.iter().position(|part| part.column == column);
        let is_list = matches!(branch.among, Some((_, Among::In(_))));
        !is_list && place.is_some_and(|place| place <= branch.parts.len())
    }

    /// The searches for some constants; `None` where one of them is not a value of its column.
    pub(super) fn searches(
        &self,
        table: &Table,
        constants: &[Option<Literal<'_>>],
    ) -> Option<Vec<Search>> {
        let mut searches = Vec::with_capacity(self.branches.len());
        for branch in &self.branches {
            branch.searches(table, self.key, constants, &mut searches)?;
        }
        Some(searches)
    }
}
