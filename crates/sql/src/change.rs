//! What UPDATE and DELETE read: the rows that they change and the values that these get.
//!
//! Owns the query that takes the place of the statement: its tables that change are named anew, so
//! that they, and not other mentions of them, show the ids of their rows. DataFusion's own plans
//! for UPDATE and DELETE are never used: they forget conditions that they cannot push down.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, EnumMember, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    LimitClause, ObjectName, ObjectNamePart, OrderBy, OrderByKind, Query, SelectItem, SetExpr,
    TableAlias, TableFactor, TableWithJoins,
};
use mayfly_types::{ColumnType, ErrorCode, MySqlError};

use crate::bindings::Bindings;
use crate::from_list::{is_by_name, joins, tables_mut};
use crate::parse;
use crate::references::{file_path, table_name};
use crate::rewrite::{common_columns, refused};
use crate::statement::{RowChoice, TableName};
use crate::walk::{change_expressions, change_with_depth};

/// The database under which tables that change are bound, by [`target_name`].
pub const TARGETS: &str = "\u{1}changed";
/// The column that holds the id of a row.
pub const ROW_ID: &str = "\u{1}row";

/// The name that the n-th table that changes is bound to.
pub fn target_name(number: usize) -> String {
    format!("\u{1}table {number}")
}

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

/// Names the columns of the row that would have come: `VALUES(a)`, and `new.a` behind an alias.
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
                        Expr::CompoundIdentifier(parts) => {
                            parts.last().map(|ident| named(&ident.value))
                        }
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

/// A table in a FROM list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// The table as it is named.
    pub table: TableName,
    /// What its columns are qualified with: its alias, or its own name.
    pub alias: String,
}

impl Mention {
    /// A table under its own name.
    pub fn of(table: &str) -> Mention {
        Mention {
            table: TableName {
                database: None,
                table: table.to_owned(),
            },
            alias: table.to_owned(),
        }
    }

    /// Whether a name in front of FROM means this table, where `database` is the current one. An
    /// alias stands in no database.
    pub fn is_named(&self, name: &TableName, database: Option<&str>) -> bool {
        let within = |name: &TableName| name.database.as_deref().or(database).map(str::to_owned);
        self.alias == name.table
            && match self.alias == self.table.table {
                true => within(&self.table) == within(name),
                false => name.database.is_none(),
            }
    }
}

/// The tables of a FROM list, without derived ones.
pub fn mentions(from: &mut [TableWithJoins]) -> Vec<Mention> {
    let mut found = Vec::new();
    each_table(from, &mut |name, alias| {
        if let Some(table) = table_of(name) {
            let alias = match alias {
                Some(alias) => alias.name.value.clone(),
                None => table.table.clone(),
            };
            found.push(Mention { table, alias });
        }
    });
    found
}

/// The names of the derived tables of a FROM list: they cannot change.
pub fn derived(from: &mut [TableWithJoins]) -> Vec<String> {
    let tables = tables_mut(from).into_iter();
    let aliases = tables.filter_map(|table| match table {
        TableFactor::Derived { alias, .. } => alias.as_ref().map(|alias| alias.name.value.clone()),
        _ => None,
    });
    aliases.collect()
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

/// The one table of a FROM list that has nothing but a table, under its name or an alias.
pub fn only_table(from: &[TableWithJoins]) -> Option<Mention> {
    let [only] = from else {
        return None;
    };
    let TableFactor::Table {
        name,
        alias,
        args: None,
        with_ordinality: false,
        version: None,
        sample: None,
        partitions,
        with_hints,
        json_path: None,
        ..
    } = &only.relation
    else {
        return None;
    };
    let renames = alias
        .as_ref()
        .is_some_and(|alias| !alias.columns.is_empty());
    if !only.joins.is_empty() || !partitions.is_empty() || !with_hints.is_empty() || renames {
        return None;
    }
    let table = table_of(name)?;
    let alias = match alias {
        Some(alias) => alias.name.value.clone(),
        None => table.table.clone(),
    };
    Some(Mention { table, alias })
}

/// The table of a name that is no file.
fn table_of(name: &ObjectName) -> Option<TableName> {
    match file_path(name) {
        None => table_name(name),
        Some(_) => None,
    }
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
            found.get_or_insert_with(|| TableAlias {
                explicit: true,
                name: Ident::with_quote('`', alias),
                columns: Vec::new(),
                at: None,
            });
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

fn each_table(
    from: &mut [TableWithJoins],
    visit: &mut dyn FnMut(&mut ObjectName, &mut Option<TableAlias>),
) {
    for table in tables_mut(from) {
        if let TableFactor::Table { name, alias, .. } = table {
            visit(name, alias);
        }
    }
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

/// Puts the value that a column gets into an expression that is assigned later: MySQL computes the
/// assignments of an UPDATE of one table and the values of a row one after the other. A name that
/// stands alone in a subquery is left to the tables of that.
pub fn substitute(expr: &mut Expr, alias: &str, name: &str, value: &Expr) {
    let is_name = |ident: &Ident| ident.value.eq_ignore_ascii_case(name);
    change_with_depth(expr, &mut |expr, depth| {
        let is_it = match &*expr {
            Expr::Identifier(ident) => depth == 0 && is_name(ident),
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [.., table, column] => table.value == alias && is_name(column),
                _ => false,
            },
            _ => false,
        };
        if is_it {
            *expr = value.clone();
        }
    });
}

/// A value as a column of this type keeps it.
///
/// # Errors
/// None but for a bug in the parser.
pub fn kept_as(value: Expr, of: &ColumnType) -> Result<Expr, MySqlError> {
    let target = match of {
        of if of.is_integer() => match of.is_unsigned() {
            true => "UNSIGNED".to_owned(),
            false => "SIGNED".to_owned(),
        },
        ColumnType::Decimal {
            precision, scale, ..
        } => format!("DECIMAL({precision},{scale})"),
        ColumnType::Float { .. } => "FLOAT".to_owned(),
        ColumnType::Double { .. } => "DOUBLE".to_owned(),
        ColumnType::Char { length } | ColumnType::VarChar { length } => format!("CHAR({length})"),
        ColumnType::Text(_) => "CHAR".to_owned(),
        ColumnType::Date => "DATE".to_owned(),
        ColumnType::DateTime { digits } | ColumnType::Timestamp { digits } => {
            format!("DATETIME({digits})")
        }
        ColumnType::Time { digits } => format!("TIME({digits})"),
        ColumnType::Enum(_) | ColumnType::Set(_) => "CHAR".to_owned(),
        _ => return Ok(Expr::Nested(Box::new(value))),
    };
    let mut cast = parse::parse_expression(&format!("CAST(0 AS {target})"))?;
    if let Expr::Cast {
        expr,
        data_type,
        kind: CastKind::Cast,
        ..
    } = &mut cast
    {
        **expr = value;
        match of {
            ColumnType::Enum(words) => {
                let words = words.iter().cloned().map(EnumMember::Name);
                *data_type = DataType::Enum(words.collect(), None);
            }
            ColumnType::Set(words) => *data_type = DataType::Set(words.clone()),
            _ => {}
        }
    }
    Ok(cast)
}
