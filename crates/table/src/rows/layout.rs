//! The byte layout of one group row: what the aggregate keeps in memory and on disk alike.
//!
//! ```text
//! 0        8       12      16              16+S                     16+S+key_len
//! | hash u64 | total u32 | key u32 | states (S bytes) | key section | payload section | pad to 8 |
//! section = | null bits | fixed columns, lengths of byte columns (u32) | bytes of the byte
//! columns |
//! ```
//!
//! Every integer is little-endian. Nothing points anywhere: a row means the same in memory, in
//! another page and on disk. The key section is canonical (null values are zero, `-0.0` is `0.0`,
//! every NaN is one NaN), so two rows belong to one group exactly when their key sections are the
//! same bytes: one `memcmp`, whatever the types. The top bit of `total` marks a row that was merged
//! into another one (dead).

use arrow_schema::{DataType, IntervalUnit};

use super::state::{StateKind, StateSlot};

/// Bytes before the states: hash, total length with the dead bit, key length.
pub(crate) const HEADER_BYTES: usize = 16;

/// The top bit of a row's total length: the row lives on inside another row.
pub(crate) const DEAD_BIT: u32 = 1 << 31;

/// How the values of one column are copied into a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// A value of this many bytes, copied as it is.
    Fixed(usize),
    /// One byte, 0 or 1.
    Boolean,
    /// 4 bytes, canonical zero and NaN.
    Float32,
    /// 8 bytes, canonical zero and NaN.
    Float64,
    /// A 4-byte length in the fixed part and the bytes behind it.
    Bytes,
}

impl Encoding {
    /// The encoding of an Arrow type, or `None` where a row cannot hold it as it is.
    pub(crate) fn of(data_type: &DataType) -> Option<Encoding> {
        use DataType::*;
        Some(match data_type {
            Boolean => Encoding::Boolean,
            Int8 | UInt8 => Encoding::Fixed(1),
            Int16 | UInt16 => Encoding::Fixed(2),
            Int32 | UInt32 | Date32 | Time32(_) | Decimal32(_, _) => Encoding::Fixed(4),
            Int64 | UInt64 | Date64 | Time64(_) | Timestamp(_, _) | Duration(_) => {
                Encoding::Fixed(8)
            }
            Decimal64(_, _) | Interval(IntervalUnit::DayTime) => Encoding::Fixed(8),
            Interval(IntervalUnit::YearMonth) => Encoding::Fixed(4),
            Interval(IntervalUnit::MonthDayNano) | Decimal128(_, _) => Encoding::Fixed(16),
            Decimal256(_, _) => Encoding::Fixed(32),
            Float32 => Encoding::Float32,
            Float64 => Encoding::Float64,
            Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView => Encoding::Bytes,
            _ => return None,
        })
    }

    pub(crate) fn width(self) -> usize {
        match self {
            Encoding::Fixed(width) => width,
            Encoding::Boolean => 1,
            Encoding::Float32 | Encoding::Bytes => 4,
            Encoding::Float64 => 8,
        }
    }
}

/// One column of a section.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) data_type: DataType,
    pub(crate) encoding: Encoding,
    /// Where its fixed part starts, from the start of the section.
    pub(crate) position: usize,
    /// The bit that is set where the value is NULL.
    pub(crate) null_bit: usize,
}

/// Columns encoded side by side: the key, or the payload.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    pub(crate) columns: Vec<Column>,
    /// Bytes of null bits, fixed columns and lengths.
    pub(crate) fixed_bytes: usize,
    pub(crate) has_bytes: bool,
}

impl Section {
    fn new(types: &[DataType]) -> Option<Section> {
        let mut position = types.len().div_ceil(8);
        let mut columns = Vec::with_capacity(types.len());
        for (null_bit, data_type) in types.iter().enumerate() {
            let encoding = Encoding::of(data_type)?;
            columns.push(Column {
                data_type: data_type.clone(),
                encoding,
                position,
                null_bit,
            });
            position += encoding.width();
        }
        let has_bytes = columns.iter().any(|c| c.encoding == Encoding::Bytes);
        Some(Section {
            columns,
            fixed_bytes: position,
            has_bytes,
        })
    }
}

/// What happens to a payload column when a row meets another row of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadRule {
    /// The value of the row that came first stays, NULL or not.
    First,
    /// The first value that is not NULL stays.
    FirstNotNull,
    /// The smaller value stays; NULL loses against any value.
    Min,
    /// The larger value stays; NULL loses against any value.
    Max,
}

/// A payload column: carried by the group, not compared.
#[derive(Debug, Clone)]
pub struct PayloadColumn {
    /// Its Arrow type.
    pub data_type: DataType,
    /// Which value the group keeps. `Min` and `Max` are for byte columns; numbers have states.
    pub rule: PayloadRule,
}

/// The layout of the rows of one aggregate.
#[derive(Debug, Clone)]
pub struct RowLayout {
    pub(crate) key: Section,
    pub(crate) payload: Section,
    pub(crate) rules: Vec<PayloadRule>,
    /// Whether every payload column keeps its first value, so that a row never changes length.
    pub(crate) payload_is_first: bool,
    /// Whether any payload column compares values.
    pub(crate) payload_compares: bool,
    pub(crate) states: Vec<StateSlot>,
    pub(crate) state_bytes: usize,
}

impl RowLayout {
    /// The layout for these group columns, carried columns and states; `None` where a column's type
    /// cannot be held in a row (nested types, dictionaries).
    pub fn new(
        key: &[DataType],
        payload: &[PayloadColumn],
        states: &[(StateKind, bool)],
    ) -> Option<RowLayout> {
        let payload_types: Vec<DataType> = payload.iter().map(|c| c.data_type.clone()).collect();
        let (states, state_bytes) = StateSlot::lay_out(states);
        let rules: Vec<PayloadRule> = payload.iter().map(|c| c.rule).collect();
        Some(RowLayout {
            key: Section::new(key)?,
            payload: Section::new(&payload_types)?,
            payload_is_first: rules.iter().all(|r| *r == PayloadRule::First),
            payload_compares: rules
                .iter()
                .any(|r| matches!(r, PayloadRule::Min | PayloadRule::Max)),
            rules,
            states,
            state_bytes,
        })
    }

    /// Whether a row can hold a value of this type.
    pub fn supports(data_type: &DataType) -> bool {
        Encoding::of(data_type).is_some()
    }

    /// Where the key section starts.
    pub(crate) fn key_start(&self) -> usize {
        HEADER_BYTES + self.state_bytes
    }

    /// The bytes of a row without its byte columns: a lower bound for estimates.
    pub fn fixed_row_bytes(&self) -> usize {
        (self.key_start() + self.key.fixed_bytes + self.payload.fixed_bytes).next_multiple_of(8)
    }
}

/// Header fields of the row that starts at the head of `row`.
pub(crate) fn row_hash(row: &[u8]) -> u64 {
    u64::from_le_bytes(row[..8].try_into().expect("8 bytes"))
}

pub(crate) fn row_total_field(row: &[u8]) -> u32 {
    u32::from_le_bytes(row[8..12].try_into().expect("4 bytes"))
}

pub(crate) fn row_len(row: &[u8]) -> usize {
    (row_total_field(row) & !DEAD_BIT) as usize
}

pub(crate) fn row_is_dead(row: &[u8]) -> bool {
    row_total_field(row) & DEAD_BIT != 0
}

pub(crate) fn row_key_len(row: &[u8]) -> usize {
    u32::from_le_bytes(row[12..16].try_into().expect("4 bytes")) as usize
}

pub(crate) fn mark_dead(row: &mut [u8]) {
    row[11] |= 0x80;
}
