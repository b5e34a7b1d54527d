//! Aggregates without an inline state: DataFusion's accumulators, one partition at a time.
//!
//! The arguments of every row wait in their partition's pages; a partition is then read page by
//! page, its groups are numbered, and each function's vectorised accumulator is fed. Only one
//! partition's states are in memory.
//!
//! ```text
//!  page of rows -> numbers of groups -+------------------------------> functions over rows
//!                                     +-> values that are new to it -> DISTINCT functions
//!                                         in memory, or in a DistinctSet
//! ```
//!
//! Where a partition does not fit there are two ways out. Groups that are many are split by the
//! next hash bits. Groups that are few, with many distinct values each, would stay together: their
//! values go through a set that spills, and only numbers and states stay in memory.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, UInt32Array, new_empty_array,
};
use datafusion::arrow::datatypes::{DataType, SchemaRef, UInt32Type};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::GroupsAccumulatorAdapter;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use mayfly_space::{Account, AccountOptions, Error as SpaceError, Reservation};
use mayfly_table::rows::{
    GroupKeys, GroupNumbering, GroupOptions, GroupReader, KeptBatch, KeptRows, KeyColumn, Level,
};

use super::distinct::{DistinctSet, DistinctWorker};
use super::functions::{Functions, Source, Tuple, select};
use super::recent::Recent;
use crate::batches::batch_of;
use crate::error::{find_space_error, rows_error, space_error};
use crate::time_slice::TimeSlice;

/// Groups up to which distinct values go through a set that spills, rather than the groups being
/// split: numbers and states of so many take a small part of the smallest budget.
const FEW_GROUPS: usize = 256;

/// What all readers together may claim is this part of the budget: less than the aggregate may, so
/// that pages can be read while they work.
const READERS_SHARE: (u64, u64) = (5, 8);
/// The set of distinct values takes at most this part of what its reader may claim.
const DISTINCT_SHARE: u64 = 2;

/// Reads the parts of a set that kept its rows.
pub(super) struct KeptReader {
    groups: GroupReader,
    functions: Functions,
    key_columns: Vec<KeyColumn>,
    account: Account,
    /// The most bytes that the account may claim.
    claim_max_bytes: u64,
    batch_rows: usize,
    emitting: Option<Emitting>,
    slice: TimeSlice,
}

/// A part whose results are on their way out.
struct Emitting {
    keys: GroupKeys,
    results: Vec<ArrayRef>,
    emitted: usize,
    _memory: Reservation,
}

/// A part in which one group was met before memory ended is split until it has this many bits in
/// common: others may come behind it, and the memory may have been another's for a moment.
const ONE_GROUP_LEVEL_BITS: u32 = 24;

/// Whether a part could be aggregated in the memory there is.
enum Attempt {
    Done(Emitting),
    Short {
        /// Groups that were met so far; `None` where not one could be.
        groups: Option<usize>,
    },
}

impl KeptReader {
    /// A reader of which there are `readers`; each has an account of its own below `account`, so
    /// that none takes the memory that another needs to go on.
    pub(super) fn new(
        groups: GroupReader,
        functions: Functions,
        key_columns: Vec<KeyColumn>,
        account: &Account,
        readers: usize,
        batch_rows: usize,
    ) -> KeptReader {
        let (part, whole) = READERS_SHARE;
        let claim_max_bytes = account.space().memory_bytes() / whole * part / readers.max(1) as u64;
        let options = AccountOptions {
            claim_max_bytes: Some(claim_max_bytes),
            ..AccountOptions::default()
        };
        KeptReader {
            groups,
            functions,
            key_columns,
            account: account.child("groups", options),
            claim_max_bytes,
            batch_rows,
            emitting: None,
            slice: TimeSlice::begin(),
        }
    }

    /// The next result rows; `None` at the end.
    pub(super) async fn next_batch(&mut self, schema: &SchemaRef) -> Result<Option<RecordBatch>> {
        loop {
            self.slice.share().await;
            if let Some(emitting) = &mut self.emitting {
                match emitting.next_batch(schema, self.batch_rows)? {
                    Some(batch) => return Ok(Some(batch)),
                    None => self.emitting = None,
                }
            }
            while self.groups.settle_next().map_err(rows_error)? {
                self.slice.share().await;
            }
            let Some(part) = self.groups.next_kept_rows().map_err(rows_error)? else {
                return Ok(None);
            };
            match self.aggregate_part(&part).await? {
                Attempt::Done(emitting) => self.emitting = Some(emitting),
                // Not a single page could be read: the error of the split says so.
                Attempt::Short { groups }
                    if groups != Some(1) || part.level().bits() < ONE_GROUP_LEVEL_BITS =>
                {
                    let parts = part.split().map_err(rows_error)?;
                    self.groups.give_back(parts);
                }
                Attempt::Short { .. } => return Err(space_error(self.one_group_too_large())),
            }
        }
    }

    fn one_group_too_large(&self) -> SpaceError {
        let limit_bytes = self.account.space().memory_bytes();
        SpaceError::BudgetExceeded {
            asked_bytes: limit_bytes,
            available_bytes: 0,
            limit_bytes,
        }
    }

    async fn aggregate_part(&self, part: &KeptRows) -> Result<Attempt> {
        let Some(seen) = Seen::in_memory(&self.functions, &self.account)? else {
            return Ok(Attempt::Short { groups: None });
        };
        let in_memory = self.aggregate(part, seen).await?;
        let Attempt::Short { groups } = in_memory else {
            return Ok(in_memory);
        };
        let few = groups.is_none_or(|groups| groups <= FEW_GROUPS);
        if !few || self.functions.tuples.is_empty() {
            return Ok(in_memory);
        }
        match self.spilling_set()? {
            Some(set) => {
                let worker = set.worker(0)?;
                let seen = Seen::Spilling { set, worker };
                self.aggregate(part, seen).await
            }
            None => Ok(in_memory),
        }
    }

    /// A set for the distinct values of one part; `None` where not even its least is there.
    fn spilling_set(&self) -> Result<Option<DistinctSet>> {
        let claim_max_bytes = self.claim_max_bytes / DISTINCT_SHARE;
        let options = AccountOptions {
            claim_max_bytes: Some(claim_max_bytes),
            ..AccountOptions::default()
        };
        let account = self.account.child("distinct values", options);
        let page_class = account.space().default_page_class();
        let options = GroupOptions::for_budget(claim_max_bytes, page_class, 1);
        let stop = self.groups.stop_flag();
        match DistinctSet::new(&self.functions, &account, options, stop) {
            Ok(set) => Ok(Some(set)),
            Err(error) if is_short(&error) => Ok(None),
            Err(error) => Err(space_error(error)),
        }
    }

    async fn aggregate(&self, part: &KeptRows, seen: Seen) -> Result<Attempt> {
        let page_class = self.account.space().default_page_class();
        let numbering =
            GroupNumbering::new(&self.key_columns, &self.account, page_class, part.level());
        let Some(mut numbering) = numbering.map_err(rows_error)? else {
            return Ok(Attempt::Short { groups: None });
        };
        let mut states = States::new(&self.functions, &self.account)?;
        let fed = self.feed(part, seen, &mut numbering, &mut states);
        if !or_short(fed.await)? {
            let groups = Some(numbering.groups()).filter(|groups| *groups > 0);
            return Ok(Attempt::Short { groups });
        }
        Ok(Attempt::Done(Emitting {
            keys: numbering.into_keys(),
            results: states.evaluate()?,
            emitted: 0,
            _memory: states.memory,
        }))
    }

    /// Feeds all rows of a part; false where memory is short. Between two pages it can be stopped.
    async fn feed(
        &self,
        part: &KeptRows,
        mut seen: Seen,
        numbering: &mut GroupNumbering,
        states: &mut States,
    ) -> Result<bool> {
        let functions = &self.functions;
        let mut slice = TimeSlice::begin();
        for page in 0..part.page_count() {
            let Some(batch) = part.read_page(page, numbering).map_err(rows_error)? else {
                return Ok(false);
            };
            let groups = numbering.groups();
            states.update_rows(functions, &batch, groups)?;
            if !seen.take(functions, &batch, groups, states)? {
                return Ok(false);
            }
            states.account_for()?;
            slice.share().await;
        }
        let Seen::Spilling { set, worker } = seen else {
            return Ok(true);
        };
        worker.finish()?;
        let groups = numbering.groups();
        for (number, tuple) in functions.tuples.iter().enumerate() {
            // Also a function that nothing reaches must know how many groups there are.
            let types = functions.types_of(tuple);
            let nothing: Vec<ArrayRef> = types.iter().map(new_empty_array).collect();
            states.update_distinct(functions, number, &nothing, &[], groups)?;
        }
        let mut reader = set.reader();
        while let Some(batches) = reader.next(self.batch_rows).await? {
            for batch in batches {
                let (tuple, rows) = (batch.tuple, &batch.groups);
                states.update_distinct(functions, tuple, &batch.values, rows, groups)?;
            }
            states.account_for()?;
        }
        Ok(true)
    }
}

/// Whether an error says that the memory of this moment is too little.
fn is_short(error: &SpaceError) -> bool {
    matches!(
        error,
        SpaceError::BudgetExceeded { .. } | SpaceError::MinimumNotMet { .. }
    )
}

/// Turns "memory is short" into false; every other failure stays one.
fn or_short(result: Result<bool>) -> Result<bool> {
    match result {
        Err(error) if find_space_error(&error).is_some_and(|found| is_short(&found)) => Ok(false),
        result => result,
    }
}

/// The states of all functions for the groups of one part.
struct States {
    accumulators: Vec<Box<dyn GroupsAccumulator>>,
    memory: Reservation,
}

impl States {
    fn new(functions: &Functions, account: &Account) -> Result<States> {
        let accumulators = functions.list.iter();
        Ok(States {
            accumulators: accumulators
                .map(|function| new_accumulator(&function.aggregate))
                .collect::<Result<_>>()?,
            memory: account.reserve(0).map_err(space_error)?,
        })
    }

    /// Feeds the functions over rows.
    fn update_rows(
        &mut self,
        functions: &Functions,
        batch: &KeptBatch,
        groups: usize,
    ) -> Result<()> {
        let mut indices: Vec<usize> = Vec::new();
        for (function, accumulator) in functions.list.iter().zip(&mut self.accumulators) {
            let Source::Rows(tuple) = &function.source else {
                continue;
            };
            if indices.is_empty() {
                indices.extend(batch.numbers.iter().map(|number| *number as usize));
            }
            let values = tuple.values(&batch.payload, indices.len())?;
            let condition = tuple.condition(&batch.payload);
            accumulator.update_batch(&values, &indices, condition, groups)?;
        }
        Ok(())
    }

    /// Feeds the functions over the distinct values of a tuple.
    fn update_distinct(
        &mut self,
        functions: &Functions,
        tuple: usize,
        values: &[ArrayRef],
        indices: &[usize],
        groups: usize,
    ) -> Result<()> {
        // Without a filter, accumulators take it that every group up to `groups` had a row by now.
        let all = BooleanArray::from(vec![true; indices.len()]);
        for (function, accumulator) in functions.list.iter().zip(&mut self.accumulators) {
            if matches!(function.source, Source::Distinct(source) if source == tuple) {
                accumulator.update_batch(values, indices, Some(&all), groups)?;
            }
        }
        Ok(())
    }

    /// Charges what the states have grown to.
    fn account_for(&mut self) -> Result<()> {
        let bytes: usize = self.accumulators.iter().map(|a| a.size()).sum();
        self.memory.try_resize(bytes as u64).map_err(space_error)
    }

    fn evaluate(&mut self) -> Result<Vec<ArrayRef>> {
        self.accumulators
            .iter_mut()
            .map(|accumulator| accumulator.evaluate(EmitTo::All))
            .collect()
    }
}

fn new_accumulator(aggregate: &Arc<AggregateFunctionExpr>) -> Result<Box<dyn GroupsAccumulator>> {
    if aggregate.groups_accumulator_supported() {
        return aggregate.create_groups_accumulator();
    }
    let aggregate = Arc::clone(aggregate);
    Ok(Box::new(GroupsAccumulatorAdapter::new(move || {
        aggregate.create_accumulator()
    })))
}

/// The (group, value) pairs that went by, for DISTINCT.
enum Seen {
    /// One numbering for each tuple: what is new goes on at once.
    InMemory(Vec<(GroupNumbering, Option<Recent>)>),
    /// A set that is read when all rows are in.
    Spilling {
        set: DistinctSet,
        worker: DistinctWorker,
    },
}

impl Seen {
    /// Empty numberings; `None` where memory is short.
    fn in_memory(functions: &Functions, account: &Account) -> Result<Option<Seen>> {
        let page_class = account.space().default_page_class();
        let mut numberings = Vec::with_capacity(functions.tuples.len());
        for tuple in &functions.tuples {
            let mut types = functions.types_of(tuple);
            let recent = Recent::new(&types, account)?;
            types.insert(0, DataType::UInt32);
            let columns: Vec<KeyColumn> = types.into_iter().map(KeyColumn::nullable).collect();
            match GroupNumbering::new(&columns, account, page_class, Level::default())
                .map_err(rows_error)?
            {
                Some(numbering) => numberings.push((numbering, recent)),
                None => return Ok(None),
            }
        }
        Ok(Some(Seen::InMemory(numberings)))
    }

    /// Takes the values of one page; false where memory is short, or for too many groups.
    fn take(
        &mut self,
        functions: &Functions,
        batch: &KeptBatch,
        groups: usize,
        states: &mut States,
    ) -> Result<bool> {
        match self {
            Seen::Spilling { worker, .. } => {
                if groups > worker.groups_max() {
                    return Ok(false);
                }
                let (numbers, columns) = (&batch.numbers, &batch.payload);
                worker.push(functions, columns, numbers.len(), Some(numbers))?;
            }
            Seen::InMemory(numberings) => {
                for (number, (seen, recent)) in numberings.iter_mut().enumerate() {
                    let tuple = &functions.tuples[number];
                    let found = new_values(seen, recent.as_mut(), tuple, batch)?;
                    let Some((indices, values)) = found else {
                        return Ok(false);
                    };
                    states.update_distinct(functions, number, &values, &indices, groups)?;
                }
            }
        }
        Ok(true)
    }
}

/// The groups and values of a page that were not seen before; `None` where memory is short.
fn new_values(
    seen: &mut GroupNumbering,
    recent: Option<&mut Recent>,
    tuple: &Tuple,
    batch: &KeptBatch,
) -> Result<Option<(Vec<usize>, Vec<ArrayRef>)>> {
    let mut columns: Vec<ArrayRef> = vec![Arc::new(UInt32Array::from(batch.numbers.clone()))];
    columns.extend(tuple.values(&batch.payload, batch.numbers.len())?);
    if let Some(condition) = tuple.condition(&batch.payload) {
        select(&mut columns, condition)?;
    }
    if let Some(recent) = recent {
        recent.drop_repeats(&mut columns)?;
    }
    let rows = columns[0].len();
    let mut next = seen.groups() as u32;
    let mut pairs = Vec::with_capacity(rows);
    let assigned = seen.assign(rows, &columns, &mut pairs);
    if !assigned.map_err(rows_error)? {
        return Ok(None);
    }
    let is_new = |pair: &u32| {
        let new = *pair == next;
        next += u32::from(new);
        Some(new)
    };
    let new: BooleanArray = pairs.iter().map(is_new).collect();
    select(&mut columns, &new)?;
    let numbers = columns.remove(0);
    let numbers = numbers.as_primitive::<UInt32Type>().values();
    let indices = numbers.iter().map(|number| *number as usize).collect();
    Ok(Some((indices, columns)))
}

impl Emitting {
    fn next_batch(&mut self, schema: &SchemaRef, rows_max: usize) -> Result<Option<RecordBatch>> {
        let Some(groups) = self.keys.next_batch(rows_max).map_err(rows_error)? else {
            return Ok(None);
        };
        let mut columns = groups.key;
        for result in &self.results {
            columns.push(result.slice(self.emitted, groups.rows));
        }
        self.emitted += groups.rows;
        batch_of(schema, columns, groups.rows).map(Some)
    }
}
