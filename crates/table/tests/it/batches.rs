//! Random schemas and batches from a seed.

use std::sync::Arc;

use arrow_array::builder::{
    FixedSizeBinaryBuilder, Int32Builder, ListBuilder, MapBuilder, StringBuilder,
};
use arrow_array::types::{Int8Type, Int32Type, UInt16Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, DictionaryArray,
    FixedSizeListArray, Int64Array, LargeBinaryArray, LargeStringArray, NullArray, PrimitiveArray,
    RecordBatch, RecordBatchOptions, StringArray, StringViewArray, StructArray, downcast_primitive,
};
use arrow_buffer::{Buffer, MutableBuffer, NullBuffer, ScalarBuffer, i256};
use arrow_schema::{DataType, Field, IntervalUnit, Schema, SchemaRef, TimeUnit};

/// A small generator of numbers (splitmix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

fn flat_types() -> Vec<DataType> {
    let mut types = vec![
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::UInt8,
        DataType::UInt16,
        DataType::UInt32,
        DataType::UInt64,
        DataType::Float16,
        DataType::Float32,
        DataType::Float64,
        DataType::Decimal32(7, 2),
        DataType::Decimal64(15, 3),
        DataType::Decimal128(30, 5),
        DataType::Decimal256(60, 30),
        DataType::Date32,
        DataType::Date64,
        DataType::Time32(TimeUnit::Millisecond),
        DataType::Time64(TimeUnit::Microsecond),
        DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Timestamp(TimeUnit::Second, Some("+02:00".into())),
        DataType::Duration(TimeUnit::Microsecond),
        DataType::Interval(IntervalUnit::MonthDayNano),
        DataType::Interval(IntervalUnit::DayTime),
        DataType::FixedSizeBinary(5),
    ];
    // Text is what most columns are made of.
    for _ in 0..3 {
        types.extend([
            DataType::Utf8,
            DataType::Utf8View,
            DataType::LargeUtf8,
            DataType::Binary,
            DataType::BinaryView,
            DataType::LargeBinary,
            DataType::Boolean,
        ]);
    }
    types
}

fn any_type(random: &mut Random) -> DataType {
    let flat = flat_types();
    match random.below(21) {
        8 => {
            // Nested dictionaries that cannot be joined.
            let keys = Box::new(DataType::Int8);
            let words = DataType::Dictionary(keys, Box::new(DataType::Utf8));
            DataType::Struct(vec![Field::new("a", words, true)].into())
        }
        0 => DataType::Null,
        1 => list_type(),
        2 => DataType::FixedSizeList(Arc::new(Field::new("item", DataType::Int64, true)), 2),
        3 => struct_type(),
        4 => map_type(),
        5 => DataType::FixedSizeBinary(0),
        6 | 7 => {
            let keys = [DataType::Int8, DataType::UInt16, DataType::Int32];
            let values = flat[random.below(flat.len())].clone();
            DataType::Dictionary(Box::new(keys[random.below(3)].clone()), Box::new(values))
        }
        _ => flat[random.below(flat.len())].clone(),
    }
}

fn list_type() -> DataType {
    DataType::List(Arc::new(Field::new("item", DataType::Int32, true)))
}

fn struct_type() -> DataType {
    let fields = vec![
        Field::new("a", DataType::Int64, true),
        Field::new("b", DataType::Utf8View, true),
    ];
    DataType::Struct(fields.into())
}

fn map_type() -> DataType {
    MapBuilder::new(None, StringBuilder::new(), Int32Builder::new())
        .finish()
        .data_type()
        .clone()
}

/// A schema of up to `column_count` columns.
pub(crate) fn schema(random: &mut Random, column_count: usize) -> SchemaRef {
    let count = random.below(column_count + 1);
    let fields: Vec<Field> = (0..count)
        .map(|index| {
            let data_type = any_type(random);
            let nullable = data_type == DataType::Null || random.chance(80);
            Field::new(format!("c{index}"), data_type, nullable)
        })
        .collect();
    Arc::new(Schema::new(fields))
}

/// The length of a value: mostly short, sometimes empty, rarely long.
fn value_len(random: &mut Random, longest: usize) -> usize {
    match random.below(200) {
        0 => random.below(longest + 1),
        1..20 => 0,
        20..120 => random.below(13),
        120..190 => random.below(40),
        _ => random.below(300).min(longest),
    }
}

fn text(random: &mut Random, longest: usize) -> String {
    let len = value_len(random, longest);
    let mut text = String::with_capacity(len);
    while text.len() < len {
        let c = match random.below(12) {
            0 => '\u{e9}',
            1 => '\u{1F980}',
            n => char::from(b'a' + n as u8),
        };
        text.push(c);
    }
    text
}

fn bytes(random: &mut Random, longest: usize) -> Vec<u8> {
    let len = value_len(random, longest);
    (0..len).map(|_| random.next() as u8).collect()
}

fn nulls(random: &mut Random, rows: usize, nullable: bool) -> Option<NullBuffer> {
    if !nullable || random.chance(30) {
        return None;
    }
    let percent = [2, 50, 100][random.below(3)];
    Some((0..rows).map(|_| !random.chance(percent)).collect())
}

fn optional<T>(
    random: &mut Random,
    rows: usize,
    nullable: bool,
    mut make: impl FnMut(&mut Random) -> T,
) -> Vec<Option<T>> {
    let nulls = nulls(random, rows, nullable);
    (0..rows)
        .map(|row| {
            let valid = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
            valid.then(|| make(random))
        })
        .collect()
}

fn array(
    random: &mut Random,
    data_type: &DataType,
    rows: usize,
    nullable: bool,
    longest: usize,
) -> ArrayRef {
    let text = |random: &mut Random| text(random, longest);
    let bytes = |random: &mut Random| bytes(random, longest);
    macro_rules! collect {
        ($array:ty, $make:expr) => {{
            let values = optional(random, rows, nullable, $make);
            Arc::new(values.into_iter().collect::<$array>()) as ArrayRef
        }};
    }
    macro_rules! bytes_array {
        ($array:ty) => {{
            let values = optional(random, rows, nullable, bytes);
            let values: Vec<Option<&[u8]>> = values.iter().map(Option::as_deref).collect();
            Arc::new(<$array>::from(values)) as ArrayRef
        }};
    }
    macro_rules! primitive {
        ($type:ty) => {{
            let width = size_of::<<$type as arrow_array::ArrowPrimitiveType>::Native>();
            let mut buffer = MutableBuffer::new(rows * width);
            (0..rows * width).for_each(|_| buffer.push(random.next() as u8));
            let values = ScalarBuffer::new(Buffer::from(buffer), 0, rows);
            let nulls = nulls(random, rows, nullable);
            let array = PrimitiveArray::<$type>::new(values, nulls);
            Arc::new(array.with_data_type(data_type.clone())) as ArrayRef
        }};
    }
    downcast_primitive! {
        data_type => (primitive),
        DataType::Null => Arc::new(NullArray::new(rows)),
        DataType::Boolean => collect!(BooleanArray, |r| r.chance(50)),
        DataType::Utf8 => collect!(StringArray, text),
        DataType::LargeUtf8 => collect!(LargeStringArray, text),
        DataType::Utf8View => collect!(StringViewArray, text),
        DataType::Binary => bytes_array!(BinaryArray),
        DataType::LargeBinary => bytes_array!(LargeBinaryArray),
        DataType::BinaryView => bytes_array!(BinaryViewArray),
        DataType::FixedSizeBinary(width) => {
            let mut builder = FixedSizeBinaryBuilder::new(*width);
            for value in optional(random, rows, nullable, |r| r.next()) {
                match value {
                    Some(value) => {
                        builder.append_value(&value.to_le_bytes()[..*width as usize]).unwrap();
                    }
                    None => builder.append_null(),
                }
            }
            Arc::new(builder.finish())
        }
        DataType::List(_) => {
            let mut builder = ListBuilder::new(Int32Builder::new());
            for count in optional(random, rows, nullable, |r| r.below(4)) {
                (0..count.unwrap_or(0)).for_each(|n| builder.values().append_value(n as i32));
                builder.append(count.is_some());
            }
            Arc::new(builder.finish())
        }
        DataType::FixedSizeList(item, size) => {
            let values: Int64Array = (0..rows * 2).map(|n| (n % 3 > 0).then_some(7)).collect();
            let nulls = nulls(random, rows, nullable);
            let item = Arc::clone(item);
            Arc::new(FixedSizeListArray::new(item, *size, Arc::new(values), nulls))
        }
        DataType::Struct(fields) => {
            let columns = fields
                .iter()
                .map(|field| {
                    // A dictionary within a struct is written whole with each page.
                    let is_dictionary = matches!(field.data_type(), DataType::Dictionary(_, _));
                    let longest = if is_dictionary { 60 } else { longest };
                    array(random, field.data_type(), rows, true, longest)
                })
                .collect();
            let nulls = nulls(random, rows, nullable);
            Arc::new(StructArray::new(fields.clone(), columns, nulls))
        }
        DataType::Map(_, _) => {
            let mut builder = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
            for count in optional(random, rows, nullable, |r| r.below(3)) {
                for n in 0..count.unwrap_or(0) {
                    builder.keys().append_value(format!("k{n}"));
                    builder.values().append_value(n as i32);
                }
                builder.append(count.is_some()).unwrap();
            }
            Arc::new(builder.finish())
        }
        DataType::Dictionary(keys, values) => {
            let distinct = 1 + random.below(20);
            let values = array(random, values, distinct, nullable, longest);
            let keys_of = optional(random, rows, nullable, |r| r.below(distinct));
            macro_rules! dictionary {
                ($type:ty, $native:ty) => {{
                    let keys: PrimitiveArray<$type> =
                        keys_of.into_iter().map(|k| k.map(|k| k as $native)).collect();
                    Arc::new(DictionaryArray::new(keys, values)) as ArrayRef
                }};
            }
            match **keys {
                DataType::Int8 => dictionary!(Int8Type, i8),
                DataType::UInt16 => dictionary!(UInt16Type, u16),
                _ => dictionary!(Int32Type, i32),
            }
        }
        other => unreachable!("{other}"),
    }
}

/// A batch of that many rows, cut out of a longer one. No value is longer than `longest` bytes.
pub(crate) fn batch(
    random: &mut Random,
    schema: &SchemaRef,
    rows: usize,
    longest: usize,
) -> RecordBatch {
    let before = random.below(10);
    let all = before + rows + random.below(10);
    let columns: Vec<ArrayRef> = schema
        .fields()
        .iter()
        .map(|f| array(random, f.data_type(), all, f.is_nullable(), longest).slice(before, rows))
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options).unwrap()
}

/// A number as wide as any Arrow has, for tests of single types.
pub(crate) fn wide(n: i64) -> i256 {
    i256::from_i128(i128::from(n) << 60)
}
