//! Tables that a query names more than once, and that are computed once.
//!
//! Owns: [`Materialized`], such a table to the planner; [`MaterializedScan`], which reads its rows;
//! [`WithMaterialized`], the root of a plan that has such tables. Never: decides which tables they
//! are, which is for the maker of the plan.
//!
//! ```text
//!   WithMaterialized
//!     |-- plan of the query ... MaterializedScan --+
//!     |                     ... MaterializedScan --+--> rows in pages (rows)
//!     `-- plan of the table ------------------------^   written by the first scan that is asked
//! ```
//!
//! Whichever scan is asked first starts the plan of the table, one task for each of its partitions;
//! all scans wait for it, since none of them may be left waiting for another one that its operator
//! does not ask. Rows belong to one run of a plan: [`MaterializedRows`] is an extension of
//! its task context, and a plan may run again.
//!
//! **Cost**: rows are copied into pages once, and read off them without a copy.

mod operator;
mod provider;
mod rows;
mod scan;
mod table;

pub use operator::WithMaterialized;
pub use rows::MaterializedRows;
pub use scan::MaterializedScan;
pub use table::Materialized;
