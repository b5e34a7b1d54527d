//! How columns are stored in pages, and how many rows a page takes.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::take::take;
use mayfly_space::PageClass;

use super::fixed_bytes::fixed_bytes;
use super::form::Form;
use super::frame::{Frame, Sign, Span};
use super::sizes::{ALIGNMENT, ENTRY_BYTES, HEADER_BYTES, align};
use super::text_codes::TextShare;
use super::value_bytes::value_bytes;
use crate::error::{Error, Result};
use crate::owned::own_bytes;

/// The name of the column that numbers rows.
const ROW_NUMBER: &str = "\u{1}row number";
/// How many times the bytes of the next smaller class a page has.
const CLASS_STEP: usize = 4;
/// The rows that are tried first when a page is filled; then twice as many, and so on.
const FIT_STEP_ROWS: usize = 256;
/// Rows of a page take at most that many times its bytes once their numbers are as wide as their
/// types: who reads a page holds all of them.
const WIDENED_MAX: usize = 8;
/// Most rows of a page: two of DataFusion's batches, so that a batch that is read from a page of
/// narrow rows stays within the processor's cache.
const ROWS_MAX: usize = 16384;

const _: () = assert!(
    ROWS_MAX <= i16::MAX as usize,
    "keys of 16 bits can count a page's rows"
);

/// How a column is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing but the row count.
    Null,
    /// One bit a row.
    Boolean,
    /// A fixed number of bytes a row, of an integer or of anything else.
    Fixed { width: usize, sign: Option<Sign> },
    /// Offsets, a data area, and the prefixes of long values in order.
    Bytes,
    /// The same; the values are text.
    Text,
    /// An Arrow IPC stream of one column.
    Stream,
}

impl Kind {
    pub(super) fn of(data_type: &DataType) -> Self {
        match data_type {
            DataType::Null => Kind::Null,
            DataType::Boolean => Kind::Boolean,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Kind::Text,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Kind::Bytes,
            DataType::FixedSizeBinary(width) if *width > 0 => Kind::Fixed {
                width: width.unsigned_abs() as usize,
                sign: None,
            },
            DataType::Dictionary(_, values) => match (Kind::of(values), &**values) {
                (Kind::Null | Kind::Stream, _) | (_, DataType::Dictionary(_, _)) => Kind::Stream,
                (kind, _) => kind,
            },
            other => match other.primitive_width() {
                Some(width) => Kind::Fixed {
                    width,
                    sign: Sign::of(other),
                },
                None => Kind::Stream,
            },
        }
    }

    /// How the integers of a span stand in a page.
    pub(super) fn narrow(self, span: Span) -> Form {
        let frame = match self {
            Kind::Fixed {
                width,
                sign: Some(sign),
            } => Frame::of(span, width, sign),
            _ => None,
        };
        frame.map_or(Form::Plain, Form::Narrow)
    }

    /// The bytes of the values of so many rows, those of a stream not counted.
    pub(super) fn values_bytes(self, rows: usize, form: Form) -> usize {
        match (self, form) {
            (Kind::Null | Kind::Stream, _) => 0,
            (_, Form::Narrow(frame)) => rows.saturating_mul(frame.width),
            (_, Form::Coded(codes)) => rows.saturating_mul(codes.width()),
            (Kind::Boolean, Form::Plain) => rows.div_ceil(8),
            (Kind::Fixed { width, .. }, Form::Plain) => rows.saturating_mul(width),
            (Kind::Bytes | Kind::Text, Form::Plain) => {
                rows.saturating_add(1).saturating_mul(size_of::<i32>())
            }
        }
    }

    /// Between which numbers the integers of some rows lie; empty where there are none.
    pub(super) fn span(self, column: &dyn Array, from: usize, row_count: usize) -> Span {
        let Kind::Fixed {
            width,
            sign: Some(sign),
        } = self
        else {
            return Span::EMPTY;
        };
        let nulls = column.nulls().map(|nulls| nulls.slice(from, row_count));
        fixed_bytes(column, width, |values| {
            let values = &values[from * width..(from + row_count) * width];
            Span::of(values, width, sign, nulls.as_ref())
        })
    }

    pub(super) const fn tag(self) -> u32 {
        match self {
            Kind::Null => 0,
            Kind::Boolean => 1,
            Kind::Fixed { .. } => 2,
            Kind::Bytes => 3,
            Kind::Stream => 4,
            Kind::Text => 5,
        }
    }

    pub(super) const fn holds_nulls(self) -> bool {
        !matches!(self, Kind::Null | Kind::Stream)
    }
}

/// How many bytes some rows take; sizes of consecutive rows add up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Rows.
    pub rows: usize,
    /// Bytes of text and binary values with their prefixes, and of nested values (an estimate).
    pub data_bytes: usize,
    /// Between which numbers the integers of each column lie; none where they are not narrowed.
    spans: Vec<Span>,
}

impl Size {
    /// That of as many rows of which it is not known how wide their numbers are.
    pub(crate) fn with_other_numbers(mut self) -> Size {
        self.spans.clear();
        self
    }

    pub(crate) fn plus(mut self, other: &Size) -> Size {
        if self.rows == 0 {
            self.spans.clone_from(&other.spans);
        } else if self.spans.len() == other.spans.len() {
            let spans = self.spans.iter_mut().zip(&other.spans);
            spans.for_each(|(span, other)| *span = span.plus(*other));
        } else if other.rows > 0 {
            // Numbers of which nothing is known are as wide as their type.
            self.spans.clear();
        }
        self.rows += other.rows;
        self.data_bytes = self.data_bytes.saturating_add(other.data_bytes);
        self
    }
}

/// The rows of one batch, checked against a [`Format`] and brought to the stored types.
#[derive(Clone, Debug)]
pub struct Rows {
    pub(super) columns: Vec<ArrayRef>,
    pub(super) row_count: usize,
    /// Mean bytes of the nested values of a row.
    pub(super) stream_row_bytes: usize,
}

impl Rows {
    /// The number of rows.
    pub fn row_count(&self) -> usize {
        self.row_count
    }

    /// The number of the first row, where the format has them.
    pub(crate) fn first_number(&self) -> Option<u64> {
        self.columns
            .last()?
            .as_primitive_opt::<UInt64Type>()?
            .values()
            .first()
            .copied()
    }

    /// The number of the last row, where the format has them.
    pub(crate) fn last_number(&self) -> Option<u64> {
        self.columns
            .last()?
            .as_primitive_opt::<UInt64Type>()?
            .values()
            .last()
            .copied()
    }

    /// Some consecutive rows, sharing the memory.
    pub fn slice(&self, from: usize, row_count: usize) -> Rows {
        if from == 0 && row_count == self.row_count {
            return self.clone();
        }
        let columns = &self.columns;
        Rows {
            columns: columns.iter().map(|c| c.slice(from, row_count)).collect(),
            row_count,
            stream_row_bytes: self.stream_row_bytes,
        }
    }
}

/// What the pages of one schema have in common.
#[derive(Debug)]
pub struct Format {
    pub(super) schema: SchemaRef,
    pub(super) kinds: Vec<Kind>,
    pub(super) rows_max: usize,
    pub(super) merges: bool,
    pub(super) has_row_numbers: bool,
    /// Whether pages have integers that are narrower than their types, and codes of texts.
    narrows: bool,
}

impl Format {
    /// The format of pages whose rows have ascending numbers in a last column of their own, behind
    /// those of the schema.
    pub(crate) fn with_row_numbers(schema: &SchemaRef) -> Self {
        let mut fields: Vec<Arc<Field>> = schema.fields().iter().cloned().collect();
        fields.push(Arc::new(Field::new(ROW_NUMBER, DataType::UInt64, false)));
        Self {
            has_row_numbers: true,
            ..Self::new(Arc::new(Schema::new(fields)))
        }
    }

    /// Whether the last column numbers the rows.
    pub(crate) fn has_row_numbers(&self) -> bool {
        self.has_row_numbers
    }

    /// The format of pages that hold rows of this schema.
    pub fn new(schema: SchemaRef) -> Self {
        let kinds: Vec<Kind> = schema
            .fields()
            .iter()
            .map(|f| Kind::of(f.data_type()))
            .collect();
        let keys = schema
            .fields()
            .iter()
            .map(|f| dictionary_rows_max(f.data_type()));
        let rows_max = keys.fold(ROWS_MAX, usize::min);
        let mut columns = kinds.iter().zip(schema.fields());
        let merges =
            columns.all(|(kind, field)| *kind != Kind::Stream || merges(field.data_type()));
        Self {
            schema,
            kinds,
            rows_max,
            merges,
            has_row_numbers: false,
            narrows: false,
        }
    }

    /// The format of pages whose integers are as narrow as they can be, and whose texts are codes
    /// where they repeat: fewer bytes, and a copy where they are read.
    pub(crate) fn narrow(self) -> Self {
        Self {
            narrows: true,
            ..self
        }
    }

    /// Whether texts of a column that repeat are codes: they become views of one text, which have
    /// no other type.
    pub(super) fn codes(&self, column: usize) -> bool {
        let data_type = self.schema.field(column).data_type();
        matches!(data_type, DataType::Utf8View | DataType::BinaryView)
    }

    /// Whether pages have integers that are narrower than their types, and codes of texts.
    pub(crate) fn narrows(&self) -> bool {
        self.narrows
    }

    /// Whether that many rows, which take so many bytes in pages now, and so many with numbers as
    /// wide as their types and all their texts, may share a page of at most `limit_bytes`.
    pub(crate) fn takes(
        &self,
        row_count: usize,
        (bytes, wide_bytes): (usize, usize),
        limit_bytes: usize,
    ) -> bool {
        row_count <= self.rows_max
            && bytes <= limit_bytes
            && wide_bytes <= Self::wide_max(limit_bytes)
    }

    /// The most that rows of a page of some bytes take with numbers as wide as their types and all
    /// their texts.
    pub(crate) fn wide_max(page_bytes: usize) -> usize {
        WIDENED_MAX * page_bytes
    }

    /// Whether rows of several batches may share a page.
    pub(crate) fn merges(&self) -> bool {
        self.merges
    }

    /// Whether pages become one by copying bytes.
    pub(crate) fn joins(&self) -> bool {
        !self.kinds.contains(&Kind::Stream)
    }

    /// The schema of the batches that are read.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The schema of the batches that are read with a projection.
    ///
    /// # Panics
    /// If a column does not exist.
    pub fn projected_schema(&self, projection: Option<&[usize]>) -> SchemaRef {
        let Some(columns) = projection else {
            return Arc::clone(&self.schema);
        };
        let fields = self.schema.fields();
        let fields: Vec<Arc<Field>> = columns.iter().map(|&c| Arc::clone(&fields[c])).collect();
        Arc::new(Schema::new_with_metadata(
            fields,
            self.schema.metadata().clone(),
        ))
    }

    /// Checks the columns of a batch against the schema and unpacks dictionaries.
    ///
    /// A text column takes any of Arrow's text types, a binary column any binary type, and each of
    /// them a dictionary of it; other types must be equal. Names and metadata are not compared.
    ///
    /// # Errors
    /// [`Error::ColumnCount`], [`Error::TypeMismatch`], [`Error::NullValue`].
    pub fn admit(&self, batch: &[ArrayRef], row_count: usize) -> Result<Rows> {
        if batch.len() != self.kinds.len() {
            // Nobody outside knows of the column of row numbers.
            let hidden = usize::from(self.has_row_numbers);
            return Err(Error::ColumnCount {
                expected: self.kinds.len() - hidden,
                found: batch.len().saturating_sub(hidden),
            });
        }
        let mut columns = Vec::with_capacity(self.kinds.len());
        let mut stream_bytes = 0;
        let fields = self.schema.fields();
        for ((field, kind), column) in fields.iter().zip(&self.kinds).zip(batch) {
            let column = unpack(field, *kind, column)?;
            if !field.is_nullable() && column.logical_null_count() > 0 {
                return Err(Error::NullValue {
                    column: field.name().clone(),
                });
            }
            if *kind == Kind::Stream {
                stream_bytes += own_bytes(column.as_ref());
            }
            columns.push(column);
        }
        Ok(Rows {
            columns,
            row_count,
            stream_row_bytes: stream_bytes.div_ceil(row_count.max(1)),
        })
    }

    /// An upper bound of the page bytes that rows of this size take, exact but for nested columns.
    pub fn page_bytes(&self, size: &Size) -> usize {
        self.bytes_with(size.rows, size.data_bytes, &size.spans)
    }

    /// About the page bytes that rows of this size take, of whose texts that share is left.
    pub(crate) fn expected_bytes(&self, size: &Size, texts: TextShare) -> usize {
        self.expected_with(size.rows, size.data_bytes, &size.spans, texts)
    }

    fn expected_with(
        &self,
        rows: usize,
        data_bytes: usize,
        spans: &[Span],
        texts: TextShare,
    ) -> usize {
        let columns = self.kinds.iter();
        let ends = columns.filter(|kind| matches!(kind, Kind::Bytes | Kind::Text));
        let ends: usize = ends.map(|kind| kind.values_bytes(rows, Form::Plain)).sum();
        let plain_bytes = ends.saturating_add(data_bytes);
        let others = self
            .bytes_with(rows, data_bytes, spans)
            .saturating_sub(plain_bytes);
        others.saturating_add(texts.of(plain_bytes))
    }

    /// The same with numbers as wide as their types: what the rows take on the heap.
    pub(crate) fn wide_bytes(&self, size: &Size) -> usize {
        self.bytes_with(size.rows, size.data_bytes, &[])
    }

    fn bytes_with(&self, rows: usize, data_bytes: usize, spans: &[Span]) -> usize {
        let mut bytes = align(HEADER_BYTES + ENTRY_BYTES * self.kinds.len());
        let columns = self.kinds.iter().zip(self.schema.fields());
        for (column, (kind, field)) in columns.enumerate() {
            if kind.holds_nulls() && field.is_nullable() {
                bytes += align(rows.div_ceil(8));
            }
            let form = spans.get(column).map(|span| kind.narrow(*span));
            bytes += align(kind.values_bytes(rows, form.unwrap_or(Form::Plain)));
            if matches!(kind, Kind::Bytes | Kind::Text | Kind::Stream) {
                bytes += ALIGNMENT;
            }
        }
        bytes.saturating_add(data_bytes)
    }

    /// The page that rows like these fill, of at most `limit_bytes`: the next smaller class where
    /// the rows that may share a page would leave half of it free.
    pub(crate) fn filled_bytes(&self, size: &Size, limit_bytes: usize, texts: TextShare) -> usize {
        let mut filled = limit_bytes;
        while size.rows > 0 && filled > PageClass::K4.bytes() {
            let most = Self::wide_max(filled) * size.rows / self.wide_bytes(size).max(1);
            let most = most.min(self.rows_max);
            let data_bytes = size.data_bytes.saturating_mul(most) / size.rows;
            if self.expected_with(most, data_bytes, &size.spans, texts) > filled / 2 {
                break;
            }
            filled /= CLASS_STEP;
        }
        filled
    }

    /// An upper bound of the page bytes that columns of the types of the schema take, whether those
    /// are all columns or the first; about right for nested ones.
    pub(crate) fn bytes_of(&self, columns: &[ArrayRef], row_count: usize) -> usize {
        let mut data_bytes = 0;
        for (kind, column) in self.kinds.iter().zip(columns) {
            data_bytes += match kind {
                Kind::Bytes | Kind::Text
                    if !matches!(column.data_type(), DataType::Dictionary(_, _)) =>
                {
                    value_bytes(column.as_ref(), 0, row_count).sum()
                }
                Kind::Bytes | Kind::Text | Kind::Stream => column.get_array_memory_size(),
                Kind::Null | Kind::Boolean | Kind::Fixed { .. } => 0,
            };
        }
        self.bytes_with(row_count, data_bytes, &[])
    }

    /// The size of some consecutive rows.
    pub fn size(&self, rows: &Rows, from: usize, row_count: usize) -> Size {
        let mut data_bytes = rows.stream_row_bytes.saturating_mul(row_count);
        for (kind, column) in self.kinds.iter().zip(&rows.columns) {
            if matches!(kind, Kind::Bytes | Kind::Text) {
                data_bytes += value_bytes(column.as_ref(), from, row_count).sum();
            }
        }
        Size {
            rows: row_count,
            data_bytes,
            spans: match self.narrows {
                true => self.spans(rows, from, row_count),
                false => Vec::new(),
            },
        }
    }

    fn spans(&self, rows: &Rows, from: usize, row_count: usize) -> Vec<Span> {
        let columns = self.kinds.iter().zip(&rows.columns);
        let spans = columns.map(|(kind, column)| kind.span(column.as_ref(), from, row_count));
        spans.collect()
    }

    /// How many rows from `from` on fit into a page beside rows of size `held`, and their size, if
    /// that share of their texts is left.
    pub(crate) fn fit(
        &self,
        rows: &Rows,
        from: usize,
        held: &Size,
        (limit_bytes, texts): (usize, TextShare),
    ) -> (usize, Size) {
        let left = (rows.row_count - from).min(self.rows_max.saturating_sub(held.rows));
        let mut taken = Size::default();
        // With those that are held.
        let mut all = held.clone();
        let mut limit_bytes = limit_bytes;
        // Sizes are walks over the values: those of a page are looked at twice or so, not those of
        // the whole batch.
        let (mut step, mut grows) = (FIT_STEP_ROWS.min(left), true);
        while step > 0 {
            // The check without more data first: it needs no walk.
            let bare = self.expected_with(all.rows + step, all.data_bytes, &all.spans, texts);
            let more = (bare <= limit_bytes || all.rows == 0)
                .then(|| self.size(rows, from + taken.rows, step));
            let sum = more.map(|more| (all.clone().plus(&more), more));
            if taken.rows == 0
                && let Some((sum, _)) = &sum
            {
                limit_bytes = self.filled_bytes(sum, limit_bytes, texts);
            }
            let fits = |sum: &Size| {
                self.expected_bytes(sum, texts) <= limit_bytes
                    && self.wide_bytes(sum) <= Self::wide_max(limit_bytes)
            };
            match sum.filter(|(sum, _)| fits(sum)) {
                Some((sum, more)) => {
                    all = sum;
                    taken = taken.plus(&more);
                    step = if grows { 2 * step } else { step / 2 };
                }
                None => {
                    grows = false;
                    step /= 2;
                }
            }
            step = step.min(left - taken.rows);
        }
        (taken.rows, taken)
    }
}

/// The rows that a page may have so that the keys of a dictionary column can count them.
fn dictionary_rows_max(data_type: &DataType) -> usize {
    match data_type {
        DataType::Dictionary(keys, _) => match **keys {
            DataType::Int8 => i8::MAX as usize,
            DataType::UInt8 => u8::MAX as usize,
            _ => ROWS_MAX,
        },
        _ => ROWS_MAX,
    }
}

/// Whether nested arrays of a type can be joined whatever they hold: the dictionaries within them
/// could together have more values than short keys can count.
fn merges(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(keys, values) => {
            let wide = matches!(
                **keys,
                DataType::Int32 | DataType::Int64 | DataType::UInt32 | DataType::UInt64
            );
            wide && merges(values)
        }
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => merges(item.data_type()),
        DataType::Struct(fields) => fields.iter().all(|field| merges(field.data_type())),
        DataType::Union(fields, _) => fields.iter().all(|(_, field)| merges(field.data_type())),
        DataType::RunEndEncoded(_, values) => merges(values.data_type()),
        _ => true,
    }
}

/// A column of a batch as a column of the stored type.
fn unpack(field: &Field, kind: Kind, column: &ArrayRef) -> Result<ArrayRef> {
    let declared = field.data_type();
    let found = column.data_type();
    let (stored, plain) = match (kind, declared, found) {
        (Kind::Stream, _, _) => (declared, found),
        (_, DataType::Dictionary(_, stored), DataType::Dictionary(_, plain)) => {
            (&**stored, &**plain)
        }
        (_, DataType::Dictionary(_, stored), plain) => (&**stored, plain),
        (_, stored, DataType::Dictionary(_, plain)) => (stored, &**plain),
        (_, stored, plain) => (stored, plain),
    };
    let fits = match kind {
        Kind::Bytes | Kind::Text => Kind::of(plain) == kind,
        _ => stored == plain,
    };
    if !fits {
        return Err(Error::TypeMismatch {
            column: field.name().clone(),
            expected: declared.clone(),
            found: found.clone(),
        });
    }
    match column.as_any_dictionary_opt() {
        Some(dictionary) if kind != Kind::Stream => {
            Ok(take(dictionary.values(), dictionary.keys(), None)?)
        }
        _ => Ok(Arc::clone(column)),
    }
}
