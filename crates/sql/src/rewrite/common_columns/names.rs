//! The names in an expression: those of common columns become the columns that they mean.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, VisitMut, VisitorMut};
use mayfly_types::MySqlError;

use super::outputs::Outputs;
use super::{Result, Writer, refused};
use crate::references::is_clock;
use crate::rewrite::grouping::is_aggregate;
use crate::typing::syntax;
use crate::walk;

impl Writer<'_> {
    /// Writes the names that stand in a clause of the innermost select, and the subqueries there.
    pub(super) fn names(
        &mut self,
        node: &mut impl VisitMut,
        clause: &'static str,
        outputs: Option<Outputs<'_>>,
    ) -> Result<()> {
        let mut names = Names {
            writer: self,
            clause,
            outputs,
            subqueries: 0,
            aggregates: 0,
            error: None,
        };
        let _ = walk::write(node, &mut names);
        match names.error {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// The common column that a name means, as the nearest select has it.
    fn column(&self, ident: &Ident, name: &str, clause: &str) -> Result<Option<Expr>> {
        for (depth, scope) in self.scopes.iter().enumerate().rev() {
            if !scope.is_common(name) {
                match scope.may_have(name) {
                    true => return Ok(None),
                    false => continue,
                }
            }
            let Some(column) = scope.common_column(name, clause)? else {
                continue;
            };
            let mut between = self.scopes[depth + 1..].iter();
            if between.any(|inner| inner.has_table(column.table())) {
                let what = "a common column of a table whose name a subquery gives to another one";
                return Err(refused(what));
            }
            return Ok(Some(column.spelled(ident.clone())));
        }
        Ok(None)
    }
}

struct Names<'s, 'a> {
    // fixed
    writer: &'s mut Writer<'a>,
    clause: &'static str,
    outputs: Option<Outputs<'s>>,
    // state
    /// How many subqueries are around: they were written as a whole.
    subqueries: usize,
    aggregates: usize,
    error: Option<MySqlError>,
}

impl Names<'_, '_> {
    fn enters_aggregate(&self, expr: &Expr) -> bool {
        let aggregates = &self.writer.bindings.aggregates;
        matches!(expr, Expr::Function(function) if is_aggregate(function, aggregates))
    }

    fn meaning(&self, ident: &Ident) -> Result<Option<Expr>> {
        let writer = &*self.writer;
        let name = ident.value.to_lowercase();
        let is_variable = ident.quote_style.is_none() && name.starts_with('@');
        let mut scopes = writer.scopes.iter();
        if is_variable || is_clock(ident) || !scopes.any(|scope| scope.is_common(&name)) {
            return Ok(None);
        }
        if let Some(outputs) = self.outputs
            && let Some(own) = writer.scopes.last()
        {
            if own.is_common(&name) {
                if outputs.go_first && self.aggregates == 0 {
                    let meant =
                        outputs.in_having(&name, self.clause, &|name| own.may_have(name))?;
                    if meant.is_some() {
                        return Ok(meant);
                    }
                }
            } else if !own.may_have(&name) && outputs.find(&name, self.clause)?.is_some() {
                // It is the item, before it is a column of a select around.
                return Ok(None);
            }
        }
        writer.column(ident, &name, self.clause)
    }
}

impl VisitorMut for Names<'_, '_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if self.subqueries == 0
            && let Err(error) = self.writer.query(query)
        {
            self.error = Some(error);
            return ControlFlow::Break(());
        }
        self.subqueries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.subqueries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.subqueries == 0 {
            self.aggregates += usize::from(self.enters_aggregate(expr));
            if let Expr::Function(function) = expr {
                // The unit of TIMESTAMPDIFF is no name.
                syntax::unit(function);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.subqueries > 0 {
            return ControlFlow::Continue(());
        }
        let Expr::Identifier(ident) = expr else {
            self.aggregates -= usize::from(self.enters_aggregate(expr));
            return ControlFlow::Continue(());
        };
        match self.meaning(ident) {
            Ok(None) => ControlFlow::Continue(()),
            Ok(Some(meant)) => {
                *expr = meant;
                ControlFlow::Continue(())
            }
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}
