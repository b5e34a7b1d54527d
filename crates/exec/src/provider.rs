//! A table of the temp space as a table of a plan.
//!
//! Owns: [`TableSource`], and whether a key finds the rows that are asked for. Never: scans; see
//! `table_scan`.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use mayfly_space::Reservation;
use mayfly_table::{ByKey, Change, Search, Table, TableSnapshot};

use crate::batches::batch_of;
use crate::by_key::{self, Choice, Found, FoundRows, KEY_SCAN_ROW_BYTES, KeyScan, reserved};
use crate::error::table_error;
use crate::reads::{Searched, TableReads};
use crate::scan_columns::ScanColumns;
use crate::short_plan::Size;
use crate::source::Source;
use crate::table_scan::TableScan;

/// A `TableProvider` over a table of the temp space.
#[derive(Clone)]
pub struct TableSource {
    table: Arc<Table>,
    schema: SchemaRef,
    /// The rows that are to be read; those at the time of planning without one.
    snapshot: Option<Arc<TableSnapshot>>,
}

impl TableSource {
    /// The provider of a table.
    pub fn new(table: Arc<Table>) -> Self {
        Self {
            schema: Arc::clone(table.schema()),
            table,
            snapshot: None,
        }
    }

    /// The provider of the rows of a snapshot.
    pub(crate) fn of_snapshot(table: Arc<Table>, snapshot: Arc<TableSnapshot>) -> Self {
        Self {
            snapshot: Some(snapshot),
            ..Self::new(table)
        }
    }

    /// The provider of the rows that a change sees, with their ids in a last column of this name.
    pub fn with_row_ids(change: &Change, name: &str) -> Self {
        let table = Arc::clone(change.table());
        let mut fields: Vec<FieldRef> = table.schema().fields().iter().cloned().collect();
        fields.push(Arc::new(Field::new(name, DataType::UInt64, false)));
        Self {
            schema: Arc::new(Schema::new(fields)),
            table,
            snapshot: Some(Arc::new(change.snapshot().clone())),
        }
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }
}

impl TableSource {
    /// Reads the rows that some conditions ask for, off a key or in a few partitions; the
    /// conditions are checked above.
    pub(crate) fn scan_now(
        &self,
        partitions_max: usize,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns = self.columns(projection)?;
        Ok(match self.by_key(&columns, filters)? {
            Some(by_key) => {
                let rows = by_key.rows.narrowed_by(filters);
                let scan = KeyScan::new(by_key.found, rows, by_key.searched);
                Arc::new(scan.holding(by_key.reservation))
            }
            None => {
                let source = self.source(columns, filters.to_vec());
                Arc::new(TableScan::new(source, limit, partitions_max))
            }
        })
    }

    /// Finds them, if they are few: `None` if they are more than `most`.
    ///
    /// # Errors
    /// If a page or an index cannot be read.
    pub(crate) fn rows_now(
        &self,
        columns: &ScanColumns,
        filters: &[Expr],
        limit: Option<usize>,
        most: Size,
    ) -> Result<Option<RowsNow>> {
        let is_much = |rows: usize| {
            let rows = rows as u64;
            rows > most.rows || bytes_of(&self.table, rows) > most.bytes_read
        };
        let Some(by_key) = self.by_key(columns, filters)? else {
            let source = self.source(columns.clone(), Vec::new());
            let batches = 0..source.batches_within(limit);
            let is_few = !is_much(source.row_count(batches.clone()));
            return Ok(is_few.then(|| RowsNow::of_batches(source, batches)));
        };
        if is_much(by_key.rows.count()) {
            return Ok(None);
        }
        let rows = by_key.rows.read()?;
        let count = rows.num_rows();
        Ok(Some(RowsNow {
            bytes_read: bytes_of(&self.table, count as u64),
            schema: Arc::clone(&columns.schema),
            parts: Parts::Found(Some(rows)),
            reads: by_key.searched.reads(count),
            is_by_key: true,
        }))
    }

    /// What is shown of the rows.
    pub(crate) fn columns(&self, projection: Option<&Vec<usize>>) -> Result<ScanColumns> {
        let width = self.table.schema().fields().len();
        ScanColumns::new(&self.schema, width, projection)
    }

    /// All rows, with conditions that may narrow a search.
    pub(crate) fn source(&self, columns: ScanColumns, filters: Vec<Expr>) -> Source {
        let snapshot = self.snapshot.clone();
        Source {
            table: Arc::clone(&self.table),
            columns,
            snapshot: snapshot.unwrap_or_else(|| Arc::new(self.table.snapshot())),
            filters,
            found: None,
        }
    }

    /// The rows that a key finds; `None` if no key finds few.
    fn by_key(&self, columns: &ScanColumns, filters: &[Expr]) -> Result<Option<FoundByKey>> {
        // The keys hold the rows as they are now.
        let covered = |key| {
            let columns = columns.projection.as_ref();
            let columns = columns.filter(|_| self.snapshot.is_none());
            columns.is_some_and(|columns| self.table.covers(key, columns))
        };
        match by_key::choose(&self.table, filters, covered)? {
            Some(choice) => self.found(&choice, columns),
            None => Ok(None),
        }
    }

    /// What a search finds; `None` if it is more than was thought.
    fn found(&self, choice: &Choice, columns: &ScanColumns) -> Result<Option<FoundByKey>> {
        let limit = usize::try_from(choice.rows.saturating_mul(2).saturating_add(64));
        let limit = limit.unwrap_or(usize::MAX);
        let found = Found {
            table: Arc::clone(&self.table),
            key: choice.key,
            parts: choice.parts,
            access: choice.access,
            is_covered: choice.is_covered,
        };
        if choice.is_covered {
            return self.covered(choice, found, columns, limit);
        }
        let Some((snapshot, numbers)) = self.searched(&choice.searches, limit)? else {
            return Ok(None);
        };
        // Where the numbers and ids of the rows find no room, the table is scanned.
        let bytes = numbers.len() as u64 * KEY_SCAN_ROW_BYTES;
        let Some(reservation) = reserved(snapshot.account(), bytes) else {
            return Ok(None);
        };
        let ids = snapshot.locate(numbers).map_err(table_error)?;
        let source = Source {
            table: Arc::clone(&self.table),
            columns: columns.clone(),
            snapshot,
            filters: Vec::new(),
            found: Some(ids.len()),
        };
        Ok(Some(FoundByKey {
            found,
            rows: FoundRows::by_ids(source, ids),
            searched: Searched::of(&self.table, &choice.searches),
            reservation,
        }))
    }

    /// The numbers of the rows that searches find, and the snapshot that has them; `None` if they
    /// are more than `limit`, or the keys are those of other rows by now.
    fn searched(
        &self,
        searches: &[Search],
        limit: usize,
    ) -> Result<Option<(Arc<TableSnapshot>, Vec<u64>)>> {
        let Some(seen) = &self.snapshot else {
            let found = self.table.search(searches, limit).map_err(table_error)?;
            return Ok(found.map(|(now, numbers)| (Arc::new(now), numbers)));
        };
        let found = self.table.search_seen(seen, searches, limit);
        Ok(match found.map_err(table_error)? {
            ByKey::Found(numbers) => Some((Arc::clone(seen), numbers)),
            ByKey::TooMany | ByKey::Changed => None,
        })
    }

    /// The rows that a key finds and holds.
    fn covered(
        &self,
        choice: &Choice,
        found: Found,
        columns: &ScanColumns,
        limit: usize,
    ) -> Result<Option<FoundByKey>> {
        let places = columns.projection.as_deref().unwrap_or_default();
        let entry_bytes = self.table.index_bytes() / self.table.row_count().max(1);
        let row_bytes = entry_bytes + KEY_SCAN_ROW_BYTES * places.len() as u64;
        let bytes = choice.rows.saturating_mul(row_bytes);
        let Some(reservation) = reserved(self.table.account(), bytes) else {
            return Ok(None);
        };
        let values = self.table.search_values(&choice.searches, places, limit);
        let Some((values, count)) = values.map_err(table_error)? else {
            return Ok(None);
        };
        let rows = batch_of(&columns.schema, values, count)?;
        Ok(Some(FoundByKey {
            found,
            rows: FoundRows::Covered(rows),
            searched: Searched::of(&self.table, &choice.searches),
            reservation,
        }))
    }
}

/// About how many rows conditions find by a key, if one finds few.
///
/// # Errors
/// If an index cannot be read.
pub(crate) fn searchable_rows(source: &Source) -> Result<Option<u64>> {
    let choice = by_key::choose(&source.table, &source.filters, |_| false)?;
    Ok(choice.map(|choice| choice.rows))
}

/// What a key finds.
struct FoundByKey {
    found: Found,
    rows: FoundRows,
    searched: Searched,
    /// Memory of the rows or their ids.
    reservation: Option<Reservation>,
}

/// Rows of a table that are few.
pub(crate) struct RowsNow {
    parts: Parts,
    schema: SchemaRef,
    /// Bytes of the table that they are, about.
    pub(crate) bytes_read: u64,
    /// How they are read.
    pub(crate) reads: TableReads,
    /// Whether a key found them.
    pub(crate) is_by_key: bool,
}

enum Parts {
    /// Those that a key found.
    Found(Option<RecordBatch>),
    /// The pages that are to be read.
    Pages(Source, Range<usize>),
}

impl RowsNow {
    /// Some batches of a table, which are not read yet.
    pub(crate) fn of_batches(source: Source, batches: Range<usize>) -> RowsNow {
        let count = source.row_count(batches.clone());
        RowsNow {
            bytes_read: bytes_of(&source.table, count as u64),
            reads: TableReads::of_scan(count),
            schema: source.schema(),
            parts: Parts::Pages(source, batches),
            is_by_key: false,
        }
    }

    /// None of them, since no row is asked for.
    pub(crate) fn none(schema: SchemaRef) -> RowsNow {
        RowsNow {
            parts: Parts::Found(None),
            schema,
            bytes_read: 0,
            reads: TableReads::default(),
            is_by_key: true,
        }
    }

    /// What is shown of them.
    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// All of them in one batch.
    ///
    /// # Errors
    /// If a page cannot be read.
    pub(crate) fn read(self) -> Result<RecordBatch> {
        match self.parts {
            Parts::Found(rows) => Ok(rows.unwrap_or_else(|| RecordBatch::new_empty(self.schema))),
            Parts::Pages(source, batches) => source.batches(batches),
        }
    }

    /// Those of the next page; `None` behind the last.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn next(&mut self) -> Result<Option<RecordBatch>> {
        match &mut self.parts {
            Parts::Found(rows) => Ok(rows.take()),
            Parts::Pages(source, batches) => {
                let page = batches.next();
                page.map(|page| source.batches(page..page + 1)).transpose()
            }
        }
    }
}

/// The bytes of some rows of a table, if they are as long as the others.
pub(crate) fn bytes_of(table: &Table, rows: u64) -> u64 {
    rows.saturating_mul(table.row_bytes())
}

impl fmt::Debug for TableSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableSource")
            .field("table", &self.table.name())
            .finish()
    }
}

#[async_trait]
impl TableProvider for TableSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let supported = |filter: &&Expr| match by_key::is_searchable(&self.table, filter) {
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(supported).collect())
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let partitions_max = session.config().target_partitions();
        self.scan_now(partitions_max, projection, filters, limit)
    }
}
