//! From a parsed statement to one on rows, if it is that.
//!
//! Whatever is not exactly of the kind is `None`, errors included: the long way tells them.

use std::sync::{Arc, LazyLock};

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, Select, SelectItem, SetExpr, TableWithJoins,
};
use mayfly_sql::change::{Mention, mentions, only_table};
use mayfly_sql::literal::Literal;
use mayfly_sql::parse;
use mayfly_sql::references::is_clock;
use mayfly_sql::statement::{
    Delete, Insert, InsertSource, RowChoice, Statement, TableName, Update,
};
use mayfly_table::{Column, Table};
use mayfly_types::ColumnType;

use super::key_condition::choice;
use super::known::{
    Action, Cell, Chosen, KnownDigests, Meant, NewValue, OnDuplicate, PointStatement,
};
use crate::column_info::{ColumnInfo, ColumnOrigin, columns_of};
use crate::statement::Job;
use crate::statement::apart::Given;
use crate::statement::assign::sources;
use crate::statement::evaluate::number_of_bits;
use crate::statement::origins::Named;
use crate::statement::table_rules::Rules;

/// `SELECT` without anything: what a plain one has besides its list, its table and its condition.
static PLAIN: LazyLock<Option<Query>> = LazyLock::new(|| {
    let (statement, _) = parse::parse("SELECT 1").ok()?;
    match statement {
        Statement::Query(mut query) => {
            take_parts(&mut query)?;
            Some(*query)
        }
        _ => None,
    }
});

/// The constants of a statement, in the order of its text.
#[derive(Default)]
pub(super) struct Constants(pub(super) Vec<Option<Literal<'static>>>);

impl Constants {
    /// The place of a constant that an expression is.
    pub(super) fn cell(&mut self, expression: &Expr) -> Option<Cell> {
        Some(match Literal::of(expression)? {
            None => Cell::Null,
            literal => {
                self.0.push(literal);
                Cell::Constant(self.0.len() - 1)
            }
        })
    }

    /// The same for a value that a column of a key may equal, as a value of its type.
    pub(super) fn equal(&mut self, expression: &Expr, column: &Column) -> Option<Cell> {
        let cell = self.cell(expression)?;
        let literal = cell.value(&self.0)?;
        let is_text = matches!(
            column.column_type,
            ColumnType::Char { .. } | ColumnType::VarChar { .. } | ColumnType::Text(_)
        );
        let fits = match literal.is_text {
            true => is_text,
            false => column.column_type.is_integer(),
        };
        fits.then_some(cell)
    }

    /// The same for a number that a column of whole numbers is compared with.
    pub(super) fn number(&mut self, expression: &Expr, column: &Column) -> Option<Cell> {
        let cell = self.equal(expression, column)?;
        column.column_type.is_integer().then_some(cell)
    }
}

impl Job {
    /// The meaning of a statement for any constants, and its own.
    pub(super) fn compiled(
        &self,
        statement: &Statement,
    ) -> Option<(PointStatement, Given<'static>)> {
        let mut constants = Constants::default();
        let mut rows = 1;
        let statement = match statement {
            Statement::Insert(insert) => self.insertion(insert, &mut constants, &mut rows)?,
            Statement::Update(update) => self.update_by_key(update, &mut constants)?,
            Statement::Delete(delete) => self.delete_by_key(delete, &mut constants)?,
            Statement::Query(query) => self.query_by_key(query, &mut constants)?,
            _ => return None,
        };
        let constants = constants.0;
        Some((statement, Given { constants, rows }))
    }

    fn insertion(
        &self,
        insert: &Insert,
        constants: &mut Constants,
        row_count: &mut usize,
    ) -> Option<PointStatement> {
        let plain = insert.on_duplicate.is_empty().then_some(insert)?;
        let on_duplicate = match (plain.ignore, plain.replace) {
            (false, false) => OnDuplicate::Fail,
            (true, false) => OnDuplicate::Ignore,
            (false, true) => OnDuplicate::Replace,
            (true, true) => return None,
        };
        // Several may meet each other.
        if on_duplicate != OnDuplicate::Fail && !has_one_row(plain) {
            return None;
        }
        let (table, columns, width) = self.inserted(plain, constants, row_count)?;
        let action = Action::Insert {
            columns,
            width,
            on_duplicate,
        };
        self.change_of(&table, insert.table.clone(), action)
    }

    /// The table of an INSERT, what its columns get, and how many constants a row has.
    pub(super) fn inserted(
        &self,
        insert: &Insert,
        constants: &mut Constants,
        row_count: &mut usize,
    ) -> Option<(Arc<Table>, Vec<Cell>, usize)> {
        let is_plain = insert.alias.is_none() && insert.qualified.is_empty();
        let InsertSource::Values(rows) = &insert.source else {
            return None;
        };
        let first = rows.first().filter(|_| is_plain)?;
        let table = self.table(&insert.table).ok()?;
        if Rules::exist(table.definition()) {
            return None;
        }
        let sources = sources(&table, &insert.columns).ok()?;
        if first.len() != sources.iter().flatten().count() {
            return None;
        }
        for row in rows {
            if row.len() != first.len() {
                return None;
            }
            for (value, other) in row.iter().zip(first) {
                // DEFAULT stands in all rows or in none.
                if value.is_some() != other.is_some() {
                    return None;
                }
                if let Some(expression) = value {
                    constants.0.push(Literal::of(expression)?);
                }
            }
        }
        *row_count = rows.len();
        let places = table.columns().iter().zip(sources);
        let columns = places.map(|(column, source)| {
            let given = source.filter(|source| first[*source].is_some());
            match given {
                Some(source) => Some(Cell::Constant(first[..source].iter().flatten().count())),
                None => default_of(column),
            }
        });
        let columns = columns.collect::<Option<_>>()?;
        Some((table, columns, first.iter().flatten().count()))
    }

    fn update_by_key(&self, update: &Update, constants: &mut Constants) -> Option<PointStatement> {
        let (table, mention) = self.chosen(&update.choice)?;
        let has_more = table
            .columns()
            .iter()
            .any(|column| column.on_update.is_some());
        if update.ignore || has_more || Rules::exist(table.definition()) {
            return None;
        }
        let database = self.current_database();
        let mut assignments: Vec<(usize, NewValue)> = Vec::with_capacity(update.assignments.len());
        for set in &update.assignments {
            let is_other = set
                .table
                .as_ref()
                .is_some_and(|name| !mention.owns(name, database.as_deref()));
            let place = table.definition().column(&set.column)?;
            let column = &table.columns()[place];
            let is_twice = assignments.iter().any(|(other, _)| *other == place);
            if is_other || is_twice || column.is_auto_increment {
                return None;
            }
            let value = set.value.as_ref()?;
            let value = new_value(value, place, &table, &mention.alias, constants)?;
            let is_null = matches!(
                value,
                NewValue::Value(Cell::Null)
                    | NewValue::Sum {
                        other: Cell::Null,
                        ..
                    }
            );
            if is_null && !column.is_nullable {
                return None;
            }
            assignments.push((place, value));
        }
        let condition = update.choice.condition.as_ref()?;
        let rows = choice(condition, &table, &mention.alias, constants)?;
        let action = Action::Update {
            rows: Chosen::all(rows),
            assignments,
        };
        self.change_of(&table, mention.table, action)
    }

    fn delete_by_key(&self, delete: &Delete, constants: &mut Constants) -> Option<PointStatement> {
        let (table, mention) = self.chosen(&delete.choice)?;
        let mut from = delete.choice.from.clone();
        self.deleted(&mentions(&mut from), &delete.targets).ok()?;
        let condition = delete.choice.condition.as_ref()?;
        let rows = choice(condition, &table, &mention.alias, constants)?;
        let action = Action::Delete {
            rows: Chosen::all(rows),
            is_multi: !delete.targets.is_empty(),
        };
        self.change_of(&table, mention.table, action)
    }

    fn query_by_key(&self, query: &Query, constants: &mut Constants) -> Option<PointStatement> {
        let SetExpr::Select(select) = query.body.as_ref() else {
            return None;
        };
        let condition = select.selection.as_ref()?;
        let (table, mention) = self.keyed(&select.from)?;
        let places = listed(&select.projection, &table, &mention.alias)?;
        let rows = choice(condition, &table, &mention.alias, constants)?;
        if !is_plain(query.clone()) {
            return None;
        }
        let of_table = columns_of(table.schema(), None);
        let database = self.database_of(&mention.table).ok()?;
        let shown = |place: &usize| ColumnInfo {
            origin: Some(Arc::new(ColumnOrigin::of(
                table.definition(),
                *place,
                &Named {
                    database: &database,
                    table: &mention.table.table,
                    alias: &mention.alias,
                },
            ))),
            ..of_table[*place].clone()
        };
        let columns: Vec<ColumnInfo> = places.iter().map(shown).collect();
        let meant = self.meant(&table, &mention.table)?;
        Some(PointStatement {
            name: mention.table,
            meant,
            action: Action::Select {
                rows,
                columns: places,
            },
            columns,
            digests: KnownDigests::default(),
        })
    }

    fn chosen(&self, choice: &RowChoice) -> Option<(Arc<Table>, Mention)> {
        if !choice.order_by.is_empty() || choice.limit.is_some() {
            return None;
        }
        self.keyed(&choice.from)
    }

    /// A change of a table of this name.
    pub(super) fn change_of(
        &self,
        table: &Table,
        name: TableName,
        action: Action,
    ) -> Option<PointStatement> {
        Some(PointStatement {
            meant: self.meant(table, &name)?,
            name,
            action,
            columns: Vec::new(),
            digests: KnownDigests::default(),
        })
    }

    /// What the name of a table means.
    pub(super) fn meant(&self, table: &Table, name: &TableName) -> Option<Meant> {
        Some(Meant::new(table, self.database_of(name).ok()?))
    }

    /// The one table of a FROM list, if it has keys.
    pub(super) fn keyed(&self, from: &[TableWithJoins]) -> Option<(Arc<Table>, Mention)> {
        let mention = only_table(from)?;
        let table = self.table(&mention.table).ok()?;
        (!table.definition().keys.is_empty()).then_some((table, mention))
    }
}

/// What a column gets when nothing is given.
fn default_of(column: &Column) -> Option<Cell> {
    match &column.default {
        _ if column.is_auto_increment => Some(Cell::Null),
        Some(text) => {
            let expression = parse::parse_expression(text).ok()?;
            if number_of_bits(&expression, column).is_some() {
                return None;
            }
            match Literal::of(&expression)? {
                Some(literal) => Some(Cell::Default(literal)),
                None => Some(Cell::Null),
            }
        }
        None => column.is_nullable.then_some(Cell::Null),
    }
}

/// A constant, or the column itself and a constant.
fn new_value(
    value: &Expr,
    place: usize,
    table: &Table,
    alias: &str,
    constants: &mut Constants,
) -> Option<NewValue> {
    let Expr::BinaryOp { left, op, right } = value else {
        return constants.cell(value).map(NewValue::Value);
    };
    let is_minus = match op {
        BinaryOperator::Plus => false,
        BinaryOperator::Minus => true,
        _ => return None,
    };
    let is_own = column_of(left, table, alias) == Some(place);
    if !is_own || !table.columns()[place].column_type.is_integer() {
        return None;
    }
    let other = constants.cell(right)?;
    Some(NewValue::Sum { is_minus, other })
}

/// The column that an expression is.
pub(super) fn column_of(expr: &Expr, table: &Table, alias: &str) -> Option<usize> {
    match expr {
        Expr::Identifier(ident) if is_clock(ident) => None,
        other => named_column(other, table, alias),
    }
}

/// The column that a name means where only columns are named.
pub(super) fn named_column(expr: &Expr, table: &Table, alias: &str) -> Option<usize> {
    match expr {
        Expr::Identifier(ident) => table.definition().column(&ident.value),
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [of, ident] if of.value == alias => table.definition().column(&ident.value),
            _ => None,
        },
        _ => None,
    }
}

/// Whether an INSERT is one of one row of constants.
pub(super) fn has_one_row(insert: &Insert) -> bool {
    matches!(&insert.source, InsertSource::Values(rows) if rows.len() == 1)
}

/// The columns of a list of `*` or of names that are spelled as in the table.
fn listed(list: &[SelectItem], table: &Table, alias: &str) -> Option<Vec<usize>> {
    let columns = table.columns();
    let mut places = Vec::with_capacity(list.len());
    for item in list {
        match item {
            SelectItem::Wildcard(options) if options == &Default::default() => {
                let visible = columns.iter().enumerate();
                let visible = visible.filter(|(_, column)| !column.is_invisible);
                places.extend(visible.map(|(place, _)| place));
            }
            SelectItem::UnnamedExpr(expr) => {
                let place = column_of(expr, table, alias)?;
                let name = match expr {
                    Expr::Identifier(ident) => &ident.value,
                    Expr::CompoundIdentifier(parts) => &parts.last()?.value,
                    _ => return None,
                };
                if *name != columns[place].name {
                    return None;
                }
                places.push(place);
            }
            _ => return None,
        }
    }
    Some(places)
}

/// Whether a query has no more than a list, a table and a condition.
pub(super) fn is_plain(mut query: Query) -> bool {
    take_parts(&mut query).is_some() && PLAIN.as_ref() == Some(&query)
}

/// Takes out of a query what plain queries differ in.
fn take_parts(query: &mut Query) -> Option<()> {
    let SetExpr::Select(select) = query.body.as_mut() else {
        return None;
    };
    let select: &mut Select = select;
    select.projection.clear();
    select.from.clear();
    select.selection = None;
    // Nothing is locked; a name behind OF is for the long way.
    query.locks.retain(|lock| lock.of.is_some());
    Some(())
}
