//! Filters that DataFusion pushes into scans of files by the names of columns.

use datafusion::common::Result;
use datafusion::dataframe::DataFrameWriteOptions;
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_plan::displayable;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use mayfly_exec::install;
use mayfly_space::{Space, SpaceOptions};

/// A limit tells scans which keys of `x` may still be among the first. `y` has a column of the
/// same name, which is not the partner of that key: the scan of `y` must not hear of it.
#[tokio::test]
async fn a_filter_on_the_key_of_a_semi_join_stays_on_its_side() -> Result<()> {
    let space = Space::open(SpaceOptions::default()).unwrap();
    let builder = SessionStateBuilder::new()
        .with_default_features()
        .with_config(SessionConfig::new().with_target_partitions(1));
    let context = SessionContext::new_with_state(install(builder, &space)?.build());
    let directory = tempfile::tempdir().unwrap();
    for (name, sql) in [
        (
            "x",
            "SELECT value AS id, value % 100 AS a, value AS b FROM range(5000)",
        ),
        ("y", "SELECT value AS id, value + 1000 AS a FROM range(100)"),
    ] {
        let path = directory.path().join(format!("{name}.parquet"));
        let path = path.to_str().unwrap();
        let rows = context.sql(sql).await?;
        let options = DataFrameWriteOptions::new();
        rows.write_parquet(path, options, None).await?;
        let options = ParquetReadOptions::default();
        context.register_parquet(name, path, options).await?;
    }
    let sql = "SELECT x.id FROM x WHERE EXISTS (SELECT 1 FROM y WHERE y.id = x.a AND y.a <> x.b) \
               ORDER BY x.a LIMIT 3";
    let plan = context.sql(sql).await?.create_physical_plan().await?;
    let text = displayable(plan.as_ref()).indent(false).to_string();
    let filters_of = |file: &str| {
        let scan = text.lines().find(|line| line.contains(file)).unwrap();
        scan.matches("DynamicFilter").count()
    };
    assert_eq!(filters_of("y.parquet"), 0, "{text}");
    Ok(())
}
