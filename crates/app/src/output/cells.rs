//! One row as text.

/// The cells of one row in one buffer, used again for each row.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    bytes: Vec<u8>,
    /// End of each cell in `bytes`, and whether it is NULL.
    ends: Vec<(usize, bool)>,
}

impl Cells {
    /// Forgets the row.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// The buffer to append the next cell to, before [`Cells::end`].
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Ends the cell that was appended.
    pub fn end(&mut self) {
        self.ends.push((self.bytes.len(), false));
    }

    /// Adds a NULL.
    pub fn null(&mut self) {
        self.ends.push((self.bytes.len(), true));
    }

    /// The cells in order; `None` is NULL.
    pub fn iter(&self) -> impl Iterator<Item = Option<&[u8]>> {
        let mut begin = 0;
        self.ends.iter().map(move |&(end, null)| {
            let cell = &self.bytes[begin..end];
            begin = end;
            (!null).then_some(cell)
        })
    }

    /// Bytes of text held.
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }
}
