//! The rows of a scan that pass a condition, and tests of joins above it.
//!
//! Owns: [`PassingRows`], the pages of a scan with all that is asked of their rows, and the stream
//! of those that pass. Never: reads a column of a row that nobody asks for.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::coalesce::{LimitedBatchCoalescer, PushBatchStatus};
use datafusion::physical_plan::metrics::{BaselineMetrics, RatioMetrics};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream;

use super::condition::Condition;
use crate::open_scan::{OpenRows, OpenScan};
use crate::selection::Selection;
use crate::time_slice::TimeSlice;

/// What is asked of rows beside a condition: it closes some of those that are open.
type Test = Box<dyn FnMut(&mut OpenRows, Selection) -> Result<Selection> + Send>;

/// The rows of one partition of a scan that pass.
pub(crate) struct PassingRows {
    scan: OpenScan,
    tests: Vec<Test>,
    /// The filter above the scan, if there is one.
    filter: Option<PassingFilter>,
    /// The columns of the scan that are handed on, and how they are called.
    columns: Vec<usize>,
    schema: SchemaRef,
}

/// What a filter does with the rows of a scan.
pub(super) struct PassingFilter {
    pub(super) condition: Condition,
    /// Whether it is asked before all tests: it may warn or fail, and is to do so for all rows.
    pub(super) comes_first: bool,
    /// How many more rows it is to hand on at most.
    pub(super) left: usize,
    pub(super) baseline: BaselineMetrics,
    pub(super) selectivity: RatioMetrics,
}

impl PassingRows {
    /// All rows of a scan.
    pub(crate) fn of_scan(scan: OpenScan, schema: SchemaRef) -> PassingRows {
        PassingRows {
            columns: (0..schema.fields().len()).collect(),
            schema,
            scan,
            tests: Vec::new(),
            filter: None,
        }
    }

    /// Those that pass a filter, with the columns that it hands on.
    pub(super) fn through(
        self,
        filter: PassingFilter,
        projection: Option<&[usize]>,
        schema: SchemaRef,
    ) -> Self {
        PassingRows {
            columns: projection.map_or(self.columns, <[usize]>::to_vec),
            filter: Some(filter),
            schema,
            ..self
        }
    }

    /// Those that also pass a test, which is asked before the filter unless somebody would notice;
    /// it is told which columns of the scan some of those are that are handed on.
    pub(crate) fn tested<T>(mut self, columns: &[usize], test: T) -> Self
    where
        T: FnMut(&mut OpenRows, &[usize], Selection) -> Result<Selection> + Send + 'static,
    {
        let columns: Vec<usize> = columns.iter().map(|column| self.columns[*column]).collect();
        let mut test = test;
        let test = move |rows: &mut OpenRows, open: Selection| test(rows, &columns, open);
        self.tests.push(Box::new(test));
        self
    }

    /// The rows of the next page that pass, `None` inside where none does; `None` at the end.
    fn next(&mut self) -> Option<Result<Option<RecordBatch>>> {
        let mut rows = match self.scan.next()? {
            Ok(rows) => rows,
            Err(error) => return Some(Err(error)),
        };
        let elapsed = self.filter.as_ref();
        let elapsed = elapsed.map(|filter| filter.baseline.elapsed_compute().clone());
        let read_before = self.scan.elapsed().value();
        let began = std::time::Instant::now();
        let passing = self.passing(&mut rows);
        if let Some(elapsed) = elapsed {
            // What was read meanwhile is the time of the scan.
            let read = self.scan.elapsed().value() - read_before;
            let took = began.elapsed();
            elapsed.add_duration(took.saturating_sub(std::time::Duration::from_nanos(read as u64)));
        }
        Some(passing)
    }

    fn passing(&mut self, rows: &mut OpenRows) -> Result<Option<RecordBatch>> {
        let mut open = match rows.row_count() {
            0 => Selection::None,
            _ => Selection::All,
        };
        let filter_is_first = self.filter.as_ref().is_some_and(|it| it.comes_first);
        if filter_is_first {
            open = self.filtered(rows, open)?;
        }
        for test in &mut self.tests {
            open = test(rows, open)?;
        }
        if !filter_is_first {
            open = self.filtered(rows, open)?;
        }
        rows.open(&self.columns, &self.schema, open)
    }

    /// Closes the open rows that do not pass the filter.
    fn filtered(&mut self, rows: &mut OpenRows, mut open: Selection) -> Result<Selection> {
        let Some(filter) = &mut self.filter else {
            return Ok(open);
        };
        filter.selectivity.add_total(rows.row_count());
        if let Some(terms) = filter.condition.late_terms() {
            open = terms.narrow(rows, open)?;
        }
        let count = open.count(rows.row_count()).min(filter.left);
        filter.left -= count;
        filter.selectivity.add_part(count);
        filter.baseline.record_output(count);
        Ok(open)
    }

    /// Batches of so many rows that pass, at most `fetch` rows; `seen` is called with the number of
    /// each.
    pub(crate) fn stream(
        self,
        batch_rows: usize,
        fetch: Option<usize>,
        seen: impl Fn(usize) + Send + 'static,
    ) -> SendableRecordBatchStream {
        let schema = SchemaRef::clone(&self.schema);
        let state = Gathering {
            gathered: LimitedBatchCoalescer::new(SchemaRef::clone(&schema), batch_rows, fetch),
            rows: Some(self),
            batch_rows,
            has_fetch: fetch.is_some(),
            pages: 0,
            handed_on_at: 1,
            slice: TimeSlice::begin(),
        };
        let batches = stream::try_unfold((state, seen), async |(mut state, seen)| {
            let next = state.next().await?;
            Ok(next.map(|batch| {
                seen(batch.num_rows());
                (batch, (state, seen))
            }))
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, batches))
    }
}

/// Rows that pass, until they fill a batch.
struct Gathering {
    /// `None` once no more are read.
    rows: Option<PassingRows>,
    gathered: LimitedBatchCoalescer,
    batch_rows: usize,
    has_fetch: bool,
    /// The pages that were read, and with how many a batch that is not full is handed on.
    pages: usize,
    handed_on_at: usize,
    slice: TimeSlice,
}

impl Gathering {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.gathered.next_completed_batch() {
                return Ok(Some(batch));
            }
            if let Some(batch) = self.handed_on_early()? {
                return Ok(Some(batch));
            }
            let Some(rows) = &mut self.rows else {
                return Ok(None);
            };
            self.pages += 1;
            let goes_on = match rows.next() {
                Some(passing) => match passing? {
                    Some(passing) => {
                        let status = self.gathered.push_batch(passing)?;
                        matches!(status, PushBatchStatus::Continue)
                    }
                    None => true,
                },
                None => false,
            };
            if !goes_on {
                self.rows = None;
                self.gathered.finish()?;
            }
            self.slice.share().await;
        }
    }

    /// The rows of a batch that is not full, after one page, two, four and so on: what stands above
    /// may want few rows, of which a full batch would take the whole table to find.
    fn handed_on_early(&mut self) -> Result<Option<RecordBatch>> {
        if self.has_fetch || self.pages < self.handed_on_at || self.gathered.is_empty() {
            return Ok(None);
        }
        self.handed_on_at = self.pages * 2;
        let next = LimitedBatchCoalescer::new(self.gathered.schema(), self.batch_rows, None);
        let mut gathered = std::mem::replace(&mut self.gathered, next);
        gathered.finish()?;
        Ok(gathered.next_completed_batch())
    }
}
