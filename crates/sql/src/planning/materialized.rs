//! Tables that a query names more than once and that are computed once.
//!
//! Owns: which parts of a plan are such tables, and how the plans of the query and of its tables
//! are made. Never: runs them, which is for `mayfly_exec`.
//!
//! DataFusion's planner writes the query of a WITH table wherever that is named. As in MySQL, one
//! that is only a choice of rows and columns, or a join, is merged into the query around it, which
//! then finds rows by their keys. One that groups, drops duplicates, numbers rows or recurs is
//! computed into a temporary table, and what it computes for one reader is there for the others.
//! Whether it was written once or several times does not matter.
//!
//! The query is optimized first: what its scans read says which columns a table keeps, and what all
//! of them ask of its rows is asked before they are computed. A table may read another one, and all
//! readers of a table have been optimized before it is.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, TableReference};
use datafusion::datasource::{DefaultTableSource, provider_as_source};
use datafusion::error::Result;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableScan};
use datafusion::physical_plan::ExecutionPlan;
use mayfly_exec::{Materialized, WithMaterialized, WorkRows};

use super::optimize::{analyzed, physical, with_rules};
use super::size::hold;
use super::watch::check;
use crate::apply::{has_outer_rows, with_applied};

/// The plan of a query and those of its tables; a table is read by plans behind it and by that of
/// the query.
#[derive(Debug)]
pub struct Optimized {
    /// The plan of the query.
    pub plan: LogicalPlan,
    /// The plans of its tables.
    pub tables: Vec<(Materialized, LogicalPlan)>,
}

/// The plans that a session makes of one that has no types yet, and the operators. Where rules
/// cannot make a join of a correlated subquery, it runs row by row.
///
/// # Errors
/// Those of the rules and of the planner, and those of the watch.
pub async fn planned_with_tables(
    state: &SessionState,
    plan: LogicalPlan,
) -> Result<(Optimized, Arc<dyn ExecutionPlan>)> {
    if !has_outer_rows(&plan)? {
        return planned_by_rules(state, plan).await;
    }
    match planned_by_rules(state, plan.clone()).await {
        Ok(planned) => Ok(planned),
        Err(error) => {
            let planned = match with_applied(state, plan) {
                Ok(plan) => planned_by_rules(state, plan).await,
                Err(error) => Err(error),
            };
            planned.map_err(|_| error)
        }
    }
}

async fn planned_by_rules(
    state: &SessionState,
    plan: LogicalPlan,
) -> Result<(Optimized, Arc<dyn ExecutionPlan>)> {
    let optimized = optimized_with_tables(state, plan)?;
    let operators = physical_with_tables(state, &optimized).await?;
    Ok((optimized, operators))
}

/// The plans that the rules make.
fn optimized_with_tables(state: &SessionState, plan: LogicalPlan) -> Result<Optimized> {
    hold(&plan)?;
    let plan = analyzed(state, plan)?;
    let (plan, tables) = split(plan)?;
    let plan = with_rules(state, plan)?;
    let mut read = Read::default();
    read.add(&plan)?;
    let mut optimized = Vec::new();
    for (table, plan) in tables.into_iter().rev() {
        let Some(reads) = read.0.remove(&table.id()) else {
            // Rules have found that nobody needs it.
            continue;
        };
        let plan = with_rules(state, reads.narrowed(plan)?)?;
        read.add(&plan)?;
        table.keep(reads.columns());
        optimized.push((table, plan));
    }
    optimized.reverse();
    Ok(Optimized {
        plan,
        tables: optimized,
    })
}

/// The operators of a query and its tables.
async fn physical_with_tables(
    state: &SessionState,
    optimized: &Optimized,
) -> Result<Arc<dyn ExecutionPlan>> {
    let mut tables = Vec::new();
    for (table, plan) in &optimized.tables {
        let plan = physical(state, plan).await?;
        table.set_plan(&plan);
        tables.push((table.clone(), plan));
    }
    let plan = physical(state, &optimized.plan).await?;
    Ok(match tables.is_empty() {
        true => plan,
        false => Arc::new(WithMaterialized::new(plan, tables)),
    })
}

/// Puts scans in the place of tables that a plan computes more than once. The plan of a table
/// stands behind those of the tables that it reads.
fn split(plan: LogicalPlan) -> Result<(LogicalPlan, Vec<(Materialized, LogicalPlan)>)> {
    if !computes_twice(&plan)? {
        return Ok((plan, Vec::new()));
    }
    let mut tables = Tables::default();
    tables.count(&plan)?;
    tables.counts.retain(|_, count| *count > 1);
    if tables.counts.is_empty() {
        return Ok((plan, Vec::new()));
    }
    let plan = tables.replaced(plan)?;
    Ok((plan, tables.made))
}

#[derive(Default)]
struct Tables {
    /// How often each part of the plan that is computed stands in it, where parts of a part count
    /// once.
    counts: HashMap<LogicalPlan, usize>,
    /// The shapes that several parts have.
    repeated: HashSet<u64>,
    known: HashMap<LogicalPlan, Materialized>,
    made: Vec<(Materialized, LogicalPlan)>,
}

impl Tables {
    fn count(&mut self, plan: &LogicalPlan) -> Result<()> {
        let mut shapes: HashMap<u64, usize> = HashMap::new();
        plan.apply_with_subqueries(|node| {
            check()?;
            if is_computed(node) {
                *shapes.entry(shape(node)).or_default() += 1;
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        let repeated = shapes.into_iter().filter(|(_, count)| *count > 1);
        self.repeated = repeated.map(|(shape, _)| shape).collect();
        plan.apply_with_subqueries(|node| {
            check()?;
            if !self.may_repeat(node) {
                return Ok(TreeNodeRecursion::Continue);
            }
            if let Some(count) = self.counts.get_mut(node) {
                *count += 1;
                return Ok(TreeNodeRecursion::Jump);
            }
            if is_constant(node)? {
                self.counts.insert(node.clone(), 1);
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(())
    }

    /// Whether a part may stand in the plan twice. Those that may are hashed with all that is below
    /// them: where windows stand above one another, that is as long as the select list is wide for
    /// each of them.
    fn may_repeat(&self, node: &LogicalPlan) -> bool {
        is_computed(node) && self.repeated.contains(&shape(node))
    }

    /// The plan with scans of its tables, which are made.
    fn replaced(&mut self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let replaced = plan.transform_down_with_subqueries(|node| {
            check()?;
            if !self.may_repeat(&node) || !self.counts.contains_key(&node) {
                return Ok(Transformed::no(node));
            }
            let scan = self.scan_of(node)?;
            Ok(Transformed::new(scan, true, TreeNodeRecursion::Jump))
        });
        Ok(replaced?.data)
    }

    /// A scan in the place of a table's plan, with the names that its columns have there.
    fn scan_of(&mut self, node: LogicalPlan) -> Result<LogicalPlan> {
        let schema = Arc::clone(node.schema());
        let table = match self.known.get(&node) {
            Some(table) => table.clone(),
            None => self.make(node)?,
        };
        let name = TableReference::bare(table.name());
        let source = provider_as_source(Arc::new(table));
        let columns = schema.iter().enumerate().map(|(place, (table, field))| {
            let column = Column::new(Some(name.clone()), column_name(place));
            Expr::Column(column).alias_qualified(table.cloned(), field.name())
        });
        let columns: Vec<Expr> = columns.collect();
        LogicalPlanBuilder::scan(name, source, None)?
            .project(columns)?
            .build()
    }

    fn make(&mut self, node: LogicalPlan) -> Result<Materialized> {
        let fields = node.schema().fields().iter().enumerate();
        let fields = fields.map(|(place, field)| {
            let field: &Field = field;
            field.clone().with_name(column_name(place))
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
        // The query itself is the first of those that MySQL numbers.
        let name = format!("<derived{}>", self.known.len() + 2);
        let table = Materialized::new(name, schema);
        self.known.insert(node.clone(), table.clone());
        let plan = node.map_children(|input| Ok(Transformed::yes(self.replaced(input)?)))?;
        self.made.push((table.clone(), plan.data));
        Ok(table)
    }
}

/// Columns of a table may have the same name in its query.
fn column_name(place: usize) -> String {
    format!("c{place}")
}

/// Whether a part of a plan is a table that MySQL computes before it reads it.
fn is_computed(mut node: &LogicalPlan) -> bool {
    loop {
        node = match node {
            LogicalPlan::Projection(projection) => &projection.input,
            LogicalPlan::SubqueryAlias(alias) => &alias.input,
            LogicalPlan::Filter(filter) => &filter.input,
            LogicalPlan::Sort(sort) => &sort.input,
            LogicalPlan::Limit(limit) => &limit.input,
            node => return computes(node),
        }
    }
}

/// What can be told of a part at a glance; equal parts have one shape.
fn shape(node: &LogicalPlan) -> u64 {
    let mut hasher = DefaultHasher::new();
    std::mem::discriminant(node).hash(&mut hasher);
    let fields = node.schema().fields();
    fields.len().hash(&mut hasher);
    for field in fields.first().into_iter().chain(fields.last()) {
        field.name().hash(&mut hasher);
    }
    hasher.finish()
}

/// Whether a node needs all of its rows before it has any.
fn computes(node: &LogicalPlan) -> bool {
    matches!(
        node,
        LogicalPlan::Aggregate(_)
            | LogicalPlan::Distinct(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::RecursiveQuery(_)
    )
}

/// Whether there may be a table that is computed more than once: nearly all plans are done with
/// here, before any of their parts is hashed.
fn computes_twice(plan: &LogicalPlan) -> Result<bool> {
    let mut count = 0;
    plan.apply_with_subqueries(|node| {
        count += usize::from(computes(node));
        Ok(match count {
            0 | 1 => TreeNodeRecursion::Continue,
            _ => TreeNodeRecursion::Stop,
        })
    })?;
    Ok(count > 1)
}

/// Whether a part of a plan has the same rows wherever it stands: it reads no row from around it,
/// and no function in it gives something else each time.
fn is_constant(part: &LogicalPlan) -> Result<bool> {
    let mut is_constant = true;
    part.apply(|node| {
        node.apply_expressions(|expression| {
            expression.apply(|expression| {
                is_constant &= !matches!(expression, Expr::OuterReferenceColumn(..));
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    let mut levels = BTreeSet::new();
    let mut recursions = BTreeSet::new();
    part.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(scan)
                if provider_of(scan).is_some_and(|provider| provider.is::<WorkRows>()) =>
            {
                levels.insert(scan.table_name.table().to_owned());
            }
            LogicalPlan::RecursiveQuery(recursion) => {
                recursions.insert(recursion.name.clone());
            }
            _ => {}
        }
        node.apply_expressions(|expression| {
            is_constant &= !expression.is_volatile();
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(match is_constant {
            true => TreeNodeRecursion::Continue,
            false => TreeNodeRecursion::Stop,
        })
    })?;
    Ok(is_constant && levels.is_subset(&recursions))
}

fn provider_of(scan: &TableScan) -> Option<&dyn datafusion::catalog::TableProvider> {
    let source = scan.source.downcast_ref::<DefaultTableSource>()?;
    Some(source.table_provider.as_ref())
}

/// Whether a scan reads a table that is computed once.
pub fn is_materialized(scan: &TableScan) -> bool {
    provider_of(scan).is_some_and(|provider| provider.is::<Materialized>())
}

/// What is read of each table, by all scans so far.
#[derive(Default)]
struct Read(BTreeMap<u64, Reads>);

/// What is read of a table.
struct Reads {
    columns: BTreeSet<usize>,
    /// Conditions that all scans ask of its rows.
    filters: Vec<Expr>,
}

impl Read {
    fn add(&mut self, plan: &LogicalPlan) -> Result<()> {
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node
                && let Some(table) = provider_of(scan)
                && let Some(table) = table.downcast_ref::<Materialized>()
            {
                let reads = self.0.entry(table.id()).or_insert_with(|| Reads {
                    columns: BTreeSet::new(),
                    filters: scan.filters.clone(),
                });
                reads.filters.retain(|filter| scan.filters.contains(filter));
                match &scan.projection {
                    Some(read) => reads.columns.extend(read),
                    None => reads
                        .columns
                        .extend(0..scan.projected_schema.fields().len()),
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(())
    }
}

impl Reads {
    /// The columns that are kept; one where rows are only counted.
    fn columns(&self) -> Vec<usize> {
        match self.columns.is_empty() {
            true => vec![0],
            false => self.columns.iter().copied().collect(),
        }
    }

    /// The plan of the table with what is read of it, under the names of the table: those of the
    /// query may be lost where rules merge projections.
    fn narrowed(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let schema = Arc::clone(plan.schema());
        let column = |place: usize| {
            let (table, field) = schema.qualified_field(place);
            Expr::Column(Column::new(table.cloned(), field.name()))
        };
        let of_plan = |filter: &Expr| {
            let replaced = filter.clone().transform(|part| {
                let Expr::Column(read) = &part else {
                    return Ok(Transformed::no(part));
                };
                let mut places = 0..schema.fields().len();
                Ok(
                    match places.find(|place| column_name(*place) == read.name) {
                        Some(place) => Transformed::yes(column(place)),
                        None => Transformed::no(part),
                    },
                )
            });
            replaced.data()
        };
        let mut builder = LogicalPlanBuilder::from(plan);
        for filter in &self.filters {
            builder = builder.filter(of_plan(filter)?)?;
        }
        let columns = self.columns().into_iter();
        let columns = columns.map(|place| column(place).alias(column_name(place)));
        builder.project(columns.collect::<Vec<Expr>>())?.build()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::DataType;
    use datafusion::functions_window::row_number::row_number;
    use datafusion::logical_expr::{ExprFunctionExt, col, lit, table_scan};

    use super::*;

    fn rows() -> LogicalPlanBuilder {
        let fields = vec![Field::new("a", DataType::Int64, true)];
        table_scan(Some("t"), &Schema::new(fields), None).unwrap()
    }

    #[test]
    fn windows_above_one_another_are_not_hashed() {
        let windows = (0_i64..50).map(|key| {
            let order = (col("t.a") + lit(key)).sort(true, true);
            row_number().order_by(vec![order]).build().unwrap()
        });
        let plan = LogicalPlanBuilder::window_plan(rows().build().unwrap(), windows).unwrap();
        let mut tables = Tables::default();
        tables.count(&plan).unwrap();
        assert_eq!((tables.repeated.len(), tables.counts.len()), (0, 0));
    }

    #[test]
    fn what_stands_twice_is_found() {
        let distinct = || rows().distinct().unwrap();
        let named = |name: &str| distinct().alias(name).unwrap();
        let plan = named("x").cross_join(named("y").build().unwrap()).unwrap();
        let mut tables = Tables::default();
        tables.count(&plan.build().unwrap()).unwrap();
        let counts: Vec<usize> = tables.counts.into_values().filter(|of| *of > 1).collect();
        assert_eq!(counts, [2]);
    }
}
