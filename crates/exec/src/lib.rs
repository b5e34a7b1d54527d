//! DataFusion operators that live in a temp space: they sort and group more rows than memory
//! holds, under one budget, and leave nothing behind.
//!
//! **Owns** the physical operators, the rule that puts them into a plan, and the bridges that make
//! DataFusion's own operators use the same memory and the same file. **Never** sees SQL text, and
//! needs no other floor of Mayfly above it: a plain DataFusion program calls [`install`] and is
//! done.
//!
//! ```text
//!   install ---- rule       stock plan -> plan with our operators
//!            |-- governed   the last check: no operator of a plan exceeds the budget
//!            |-- memory     grants of stock operators  --+
//!            |-- temp_file  spills of stock operators  --+--> mayfly_space
//!   aggregate, join, sort, provider --> mayfly_table (rows, runs) --+
//!   by_key        rows that keys find: conditions, joins, orders
//!   short_plan    plans of few rows that run again and again; given_rows, unbound: their tables;
//!                 slots: their constants
//!   later_plan    plans of many rows whose operators are kept for the next run
//!   recursion     WITH RECURSIVE, level by level
//!   materialized  tables that a query names more than once, computed once
//!   window        window functions over sorted rows
//!   one_partition     those whose rows are all in one partition
//!   only_rows         those of a high stack, planned without statistics of their columns
//!   whole_partitions  those over whole partitions as joins with groups, without a sort
//!   join_order    the order of joins; estimate: how many rows are to be expected
//!   nested_loop   joins without an equality
//!   paced         rows in pieces for joins with a condition beside their keys
//!   long_rows     batches of few rows where rows are long
//!   batches       kernels over batches that several operators call; compact: what they keep alive
//!   exchange      rows on their way between partitions
//!   filter        conditions, term by term
//!   parquet_reads scans of Parquet files that ask for the memory of row groups
//!   kept_rows     scans for joins that keep what they read
//!   sideways  rows that a join above has no use for, dropped before they are grouped
//!   padding   what is not known of columns that are filled up with NULLs
//!   shared_run, page_classes, lock   what several operators do alike
//!   context, report   what a statement gives, what its temporary tables cost
//! ```

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod aggregate;
mod apply;
mod batches;
mod by_key;
mod collect;
mod compact;
pub mod context;
pub mod error;
mod estimate;
mod exchange;
mod filter;
mod given_rows;
mod governed;
mod install;
pub mod join;
mod join_order;
mod kept_rows;
mod later_plan;
mod lock;
mod long_rows;
mod materialized;
pub mod memory;
mod nested_loop;
mod one_partition;
mod only_rows;
mod open_scan;
mod other_columns;
mod paced;
mod padding;
mod page_classes;
mod parquet_reads;
mod plan_node;
pub mod provider;
mod reads;
mod recursion;
mod replay;
pub mod report;
pub mod rule;
mod run_values;
mod same_names;
mod scan_columns;
mod selection;
mod shared_run;
mod short_plan;
mod sideways;
pub mod slots;
pub mod sort;
mod source;
mod subquery_value;
mod table_scan;
mod tasks;
pub mod temp_file;
mod time_slice;
mod unbound;
mod whole_partitions;
pub mod window;

pub use apply::{ApplyOperator, SeveralRows, Yield};
pub use batches::batch_of;
pub use by_key::{Access, Found, KeyApply, KeyJoin, KeyOrder, KeyScan, LateScan, key_value};
pub use collect::collect_into;
pub use context::StatementContext;
pub use error::{find_space_error, space_error, table_error};
pub use filter::{FilterOperator, Kind, SilentFunction, filter_of, silent_names};
pub use given_rows::{GivenRows, GivenRowsScan};
pub use governed::{OnlyGoverned, UngovernedOperator, unspillable};
pub use install::{install, runtime};
pub use join::JoinOperator;
pub use later_plan::LaterPlan;
pub use long_rows::batch_rows;
pub use materialized::{Materialized, MaterializedRows, MaterializedScan, WithMaterialized};
pub use padding::{ForgetConstants, KnowPadding};
pub use parquet_reads::{RowGroupRefused, first_file};
pub use plan_node::known_rows;
pub use provider::TableSource;
pub use reads::{Searched, TableReads};
pub use recursion::{RecursionOperator, RecursionTooDeep, WorkRows};
pub use report::{Report, TempTable, Why, next_temp_table_id};
pub use rule::{PlannedTempTable, SwapOperators, planned_temp_tables, temp_tables_of};
pub use short_plan::{Filtered, ShortPlan, ShortRun, Size};
pub use sideways::SidewaysOperator;
pub use table_scan::TableScan;
pub use time_slice::TimeSlice;
pub use unbound::UnboundTable;
pub use whole_partitions::{ReadAgain, is_for_window};

#[cfg(test)]
mod tests;
