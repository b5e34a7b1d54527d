//! Which leaf the last change was in.
//!
//! **Owns** copies of that leaf's bounds. **Never** pins it.
//!
//! A change whose key lies within the bounds goes to the leaf without a descent. Bounds are
//! recorded only after two changes in a row fell into one leaf, so that changes at random places
//! do not pay for them.

/// A leaf and, once it pays, the bounds of the keys that belong to it.
#[derive(Debug, Default)]
pub(super) struct Hint {
    leaf: Option<u32>,
    /// Whether the bounds are those of the leaf.
    is_bounded: bool,
    /// Whether the next descent should record bounds.
    is_wanted: bool,
    low: Vec<u8>,
    high: Vec<u8>,
    has_high: bool,
}

impl Hint {
    /// The leaf that `key` belongs to, if it is this one.
    pub(super) fn leaf_of(&self, key: &[u8]) -> Option<u32> {
        let is_inside = self.is_bounded
            && (self.low.is_empty() || key >= &self.low[..])
            && (!self.has_high || key < &self.high[..]);
        self.leaf.filter(|_| is_inside)
    }

    /// Begins a descent; returns whether it should record bounds.
    pub(super) fn begin(&mut self) -> bool {
        if self.is_wanted {
            self.low.clear();
            self.high.clear();
            self.has_high = false;
        }
        self.is_bounded = false;
        self.is_wanted
    }

    /// The buffer of the lower bound, for a descent that found a closer one.
    pub(super) fn low_mut(&mut self) -> &mut Vec<u8> {
        &mut self.low
    }

    /// The same for the upper bound.
    pub(super) fn high_mut(&mut self) -> &mut Vec<u8> {
        self.has_high = true;
        &mut self.high
    }

    /// Ends a descent that went to `leaf`.
    pub(super) fn end(&mut self, leaf: u32) {
        self.is_bounded = self.is_wanted;
        self.is_wanted = self.leaf == Some(leaf);
        self.leaf = Some(leaf);
    }

    /// The leaf was cut and its right part is `right`; the last insertion went there or stayed.
    pub(super) fn cut(&mut self, separator: &[u8], right: u32, went_right: bool) {
        if went_right {
            self.low.clear();
            self.low.extend_from_slice(separator);
            self.leaf = Some(right);
        } else {
            self.high.clear();
            self.high.extend_from_slice(separator);
            self.has_high = true;
        }
    }

    /// The leaf is gone, or everything is.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    pub(super) fn leaf(&self) -> Option<u32> {
        self.leaf
    }
}
