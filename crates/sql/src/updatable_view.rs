//! Updatable views: changes of their rows become changes of rows of a table.
//!
//! A view over one table that leaves rows what they are stands for that table: its columns are the
//! expressions of its select list, and its rows those of its condition. A statement that changes
//! rows of the view becomes one that changes rows of the table.
//!
//! ```text
//!   CREATE VIEW v AS SELECT id AS i, a + 1 AS b FROM t WHERE a > 1
//!
//!   UPDATE v SET i = b WHERE b < 9     UPDATE t AS v SET v.id = (v.a + 1)
//!                                      WHERE (v.a > 1) AND ((v.a + 1) < 9)
//! ```
//!
//! **Owns** which views are such, and the rewriting. **Never** looks a name up, and refuses (1235)
//! what it cannot tell: a name alone in a subquery may be of the tables there.

mod shape;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, ObjectName, ObjectNamePart, OrderByExpr, Query, SetExpr,
    TableFactor, Visit, Visitor,
};
use mayfly_types::{ErrorCode, MySqlError};

use crate::bindings::Bindings;
use crate::change::{self, only_table};
use crate::declared::{fix_pipes, has_pipes};
use crate::from_list::{plain_alias, tables};
use crate::rewrite::merged::is_merged;
use crate::rewrite::relation::name_of;
use crate::select_list::{column, expression_of};
use crate::statement::{
    Insert, InsertSource, LoadData, LoadTarget, RowChoice, SetColumn, TableName,
};
use crate::typing::syntax;
use crate::walk::{self, change_expressions, change_with_depth};
use shape::{has_subquery, has_windows, order_of};

type Result<T> = std::result::Result<T, MySqlError>;

/// Whether rows of a view can change.
#[derive(Debug, Clone)]
pub enum Updatability {
    /// They are rows of a table, or of another view.
    OneTable(Box<BaseTable>),
    /// They are made of rows of several tables.
    SeveralTables,
    /// They are rows of no table.
    NotUpdatable,
    /// MySQL can change them, this server cannot; what the error says.
    Unsupported(&'static str),
}

/// The one table that a view is over, and what the view makes of it.
#[derive(Debug, Clone)]
pub struct BaseTable {
    /// The table; the database is that of the view where none is written.
    pub table: TableName,
    /// The columns of the view, their names in lower case, over columns of the table that are names
    /// alone.
    columns: Vec<(String, Expr)>,
    /// The condition of its rows.
    condition: Option<Expr>,
    /// What rows must meet that are written through the view.
    check: Option<Expr>,
    /// The order of its rows; `None` where it cannot be told.
    order: Option<Vec<OrderByExpr>>,
}

impl Updatability {
    /// Looks at the query of a view with these columns. `||` puts texts together in it where
    /// `bindings` say so; `is_checked` is whether rows that are written must be rows of the view.
    pub fn of(
        query: &Query,
        columns: &[String],
        bindings: &Bindings,
        is_checked: bool,
    ) -> Updatability {
        let SetExpr::Select(select) = query.body.as_ref() else {
            return Updatability::NotUpdatable;
        };
        if !is_merged(query, bindings) || has_windows(query, select) {
            return Updatability::NotUpdatable;
        }
        if tables(&select.from).len() > 1 {
            return Updatability::SeveralTables;
        }
        let Some(mention) = only_table(&select.from) else {
            return Updatability::NotUpdatable;
        };
        if query.with.is_some() || has_subquery(select.as_ref()) {
            return Updatability::Unsupported("a change through a view with a subquery");
        }
        let items: Vec<&Expr> = select.projection.iter().filter_map(expression_of).collect();
        if items.len() != columns.len() {
            return Updatability::NotUpdatable;
        }
        let mut concatenates = false;
        let mut own = |expr: &Expr| {
            let mut expr = expr.clone();
            fix_pipes(&mut expr, bindings.pipes_as_concat);
            concatenates |= bindings.pipes_as_concat && has_pipes(&expr);
            alone(&mut expr);
            expr
        };
        let columns = columns.iter().zip(items);
        let columns = columns.map(|(name, expr)| (name.to_lowercase(), own(expr)));
        let columns = columns.collect();
        let condition = select.selection.as_ref().map(&mut own);
        let order = order_of(query, select, &mut own);
        if concatenates {
            return Updatability::Unsupported("a change through a view with || of texts");
        }
        Updatability::OneTable(Box::new(BaseTable {
            table: mention.table,
            columns,
            check: condition.clone().filter(|_| is_checked),
            condition,
            order,
        }))
    }
}

impl BaseTable {
    /// This view over the table of the view that is its table.
    ///
    /// # Errors
    /// 1054 for a column that is not there.
    pub fn over(mut self, inner: &BaseTable) -> Result<BaseTable> {
        for (_, expr) in &mut self.columns {
            inner.substitute(expr)?;
        }
        let put = |mut condition: Option<Expr>| {
            let of_table = condition
                .as_mut()
                .map_or(Ok(()), |expr| inner.substitute(expr));
            of_table.map(|()| condition)
        };
        let condition = put(self.condition.take())?;
        let check = put(self.check.take())?;
        for by in self.order.iter_mut().flatten() {
            inner.substitute(&mut by.expr)?;
        }
        let order = match self.order {
            Some(order) if order.is_empty() => inner.order.clone(),
            order => order,
        };
        Ok(BaseTable {
            order,
            table: inner.table.clone(),
            columns: self.columns,
            condition: both(inner.condition.clone(), condition),
            check: both(inner.check.clone(), check),
        })
    }

    /// Puts columns in the places of names that stand alone.
    fn substitute(&self, expr: &mut Expr) -> Result<()> {
        let mut missing = None;
        change_expressions(expr, &mut |expr| {
            let Expr::Identifier(name) = &*expr else {
                return;
            };
            let name = name.clone();
            if column(expr).is_none() {
                return;
            }
            match self.column(&name.value) {
                Some(found) => *expr = nested(found.clone()),
                None => missing = Some(name.value),
            }
        });
        missing.map_or(Ok(()), |name| Err(unknown(&name, "field list")))
    }

    fn column(&self, name: &str) -> Option<&Expr> {
        let name = name.to_lowercase();
        let mut columns = self.columns.iter();
        columns
            .find(|(known, _)| *known == name)
            .map(|(_, expr)| expr)
    }

    /// The column of the table that a column of the view is, if it is one.
    fn simple(&self, name: &str) -> Option<&str> {
        match self.column(name)? {
            Expr::Identifier(ident) => Some(&ident.value),
            _ => None,
        }
    }

    /// What rows must meet that are written through the view, over columns of the table.
    pub fn check(&self) -> Option<&Expr> {
        self.check.as_ref()
    }

    /// The columns of the table that columns of the view are.
    pub fn shown(&self) -> impl Iterator<Item = &str> {
        let columns = self.columns.iter();
        columns.filter_map(|(_, expr)| match expr {
            Expr::Identifier(ident) => Some(ident.value.as_str()),
            _ => None,
        })
    }
}

/// How a statement that changes rows of a view becomes one on the base table: what stands there in
/// the place of the view and its columns.
#[derive(Clone, Copy)]
pub struct Substitution<'a> {
    /// The table of the view.
    pub base: &'a BaseTable,
    /// What the statement calls the view.
    pub called: &'a str,
    /// What the table is called in its place.
    pub named: &'a str,
    /// The columns of the table, in lower case.
    pub table_columns: &'a [String],
    /// Whether names alone may be those of other tables, too: of a query whose rows are inserted.
    pub has_others: bool,
    /// The alias of the row that would have come, with the names that it gives to columns.
    pub new_row: Option<(&'a str, &'a [String])>,
}

impl Substitution<'_> {
    /// Puts what columns are into an expression of the statement.
    ///
    /// # Errors
    /// 1054 for a column that the view has not, 1235 for a name alone in a subquery that may be one
    /// of the view.
    fn substitute(&self, expr: &mut Expr, clause: &str) -> Result<()> {
        if names_table(expr, self.called) {
            let what = "a change through a view whose name a subquery gives to another table";
            return Err(not_yet(what));
        }
        change_expressions(expr, &mut |expr| {
            if let Expr::Function(function) = expr {
                // The unit of TIMESTAMPDIFF is no name.
                syntax::unit(function);
            }
        });
        let mut error = None;
        change_with_depth(expr, &mut |expr, depth| {
            let is_name = matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
            let Some(parts) = column(expr).filter(|_| is_name) else {
                return;
            };
            let (name, is_alone) = match parts {
                [name] => (name, true),
                [.., table, name] if table.value == self.called => (name, false),
                _ => return,
            };
            let found = self.base.column(&name.value);
            if is_alone && depth > 0 {
                let lower = name.value.to_lowercase();
                let is_of_table = self.table_columns.contains(&lower);
                let is_itself = self.base.simple(&name.value);
                let is_itself = is_itself.is_some_and(|own| own.to_lowercase() == lower);
                if !is_itself && (found.is_some() || is_of_table) {
                    let what = "a name alone in a subquery of a change through a view";
                    error.get_or_insert_with(|| not_yet(what));
                }
                return;
            }
            if found.is_none()
                && is_alone
                && let Some(row) = self.new_row_with(&name.value)
            {
                *expr = change::column(row, &name.value);
                return;
            }
            match found {
                Some(found) => {
                    let mut found = found.clone();
                    self.qualify(&mut found);
                    *expr = nested(found);
                }
                None if is_alone && self.has_others => {
                    if self.table_columns.contains(&name.value.to_lowercase()) {
                        let what = "a name alone behind INSERT of a query through a view";
                        error.get_or_insert_with(|| not_yet(what));
                    }
                }
                None => {
                    let name: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
                    error.get_or_insert_with(|| unknown(&name.join("."), clause));
                }
            }
        });
        error.map_or(Ok(()), Err)
    }

    /// The alias of the row that would have come, if it gives a column this name.
    fn new_row_with(&self, name: &str) -> Option<&str> {
        let (row, names) = self.new_row?;
        let mut names = names.iter();
        names
            .any(|own| own.eq_ignore_ascii_case(name))
            .then_some(row)
    }

    /// Names the table in front of columns that stand alone.
    fn qualify(&self, expr: &mut Expr) {
        change_expressions(expr, &mut |expr| {
            if let Expr::Identifier(name) = &*expr
                && column(expr).is_some()
            {
                let table = Ident::with_quote('`', self.named);
                *expr = Expr::CompoundIdentifier(vec![table, name.clone()]);
            }
        });
    }

    /// The column of the table that an assignment names.
    fn assign(&self, set: &mut SetColumn) -> Result<()> {
        let is_other = |table: &TableName| table.table != self.called;
        if set.table.as_ref().is_some_and(is_other) || self.base.column(&set.column).is_none() {
            return Err(unknown(&set.name(), "field list"));
        }
        let Some(column) = self.base.simple(&set.column) else {
            let code = ErrorCode::NonUpdatableColumn;
            return Err(MySqlError::new(code, &[&set.column]));
        };
        set.column = column.to_owned();
        set.table = None;
        set.value
            .as_mut()
            .map_or(Ok(()), |value| self.substitute(value, "field list"))
    }

    /// Chooses rows of the table: those of the view that the statement chooses.
    ///
    /// # Errors
    /// As of the parts of the statement.
    pub fn choose(&self, choice: &mut RowChoice) -> Result<()> {
        if let Some(condition) = &mut choice.condition {
            self.substitute(condition, "where clause")?;
        }
        for by in &mut choice.order_by {
            self.substitute(&mut by.expr, "order clause")?;
        }
        // Which rows are the first ones the view says, where the statement does not.
        if choice.limit.is_some() && choice.order_by.is_empty() {
            let Some(order) = &self.base.order else {
                return Err(not_yet(
                    "LIMIT of a change through a view with such an ORDER BY",
                ));
            };
            choice.order_by.clone_from(order);
            for by in &mut choice.order_by {
                self.qualify(&mut by.expr);
            }
        }
        let mut own = self.base.condition.clone();
        if let Some(own) = &mut own {
            self.qualify(own);
        }
        choice.condition = both(own, choice.condition.take());
        if let Some(TableFactor::Table { name, alias, .. }) =
            choice.from.first_mut().map(|from| &mut from.relation)
        {
            *name = object(&self.base.table);
            *alias = Some(plain_alias(self.named));
        }
        Ok(())
    }

    /// Assigns to columns of the table.
    ///
    /// # Errors
    /// 1054, 1348 and 1235 for what cannot be assigned.
    pub fn assign_all(&self, assignments: &mut [SetColumn]) -> Result<()> {
        assignments.iter_mut().try_for_each(|set| self.assign(set))
    }

    /// Inserts into the table; `view` has the names of the view's columns. Returns the columns that
    /// get values.
    ///
    /// # Errors
    /// 1471 for a column that is computed; as of the parts of the statement.
    pub fn insert(&self, insert: &mut Insert, view: &[String]) -> Result<()> {
        let named = match insert.columns.is_empty() {
            true => view.to_vec(),
            false => insert.columns.clone(),
        };
        let is_other = |table: &TableName| table.table != self.called;
        let mut qualified = insert.qualified.iter();
        if let Some((table, column)) = qualified.find(|(table, _)| is_other(table)) {
            return Err(unknown(&format!("{table}.{column}"), "field list"));
        }
        insert.qualified.clear();
        insert.columns = self.columns(&named, "INSERT")?;
        let mut seen = HashSet::new();
        let mut columns = insert.columns.iter();
        if !columns.all(|column| seen.insert(column.to_lowercase())) {
            let code = ErrorCode::NonInsertableTable;
            return Err(MySqlError::new(code, &[&self.called, &"INSERT"]));
        }
        let alias = insert.alias.clone();
        if let Some((_, names)) = &mut insert.alias
            && names.is_empty()
        {
            names.clone_from(&named);
        }
        if let InsertSource::Values(rows) = &mut insert.source {
            for value in rows.iter_mut().flatten().flatten() {
                self.substitute(value, "field list")?;
            }
        }
        let has_others = matches!(insert.source, InsertSource::Query(_));
        let new_row = alias.as_ref();
        let behind = Substitution {
            has_others,
            new_row: new_row.map(|(row, names)| (row.as_str(), names.as_slice())),
            ..*self
        };
        behind.assign_all(&mut insert.on_duplicate)?;
        insert.table.clone_from(&self.base.table);
        Ok(())
    }

    /// Loads into the table.
    ///
    /// # Errors
    /// As of [`Substitution::insert`].
    pub fn load(&self, load: &mut LoadData, view: &[String]) -> Result<()> {
        if load.targets.is_empty() {
            let all = view.iter().cloned().map(LoadTarget::Column);
            load.targets = all.collect();
        }
        for target in &mut load.targets {
            if let LoadTarget::Column(name) = target {
                let mut column = self.columns(std::slice::from_ref(name), "LOAD")?;
                *name = column.swap_remove(0);
            }
        }
        self.assign_all(&mut load.assignments)?;
        load.table.clone_from(&self.base.table);
        Ok(())
    }

    /// The columns of the table that take values for these of the view.
    fn columns(&self, named: &[String], command: &str) -> Result<Vec<String>> {
        let columns = named.iter().map(|name| {
            if self.base.column(name).is_none() {
                return Err(unknown(name, "field list"));
            }
            let column = self.base.simple(name).map(str::to_owned);
            column.ok_or_else(|| {
                let code = ErrorCode::NonInsertableTable;
                MySqlError::new(code, &[&self.called, &command])
            })
        });
        columns.collect()
    }
}

/// Makes all columns of an expression over one table names alone.
fn alone(expr: &mut Expr) {
    change_expressions(expr, &mut |expr| {
        if let Expr::Function(function) = expr {
            syntax::unit(function);
        }
    });
    change_expressions(expr, &mut |expr| {
        let is_name = matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
        if is_name && let Some(name) = column(expr).and_then(<[Ident]>::last) {
            *expr = Expr::Identifier(Ident::with_quote('`', &name.value));
        }
    });
    // A column in parentheses is one all the same.
    while let Expr::Nested(inner) = expr
        && column(inner).is_some()
    {
        *expr = inner.as_ref().clone();
    }
}

/// An expression in the place of a name.
fn nested(expr: Expr) -> Expr {
    match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Nested(_) => expr,
        expr => Expr::Nested(Box::new(expr)),
    }
}

fn both(left: Option<Expr>, right: Option<Expr>) -> Option<Expr> {
    match (left, right) {
        (Some(left), Some(right)) => Some(Expr::BinaryOp {
            left: Box::new(nested(left)),
            op: BinaryOperator::And,
            right: Box::new(nested(right)),
        }),
        (left, right) => left.or(right),
    }
}

fn object(table: &TableName) -> ObjectName {
    let parts = table.database.iter().chain([&table.table]);
    let parts = parts.map(|part| ObjectNamePart::Identifier(Ident::with_quote('`', part)));
    ObjectName(parts.collect())
}

/// Whether a table of a subquery goes by a name.
fn names_table(node: &impl Visit, name: &str) -> bool {
    struct Search<'a>(&'a str);
    impl Visitor for Search<'_> {
        type Break = ();

        fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
            match name_of(factor).is_some_and(|called| called == self.0) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }
    walk::read(node, &mut Search(name)).is_break()
}

fn unknown(name: &str, clause: &str) -> MySqlError {
    MySqlError::new(ErrorCode::UnknownColumn, &[&name, &clause])
}

fn not_yet(what: &str) -> MySqlError {
    MySqlError::new(ErrorCode::NotSupportedYet, &[&what])
}
