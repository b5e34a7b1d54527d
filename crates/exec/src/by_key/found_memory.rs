//! Memory for what a search by key finds.

use mayfly_space::{Account, Reservation};

/// The number of a row and its id.
pub(crate) const KEY_SCAN_ROW_BYTES: u64 = 16;
/// So little is not worth asking for.
pub(crate) const KEY_SCAN_FREE_BYTES: u64 = 64 << 10;

/// Memory for what a search finds, if it needs any; `None` if there is none.
pub(crate) fn reserved(account: &Account, bytes: u64) -> Option<Option<Reservation>> {
    match bytes >= KEY_SCAN_FREE_BYTES {
        true => account.reserve(bytes).ok().map(Some),
        false => Some(None),
    }
}
