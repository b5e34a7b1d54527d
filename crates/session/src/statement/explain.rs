//! EXPLAIN and EXPLAIN ANALYZE.
//!
//! The tabular form has MySQL's columns: one row for each table that is read, then one row for
//! each temporary table with the reason why it exists. ANALYZE runs the statement, throws its rows
//! away, and reports what each temporary table cost.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::sql::sqlparser::ast;
use futures::StreamExt;
use mayfly_exec::{Access, Found, KeyScan, TempTable, Why, planned_temp_tables, unspillable};
use mayfly_sql::references::References;
use mayfly_sql::statement::{Explain, ExplainFormat, InsertSource, Statement};
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
        let query = match *explain.statement {
            Statement::Query(query) => *query,
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
            (ExplainFormat::Traditional, false) => table(&logical, &ready),
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

/// One table that a plan reads.
struct Scan {
    name: String,
    has_filter: bool,
}

fn scans(plan: &LogicalPlan) -> Vec<Scan> {
    let mut scans = Vec::new();
    let mut filters_above = 0_usize;
    let _ = plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::Filter(_) => filters_above += 1,
            LogicalPlan::TableScan(scan) => {
                scans.push(Scan {
                    name: scan.table_name.table().to_owned(),
                    has_filter: filters_above > 0 || !scan.filters.is_empty(),
                });
                filters_above = 0;
            }
            _ => {}
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
    fn of(found: &Found) -> KeyUse {
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
        let constants = vec!["const"; found.parts];
        KeyUse {
            name: found.key().name.clone(),
            bytes: bytes.sum(),
            reference: (found.access != Access::Range).then(|| constants.join(",")),
        }
    }
}

/// What a plan reads, and how.
struct Leaf {
    rows: Option<usize>,
    key: Option<Found>,
}

fn leaves(plan: &Arc<dyn ExecutionPlan>, found: &mut Vec<Leaf>) {
    let children = plan.children();
    if children.is_empty() {
        let scan = plan.downcast_ref::<KeyScan>();
        found.push(Leaf {
            rows: progress::expected_rows(plan),
            key: scan.map(|scan| scan.found().clone()),
        });
    }
    for child in children {
        leaves(child, found);
    }
}

fn table(logical: &LogicalPlan, ready: &Ready) -> Listing {
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
    let scans = scans(logical);
    let mut rows = Vec::new();
    leaves(&ready.plan, &mut rows);
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
    if scans.is_empty() {
        push(
            "SIMPLE",
            None,
            None,
            None,
            None,
            "No tables used".to_owned(),
        );
    }
    for (index, scan) in scans.iter().enumerate() {
        let mut extra = Vec::new();
        if scan.has_filter {
            extra.push("Using where");
        }
        if index == 0 && uses_temporary {
            extra.push("Using temporary");
        }
        if index == 0 && uses_filesort {
            extra.push("Using filesort");
        }
        let leaf = match rows.len() == scans.len() {
            true => rows.get(index),
            false => None,
        };
        let found = leaf.and_then(|leaf| leaf.key.as_ref());
        let key = found.map(KeyUse::of);
        let access = found.map_or("ALL", |found| found.access.name());
        push(
            "SIMPLE",
            Some(scan.name.clone()),
            some(access),
            key.as_ref(),
            leaf.and_then(|leaf| leaf.rows),
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
