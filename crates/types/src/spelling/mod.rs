//! How MySQL spells values: numbers, days and times, texts inside a document.
//!
//! **Owns** the text of a value, for all who write one: functions such as CONCAT, the shell, the
//! protocol. What is one spelling to a user is one function here.
//!
//! **Never** knows where a value lies: it is handed over as a Rust number or text.

mod bytes;
mod calendar;
mod document;
mod fitted;
mod number;

pub use bytes::shown_bytes;
pub use calendar::{
    DAY_MICROS, SECOND_MICROS, date_of, write_date, write_moment, write_padded, write_time,
    write_two,
};
pub use document::write_quoted;
pub use fitted::fitted_double;
pub use number::{write_decimal, write_digits, write_double, write_fixed, write_float};

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
