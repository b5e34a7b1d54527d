//! The table of operators against the source of both crates, and the rule on plans.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder, TaskContext};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use datafusion::prelude::SessionContext;
use mayfly_space::{Space, SpaceOptions};
use mayfly_testkit::repository;

use super::operators::{self, Governance};
use super::{OnlyGoverned, UngovernedOperator};
use crate::plan_node::{leaf_node, leaf_properties, stream_of};

/// The types that `impl ExecutionPlan for` names in a file, but for those inside of a module: tests
/// and examples.
fn implementors(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines();
    lines.filter_map(|line| {
        let name = line.strip_prefix("impl ExecutionPlan for ")?;
        let end = name.find(|c: char| !c.is_ascii_alphanumeric())?;
        Some(&name[..end])
    })
}

/// The operators in the files below a directory, but for those of its tests.
fn operators_below(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with("src/test") {
                operators_below(&path, found);
            }
        } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("src/test.rs")
        {
            let text = std::fs::read_to_string(&path).unwrap();
            found.extend(implementors(&text).map(str::to_owned));
        }
    }
}

/// The version of DataFusion that this crate is built with.
fn version() -> String {
    let lock = repository().join("Cargo.lock");
    let lock = std::fs::read_to_string(lock).unwrap();
    let (_, rest) = lock
        .split_once("name = \"datafusion\"\nversion = \"")
        .unwrap();
    rest.split('"').next().unwrap().to_owned()
}

/// The directories of DataFusion's crates, as cargo unpacked them.
fn sources(version: &str) -> Vec<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let registry = home.unwrap_or_default().join("registry/src");
    let below = |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().flatten();
    let crates = below(registry).flat_map(|registry| below(registry.path()));
    let is_one = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        let is_it = |name: &str| name.starts_with("datafusion") && name.ends_with(version);
        name.is_some_and(is_it)
    };
    crates.map(|entry| entry.path()).filter(is_one).collect()
}

fn names_of(is_wanted: impl Fn(Governance) -> bool) -> BTreeSet<String> {
    let wanted = operators::all().filter(|known| is_wanted(known.governance));
    // A node of some of them tells in brackets what it is for.
    let names = wanted.map(|known| known.name.split('(').next().unwrap().to_owned());
    names.collect()
}

#[test]
fn the_table_has_every_operator_of_datafusion_and_no_other() {
    let version = version();
    let sources = sources(&version);
    if sources.is_empty() {
        println!("skipped: cargo has no source of DataFusion {version} in its registry");
        return;
    }
    let mut found = BTreeSet::new();
    for source in sources {
        operators_below(&source.join("src"), &mut found);
    }
    assert_eq!(names_of(|it| it != Governance::Ours), found);
}

#[test]
fn the_table_has_every_operator_of_this_crate() {
    let mut found = BTreeSet::new();
    operators_below(&repository().join("crates/exec/src"), &mut found);
    assert!(
        found.remove("OfUser"),
        "this file is among those that are read"
    );
    assert_eq!(names_of(|it| it == Governance::Ours), found);
}

#[test]
fn each_operator_stands_in_the_table_once() {
    let mut names = BTreeSet::new();
    for known in operators::all() {
        assert!(names.insert(known.name), "{}", known.name);
        assert!(!known.holds.is_empty(), "{}", known.name);
    }
}

/// An operator of somebody else.
#[derive(Debug)]
struct OfUser {
    properties: Arc<PlanProperties>,
}

impl DisplayAs for OfUser {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OfUser")
    }
}

impl ExecutionPlan for OfUser {
    leaf_node!("OfUser");

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        Ok(stream_of(self, std::iter::empty()))
    }
}

#[test]
fn an_operator_of_others_passes_when_it_is_named() {
    let leaf = OfUser {
        properties: leaf_properties(Arc::new(Schema::empty()), 1),
    };
    let plan: Arc<dyn ExecutionPlan> = Arc::new(CooperativeExec::new(Arc::new(leaf)));
    let check = |rule: OnlyGoverned| rule.optimize(Arc::clone(&plan), &ConfigOptions::new());
    let error = check(OnlyGoverned::default()).unwrap_err();
    let refused = match &error {
        datafusion::common::DataFusionError::External(cause) => cause.downcast_ref(),
        _ => None,
    };
    let name = "OfUser".to_owned();
    assert_eq!(refused, Some(&UngovernedOperator::Unknown { name }));
    check(OnlyGoverned::with_operators(["Another"])).unwrap_err();
    check(OnlyGoverned::with_operators(["OfUser"])).unwrap();
}

/// The plan of a query in a session with a rule behind all others.
async fn planned(sql: &str, rule: Option<OnlyGoverned>) -> Result<Arc<dyn ExecutionPlan>> {
    let space = Space::open(SpaceOptions {
        memory_bytes: 8 << 20,
        ..SpaceOptions::default()
    });
    let builder = SessionStateBuilder::new().with_default_features();
    let mut builder = crate::install(builder, &space.unwrap())?;
    if let Some(rule) = rule {
        builder = builder.with_physical_optimizer_rule(Arc::new(rule));
    }
    let context = SessionContext::new_with_state(builder.build());
    context.sql(sql).await?.create_physical_plan().await
}

#[tokio::test]
async fn windows_that_are_left_to_datafusion_are_refused_where_a_program_asks_for_it() {
    let window = "SELECT value, COUNT(DISTINCT value) OVER () FROM range(10)";
    planned(window, None).await.unwrap();
    let strict = Some(OnlyGoverned::default());
    let error = planned(window, strict.clone()).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("WindowAggExec is not planned: it holds"),
        "{text}"
    );
    let named = Some(OnlyGoverned::with_operators(["WindowAggExec"]));
    planned(window, named).await.unwrap();
    for governed in [
        "SELECT value, SUM(value) OVER (ORDER BY value) FROM range(10)",
        "SELECT a.value FROM range(10) a JOIN range(10) b ON a.value = b.value ORDER BY 1",
        "SELECT value % 3, COUNT(*) FROM range(10) GROUP BY 1",
        "SELECT (SELECT MAX(value) FROM range(3)), value FROM range(10) LIMIT 2",
    ] {
        planned(governed, strict.clone()).await.unwrap();
    }
}
