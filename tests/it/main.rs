//! The engine from outside: SQL logic tests at every budget, recorded answers, live comparison
//! with MariaDB, injected faults, cancellation, processes and their resident size, and the
//! aggregate against its model.

mod aggregate_states;
mod answers;
mod beyond_memory;
mod budgets;
mod by_key;
mod cancel;
mod differential;
mod digests;
mod distinct;
mod engine;
mod explain_files;
mod faults;
mod filters_by_name;
mod fuzz_sql;
mod groupings;
mod histories;
mod into;
mod long_literals;
mod long_results;
mod memory_division;
mod parquet_file;
mod partitioned;
mod planning;
mod points;
mod prepared;
mod process;
mod profiles;
mod queries;
mod recorded;
mod repeated;
mod resident_size;
mod row_groups;
mod row_values;
mod shared;
mod shortage;
mod sideways;
mod slt;
mod status;
mod temp_files;
mod text_files;
mod turns;
mod waiting;
mod watchdog;
mod whole_partitions;
