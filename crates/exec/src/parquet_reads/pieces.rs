//! Row groups in pieces: what of a row group is read at once.
//!
//! Owns: where a row group is cut. Never: reads rows.
//!
//! A reader of DataFusion reads the columns of a row group as a whole, which may be as much as the
//! budget. Where the file says at which rows its pages begin (the offset index), a large row group
//! becomes several reads of the same file, each of some pages of the column that takes most:
//!
//! ```text
//!   file ---------> file: row groups 0 and 1 | row group 2, rows 0.. | row group 2, rows 20,000..
//!   (small, small, large)
//! ```
//!
//! **Cost**: each piece reads the dictionaries of its columns anew, and pages of other columns that
//! reach over its ends.
//!
//! **Source**: "Apache Parquet: page index"; `ParquetAccessPlan` of DataFusion.

use std::ops::Range;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{ParquetAccessPlan, RowGroupAccess};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, ParquetFileReaderFactory};
use datafusion::parquet::arrow::arrow_reader::{ArrowReaderOptions, RowSelection, RowSelector};
use datafusion::parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, RowGroupMetaData};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;

/// When row groups are cut, by what is stored of the columns that are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// A row group of so many bytes is read at once.
    pub(super) uncut_bytes_max: u64,
    /// A piece of a larger one has about so many.
    pub(super) piece_bytes: u64,
}

/// What readers ask for to know where pages begin.
pub(super) fn with_page_index(options: Option<&ArrowReaderOptions>) -> ArrowReaderOptions {
    let options = options.cloned().unwrap_or_default();
    options.with_page_index_policy(PageIndexPolicy::Optional)
}

/// Whether a file is one piece of those that a scan was cut into.
pub(super) fn is_piece(file: &PartitionedFile) -> bool {
    file.extensions.get::<ParquetAccessPlan>().is_some()
}

/// Whether a scan may have row groups that are cut.
pub(super) fn may_be_cut(config: &FileScanConfig, sizes: Sizes) -> bool {
    let mut files = config.file_groups.iter().flat_map(|group| group.iter());
    files.any(|file| file.object_meta.size > sizes.uncut_bytes_max)
}

/// The scan with its large row groups cut into pieces.
///
/// # Errors
/// If what a file says of itself cannot be read.
pub(super) async fn cut(
    config: &FileScanConfig,
    readers: &Arc<dyn ParquetFileReaderFactory>,
    sizes: Sizes,
) -> Result<FileScanConfig> {
    let columns = column_names(config);
    let mut groups = Vec::with_capacity(config.file_groups.len());
    for group in &config.file_groups {
        let mut files = Vec::with_capacity(group.len());
        for file in group.iter() {
            if file.object_meta.size <= sizes.uncut_bytes_max || is_piece(file) {
                files.push(file.clone());
                continue;
            }
            let hint = file.metadata_size_hint;
            let unseen = ExecutionPlanMetricsSet::new();
            let mut reader = readers.create_reader(0, file.clone(), hint, &unseen)?;
            let metadata = reader.get_metadata(Some(&with_page_index(None))).await?;
            files.extend(pieces_of(file, &metadata, &columns, sizes));
        }
        groups.push(FileGroup::new(files));
    }
    let mut config = config.clone();
    config.file_groups = groups;
    Ok(config)
}

/// Names of the columns that a scan decodes.
fn column_names(config: &FileScanConfig) -> Vec<String> {
    let source = config.file_source();
    let schema = source.table_schema().table_schema();
    let Some(projection) = source.projection() else {
        return Vec::new();
    };
    let indices = projection.column_indices().into_iter();
    let fields = indices.filter_map(|index| schema.fields().get(index));
    fields.map(|field| field.name().clone()).collect()
}

/// A file as it is read: itself if it has no large row group.
fn pieces_of(
    file: &PartitionedFile,
    metadata: &ParquetMetaData,
    columns: &[String],
    sizes: Sizes,
) -> Vec<PartitionedFile> {
    let count = metadata.num_row_groups();
    let part = |accesses: Vec<(usize, RowGroupAccess)>| {
        let mut plan = vec![RowGroupAccess::Skip; count];
        for (group, access) in accesses {
            plan[group] = access;
        }
        let mut part = file.clone().with_extension(ParquetAccessPlan::new(plan));
        part.range = None;
        part
    };
    let mut parts = Vec::new();
    let mut whole = Vec::new();
    for (index, group) in metadata.row_groups().iter().enumerate() {
        if !is_in(file, group) {
            continue;
        }
        let pieces = row_pieces(metadata, index, columns, sizes);
        if pieces.len() <= 1 {
            whole.push((index, RowGroupAccess::Scan));
            continue;
        }
        if !whole.is_empty() {
            parts.push(part(std::mem::take(&mut whole)));
        }
        let rows = rows_of(group);
        parts.extend(pieces.into_iter().map(|piece| {
            let selection = RowSelection::from(vec![
                RowSelector::skip(piece.start),
                RowSelector::select(piece.len()),
                RowSelector::skip(rows - piece.end),
            ]);
            part(vec![(index, RowGroupAccess::Selection(selection))])
        }));
    }
    if parts.is_empty() {
        return vec![file.clone()];
    }
    if !whole.is_empty() {
        parts.push(part(whole));
    }
    parts
}

/// Whether a row group belongs to the part of the file that is to be read, as DataFusion says it.
fn is_in(file: &PartitionedFile, group: &RowGroupMetaData) -> bool {
    let first = group.column(0);
    let start = first.dictionary_page_offset();
    let start = start.unwrap_or_else(|| first.data_page_offset());
    let range = file.range.as_ref();
    range.is_none_or(|range| range.contains(start))
}

fn rows_of(group: &RowGroupMetaData) -> usize {
    usize::try_from(group.num_rows()).unwrap_or(0)
}

/// Rows of a row group that are read at once: none where it is not to be cut.
fn row_pieces(
    metadata: &ParquetMetaData,
    index: usize,
    columns: &[String],
    sizes: Sizes,
) -> Vec<Range<usize>> {
    let group = metadata.row_group(index);
    let is_read = |leaf: &usize| {
        let parts = metadata.file_metadata().schema_descr().column(*leaf);
        let name = parts.path().parts().first().cloned();
        name.is_some_and(|name| columns.contains(&name))
    };
    let stored = |leaf: usize| group.column(leaf).byte_range().1;
    let leaves: Vec<usize> = (0..group.num_columns()).filter(is_read).collect();
    let bytes: u64 = leaves.iter().map(|leaf| stored(*leaf)).sum();
    let largest = leaves.iter().copied().max_by_key(|leaf| stored(*leaf));
    let pages = metadata
        .offset_index()
        .zip(largest)
        .and_then(|(pages, leaf)| {
            let pages = pages.get(index)?.get(leaf)?;
            Some(pages.page_locations())
        });
    let Some(pages) = pages.filter(|_| bytes > sizes.uncut_bytes_max) else {
        return Vec::new();
    };
    let rows = rows_of(group);
    let bytes_of = |rows_read: usize| bytes * rows_read as u64 / rows.max(1) as u64;
    let mut starts = vec![0];
    let ends = pages.iter().skip(1).map(|page| page.first_row_index);
    let ends = ends.filter_map(|row| usize::try_from(row).ok());
    // A page that would make a piece too long begins the next one.
    let mut before = 0;
    for end in ends.chain([rows]) {
        let start = *starts.last().unwrap_or(&0);
        if before > start && end > before && bytes_of(end - start) > sizes.piece_bytes {
            starts.push(before);
        }
        before = end;
    }
    let ends = starts.iter().skip(1).copied().chain([rows]);
    starts
        .iter()
        .copied()
        .zip(ends)
        .map(|(start, end)| start..end)
        .collect()
}
