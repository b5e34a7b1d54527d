//! How long a table takes for what statements do with it, beside what the machine allows:
//!
//! ```console
//! $ cargo run --release -p mayfly-table --example table_speed -- 100000
//! ```
//!
//! Arguments: rows, and a part of the names of the lines to run (all, if there is none). The table
//! has two numbers and a short text; three keys where keys are named. Everything is in memory. The
//! limits:
//!
//! - dictionary: 0.3 us, two hash maps and the allocations of an empty table;
//! - one row: 4 dependent loads for each key and one line of the row written;
//! - all rows: reading and writing their bytes once, and 30 ns an entry of a key, the least for
//!   keys whose leaf is in the cache;
//! - undo of an append: the same, for the entries that go;
//! - scan: the bytes of the rows at the speed of reading memory.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringViewArray, UInt64Array};
use mayfly_space::measure::{Cell, MeasureOptions, huge_pages};
use mayfly_space::{Space, SpaceOptions};
use mayfly_table::{
    Change, Column, Definition, Dictionary, Key, KeyKind, KeyPart, Search, Table, TableSnapshot,
};
use mayfly_types::ColumnType;

/// What an entry of a key costs when everything it touches is in the cache.
const CACHED_NS: f64 = 30.0;
/// An empty table that comes into being and goes.
const DICTIONARY_NS: f64 = 300.0;
/// Two numbers, the end of a text, the text, and the number of the row.
const ROW_BYTES: f64 = 8.0 + 4.0 + 4.0 + 12.0 + 8.0;
const KEYS: f64 = 3.0;

fn definition(has_keys: bool) -> Definition {
    let key = |name, kind, column| Key::new(name, kind, vec![KeyPart::new(column)]);
    let mut definition = Definition {
        columns: vec![
            Column::new("id", ColumnType::BigInt { unsigned: false }, false),
            Column::new("kind", ColumnType::Int { unsigned: false }, true),
            Column::new("name", ColumnType::VarChar { length: 20 }, true),
        ],
        ..Definition::default()
    };
    if has_keys {
        definition.keys = vec![
            key("PRIMARY", KeyKind::Primary, 0),
            key("kind", KeyKind::Plain, 1),
            key("name", KeyKind::Plain, 2),
        ];
    }
    definition
}

/// Rows from `first` on.
fn batch(table: &Table, first: u64, count: u64) -> RecordBatch {
    let numbers = || first..first + count;
    let ids: Int64Array = numbers().map(|n| n as i64).collect::<Vec<_>>().into();
    let kinds: Int32Array = numbers()
        .map(|n| (n * 7919 % 1009) as i32)
        .collect::<Vec<_>>()
        .into();
    let names = numbers().map(|n| Some(format!("name {:06}", n * 7919 % 1_000_003)));
    let names: StringViewArray = names.collect();
    let columns: Vec<ArrayRef> = vec![Arc::new(ids), Arc::new(kinds), Arc::new(names)];
    RecordBatch::try_new(Arc::clone(table.schema()), columns).expect("columns of the schema")
}

/// The same rows with other kinds.
fn of_other_kind(rows: &RecordBatch) -> RecordBatch {
    let kinds = rows
        .column(1)
        .as_primitive::<arrow_array::types::Int32Type>();
    let kinds: Int32Array = kinds.unary(|kind| kind + 1);
    let mut columns = rows.columns().to_vec();
    columns[1] = Arc::new(kinds);
    RecordBatch::try_new(rows.schema(), columns).expect("columns of the schema")
}

struct Report {
    wanted: Option<String>,
}

impl Report {
    /// A function of its own, so that a profiler can find what is measured.
    #[inline(never)]
    fn line(&self, name: &str, count: u64, limit_ns: f64, body: impl FnOnce()) {
        let started = Instant::now();
        body();
        let each = started.elapsed().as_nanos() as f64 / count as f64;
        println!(
            "{name:34} {each:10.1} {limit_ns:10.1} {:5.1} %",
            limit_ns / each * 100.0
        );
    }

    fn wants(&self, name: &str) -> bool {
        self.wanted.as_ref().is_none_or(|part| name.contains(part))
    }
}

struct Bench {
    space: Space,
    report: Report,
    rows: u64,
    load_ns: f64,
    /// A row read and written once.
    row_ns: f64,
}

impl Bench {
    fn table(&self, has_keys: bool) -> Arc<Table> {
        Arc::new(Table::new("t", definition(has_keys), self.space.root()))
    }

    fn filled(&self, has_keys: bool) -> Arc<Table> {
        let table = self.table(has_keys);
        table.append(&batch(&table, 0, self.rows)).expect("room");
        table
    }

    fn dictionary(&self) {
        let name = "create and drop, 3 keys";
        if !self.report.wants(name) {
            return;
        }
        let dictionary = Dictionary::new();
        dictionary.create_database("d").expect("a new name");
        let definition = definition(true);
        self.report.line(name, self.rows, DICTIONARY_NS, || {
            for _ in 0..self.rows {
                let table = Table::new("t", definition.clone(), self.space.root());
                dictionary.create_table("d", Arc::new(table)).expect("new");
                dictionary.drop_table("d", "t").expect("there");
            }
        });
    }

    fn single_rows(&self, has_keys: bool) {
        let keys = if has_keys { KEYS } else { 0.0 };
        let limit = keys * 4.0 * self.load_ns + self.row_ns;
        let title = if has_keys { "3 keys" } else { "no keys" };
        let name = format!("append one row, {title}");
        if self.report.wants(&name) {
            let table = self.table(has_keys);
            let rows: Vec<_> = (0..self.rows).map(|n| batch(&table, n, 1)).collect();
            self.report.line(&name, self.rows, limit, || {
                for row in &rows {
                    let mut appender = table.begin_append();
                    appender.append(row).expect("room");
                    appender.commit().expect("room");
                }
            });
        }
        let changes = self.rows.min(20_000);
        let name = format!("update one row by key, {title}");
        if has_keys && self.report.wants(&name) {
            let table = self.filled(true);
            let order: Vec<_> = (0..changes)
                .map(|n| (n * 7919 % self.rows) as i64)
                .collect();
            self.report.line(&name, changes, limit, || {
                for id in &order {
                    let mut change = table.begin_change();
                    let (snapshot, row) = by_key(&table, *id);
                    let rows = snapshot.rows(&row, None).expect("a read");
                    let other = of_other_kind(&rows);
                    change.replace(&row.into(), &other).expect("room");
                    change.commit().expect("room");
                }
            });
        }
        let name = format!("delete one row by key, {title}");
        if has_keys && self.report.wants(&name) {
            let table = self.filled(true);
            let order: Vec<_> = (0..changes)
                .map(|n| (n * 7919 % self.rows) as i64)
                .collect();
            self.report.line(&name, changes, limit, || {
                for id in &order {
                    let mut change = table.begin_change();
                    let (_, row) = by_key(&table, *id);
                    change.remove(&row.into());
                    change.commit().expect("room");
                }
            });
        }
        let name = format!("append one row and undo, {title}");
        if self.report.wants(&name) {
            let table = self.filled(has_keys);
            let rows: Vec<_> = (0..changes)
                .map(|n| batch(&table, self.rows + n, 1))
                .collect();
            self.report.line(&name, changes, limit * 2.0, || {
                for row in &rows {
                    let saved = table.save().expect("room");
                    table.append(row).expect("room");
                    saved.restore();
                }
            });
        }
    }

    fn all_rows(&self, has_keys: bool) {
        let keys = if has_keys { KEYS } else { 0.0 };
        let limit = keys * CACHED_NS + self.row_ns;
        let title = if has_keys { "3 keys" } else { "no keys" };
        let name = format!("append all rows, {title}");
        if self.report.wants(&name) {
            let table = self.table(has_keys);
            let rows = batch(&table, 0, self.rows);
            self.report.line(&name, self.rows, limit, || {
                table.append(&rows).expect("room");
            });
        }
        let name = format!("update all rows, {title}");
        if self.report.wants(&name) {
            let table = self.filled(has_keys);
            let changed = if has_keys { 2.0 * CACHED_NS } else { 0.0 };
            let limit = changed + self.row_ns;
            self.report.line(&name, self.rows, limit, || {
                let mut change = table.begin_change();
                each(&mut change, |change, ids, rows| {
                    change.replace(ids, &of_other_kind(rows)).expect("room");
                });
                change.commit().expect("room");
            });
        }
        let name = format!("delete all rows, {title}");
        if self.report.wants(&name) {
            let table = self.filled(has_keys);
            self.report.line(&name, self.rows, keys * CACHED_NS, || {
                let mut change = table.begin_change();
                each(&mut change, |change, ids, _| change.remove(ids));
                change.commit().expect("room");
            });
        }
        let name = format!("append all rows and undo, {title}");
        if self.report.wants(&name) {
            let table = self.table(has_keys);
            let rows = batch(&table, 0, self.rows);
            self.report.line(&name, self.rows, limit * 2.0, || {
                let saved = table.save().expect("room");
                table.append(&rows).expect("room");
                saved.restore();
            });
        }
        let name = format!("scan, {title}");
        if self.report.wants(&name) {
            let table = self.filled(has_keys);
            self.report.line(&name, self.rows, self.row_ns / 2.0, || {
                let snapshot = table.snapshot();
                for rows in snapshot.scan(0..snapshot.batch_count(), None) {
                    let rows = rows.expect("a read");
                    let ids = rows.column(0).as_primitive::<Int64Type>();
                    black_box(ids.values().iter().fold(0, |sum: i64, id| sum ^ id));
                }
            });
        }
    }
}

/// The id of the row that has a key.
fn by_key(table: &Table, id: i64) -> (TableSnapshot, Vec<u64>) {
    let search = Search::equal(0, vec![Arc::new(Int64Array::from(vec![id]))]);
    let found = table.search(&[search], 10).expect("a read");
    let (snapshot, numbers) = found.expect("one row");
    let row = snapshot.locate(numbers).expect("a read");
    (snapshot, row)
}

/// Does something with all rows.
fn each(change: &mut Change, mut body: impl FnMut(&mut Change, &UInt64Array, &RecordBatch)) {
    let snapshot = change.snapshot().clone();
    for index in 0..snapshot.batch_count() {
        let rows = snapshot.read(index, None).expect("a read");
        let ids: UInt64Array = snapshot.row_ids(index);
        body(change, &ids, &rows);
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let rows = arguments
        .next()
        .map_or(100_000, |text| text.parse().expect("a number of rows"));
    let machine = huge_pages(&MeasureOptions::default()).expect("memory can be measured");
    let cells = machine.rows.last().expect("a row for huge pages");
    let value = |index: usize| match cells[index] {
        Cell::Value(value) => value,
        _ => f64::NAN,
    };
    let (load_ns, copy_ns_per_byte) = (value(3), 1e3 / value(4));
    let space = Space::open(SpaceOptions {
        memory_bytes: 1 << 30,
        ..SpaceOptions::default()
    });
    let bench = Bench {
        space: space.expect("a space opens"),
        report: Report {
            wanted: arguments.next(),
        },
        rows,
        load_ns,
        row_ns: ROW_BYTES * copy_ns_per_byte,
    };
    println!("{rows} rows; dependent load {load_ns:.0} ns, copy {copy_ns_per_byte:.2} ns/byte\n");
    println!("{:34} {:>10} {:>10}", "", "ns/op", "limit");
    bench.dictionary();
    for has_keys in [false, true] {
        bench.single_rows(has_keys);
        bench.all_rows(has_keys);
    }
}
