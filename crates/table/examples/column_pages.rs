//! Prints how fast column pages are written and read: `cargo run --release --example column_pages`.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::builder::StringViewBuilder;
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, StringViewArray};
use mayfly_space::{NextUse, Space, SpaceOptions};
use mayfly_table::BatchRun;

const ROWS: usize = 8192;
const BATCHES: usize = 256;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers: ArrayRef = Arc::new((0..ROWS as i64).collect::<Int64Array>());
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.5; ROWS]));
    let text = |len: usize| {
        let mut builder = StringViewBuilder::new();
        (0..ROWS).for_each(|row| builder.append_value(format!("{row:0len$x}")));
        builder.finish()
    };
    let views = |len: usize| Arc::new(text(len)) as ArrayRef;
    // One in sixteen is short, and lies alone among long ones.
    let mixed: StringViewArray = (0..ROWS)
        .map(|row| Some(format!("{row:0len$x}", len = row * 37 % 16 * 36 + 15)))
        .collect();
    let accents: StringViewArray = (0..ROWS).map(|_| Some("\u{e9}".repeat(16))).collect();
    let offsets: StringArray = text(32).iter().collect();
    let cases: Vec<(&str, Vec<(&str, ArrayRef)>)> = vec![
        (
            "4 numbers",
            vec![
                ("a", Arc::clone(&numbers)),
                ("b", Arc::clone(&floats)),
                ("c", numbers),
                ("d", floats),
            ],
        ),
        ("Utf8View of 8", vec![("a", views(8))]),
        ("Utf8View of 32", vec![("a", views(32))]),
        ("Utf8View of 32, not ASCII", vec![("a", Arc::new(accents))]),
        ("Utf8 of 32", vec![("a", Arc::new(offsets))]),
        ("Utf8View of 200", vec![("a", views(200))]),
        ("Utf8View of 15 to 555", vec![("a", Arc::new(mixed))]),
    ];
    let spilling: Vec<_> = cases.clone().into_iter().zip([8 << 20; 8]).collect();
    let cases: Vec<_> = cases
        .into_iter()
        .zip([1 << 30; 8])
        .chain(spilling)
        .collect();
    println!(
        "{:34} {:>9} {:>9} {:>9} {:>9}",
        "rows of", "ns/write", "ns/read", "GB/write", "GB/read"
    );
    for ((name, columns), memory_bytes) in cases {
        let batch = RecordBatch::try_from_iter(columns)?;
        let options = SpaceOptions {
            memory_bytes,
            ..SpaceOptions::default()
        };
        let space = Space::open(options)?;
        let mut best = (f64::MAX, f64::MAX, 0);
        for _ in 0..5 {
            let mut run = BatchRun::new(space.root(), batch.schema(), NextUse::At(0));
            let start = Instant::now();
            for _ in 0..BATCHES {
                run.append(&batch)?;
            }
            run.finish()?;
            let write = start.elapsed().as_secs_f64();
            let start = Instant::now();
            let mut rows = 0;
            let bytes = run.bytes();
            for batch in run.drain()? {
                rows += batch?.num_rows();
            }
            assert_eq!(rows, ROWS * BATCHES);
            let read = start.elapsed().as_secs_f64();
            best = (best.0.min(write), best.1.min(read), bytes);
        }
        let rows = (ROWS * BATCHES) as f64;
        let (write, read, bytes) = (best.0, best.1, best.2 as f64 / 1e9);
        let speeds = (
            write * 1e9 / rows,
            read * 1e9 / rows,
            bytes / write,
            bytes / read,
        );
        let (a, b, c, d) = speeds;
        let name = format!("{name}, {} MiB", memory_bytes >> 20);
        println!("{name:34} {a:9.2} {b:9.2} {c:9.2} {d:9.2}");
    }
    Ok(())
}
