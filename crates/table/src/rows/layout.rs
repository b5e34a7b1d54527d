//! The byte layout of one row: what aggregates and joins keep in memory and on disk alike.
//!
//! ```text
//! 0        8             H         H+S
//! | hash u64 | total u32 | states (S bytes) | key section | payload section | pad to 4 |
//! section = | null bits | fixed columns, lengths of byte columns (u32) | bytes of the byte
//! columns |
//! ```
//!
//! Every integer is little-endian. Nothing points anywhere: a row means the same in memory, in
//! another page and on disk. The key section is canonical (null values are zero, `-0.0` is `0.0`,
//! every NaN is one NaN) and says its own length, so two rows belong to one group exactly when
//! their key sections are the same bytes: one `memcmp`, whatever the types.
//!
//! What all rows have in common is not in them: the total where no column has a length of its own
//! (then `H` is 8), null bits where no column of the section is ever NULL. The lowest bit of the
//! hash field marks a row that was merged into another one (dead); hashes themselves are even.
//!
//! Rows of joins have no states. In their place stands a link, 4 bytes: the next row with the same
//! key in the table that the row is in. It means nothing in a page that is in no table.

use arrow_schema::{DataType, IntervalUnit};

use super::state::{StateKind, StateSlot};

/// Rows start at multiples of this.
pub(crate) const ROW_ALIGN: usize = 4;

/// The lowest bit of the hash field: the row lives on inside another row.
pub(crate) const DEAD_BIT: u64 = 1;

/// Where the total length is, in rows that have one.
const TOTAL_AT: usize = 8;

/// Bytes of a link.
const LINK_BYTES: usize = 4;

/// Digits of a decimal that 8 bytes hold.
const SMALL_DECIMAL_DIGITS: u8 = 18;

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
    /// The lower 8 bytes of a 16-byte decimal of at most 18 digits.
    SmallDecimal,
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
            Decimal128(precision, _) if *precision <= SMALL_DECIMAL_DIGITS => {
                Encoding::SmallDecimal
            }
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
            Encoding::Float64 | Encoding::SmallDecimal => 8,
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
    /// The bit that is set where the value is NULL; `None` where it never is.
    pub(crate) null_bit: Option<usize>,
}

/// Columns encoded side by side: the key, or the payload.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    pub(crate) columns: Vec<Column>,
    /// Bytes of null bits, fixed columns and lengths.
    pub(crate) fixed_bytes: usize,
    pub(crate) null_bytes: usize,
    pub(crate) has_bytes: bool,
}

impl Section {
    /// The section of columns that are compared.
    fn of_key<'a>(types: impl Iterator<Item = (&'a DataType, bool)> + Clone) -> Option<Section> {
        Section::new(types, Encoding::of)
    }

    /// The section of columns that are carried: their values come back bit by bit.
    fn of_payload<'a>(
        types: impl Iterator<Item = (&'a DataType, bool)> + Clone,
    ) -> Option<Section> {
        Section::new(types, |data_type| {
            Some(match Encoding::of(data_type)? {
                encoding @ (Encoding::Float32 | Encoding::Float64) => {
                    Encoding::Fixed(encoding.width())
                }
                encoding => encoding,
            })
        })
    }

    fn new<'a>(
        types: impl Iterator<Item = (&'a DataType, bool)> + Clone,
        encoding_of: impl Fn(&DataType) -> Option<Encoding>,
    ) -> Option<Section> {
        let null_bits = types.clone().filter(|(_, nullable)| *nullable).count();
        let mut position = null_bits.div_ceil(8);
        let mut next_bit = 0..null_bits;
        let mut columns = Vec::new();
        for (data_type, nullable) in types {
            let encoding = encoding_of(data_type)?;
            columns.push(Column {
                data_type: data_type.clone(),
                encoding,
                position,
                null_bit: if nullable { next_bit.next() } else { None },
            });
            position += encoding.width();
        }
        let has_bytes = columns.iter().any(|c| c.encoding == Encoding::Bytes);
        Some(Section {
            columns,
            fixed_bytes: position,
            null_bytes: null_bits.div_ceil(8),
            has_bytes,
        })
    }

    /// The length of the section at the head of `bytes`.
    #[inline]
    pub(crate) fn len_of(&self, bytes: &[u8]) -> usize {
        if !self.has_bytes {
            return self.fixed_bytes;
        }
        let lengths = self
            .columns
            .iter()
            .filter(|c| c.encoding == Encoding::Bytes);
        lengths.fold(self.fixed_bytes, |len, column| {
            len + length_at(bytes, column.position)
        })
    }
}

/// Bytes before the states or the link.
fn header_bytes(key: &Section, payload: &Section) -> usize {
    match key.has_bytes || payload.has_bytes {
        true => TOTAL_AT + 4,
        false => TOTAL_AT,
    }
}

/// The 4-byte length at a place.
#[inline]
pub(crate) fn length_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes")) as usize
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

/// A group column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyColumn {
    /// Its Arrow type.
    pub data_type: DataType,
    /// Whether it may be NULL; an array with a NULL must not come where it may not.
    pub nullable: bool,
}

impl KeyColumn {
    /// A column that may be NULL.
    pub fn nullable(data_type: DataType) -> KeyColumn {
        KeyColumn {
            data_type,
            nullable: true,
        }
    }
}

/// A payload column: carried by the group, not compared.
#[derive(Debug, Clone)]
pub struct PayloadColumn {
    /// Its Arrow type.
    pub data_type: DataType,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Which value the group keeps. `Min` and `Max` are for byte columns; numbers have states.
    pub rule: PayloadRule,
}

/// The layout of the rows of one aggregate, or of one side of a join.
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
    /// The length of every row, where they all have one.
    row_len: Option<usize>,
    key_start: usize,
    /// Where the link to the next row of the same key is, in rows of joins.
    link_at: Option<usize>,
    /// Whether a key that is NULL in part is equal to another such one.
    null_keys_match: bool,
}

impl RowLayout {
    /// The layout for these group columns, carried columns and states; `None` where a column's type
    /// cannot be held in a row (nested types, dictionaries).
    pub fn new(
        key: &[KeyColumn],
        payload: &[PayloadColumn],
        states: &[(StateKind, bool)],
    ) -> Option<RowLayout> {
        let rules: Vec<PayloadRule> = payload.iter().map(|c| c.rule).collect();
        let key = Section::of_key(key.iter().map(|c| (&c.data_type, c.nullable)))?;
        let payload = Section::of_payload(payload.iter().map(|c| (&c.data_type, c.nullable)))?;
        let (states, key_start) = StateSlot::lay_out(states, header_bytes(&key, &payload));
        Some(RowLayout::of_sections(
            key, payload, rules, states, key_start,
        ))
    }

    /// The layout of rows of one side of a join: their keys, what is carried, and whether keys that
    /// are NULL in part find each other. `None` as for [`RowLayout::new`].
    pub fn for_join(
        key: &[KeyColumn],
        payload: &[KeyColumn],
        null_keys_match: bool,
    ) -> Option<RowLayout> {
        let key = Section::of_key(key.iter().map(|c| (&c.data_type, c.nullable)))?;
        let payload = Section::of_payload(payload.iter().map(|c| (&c.data_type, c.nullable)))?;
        let rules = vec![PayloadRule::First; payload.columns.len()];
        let link_at = header_bytes(&key, &payload);
        let layout = RowLayout::of_sections(key, payload, rules, Vec::new(), link_at + LINK_BYTES);
        Some(RowLayout {
            link_at: Some(link_at),
            null_keys_match,
            ..layout
        })
    }

    fn of_sections(
        key: Section,
        payload: Section,
        rules: Vec<PayloadRule>,
        states: Vec<StateSlot>,
        key_start: usize,
    ) -> RowLayout {
        let has_lengths = key.has_bytes || payload.has_bytes;
        let fixed = key_start + key.fixed_bytes + payload.fixed_bytes;
        RowLayout {
            row_len: (!has_lengths).then(|| fixed.next_multiple_of(ROW_ALIGN)),
            key_start,
            key,
            payload,
            payload_is_first: rules.iter().all(|r| *r == PayloadRule::First),
            payload_compares: rules
                .iter()
                .any(|r| matches!(r, PayloadRule::Min | PayloadRule::Max)),
            rules,
            states,
            link_at: None,
            null_keys_match: true,
        }
    }

    /// Whether a row can hold a value of this type.
    pub fn supports(data_type: &DataType) -> bool {
        Encoding::of(data_type).is_some()
    }

    /// Where the key section starts.
    #[inline]
    pub(crate) fn key_start(&self) -> usize {
        self.key_start
    }

    /// The bytes of a row without its byte columns: a lower bound for estimates.
    pub fn fixed_row_bytes(&self) -> usize {
        (self.key_start + self.key.fixed_bytes + self.payload.fixed_bytes)
            .next_multiple_of(ROW_ALIGN)
    }

    /// Whether all rows have one length.
    #[inline]
    pub(crate) fn has_one_len(&self) -> bool {
        self.row_len.is_some()
    }

    /// The length of the row at the head of `row`.
    #[inline]
    pub(crate) fn row_len(&self, row: &[u8]) -> usize {
        self.row_len.unwrap_or_else(|| length_at(row, TOTAL_AT))
    }

    /// Writes the length of a row, where rows carry theirs.
    pub(crate) fn set_row_len(&self, row: &mut [u8], len: usize) {
        if self.row_len.is_none() {
            let len = u32::try_from(len).expect("a row is below 2 GiB");
            row[TOTAL_AT..TOTAL_AT + 4].copy_from_slice(&len.to_le_bytes());
        }
    }

    /// The key section of the row at the head of `row`.
    #[inline]
    pub(crate) fn key_of<'a>(&self, row: &'a [u8]) -> &'a [u8] {
        let row = &row[self.key_start..];
        &row[..self.key.len_of(row)]
    }

    /// Whether the row with this key section can have a partner.
    #[inline]
    pub(crate) fn is_matchable(&self, key: &[u8]) -> bool {
        self.null_keys_match || self.key_is_known(key)
    }

    /// Whether no part of a key section is NULL.
    #[inline]
    pub(crate) fn key_is_known(&self, key: &[u8]) -> bool {
        key[..self.key.null_bytes].iter().all(|bits| *bits == 0)
    }

    /// Whether some rows can have no partner because of NULLs in their keys.
    pub(crate) fn has_unmatchable_keys(&self) -> bool {
        !self.null_keys_match && self.key.null_bytes > 0
    }

    /// Whether rows with the same key are linked with each other.
    pub(crate) fn has_links(&self) -> bool {
        self.link_at.is_some()
    }

    /// What the row at the head of `row` is linked with; zero is nothing.
    #[inline]
    pub(crate) fn link_of(&self, row: &[u8]) -> u32 {
        let at = self.link_at.expect("rows of joins have links");
        u32::from_le_bytes(row[at..at + LINK_BYTES].try_into().expect("4 bytes"))
    }

    /// Links the row at the head of `row`.
    #[inline]
    pub(crate) fn set_link(&self, row: &mut [u8], link: u32) {
        let at = self.link_at.expect("rows of joins have links");
        row[at..at + LINK_BYTES].copy_from_slice(&link.to_le_bytes());
    }

    /// Where the payload section starts.
    #[inline]
    pub(crate) fn payload_start(&self, row: &[u8]) -> usize {
        self.key_start + self.key.len_of(&row[self.key_start..])
    }
}

/// The hash of the row that starts at the head of `row`; of a dead one without meaning.
#[inline]
pub(crate) fn row_hash(row: &[u8]) -> u64 {
    u64::from_le_bytes(row[..8].try_into().expect("8 bytes"))
}

#[inline]
pub(crate) fn row_is_dead(row: &[u8]) -> bool {
    row[0] & DEAD_BIT as u8 != 0
}

pub(crate) fn mark_dead(row: &mut [u8]) {
    row[0] |= DEAD_BIT as u8;
}

/// Marks a row dead and says where it lives on.
pub(crate) fn forward(row: &mut [u8], reference: u32) {
    row[..8].copy_from_slice(&(u64::from(reference) << 1 | DEAD_BIT).to_le_bytes());
}

/// Where a dead row lives on that was forwarded.
pub(crate) fn forwarded_to(row: &[u8]) -> u32 {
    (row_hash(row) >> 1) as u32
}
