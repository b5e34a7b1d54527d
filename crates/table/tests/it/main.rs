//! Tests of the public surface of `mayfly-table`: random data, models, faults.

mod batches;
mod by_key;
mod dictionaries;
mod drafts;
mod faults;
mod fuzz;
mod in_place;
mod journals;
mod kept_numbers;
mod keyed;
mod long_texts;
mod repeated_texts;
mod runs;
mod spaces;
mod stopped;
mod tables;
mod tree_faults;
mod trees;
