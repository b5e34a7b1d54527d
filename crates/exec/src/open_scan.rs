//! Rows of a scan whose columns are read when somebody asks for them ("late materialization").
//!
//! Owns: [`OpenScan`], the pages of one partition of a scan, and [`OpenRows`], one of them. Never:
//! decides which rows are wanted; what stands above the scan does.
//!
//! A scan that hands on batches reads all columns of all rows, of which a condition or a join may
//! want one in a hundred. Numbers lie in their page as an array wants them, but each text takes a
//! view. Here the columns that decide are read first, and the others of the rows that are left.
//!
//! **Source**: Abadi, Myers, DeWitt, Madden, "Materialization Strategies in a Column-Oriented
//! DBMS", ICDE 2007.
//!
//! **Cost**: a page is pinned while its rows are looked at, as by a scan of batches.

use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::Result;
use datafusion::physical_plan::metrics::{BaselineMetrics, Time};
use mayfly_space::Admission;
use mayfly_table::{OpenBatch, Scan, TableSnapshot};

use crate::batches::batch_of;
use crate::error::table_error;
use crate::reads::TableReads;
use crate::report::Report;
use crate::selection::Selection;

/// Where one of so many rows is wanted, only those are read.
const ROWS_PER_WANTED: usize = 8;

/// The pages of one partition of a scan.
pub(crate) struct OpenScan {
    pub(crate) scan: Scan,
    pub(crate) snapshot: Arc<TableSnapshot>,
    /// The columns of the table, by their place in the scan.
    pub(crate) columns: Arc<[usize]>,
    /// Whether what is handed on is in memory of its own.
    pub(crate) copies: bool,
    pub(crate) report: Option<Arc<Report>>,
    pub(crate) baseline: BaselineMetrics,
    pub(crate) _admission: Admission,
}

impl OpenScan {
    /// The rows of the next page; `None` at the end.
    ///
    /// # Errors
    /// If the page cannot be read.
    pub(crate) fn next(&mut self) -> Option<Result<OpenRows>> {
        let elapsed = self.baseline.elapsed_compute().clone();
        let _timer = elapsed.timer();
        let (index, batch) = match self.scan.open_next()? {
            Ok(opened) => opened,
            Err(error) => return Some(Err(table_error(error))),
        };
        self.baseline.record_output(batch.row_count());
        if let Some(report) = &self.report {
            report.add_reads(TableReads::of_scan(batch.row_count()));
        }
        Some(Ok(OpenRows {
            read: vec![None; self.columns.len()],
            batch,
            index,
            columns: Arc::clone(&self.columns),
            copied_from: self.copies.then(|| Arc::clone(&self.snapshot)),
            elapsed: elapsed.clone(),
        }))
    }

    /// How long pages were read.
    pub(crate) fn elapsed(&self) -> &Time {
        self.baseline.elapsed_compute()
    }
}

/// The rows of one page. Columns are named by their places in the scan.
pub(crate) struct OpenRows {
    batch: OpenBatch,
    /// The columns that were read so far.
    read: Vec<Option<ArrayRef>>,
    index: usize,
    columns: Arc<[usize]>,
    /// Where rows in memory of their own are read from, if they are asked for.
    copied_from: Option<Arc<TableSnapshot>>,
    elapsed: Time,
}

impl OpenRows {
    /// The number of rows.
    pub(crate) fn row_count(&self) -> usize {
        self.batch.row_count()
    }

    /// Closes the open rows that do not pass a test of some columns. Where no more than one of
    /// `rows_per_open` is open, the test is of the open rows alone; else it is of all rows, and is
    /// told which of them are open.
    ///
    /// # Errors
    /// Those of the test, and if the page is corrupt.
    pub(crate) fn narrow(
        &mut self,
        open: Selection,
        rows_per_open: usize,
        (places, schema): (&[usize], &SchemaRef),
        test: impl FnOnce(&RecordBatch, Selection) -> Result<Selection>,
    ) -> Result<Selection> {
        let are_few = self.are_few(&open, rows_per_open);
        match open {
            Selection::None => Ok(Selection::None),
            Selection::Some { bits, .. } if are_few => {
                let few = self.columns_of(&bits, places, schema)?;
                Ok(Selection::of_few(bits, test(&few, Selection::All)?))
            }
            open => test(&self.columns(places, schema)?, open),
        }
    }

    /// Whether no more than one of `rows_per_open` rows is open.
    pub(crate) fn are_few(&self, open: &Selection, rows_per_open: usize) -> bool {
        open.count(self.row_count()) * rows_per_open <= self.row_count()
    }

    /// A bit for each row whose integer lies in one of some ranges, none for NULL; `None` where
    /// that is best seen by reading them.
    ///
    /// # Errors
    /// If the page is corrupt.
    pub(crate) fn within(
        &self,
        place: usize,
        ranges: &[RangeInclusive<i128>],
    ) -> Result<Option<BooleanBuffer>> {
        let _timer = self.elapsed.timer();
        let mut found = BooleanBuffer::new_unset(self.row_count());
        for range in ranges {
            let within = self.batch.rows_within(self.columns[place], range);
            let Some(within) = within.map_err(table_error)? else {
                return Ok(None);
            };
            found = &found | &within;
        }
        Ok(Some(found))
    }

    /// A bit for each row whose integer in a column passes a test, which is told its lower 64 bits
    /// with its sign; that of NULL is given. `None` where they are best read.
    ///
    /// # Errors
    /// If the page is corrupt.
    pub(crate) fn passing_by_number(
        &self,
        place: usize,
        null_passes: bool,
        test: impl Fn(i64) -> bool,
    ) -> Result<Option<BooleanBuffer>> {
        let column = self.columns[place];
        let passing = self.batch.rows_passing(column, null_passes, test);
        passing.map_err(table_error)
    }

    /// A bit for each row whose text in a column passes a test, which is asked once for each
    /// different text; `None` where the page does not tell those apart, or fewer rows are open.
    ///
    /// # Errors
    /// Those of the test, and if the page is corrupt.
    pub(crate) fn passing_by_text(
        &self,
        open: &Selection,
        place: usize,
        schema: &SchemaRef,
        test: impl FnOnce(&RecordBatch) -> Result<Selection>,
    ) -> Result<Option<BooleanBuffer>> {
        let texts = {
            let _timer = self.elapsed.timer();
            self.batch.distinct_texts(self.columns[place])
        };
        let Some(texts) = texts.map_err(table_error)? else {
            return Ok(None);
        };
        let count = texts.texts().len();
        if open.count(self.row_count()) < count {
            return Ok(None);
        }
        let passing = test(&batch_of(schema, vec![Arc::clone(texts.texts())], count)?)?;
        let rows = self.batch.rows_of_texts(&texts, &passing.bits(count));
        rows.map(Some).map_err(table_error)
    }

    /// Some columns of all rows, of a schema. They point into the page and are not to be kept.
    fn columns(&mut self, places: &[usize], schema: &SchemaRef) -> Result<RecordBatch> {
        let _timer = self.elapsed.timer();
        let columns = places.iter().map(|place| match &mut self.read[*place] {
            Some(read) => Ok(Arc::clone(read)),
            unread => {
                let column = self.batch.column(self.columns[*place]);
                Ok(Arc::clone(unread.insert(column.map_err(table_error)?)))
            }
        });
        batch_of(schema, columns.collect::<Result<_>>()?, self.row_count())
    }

    /// Some columns of the rows whose bits are set, in memory of their own.
    fn columns_of(
        &self,
        rows: &BooleanBuffer,
        places: &[usize],
        schema: &SchemaRef,
    ) -> Result<RecordBatch> {
        let _timer = self.elapsed.timer();
        let slots = self.batch.slots(rows);
        let columns = places.iter().map(|place| {
            let column = self.batch.column_of(&slots, self.columns[*place]);
            column.map_err(table_error)
        });
        batch_of(schema, columns.collect::<Result<_>>()?, slots.len())
    }

    /// Some columns of the open rows, to be handed on; `None` where no row is open.
    ///
    /// # Errors
    /// If the page is corrupt.
    pub(crate) fn open(
        &mut self,
        places: &[usize],
        schema: &SchemaRef,
        open: Selection,
    ) -> Result<Option<RecordBatch>> {
        let are_few = self.are_few(&open, ROWS_PER_WANTED);
        Ok(match open {
            Selection::None => None,
            Selection::All => Some(self.kept(places, schema)?),
            Selection::Some { bits, .. } if are_few => {
                Some(self.columns_of(&bits, places, schema)?)
            }
            Selection::Some { bits, .. } => {
                let rows = self.kept(places, schema)?;
                Some(filter_record_batch(&rows, &BooleanArray::new(bits, None))?)
            }
        })
    }

    /// Some columns of all rows, which may be kept for long where the scan copies.
    fn kept(&mut self, places: &[usize], schema: &SchemaRef) -> Result<RecordBatch> {
        let Some(snapshot) = &self.copied_from else {
            return self.columns(places, schema);
        };
        let _timer = self.elapsed.timer();
        let columns: Vec<usize> = places.iter().map(|place| self.columns[*place]).collect();
        let copied = snapshot.read_copied(self.index, Some(&columns));
        copied.map_err(table_error)
    }
}

/// Whether reading a column costs something for each row.
pub(crate) fn is_costly_to_read(data_type: &DataType) -> bool {
    data_type.primitive_width().is_none() && *data_type != DataType::Boolean
}
