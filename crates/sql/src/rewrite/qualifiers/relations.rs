//! The tables of a FROM list, as names of columns mean them, and why a name means none.

use std::collections::HashSet;
use std::ops::{ControlFlow, Range};

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, JoinOperator, ObjectName, ObjectNamePart, Query, TableFactor, TableWithJoins,
    Visitor,
};
use datafusion::sql::sqlparser::tokenizer::Location;
use mayfly_types::{ErrorCode, MySqlError};

use super::columns::Columns;
use crate::bindings::SYSTEM_DATABASES;
use crate::changed_names::TARGETS;
use crate::references::table_name;
use crate::statement::TableName;
use crate::{from_list, walk};

/// The tables of a select.
#[derive(Debug)]
pub(super) struct Scope {
    /// Where the select stands: its tables are looked at for ORDER BY as well.
    pub(super) at: Location,
    pub(super) relations: Vec<Relation>,
    /// The places of those that can be named; `None` for all of them.
    pub(super) joined: Option<Range<usize>>,
}

impl Scope {
    /// The tables that can be named.
    pub(super) fn seen(&self) -> impl Iterator<Item = &Relation> {
        let is_seen = |relation: &&Relation| {
            { self.joined.as_ref() }.is_none_or(|joined| joined.contains(&relation.place))
        };
        self.relations.iter().filter(is_seen)
    }
}

/// A table of FROM, as names of columns mean it.
#[derive(Debug)]
pub(super) struct Relation {
    /// Its alias or its own name.
    pub(super) name: String,
    /// What the planner calls it, if other tables go by that name.
    pub(super) inner: Option<String>,
    /// The database that it stands in, if it stands in one.
    pub(super) database: Option<String>,
    /// Its columns in lower case, if they are known.
    pub(super) columns: Columns,
    /// The item of FROM that it is part of, if all tables there are joined by name.
    pub(super) chain: Option<usize>,
    /// Its place among the tables of FROM.
    pub(super) place: usize,
}

impl Relation {
    pub(super) fn is(&self, table: &str, database: &str) -> bool {
        let stands_in = |own: &str| {
            // A table that changes has been named anew, and its names have been settled before.
            own == database || own == TARGETS || are_one_of_system(own, database)
        };
        self.name == table && self.database.as_deref().is_some_and(stands_in)
    }

    /// Whether it is known not to have a column.
    pub(super) fn lacks(&self, column: &str) -> bool {
        let column = column.to_lowercase();
        { self.columns.as_ref() }.is_some_and(|columns| !columns.contains(&column))
    }

    /// What the planner calls it.
    fn called(&self) -> &str {
        self.inner.as_ref().unwrap_or(&self.name)
    }

    /// The name of a column of it, in which a table is written.
    pub(super) fn column(&self, table: &Ident, column: &Ident) -> Vec<Ident> {
        let mut table = table.clone();
        if let Some(inner) = &self.inner {
            table.value.clone_from(inner);
            table.quote_style = Some('`');
        }
        vec![table, column.clone()]
    }
}

/// Whether two names mean the same database of the system: those have no case.
fn are_one_of_system(one: &str, other: &str) -> bool {
    let mut names = SYSTEM_DATABASES.iter();
    one.eq_ignore_ascii_case(other) && names.any(|name| name.eq_ignore_ascii_case(one))
}

/// Why a name cannot be settled.
pub(super) enum Refused {
    /// It means no table.
    Unknown(String),
    /// It means columns of several tables.
    Ambiguous(String),
    /// It may mean columns of several tables, of which one is not known.
    Untold(String),
    /// Two tables go by one name, and nothing tells them apart.
    NotUnique(String),
}

impl Refused {
    pub(super) fn error(&self, clause: impl Fn(&str) -> &'static str) -> MySqlError {
        let (code, name) = match self {
            Refused::Unknown(name) => (ErrorCode::UnknownColumn, name),
            Refused::Ambiguous(name) => (ErrorCode::AmbiguousColumn, name),
            Refused::Untold(name) => {
                let what = format!(
                    "the column '{name}' of one of several tables of that name whose columns are \
                     not known before they are planned"
                );
                return MySqlError::new(ErrorCode::NotSupportedYet, &[&what]);
            }
            Refused::NotUnique(name) => return MySqlError::new(ErrorCode::NotUniqueTable, &[name]),
        };
        MySqlError::new(code, &[name, &clause(name)])
    }
}

/// Looks for tables of one name in one database, or in none. Each comes with the database that
/// tells it from the others.
pub(super) fn check_unique<'r>(
    relations: impl IntoIterator<Item = (&'r Relation, Option<&'r str>)>,
) -> Result<(), Refused> {
    let mut seen = HashSet::new();
    for (relation, database) in relations {
        // Those that have been told apart are told by that.
        let place = (&relation.name, database, &relation.inner);
        if !seen.insert(place) {
            return Err(Refused::NotUnique(relation.name.clone()));
        }
    }
    Ok(())
}

/// Where the first WITH of a query stands, those of its subqueries included.
pub(super) fn first_with(query: &Query) -> Option<Location> {
    struct Search {
        first: Option<Location>,
    }
    impl Visitor for Search {
        type Break = ();

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            if let Some(with) = &query.with {
                let at = with.with_token.0.span.start;
                self.first = Some(self.first.map_or(at, |first| first.min(at)));
            }
            ControlFlow::Continue(())
        }
    }
    let mut search = Search { first: None };
    let _ = walk::read(query, &mut search);
    search.first
}

/// Whether a table is named without its database behind the first WITH.
pub(super) fn may_be_cte(factor: &TableFactor, first_with: Option<Location>) -> bool {
    let TableFactor::Table { name, .. } = factor else {
        return false;
    };
    let [ObjectNamePart::Identifier(ident)] = name.0.as_slice() else {
        return false;
    };
    first_with.is_some_and(|with| with < ident.span.start)
}

/// The tables whose columns `t.*` or `d.t.*` shows, as the planner calls them.
pub(super) fn starred<'r>(name: &ObjectName, relations: &'r [Relation]) -> Vec<&'r str> {
    let Some(TableName { database, table }) = table_name(name) else {
        return Vec::new();
    };
    let is_meant = |relation: &&Relation| match &database {
        Some(database) => relation.is(&table, database),
        None => relation.name == table,
    };
    let meant = relations.iter().filter(is_meant);
    meant.map(Relation::called).collect()
}

/// Whether all tables of an item of FROM are joined by name, from left to right.
pub(super) fn is_chain(item: &TableWithJoins) -> bool {
    let is_table = |factor| !matches!(factor, &TableFactor::NestedJoin { .. });
    let is_right = |operator| {
        matches!(
            operator,
            &JoinOperator::Right(_) | &JoinOperator::RightOuter(_)
        )
    };
    let mut joins = item.joins.iter();
    is_table(&item.relation)
        && joins.all(|join| {
            let operator = &join.join_operator;
            is_table(&join.relation) && from_list::is_by_name(operator) && !is_right(operator)
        })
}

/// The parts of the name of a column that has several.
pub(super) fn column_of(expr: &Expr) -> Option<&[Ident]> {
    match expr {
        Expr::CompoundIdentifier(parts) if !parts.first()?.value.starts_with('@') => Some(parts),
        _ => None,
    }
}
