//! The stream of one output partition.
//!
//! No stream waits for another, because nobody promises that they are polled at the same time. What
//! can only be told when all have ended is the task of the last one.

use std::sync::Arc;

use datafusion::arrow::array::UInt32Array;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::{JoinSide, Result};
use datafusion::physical_plan::metrics::{BaselineMetrics, RecordOutput};
use futures::{Stream, stream};
use mayfly_space::Reservation;

use super::gathered::Gathered;
use super::left_rows::{LeftRows, SortedMemory};
use super::pair::{Limits, Progress, Rows};
use super::run::Run;
use super::spec::Spec;
use crate::join::Output;
use crate::time_slice::TimeSlice;

/// Fewer rows of either side are compared sooner than a page is sorted.
const SORTED_ROWS_MIN: usize = 64;

/// The results of one partition.
pub(super) fn results(
    run: Arc<Run>,
    partition: usize,
    metrics: BaselineMetrics,
) -> impl Stream<Item = Result<RecordBatch>> + Send + 'static {
    let stream = JoinStream {
        output: Output::new(&run.spec.schema, run.limits().rows, None),
        run,
        partition,
        stage: Stage::Waiting,
        slice: TimeSlice::begin(),
    };
    stream::try_unfold(stream, move |mut stream| {
        let metrics = metrics.clone();
        async move {
            let next = stream.next().await?;
            Ok(next.map(|batch| (batch.record_output(&metrics), stream)))
        }
    })
}

struct JoinStream {
    run: Arc<Run>,
    partition: usize,
    stage: Stage,
    output: Output,
    slice: TimeSlice,
}

/// Where a stream is.
enum Stage {
    Waiting,
    Passing(Box<Passing>),
    /// Shows the rows of the left side, from this page on.
    Remaining(Arc<LeftRows>, usize),
    /// The last results are there.
    Ending,
    Ended,
}

impl JoinStream {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.output.next()? {
                // Lets others run, and a consumer that polls in a loop be cancelled.
                self.slice.share().await;
                return Ok(Some(batch));
            }
            let results = match &mut self.stage {
                Stage::Waiting => {
                    let left = self.run.left().await?;
                    self.stage = match self.run.spec.kind.empty_build_side_produces_empty_result() {
                        true if left.is_empty() => Stage::Ended,
                        _ => Stage::Passing(Box::new(Passing {
                            page: PageMemory::reserve(&self.run.spec, &left, self.run.limits())?,
                            left,
                            right: self.run.right(self.partition)?,
                            limits: self.run.limits(),
                            batch: None,
                        })),
                    };
                    continue;
                }
                Stage::Passing(passing) => {
                    match passing.next(&self.run.spec, &mut self.slice).await? {
                        Some(results) => results,
                        None => {
                            let left = Arc::clone(&passing.left);
                            let shows_left = self.run.spec.roles.marks_table();
                            let is_last = self.run.unfinished.is_last_to_finish();
                            self.stage = match is_last && shows_left {
                                true => Stage::Remaining(left, 0),
                                false => Stage::Ending,
                            };
                            continue;
                        }
                    }
                }
                Stage::Remaining(left, page) if *page < left.pages() => {
                    let spec = &self.run.spec;
                    let rows = left.page(*page, &spec.left_alone)?;
                    let partners = left.partners(*page);
                    *page += 1;
                    spec.alone(JoinSide::Left, &rows, partners.bits())?
                }
                Stage::Remaining(..) => {
                    self.stage = Stage::Ending;
                    continue;
                }
                Stage::Ending => {
                    self.output.finish()?;
                    self.stage = Stage::Ended;
                    continue;
                }
                Stage::Ended => return Ok(None),
            };
            if let Some(results) = results {
                self.output.push(results)?;
            }
            self.slice.share().await;
        }
    }
}

/// One partition of the right side on its way past the left one.
struct Passing {
    left: Arc<LeftRows>,
    /// For the page that it passes.
    page: PageMemory,
    right: Gathered,
    limits: Limits,
    batch: Option<BatchPassing>,
}

/// Memory for the rows of a page, and perhaps for the same rows sorted.
struct PageMemory {
    _page: Reservation,
    sorted: Option<SortedMemory>,
}

impl PageMemory {
    fn reserve(spec: &Spec, left: &LeftRows, limits: Limits) -> Result<PageMemory> {
        let page = left.reserve_page()?;
        let may_sort = spec.bounds()?.is_some();
        Ok(PageMemory {
            _page: page,
            // Without it pairs are compared one by one.
            sorted: may_sort
                .then(|| left.reserve_sorted(limits.rows))
                .transpose()
                .unwrap_or_default(),
        })
    }
}

/// A batch of the right side.
struct BatchPassing {
    rows: Rows,
    limits: Limits,
    may_sort: bool,
    /// The page of the left side that comes next.
    next_page: usize,
    page: Option<PagePassed>,
}

/// A page of the left side that a batch is compared with.
struct PagePassed {
    page: usize,
    rows: Rows,
    /// Where the rows came from, if they are sorted.
    places: Option<UInt32Array>,
    progress: Progress,
}

impl PagePassed {
    /// Reads a page for so many rows of the right side, and sorts it where that helps.
    fn begin(
        spec: &Spec,
        left: &LeftRows,
        page: usize,
        batch: &BatchPassing,
    ) -> Result<PagePassed> {
        let rows = left.page(page, &spec.left_compared)?;
        let right = &batch.rows.batch;
        let are_many = rows.num_rows() >= SORTED_ROWS_MIN && right.num_rows() >= SORTED_ROWS_MIN;
        if let Some(bounds) = spec.bounds()?.filter(|_| batch.may_sort && are_many) {
            let sorted = bounds.sort(&rows, right)?;
            return Ok(PagePassed {
                page,
                rows: Rows::new(sorted.batch),
                places: Some(sorted.places),
                progress: Progress::within(batch.limits, sorted.candidates),
            });
        }
        let progress = Progress::begin(spec, batch.limits, rows.num_rows(), right.num_rows());
        Ok(PagePassed {
            page,
            rows: Rows {
                batch: rows,
                partners: left.partners(page),
            },
            places: None,
            progress,
        })
    }

    /// Tells which left rows have found partners.
    fn end(self, left: &LeftRows) {
        let found = self.rows.partners;
        let found = match self.places {
            Some(places) => found.at(places.values(), left.rows_of(self.page)),
            None => found,
        };
        left.add_partners(self.page, &found);
    }
}

impl Passing {
    /// The next results, if the next step has any; `None` at the end of the partition.
    async fn next(
        &mut self,
        spec: &Spec,
        slice: &mut TimeSlice,
    ) -> Result<Option<Option<RecordBatch>>> {
        loop {
            let Some(batch) = &mut self.batch else {
                // Nobody waits for a second partner.
                if spec.is_done_when_found(JoinSide::Left) && self.left.all_have_partners() {
                    return Ok(None);
                }
                let Some(batch) = self.right.next().await? else {
                    return Ok(None);
                };
                self.batch = Some(BatchPassing {
                    rows: Rows::new(batch),
                    limits: self.limits,
                    may_sort: self.page.sorted.is_some(),
                    next_page: 0,
                    page: None,
                });
                continue;
            };
            if let Some(results) = batch.step(spec, &self.left)? {
                return Ok(Some(results));
            }
            let Some(BatchPassing { rows, .. }) = self.batch.take() else {
                continue;
            };
            slice.share().await;
            let partners = rows.partners.bits();
            return Ok(Some(spec.alone(JoinSide::Right, &rows.batch, partners)?));
        }
    }
}

impl BatchPassing {
    /// The results of the next step, if there are any; `None` when all pages went by.
    fn step(&mut self, spec: &Spec, left: &LeftRows) -> Result<Option<Option<RecordBatch>>> {
        loop {
            if let Some(passed) = &mut self.page {
                let step = passed
                    .progress
                    .step(spec, &mut passed.rows, &mut self.rows)?;
                if step.is_some() {
                    return Ok(step);
                }
                if let Some(passed) = self.page.take() {
                    passed.end(left);
                }
                let is_done = spec.is_done_when_found(JoinSide::Right);
                if is_done && self.rows.partners.have_all() {
                    return Ok(None);
                }
                // A page without candidates takes time as well: others run between two of them.
                return Ok(Some(None));
            }
            let page = self.next_page;
            if page == left.pages() {
                return Ok(None);
            }
            self.next_page += 1;
            if spec.is_done_when_found(JoinSide::Left) && left.have_partners(page) {
                continue;
            }
            self.page = Some(PagePassed::begin(spec, left, page, self)?);
        }
    }
}
