//! Joins without an equality: each row of one side is compared with each row of the other.
//!
//! ```text
//!  left  -> LeftRows (pages that may leave memory)
//!  right -> batch --past each page of left rows--> pairs that the condition keeps -> results
//!           the last stream to end: left rows without a partner                   -> results
//! ```
//!
//! **How.** The left side is read once, into pages. Each partition of the right side streams past
//! them, one batch at a time, which is not small (`gathered`). Of a batch and a page, the rows of
//! the shorter one are taken one by one, and the condition is evaluated for that row beside all
//! rows of the other. Where a row need not be compared any more, because it has a partner and is
//! returned once, it is left out; where no left row need be, the right side is not read on.
//!
//! **Bounds.** Comparisons like `a.n < b.n` are not evaluated at all where nothing forbids it: the
//! page is sorted by `a.n`, and a row of the right side has its candidates side by side (`bounds`).
//! The rest of the condition is evaluated for these only. Many candidates of a row are slices of
//! the sorted page; those of several rows with few of them are taken together.
//!
//! **Why ours.** DataFusion's operator compares a batch with its whole left side before it lets
//! others run or the statement end: 8192 rows against 100,000 are 800 million pairs. Where its left
//! side has no room, it executes that side again for each partition of the right one, and left rows
//! for themselves come once from each.
//!
//! **Cost.** The columns of a page that are compared are copied once for each batch, in the time in
//! which the condition is evaluated for a row or two. Between two rows others have their turn,
//! which takes some 30 ns. With bounds the copy is sorted, and each row of the batch is looked up
//! in it.
//!
//! **Never** reorders what a condition asks, and knows nothing of keys: that is `join`.
//!
//! **Source.** Block nested loops join (Graefe, "Query Evaluation Techniques for Large Databases",
//! ACM Computing Surveys 25(2), 1993, section 5.1); with bounds, one whose inner block is looked up
//! in an order that is made for it, as by a temporary index (section 5.1 there, too).

mod bounds;
mod gathered;
mod left_rows;
mod operator;
mod pair;
mod partners;
mod run;
mod spec;
mod stream;
#[cfg(test)]
mod tests;

pub(crate) use operator::{NestedLoopOperator, replace};
