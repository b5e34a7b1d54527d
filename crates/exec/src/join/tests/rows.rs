//! Random rows with keys of many types.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array,
    RecordBatch, StringArray, StringViewArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema};
use mayfly_testkit::Random;

/// Of what types the keys are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyKind {
    Int,
    /// As `Int`, without NULL.
    NotNull,
    Text,
    Decimal,
    LongDecimal,
    Dictionary,
    Float,
    TwoKeys,
}

impl KeyKind {
    pub(super) const ALL: [KeyKind; 8] = [
        KeyKind::Int,
        KeyKind::NotNull,
        KeyKind::Text,
        KeyKind::Decimal,
        KeyKind::LongDecimal,
        KeyKind::Dictionary,
        KeyKind::Float,
        KeyKind::TwoKeys,
    ];

    pub(super) fn count(self) -> usize {
        1 + usize::from(self == KeyKind::TwoKeys)
    }
}

/// How many rows, of how many keys, with texts of about how many bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) rows: usize,
    pub(super) distinct: u64,
    pub(super) width: usize,
}

/// The key columns of some numbers; `None` is NULL.
fn key_columns(kind: KeyKind, numbers: &[Option<i64>]) -> Vec<ArrayRef> {
    let texts = || {
        numbers
            .iter()
            .map(|n| n.map(|n| format!("a key that is long: {n}")))
    };
    let dictionary =
        |values: DataType| DataType::Dictionary(Box::new(DataType::Int32), Box::new(values));
    let one: ArrayRef = match kind {
        KeyKind::Int | KeyKind::NotNull => {
            Arc::new(numbers.iter().copied().collect::<Int64Array>())
        }
        KeyKind::Text => Arc::new(texts().collect::<StringViewArray>()),
        KeyKind::Decimal | KeyKind::LongDecimal => {
            let digits = if kind == KeyKind::Decimal { 12 } else { 30 };
            let values: Decimal128Array = numbers.iter().map(|n| n.map(i128::from)).collect();
            Arc::new(values.with_precision_and_scale(digits, 2).unwrap())
        }
        KeyKind::Dictionary => {
            let texts: ArrayRef = Arc::new(texts().collect::<StringArray>());
            cast(&texts, &dictionary(DataType::Utf8)).unwrap()
        }
        KeyKind::Float => {
            let floats = numbers.iter().map(|n| n.map(|n| n as f64 / 2.0 + 0.25));
            Arc::new(floats.collect::<Float64Array>())
        }
        KeyKind::TwoKeys => {
            let day = |n: &Option<i64>| n.map(|n| (n % 7) as i32);
            let days: Date32Array = numbers.iter().map(day).collect();
            let numbers: Int64Array = numbers.iter().map(|n| n.map(|n| n / 7)).collect();
            return vec![Arc::new(days), Arc::new(numbers)];
        }
    };
    vec![one]
}

/// Batches of rows `(key, .., number, text, float, dictionary, flag)` with names of a side.
pub(super) fn batches(
    side: &str,
    kind: KeyKind,
    shape: Shape,
    random: &mut Random,
) -> (Arc<Schema>, Vec<RecordBatch>) {
    let mut rest = shape.rows;
    let mut all = Vec::new();
    loop {
        let rows = rest.min(100 + random.below(900) as usize);
        all.push(batch(side, kind, shape, rows, random));
        rest -= rows;
        if rest == 0 {
            return (all[0].schema(), all);
        }
    }
}

fn batch(side: &str, kind: KeyKind, shape: Shape, rows: usize, random: &mut Random) -> RecordBatch {
    let mut number = || match kind != KeyKind::NotNull && random.chance(0.07) {
        true => None,
        false => Some(random.below(shape.distinct) as i64),
    };
    let numbers: Vec<Option<i64>> = (0..rows).map(|_| number()).collect();
    let mut columns = key_columns(kind, &numbers);
    let mut text = || {
        let len = random.below(2 * shape.width as u64) as usize;
        (!random.chance(0.1)).then(|| format!("{:x<len$}", random.below(1_000)))
    };
    let texts: Vec<Option<String>> = (0..rows).map(|_| text()).collect();
    let ints: Vec<Option<i32>> = (0..rows)
        .map(|_| (!random.chance(0.1)).then(|| random.below(100) as i32))
        .collect();
    let float = |n: &Option<i32>| n.map(|n| if n % 5 == 0 { -0.0 } else { f64::from(n) });
    let short: ArrayRef = Arc::new(StringArray::from_iter(
        ints.iter()
            .map(|n| n.map(|n| ["red", "green", "blue"][n as usize % 3])),
    ));
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    columns.extend([
        Arc::new(Int32Array::from(ints.clone())) as ArrayRef,
        Arc::new(
            texts
                .iter()
                .map(|text| text.as_deref())
                .collect::<StringViewArray>(),
        ),
        Arc::new(ints.iter().map(float).collect::<Float64Array>()),
        cast(&short, &dictionary).unwrap(),
        Arc::new(
            ints.iter()
                .map(|n| n.map(|n| n > 50))
                .collect::<BooleanArray>(),
        ),
    ]);
    let mut names: Vec<String> = (0..kind.count()).map(|n| format!("{side}k{n}")).collect();
    names.extend(["n", "s", "f", "d", "b"].map(|name| format!("{side}{name}")));
    let fields = names.into_iter().zip(&columns).map(|(name, column)| {
        let is_key = name.contains('k');
        let nullable = !is_key || kind != KeyKind::NotNull;
        Field::new(name, column.data_type().clone(), nullable)
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    RecordBatch::try_new(schema, columns).unwrap()
}
