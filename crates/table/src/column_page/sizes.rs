//! Sizes that every page shares.

pub(super) const HEADER_BYTES: usize = 64;
pub(super) const ENTRY_BYTES: usize = 32;
/// Arrow's recommended alignment: a cache line, and the widest vector register.
pub(crate) const ALIGNMENT: usize = 64;

pub(super) const fn align(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}

/// What texts take in pages where those that repeat are codes, of what they take as they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextShare {
    pub(super) stored_bytes: usize,
    pub(super) plain_bytes: usize,
}

impl TextShare {
    /// All of it: nothing is known yet.
    pub(crate) const ALL: TextShare = TextShare {
        stored_bytes: 1,
        plain_bytes: 1,
    };

    /// What texts of so many bytes take, if they are like those that this was seen of.
    pub(super) fn of(self, bytes: usize) -> usize {
        let part = bytes as u128 * self.stored_bytes as u128 / self.plain_bytes.max(1) as u128;
        usize::try_from(part).unwrap_or(bytes)
    }
}

/// Values longer than this, a cache line, have their first bytes stored apart.
pub(crate) const PREFIXED_BYTES: usize = 64;
/// What a view holds of a value that is not in it.
pub(crate) const PREFIX_BYTES: usize = 4;
