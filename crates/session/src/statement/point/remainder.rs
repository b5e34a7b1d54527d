//! What a query makes of the rows that a key finds: aggregates, an order, expressions.
//!
//! Owns plans of queries without their conditions, each made once for a shape: a condition on a key
//! is a search, and what is left of the query does not depend on its constants. A plan is made when
//! a shape comes for the second time, since it costs as much as the query.
//!
//! ```text
//!   SELECT DISTINCT c FROM t WHERE id BETWEEN ? AND ? ORDER BY c
//!          |                       |
//!          the plan, over          a search, for each statement
//!          rows that are given
//! ```
//!
//! **Never** runs a function whose value may be another one next time; which expressions are known
//! not to is a list in this file.
//!
//! **Cost**: some ten microseconds, where a plan takes a millisecond.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Distinct, Expr, Function, FunctionArg, FunctionArgExpr, GroupByExpr,
    LimitClause, OrderByKind, Query, Select, SelectItem, SetExpr,
};
use mayfly_exec::{GivenRows, GivenRowsScan, ShortPlan, Size, TempTable};
use mayfly_sql::call::plain_list;
use mayfly_sql::change::Mention;
use mayfly_sql::literal::Literal;
use mayfly_sql::references::References;
use mayfly_sql::select_list::expression_of;
use mayfly_sql::walk;
use mayfly_table::Table;

use super::compile::{Constants, column_of, is_plain};
use super::key_condition::choice;
use super::known::{Action, Choice, KnownDigests, PointStatement, Remainder};
use crate::connection::Connection;
use crate::lowered;
use crate::statement::Job;
use crate::statement::apart::Apart;
use crate::statement::few_rows::{run_short, unless_warned_elsewhere};

/// Aggregates whose value depends on their arguments only.
const AGGREGATES: [&str; 5] = ["avg", "count", "max", "min", "sum"];

/// So few rows are wanted by who wants a few.
const FIRST_ROWS_MAX: i128 = 256;

/// What came of keeping the meaning of a query.
pub(super) enum Kept {
    Now(Arc<PointStatement>),
    /// It is worth it when its shape comes again, or not at all.
    NotYet,
    /// It is no query over rows of a key.
    OtherKind,
}

impl Remainder {
    /// The columns of the table that the rows must have.
    pub(super) fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Whether it wants a few of the rows, at an end of those that the key finds: where they are
    /// many, a plan that walks along the key does not read the others.
    pub(super) fn wants_few(&self) -> bool {
        self.wants_few
    }

    /// Whether the plan would be made in the same way now.
    pub(super) fn is_of(&self, connection: &Connection) -> bool {
        connection.local().variables.version() == self.variables
    }

    /// Runs the plan, and tells which temporary tables its rows went through; `None` where it
    /// fails or would have to wait.
    pub(super) fn run(
        &self,
        rows: RecordBatch,
        connection: &Connection,
    ) -> Option<(RecordBatch, Vec<TempTable>)> {
        let most = Size::of(u64::MAX, 0);
        let context = connection.few_rows_context()?;
        let run = unless_warned_elsewhere(&self.values, connection, || {
            run_short(&self.plan, Some(rows), most, &context)
        })?;
        Some((run.rows, run.temp_tables))
    }
}

/// What a query consists of, if it is one over rows of a key.
struct Parts {
    table: Arc<Table>,
    mention: Mention,
    rows: Choice,
    wants_few: bool,
    /// The constants outside of the condition.
    fixed: Vec<(usize, Literal<'static>)>,
}

impl Job {
    /// Keeps the meaning of a query whose shape has come before, if it is one over rows of a key.
    pub(super) async fn keep_computed(&self, query: &Query) -> Kept {
        let Some(Apart { shape, given }) = Apart::of(&self.running.text) else {
            return Kept::OtherKind;
        };
        let Some((parts, constants)) = self.parts(query) else {
            return Kept::OtherKind;
        };
        if constants != given.constants {
            return Kept::OtherKind;
        }
        let Ok(database) = self.database_of(&parts.mention.table) else {
            return Kept::OtherKind;
        };
        let home = self.home(std::slice::from_ref(&parts.table));
        let there = &home.job.connection;
        let valid = || {
            let local = there.local();
            let known = local.known.get(&shape)?;
            let Action::Compute { over, .. } = &known.action else {
                return None;
            };
            let is_valid = over.variables == local.variables.version()
                && known.meant.is(&parts.table, &database);
            is_valid.then_some(known)
        };
        let mut known = valid();
        if known.is_none() {
            // Each statement counts once, so it is not asked for again below.
            let is_worth_it = there.local().known.is_worth_plan(&shape);
            if !is_worth_it && !home.is_making() {
                return Kept::NotYet;
            }
            let Some(_making) = home.begin_making().await else {
                return Kept::NotYet;
            };
            known = valid();
            if known.is_none() && is_worth_it {
                let made = Box::pin(home.job.computed(query, parts));
                known = home.job.without_warning(made).await.map(Arc::new);
                if let Some(made) = &known {
                    there.local().known.keep(shape.clone(), Arc::clone(made));
                }
            }
        }
        let Some(statement) = known else {
            return Kept::NotYet;
        };
        let own = &mut self.connection.local().known;
        own.keep(shape, Arc::clone(&statement));
        Kept::Now(statement)
    }

    /// Takes a query apart; `None` if it is of another kind.
    fn parts(&self, query: &Query) -> Option<(Parts, Vec<Option<Literal<'static>>>)> {
        let SetExpr::Select(select) = query.body.as_ref() else {
            return None;
        };
        let condition = select.selection.as_ref()?;
        let (table, mention) = self.keyed(&select.from)?;
        // The constants come in the order of the text.
        let mut constants = Constants::default();
        for item in &select.projection {
            match item {
                SelectItem::Wildcard(options) if options == &Default::default() => {}
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                    is_same_next_time(expr, &mut constants)?;
                }
                _ => return None,
            }
        }
        let before = constants.0.len();
        let rows = choice(condition, &table, &mention.alias, &mut constants)?;
        let behind = constants.0.len();
        let GroupByExpr::Expressions(group_by, modifiers) = &select.group_by else {
            return None;
        };
        if !modifiers.is_empty() {
            return None;
        }
        for expr in group_by {
            is_same_next_time(expr, &mut constants)?;
        }
        match query.order_by.as_ref().map(|order_by| &order_by.kind) {
            None => {}
            Some(OrderByKind::Expressions(order_by)) => {
                for part in order_by {
                    is_same_next_time(&part.expr, &mut constants)?;
                }
            }
            Some(OrderByKind::All(_)) => return None,
        }
        match &query.limit_clause {
            None => {}
            Some(LimitClause::LimitOffset {
                limit,
                offset,
                limit_by,
            }) if limit_by.is_empty() => {
                let offset = offset.as_ref().map(|offset| &offset.value);
                for expr in limit.iter().chain(offset) {
                    is_same_next_time(expr, &mut constants)?;
                }
            }
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => {
                is_same_next_time(offset, &mut constants)?;
                is_same_next_time(limit, &mut constants)?;
            }
            Some(LimitClause::LimitOffset { .. }) => return None,
        }
        if !is_plain(without_more(query)?) {
            return None;
        }
        let places = (0..before).chain(behind..constants.0.len());
        let fixed = places.map(|place| Some((place, constants.0[place].clone()?)));
        let parts = Parts {
            fixed: fixed.collect::<Option<_>>()?,
            wants_few: wants_few(query, select, |expr| {
                let column = column_of(expr, &table, &mention.alias)?;
                let of_type = &table.columns()[column].column_type;
                let is_walked = of_type.is_integer() || of_type.is_temporal();
                (is_walked && rows.is_in_order_of(&table, column)).then_some(column)
            }),
            table,
            mention,
            rows,
        };
        Some((parts, constants.0))
    }

    /// The meaning of a query for any constants of its condition.
    async fn computed(&self, query: &Query, parts: Parts) -> Option<PointStatement> {
        let connection = &self.connection;
        let variables = connection.local().variables.version();
        let mut query = query.clone();
        let SetExpr::Select(select) = query.body.as_mut() else {
            return None;
        };
        select.selection = None;
        let references = References::of_query(&query);
        let mut bindings = self.bindings(&references).await.ok()?;
        for bound in bindings.tables.values_mut() {
            let given = GivenRows::new(Arc::clone(parts.table.schema()));
            bound.provider = lowered::bind(Arc::new(given)).ok()?.provider;
        }
        let wants_few = parts.wants_few;
        let made = self.plan_for_others(move |job| {
            let planned = job.planned_here(query, &bindings, &job.source).ok()?;
            let plan = job.few_rows_plan_here(planned.plan)?;
            let columns = job.described(&plan.schema(), &planned.labels, &planned.origins);
            let over = Remainder {
                columns: GivenRowsScan::find(&plan)?.columns().to_vec(),
                values: job.connection.values.clone(),
                plan: ShortPlan::of(&plan).ok()??,
                wants_few,
                variables,
            };
            Some((columns, over))
        });
        let (columns, over) = made.await?;
        let meant = self.meant(&parts.table, &parts.mention.table)?;
        Some(PointStatement {
            name: parts.mention.table,
            meant,
            action: Action::Compute {
                rows: parts.rows,
                over,
                fixed: parts.fixed,
            },
            columns,
            digests: KnownDigests::default(),
        })
    }
}

/// The query without what this file knows more of than a list, a table and a condition.
fn without_more(query: &Query) -> Option<Query> {
    let mut rest = query.clone();
    rest.order_by = None;
    rest.limit_clause = None;
    let SetExpr::Select(select) = rest.body.as_mut() else {
        return None;
    };
    if matches!(select.distinct, Some(Distinct::Distinct)) {
        select.distinct = None;
    }
    select.group_by = GroupByExpr::Expressions(Vec::new(), Vec::new());
    Some(rest)
}

/// Whether a query wants the least and greatest values of columns, or the first rows, in the order
/// in which a key finds the rows; `ordered` is the column that an expression is, if they lie in its
/// order.
fn wants_few(query: &Query, select: &Select, ordered: impl Fn(&Expr) -> Option<usize>) -> bool {
    let has_groups = !matches!(&select.group_by, GroupByExpr::Expressions(by, _) if by.is_empty());
    if select.distinct.is_some() || has_groups {
        return false;
    }
    let expressions = || select.projection.iter().filter_map(expression_of);
    let is_whole = expressions().count() == select.projection.len();
    if is_whole && expressions().all(|expr| extreme(expr).is_some_and(|of| ordered(of).is_some())) {
        return true;
    }
    let has_calls = expressions()
        .any(|expr| walk::finds(expr, &mut |part: &Expr| matches!(part, Expr::Function(_))));
    let limits: [Option<&Expr>; 2] = match &query.limit_clause {
        Some(LimitClause::LimitOffset { limit, offset, .. }) if limit.is_some() => {
            [limit.as_ref(), offset.as_ref().map(|offset| &offset.value)]
        }
        Some(LimitClause::OffsetCommaLimit { offset, limit }) => [Some(limit), Some(offset)],
        _ => return false,
    };
    let rows = limits
        .into_iter()
        .flatten()
        .map(|limit| Literal::of(limit)??.integer());
    let is_few = rows
        .sum::<Option<i128>>()
        .is_some_and(|rows| rows <= FIRST_ROWS_MAX);
    let is_in_order = match query.order_by.as_ref().map(|order_by| &order_by.kind) {
        None => true,
        Some(OrderByKind::Expressions(by)) => {
            matches!(by.as_slice(), [by] if ordered(&by.expr).is_some())
        }
        Some(OrderByKind::All(_)) => false,
    };
    is_few && is_in_order && !has_calls
}

/// What MIN or MAX is asked of.
fn extreme(expr: &Expr) -> Option<&Expr> {
    let Expr::Function(function) = expr else {
        return None;
    };
    let name = function.name.to_string().to_ascii_lowercase();
    let list = plain_list(function)?;
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(of))]
            if ["max", "min"].contains(&name.as_str()) =>
        {
            Some(of)
        }
        _ => None,
    }
}

/// Adds the constants of an expression; `None` if its value may be another one for the same rows,
/// or it is of no kind that is known here.
fn is_same_next_time(expr: &Expr, constants: &mut Constants) -> Option<()> {
    match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => Some(()),
        Expr::Nested(inner) => is_same_next_time(inner, constants),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Plus | BinaryOperator::Minus | BinaryOperator::Multiply,
            right,
        } => {
            is_same_next_time(left, constants)?;
            is_same_next_time(right, constants)
        }
        Expr::Function(function) => aggregate(function, constants),
        other => constants.cell(other).map(|_| ()),
    }
}

fn aggregate(function: &Function, constants: &mut Constants) -> Option<()> {
    let name = function.name.to_string().to_ascii_lowercase();
    let list = plain_list(function)?;
    if !AGGREGATES.contains(&name.as_str()) {
        return None;
    }
    for argument in &list.args {
        match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => {}
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => {
                is_same_next_time(expr, constants)?;
            }
            _ => return None,
        }
    }
    Some(())
}
