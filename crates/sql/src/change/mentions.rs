//! The tables of a FROM list of which rows may change, as the statement mentions them.

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    ObjectName, SetExpr, TableAlias, TableFactor, TableWithJoins,
};
use mayfly_types::MySqlError;

use crate::from_list::{plain_alias, tables_mut};
use crate::inner_name::shown;
use crate::parse;
use crate::references::{file_path, table_name};
use crate::statement::TableName;

/// A table in a FROM list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// The table as it is named.
    pub table: TableName,
    /// What its columns are qualified with: its alias, or its own name, or the inner name that it
    /// has beside another one of that name.
    pub alias: String,
    /// Whether the statement gives it an alias, which may be its own name.
    pub has_alias: bool,
}

impl Mention {
    /// A table under its own name.
    pub fn of(table: TableName) -> Mention {
        Mention {
            alias: table.table.clone(),
            has_alias: false,
            table,
        }
    }

    /// A table under an alias, if it has one.
    fn under(table: TableName, alias: Option<&TableAlias>) -> Mention {
        match alias {
            Some(alias) => Mention {
                alias: alias.name.value.clone(),
                has_alias: true,
                table,
            },
            None => Mention::of(table),
        }
    }

    /// Whether a name in front of FROM means this table, where `database` is the current one. An
    /// alias stands in no database.
    pub fn is_named(&self, name: &TableName, database: Option<&str>) -> bool {
        shown(&self.alias) == name.table
            && match self.has_alias {
                false => self.database(database) == name.database.as_deref().or(database),
                true => name.database.is_none(),
            }
    }

    /// Whether a name in front of a column means this table. There an alias stands in the database
    /// of its table, and a name without one means a table of any.
    pub fn owns(&self, name: &TableName, database: Option<&str>) -> bool {
        let named = name.database.as_deref();
        let is_called = self.alias == name.table || shown(&self.alias) == name.table;
        is_called && (named.is_none() || named == self.database(database))
    }

    /// The database of the table, where `current` is the current one.
    pub(crate) fn database<'a>(&'a self, current: Option<&'a str>) -> Option<&'a str> {
        self.table.database.as_deref().or(current)
    }
}

/// The tables of a FROM list, without derived ones.
pub fn mentions(from: &mut [TableWithJoins]) -> Vec<Mention> {
    let mut found = Vec::new();
    each_table(from, &mut |name, alias| {
        if let Some(table) = table_of(name) {
            found.push(Mention::under(table, alias.as_ref()));
        }
    });
    found
}

/// Puts a derived table of all its rows in the place of a table.
///
/// # Errors
/// None but for a bug in the parser.
pub fn derive(from: &mut [TableWithJoins], mention: &Mention) -> Result<(), MySqlError> {
    for factor in tables_mut(from) {
        let TableFactor::Table { name, alias, .. } = &*factor else {
            continue;
        };
        let table = table_of(name);
        if table.is_none_or(|table| Mention::under(table, alias.as_ref()) != *mention) {
            continue;
        }
        let (name, alias) = (name.clone(), alias.clone());
        let mut rows = parse::skeleton("SELECT * FROM t")?;
        if let SetExpr::Select(select) = rows.body.as_mut() {
            // It stands nowhere in the statement.
            select.select_token = AttachedToken::empty();
            each_table(&mut select.from, &mut |own, _| own.clone_from(&name));
        }
        *factor = TableFactor::Derived {
            lateral: false,
            subquery: Box::new(rows),
            alias: Some(alias.unwrap_or_else(|| plain_alias(&mention.alias))),
            sample: None,
        };
    }
    Ok(())
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
    Some(Mention::under(table_of(name)?, alias.as_ref()))
}

/// The table of a name that is no file.
pub(super) fn table_of(name: &ObjectName) -> Option<TableName> {
    match file_path(name) {
        None => table_name(name),
        Some(_) => None,
    }
}

/// Shows the name and the alias of each table that is no derived one.
pub(super) fn each_table(
    from: &mut [TableWithJoins],
    visit: &mut dyn FnMut(&mut ObjectName, &mut Option<TableAlias>),
) {
    for table in tables_mut(from) {
        if let TableFactor::Table { name, alias, .. } = table {
            visit(name, alias);
        }
    }
}
