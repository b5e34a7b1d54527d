//! A statement taken apart: its shape, and what it gives besides.

use mayfly_sql::literal::Literal;
use mayfly_sql::template::Template;

/// Bytes of a statement that runs on the thread that asks: some hundred rows, a millisecond.
pub(super) const SHORT_BYTES_MAX: usize = 16 << 10;

/// A statement taken apart.
pub(crate) struct Apart<'a> {
    pub(super) shape: Vec<u8>,
    pub(super) given: Given<'a>,
}

/// What a statement gives besides its shape.
#[derive(PartialEq, Eq)]
pub(super) struct Given<'a> {
    pub(super) constants: Vec<Option<Literal<'a>>>,
    /// How many rows an INSERT has.
    pub(super) rows: usize,
}

impl<'a> Apart<'a> {
    /// Takes a statement apart; `None` if it has no shape.
    pub(super) fn of(text: &'a str) -> Option<Apart<'a>> {
        let Template {
            shape,
            constants,
            rows,
        } = Template::read(text)?;
        Some(Apart {
            shape,
            given: Given { constants, rows },
        })
    }

    /// The same of one that may run on the thread that asks. Its constants are few enough to take
    /// no memory that counts.
    pub(crate) fn of_short(text: &'a str) -> Option<Apart<'a>> {
        match text.len() <= SHORT_BYTES_MAX {
            true => Apart::of(text),
            false => None,
        }
    }
}
