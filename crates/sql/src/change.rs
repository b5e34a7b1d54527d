//! What UPDATE and DELETE read: the rows that they change and the values that these get.
//!
//! Owns the query that takes the place of the statement: its tables that change are named anew, so
//! that they, and not other mentions of them, show the ids of their rows. DataFusion's own plans
//! for UPDATE and DELETE are never used: they forget conditions that they cannot push down.

mod mentions;

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, LimitClause, ObjectName,
    ObjectNamePart, OrderBy, OrderByKind, Query, SelectItem, SetExpr, TableFactor, TableWithJoins,
    Visitor,
};
use mayfly_types::{ColumnType, ErrorCode, MySqlError};

pub use self::mentions::{Mention, derive, derived, mentions, only_table};
use self::mentions::{each_table, table_of};
use crate::bindings::Bindings;
pub use crate::changed_names::{ROW_ID, TARGETS, target_name};
use crate::from_list::{is_by_name, joins, plain_alias};
use crate::functions::cast::{Nulls, keeping_name};
use crate::parse;
use crate::planning::check_grown;
use crate::rewrite::{call, common_columns, refused};
use crate::statement::RowChoice;
use crate::walk::{self, change_expressions, change_with_depth, counts_depth};

/// What ON DUPLICATE KEY UPDATE calls the row that would have come.
#[derive(Debug, Clone, Default)]
pub struct NewRow {
    /// The alias of the row.
    pub alias: Option<String>,
    /// The names that its columns got, each with the column of the table.
    pub renamed: Vec<(String, String)>,
}

/// The name of a column of the row that would have come, beside those of the row that is there.
pub fn new_column(name: &str) -> String {
    format!("\u{1}new {}", name.to_lowercase())
}

/// Names the columns of the row that would have come: `VALUES(a)`, and `new.a` behind an alias. No
/// name of a column has a database any more.
pub fn name_new_row(value: &mut Expr, table: &str, new: &NewRow) {
    let named = |column: &str| {
        let renamed = new.renamed.iter();
        let mut renamed = renamed.filter(|(name, _)| name.eq_ignore_ascii_case(column));
        let column = renamed.next().map_or(column, |(_, column)| column.as_str());
        self::column(table, &new_column(column))
    };
    change_expressions(value, &mut |expr| {
        let found = match &*expr {
            Expr::Function(function) if is_values(&function.name) => match &function.args {
                FunctionArguments::List(list) => match list.args.as_slice() {
                    [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] => match argument {
                        Expr::Identifier(ident) => Some(named(&ident.value)),
                        // One of another table is told to be unknown by its own name.
                        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                            [of, ident] if of.value == table => Some(named(&ident.value)),
                            _ => Some(argument.clone()),
                        },
                        _ => None,
                    },
                    _ => None,
                },
                _ => None,
            },
            Expr::CompoundIdentifier(parts) => match (parts.as_slice(), &new.alias) {
                ([row, ident], Some(alias)) if row.value == *alias => Some(named(&ident.value)),
                _ => None,
            },
            // A name that only the columns of the alias have.
            Expr::Identifier(ident) => {
                let mut names = new.renamed.iter();
                names
                    .any(|(name, _)| name.eq_ignore_ascii_case(&ident.value))
                    .then(|| named(&ident.value))
            }
            _ => None,
        };
        if let Some(found) = found {
            *expr = found;
        }
    });
}

fn is_values(name: &ObjectName) -> bool {
    matches!(name.0.as_slice(), [ObjectNamePart::Identifier(ident)]
        if ident.value.eq_ignore_ascii_case("VALUES"))
}

/// Values that are written, and orders in which rows change, are those of one row: they have no
/// aggregates and no window functions.
///
/// # Errors
/// 1111 and 3593.
pub fn refuse_groups<'a>(
    exprs: impl IntoIterator<Item = &'a Expr>,
    aggregates: &HashSet<String>,
) -> Result<(), MySqlError> {
    { exprs.into_iter() }.try_for_each(|expr| {
        refused::check_no_window(expr)?;
        refused::check_no_aggregate(expr, aggregates)
    })
}

/// Whether tables of a FROM list are joined by NATURAL JOIN or USING.
pub fn joins_by_name(from: &[TableWithJoins]) -> bool {
    joins(from).into_iter().any(is_by_name)
}

/// The alias or name of the table whose column a name means that stands alone, if tables are joined
/// by a column of that name.
///
/// # Errors
/// 1052 and 1054 for common columns that are several or none.
pub fn owner(
    from: &[TableWithJoins],
    column: &str,
    bindings: &Bindings,
) -> Result<Option<String>, MySqlError> {
    common_columns::owner(from, column, bindings)
}

/// Names the table with this alias as the n-th one that changes.
pub fn name_target(from: &mut [TableWithJoins], alias: &str, number: usize) {
    each_table(from, &mut |name, found| {
        let Some(table) = table_of(name) else {
            return;
        };
        let own = found
            .as_ref()
            .map_or(&table.table, |alias| &alias.name.value);
        if own == alias && table.database.as_deref() != Some(TARGETS) {
            found.get_or_insert_with(|| plain_alias(alias));
            *name = target_object(number);
        }
    });
}

/// The n-th table that changes, under an alias, as a FROM list.
///
/// # Errors
/// None but for a bug in the parser.
pub fn target_table(alias: &str, number: usize) -> Result<TableWithJoins, MySqlError> {
    let mut from = match *parse::skeleton("SELECT 1 FROM t AS a")?.body {
        SetExpr::Select(select) => select.from,
        _ => Vec::new(),
    };
    each_table(&mut from, &mut |name, found| {
        *name = target_object(number);
        if let Some(found) = found {
            found.name = Ident::with_quote('`', alias);
        }
    });
    from.pop()
        .ok_or_else(|| MySqlError::new(ErrorCode::NoTablesUsed, &[]))
}

fn target_object(number: usize) -> ObjectName {
    ObjectName(vec![
        ObjectNamePart::Identifier(Ident::with_quote('`', TARGETS)),
        ObjectNamePart::Identifier(Ident::with_quote('`', target_name(number))),
    ])
}

/// Puts the chosen rows of the one table that changes, which has these columns, in the place of the
/// table: what is then computed from them is computed for no others. The engine would compute it
/// for all rows, and then sort them.
///
/// # Errors
/// None but for a bug in the parser.
pub fn choose_first(
    choice: RowChoice,
    alias: &str,
    columns: &[&str],
) -> Result<RowChoice, MySqlError> {
    let mut chosen = query(
        choice,
        columns.iter().map(|name| column(alias, name)).collect(),
    )?;
    if let SetExpr::Select(select) = chosen.body.as_mut() {
        for (item, name) in select.projection.iter_mut().zip(columns) {
            if let SelectItem::ExprWithAlias { alias, .. } = item {
                *alias = Ident::with_quote('`', *name);
            }
        }
    }
    let mut from = match *parse::skeleton("SELECT 1 FROM (SELECT 1) AS a")?.body {
        SetExpr::Select(select) => select.from,
        _ => Vec::new(),
    };
    for table in &mut from {
        if let TableFactor::Derived {
            subquery,
            alias: Some(named),
            ..
        } = &mut table.relation
        {
            **subquery = chosen.clone();
            named.name = Ident::with_quote('`', alias);
        }
    }
    Ok(RowChoice {
        from,
        condition: None,
        order_by: Vec::new(),
        limit: None,
    })
}

/// A column of a table.
pub fn column(alias: &str, name: &str) -> Expr {
    Expr::CompoundIdentifier(vec![
        Ident::with_quote('`', alias),
        Ident::with_quote('`', name),
    ])
}

/// The query that reads the chosen rows: some expressions over them.
///
/// # Errors
/// None but for a bug in the parser.
pub fn query(choice: RowChoice, list: Vec<Expr>) -> Result<Query, MySqlError> {
    let mut query = parse::select_one()?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        let name = |index: usize| Ident::with_quote('`', format!("\u{1}value {index}"));
        select.projection = list
            .into_iter()
            .enumerate()
            .map(|(index, expr)| SelectItem::ExprWithAlias {
                expr,
                alias: name(index),
            })
            .collect();
        select.from = choice.from;
        select.selection = choice.condition;
    }
    if !choice.order_by.is_empty() {
        query.order_by = Some(OrderBy {
            kind: OrderByKind::Expressions(choice.order_by),
            interpolate: None,
        });
    }
    if let Some(limit) = choice.limit {
        query.limit_clause = Some(LimitClause::LimitOffset {
            limit: Some(limit),
            offset: None,
            limit_by: Vec::new(),
        });
    }
    Ok(query)
}

/// Puts a value in the place of a column of the table. A name that stands alone in a subquery is
/// left to the tables of that.
pub fn substitute(expr: &mut Expr, alias: &str, name: &str, value: &Expr) {
    change_with_depth(expr, &mut |expr, depth| {
        let found = column_name(expr, alias, depth);
        if found.is_some_and(|found| found.eq_ignore_ascii_case(name)) {
            *expr = value.clone();
        }
    });
}

/// The name of the column of a table that an expression is, in so many subqueries.
fn column_name<'a>(expr: &'a Expr, alias: &str, depth: usize) -> Option<&'a str> {
    match expr {
        Expr::Identifier(ident) if depth == 0 => Some(&ident.value),
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [.., table, column] if table.value == alias => Some(&column.value),
            _ => None,
        },
        _ => None,
    }
}

/// What columns of a table have got by the assignments before: MySQL computes those of an UPDATE of
/// one table one after the other, and each sees the ones before it.
pub struct Assigned {
    alias: String,
    /// The columns of the table, in lower case.
    columns: HashSet<String>,
    /// The values, with their sizes, by the names of the columns in lower case.
    values: HashMap<String, (Expr, u64)>,
    /// Nodes of all assignments: as they are written, and with the values of those before them.
    plain: u64,
    written: u64,
}

impl Assigned {
    /// Nothing is assigned yet to a table with these columns.
    pub fn new<'c>(alias: &str, columns: impl IntoIterator<Item = &'c String>) -> Assigned {
        let columns = columns.into_iter().map(|name| name.to_lowercase());
        Assigned {
            alias: alias.to_owned(),
            columns: columns.collect(),
            values: HashMap::new(),
            plain: 0,
            written: 0,
        }
    }

    /// Puts what columns have got into the value that the next one gets.
    ///
    /// # Errors
    /// 1436 where all values together would become too large: in `SET a = b + b, b = a + a` they
    /// double with each assignment.
    pub fn put_into(&mut self, value: &mut Expr) -> Result<(), MySqlError> {
        let (plain, written) = self.sizes_with(value);
        check_grown(plain, written, 0)?;
        self.plain = plain;
        if self.values.is_empty() {
            return Ok(());
        }
        change_with_depth(value, &mut |expr, depth| {
            // What has been put in names columns as they were before.
            if let Some((value, _)) = self.value_of(expr, depth) {
                *expr = match depth {
                    0 => value.clone(),
                    _ => self.qualified(value.clone()),
                };
            }
        });
        Ok(())
    }

    /// A value with the table before its columns: tables of a subquery may have such columns.
    fn qualified(&self, mut value: Expr) -> Expr {
        change_with_depth(&mut value, &mut |expr, depth| {
            if let Expr::Identifier(ident) = expr
                && depth == 0
                && self.columns.contains(&ident.value.to_lowercase())
            {
                *expr = column(&self.alias, &ident.value);
            }
        });
        value
    }

    /// A column gets a value, into which those before it have been put.
    pub fn add(&mut self, name: &str, value: Expr) {
        let size = walk::size(&value);
        self.written = self.written.saturating_add(size);
        self.values.insert(name.to_lowercase(), (value, size));
    }

    /// What the column that an expression is, in so many subqueries, has got, with its size.
    fn value_of(&self, expr: &Expr, depth: usize) -> Option<&(Expr, u64)> {
        let name = column_name(expr, &self.alias, depth)?;
        self.values.get(&name.to_lowercase())
    }

    /// The sizes of all assignments and of a value with what columns have got.
    fn sizes_with(&self, value: &Expr) -> (u64, u64) {
        struct Sizes<'a> {
            assigned: &'a Assigned,
            depth: usize,
            plain: u64,
            written: u64,
        }
        impl Visitor for Sizes<'_> {
            type Break = ();

            counts_depth!(&Query);

            fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
                let put = self.assigned.value_of(expr, self.depth);
                self.plain += 1;
                self.written = self
                    .written
                    .saturating_add(put.map_or(1, |(_, size)| *size));
                ControlFlow::Continue(())
            }
        }
        let mut sizes = Sizes {
            assigned: self,
            depth: 0,
            plain: self.plain,
            written: self.written,
        };
        let _always_continues = walk::read(value, &mut sizes);
        (sizes.plain, sizes.written)
    }
}

/// A value as a column of this type keeps it.
pub fn kept_as(value: Expr, of: &ColumnType) -> Expr {
    call(&keeping_name(of, Nulls::Stay), vec![value])
}

/// The same for a column that takes no NULL: it keeps the zero of its type, if that has one.
pub fn kept_or_zero(value: Expr, of: &ColumnType) -> Expr {
    call(&keeping_name(of, Nulls::Zero), vec![value])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_see_those_before_them() {
        let mut before = Assigned::new("t", &[]);
        let mut put = |column: &str, text: &str| {
            let mut value = parse::parse_expression(text).unwrap();
            before.put_into(&mut value)?;
            let shown = value.to_string();
            before.add(column, Expr::Nested(Box::new(value)));
            Ok::<_, MySqlError>(shown)
        };
        assert_eq!(put("a", "b + 1").unwrap(), "b + 1");
        assert_eq!(put("B", "u.a + t.a + c").unwrap(), "u.a + (b + 1) + c");
        // The `b` in `a` is the one that was there before.
        assert_eq!(put("c", "a").unwrap(), "(b + 1)");
    }

    #[test]
    fn a_value_in_a_subquery_names_the_table() {
        let mut before = Assigned::new("t", &["C".to_owned()]);
        before.add("b", parse::parse_expression("c + u.c + x").unwrap());
        let text = "b + (SELECT MAX(u.a) FROM u WHERE u.c < t.b)";
        let mut value = parse::parse_expression(text).unwrap();
        before.put_into(&mut value).unwrap();
        assert_eq!(
            value.to_string(),
            "c + u.c + x + (SELECT MAX(u.a) FROM u WHERE u.c < `t`.`c` + u.c + x)"
        );
    }

    #[test]
    fn assignments_that_double_are_refused() {
        let mut before = Assigned::new("t", &[]);
        let mut refused = None;
        for at in 0..100 {
            let (from, to) = if at % 2 == 0 { ("b", "a") } else { ("a", "b") };
            let mut value = parse::parse_expression(&format!("{from} + {from}")).unwrap();
            if let Err(error) = before.put_into(&mut value) {
                refused = Some((at, error.code));
                break;
            }
            before.add(to, value);
        }
        let (at, code) = refused.unwrap();
        assert!((10..20).contains(&at), "{at}");
        assert_eq!(code, 1436);
    }

    #[test]
    fn long_assignments_that_do_not_are_not() {
        let mut before = Assigned::new("t", &[]);
        for at in 0..4096 {
            let items = vec!["1"; 50].join(", ");
            let mut value = parse::parse_expression(&format!("CONCAT({items})")).unwrap();
            before.put_into(&mut value).unwrap();
            before.add(&format!("c{at}"), value);
        }
    }
}
