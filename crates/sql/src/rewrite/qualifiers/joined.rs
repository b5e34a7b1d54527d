//! FROM: ON sees the tables that it joins, and no others.

use std::ops::{ControlFlow, Range};

use datafusion::sql::sqlparser::ast::{JoinConstraint, TableFactor, TableWithJoins};

use super::Names;
use crate::{from_list, walk};

impl Names<'_> {
    /// Settles FROM.
    pub(super) fn walk_from(&mut self, from: &mut [TableWithJoins]) -> ControlFlow<()> {
        let mut place = 0;
        from.iter_mut()
            .try_for_each(|item| self.walk_joins(item, &mut place))
    }

    /// The same for one item, whose first table has this place; leaves the place behind the last.
    fn walk_joins(&mut self, item: &mut TableWithJoins, place: &mut usize) -> ControlFlow<()> {
        let first = *place;
        self.walk_factor(&mut item.relation, place)?;
        for join in &mut item.joins {
            self.walk_factor(&mut join.relation, place)?;
            if let Some(JoinConstraint::On(on)) = from_list::constraint_mut(&mut join.join_operator)
            {
                let outside = self.see(Some(first..*place));
                walk::write(on, self)?;
                self.see(outside);
            }
        }
        ControlFlow::Continue(())
    }

    fn walk_factor(&mut self, factor: &mut TableFactor, place: &mut usize) -> ControlFlow<()> {
        match factor {
            TableFactor::NestedJoin {
                table_with_joins, ..
            } => self.walk_joins(table_with_joins, place),
            table => {
                *place += 1;
                walk::write(table, self)
            }
        }
    }

    /// Lets names mean those tables of the innermost select that have these places; returns which
    /// ones they could mean before.
    fn see(&mut self, joined: Option<Range<usize>>) -> Option<Range<usize>> {
        let scope = self.scopes.last_mut()?.as_mut()?;
        std::mem::replace(&mut scope.joined, joined)
    }
}
