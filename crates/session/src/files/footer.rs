//! The end of a Parquet file, checked before the file is read: the place of its description.
//!
//! **Source**: "Apache Parquet: File Format".

use std::io::{Read, Seek, SeekFrom};

use mayfly_types::MySqlError;

use super::wrong::cannot_open;
use super::wrong::read_error;
use crate::file_access::FileAccess;

/// What a Parquet file begins and ends with; the end of one whose description is encrypted.
const MAGIC: [u8; 4] = *b"PAR1";
const ENCRYPTED: [u8; 4] = *b"PARE";
/// The length of the description, and the magic number.
const FOOTER_BYTES: usize = 8;
/// The footer behind the magic number of the beginning.
const BYTES_MIN: u64 = 12;

/// Checks that a file has room for the description that its end tells of.
///
/// # Errors
/// 1024 if it has not, or is no Parquet file.
pub(super) fn check(access: &FileAccess, path: &str) -> Result<(), MySqlError> {
    let failed = |error: std::io::Error| cannot_open(path, &error);
    let mut file = access.open_regular(path).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    let Some(room) = bytes.checked_sub(BYTES_MIN) else {
        let what = format!("{bytes} bytes are too few for a Parquet file");
        return Err(read_error(path, what));
    };
    let mut footer = [0; FOOTER_BYTES];
    let end = bytes.saturating_sub(FOOTER_BYTES as u64);
    file.seek(SeekFrom::Start(end)).map_err(failed)?;
    file.read_exact(&mut footer).map_err(failed)?;
    let [l0, l1, l2, l3, magic @ ..] = footer;
    if magic != MAGIC && magic != ENCRYPTED {
        return Err(read_error(path, "it does not end as a Parquet file does"));
    }
    let length = u32::from_le_bytes([l0, l1, l2, l3]);
    if u64::from(length) > room {
        let what = format!(
            "its description has {length} bytes, more than the file of {bytes} bytes has room for"
        );
        return Err(read_error(path, what));
    }
    Ok(())
}
