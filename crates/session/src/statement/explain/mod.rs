//! EXPLAIN and EXPLAIN ANALYZE.
//!
//! The tabular form (`table`) has MySQL's columns: one row for each table that is read (`leaves`),
//! by the SELECT that reads it, then one row for each temporary table with the reason why it
//! exists. `log` keeps it for the log of slow statements. ANALYZE runs the statement, throws its
//! rows away, and reports what each temporary table cost.

mod leaves;
mod log;
mod table;

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use datafusion::sql::sqlparser::ast;
use futures::StreamExt;
use mayfly_exec::{JoinOperator, SidewaysOperator, TempTable, planned_temp_tables, unspillable};
use mayfly_sql::change;
use mayfly_sql::inner_name::shown_in;
use mayfly_sql::planning::Optimized;
use mayfly_sql::references::References;
use mayfly_sql::selects::Selects;
use mayfly_sql::source::Source;
use mayfly_sql::statement::{Explain, ExplainFormat, InsertSource, Statement};
use mayfly_types::MySqlError;

use self::table::{Changed, table};
use super::Job;
use super::query::Ready;
use crate::errors::{self, not_supported};
use crate::listing::{Listing, some};
use crate::outcome::Outcome;

/// Longest line of a plan; expressions of generated statements can be very long.
const LINE_LENGTH: usize = 400;

/// A query that is explained.
struct Explained {
    logical: Optimized,
    ready: Ready,
    selects: Selects,
}

impl Job {
    pub(crate) async fn explain(&self, explain: Explain) -> Result<Outcome, MySqlError> {
        let listing = self.explain_listing(explain).await?;
        Ok(Outcome::ready(listing.batch(None)?))
    }

    async fn explain_listing(&self, explain: Explain) -> Result<Listing, MySqlError> {
        let mut changed = None;
        let mut source = Arc::clone(&self.source);
        let query = match *explain.statement {
            Statement::Query(query) => *query,
            Statement::Update(mut update) if !explain.analyze => {
                changed = Some(Changed::by_update(&update));
                let found = self.mentions(&mut update.choice.from, "UPDATE")?;
                self.assigned(&found, &self.owned(&update).await?)?;
                let assignments = &mut update.assignments;
                source = self.settle_names(&mut update.choice, assignments).await?;
                let values = update.assignments.into_iter();
                let values = values.filter_map(|assignment| assignment.value);
                let list = values.chain([lit(1)]).collect();
                change::query(update.choice, list)?
            }
            Statement::Delete(mut delete) if !explain.analyze => {
                changed = Some(Changed::by_delete(&delete));
                let found = self.mentions(&mut delete.choice.from, "DELETE")?;
                self.deleted(&found, &delete.targets)?;
                source = self.settle_names(&mut delete.choice, &mut []).await?;
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
        let Explained {
            logical,
            ready,
            selects,
        } = self.of_text(source).explained(query).await?;
        if explain.analyze {
            self.discard(&ready).await?;
        }
        let listing = match (explain.format, explain.analyze) {
            (ExplainFormat::Traditional, false) => {
                table(&logical, &ready, &selects, changed.as_ref())
            }
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
        Ok(listing)
    }

    /// The same statement with another text.
    fn of_text(&self, source: Arc<Source>) -> Job {
        Job {
            source,
            ..self.clone()
        }
    }

    async fn explained(&self, query: ast::Query) -> Result<Explained, MySqlError> {
        let bindings = self.bindings(&References::of_query(&query)).await?;
        let (logical, ready, selects) = self.explained_plans(query, bindings).await?;
        Ok(Explained {
            logical,
            ready,
            selects,
        })
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
    let text = shown_in(text.replace(mayfly_sql::functions::own::MARK, ""));
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
    if analyze && let Some(join) = plan.downcast_ref::<JoinOperator>() {
        let counted = join
            .counted()
            .map(|(name, value)| format!("{name}={value}"));
        line.push_str(&format!("  ({})", counted.collect::<Vec<_>>().join(" ")));
    }
    if analyze
        && let Some(sideways) = plan.downcast_ref::<SidewaysOperator>()
        && let Some(dropped) = sideways.rows_dropped()
    {
        line.push_str(&format!("  (rows_dropped={dropped})"));
    }
    lines.push(line);
    for child in plan.children() {
        tree(child, depth + 1, analyze, lines);
    }
}
