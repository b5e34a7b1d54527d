//! Sizes that every page shares.

pub(super) const HEADER_BYTES: usize = 64;
pub(super) const ENTRY_BYTES: usize = 32;
/// Arrow's recommended alignment: a cache line, and the widest vector register.
pub(crate) const ALIGNMENT: usize = 64;

pub(super) const fn align(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}

/// Values longer than this, a cache line, have their first bytes stored apart.
pub(crate) const PREFIXED_BYTES: usize = 64;
/// What a view holds of a value that is not in it.
pub(crate) const PREFIX_BYTES: usize = 4;
