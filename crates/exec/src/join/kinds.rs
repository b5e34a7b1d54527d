//! What each kind of join does with rows that find partners and with those that find none.
//!
//! Of two sides one is in a table and the other streams past it. Which is which may change from one
//! pair of partitions to the next; what the join answers does not.

use datafusion::common::{JoinSide, JoinType};

/// What is made of the rows of one side alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Emit {
    /// Nothing: they are seen in pairs or not at all.
    Nothing,
    /// Rows without a partner, with NULLs for the other side.
    Padded,
    /// Rows with a partner, once.
    Matched,
    /// Rows without a partner.
    Unmatched,
    /// All rows, with a flag whether they have a partner.
    Marked,
}

impl Emit {
    /// Whether a row can be told only when all of the other side was seen.
    pub(crate) fn is_late(self) -> bool {
        matches!(self, Emit::Padded | Emit::Unmatched | Emit::Marked)
    }
}

/// The tasks of the sides of a join.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Roles {
    /// The side that is in the table.
    pub(crate) table: JoinSide,
    /// Whether pairs of rows are returned.
    pub(crate) has_pairs: bool,
    pub(crate) of_table: Emit,
    pub(crate) of_stream: Emit,
}

impl Roles {
    pub(crate) fn new(kind: JoinType, table: JoinSide) -> Roles {
        let (has_pairs, left, right) = match kind {
            JoinType::Inner => (true, Emit::Nothing, Emit::Nothing),
            JoinType::Left => (true, Emit::Padded, Emit::Nothing),
            JoinType::Right => (true, Emit::Nothing, Emit::Padded),
            JoinType::Full => (true, Emit::Padded, Emit::Padded),
            JoinType::LeftSemi => (false, Emit::Matched, Emit::Nothing),
            JoinType::RightSemi => (false, Emit::Nothing, Emit::Matched),
            JoinType::LeftAnti => (false, Emit::Unmatched, Emit::Nothing),
            JoinType::RightAnti => (false, Emit::Nothing, Emit::Unmatched),
            JoinType::LeftMark => (false, Emit::Marked, Emit::Nothing),
            JoinType::RightMark => (false, Emit::Nothing, Emit::Marked),
        };
        let (of_table, of_stream) = match table {
            JoinSide::Left => (left, right),
            _ => (right, left),
        };
        Roles {
            table,
            has_pairs,
            of_table,
            of_stream,
        }
    }

    /// Whether it must be known which rows of the table found a partner.
    pub(crate) fn marks_table(self) -> bool {
        self.of_table != Emit::Nothing
    }
}
