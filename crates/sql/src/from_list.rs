//! Walks over what a FROM clause lists, through joins in parentheses, from left to right.
//!
//! Derived tables are tables here: what they are made of is not walked.

use datafusion::sql::sqlparser::ast::{
    Join, JoinConstraint, JoinOperator, ObjectName, TableFactor, TableWithJoins,
};

/// The tables of a FROM clause.
pub(crate) fn tables(from: &[TableWithJoins]) -> Vec<&TableFactor> {
    fn add<'a>(factor: &'a TableFactor, found: &mut Vec<&'a TableFactor>) {
        match factor {
            TableFactor::NestedJoin {
                table_with_joins, ..
            } => add_all(table_with_joins, found),
            _ => found.push(factor),
        }
    }
    fn add_all<'a>(table: &'a TableWithJoins, found: &mut Vec<&'a TableFactor>) {
        add(&table.relation, found);
        { table.joins.iter() }.for_each(|join| add(&join.relation, found));
    }
    let mut found = Vec::new();
    from.iter().for_each(|table| add_all(table, &mut found));
    found
}

/// As [`tables`], to be changed.
pub(crate) fn tables_mut(from: &mut [TableWithJoins]) -> Vec<&mut TableFactor> {
    fn add<'a>(factor: &'a mut TableFactor, found: &mut Vec<&'a mut TableFactor>) {
        match factor {
            TableFactor::NestedJoin {
                table_with_joins, ..
            } => add_all(table_with_joins, found),
            _ => found.push(factor),
        }
    }
    fn add_all<'a>(table: &'a mut TableWithJoins, found: &mut Vec<&'a mut TableFactor>) {
        add(&mut table.relation, found);
        { table.joins.iter_mut() }.for_each(|join| add(&mut join.relation, found));
    }
    let mut found = Vec::new();
    from.iter_mut().for_each(|table| add_all(table, &mut found));
    found
}

/// How the tables of a FROM clause are joined.
pub(crate) fn joins(from: &[TableWithJoins]) -> Vec<&JoinOperator> {
    fn add<'a>(factor: &'a TableFactor, found: &mut Vec<&'a JoinOperator>) {
        if let TableFactor::NestedJoin {
            table_with_joins, ..
        } = factor
        {
            add_all(table_with_joins, found);
        }
    }
    fn add_all<'a>(table: &'a TableWithJoins, found: &mut Vec<&'a JoinOperator>) {
        add(&table.relation, found);
        for join in &table.joins {
            add(&join.relation, found);
            found.push(&join.join_operator);
        }
    }
    let mut found = Vec::new();
    from.iter().for_each(|table| add_all(table, &mut found));
    found
}

/// As [`joins`], to be changed.
pub(crate) fn joins_mut(from: &mut [TableWithJoins]) -> Vec<&mut JoinOperator> {
    fn add<'a>(factor: &'a mut TableFactor, found: &mut Vec<&'a mut JoinOperator>) {
        if let TableFactor::NestedJoin {
            table_with_joins, ..
        } = factor
        {
            add_all(table_with_joins, found);
        }
    }
    fn add_all<'a>(table: &'a mut TableWithJoins, found: &mut Vec<&'a mut JoinOperator>) {
        add(&mut table.relation, found);
        for Join {
            relation,
            join_operator,
            ..
        } in &mut table.joins
        {
            add(relation, found);
            found.push(join_operator);
        }
    }
    let mut found = Vec::new();
    from.iter_mut().for_each(|table| add_all(table, &mut found));
    found
}

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
pub(crate) fn constraint(operator: &JoinOperator) -> Option<&JoinConstraint> {
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
