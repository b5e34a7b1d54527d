//! `cte_max_recursion_depth`: a recursion without an end ends with error 3636.
//!
//! DataFusion runs the second part of a recursive common table expression as long as it returns
//! rows. [`LimitRecursion`] puts a node above each of its two parts: the first part of a run sets a
//! count to zero, and each run of the second adds one. A node above the whole reports it as a
//! temporary table. It is the last of all rules, so that no other one has to know the node.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::TryStreamExt;
use mayfly_exec::{StatementContext, Why, next_temp_table_id};
use mayfly_space::AccountOptions;
use mayfly_sql::functions::{SessionValues, raise};
use mayfly_types::{ErrorCode, MySqlError};

#[derive(Debug)]
pub(crate) struct LimitRecursion;

impl PhysicalOptimizerRule for LimitRecursion {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let limited = plan.transform_up(|node| {
            let Some(recursion) = node.downcast_ref::<RecursiveQueryExec>() else {
                return Ok(Transformed::no(node));
            };
            let iterations = Arc::<AtomicU64>::default();
            let counted = |input: &Arc<dyn ExecutionPlan>, part| -> Arc<dyn ExecutionPlan> {
                Arc::new(CountIterations {
                    input: Arc::clone(input),
                    part,
                    iterations: Arc::clone(&iterations),
                })
            };
            let children = vec![
                counted(recursion.static_term(), Part::First),
                counted(recursion.recursive_term(), Part::Repeated),
            ];
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            let input = node.replace_children(children, options)?;
            Ok(Transformed::yes(Arc::new(CountIterations {
                input,
                part: Part::Whole(next_temp_table_id()),
                iterations,
            })))
        });
        limited.data()
    }

    fn name(&self) -> &str {
        "limit_recursion"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Which part of a recursive common table expression a node stands above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    First,
    Repeated,
    /// All of it, a temporary table of this identity.
    Whole(u64),
}

/// Counts how often the second part of a recursion runs. The rows are those of its input.
#[derive(Clone, Debug)]
struct CountIterations {
    input: Arc<dyn ExecutionPlan>,
    part: Part,
    /// Runs of the second part since the first one ran; both nodes share it.
    iterations: Arc<AtomicU64>,
}

impl CountIterations {
    /// The count goes on: the recursion makes the nodes of its second part anew for each run.
    #[expect(clippy::unnecessary_wraps, reason = "other nodes can fail here")]
    fn with_input(
        &self,
        input: Arc<dyn ExecutionPlan>,
        _options: &ReplaceChildrenOptions,
    ) -> Result<Self> {
        Ok(Self {
            input,
            ..self.clone()
        })
    }

    fn count(&self, context: &TaskContext) -> Result<()> {
        match self.part {
            Part::First => {
                self.iterations.store(0, Ordering::Relaxed);
                return Ok(());
            }
            Part::Repeated => {}
            Part::Whole(_) => return Ok(()),
        }
        let iteration = self.iterations.fetch_add(1, Ordering::Relaxed) + 1;
        let extensions = &context.session_config().options().extensions;
        let session = extensions.get::<SessionValues>();
        match session.map(|session| session.lock().recursion_depth_max) {
            Some(most) if iteration > most => Err(raise(MySqlError::new(
                ErrorCode::RecursiveQueryAborted,
                &[&iteration],
            ))),
            _ => Ok(()),
        }
    }
}

impl DisplayAs for CountIterations {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            Part::First => f.write_str("CountIterations: from zero"),
            Part::Repeated => f.write_str("CountIterations"),
            Part::Whole(_) => f.write_str("CountIterations: all rows"),
        }
    }
}

impl ExecutionPlan for CountIterations {
    mayfly_exec::pass_through_node!("CountIterations");

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.count(&context)?;
        let Part::Whole(id) = self.part else {
            return self.input.execute(partition, context);
        };
        let statement = StatementContext::of(&context)?;
        // DataFusion holds the rows, and reserves memory for them from the statement.
        let account = { &statement.account }.child("recursion", AccountOptions::default());
        let table = statement.report.begin(id, Why::Recursion, account);
        let rows = self.input.execute(partition, context)?;
        let counted = rows.inspect_ok(move |rows| table.add_rows(rows.num_rows() as u64));
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            counted,
        )))
    }
}
