//! EXPLAIN names files where they are read, in whichever order that is.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::parquet::file::properties::WriterProperties;

use crate::engine::{open, rows};
use crate::parquet_file::write_parquet;

/// Writes so many rows `(k, v)` with `k` below `keys`.
fn write(path: &Path, rows: i64, keys: i64) {
    let column = |of: &dyn Fn(i64) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..rows).map(of)))
    };
    let columns = [("k", column(&|row| row % keys)), ("v", column(&|row| row))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    write_parquet(path, WriterProperties::default(), &[batch]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_have_their_names_and_rows_in_any_order_of_joins() {
    let directory = tempfile::tempdir().unwrap();
    let files = [
        ("many", 60_000, 3000),
        ("middle", 3000, 3000),
        ("few", 30, 30),
    ];
    let path = |name: &str| directory.path().join(format!("{name}.parquet"));
    for (name, rows, keys) in files {
        write(&path(name), rows, keys);
    }
    let engine = open(64 << 20, directory.path());
    let mut session = engine.connect();
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let from = order.map(|place| {
            let name = files[place].0;
            format!("'{}' {name}", path(name).display())
        });
        let query = format!(
            "SELECT COUNT(*) FROM {} WHERE many.k = middle.k AND middle.v = few.k AND few.v < 20",
            from.join(", ")
        );
        assert_eq!(rows(&mut session, &query).await, [["400"]], "{order:?}");
        let explained = rows(&mut session, &format!("EXPLAIN {query}")).await;
        // The columns `table` and `rows`, and whether there is a condition.
        let mut shown: Vec<[&str; 3]> = { explained.iter() }
            .filter(|row| row[1] == "SIMPLE")
            .map(|row| [row[2].as_str(), row[9].as_str(), row[11].as_str()])
            .collect();
        shown.sort_unstable();
        let expected = [
            ["few", "30", "Using where"],
            ["many", "60000", "NULL"],
            ["middle", "3000", "NULL"],
        ];
        assert_eq!(shown, expected, "{order:?}: {explained:?}");
    }
}
