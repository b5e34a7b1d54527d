//! Walks over what a FROM clause lists, through joins in parentheses, from left to right; and the
//! aliases that tables get there.
//!
//! Derived tables are tables here: what they are made of is not walked.

use datafusion::sql::sqlparser::ast::{
    Ident, JoinConstraint, JoinOperator, ObjectName, TableAlias, TableFactor, TableWithJoins,
};

macro_rules! walk {
    ($tables:ident, $joins:ident, $found:ident, $iter:ident $(, $mutable:tt)?) => {
        #[derive(Default)]
        struct $found<'a> {
            tables: Vec<&'a $($mutable)? TableFactor>,
            joins: Vec<&'a $($mutable)? JoinOperator>,
        }

        impl<'a> $found<'a> {
            fn of(from: &'a $($mutable)? [TableWithJoins]) -> Self {
                let mut found = Self::default();
                from.$iter().for_each(|table| found.add_joined(table));
                found
            }

            fn add_joined(&mut self, table: &'a $($mutable)? TableWithJoins) {
                self.add(& $($mutable)? table.relation);
                for join in & $($mutable)? table.joins {
                    self.add(& $($mutable)? join.relation);
                    self.joins.push(& $($mutable)? join.join_operator);
                }
            }

            fn add(&mut self, factor: &'a $($mutable)? TableFactor) {
                match factor {
                    TableFactor::NestedJoin {
                        table_with_joins, ..
                    } => self.add_joined(table_with_joins),
                    table => self.tables.push(table),
                }
            }
        }

        /// The tables of a FROM clause.
        pub(crate) fn $tables(from: & $($mutable)? [TableWithJoins]) -> Vec<& $($mutable)? TableFactor> {
            $found::of(from).tables
        }

        /// How the tables of a FROM clause are joined.
        pub(crate) fn $joins(from: & $($mutable)? [TableWithJoins]) -> Vec<& $($mutable)? JoinOperator> {
            $found::of(from).joins
        }
    };
}

walk!(tables, joins, Found, iter);
walk!(tables_mut, joins_mut, FoundMut, iter_mut, mut);

macro_rules! constraint_of {
    ($operator:expr) => {
        match $operator {
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::Left(constraint)
            | JoinOperator::LeftOuter(constraint)
            | JoinOperator::Right(constraint)
            | JoinOperator::RightOuter(constraint)
            | JoinOperator::FullOuter(constraint)
            | JoinOperator::CrossJoin(constraint)
            | JoinOperator::StraightJoin(constraint) => Some(constraint),
            _ => None,
        }
    };
}

/// ON, USING, NATURAL or nothing; `None` for joins that MySQL does not have.
pub fn constraint(operator: &JoinOperator) -> Option<&JoinConstraint> {
    constraint_of!(operator)
}

/// As [`constraint`], to be changed.
pub(crate) fn constraint_mut(operator: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    constraint_of!(operator)
}

/// Whether a join is NATURAL or has USING.
pub(crate) fn is_by_name(operator: &JoinOperator) -> bool {
    matches!(
        constraint(operator),
        Some(JoinConstraint::Natural | JoinConstraint::Using(_))
    )
}

/// The names that USING lists.
pub(crate) fn using(names: &[ObjectName]) -> impl Iterator<Item = &str> {
    let parts = names.iter().filter_map(|name| name.0.last()?.as_ident());
    parts.map(|ident| ident.value.as_str())
}

/// What a table that has an alias, or a name without a database, is called.
pub(crate) fn alias(factor: &TableFactor) -> Option<String> {
    match factor {
        TableFactor::Table {
            alias: Some(alias), ..
        }
        | TableFactor::Derived {
            alias: Some(alias), ..
        } => Some(alias.name.value.clone()),
        TableFactor::Table { name, .. } => match name.0.as_slice() {
            [part] => part.as_ident().map(|ident| ident.value.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// An alias that names no columns.
pub(crate) fn plain_alias(name: &str) -> TableAlias {
    TableAlias {
        explicit: true,
        name: Ident::with_quote('`', name),
        columns: Vec::new(),
        at: None,
    }
}
