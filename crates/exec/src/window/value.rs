//! LAG, LEAD, FIRST_VALUE, LAST_VALUE and NTH_VALUE: the value of another row of the partition.
//!
//! The places that a function looks at only grow, so one cursor follows them. What a frame that
//! begins with its partition looks at stays the same: that value is kept, so that the rows need not
//! be.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::{concat, interleave, take};
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::common::{Result, ScalarValue};

use super::frame::{Frame, FrameSpec, Partition, View};
use super::function::{Function, Ready, Span};
use super::rows::{Cursor, PartitionRows, Source};
use super::spec::ValuePlace;
use crate::batches::batch_of;
use crate::compact::detach;

/// Chunks of rows that values are gathered from at a time: each of them may be a pinned page.
const CHUNKS_MAX: usize = 4;

pub(super) struct ValueFunction {
    place: Place,
    gather: Gather,
    /// No row before this one is looked at again.
    lowest: u64,
}

enum Place {
    Shifted(i64),
    Framed {
        frame: Box<Frame>,
        spec: Box<FrameSpec>,
        from: From,
        /// The value of the partition that goes on, once it cannot change any more.
        fixed: Option<ArrayRef>,
    },
    Nowhere,
}

/// From where rows of a frame are counted.
#[derive(Clone, Copy)]
enum From {
    Start(u64),
    End(u64),
}

impl ValueFunction {
    pub(super) fn new(
        value: Source,
        field: &FieldRef,
        place: ValuePlace,
        first_flag: usize,
    ) -> Result<Self> {
        let null = ScalarValue::try_from(field.data_type())?;
        let framed = |spec: FrameSpec, from: From| Place::Framed {
            frame: Box::new(Frame::new(&spec, first_flag)),
            spec: Box::new(spec),
            from,
            fixed: None,
        };
        let (place, default) = match place {
            ValuePlace::Shifted { rows, default } => (Place::Shifted(rows), default),
            ValuePlace::FromStart { rows, frame } => (framed(frame, From::Start(rows)), null),
            ValuePlace::FromEnd { rows, frame } => (framed(frame, From::End(rows)), null),
            ValuePlace::Nowhere => (Place::Nowhere, null),
        };
        Ok(Self {
            place,
            gather: Gather::new(value, field, &default)?,
            lowest: 0,
        })
    }

    /// The place that a row looks at, and whether it is there.
    fn look(
        place: &mut Place,
        view: View<'_>,
        partition: &Partition,
        position: u64,
    ) -> Result<(u64, bool)> {
        let end = view.end_of(partition);
        Ok(match place {
            Place::Nowhere => (position, false),
            Place::Shifted(rows) => match position.checked_add_signed(*rows) {
                Some(at) => (
                    at.clamp(partition.start, end),
                    (partition.start..end).contains(&at),
                ),
                None => (partition.start, false),
            },
            Place::Framed {
                frame, spec, from, ..
            } => match from {
                // Neither end of the frame has to be looked for.
                From::Start(0) if spec.starts_with_partition() && spec.has_current_row() => {
                    (partition.start, true)
                }
                From::Start(rows) => {
                    let Range { start, end } = frame.of(view, partition, position)?;
                    let at = start.saturating_add(*rows);
                    (at.min(end), at < end)
                }
                From::End(rows) => {
                    let Range { start, end } = frame.of(view, partition, position)?;
                    let at = end.checked_sub(rows.saturating_add(1));
                    let at = at.filter(|at| *at >= start);
                    (at.unwrap_or(start), at.is_some())
                }
            },
        })
    }

    /// Keeps the value of a partition that goes on if it stays the same for all rows to come.
    fn fix(&mut self, view: View<'_>, span: &Span) -> Result<()> {
        let Place::Framed {
            spec, from, fixed, ..
        } = &mut self.place
        else {
            return Ok(());
        };
        let From::Start(rows) = *from else {
            return Ok(());
        };
        if !spec.starts_with_partition() || fixed.is_some() {
            return Ok(());
        }
        let at = span.partition.start.saturating_add(rows);
        if at < span.rows.end {
            *fixed = Some(self.gather.copy(view.rows, at)?);
        }
        Ok(())
    }
}

impl Function for ValueFunction {
    fn ready(&mut self, view: View<'_>, span: &Span) -> Result<Ready> {
        if span.partition.end.is_some() {
            return Ok(Ready::To(span.rows.end));
        }
        let known = match &mut self.place {
            Place::Nowhere => span.rows.end,
            Place::Shifted(rows) => {
                let ahead = (*rows).max(0).unsigned_abs();
                view.rows.end().saturating_sub(ahead)
            }
            Place::Framed {
                frame, spec, from, ..
            } => match from {
                From::Start(0) if spec.starts_with_partition() && spec.has_current_row() => {
                    span.rows.end
                }
                _ => frame.ready(view, &span.partition, &span.rows)?,
            },
        };
        Ok(Ready::To(known.clamp(span.rows.start, span.rows.end)))
    }

    fn evaluate(&mut self, view: View<'_>, spans: &[Span]) -> Result<ArrayRef> {
        for span in spans {
            for position in span.rows.clone() {
                let (at, is_there) = Self::look(&mut self.place, view, &span.partition, position)?;
                self.lowest = at;
                match &self.place {
                    _ if !is_there => self.gather.push_default(),
                    Place::Framed {
                        fixed: Some(fixed), ..
                    } => self.gather.push_value(fixed)?,
                    _ => self.gather.push(view.rows, at)?,
                }
            }
            match span.ends_partition() {
                true => self.finish(span.rows.end),
                false => self.fix(view, span)?,
            }
        }
        if let Place::Framed { frame, .. } = &mut self.place {
            frame.rest();
        }
        self.gather.finish()
    }

    fn finish(&mut self, end: u64) {
        self.lowest = end;
        if let Place::Framed { frame, fixed, .. } = &mut self.place {
            frame.finish(end);
            *fixed = None;
        }
    }

    fn needs_from(&self) -> u64 {
        match &self.place {
            Place::Nowhere => u64::MAX,
            Place::Shifted(_) => self.lowest,
            Place::Framed {
                frame,
                spec,
                from: From::Start(_),
                ..
            } if spec.starts_with_partition() => frame.needs_from(),
            Place::Framed { frame, .. } => self.lowest.min(frame.needs_from()),
        }
    }
}

/// Gathers values of rows into a column.
struct Gather {
    cursor: Cursor,
    schema: SchemaRef,
    /// The default, then the columns that values are taken from.
    chunks: Vec<ArrayRef>,
    /// The positions of the last chunk, if it is one.
    last: Option<Range<u64>>,
    has_pages: bool,
    picks: Vec<(usize, usize)>,
    done: Vec<ArrayRef>,
}

impl Gather {
    fn new(value: Source, field: &FieldRef, default: &ScalarValue) -> Result<Self> {
        let field = field.as_ref().clone().with_nullable(true);
        Ok(Self {
            cursor: Cursor::new(vec![value]),
            schema: Arc::new(Schema::new(vec![field])),
            chunks: vec![default.to_array_of_size(1)?],
            last: None,
            has_pages: false,
            picks: Vec::new(),
            done: Vec::new(),
        })
    }

    fn push_default(&mut self) {
        self.picks.push((0, 0));
    }

    /// Adds the only value of a column.
    fn push_value(&mut self, value: &ArrayRef) -> Result<()> {
        if self.last.is_some() || !Arc::ptr_eq(&self.chunks[self.chunks.len() - 1], value) {
            self.add_chunk(Arc::clone(value), None)?;
        }
        self.picks.push((self.chunks.len() - 1, 0));
        Ok(())
    }

    /// Adds the value of a row.
    fn push(&mut self, rows: &PartitionRows, position: u64) -> Result<()> {
        let loaded = self.cursor.seek(rows, position)?;
        let (positions, row) = (loaded.positions(), loaded.row(position));
        if self.last.as_ref() != Some(&positions) {
            let values = Arc::clone(&loaded.arrays[0]);
            self.has_pages |= loaded.is_page;
            self.add_chunk(values, Some(positions))?;
        }
        self.picks.push((self.chunks.len() - 1, row));
        Ok(())
    }

    fn add_chunk(&mut self, values: ArrayRef, positions: Option<Range<u64>>) -> Result<()> {
        if self.chunks.len() > CHUNKS_MAX {
            self.take()?;
        }
        self.chunks.push(values);
        self.last = positions;
        Ok(())
    }

    /// Copies what was picked.
    fn take(&mut self) -> Result<()> {
        let chunks: Vec<_> = self.chunks.iter().map(AsRef::as_ref).collect();
        let taken = interleave(&chunks, &self.picks)?;
        let taken = match self.has_pages {
            true => self.detached(taken)?,
            false => taken,
        };
        self.done.push(taken);
        self.picks.clear();
        self.chunks.truncate(1);
        self.last = None;
        self.has_pages = false;
        Ok(())
    }

    /// Values that point to no page.
    fn detached(&self, values: ArrayRef) -> Result<ArrayRef> {
        let rows = values.len();
        let batch: RecordBatch = detach(batch_of(&self.schema, vec![values], rows)?)?;
        Ok(Arc::clone(batch.column(0)))
    }

    /// A copy of the value of a row.
    fn copy(&mut self, rows: &PartitionRows, position: u64) -> Result<ArrayRef> {
        let loaded = self.cursor.seek(rows, position)?;
        let place = UInt32Array::from_iter_values([loaded.row(position) as u32]);
        let value = take(&loaded.arrays[0], &place, None)?;
        self.detached(value)
    }

    /// The column.
    fn finish(&mut self) -> Result<ArrayRef> {
        if !self.picks.is_empty() {
            self.take()?;
        }
        self.cursor.rest();
        let done = std::mem::take(&mut self.done);
        match &*done {
            [only] => Ok(Arc::clone(only)),
            _ => {
                let done: Vec<_> = done.iter().map(AsRef::as_ref).collect();
                Ok(concat(&done)?)
            }
        }
    }
}
