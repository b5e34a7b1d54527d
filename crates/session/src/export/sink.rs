//! The bytes of a text file on their way to the disk, through a compressor if its name says so.

use std::io::{self, Write};
use std::sync::Arc;

use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use flate2::Compression;
use flate2::write::GzEncoder;
use mayfly_types::MySqlError;

use crate::errors;
use crate::new_file::NewFile;

/// What a compressor of gzip takes: two windows of 32 KiB, hash chains, and what is to be written.
const GZIP_BYTES: usize = 512 << 10;
/// What one of zstd takes at its default level: a window of 2 MiB, tables of 1 MiB, and blocks.
const ZSTD_BYTES: usize = 4 << 20;

/// Where the bytes of a text file go.
pub(super) struct Sink {
    encoder: Encoder,
    /// Of the compressor.
    _memory: MemoryReservation,
}

enum Encoder {
    Plain(NewFile),
    Gzip(GzEncoder<NewFile>),
    Zstd(zstd::Encoder<'static, NewFile>),
}

/// Checks that text can be written in a compression.
///
/// # Errors
/// 1235 if it can only be read.
pub(super) fn check(compression: FileCompressionType) -> Result<(), MySqlError> {
    let name = if compression == FileCompressionType::BZIP2 {
        ".bz2"
    } else if compression == FileCompressionType::XZ {
        ".xz"
    } else {
        return Ok(());
    };
    let what = format!("INTO OUTFILE with a name that ends in {name}");
    Err(errors::not_supported(&what))
}

impl Sink {
    /// Begins the file.
    ///
    /// # Errors
    /// 1038 if its compressor finds no memory.
    pub(super) fn new(
        file: NewFile,
        compression: FileCompressionType,
        pool: &Arc<dyn MemoryPool>,
    ) -> Result<Sink, MySqlError> {
        let memory = MemoryConsumer::new("compressors of written files").register(pool);
        let reserve = |bytes| {
            let reserved = memory.try_grow(bytes);
            reserved.map_err(|error| errors::from_plan(&error))
        };
        let encoder = if compression == FileCompressionType::GZIP {
            reserve(GZIP_BYTES)?;
            Encoder::Gzip(GzEncoder::new(file, Compression::default()))
        } else if compression == FileCompressionType::ZSTD {
            reserve(ZSTD_BYTES)?;
            let path = file.path().to_owned();
            let encoder = zstd::Encoder::new(file, zstd::DEFAULT_COMPRESSION_LEVEL);
            Encoder::Zstd(encoder.map_err(|error| crate::new_file::cannot_write(&path, &error))?)
        } else {
            Encoder::Plain(file)
        };
        Ok(Sink {
            encoder,
            _memory: memory,
        })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.encoder {
            Encoder::Plain(file) => file.write_all(bytes),
            Encoder::Gzip(encoder) => encoder.write_all(bytes),
            Encoder::Zstd(encoder) => encoder.write_all(bytes),
        }
    }

    /// Writes what the compressor still holds.
    pub(super) fn finish(self) -> io::Result<NewFile> {
        match self.encoder {
            Encoder::Plain(file) => Ok(file),
            Encoder::Gzip(encoder) => encoder.finish(),
            Encoder::Zstd(encoder) => encoder.finish(),
        }
    }
}
