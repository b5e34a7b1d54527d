//! A scan of files whose large row groups are read in pieces.
//!
//! Owns: the order of parts: file after file, each cut when its turn comes. Never: more than one
//! part of a partition at a time.
//!
//! Each part is a scan of its own by the stock source, which knows of no more than that. What a
//! limit leaves goes from one to the next.
//!
//! **Cost**: opening a file, for each part: some 100 us.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, ParquetFileReaderFactory};
use datafusion::datasource::source::DataSource;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use futures::{Stream, StreamExt, stream};

use super::pieces::{self, Parts, Sizes};
use crate::lock::lock;

/// Files that partitions take from, one after the other.
pub(super) type Files = Arc<Mutex<VecDeque<PartitionedFile>>>;

/// What one partition reads.
pub(super) struct Scan {
    /// The stock scan of no files yet, whose readers ask.
    pub(super) config: FileScanConfig,
    pub(super) partition: usize,
    pub(super) context: Arc<TaskContext>,
    pub(super) files: Files,
    /// Readers for what a file says of itself.
    pub(super) readers: Arc<dyn ParquetFileReaderFactory>,
    pub(super) sizes: Sizes,
    /// Names of the columns that are decoded.
    pub(super) columns: Vec<String>,
}

/// Where a scan is.
struct Place {
    scan: Scan,
    parts: Option<Parts>,
    open: Option<SendableRecordBatchStream>,
    /// Rows that are wanted yet, if there is a limit.
    left: Option<usize>,
}

impl Scan {
    /// All rows, part by part.
    pub(super) fn rows(self) -> impl Stream<Item = Result<RecordBatch>> + Send {
        let place = Place {
            parts: None,
            open: None,
            left: self.config.limit,
            scan: self,
        };
        stream::try_unfold(place, |mut place| async move {
            let found = place.next().await?;
            Ok(found.map(|batch| (batch, place)))
        })
    }
}

impl Place {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        while self.left != Some(0) {
            let Some(open) = &mut self.open else {
                let Some(part) = self.next_part().await else {
                    return Ok(None);
                };
                self.open = Some(self.read(part)?);
                continue;
            };
            if let Some(batch) = open.next().await.transpose()? {
                let rows = batch.num_rows();
                self.left = self.left.map(|left| left.saturating_sub(rows));
                return Ok(Some(batch));
            }
            self.open = None;
        }
        Ok(None)
    }

    async fn next_part(&mut self) -> Option<PartitionedFile> {
        loop {
            if let Some(part) = self.parts.as_mut().and_then(Iterator::next) {
                return Some(part);
            }
            self.parts = None;
            let scan = &self.scan;
            let file = lock(&scan.files).pop_front()?;
            let pool = scan.context.memory_pool();
            let known = pieces::look(&file, &scan.columns, scan.sizes, &scan.readers, pool);
            match known.await {
                Some(known) => self.parts = Some(Parts::of(file, known, scan.sizes)),
                None => return Some(file),
            }
        }
    }

    fn read(&self, part: PartitionedFile) -> Result<SendableRecordBatchStream> {
        let mut config = self.scan.config.clone();
        config.limit = self.left;
        let empty = || FileGroup::new(Vec::new());
        config.file_groups = (0..self.scan.partition).map(|_| empty()).collect();
        config.file_groups.push(FileGroup::new(vec![part]));
        config.open(self.scan.partition, Arc::clone(&self.scan.context))
    }
}
