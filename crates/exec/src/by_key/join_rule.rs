//! When a join looks its rows up.
//!
//! Owns: the reading of a stock hash join. Never: applies where a value would have to change its
//! type to be looked up, but for integers, of which nothing is lost.

use std::sync::Arc;

use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{JoinSide, JoinType, NullEquality, Result};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::UnKnownColumn;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning};

use super::chunk::{Kind, Spec};
use super::join::{KeyJoin, UNLIMITED};
use super::join_key::{JoinKey, sides};
use super::limits::rows_by_key;
use super::look_up::LookUp;
use super::pipeline::{Pipeline, is_exchange};
use super::scan::KeyScan;
use super::stock::in_one_partition;
use crate::plan_node::known_rows;
use crate::source::RowsOf;
use crate::table_scan::TableScan;

/// A guess of more rows than a key is worth is tried with this part of the rows: filters are
/// thought to let a fifth through, and often let a few.
pub(super) const DOUBTED_PART: u64 = 8;

/// A hash join that would keep more than this part of the budget is not begun where a key finds
/// the rows of the other side.
const KEPT_PER_MEMORY: u64 = 2;
/// Bytes of a row in the table of a hash join, beside its columns.
const HASHED_ROW_BYTES: u64 = 24;
/// Bytes of a value of any length, beside what it points to.
const VIEW_BYTES: usize = 16;

type Expr = Arc<dyn PhysicalExpr>;

/// A side of a join that the other one may look up.
struct Side {
    kind: Kind,
    outer: JoinSide,
    pipeline: Pipeline,
    key: JoinKey,
}

/// A side that is worth to be looked up.
struct Candidate {
    side: Side,
    /// Rows that are found, as far as is known.
    rows: Option<u64>,
    limit: u64,
    /// Whether a hash join may find no room.
    is_tight: bool,
}

/// The join by key in the place of a hash join.
///
/// # Errors
/// If an index cannot be read.
pub(super) fn replace(join: &HashJoinExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if !may_be_by_key(join) {
        return Ok(None);
    }
    let Some(partitioning) = partitioning(join) else {
        return Ok(None);
    };
    let mut best: Option<Candidate> = None;
    for outer in [JoinSide::Left, JoinSide::Right] {
        let Some(side) = side(join, outer)? else {
            continue;
        };
        let Some(candidate) = side.candidate(join)? else {
            continue;
        };
        let rows = |candidate: &Candidate| candidate.rows.unwrap_or(u64::MAX);
        if best
            .as_ref()
            .is_none_or(|best| rows(&candidate) < rows(best))
        {
            best = Some(candidate);
        }
    }
    let Some(best) = best else {
        return Ok(None);
    };
    Ok(Some(partitioned(Arc::new(best.join(join)?), partitioning)?))
}

/// How a node in the place of a join hands its rows on; `None` where it cannot as the join does.
pub(super) fn partitioning(join: &HashJoinExec) -> Option<Partitioning> {
    match join.properties().output_partitioning() {
        // What the join does not show, nobody above asks for.
        Partitioning::Hash(on, count) if !on.iter().any(is_unknown) => {
            Some(Partitioning::Hash(on.clone(), *count))
        }
        Partitioning::Hash(_, count) => Some(Partitioning::RoundRobinBatch(*count)),
        Partitioning::UnknownPartitioning(count) | Partitioning::RoundRobinBatch(count) => {
            Some(Partitioning::RoundRobinBatch(*count))
        }
        Partitioning::Range(_) => None,
    }
}

/// Whether an expression is over a column that is not there.
fn is_unknown(expr: &Expr) -> bool {
    let is_unknown = expr.exists(|part| Ok(part.is::<UnKnownColumn>()));
    is_unknown.unwrap_or(true)
}

/// A plan of one partition with its rows handed on in some way.
pub(super) fn partitioned(
    plan: Arc<dyn ExecutionPlan>,
    partitioning: Partitioning,
) -> Result<Arc<dyn ExecutionPlan>> {
    Ok(match partitioning.partition_count() {
        1 => plan,
        _ => Arc::new(RepartitionExec::try_new(plan, partitioning)?),
    })
}

/// The ways in which a join may look rows up, with that of the fewest rows first, whether they are
/// worth it now or not.
///
/// # Errors
/// If an index cannot be read.
pub(crate) fn look_ups(join: &HashJoinExec, of: RowsOf) -> Result<Vec<LookUp>> {
    if !may_be_by_key(join) {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for outer in [JoinSide::Left, JoinSide::Right] {
        if let Some(side) = side(join, outer)? {
            let outer = side.outer_plan(join);
            let outer_rows = *known_rows(outer.as_ref())
                .get_value()
                .unwrap_or(&usize::MAX);
            found.push(((outer_rows as u64).saturating_mul(side.key.rows_each), side));
        }
    }
    found.sort_by_key(|(rows, _)| *rows);
    let found = found.into_iter().map(|(_, side)| {
        let (spec, source) = (side.spec(join), &side.pipeline.source);
        let seen = (of == RowsOf::Snapshot).then(|| Arc::clone(&source.snapshot));
        LookUp::new(spec, source, seen, &side.key, join.fetch())
    });
    Ok(found.collect())
}

/// Whether a join is of a kind that a key may answer.
pub(super) fn may_be_by_key(join: &HashJoinExec) -> bool {
    join.null_equality() == NullEquality::NullEqualsNothing
        && !join.null_aware
        && join.properties().output_ordering().is_none()
}

/// Whether the hash join finds room for the side that it keeps, for it cannot spill: surely, or as
/// far as is known.
fn fits(join: &HashJoinExec, surely: bool) -> bool {
    let kept = join.left();
    let mut tables = Tables::default();
    tables.add(kept);
    let rows = match known_rows(kept.as_ref()) {
        Precision::Exact(rows) => rows as u64,
        Precision::Inexact(rows) if !surely => rows as u64,
        Precision::Inexact(_) | Precision::Absent => tables.rows,
    };
    let schema = kept.schema();
    let widths = schema
        .fields()
        .iter()
        .map(|field| field.data_type().primitive_width());
    let has_long = widths.clone().any(|width| width.is_none());
    let fixed_bytes: usize = widths.map(|width| width.unwrap_or(VIEW_BYTES)).sum();
    let long_bytes = if has_long { tables.row_bytes } else { 0 };
    let row_bytes = fixed_bytes as u64 + long_bytes + HASHED_ROW_BYTES;
    rows.saturating_mul(row_bytes) <= tables.memory_bytes / KEPT_PER_MEMORY
}

/// The tables of a plan.
struct Tables {
    rows: u64,
    /// Bytes of a row of each, together.
    row_bytes: u64,
    /// The budget.
    memory_bytes: u64,
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            rows: 0,
            row_bytes: 0,
            memory_bytes: u64::MAX,
        }
    }
}

impl Tables {
    fn add(&mut self, plan: &Arc<dyn ExecutionPlan>) {
        let scan = plan.downcast_ref::<TableScan>().and_then(TableScan::source);
        let by_key = plan.downcast_ref::<KeyScan>().and_then(KeyScan::source);
        if let Some(source) = scan.as_ref().or(by_key) {
            self.rows = self.rows.saturating_add(source.snapshot.row_count());
            self.row_bytes = self.row_bytes.saturating_add(source.row_bytes());
            self.memory_bytes = source.snapshot.account().space().memory_bytes();
        }
        for child in plan.children() {
            self.add(child);
        }
    }
}

fn side(join: &HashJoinExec, outer: JoinSide) -> Result<Option<Side>> {
    let is_left = outer == JoinSide::Left;
    let kind = match join.join_type() {
        JoinType::Inner => Kind::Inner,
        JoinType::Left if is_left => Kind::Outer,
        JoinType::Right if !is_left => Kind::Outer,
        JoinType::LeftSemi if is_left => Kind::Semi,
        JoinType::RightSemi if !is_left => Kind::Semi,
        JoinType::LeftSemi | JoinType::RightSemi => Kind::InnerSemi,
        JoinType::LeftAnti if is_left => Kind::Anti,
        JoinType::RightAnti if !is_left => Kind::Anti,
        _ => return Ok(None),
    };
    let inner_plan = if is_left { join.right() } else { join.left() };
    let Some(pipeline) = Pipeline::of(inner_plan) else {
        return Ok(None);
    };
    let table = Arc::clone(&pipeline.source.table);
    if pipeline.source.found.is_some() || table.definition().keys.is_empty() {
        return Ok(None);
    }
    let of_inner = |expr: &Expr| pipeline.column_or_cast(expr);
    let Some(key) = JoinKey::best(join, outer, &table, of_inner)? else {
        return Ok(None);
    };
    Ok(Some(Side {
        kind,
        outer,
        pipeline,
        key,
    }))
}

impl Side {
    fn outer_plan<'a>(&self, join: &'a HashJoinExec) -> &'a Arc<dyn ExecutionPlan> {
        match self.outer {
            JoinSide::Left => join.left(),
            _ => join.right(),
        }
    }

    fn inner_plan<'a>(&self, join: &'a HashJoinExec) -> &'a Arc<dyn ExecutionPlan> {
        match self.outer {
            JoinSide::Left => join.right(),
            _ => join.left(),
        }
    }

    /// The side with what it finds, if that is little.
    fn candidate(self, join: &HashJoinExec) -> Result<Option<Candidate>> {
        let is_left = self.outer == JoinSide::Left;
        // A semi-join of the table's own rows would keep all of the other side as well. How long an
        // outer side is that the hash join would keep is seen when it is read.
        let is_tight = self.kind != Kind::InnerSemi && !fits(join, is_left);
        let limit = match is_tight && !is_left {
            true => UNLIMITED,
            false => rows_by_key(self.pipeline.source.snapshot.row_count()),
        };
        let rows = |outer: usize| (outer as u64).saturating_mul(self.key.rows_each);
        let (rows, limit) = match known_rows(self.outer_plan(join).as_ref()) {
            Precision::Exact(outer) if rows(outer) > limit && !is_tight => return Ok(None),
            Precision::Exact(outer) => (Some(rows(outer)), limit),
            Precision::Inexact(outer) if rows(outer) <= limit => (Some(rows(outer)), limit),
            Precision::Inexact(outer) => (Some(rows(outer)), limit / DOUBTED_PART),
            Precision::Absent => (None, limit / DOUBTED_PART),
        };
        Ok(Some(Candidate {
            side: self,
            rows,
            limit,
            is_tight,
        }))
    }

    /// What is joined with what.
    fn spec(&self, join: &HashJoinExec) -> Spec {
        let table = &self.pipeline.source.table;
        let key = &table.definition().keys[self.key.key];
        let mut is_sure = vec![false; join.on().len()];
        for (part, equality) in key.parts.iter().zip(&self.key.parts) {
            is_sure[*equality] = part.prefix.is_none();
        }
        let unsure = join
            .on()
            .iter()
            .zip(&is_sure)
            .filter(|(_, is_sure)| !**is_sure);
        let equal = unsure.map(|(pair, _)| {
            let (value, of_inner) = sides(pair, self.outer);
            (Arc::clone(value), Arc::clone(of_inner))
        });
        let equal = equal.collect();
        let side = |side: JoinSide, plan: &Arc<dyn ExecutionPlan>| {
            let width = plan.schema().fields().len();
            (0..width)
                .map(move |column| (side, column))
                .collect::<Vec<_>>()
        };
        let all = match self.kind {
            Kind::Inner | Kind::Outer => {
                let mut all = side(JoinSide::Left, join.left());
                all.extend(side(JoinSide::Right, join.right()));
                all
            }
            Kind::Semi | Kind::Anti => side(self.outer, self.outer_plan(join)),
            Kind::InnerSemi => side(self.outer.negate(), self.inner_plan(join)),
        };
        let columns = match &join.projection {
            Some(projection) => projection.iter().map(|column| all[*column]).collect(),
            None => all,
        };
        Spec {
            kind: self.kind,
            outer: self.outer,
            steps: self.pipeline.steps.clone(),
            key: self.key.key,
            values: self.key.values(join, self.outer),
            equal,
            filter: join.filter().cloned(),
            columns,
            schema: join.schema(),
        }
    }
}

impl Candidate {
    fn join(self, join: &HashJoinExec) -> Result<KeyJoin> {
        let side = self.side;
        let spec = side.spec(join);
        let mut outer = side.outer_plan(join);
        while is_exchange(outer)
            && let Some(below) = outer.children().into_iter().next()
        {
            outer = below;
        }
        let outer = in_one_partition(Arc::clone(outer));
        let (found, rows_each) = (side.key.found(), side.key.rows_each);
        let source = side.pipeline.source;
        let by_key = KeyJoin::new(spec, source, found, rows_each, self.limit, join, outer)?;
        match self.is_tight {
            true => by_key.instead_of_all(),
            false => Ok(by_key),
        }
    }
}
