//! EXPLAIN and EXPLAIN ANALYZE.
//!
//! The tabular form has MySQL's columns: one row for each table that is read, then one row for
//! each temporary table with the reason why it exists. ANALYZE runs the statement, throws its rows
//! away, and reports what each temporary table cost.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::sql::sqlparser::ast;
use futures::StreamExt;
use mayfly_exec::{
    Access, Found, KeyApply, KeyJoin, KeyOrder, KeyScan, LateScan, TableScan, TempTable, Why,
    planned_temp_tables, unspillable,
};
use mayfly_sql::change;
use mayfly_sql::references::References;
use mayfly_sql::statement::{Delete, Explain, ExplainFormat, InsertSource, Statement, Update};
use mayfly_sql::typing::LOOKED_UP;
use mayfly_types::{ColumnType, MySqlError};

use super::Job;
use super::define::key_bytes;
use super::query::Ready;
use crate::errors::{self, not_supported};
use crate::listing::{Listing, some};
use crate::outcome::Outcome;
use crate::progress;

/// Longest line of a plan; expressions of generated statements can be very long.
const LINE_LENGTH: usize = 400;

impl Job {
    pub(crate) async fn explain(&self, explain: Explain) -> Result<Outcome, MySqlError> {
        let mut changed = None;
        let query = match *explain.statement {
            Statement::Query(query) => *query,
            Statement::Update(update) if !explain.analyze => {
                changed = Some(Changed::by_update(&update));
                let values = update.assignments.into_iter();
                let values = values.filter_map(|assignment| assignment.value);
                let list = values.chain([lit(1)]).collect();
                change::query(update.choice, list)?
            }
            Statement::Delete(delete) if !explain.analyze => {
                changed = Some(Changed::by_delete(&delete));
                change::query(delete.choice, vec![lit(1)])?
            }
            Statement::Insert(insert) if !explain.analyze => match insert.source {
                InsertSource::Query(query) => *query,
                InsertSource::Values(_) => {
                    return Err(not_supported("EXPLAIN of INSERT ... VALUES"));
                }
            },
            _ => return Err(not_supported("EXPLAIN of this statement")),
        };
        let (logical, ready) = self.explained(query).await?;
        if explain.analyze {
            self.discard(&ready).await?;
        }
        let listing = match (explain.format, explain.analyze) {
            (ExplainFormat::Traditional, false) => table(&logical, &ready, changed.as_ref()),
            (ExplainFormat::Traditional, true) => measured(&self.running.report.tables()),
            (ExplainFormat::Tree, analyze) => {
                let mut listing = Listing::new(&["EXPLAIN"]);
                let mut lines = Vec::new();
                tree(&ready.plan, 0, analyze, &mut lines);
                if analyze {
                    describe_measured(&self.running.report.tables(), &mut lines);
                } else {
                    describe_planned(&ready.plan, &mut lines);
                }
                for line in lines {
                    listing.push(vec![Some(line)]);
                }
                listing
            }
        };
        Ok(Outcome::ready(listing.batch(None)?))
    }

    async fn explained(&self, query: ast::Query) -> Result<(LogicalPlan, Ready), MySqlError> {
        let bindings = self.bindings(&References::of_query(&query)).await?;
        let planned = self.planned(query, &bindings)?;
        let state = self.connection.state()?;
        let logical = state
            .optimize(&planned.plan)
            .map_err(|error| errors::from_plan(&error))?;
        let ready = self.physical(planned).await?;
        Ok((logical, ready))
    }

    async fn discard(&self, ready: &Ready) -> Result<(), MySqlError> {
        let mut stream = self.stream(&ready.plan)?;
        while let Some(batch) = stream.next().await {
            batch.map_err(|error| errors::from_plan(&error))?;
        }
        Ok(())
    }
}

fn lit(number: u8) -> ast::Expr {
    ast::Expr::Value(ast::Value::Number(number.to_string(), false).into())
}

/// Which tables a statement changes beside reading them.
struct Changed {
    /// What MySQL says of them: UPDATE or DELETE.
    word: &'static str,
    /// Their names or aliases; empty for the first table.
    names: Vec<String>,
}

impl Changed {
    fn by_update(update: &Update) -> Changed {
        let assigned = update.assignments.iter();
        Changed {
            word: "UPDATE",
            names: assigned.filter_map(|column| column.table.clone()).collect(),
        }
    }

    fn by_delete(delete: &Delete) -> Changed {
        let targets = delete.targets.iter();
        Changed {
            word: "DELETE",
            names: targets.map(|target| target.table.clone()).collect(),
        }
    }

    /// The word for a table that is read at a place, if it is changed.
    fn word_for(&self, index: usize, name: &str) -> Option<&'static str> {
        let name = name.rsplit('.').next().unwrap_or(name);
        let is_named = || self.names.iter().any(|changed| changed == name);
        let is_changed = match self.names.is_empty() {
            true => index == 0,
            false => is_named(),
        };
        is_changed.then_some(self.word)
    }
}

/// One table that a query names.
struct Scan {
    /// The name of the table itself.
    table: String,
    /// What the query calls it, in its database where that is known.
    name: String,
    database: Option<String>,
    has_filter: bool,
}

fn scans(plan: &LogicalPlan) -> Vec<Scan> {
    let mut scans = Vec::new();
    let mut filters_above = 0_usize;
    let mut alias = None;
    let _ = plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::Filter(_) => filters_above += 1,
            LogicalPlan::SubqueryAlias(named) => {
                // What the planner names itself, nobody has written.
                let name = named.alias.table();
                let is_own = name.starts_with("__") || name.starts_with(LOOKED_UP);
                alias = (!is_own).then(|| name.to_owned());
            }
            LogicalPlan::TableScan(scan) => {
                let table = scan.table_name.table().to_owned();
                scans.push(Scan {
                    name: alias.take().unwrap_or_else(|| table.clone()),
                    table,
                    database: scan.table_name.schema().map(str::to_owned),
                    has_filter: filters_above > 0 || !scan.filters.is_empty(),
                });
                filters_above = 0;
            }
            // The name of a derived table is not that of the tables in it.
            LogicalPlan::Projection(_) | LogicalPlan::Limit(_) | LogicalPlan::Sort(_) => {}
            _ => alias = None,
        }
        Ok(TreeNodeRecursion::Continue)
    });
    scans
}

/// How a key is used, in MySQL's columns.
struct KeyUse {
    name: String,
    /// Bytes of the parts that are used, as MySQL counts them.
    bytes: u64,
    reference: Option<String>,
}

impl KeyUse {
    fn of(found: &Found, asked: Option<&[String]>) -> KeyUse {
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

/// What a plan reads, and how.
struct Leaf {
    /// What the query says of the table.
    scan: Option<Scan>,
    columns: SchemaRef,
    rows: Option<usize>,
    key: Option<Found>,
    /// What the key is asked for, if not constants.
    asked: Option<Vec<String>>,
    /// Whether rows that a key finds for another table are filtered.
    has_filter: Option<bool>,
    is_reversed: bool,
}

impl Leaf {
    fn new(columns: SchemaRef, rows: Option<usize>) -> Leaf {
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
    fn find(mut self, table: Option<&str>, scans: &mut Vec<Scan>) -> Leaf {
        let of_table = |scan: &Scan| table.is_none_or(|table| scan.table == table);
        if let Some(place) = scans.iter().position(of_table) {
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
fn leaves(plan: &Arc<dyn ExecutionPlan>, scans: &mut Vec<Scan>, found: &mut Vec<Leaf>) {
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
        found.push(leaf.find(Some(table.name()), scans));
        return;
    }
    let children = plan.children();
    if children.is_empty() {
        let leaf = Leaf::of(plan);
        let by_key = leaf.key.as_ref().map(|found| Arc::clone(&found.table));
        let scanned = plan.downcast_ref::<TableScan>();
        let name = scanned.map(TableScan::table_name);
        let name = name.or(by_key.as_ref().map(|table| table.name()));
        let is_table = name.is_some() || !plan.schema().fields().is_empty();
        if is_table && !plan.name().starts_with("Placeholder") {
            found.push(leaf.find(name, scans));
        }
    }
    for child in children {
        leaves(child, scans, found);
    }
}

fn table(logical: &LogicalPlan, ready: &Ready, changed: Option<&Changed>) -> Listing {
    let mut listing = Listing::new(&[
        "id",
        "select_type",
        "table",
        "partitions",
        "type",
        "possible_keys",
        "key",
        "key_len",
        "ref",
        "rows",
        "filtered",
        "Extra",
    ])
    .with_numbers(&["id", "rows"]);
    let planned = planned_temp_tables(&ready.plan);
    let sorts = |why: &Why| matches!(why, Why::OrderBy | Why::OrderByLimit);
    let uses_temporary = planned.iter().any(|table| !sorts(&table.why));
    let uses_filesort = planned.iter().any(|table| sorts(&table.why));
    let mut scans = scans(logical);
    let mut tables = Vec::new();
    leaves(&ready.plan, &mut scans, &mut tables);
    tables.retain(|leaf| leaf.scan.is_some());
    // Tables of which the plan knows that they have no rows to show are not read.
    tables.extend(scans.into_iter().map(|scan| Leaf {
        scan: Some(scan),
        ..Leaf::new(Arc::new(Schema::empty()), None)
    }));
    let mut push = |select_type: &str,
                    name: Option<String>,
                    kind: Option<String>,
                    key: Option<&KeyUse>,
                    rows: Option<usize>,
                    extra: String| {
        let filtered = kind.as_ref().map(|_| "100.00".to_owned());
        listing.push(vec![
            some(1),
            some(select_type),
            name,
            None,
            kind,
            key.map(|key| key.name.clone()),
            key.map(|key| key.name.clone()),
            key.map(|key| key.bytes.to_string()),
            key.and_then(|key| key.reference.clone()),
            rows.map(|rows| rows.to_string()),
            filtered,
            (!extra.is_empty()).then_some(extra),
        ]);
    };
    if tables.is_empty() {
        push(
            "SIMPLE",
            None,
            None,
            None,
            None,
            "No tables used".to_owned(),
        );
    }
    for (index, leaf) in tables.iter().enumerate() {
        let Some(scan) = &leaf.scan else {
            continue;
        };
        let mut extra = Vec::new();
        if leaf.has_filter.unwrap_or(scan.has_filter) {
            extra.push("Using where");
        }
        let word = changed.and_then(|changed| changed.word_for(index, &scan.name));
        // A row that changes is read whole.
        if word.is_none() && leaf.key.as_ref().is_some_and(|found| found.is_covered) {
            extra.push("Using index");
        }
        if leaf.is_reversed {
            extra.push("Backward index scan");
        }
        if index == 0 && uses_temporary {
            extra.push("Using temporary");
        }
        if index == 0 && uses_filesort {
            extra.push("Using filesort");
        }
        let found = leaf.key.as_ref();
        let key = found.map(|found| KeyUse::of(found, leaf.asked.as_deref()));
        let access = found.map_or("ALL", |found| found.access.name());
        push(
            word.unwrap_or("SIMPLE"),
            Some(scan.name.clone()),
            some(access),
            key.as_ref(),
            leaf.rows,
            extra.join("; "),
        );
    }
    for (index, temporary) in planned.iter().enumerate() {
        let extra = format!("Temporary table for {}", temporary.why.text());
        push(
            "TEMPORARY",
            Some(format!("<temporary{}>", index + 1)),
            None,
            None,
            None,
            extra,
        );
    }
    for name in unspillable(&ready.plan) {
        push(
            "TEMPORARY",
            None,
            None,
            None,
            None,
            format!("{name}: in memory only, cannot spill"),
        );
    }
    listing
}

/// What each temporary table cost, as a table.
fn measured(tables: &[TempTable]) -> Listing {
    let numbers = [
        "rows",
        "memory_bytes",
        "disk_bytes_written",
        "disk_bytes_read",
        "passes",
    ];
    let mut listing = Listing::new(&[
        "table",
        "why",
        "rows",
        "memory_bytes",
        "disk_bytes_written",
        "disk_bytes_read",
        "passes",
        "on_disk",
    ])
    .with_numbers(&numbers);
    for (index, table) in tables.iter().enumerate() {
        listing.push(vec![
            Some(format!("<temporary{}>", index + 1)),
            some(table.why.text()),
            some(table.rows),
            some(table.memory_bytes),
            some(table.disk_bytes_written),
            some(table.disk_bytes_read),
            some(table.passes),
            some(if table.on_disk { "YES" } else { "NO" }),
        ]);
    }
    listing
}

fn describe_measured(tables: &[TempTable], lines: &mut Vec<String>) {
    for (index, table) in tables.iter().enumerate() {
        lines.push(format!(
            "Temporary table <temporary{}> for {}: rows={} memory_bytes={} disk_bytes_written={} \
             disk_bytes_read={} passes={} on_disk={}",
            index + 1,
            table.why.text(),
            table.rows,
            table.memory_bytes,
            table.disk_bytes_written,
            table.disk_bytes_read,
            table.passes,
            if table.on_disk { "YES" } else { "NO" },
        ));
    }
}

fn describe_planned(plan: &Arc<dyn ExecutionPlan>, lines: &mut Vec<String>) {
    for (index, table) in planned_temp_tables(plan).iter().enumerate() {
        lines.push(format!(
            "Temporary table <temporary{}> for {}",
            index + 1,
            table.why.text()
        ));
    }
    for name in unspillable(plan) {
        lines.push(format!("{name}: in memory only, cannot spill"));
    }
}

fn tree(plan: &Arc<dyn ExecutionPlan>, depth: usize, analyze: bool, lines: &mut Vec<String>) {
    let text = DisplayableExecutionPlan::new(plan.as_ref())
        .one_line()
        .to_string();
    let mut line = format!("{}-> {}", "    ".repeat(depth), text.trim());
    if line.chars().count() > LINE_LENGTH {
        line = line.chars().take(LINE_LENGTH).collect();
        line.push_str("...");
    }
    if analyze
        && let Some(metrics) = plan.metrics()
        && let Some(rows) = metrics.output_rows()
    {
        line.push_str(&format!("  (actual rows={rows}"));
        if let Some(nanos) = metrics.elapsed_compute() {
            line.push_str(&format!(" compute={:.3}ms", nanos as f64 / 1e6));
        }
        line.push(')');
    }
    lines.push(line);
    for child in plan.children() {
        tree(child, depth + 1, analyze, lines);
    }
}
