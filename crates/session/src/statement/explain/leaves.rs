//! What a plan reads, and how, in the words of EXPLAIN.
//!
//! Owns: the leaves of a physical plan, each with the name that the query has for its table. Never:
//! knows which SELECT a table belongs to.

use std::collections::{HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::DefaultTableSource;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::logical_expr::{
    Expr, LogicalPlan, Subquery, TableScan as LogicalTableScan, TableSource,
};
use datafusion::object_store::path::Path;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use mayfly_exec::{
    Access, ApplyOperator, Found, KeyApply, KeyJoin, KeyOrder, KeyScan, LateScan, MaterializedScan,
    ReadAgain, TableScan, Why, first_file, temp_tables_of,
};
use mayfly_sql::apply::applied_subquery;
use mayfly_sql::file_name;
use mayfly_sql::inner_name::shown;
use mayfly_sql::planning::{Optimized, is_materialized};
use mayfly_sql::typing::LOOKED_UP;
use mayfly_sql::view_mark::is_mark;
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
    /// Its conditions and the columns that are read, where these are wanted.
    pub(super) conditions: Vec<Expr>,
    pub(super) columns: Vec<String>,
    /// The files that it is, if they know their columns.
    pub(super) files: Vec<ListingTableUrl>,
}

/// How much is wanted of the tables that a query names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// What the columns of MySQL's table say.
    Table,
    /// Conditions and columns as well.
    Everything,
}

/// The tables of a plan in the order in which its scans stand in the physical one: values of
/// subqueries come last.
pub(super) fn scans(optimized: &Optimized, wanted: Wanted) -> Vec<Scan> {
    let mut found = Vec::new();
    let tables = optimized.tables.iter().map(|(_, plan)| plan);
    for plan in std::iter::once(&optimized.plan).chain(tables) {
        of_plan(plan, wanted, &mut found);
    }
    found
}

/// The tables of a plan and of its subqueries.
fn of_plan(plan: &LogicalPlan, wanted: Wanted, found: &mut Vec<Scan>) {
    let mut values = Vec::new();
    of_level(plan, wanted, found, &mut values);
    let mut next = 0;
    while let Some(value) = values.get(next).cloned() {
        of_level(&value, wanted, found, &mut values);
        next += 1;
    }
}

/// The tables of a plan without those of its subqueries, which are added to others.
fn of_level(
    plan: &LogicalPlan,
    wanted: Wanted,
    scans: &mut Vec<Scan>,
    values: &mut Vec<Arc<LogicalPlan>>,
) {
    let mut filters_above = 0_usize;
    let mut conditions = Vec::new();
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
        if let Some(subquery) = applied_subquery(node) {
            values.push(Arc::new(subquery.clone()));
        }
        match node {
            LogicalPlan::Filter(filter) => {
                filters_above += 1;
                if wanted == Wanted::Everything {
                    conditions.push(filter.predicate.clone());
                }
            }
            LogicalPlan::SubqueryAlias(named) => {
                // What the planner names itself, nobody has written.
                let name = shown(named.alias.table());
                let is_own =
                    name.starts_with("__") || name.starts_with(LOOKED_UP) || is_mark(&named.alias);
                alias = (!is_own).then(|| name.to_owned());
            }
            // Named by the SELECT that reads it.
            LogicalPlan::TableScan(scan) if is_materialized(scan) => {
                alias = None;
                filters_above = 0;
                conditions.clear();
            }
            LogicalPlan::TableScan(scan) => {
                let mut columns = Vec::new();
                if wanted == Wanted::Everything {
                    conditions.extend(scan.filters.iter().cloned());
                    columns = columns_read(scan);
                }
                let table = scan.table_name.table().to_owned();
                scans.push(Scan {
                    name: alias
                        .take()
                        .unwrap_or_else(|| file_name::shown(&table).into_owned()),
                    table,
                    database: scan.table_name.schema().map(str::to_owned),
                    block: 0,
                    has_filter: filters_above > 0 || !scan.filters.is_empty(),
                    conditions: std::mem::take(&mut conditions),
                    columns,
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

/// The columns that a scan reads, those of its conditions included, in the order of the table.
fn columns_read(scan: &LogicalTableScan) -> Vec<String> {
    let filters = scan.filters.iter().flat_map(Expr::column_refs);
    let filtered: HashSet<&str> = filters.map(|column| column.name.as_str()).collect();
    let is_read = |name: &str| {
        let projected = scan.projected_schema.has_column_with_unqualified_name(name);
        projected || filtered.contains(name)
    };
    let schema = scan.source.schema();
    let names = schema.fields().iter().map(|field| field.name());
    names.filter(|name| is_read(name)).cloned().collect()
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
    /// The columns of the parts that are used.
    pub(super) parts: Vec<String>,
    /// Bytes of the parts that are used, as MySQL counts them.
    pub(super) bytes: u64,
    pub(super) reference: Option<String>,
}

impl KeyUse {
    fn of(found: &Found, asked: Option<&[String]>) -> KeyUse {
        let columns = found.table.columns();
        let parts = found.key().parts.iter().take(found.parts);
        let bytes = parts.clone().map(|part| {
            let column = &columns[part.column];
            let length = match column.column_type {
                ColumnType::VarChar { .. } | ColumnType::VarBinary { .. } => 2,
                ColumnType::Text(_) | ColumnType::Blob(_) => 2,
                _ => 0,
            };
            key_bytes(&column.column_type, part.prefix) + length + u64::from(column.is_nullable)
        });
        let parts = parts.map(|part| columns[part.column].name.clone());
        let is_of_values = !matches!(found.access, Access::Range | Access::Index);
        let reference = match asked {
            Some(values) => values.join(","),
            None => vec!["const"; found.parts].join(","),
        };
        KeyUse {
            name: found.key().name.clone(),
            parts: parts.collect(),
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

    /// Whether a condition may leave rows of it out.
    pub(super) fn is_filtered(&self) -> bool {
        let has_filter = self.scan.as_ref().is_some_and(|scan| scan.has_filter);
        self.has_filter.unwrap_or(has_filter)
    }

    /// MySQL's word for how the table is read.
    pub(super) fn access(&self) -> &'static str {
        self.key.as_ref().map_or("ALL", |found| found.access.name())
    }

    /// Whether the key has all that is read of the table.
    pub(super) fn is_covered(&self) -> bool {
        self.key.as_ref().is_some_and(|found| found.is_covered)
    }

    /// How the key is used, if there is one.
    pub(super) fn key_use(&self) -> Option<KeyUse> {
        let found = self.key.as_ref()?;
        Some(KeyUse::of(found, self.asked.as_deref()))
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

/// A temporary table of a plan.
pub(super) struct Operation {
    pub(super) why: Why,
    /// The leaves whose rows it has.
    pub(super) leaves: Range<usize>,
}

/// Reads a plan for its leaves, in the order in which they are read, and for its temporary tables.
pub(super) struct PlanReader {
    /// The tables that the query names and no leaf has been found for.
    pub(super) scans: Vec<Scan>,
    pub(super) leaves: Vec<Leaf>,
    pub(super) operations: Vec<Operation>,
    /// The subqueries that run row by row.
    applied: VecDeque<Arc<dyn ExecutionPlan>>,
}

impl PlanReader {
    pub(super) fn new(scans: Vec<Scan>) -> PlanReader {
        PlanReader {
            scans,
            leaves: Vec::new(),
            operations: Vec::new(),
            applied: VecDeque::new(),
        }
    }

    pub(super) fn read(&mut self, plan: &Arc<dyn ExecutionPlan>) {
        self.read_part(plan);
        while let Some(subquery) = self.applied.pop_front() {
            self.read_part(&subquery);
        }
    }

    fn read_part(&mut self, plan: &Arc<dyn ExecutionPlan>) {
        let from = self.leaves.len();
        self.read_node(plan);
        let to = self.leaves.len();
        let operations = temp_tables_of(plan).into_iter().map(|table| Operation {
            why: table.why,
            leaves: from..to,
        });
        self.operations.extend(operations);
    }

    fn read_node(&mut self, plan: &Arc<dyn ExecutionPlan>) {
        if let Some(apply) = plan.downcast_ref::<KeyApply>() {
            let before = self.leaves.len();
            self.read_part(apply.outer());
            let asked = asked(apply.values(), &self.leaves[before..]);
            self.read_part(apply.inner());
            if let Some(leaf) = self.leaves.last_mut() {
                leaf.asked = Some(asked);
            }
            return;
        }
        if let Some(join) = plan.downcast_ref::<KeyJoin>() {
            let before = self.leaves.len();
            self.read_part(join.outer());
            let asked = asked(join.values(), &self.leaves[before..]);
            let table = &join.found().table;
            let rows = usize::try_from(join.rows_each()).ok();
            let leaf = Leaf {
                key: Some(join.found().clone()),
                asked: Some(asked),
                has_filter: Some(join.has_filter()),
                ..Leaf::new(Arc::clone(table.schema()), rows)
            };
            let leaf = leaf.find(&Read::Table(table.name()), &mut self.scans);
            self.leaves.push(leaf);
            return;
        }
        if let Some(apply) = plan.downcast_ref::<ApplyOperator>() {
            // What subqueries read comes last.
            self.applied.push_back(Arc::clone(apply.subquery()));
        }
        if plan.is::<ReadAgain>() {
            // The other reading of these tables is shown.
            return;
        }
        let children = plan.children();
        if children.is_empty() {
            self.read_leaf(plan);
        }
        for child in children {
            self.read_part(child);
        }
    }

    fn read_leaf(&mut self, plan: &Arc<dyn ExecutionPlan>) {
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
            let leaf = leaf.find(&read, &mut self.scans);
            self.leaves.push(leaf);
        }
    }
}
