//! The distinct values of aggregates, in a table that spills.
//!
//! Owns [`DistinctSet`]: one [`GroupSet`] for the DISTINCT functions of an aggregate all together.
//! Never: knows a function; whoever reads it feeds the values on.
//!
//! ```text
//!  COUNT(DISTINCT a), SUM(DISTINCT b), COUNT(DISTINCT c)     a, b: BIGINT    c: TEXT
//!
//!  key     | owner | BIGINT | TEXT |      owner = group * tuples + tuple
//!          |   0   |   a    | NULL |
//!          |   1   |   b    | NULL |
//!          |   2   |  NULL  |  c   |
//! ```
//!
//! One set and not one for each function, since each set needs memory that it cannot give up, and
//! a statement may have dozens of functions. Values of equal type share a column of the key, so a
//! row is hardly wider than in a set of its own.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, UInt32Array};
use datafusion::arrow::array::{new_null_array, types::UInt32Type};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use mayfly_space::{Account, Error as SpaceError};
use mayfly_table::rows::{
    GroupInput, GroupOptions, GroupReader, GroupSet, GroupWorker, KeyColumn, RowLayout, StopFlag,
};

use super::functions::{Functions, select};
use super::recent::Recent;
use crate::error::rows_error;
use crate::tasks::next_groups;
use crate::time_slice::TimeSlice;

/// Tables in front of the set that each thread has at most: further tuples share them. The memory
/// of so many is less than what the set needs later to split a partition.
const WORKERS_MAX: usize = 4;

/// The least pages of such a table.
const FRONT_PAGES_MIN: usize = 2;

/// The distinct values of all tuples of [`Functions`].
pub(super) struct DistinctSet {
    set: Arc<GroupSet>,
    account: Account,
    shape: Arc<Shape>,
}

/// Where values lie in the key.
struct Shape {
    /// For each tuple the columns of its values.
    places: Vec<Vec<usize>>,
    /// The types of all columns; the owner is the first.
    types: Vec<DataType>,
}

impl Shape {
    fn new(functions: &Functions) -> Shape {
        let mut types = vec![DataType::UInt32];
        let mut places = Vec::with_capacity(functions.tuples.len());
        for tuple in &functions.tuples {
            let mut own: Vec<usize> = Vec::new();
            for data_type in functions.types_of(tuple) {
                let free = |place: &usize| types[*place] == data_type && !own.contains(place);
                let place = (1..types.len()).find(free).unwrap_or_else(|| {
                    types.push(data_type.clone());
                    types.len() - 1
                });
                own.push(place);
            }
            places.push(own);
        }
        Shape { places, types }
    }

    /// The number of groups whose owners can be counted.
    fn groups_max(&self) -> usize {
        u32::MAX as usize / self.places.len().max(1)
    }
}

impl DistinctSet {
    /// An empty set for the DISTINCT functions.
    ///
    /// # Errors
    /// `MinimumNotMet` where the budget cannot hold what the options need.
    pub(super) fn new(
        functions: &Functions,
        account: &Account,
        options: GroupOptions,
        stop: &StopFlag,
    ) -> std::result::Result<DistinctSet, SpaceError> {
        let shape = Arc::new(Shape::new(functions));
        let columns: Vec<KeyColumn> = shape
            .types
            .iter()
            .cloned()
            .map(KeyColumn::nullable)
            .collect();
        let layout = RowLayout::new(&columns, &[], &[]);
        let layout = layout.expect("the planner checked that a row can hold the columns");
        let tables = functions.tuples.len().clamp(1, WORKERS_MAX);
        let options = GroupOptions {
            front_groups: options.front_groups / tables,
            front_groups_max: options.front_groups_max / tables,
            front_numbers_max: options.front_numbers_max / tables,
            front_pages: (options.front_pages / tables).max(FRONT_PAGES_MIN),
            ..options
        };
        let set = GroupSet::stoppable(layout, account, options, stop.clone())?;
        Ok(DistinctSet {
            set,
            account: account.clone(),
            shape,
        })
    }

    /// The table itself, which makes room for the states of the same operator.
    pub(super) fn table(&self) -> &Arc<GroupSet> {
        &self.set
    }

    /// One that fills the set.
    pub(super) fn worker(&self, number: usize) -> Result<DistinctWorker> {
        let workers = self.shape.places.len().min(WORKERS_MAX);
        let recent = self.shape.places.iter().map(|places| {
            let types: Vec<DataType> = places
                .iter()
                .map(|place| self.shape.types[*place].clone())
                .collect();
            Recent::new(&types, &self.account)
        });
        Ok(DistinctWorker {
            recent: recent.collect::<Result<_>>()?,
            workers: (0..workers).map(|_| self.set.worker(number)).collect(),
            shape: Arc::clone(&self.shape),
        })
    }

    /// One that reads the set when every worker has finished.
    pub(super) fn reader(&self) -> DistinctReader {
        DistinctReader {
            reader: GroupReader::new(Arc::clone(&self.set)),
            slice: TimeSlice::begin(),
            shape: Arc::clone(&self.shape),
        }
    }
}

/// One thread's way into a [`DistinctSet`].
pub(super) struct DistinctWorker {
    /// What went by a moment ago, for each tuple.
    recent: Vec<Option<Recent>>,
    /// Each has a small table in front that takes repeating values; those of a tuple that repeats
    /// must not be pushed out by those of one that does not.
    workers: Vec<GroupWorker>,
    shape: Arc<Shape>,
}

impl DistinctWorker {
    /// The most groups that it can tell apart.
    pub(super) fn groups_max(&self) -> usize {
        self.shape.groups_max()
    }

    /// Takes the columns of one batch in; `groups` are the group numbers of its rows, all 0 where
    /// there are none.
    pub(super) fn push(
        &mut self,
        functions: &Functions,
        columns: &[ArrayRef],
        rows: usize,
        groups: Option<&[u32]>,
    ) -> Result<()> {
        let count = functions.tuples.len() as u32;
        for (number, tuple) in functions.tuples.iter().enumerate() {
            let owner = |group: u32| group * count + number as u32;
            let owners: UInt32Array = match groups {
                Some(groups) => groups.iter().map(|group| owner(*group)).collect(),
                None => UInt32Array::from_value(owner(0), rows),
            };
            let mut own: Vec<ArrayRef> = vec![Arc::new(owners)];
            own.extend(tuple.values(columns, rows)?);
            if let Some(condition) = tuple.condition(columns) {
                select(&mut own, condition)?;
            }
            if let Some(recent) = &mut self.recent[number] {
                recent.drop_repeats(&mut own)?;
            }
            self.push_tuple(number, own)?;
        }
        Ok(())
    }

    /// Takes the rows of one tuple in: their owners and their values.
    fn push_tuple(&mut self, tuple: usize, columns: Vec<ArrayRef>) -> Result<()> {
        let rows = columns[0].len();
        if rows == 0 {
            return Ok(());
        }
        let mut key: Vec<Option<ArrayRef>> = vec![None; self.shape.types.len()];
        let places = &self.shape.places[tuple];
        for (place, column) in std::iter::once(&0).chain(places).zip(columns) {
            key[*place] = Some(column);
        }
        let types = self.shape.types.iter();
        let key: Vec<ArrayRef> = key
            .into_iter()
            .zip(types)
            .map(|(column, data_type)| column.unwrap_or_else(|| new_null_array(data_type, rows)))
            .collect();
        let input = GroupInput {
            rows,
            key: &key,
            payload: &[],
            states: &[],
        };
        let worker = tuple % self.workers.len();
        self.workers[worker].push(&input).map_err(rows_error)
    }

    /// Ends this worker's input.
    pub(super) fn finish(self) -> Result<()> {
        for worker in self.workers {
            worker.finish().map_err(rows_error)?;
        }
        Ok(())
    }
}

/// Distinct values of one tuple.
pub(super) struct DistinctBatch {
    pub(super) tuple: usize,
    /// The group of each row.
    pub(super) groups: Vec<usize>,
    pub(super) values: Vec<ArrayRef>,
}

/// One thread's way out of a [`DistinctSet`].
pub(super) struct DistinctReader {
    reader: GroupReader,
    slice: TimeSlice,
    shape: Arc<Shape>,
}

impl DistinctReader {
    /// The next values, at most `rows_max`, each of them for the first and last time; `None` at the
    /// end.
    pub(super) async fn next(&mut self, rows_max: usize) -> Result<Option<Vec<DistinctBatch>>> {
        let found = next_groups(&mut self.reader, rows_max, &mut self.slice).await?;
        let Some(found) = found else {
            return Ok(None);
        };
        let owners = found.key[0].as_primitive::<UInt32Type>().values();
        let count = self.shape.places.len() as u32;
        let mut batches = Vec::with_capacity(self.shape.places.len());
        for (tuple, places) in self.shape.places.iter().enumerate() {
            let is_own = |owner: &u32| *owner % count == tuple as u32;
            let own: BooleanArray = owners.iter().map(|owner| Some(is_own(owner))).collect();
            if !own.has_true() {
                continue;
            }
            let mut values: Vec<ArrayRef> = places
                .iter()
                .map(|place| Arc::clone(&found.key[*place]))
                .collect();
            select(&mut values, &own)?;
            let groups = owners
                .iter()
                .filter(|owner| is_own(owner))
                .map(|owner| (*owner / count) as usize)
                .collect();
            batches.push(DistinctBatch {
                tuple,
                groups,
                values,
            });
        }
        Ok(Some(batches))
    }
}
