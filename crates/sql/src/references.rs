//! What a query mentions and its planner needs to be given: tables, files, variables.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr, Ident, ObjectName, Query, TableFactor, TableWithJoins, Visitor,
};

use crate::statement::TableName;
use crate::walk;

/// The outside things that a query mentions.
#[derive(Debug, Clone, Default)]
pub struct References {
    /// Names that may be tables; some of them may be common table expressions.
    pub tables: Vec<TableName>,
    /// Files read as tables.
    pub files: BTreeSet<String>,
    /// User variables, in lower case, without `@`.
    pub user_variables: BTreeSet<String>,
    /// System variables as written after `@@`, in lower case: `x` or `scope.x`.
    pub system_variables: BTreeSet<String>,
}

impl References {
    /// Collects what `query` mentions.
    pub fn of_query(query: &Query) -> References {
        let mut references = References::default();
        let _ = walk::read(query, &mut references);
        references
    }

    /// Collects what the tables of a FROM mention.
    pub fn of_tables(tables: &[TableWithJoins]) -> References {
        let mut references = References::default();
        for table in tables {
            let _ = walk::read(table, &mut references);
        }
        references
    }

    /// Takes up what something else mentions.
    pub fn add(&mut self, other: References) {
        self.tables.extend(other.tables);
        self.files.extend(other.files);
        self.user_variables.extend(other.user_variables);
        self.system_variables.extend(other.system_variables);
    }

    /// Collects what `expression` mentions.
    pub fn of_expression(expression: &Expr) -> References {
        let mut references = References::default();
        let _ = walk::read(expression, &mut references);
        references
    }
}

/// The file that a table factor names: a quoted string in the place of a table.
pub(crate) fn file_path(name: &ObjectName) -> Option<&str> {
    match name.0.as_slice() {
        [part] => {
            let ident = part.as_ident()?;
            matches!(ident.quote_style, Some('\'' | '"')).then_some(ident.value.as_str())
        }
        _ => None,
    }
}

/// The table that a name of one or two parts means.
pub(crate) fn table_name(name: &ObjectName) -> Option<TableName> {
    let parts: Option<Vec<&str>> = name
        .0
        .iter()
        .map(|part| part.as_ident().map(|ident| ident.value.as_str()))
        .collect();
    match parts?.as_slice() {
        [table] => Some(TableName {
            database: None,
            table: (*table).to_owned(),
        }),
        [database, table] => Some(TableName {
            database: Some((*database).to_owned()),
            table: (*table).to_owned(),
        }),
        _ => None,
    }
}

/// `UTC_DATE` and its like are calls without parentheses.
pub fn is_clock(ident: &Ident) -> bool {
    let clocks = ["utc_date", "utc_time", "utc_timestamp"];
    ident.quote_style.is_none()
        && clocks
            .iter()
            .any(|clock| ident.value.eq_ignore_ascii_case(clock))
}

/// A variable that an identifier means.
pub(crate) enum Variable {
    User(String),
    System(String),
}

pub(crate) fn variable(expression: &Expr) -> Option<Variable> {
    match expression {
        Expr::Identifier(ident) => {
            let value = ident.value.to_ascii_lowercase();
            if let Some(name) = value.strip_prefix("@@") {
                Some(Variable::System(name.to_owned()))
            } else {
                value
                    .strip_prefix('@')
                    .map(|name| Variable::User(name.to_owned()))
            }
        }
        Expr::CompoundIdentifier(parts) => {
            let first = parts.first()?.value.to_ascii_lowercase();
            let scope = first.strip_prefix("@@")?;
            let rest: Vec<String> = parts[1..]
                .iter()
                .map(|part| part.value.to_ascii_lowercase())
                .collect();
            Some(Variable::System(format!("{scope}.{}", rest.join("."))))
        }
        _ => None,
    }
}

impl Visitor for References {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, .. } = factor {
            if let Some(path) = file_path(name) {
                self.files.insert(path.to_owned());
            } else if let Some(name) = table_name(name) {
                self.add_table(name);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if let ast::SetExpr::Table(table) = query.body.as_ref()
            && let Some(name) = &table.table_name
        {
            self.add_table(TableName {
                database: table.schema_name.clone(),
                table: name.clone(),
            });
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        match variable(expression) {
            Some(Variable::User(name)) => {
                self.user_variables.insert(name);
            }
            Some(Variable::System(name)) => {
                self.system_variables.insert(name);
            }
            None => {}
        }
        ControlFlow::Continue(())
    }
}

impl References {
    fn add_table(&mut self, name: TableName) {
        if !self.tables.contains(&name) {
            self.tables.push(name);
        }
    }
}
