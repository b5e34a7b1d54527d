//! The files below a directory as an object store, for formats that DataFusion reads: Parquet.
//!
//! Names are listed by the store of the file system; each file is opened by [`FileAccess`], so that
//! nothing outside of the directory is read whatever happens to it meanwhile.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use bytes::Bytes;
use datafusion::object_store::local::LocalFileSystem;
use datafusion::object_store::path::Path;
use datafusion::object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use futures::StreamExt;
use futures::stream::BoxStream;

use crate::file_access::FileAccess;

const NAME: &str = "files below secure_file_priv";

/// Files that statements may name; never writes.
#[derive(Debug)]
pub(crate) struct FilesBelow {
    access: FileAccess,
    names: LocalFileSystem,
}

impl FilesBelow {
    pub(crate) fn new(access: FileAccess) -> FilesBelow {
        FilesBelow {
            access,
            names: LocalFileSystem::new(),
        }
    }
}

impl fmt::Display for FilesBelow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }
}

#[async_trait::async_trait]
impl ObjectStore for FilesBelow {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let path = format!("/{location}");
        let failed = |error| failed(&path, error);
        let file = self.access.open_regular(&path).map_err(&failed)?;
        let found = file.metadata().map_err(&failed)?;
        let modified = found.modified().map_err(&failed)?;
        let meta = ObjectMeta {
            location: location.clone(),
            last_modified: modified.into(),
            size: found.len(),
            e_tag: None,
            version: None,
        };
        options.check_preconditions(&meta)?;
        let range = match options.range {
            None => 0..meta.size,
            Some(range) => range
                .as_range(meta.size)
                .map_err(|error| generic(io::Error::other(error)))?,
        };
        Ok(GetResult {
            payload: GetResultPayload::File(file, path.into()),
            meta,
            range,
            attributes: Default::default(),
        })
    }

    /// Each range by itself: readers hold memory for what they ask for, not for what lies between.
    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let (access, path, ranges) = (self.access.clone(), format!("/{location}"), ranges.to_vec());
        let read = tokio::task::spawn_blocking(move || {
            let failed = |error| failed(&path, error);
            let file = access.open_regular(&path).map_err(failed)?;
            let ranges = ranges.into_iter();
            ranges
                .map(|range| read_range(&file, range).map_err(failed))
                .collect()
        });
        read.await
            .unwrap_or_else(|error| Err(generic(error.into())))
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.names.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.names.list_with_delimiter(prefix).await
    }

    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        Err(Error::NotImplemented {
            operation: "writing".to_owned(),
            implementer: NAME.to_owned(),
        })
    }

    async fn put_multipart_opts(
        &self,
        _: &Path,
        _: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Err(Error::NotImplemented {
            operation: "writing".to_owned(),
            implementer: NAME.to_owned(),
        })
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let refused = |_| {
            Err(Error::NotImplemented {
                operation: "deleting".to_owned(),
                implementer: NAME.to_owned(),
            })
        };
        locations.map(refused).boxed()
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        Err(Error::NotImplemented {
            operation: "copying".to_owned(),
            implementer: NAME.to_owned(),
        })
    }
}

fn read_range(file: &File, range: Range<u64>) -> io::Result<Bytes> {
    let length = range.end.saturating_sub(range.start);
    let mut bytes = Vec::with_capacity(usize::try_from(length).map_err(io::Error::other)?);
    let mut file = file;
    file.seek(SeekFrom::Start(range.start))?;
    match file.take(length).read_to_end(&mut bytes)? as u64 {
        read if read == length => Ok(bytes.into()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn failed(path: &str, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => Error::NotFound {
            path: path.to_owned(),
            source: error.into(),
        },
        _ => generic(error),
    }
}

fn generic(error: io::Error) -> Error {
    Error::Generic {
        store: NAME,
        source: error.into(),
    }
}
