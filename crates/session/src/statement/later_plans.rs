//! Queries over many rows that come again: their operators are kept.
//!
//! Owns when a plan is kept that can be made again for each run (see [`mayfly_exec::LaterPlan`]),
//! and when it is. Queries over few rows have plans of another kind (see [`super::repeated`]),
//! which are asked first.
//!
//! A plan is kept when its text comes for the second time, and taken again while its names,
//! variables and the rows of its tables are those of then. It holds no page and no table.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::Query;
use mayfly_exec::LaterPlan;
use mayfly_sql::references::References;
use mayfly_sql::repeatable::is_repeatable;
use mayfly_table::Table;
use mayfly_types::MySqlError;

use super::Job;
use super::later_plan_cache::{Kept, PlanKey};
use super::query::Ready;
use super::repeated::find_place;
use crate::errors;
use crate::profile::Stage;

/// The bytes of the longest text whose plan is kept.
const TEXT_BYTES_MAX: usize = 16 << 10;

impl Job {
    /// Plans a query, or makes the plan again that is kept of it.
    pub(super) async fn ready_again(&self, query: Query) -> Result<Ready, MySqlError> {
        let references = References::of_query(&query);
        let bindings = self.bindings(&references).await?;
        if let Some(ready) = self.later_plan(&query) {
            return Ok(ready);
        }
        let key = self.key_to_keep(&query, &references);
        self.plan(move |job| {
            let told = job.told();
            let planned = job.planned_here(query, &bindings, &job.source)?;
            let ready = job.physical_here(planned)?;
            match key.filter(|_| job.told() == told) {
                Some(key) => job.kept(ready, key),
                None => Ok(ready),
            }
        })
        .await
    }

    /// The plan that is kept of a query, if it would be the same now.
    fn later_plan(&self, query: &Query) -> Option<Ready> {
        let connection = &self.connection;
        let (kept, tables) = {
            let local = connection.local();
            let kept = local.later_plans.plan(&self.running.text, query)?;
            let tables = kept.key.meanings.now(&local, connection);
            (kept, tables)
        };
        if Arc::strong_count(&kept.in_use) > 1 {
            return None;
        }
        self.running.enter(Stage::Preparing);
        // A table whose rows were only counted has no scan in the plan.
        let is_same = tables.is_some_and(|tables| versions(&tables) == kept.key.versions);
        let plan = is_same.then(|| kept.plan.now().ok().flatten());
        let Some(plan) = plan.flatten() else {
            connection.local().later_plans.give_up(&kept);
            return None;
        };
        connection.count(|status| status.plans_reused += 1);
        Some(Ready {
            plan,
            labels: kept.labels.clone(),
            origins: kept.origins.clone(),
            in_order: false,
            in_use: Some(Arc::clone(&kept.in_use)),
        })
    }

    /// What the plan of a query would be for, if it is to be kept.
    fn key_to_keep(&self, query: &Query, references: &References) -> Option<PlanKey> {
        let text = &self.running.text;
        let comes_again = text.len() <= TEXT_BYTES_MAX
            && self.connection.local().later_plans.comes_again(text)
            && is_repeatable(query, references);
        if !comes_again {
            return None;
        }
        Some(PlanKey {
            text: text.to_string(),
            query: query.clone(),
            meanings: self.meanings(&references.tables)?,
            versions: versions(&self.tables(&references.tables)?),
        })
    }

    /// What planning tells beside a plan: warnings, and that it read what each statement has of its
    /// own. A plan that is made again would not.
    fn told(&self) -> impl PartialEq + use<> {
        let reads = self.connection.values.lock().reads;
        (self.warned(), reads)
    }

    /// Keeps a plan, and makes it again for this run: those of all runs are alike.
    fn kept(&self, ready: Ready, key: PlanKey) -> Result<Ready, MySqlError> {
        let later = LaterPlan::of(&ready.plan).map_err(|error| errors::from_plan(&error))?;
        let Some(later) = later.filter(|_| !ready.in_order) else {
            return Ok(ready);
        };
        let Some(place) = find_place(&self.connection, later.operators()) else {
            return Ok(ready);
        };
        let now = later.now().map_err(|error| errors::from_plan(&error))?;
        let Some(plan) = now else {
            // Somebody has changed a table meanwhile.
            return Ok(ready);
        };
        let in_use = Arc::new(());
        self.connection.local().later_plans.keep(Kept {
            key,
            plan: later,
            labels: ready.labels.clone(),
            origins: ready.origins.clone(),
            in_use: Arc::clone(&in_use),
            _place: place,
        });
        Ok(Ready {
            plan,
            in_use: Some(in_use),
            ..ready
        })
    }
}

/// Which rows some tables have.
fn versions(tables: &[Arc<Table>]) -> Vec<u64> {
    tables.iter().map(|table| table.version()).collect()
}
