//! Which columns a text file has, and of which types, as its first rows tell.
//!
//! The types of a column hold all values of the rows that are looked at: `mayfly_infer_rows` of
//! them, all with 0. A column without values is text, which loses nothing whatever follows.
//!
//! That may be all rows of a large file: others have their turn between two steps, and a statement
//! that was cancelled ends there.

use std::sync::Arc;

use datafusion::execution::memory_pool::MemoryPool;
use mayfly_exec::TimeSlice;
use mayfly_records::{
    Cells, ChunkStep, CsvReader, CsvSyntax, Format, Guess, JsonReader, Kind, TextType,
};
use mayfly_types::{COLUMNS_MAX, MySqlError, Warning};

use super::header::{FirstLine, Header};
use super::text_file::{FieldReader, FileChunk, FileReader, TextOptions, of_file};

/// Rows that are read together, and values, of which rows may have thousands.
const ROWS_TOGETHER: usize = 1024;
const VALUES_TOGETHER: usize = 64 << 10;

/// What the first rows of a file tell.
pub(super) struct Sample {
    pub(super) header: Header,
    /// For each column, what its values are.
    pub(super) guesses: Vec<Guess>,
    pub(super) warning: Option<Warning>,
}

impl Sample {
    /// Looks at the first rows of a file; `None` if it has none and no header.
    pub(super) async fn of(
        options: &TextOptions,
        path: &str,
        rows_max: u64,
        pool: &Arc<dyn MemoryPool>,
        slice: &mut TimeSlice,
    ) -> Result<Option<Sample>, MySqlError> {
        let mut rows = Rows {
            reader: options.open(path, pool)?,
            options,
            chunk: None,
            path,
            left: rows_max,
            slice,
        };
        match options.format {
            Format::Csv(syntax) => rows.csv(syntax).await,
            Format::Json => rows.json().await,
        }
    }
}

/// The rows of a file that are looked at.
struct Rows<'a> {
    reader: FileReader,
    options: &'a TextOptions,
    chunk: Option<FileChunk>,
    path: &'a str,
    left: u64,
    slice: &'a mut TimeSlice,
}

impl Rows<'_> {
    async fn csv(&mut self, syntax: CsvSyntax) -> Result<Option<Sample>, MySqlError> {
        let failed = of_file(self.path);
        let first = loop {
            let Some(chunk) = self.chunk().await? else {
                return Ok(None);
            };
            let header = CsvReader::header(syntax, chunk, COLUMNS_MAX);
            if let Some(first) = header.map_err(&failed)? {
                break first;
            }
        };
        let width = first.len();
        let mut of_first = vec![Guess::default(); width];
        for (guess, field) in of_first.iter_mut().zip(&first) {
            match std::str::from_utf8(field) {
                Ok(_) if self.options.is_null(field) => guess.add("", Kind::Null),
                Ok(text) => guess.add(text, Kind::Plain),
                // Whoever reads the row is told.
                Err(_) => guess.add("", Kind::Text),
            }
        }
        let line = FirstLine::new(first, self.options.skip.saturating_add(1));
        let columns = (0..line.width()).map(Some).collect();
        let mut fields = self.options.csv(syntax, columns);
        let mut guesses = vec![Guess::default(); width];
        self.read(&mut fields, &mut guesses).await?;
        let is_text = |column: usize| {
            let guess = guesses.get(column);
            guess.is_none_or(|guess: &Guess| guess.text_type() == TextType::Text)
        };
        let is_told = self.options.header;
        let is_header = is_told.or_else(|| line.is_header());
        let is_header = is_header.unwrap_or_else(|| line.is_header_above(is_text));
        if !is_header {
            for (guess, first) in guesses.iter_mut().zip(&of_first) {
                guess.join(first);
            }
        }
        let (header, warning) = line.into_header(is_header, self.path)?;
        // What somebody has said is no guess.
        let warning = warning.filter(|_| is_told.is_none());
        Ok(Some(Sample {
            header,
            guesses,
            warning,
        }))
    }

    async fn json(&mut self) -> Result<Option<Sample>, MySqlError> {
        let mut fields = FieldReader::Json(JsonReader::discovering(COLUMNS_MAX));
        let mut guesses = Vec::new();
        self.read(&mut fields, &mut guesses).await?;
        let names: Vec<String> = match &fields {
            FieldReader::Json(reader) => reader.names().map(str::to_owned).collect(),
            FieldReader::Csv(_) => Vec::new(),
        };
        Ok((!names.is_empty()).then_some(Sample {
            header: Header::Names(names),
            guesses,
            warning: None,
        }))
    }

    /// Reads the rows, and adds their values to the guesses.
    async fn read(
        &mut self,
        fields: &mut FieldReader,
        guesses: &mut Vec<Guess>,
    ) -> Result<(), MySqlError> {
        let failed = of_file(self.path);
        let mut cells = Cells::new(guesses.len());
        while self.left > 0 {
            let rows_max = usize::try_from(self.left).unwrap_or(usize::MAX);
            let Some(chunk) = self.chunk().await? else {
                return Ok(());
            };
            let together = VALUES_TOGETHER.checked_div(guesses.len());
            let together = together.map_or(ROWS_TOGETHER, |rows| rows.clamp(1, ROWS_TOGETHER));
            let rows_max = rows_max.min(together);
            fields.read(chunk, &mut cells, rows_max).map_err(&failed)?;
            let texts = cells.texts(chunk).map_err(&failed)?;
            guesses.resize(cells.width().max(guesses.len()), Guess::default());
            for (column, guess) in guesses.iter_mut().enumerate().take(cells.width()) {
                for cell in cells.column(column) {
                    guess.add(texts.get(cell), cell.kind);
                }
            }
            self.left = self.left.saturating_sub(cells.rows() as u64);
        }
        Ok(())
    }

    /// The chunk that has rows left; `None` at the end of the file.
    async fn chunk(&mut self) -> Result<Option<&mut FileChunk>, MySqlError> {
        self.slice.share().await;
        if self.chunk.as_ref().is_none_or(FileChunk::is_read) {
            if let Some(chunk) = self.chunk.take() {
                self.reader.recycle(chunk.into_buffer());
            }
            loop {
                match self.reader.step().map_err(of_file(self.path))? {
                    ChunkStep::Chunk(chunk) => {
                        self.chunk = Some(chunk);
                        break;
                    }
                    ChunkStep::Reading => self.slice.share().await,
                    ChunkStep::End => break,
                }
            }
        }
        Ok(self.chunk.as_mut())
    }
}
