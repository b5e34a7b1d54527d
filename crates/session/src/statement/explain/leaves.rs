//! What a plan reads, and how, in the words of EXPLAIN.
//!
//! Owns: the leaves of a physical plan, each with the name that the query has for its table. Never:
//! knows which SELECT a table belongs to.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::DefaultTableSource;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::logical_expr::{Expr, LogicalPlan, Subquery, TableSource};
use datafusion::object_store::path::Path;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use mayfly_exec::Access;
use mayfly_exec::{
    Found, KeyApply, KeyJoin, KeyOrder, KeyScan, LateScan, MaterializedScan, ReadAgain, TableScan,
    first_file,
};
use mayfly_sql::inner_name::shown;
use mayfly_sql::planning::{Optimized, is_materialized};
use mayfly_sql::typing::LOOKED_UP;
use mayfly_types::ColumnType;

use crate::files;
use crate::lowered;
use crate::progress;
use crate::statement::define::key_bytes;

/// One table that a query names.
pub(super) struct Scan {
    /// The name of the table itself.
    pub(super) table: String,
    /// What the query calls it, in its database where that is known.
    pub(super) name: String,
    pub(super) database: Option<String>,
    /// The place of the SELECT that reads it.
    pub(super) block: usize,
    pub(super) has_filter: bool,
    /// The files that it is, if they know their columns.
    pub(super) files: Vec<ListingTableUrl>,
}

/// The tables of a plan in the order in which its scans stand in the physical one: values of
/// subqueries come last.
pub(super) fn scans(optimized: &Optimized) -> Vec<Scan> {
    let mut found = Vec::new();
    let tables = optimized.tables.iter().map(|(_, plan)| plan);
    for plan in std::iter::once(&optimized.plan).chain(tables) {
        of_plan(plan, &mut found);
    }
    found
}

/// The tables of a plan and of its subqueries.
fn of_plan(plan: &LogicalPlan, found: &mut Vec<Scan>) {
    let mut values = Vec::new();
    of_level(plan, found, &mut values);
    let mut next = 0;
    while let Some(value) = values.get(next).cloned() {
        of_level(&value, found, &mut values);
        next += 1;
    }
}

/// The tables of a plan without those of its subqueries, which are added to others.
fn of_level(plan: &LogicalPlan, scans: &mut Vec<Scan>, values: &mut Vec<Arc<LogicalPlan>>) {
    let mut filters_above = 0_usize;
    let mut alias = None;
    let _ = plan.apply(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::ScalarSubquery(Subquery { subquery, .. }) = expr {
                    values.push(Arc::clone(subquery));
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        match node {
            LogicalPlan::Filter(_) => filters_above += 1,
            LogicalPlan::SubqueryAlias(named) => {
                // What the planner names itself, nobody has written.
                let name = shown(named.alias.table());
                let is_own = name.starts_with("__") || name.starts_with(LOOKED_UP);
                alias = (!is_own).then(|| name.to_owned());
            }
            // Named by the SELECT that reads it.
            LogicalPlan::TableScan(scan) if is_materialized(scan) => {
                alias = None;
                filters_above = 0;
            }
            LogicalPlan::TableScan(scan) => {
                let table = scan.table_name.table().to_owned();
                scans.push(Scan {
                    name: alias.take().unwrap_or_else(|| table.clone()),
                    table,
                    database: scan.table_name.schema().map(str::to_owned),
                    block: 0,
                    has_filter: filters_above > 0 || !scan.filters.is_empty(),
                    files: files_of(&scan.source),
                });
                filters_above = 0;
            }
            // The name of a derived table is not that of the tables in it.
            LogicalPlan::Projection(_) | LogicalPlan::Limit(_) | LogicalPlan::Sort(_) => {}
            _ => alias = None,
        }
        Ok(TreeNodeRecursion::Continue)
    });
}

/// The files of a table that is some.
fn files_of(source: &Arc<dyn TableSource>) -> Vec<ListingTableUrl> {
    let Some(source) = source.downcast_ref::<DefaultTableSource>() else {
        return Vec::new();
    };
    let table = lowered::original(&source.table_provider);
    files::listing_of(table).map_or_else(Vec::new, |listing| listing.table_paths().clone())
}

/// How a key is used, in MySQL's columns.
pub(super) struct KeyUse {
    pub(super) name: String,
    /// Bytes of the parts that are used, as MySQL counts them.
    pub(super) bytes: u64,
    pub(super) reference: Option<String>,
}

impl KeyUse {
    pub(super) fn of(found: &Found, asked: Option<&[String]>) -> KeyUse {
        let columns = found.table.columns();
        let parts = found.key().parts.iter().take(found.parts);
        let bytes = parts.map(|part| {
            let column = &columns[part.column];
            let length = match column.column_type {
                ColumnType::VarChar { .. } | ColumnType::VarBinary { .. } => 2,
                ColumnType::Text(_) | ColumnType::Blob(_) => 2,
                _ => 0,
            };
            key_bytes(&column.column_type, part.prefix) + length + u64::from(column.is_nullable)
        });
        let is_of_values = !matches!(found.access, Access::Range | Access::Index);
        let reference = match asked {
            Some(values) => values.join(","),
            None => vec!["const"; found.parts].join(","),
        };
        KeyUse {
            name: found.key().name.clone(),
            bytes: bytes.sum(),
            reference: is_of_values.then_some(reference),
        }
    }
}

/// What a leaf tells of the table that it reads.
enum Read<'a> {
    Table(&'a str),
    File(Path),
    /// Nothing: it is the first one that is left.
    Any,
}

impl Read<'_> {
    /// Whether a table is the one file that is read, and not one of several.
    fn is_only(&self, scan: &Scan) -> bool {
        match self {
            Read::File(path) => match scan.files.as_slice() {
                [file] => file.prefix() == path,
                _ => false,
            },
            Read::Table(_) | Read::Any => false,
        }
    }

    fn is_by(&self, scan: &Scan) -> bool {
        match self {
            Read::Table(name) => scan.table == *name,
            Read::File(path) => scan.files.iter().any(|file| file.prefix() == path),
            Read::Any => true,
        }
    }
}

/// What a plan reads, and how.
pub(super) struct Leaf {
    /// What the query says of the table.
    pub(super) scan: Option<Scan>,
    pub(super) columns: SchemaRef,
    pub(super) rows: Option<usize>,
    pub(super) key: Option<Found>,
    /// What the key is asked for, if not constants.
    pub(super) asked: Option<Vec<String>>,
    /// Whether rows that a key finds for another table are filtered.
    pub(super) has_filter: Option<bool>,
    pub(super) is_reversed: bool,
}

impl Leaf {
    pub(super) fn new(columns: SchemaRef, rows: Option<usize>) -> Leaf {
        Leaf {
            scan: None,
            columns,
            rows,
            key: None,
            asked: None,
            has_filter: None,
            is_reversed: false,
        }
    }

    /// A leaf of a plan.
    fn of(plan: &Arc<dyn ExecutionPlan>) -> Leaf {
        let mut leaf = Leaf::new(plan.schema(), progress::expected_rows(plan));
        if let Some(scan) = plan.downcast_ref::<KeyScan>() {
            leaf.key = Some(scan.found().clone());
        } else if let Some(order) = plan.downcast_ref::<KeyOrder>() {
            leaf.key = Some(order.found().clone());
            leaf.is_reversed = order.is_reversed();
        } else if let Some(late) = plan.downcast_ref::<LateScan>() {
            leaf.key = Some(late.found().clone());
            leaf.rows = usize::try_from(late.rows_each()).ok();
        }
        leaf
    }

    /// Finds what the query says of a table, which it may name several times.
    fn find(mut self, read: &Read<'_>, scans: &mut Vec<Scan>) -> Leaf {
        let is_this = scans.iter().position(|scan| read.is_only(scan));
        if let Some(place) = is_this.or_else(|| scans.iter().position(|scan| read.is_by(scan))) {
            self.scan = Some(scans.remove(place));
        }
        self
    }

    /// The name of a column of the table.
    fn column(&self, name: &str) -> Option<String> {
        self.columns.index_of(name).ok()?;
        let scan = self.scan.as_ref()?;
        let database = scan.database.iter().map(|name| format!("{name}."));
        Some(format!(
            "{}{}.{name}",
            database.collect::<String>(),
            scan.name
        ))
    }
}

/// What a key is asked for, as MySQL names it.
fn asked<'e>(values: impl Iterator<Item = &'e Arc<dyn PhysicalExpr>>, of: &[Leaf]) -> Vec<String> {
    let asked = values.map(|value| {
        let column = value.downcast_ref::<Column>();
        let name = |column: &Column| of.iter().find_map(|leaf| leaf.column(column.name()));
        column.and_then(name).unwrap_or_else(|| "func".to_owned())
    });
    asked.collect()
}

/// The leaves of a plan in the order in which they are read.
pub(super) fn leaves(plan: &Arc<dyn ExecutionPlan>, scans: &mut Vec<Scan>, found: &mut Vec<Leaf>) {
    if let Some(apply) = plan.downcast_ref::<KeyApply>() {
        let before = found.len();
        leaves(apply.outer(), scans, found);
        let asked = asked(apply.values(), &found[before..]);
        leaves(apply.inner(), scans, found);
        if let Some(leaf) = found.last_mut() {
            leaf.asked = Some(asked);
        }
        return;
    }
    if let Some(join) = plan.downcast_ref::<KeyJoin>() {
        let before = found.len();
        leaves(join.outer(), scans, found);
        let asked = asked(join.values(), &found[before..]);
        let table = &join.found().table;
        let rows = usize::try_from(join.rows_each()).ok();
        let leaf = Leaf {
            key: Some(join.found().clone()),
            asked: Some(asked),
            has_filter: Some(join.has_filter()),
            ..Leaf::new(Arc::clone(table.schema()), rows)
        };
        found.push(leaf.find(&Read::Table(table.name()), scans));
        return;
    }
    if plan.is::<ReadAgain>() {
        // The other reading of these tables is shown.
        return;
    }
    let children = plan.children();
    if children.is_empty() {
        let leaf = Leaf::of(plan);
        let by_key = leaf.key.as_ref().map(|found| Arc::clone(&found.table));
        let scanned = plan.downcast_ref::<TableScan>();
        let computed = plan.downcast_ref::<MaterializedScan>();
        let name = scanned.map(TableScan::table_name);
        let name = name.or(computed.map(MaterializedScan::table_name));
        let name = name.or(by_key.as_ref().map(|table| table.name()));
        let is_table = name.is_some() || !plan.schema().fields().is_empty();
        if is_table && !plan.name().starts_with("Placeholder") {
            let read = match (name, first_file(plan.as_ref())) {
                (Some(name), _) => Read::Table(name),
                (None, Some(path)) => Read::File(path),
                (None, None) => Read::Any,
            };
            found.push(leaf.find(&read, scans));
        }
    }
    for child in children {
        leaves(child, scans, found);
    }
}
