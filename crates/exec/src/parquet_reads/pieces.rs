//! Row groups in pieces: what of a row group is read at once.
//!
//! Owns: where a file is cut into parts. Never: reads more of a file than what it says of itself.
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

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{
    ParquetAccessPlan, ParquetRowSelection, RowGroupAccess,
};
use datafusion::datasource::physical_plan::{FileScanConfig, ParquetFileReaderFactory};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::parquet::arrow::arrow_reader::{ArrowReaderOptions, RowSelection, RowSelector};
use datafusion::parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, RowGroupMetaData};
use datafusion::parquet::file::page_index::offset_index::PageLocation;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;

/// When row groups are cut, by what is stored of the columns that are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// A row group of so many bytes is read at once.
    pub(super) uncut_bytes_max: u64,
    /// A piece of a larger one has about so many.
    pub(super) piece_bytes: u64,
}

/// What a file says of itself, with the index of its pages. Its parts have it with them, so that it
/// is read once.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) metadata: Arc<ParquetMetaData>,
    /// The columns that are read, as the file numbers them.
    leaves: Vec<usize>,
    _memory: MemoryReservation,
}

/// Names of the columns that a scan decodes, if row groups of its files may be cut.
pub(super) fn columns_to_cut(config: &FileScanConfig, sizes: Sizes) -> Option<Vec<String>> {
    let mut files = config.file_groups.iter().flat_map(|group| group.iter());
    if !files.any(|file| may_cut(file, sizes)) {
        return None;
    }
    let source = config.file_source();
    let schema = source.table_schema().table_schema();
    let indices = source.projection()?.column_indices().into_iter();
    let fields = indices.filter_map(|index| schema.fields().get(index));
    let names: Vec<String> = fields.map(|field| field.name().clone()).collect();
    (!names.is_empty()).then_some(names)
}

/// Whether a file is large, and nobody has said already what to read of it.
fn may_cut(file: &PartitionedFile, sizes: Sizes) -> bool {
    file.object_meta.size > sizes.uncut_bytes_max
        && file.extensions.get::<ParquetAccessPlan>().is_none()
        && file.extensions.get::<ParquetRowSelection>().is_none()
}

/// What a file with large row groups says of itself; `None` where they are not to be cut, or cannot
/// be. What cannot be read of it now its reader will tell of.
pub(super) async fn look(
    file: &PartitionedFile,
    columns: &[String],
    sizes: Sizes,
    readers: &Arc<dyn ParquetFileReaderFactory>,
    pool: &Arc<dyn MemoryPool>,
) -> Option<Arc<Known>> {
    if !may_cut(file, sizes) {
        return None;
    }
    let read = async |policy| -> Result<Arc<ParquetMetaData>> {
        let unseen = ExecutionPlanMetricsSet::new();
        let hint = file.metadata_size_hint;
        let mut reader = readers.create_reader(0, file.clone(), hint, &unseen)?;
        let options = ArrowReaderOptions::new().with_page_index_policy(policy);
        Ok(reader.get_metadata(Some(&options)).await?)
    };
    let metadata = read(PageIndexPolicy::Skip).await.ok()?;
    let leaves = leaves(&metadata, columns);
    let is_large = |group: &RowGroupMetaData| {
        is_in(file, group) && stored_bytes(group, &leaves) > sizes.uncut_bytes_max
    };
    if !metadata.row_groups().iter().any(is_large) {
        return None;
    }
    let metadata = read(PageIndexPolicy::Optional).await.ok()?;
    metadata.offset_index()?;
    let memory = MemoryConsumer::new("what Parquet files say of themselves").register(pool);
    memory.try_grow(metadata.memory_size()).ok()?;
    Some(Arc::new(Known {
        metadata,
        leaves,
        _memory: memory,
    }))
}

/// The parts of a file, in order.
pub(super) struct Parts {
    file: PartitionedFile,
    known: Arc<Known>,
    sizes: Sizes,
    /// The next row group to look at.
    next_group: usize,
    /// What is left of a row group that is cut.
    pieces: VecDeque<(usize, Range<usize>)>,
}

impl Parts {
    pub(super) fn of(file: PartitionedFile, known: Arc<Known>, sizes: Sizes) -> Parts {
        Parts {
            file,
            known,
            sizes,
            next_group: 0,
            pieces: VecDeque::new(),
        }
    }

    /// A part of the file that reads such rows of some row groups.
    fn part(&self, accesses: Vec<(usize, RowGroupAccess)>) -> PartitionedFile {
        let mut plan = vec![RowGroupAccess::Skip; self.known.metadata.num_row_groups()];
        for (group, access) in accesses {
            if let Some(place) = plan.get_mut(group) {
                *place = access;
            }
        }
        let mut part = self.file.clone();
        part.range = None;
        part.with_extension(ParquetAccessPlan::new(plan))
            .with_extension(Arc::clone(&self.known))
    }
}

impl Iterator for Parts {
    type Item = PartitionedFile;

    fn next(&mut self) -> Option<PartitionedFile> {
        let metadata = &self.known.metadata;
        let mut whole = Vec::new();
        while self.pieces.is_empty() && self.next_group < metadata.num_row_groups() {
            let index = self.next_group;
            self.next_group += 1;
            if !is_in(&self.file, metadata.row_group(index)) {
                continue;
            }
            let pieces = row_pieces(metadata, index, &self.known.leaves, self.sizes);
            match pieces.len() {
                0 | 1 => whole.push((index, RowGroupAccess::Scan)),
                _ => self.pieces = pieces.into_iter().map(|rows| (index, rows)).collect(),
            }
        }
        if !whole.is_empty() {
            return Some(self.part(whole));
        }
        let (index, rows) = self.pieces.pop_front()?;
        let selection = RowSelection::from(vec![
            RowSelector::skip(rows.start),
            RowSelector::select(rows.len()),
            RowSelector::skip(rows_of(metadata.row_group(index)) - rows.end),
        ]);
        Some(self.part(vec![(index, RowGroupAccess::Selection(selection))]))
    }
}

/// Whether a row group belongs to the part of the file that is to be read, as DataFusion says it.
fn is_in(file: &PartitionedFile, group: &RowGroupMetaData) -> bool {
    let Some(range) = file.range.as_ref() else {
        return true;
    };
    group.columns().first().is_some_and(|first| {
        let start = first.dictionary_page_offset();
        range.contains(start.unwrap_or_else(|| first.data_page_offset()))
    })
}

/// The columns of such names, as the file numbers them.
fn leaves(metadata: &ParquetMetaData, columns: &[String]) -> Vec<usize> {
    let schema = metadata.file_metadata().schema_descr();
    let leaves = schema.columns().iter().enumerate();
    let named = leaves.filter(|(_, leaf)| {
        let root = leaf.path().parts().first();
        root.is_some_and(|root| columns.contains(root))
    });
    named.map(|(index, _)| index).collect()
}

fn rows_of(group: &RowGroupMetaData) -> usize {
    usize::try_from(group.num_rows()).unwrap_or(0)
}

fn stored_bytes(group: &RowGroupMetaData, leaves: &[usize]) -> u64 {
    let columns = leaves.iter().filter_map(|leaf| group.columns().get(*leaf));
    let stored = columns.map(|column| column.byte_range().1);
    stored.fold(0, u64::saturating_add)
}

/// The pages of a column of a row group, as the offset index has them.
struct IndexedPages {
    /// The first row of each.
    starts: Vec<usize>,
    /// The bytes of those before each, and of all.
    bytes_before: Vec<u64>,
}

impl IndexedPages {
    /// `None` where what is said of them makes no sense.
    fn of(locations: &[PageLocation], rows: usize) -> Option<IndexedPages> {
        let (mut starts, mut bytes_before) = (Vec::new(), vec![0_u64]);
        let mut bytes = 0_u64;
        for page in locations {
            let start = usize::try_from(page.first_row_index).ok()?;
            let is_next = starts.last().map_or(start == 0, |last| start > *last);
            if !is_next || start >= rows {
                return None;
            }
            starts.push(start);
            bytes = bytes.checked_add(u64::try_from(page.compressed_page_size).ok()?)?;
            bytes_before.push(bytes);
        }
        (!starts.is_empty()).then_some(IndexedPages {
            starts,
            bytes_before,
        })
    }

    /// Bytes of the pages that have some of the rows.
    fn bytes_of(&self, rows: &Range<usize>) -> u64 {
        let first = self.starts.partition_point(|start| *start <= rows.start);
        let end = self.starts.partition_point(|start| *start < rows.end);
        let before = |page: usize| self.bytes_before.get(page).copied().unwrap_or(0);
        let first = first.saturating_sub(1);
        before(end.max(first)).saturating_sub(before(first))
    }
}

/// Rows of a row group that are read at once: none where it is not to be cut.
fn row_pieces(
    metadata: &ParquetMetaData,
    index: usize,
    leaves: &[usize],
    sizes: Sizes,
) -> Vec<Range<usize>> {
    let group = metadata.row_group(index);
    if stored_bytes(group, leaves) <= sizes.uncut_bytes_max {
        return Vec::new();
    }
    let rows = rows_of(group);
    let index_of_group = metadata.offset_index().and_then(|all| all.get(index));
    let pages_of =
        |leaf: &usize| IndexedPages::of(index_of_group?.get(*leaf)?.page_locations(), rows);
    let Some(pages) = leaves
        .iter()
        .map(pages_of)
        .collect::<Option<Vec<IndexedPages>>>()
    else {
        return Vec::new();
    };
    let all = |pages: &IndexedPages| pages.bytes_before.last().copied().unwrap_or(0);
    let Some(largest) = pages.iter().max_by_key(|pages| all(pages)) else {
        return Vec::new();
    };
    let data_bytes = pages.iter().map(all).fold(0, u64::saturating_add);
    // What is no page of values is read with each piece.
    let dictionary_bytes = stored_bytes(group, leaves).saturating_sub(data_bytes);
    let bytes_of = |rows: Range<usize>| {
        let of_columns = pages.iter().map(|pages| pages.bytes_of(&rows));
        of_columns.fold(dictionary_bytes, u64::saturating_add)
    };
    let (mut pieces, mut start, mut before) = (Vec::new(), 0, 0);
    for &end in largest.starts.iter().skip(1).chain([&rows]) {
        // A page that would make a piece too long begins the next one.
        if before > start && bytes_of(start..end) > sizes.piece_bytes {
            pieces.push(start..before);
            start = before;
        }
        before = end;
    }
    pieces.push(start..rows);
    pieces
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use datafusion::datasource::listing::FileRange;
    use datafusion::execution::memory_pool::UnboundedMemoryPool;
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
    fn file(
        groups: usize,
        has_index: bool,
        text_bytes: fn(usize) -> usize,
    ) -> (PartitionedFile, ParquetMetaData) {
        let properties = WriterProperties::builder()
            .set_compression(Compression::UNCOMPRESSED)
            .set_dictionary_enabled(false)
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_data_page_row_count_limit(PAGE_ROWS)
            .set_write_batch_size(PAGE_ROWS)
            .set_offset_index_disabled(!has_index)
            .build();
        let rows = 0..groups * GROUP_ROWS;
        let texts = rows.clone().map(|row| "x".repeat(text_bytes(row)));
        let numbers = rows.map(|row| row as i64);
        let columns: [(&str, ArrayRef); 2] = [
            ("t", Arc::new(StringArray::from_iter_values(texts))),
            ("n", Arc::new(Int64Array::from_iter_values(numbers))),
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

    fn sizes(uncut_bytes_max: usize, piece_bytes: usize) -> Sizes {
        Sizes {
            uncut_bytes_max: uncut_bytes_max as u64,
            piece_bytes: piece_bytes as u64,
        }
    }

    /// The row groups of each part of a file, with the rows that are read of them.
    fn parts_of(
        file: &PartitionedFile,
        metadata: &ParquetMetaData,
        columns: &[&str],
        sizes: Sizes,
    ) -> Vec<Vec<(usize, Range<usize>)>> {
        let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let known = Arc::new(Known {
            metadata: Arc::new(metadata.clone()),
            leaves: leaves(metadata, &columns),
            _memory: MemoryConsumer::new("test").register(&pool),
        });
        let of_group = |(index, access): (usize, &RowGroupAccess)| match access {
            RowGroupAccess::Skip => None,
            RowGroupAccess::Scan => Some((index, 0..GROUP_ROWS)),
            RowGroupAccess::Selection(selection) => {
                let rows: usize = selection.iter().map(|run| run.row_count).sum();
                assert_eq!(rows, GROUP_ROWS);
                let before = selection.iter().take_while(|run| run.skip);
                let start = before.map(|run| run.row_count).sum();
                Some((index, start..start + selection.row_count()))
            }
        };
        Parts::of(file.clone(), known, sizes)
            .map(|part| {
                assert!(part.range.is_none());
                let plan = part.extensions.get::<ParquetAccessPlan>().unwrap();
                let groups = plan.inner().iter().enumerate();
                groups.filter_map(of_group).collect()
            })
            .collect()
    }

    #[test]
    fn large_row_groups_are_cut_where_pages_begin() {
        let (file, metadata) = file(2, true, |_| TEXT_BYTES);
        // Three pages of texts and their numbers fit.
        let piece = sizes(500_000, 3 * PAGE_ROWS * (TEXT_BYTES + 13));
        let pieces = [0..3_000, 3_000..6_000, 6_000..9_000, 9_000..10_000];
        let expected = [0, 1].map(|group| pieces.clone().map(|rows| vec![(group, rows)]));
        let parts = parts_of(&file, &metadata, &["n", "t"], piece);
        assert_eq!(parts, expected.concat());
        // A page that is larger than a piece is read all the same.
        let parts = parts_of(&file, &metadata, &["t"], sizes(500_000, 1));
        assert_eq!(parts.len(), 2 * GROUP_ROWS / PAGE_ROWS);
    }

    #[test]
    fn pieces_have_as_many_bytes_wherever_those_lie() {
        let (file, metadata) = file(1, true, |row| if row < 9_000 { 10 } else { 1_000 });
        let parts = parts_of(&file, &metadata, &["t"], sizes(500_000, 300_000));
        assert_eq!(parts, [[(0, 0..9_000)], [(0, 9_000..10_000)]]);
    }

    #[test]
    fn what_is_small_or_says_nothing_of_its_pages_stays_whole() {
        let whole = [[(0, 0..GROUP_ROWS), (1, 0..GROUP_ROWS)]];
        let (paged, metadata) = file(2, true, |_| TEXT_BYTES);
        let small = sizes(500_000, 300_000);
        assert_eq!(parts_of(&paged, &metadata, &["n"], small), whole);
        let large = sizes(2_000_000, 300_000);
        assert_eq!(parts_of(&paged, &metadata, &["n", "t"], large), whole);
        let (file, metadata) = file(2, false, |_| TEXT_BYTES);
        assert_eq!(parts_of(&file, &metadata, &["t"], small), whole);
    }

    #[test]
    fn whole_row_groups_are_read_together_and_in_order() {
        let (file, metadata) = file(5, true, |row| match row / GROUP_ROWS {
            2 => 1_000,
            _ => TEXT_BYTES,
        });
        let parts = parts_of(&file, &metadata, &["t"], sizes(2_000_000, 6_000_000));
        let whole = |groups: Range<usize>| groups.map(|group| (group, 0..GROUP_ROWS)).collect();
        let expected: [Vec<_>; 4] = [
            whole(0..2),
            vec![(2, 0..5_000)],
            vec![(2, 5_000..10_000)],
            whole(3..5),
        ];
        assert_eq!(parts, expected);
    }

    #[test]
    fn a_part_of_a_file_is_read_once() {
        let (mut file, metadata) = file(4, true, |_| TEXT_BYTES);
        let size = file.object_meta.size as i64;
        let mut all = Vec::new();
        for third in 0..3 {
            file.range = Some(FileRange {
                start: size * third / 3,
                end: size * (third + 1) / 3,
            });
            all.extend(parts_of(&file, &metadata, &["t"], sizes(500_000, 600_000)).concat());
        }
        let halves = |group| [(group, 0..5_000), (group, 5_000..10_000)];
        assert_eq!(all, (0..4).flat_map(halves).collect::<Vec<_>>());
    }

    #[test]
    fn an_index_that_makes_no_sense_is_none() {
        let pages = |starts: &[i64]| {
            let location = |start: &i64| PageLocation {
                offset: 4,
                compressed_page_size: 10,
                first_row_index: *start,
            };
            IndexedPages::of(&starts.iter().map(location).collect::<Vec<_>>(), 10)
        };
        let sound = pages(&[0, 5, 9]).unwrap();
        assert_eq!(
            [0..5, 0..6, 4..5, 5..9, 9..10].map(|rows| sound.bytes_of(&rows)),
            [10, 20, 10, 10, 10]
        );
        for wrong in [
            &[][..],
            &[1],
            &[0, 0],
            &[0, 5, 4],
            &[0, 10],
            &[0, 1 << 60],
            &[-1],
        ] {
            assert!(pages(wrong).is_none(), "{wrong:?}");
        }
    }
}
