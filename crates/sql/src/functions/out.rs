//! Where values are written: the text of a function's result, or the bytes that go to a client.

/// Takes text piece by piece.
pub trait Out {
    /// Appends a text.
    fn push_str(&mut self, text: &str);

    /// Appends an ASCII character, `count` times.
    fn push_times(&mut self, character: u8, count: usize);

    /// Appends an ASCII character.
    fn push(&mut self, character: u8) {
        self.push_times(character, 1);
    }
}

impl Out for String {
    fn push_str(&mut self, text: &str) {
        self.push_str(text);
    }

    fn push_times(&mut self, character: u8, count: usize) {
        self.extend(std::iter::repeat_n(char::from(character), count));
    }
}

impl Out for Vec<u8> {
    fn push_str(&mut self, text: &str) {
        self.extend_from_slice(text.as_bytes());
    }

    fn push_times(&mut self, character: u8, count: usize) {
        self.extend(std::iter::repeat_n(character, count));
    }
}
