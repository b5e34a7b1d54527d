//! The frame of each row: which rows of its partition a function looks at.
//!
//! Owns: [`FrameSpec`], what a frame is, and [`Frame`], which finds its two ends for one row after
//! the other. Never: goes back: both ends only grow within a partition, and so do the positions
//! that are searched, so a row costs a constant number of steps however long its frame is.
//!
//! Ends of peers are found in a column of flags, which tells where keys change; the ends of a RANGE
//! with a distance by comparing keys with the key of the row, moved by the distance.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, DynComparator, make_comparator, new_null_array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::kernels::numeric::{add, sub};
use arrow::compute::{SortOptions, can_cast_types, cast};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{WindowFrame, WindowFrameBound, WindowFrameUnits};

use super::rows::{Cursor, PartitionRows, Rows};

/// Rows with equal partition keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Partition {
    /// How many partitions came before.
    pub ordinal: u64,
    pub start: u64,
    /// `None` while rows may follow.
    pub end: Option<u64>,
}

/// What functions see of the rows.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub rows: &'a PartitionRows,
    /// The rows around those that are answered.
    pub current: &'a Rows,
    /// For each order, where the last peers begin that have arrived.
    pub last_peers: &'a [u64],
}

impl View<'_> {
    /// The position behind the rows of a partition that have arrived.
    pub(super) fn end_of(&self, partition: &Partition) -> u64 {
        partition.end.unwrap_or(self.rows.end())
    }

    /// Whether keys change at a position of the current rows.
    pub(super) fn is_first_peer(&self, order: &Order, position: u64) -> bool {
        let batch = &self.current.batch;
        let first_flag = batch.num_columns() - self.last_peers.len();
        let flags = batch.column(first_flag + order.number).as_boolean();
        flags.value((position - self.current.first) as usize)
    }
}

/// An order that makes peers: its place among those of the operator. The flags that tell where its
/// peers begin are a column; those of all orders are the last columns of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub number: usize,
}

/// The key of an order that has one.
#[derive(Clone, Debug)]
pub(super) struct RangeKey {
    pub column: usize,
    pub data_type: DataType,
    pub options: SortOptions,
}

/// What a frame is.
#[derive(Clone, Debug)]
pub(super) struct FrameSpec {
    start: BoundSpec,
    end: BoundSpec,
}

#[derive(Clone, Debug)]
enum BoundSpec {
    Unbounded,
    /// So many rows behind the current one.
    Rows(i64),
    Peers(Order),
    Range(Distance),
}

#[derive(Clone, Debug)]
struct Distance {
    order: Order,
    key: RangeKey,
    distance: ScalarValue,
    is_preceding: bool,
    /// The type of a key that was moved.
    moved_type: DataType,
}

impl FrameSpec {
    /// The frame over rows of an order, with its key if it has just one; `None` for frames that
    /// DataFusion keeps: GROUPS with a distance, and distances that cannot be added to the key.
    pub(super) fn new(
        frame: &WindowFrame,
        order: Order,
        key: Option<&RangeKey>,
        has_order: bool,
    ) -> Option<Self> {
        let bound = |bound: &WindowFrameBound| -> Option<BoundSpec> {
            let (distance, is_preceding) = match bound {
                WindowFrameBound::Preceding(distance) => (distance, true),
                WindowFrameBound::Following(distance) => (distance, false),
                WindowFrameBound::CurrentRow => {
                    return Some(match frame.units {
                        WindowFrameUnits::Rows => BoundSpec::Rows(0),
                        _ if has_order => BoundSpec::Peers(order),
                        _ => BoundSpec::Unbounded,
                    });
                }
            };
            if distance.is_null() {
                return Some(BoundSpec::Unbounded);
            }
            match (frame.units, distance) {
                (WindowFrameUnits::Rows, ScalarValue::UInt64(Some(rows))) => {
                    let rows = i64::try_from(*rows).unwrap_or(i64::MAX);
                    Some(BoundSpec::Rows(if is_preceding { -rows } else { rows }))
                }
                (WindowFrameUnits::Range, _) => {
                    let key = key?.clone();
                    let moved = moved(
                        &new_null_array(&key.data_type, 1),
                        distance,
                        is_preceding == key.options.descending,
                    );
                    let moved_type = moved.ok()?.data_type().clone();
                    can_cast_types(&key.data_type, &moved_type).then_some(())?;
                    Some(BoundSpec::Range(Distance {
                        order,
                        key,
                        distance: distance.clone(),
                        is_preceding,
                        moved_type,
                    }))
                }
                _ => None,
            }
        };
        Some(Self {
            start: bound(&frame.start_bound)?,
            end: bound(&frame.end_bound)?,
        })
    }

    /// Whether all rows of a partition have the same frame, which is all of them.
    pub(super) fn is_whole(&self) -> bool {
        self.starts_with_partition() && self.ends_with_partition()
    }

    pub(super) fn starts_with_partition(&self) -> bool {
        matches!(self.start, BoundSpec::Unbounded)
    }

    pub(super) fn ends_with_partition(&self) -> bool {
        matches!(self.end, BoundSpec::Unbounded)
    }

    /// Whether the current row is always in its frame.
    pub(super) fn has_current_row(&self) -> bool {
        let reaches = |bound: &BoundSpec, is_start: bool| match bound {
            BoundSpec::Unbounded | BoundSpec::Peers(_) => true,
            BoundSpec::Rows(rows) => match is_start {
                true => *rows <= 0,
                false => *rows >= 0,
            },
            BoundSpec::Range(distance) => distance.is_preceding == is_start,
        };
        reaches(&self.start, true) && reaches(&self.end, false)
    }
}

/// Keys moved by a distance.
fn moved(keys: &dyn Array, distance: &ScalarValue, is_added: bool) -> Result<ArrayRef> {
    let distance = distance.to_scalar()?;
    let keys: &dyn arrow::array::Datum = &keys;
    Ok(match is_added {
        true => add(keys, &distance)?,
        false => sub(keys, &distance)?,
    })
}

/// Finds the frames of rows.
#[derive(Debug)]
pub(super) struct Frame {
    start: Bound,
    end: Bound,
}

#[derive(Debug)]
enum Bound {
    Unbounded,
    Rows(i64),
    Peers(Peers),
    Range(Box<Search>),
}

impl Bound {
    fn new(spec: &BoundSpec, first_flag: usize) -> Bound {
        match spec {
            BoundSpec::Unbounded => Bound::Unbounded,
            BoundSpec::Rows(rows) => Bound::Rows(*rows),
            BoundSpec::Peers(order) => Bound::Peers(Peers::new(*order, first_flag)),
            BoundSpec::Range(distance) => Bound::Range(Box::new(Search::new(distance.clone()))),
        }
    }

    fn needs_from(&self) -> u64 {
        match self {
            Bound::Range(search) => search.at,
            _ => u64::MAX,
        }
    }

    fn finish(&mut self, end: u64) {
        if let Bound::Range(search) = self {
            search.at = end;
        }
    }

    fn rest(&mut self) {
        match self {
            Bound::Range(search) => search.rest(),
            Bound::Peers(peers) => peers.rest(),
            Bound::Unbounded | Bound::Rows(_) => {}
        }
    }
}

impl Frame {
    pub(super) fn new(spec: &FrameSpec, first_flag: usize) -> Self {
        Self {
            start: Bound::new(&spec.start, first_flag),
            end: Bound::new(&spec.end, first_flag),
        }
    }

    /// Up to which of some rows of a partition that goes on their frames are known to end.
    pub(super) fn ready(
        &mut self,
        view: View<'_>,
        partition: &Partition,
        wanted: &Range<u64>,
    ) -> Result<u64> {
        if partition.end.is_some() {
            return Ok(wanted.end);
        }
        let known = match &mut self.end {
            Bound::Unbounded => wanted.start,
            Bound::Rows(rows) => view
                .rows
                .end()
                .saturating_sub((*rows).max(0).unsigned_abs()),
            Bound::Peers(peers) => view.last_peers[peers.order.number],
            Bound::Range(search) if search.spec.is_preceding => {
                view.last_peers[search.spec.order.number]
            }
            Bound::Range(search) => search.ready(view, wanted)?,
        };
        Ok(known.clamp(wanted.start, wanted.end))
    }

    /// The frame of a row. Rows are asked for one after the other.
    pub(super) fn of(
        &mut self,
        view: View<'_>,
        partition: &Partition,
        position: u64,
    ) -> Result<Range<u64>> {
        let limit = view.end_of(partition);
        let shifted = |rows: i64| {
            let shifted = position.saturating_add_signed(rows);
            shifted.clamp(partition.start, limit)
        };
        let start = match &mut self.start {
            Bound::Unbounded => partition.start,
            Bound::Rows(rows) => shifted(*rows),
            Bound::Peers(peers) => peers.begin(view, partition, position),
            Bound::Range(search) => search.find(view, partition, position, true)?,
        };
        let end = match &mut self.end {
            Bound::Unbounded => limit,
            Bound::Rows(rows) => {
                let behind = position.saturating_add_signed(*rows).saturating_add(1);
                let is_before = rows.unsigned_abs() > position && *rows < 0;
                match is_before {
                    true => partition.start,
                    false => behind.clamp(partition.start, limit),
                }
            }
            Bound::Peers(peers) => peers.end(view.rows, position, limit)?,
            Bound::Range(search) => search.find(view, partition, position, false)?,
        };
        Ok(start.min(end)..end)
    }

    /// A position that the frame of a row reaches at least, told without a search.
    pub(super) fn reaches(&self, view: View<'_>, partition: &Partition, position: u64) -> u64 {
        let limit = view.end_of(partition);
        match &self.end {
            Bound::Unbounded => limit,
            Bound::Rows(rows) if *rows > 0 => position
                .saturating_add_signed(*rows)
                .saturating_add(1)
                .min(limit),
            _ => partition.start,
        }
    }

    /// The first position that is read again.
    pub(super) fn needs_from(&self) -> u64 {
        self.start.needs_from().min(self.end.needs_from())
    }

    /// Ends a partition.
    pub(super) fn finish(&mut self, end: u64) {
        self.start.finish(end);
        self.end.finish(end);
    }

    /// Lets pages go.
    pub(super) fn rest(&mut self) {
        self.start.rest();
        self.end.rest();
    }
}

/// Where the peers of a row begin and end.
#[derive(Debug)]
pub(super) struct Peers {
    order: Order,
    flags: Cursor,
    begin: u64,
    end: u64,
}

impl Peers {
    /// Of an order; `first_flag` is the column of the flags of the first one.
    pub(super) fn new(order: Order, first_flag: usize) -> Self {
        Self {
            order,
            flags: Cursor::of_column(first_flag + order.number),
            begin: 0,
            end: 0,
        }
    }

    /// Where the peers of a row begin; rows are asked for one after the other.
    pub(super) fn begin(&mut self, view: View<'_>, partition: &Partition, position: u64) -> u64 {
        if position == partition.start || view.is_first_peer(&self.order, position) {
            self.begin = position;
        }
        self.begin
    }

    /// Where they end, at the latest at `limit`.
    pub(super) fn end(&mut self, rows: &PartitionRows, position: u64, limit: u64) -> Result<u64> {
        if position < self.end {
            return Ok(self.end);
        }
        let mut at = position + 1;
        while at < limit {
            let loaded = self.flags.seek(rows, at)?;
            let part = loaded.part(&(at..limit));
            let flags = loaded.arrays[0].as_boolean().values();
            match flags.slice(part.start, part.len()).set_indices().next() {
                Some(row) => {
                    at += row as u64;
                    break;
                }
                None => at += part.len() as u64,
            }
        }
        self.end = at.min(limit);
        Ok(self.end)
    }

    pub(super) fn rest(&mut self) {
        self.flags.rest();
    }
}

/// The search for the end of a frame by the distance of keys.
struct Search {
    spec: Distance,
    /// Rows before it are before the end that is searched for.
    at: u64,
    keys: Cursor,
    newest: Cursor,
    targets: Option<Targets>,
    compare: Option<Compare>,
}

/// The keys of the current rows, moved.
struct Targets {
    first: u64,
    values: ArrayRef,
    /// Rows whose key cannot be moved so far: the frame goes to the end of the partition.
    edges: Option<BooleanBuffer>,
}

/// Compares keys with targets, by their rows.
struct Compare {
    /// The position of the first target.
    targets: u64,
    /// The positions of the keys.
    keys: Range<u64>,
    compare: DynComparator,
}

impl std::fmt::Debug for Search {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Search")
            .field("spec", &self.spec)
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

impl Search {
    fn new(spec: Distance) -> Self {
        Self {
            at: 0,
            keys: Cursor::of_column(spec.key.column),
            newest: Cursor::of_column(spec.key.column),
            targets: None,
            compare: None,
            spec,
        }
    }

    fn rest(&mut self) {
        self.keys.rest();
        self.newest.rest();
        // A comparison holds the keys that it compares.
        self.compare = None;
    }

    /// Moves the keys of the current rows.
    fn aim(&mut self, current: &Rows) -> Result<()> {
        let is_there = |targets: &Targets| {
            targets.first == current.first && targets.values.len() == current.batch.num_rows()
        };
        if self.targets.as_ref().is_some_and(is_there) {
            return Ok(());
        }
        let keys = current.batch.column(self.spec.key.column);
        let is_added = self.spec.is_preceding == self.spec.key.options.descending;
        let (values, edges) = match moved(keys, &self.spec.distance, is_added) {
            Ok(values) => (values, None),
            Err(_) => moved_one_by_one(keys, &self.spec, is_added)?,
        };
        self.compare = None;
        self.targets = Some(Targets {
            first: current.first,
            values,
            edges,
        });
        Ok(())
    }

    fn is_edge(&self, position: u64) -> bool {
        let targets = self.targets.as_ref();
        let is_set = |targets: &Targets| {
            let edges = targets.edges.as_ref()?;
            Some(edges.value((position - targets.first) as usize))
        };
        targets.and_then(is_set).unwrap_or(false)
    }

    /// The rows whose frames end before the last row that has arrived.
    fn ready(&mut self, view: View<'_>, wanted: &Range<u64>) -> Result<u64> {
        self.aim(view.current)?;
        let newest = view.rows.end() - 1;
        let loaded = self.newest.seek(view.rows, newest)?;
        let keys = widened(&loaded.arrays[0], &self.spec.moved_type)?;
        let row = loaded.row(newest);
        let Some(targets) = &self.targets else {
            return Ok(wanted.start);
        };
        let compare = make_comparator(&targets.values, &keys, self.spec.key.options)?;
        let is_ready = |position: &u64| {
            !self.is_edge(*position) && compare((*position - targets.first) as usize, row).is_lt()
        };
        let ready = wanted.clone().take_while(is_ready).count();
        self.newest.rest();
        Ok(wanted.start + ready as u64)
    }

    /// The first row of the frame of a row, or the first one behind it.
    fn find(
        &mut self,
        view: View<'_>,
        partition: &Partition,
        position: u64,
        is_start: bool,
    ) -> Result<u64> {
        self.aim(view.current)?;
        self.at = self.at.max(partition.start);
        let limit = view.end_of(partition);
        if self.is_edge(position) {
            if !self.spec.is_preceding {
                self.at = limit;
            }
            return Ok(self.at);
        }
        while self.at < limit {
            let loaded = self.keys.seek(view.rows, self.at)?;
            let (positions, part) = (loaded.positions(), loaded.part(&(self.at..limit)));
            let targets = self.targets.as_ref().expect("it was made above");
            let is_there =
                |compare: &Compare| compare.targets == targets.first && compare.keys == positions;
            if !self.compare.as_ref().is_some_and(is_there) {
                let keys = widened(&loaded.arrays[0], &self.spec.moved_type)?;
                let options = self.spec.key.options;
                self.compare = Some(Compare {
                    targets: targets.first,
                    keys: positions,
                    compare: make_comparator(&keys, &targets.values, options)?,
                });
            }
            let compare = &self.compare.as_ref().expect("it was made above").compare;
            let target = (position - targets.first) as usize;
            for row in part {
                let order = compare(row, target);
                if order.is_gt() || (is_start && order.is_eq()) {
                    return Ok(self.at);
                }
                self.at += 1;
            }
        }
        Ok(self.at)
    }
}

/// Keys in the type of those that were moved.
fn widened(keys: &ArrayRef, moved_type: &DataType) -> Result<ArrayRef> {
    Ok(match keys.data_type() == moved_type {
        true => Arc::clone(keys),
        false => cast(keys, moved_type)?,
    })
}

/// Keys moved where some cannot be: unsigned ones stop at zero, others have the end of the
/// partition in their place.
fn moved_one_by_one(
    keys: &ArrayRef,
    spec: &Distance,
    is_added: bool,
) -> Result<(ArrayRef, Option<BooleanBuffer>)> {
    let null = ScalarValue::try_from(&spec.moved_type)?;
    let mut values = Vec::with_capacity(keys.len());
    let mut edges = Vec::with_capacity(keys.len());
    for row in 0..keys.len() {
        let key = ScalarValue::try_from_array(keys, row)?;
        let moved = match () {
            () if key.is_null() => Ok(null.clone()),
            () if is_added => key.add_checked(&spec.distance),
            () if key.is_unsigned() && key < spec.distance => key.sub(&key),
            () => key.sub_checked(&spec.distance),
        };
        edges.push(moved.is_err());
        values.push(moved.unwrap_or_else(|_| null.clone()));
    }
    Ok((
        ScalarValue::iter_to_array(values)?,
        Some(edges.into_iter().collect()),
    ))
}
