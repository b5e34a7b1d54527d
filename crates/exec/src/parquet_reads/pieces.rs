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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use datafusion::datasource::listing::FileRange;
    use datafusion::parquet::arrow::ArrowWriter;
    use datafusion::parquet::basic::Compression;
    use datafusion::parquet::file::metadata::ParquetMetaDataReader;
    use datafusion::parquet::file::properties::WriterProperties;

    use super::*;

    const GROUP_ROWS: usize = 10_000;
    const PAGE_ROWS: usize = 1_000;
    /// Of a text, which is stored as it is.
    const TEXT_BYTES: usize = 100;

    /// A file of so many row groups in pages of a text and of a number, and what it says of itself.
    fn file(groups: usize, has_index: bool) -> (PartitionedFile, ParquetMetaData) {
        let properties = WriterProperties::builder()
            .set_compression(Compression::UNCOMPRESSED)
            .set_dictionary_enabled(false)
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_data_page_row_count_limit(PAGE_ROWS)
            .set_write_batch_size(PAGE_ROWS)
            .set_offset_index_disabled(!has_index)
            .build();
        let rows = 0..groups * GROUP_ROWS;
        let texts = rows.clone().map(|row| format!("{row:0TEXT_BYTES$}"));
        let columns: [(&str, ArrayRef); 2] = [
            ("t", Arc::new(StringArray::from_iter_values(texts))),
            (
                "n",
                Arc::new(Int64Array::from_iter_values(rows.map(|row| row as i64))),
            ),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut bytes = Vec::new();
        let mut writer =
            ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Optional);
        let size = bytes.len() as u64;
        let metadata = reader.parse_and_finish(&Bytes::from(bytes)).unwrap();
        (PartitionedFile::new("file", size), metadata)
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn sizes(uncut_bytes_max: usize, piece_bytes: usize) -> Sizes {
        Sizes {
            uncut_bytes_max: uncut_bytes_max as u64,
            piece_bytes: piece_bytes as u64,
        }
    }

    /// The row groups of each part with the rows that are read of them.
    fn read(parts: &[PartitionedFile]) -> Vec<Vec<(usize, Range<usize>)>> {
        let of_group = |(index, access): (usize, &RowGroupAccess)| match access {
            RowGroupAccess::Skip => None,
            RowGroupAccess::Scan => Some((index, 0..GROUP_ROWS)),
            RowGroupAccess::Selection(selection) => {
                assert_eq!(
                    selection.iter().map(|run| run.row_count).sum::<usize>(),
                    GROUP_ROWS
                );
                let before = selection.iter().take_while(|run| run.skip);
                let start = before.map(|run| run.row_count).sum();
                Some((index, start..start + selection.row_count()))
            }
        };
        parts
            .iter()
            .map(|part| {
                assert!(is_piece(part) && part.range.is_none());
                let plan = part.extensions.get::<ParquetAccessPlan>().unwrap();
                plan.inner()
                    .iter()
                    .enumerate()
                    .filter_map(of_group)
                    .collect()
            })
            .collect()
    }

    #[test]
    fn large_row_groups_are_cut_where_pages_begin() {
        let (file, metadata) = file(2, true);
        // A page of texts has some 104,000 bytes: three of them and their numbers fit.
        let piece = 3 * PAGE_ROWS * (TEXT_BYTES + 13);
        let parts = pieces_of(&file, &metadata, &names(&["n", "t"]), sizes(500_000, piece));
        let pieces = [0..3_000, 3_000..6_000, 6_000..9_000, 9_000..10_000];
        let expected = [0, 1].map(|group| pieces.clone().map(|rows| vec![(group, rows)]));
        assert_eq!(read(&parts), expected.concat());
        // A page that is larger than a piece is read all the same.
        let parts = pieces_of(&file, &metadata, &names(&["t"]), sizes(500_000, 1));
        assert_eq!(parts.len(), 2 * GROUP_ROWS / PAGE_ROWS);
    }

    #[test]
    fn what_is_small_or_says_nothing_of_its_pages_stays_whole() {
        let (paged, metadata) = file(2, true);
        let whole = |file: &PartitionedFile, metadata, columns: &[&str], sizes| {
            let parts = pieces_of(file, metadata, &names(columns), sizes);
            parts.len() == 1 && !is_piece(&parts[0])
        };
        let small = sizes(500_000, 300_000);
        assert!(!whole(&paged, &metadata, &["t"], small));
        assert!(whole(&paged, &metadata, &["n"], small), "numbers are small");
        assert!(whole(&paged, &metadata, &["t"], sizes(2_000_000, 300_000)));
        let (file, metadata) = file(2, false);
        assert!(whole(&file, &metadata, &["t"], small));
    }

    #[test]
    fn a_part_of_a_file_is_read_once() {
        let (mut file, metadata) = file(4, true);
        let size = file.object_meta.size as i64;
        let mut all = Vec::new();
        for third in 0..3 {
            file.range = Some(FileRange {
                start: size * third / 3,
                end: size * (third + 1) / 3,
            });
            let parts = pieces_of(&file, &metadata, &names(&["t"]), sizes(500_000, 600_000));
            all.extend(read(&parts).concat());
        }
        let halves = |group| [(group, 0..5_000), (group, 5_000..10_000)];
        assert_eq!(all, (0..4).flat_map(halves).collect::<Vec<_>>());
    }
}
