//! EXPLAIN and EXPLAIN ANALYZE.
//!
//! `blocks` puts a plan together with the SELECTs of the statement (`leaves`: what it reads). Three
//! formats show it: `table` has MySQL's columns, `json` MySQL's document, `tree` the operators.
//! ANALYZE runs the statement, throws its rows away, and reports what each operator did and what
//! each temporary table cost (`measured`). `log` keeps the table for the log of slow statements.

mod blocks;
mod condition;
mod json;
mod json_value;
mod leaves;
mod log;
mod measured;
mod table;
mod target;
mod tree;

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::sqlparser::ast;
use futures::StreamExt;
use mayfly_exec::{TableScan, planned_temp_tables, unspillable};
use mayfly_sql::change;
use mayfly_sql::planning::Optimized;
use mayfly_sql::references::References;
use mayfly_sql::selects::Selects;
use mayfly_sql::source::Source;
use mayfly_sql::statement::{Explain, ExplainFormat, InsertSource, Statement};
use mayfly_types::{ErrorCode, MySqlError};

use self::blocks::Blocks;
use self::leaves::Wanted;
use self::measured::Limits;
use self::target::Target;
use self::tree::Told;
use super::Job;
use super::query::Ready;
use crate::errors::{self, not_supported};
use crate::listing::Listing;
use crate::outcome::Outcome;

/// A query that is explained.
struct Explained {
    logical: Optimized,
    ready: Ready,
    selects: Selects,
}

impl Explained {
    fn blocks(&self, wanted: Wanted) -> Blocks<'_> {
        Blocks::new(&self.logical, &self.ready.plan, &self.selects, wanted)
    }
}

/// What EXPLAIN answers.
pub(super) struct Explanation {
    pub(super) listing: Listing,
    /// What SHOW WARNINGS tells behind it.
    notes: Vec<String>,
}

impl Job {
    pub(crate) async fn explain(&self, explain: Explain) -> Result<Outcome, MySqlError> {
        let explanation = self.explanation(explain).await?;
        for note in &explanation.notes {
            self.note(ErrorCode::Explained, &[note]);
        }
        Ok(Outcome::ready(explanation.listing.batch(None)?))
    }

    pub(super) async fn explanation(&self, explain: Explain) -> Result<Explanation, MySqlError> {
        let format = self.explain_format(&explain)?;
        let mut source = Arc::clone(&self.source);
        let (query, target) = match *explain.statement {
            Statement::Query(query) => (Some(*query), Target::Client),
            Statement::Update(mut update) if !explain.analyze => {
                let target = Target::of_update(&update);
                let found = self.mentions(&mut update.choice.from, "UPDATE")?;
                self.assigned(&found, &self.owned(&update).await?)?;
                let assignments = &mut update.assignments;
                source = self.settle_names(&mut update.choice, assignments).await?;
                let values = update.assignments.into_iter();
                let values = values.filter_map(|assignment| assignment.value);
                let list = values.chain([lit(1)]).collect();
                (Some(change::query(update.choice, list)?), target)
            }
            Statement::Delete(mut delete) if !explain.analyze => {
                let target = Target::of_delete(&delete);
                let found = self.mentions(&mut delete.choice.from, "DELETE")?;
                self.deleted(&found, &delete.targets)?;
                source = self.settle_names(&mut delete.choice, &mut []).await?;
                (Some(change::query(delete.choice, vec![lit(1)])?), target)
            }
            Statement::Insert(insert) if !explain.analyze => {
                Box::pin(self.check_insert(&insert)).await?;
                let target = Target::of_insert(&insert);
                match insert.source {
                    InsertSource::Query(query) => (Some(*query), target),
                    InsertSource::Values(_) => (None, target),
                }
            }
            _ => return Err(not_supported("EXPLAIN of this statement")),
        };
        let explained = match query {
            Some(query) => Some(self.of_text(source).explained(query).await?),
            None => None,
        };
        match explain.analyze {
            true => self.measured(explained, &target, format).await,
            false => self.shown(explained, target, format).await,
        }
    }

    /// The format that a statement asks for, or else `explain_format`.
    fn explain_format(&self, explain: &Explain) -> Result<ExplainFormat, MySqlError> {
        let named = || {
            let name = self.connection.local().variables.text("explain_format");
            ExplainFormat::named(&name).unwrap_or(ExplainFormat::Traditional)
        };
        match (explain.analyze, explain.format) {
            (false, format) => Ok(format.unwrap_or_else(named)),
            (true, format) => match (format, format.unwrap_or_else(named)) {
                (_, ExplainFormat::Json) => Err(not_supported("EXPLAIN ANALYZE with JSON format")),
                (None, _) => Ok(ExplainFormat::Tree),
                (Some(format), _) => Ok(format),
            },
        }
    }

    /// What is planned for a statement.
    async fn shown(
        &self,
        explained: Option<Explained>,
        target: Target,
        format: ExplainFormat,
    ) -> Result<Explanation, MySqlError> {
        let plan = explained.as_ref().map(|explained| &explained.ready.plan);
        let mut notes = plan.map(planned).unwrap_or_default();
        let listing = match format {
            ExplainFormat::Traditional => {
                let blocks = explained.as_ref();
                let blocks = blocks.map(|explained| explained.blocks(Wanted::Table));
                table::table(blocks.as_ref(), &target)
            }
            ExplainFormat::Tree => {
                let mut lines = tree::lines(plan, &target, Told::Plan);
                lines.append(&mut notes);
                listed(lines)
            }
            ExplainFormat::Json => {
                // Conditions can be as deep as those that are planned there.
                let document = self.plan(move |_| {
                    let blocks = explained.as_ref();
                    let blocks = blocks.map(|explained| explained.blocks(Wanted::Everything));
                    Ok(json::document(blocks.as_ref(), &target).to_string())
                });
                let mut listing = Listing::declared("EXPLAIN longtext");
                listing.push(vec![Some(document.await?)]);
                listing
            }
        };
        Ok(Explanation { listing, notes })
    }

    /// Runs a query, and tells what it did.
    async fn measured(
        &self,
        explained: Option<Explained>,
        target: &Target,
        format: ExplainFormat,
    ) -> Result<Explanation, MySqlError> {
        let plan = explained.map(|explained| explained.ready.plan);
        if let Some(plan) = &plan {
            self.limit_time();
            self.discard(plan).await?;
        }
        let limits = Limits {
            memory_bytes: self.running.account.space().memory_bytes(),
            table_bytes: self.connection.temp_table_cap(),
            read_bytes: plan.as_ref().map_or(0, read_bytes),
        };
        let counters = self.running.counters();
        let mut tables = self.running.report.tables();
        for table in &mut tables {
            // Its parts need not have had the most at the same time.
            table.memory_bytes = table.memory_bytes.min(counters.peak_bytes);
        }
        let listing = match format {
            ExplainFormat::Traditional => measured::listing(&tables, limits),
            _ => {
                let mut lines = tree::lines(plan.as_ref(), target, Told::Run);
                lines.extend(measured::lines(&tables, limits));
                let took = self.running.elapsed();
                lines.push(measured::summary(took, &counters, limits));
                listed(lines)
            }
        };
        let notes = Vec::new();
        Ok(Explanation { listing, notes })
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

    async fn discard(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<(), MySqlError> {
        let mut stream = self.stream(plan)?;
        while let Some(batch) = stream.next().await {
            batch.map_err(|error| errors::from_plan(&error))?;
        }
        Ok(())
    }
}

fn lit(number: u8) -> ast::Expr {
    ast::Expr::Value(ast::Value::Number(number.to_string(), false).into())
}

/// Lines as an answer.
fn listed(lines: Vec<String>) -> Listing {
    let mut listing = Listing::new(&["EXPLAIN"]);
    for line in lines {
        listing.push(vec![Some(line)]);
    }
    listing
}

/// Bytes of the tables that a plan reads as a whole, each of them once.
fn read_bytes(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    let mut tables = HashMap::new();
    let _ = plan.apply(|node| {
        if let Some(scan) = node.downcast_ref::<TableScan>() {
            tables.insert(scan.table_name().to_owned(), scan.bytes());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    tables.values().sum()
}

/// The temporary tables that a plan will make, and what of it cannot spill.
fn planned(plan: &Arc<dyn ExecutionPlan>) -> Vec<String> {
    let tables = planned_temp_tables(plan);
    let tables = tables.iter().enumerate().map(|(index, table)| {
        let why = table.why.text();
        format!("Temporary table <temporary{}> for {why}", index + 1)
    });
    let in_memory = unspillable(plan).into_iter();
    let in_memory = in_memory.map(|name| format!("{name}: in memory only, cannot spill"));
    tables.chain(in_memory).collect()
}
