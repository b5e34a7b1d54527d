//! What the contenders and the scripts are called in the tables.

pub(super) const CREATE_SCRIPT: &str = "create and drop";
pub(super) const KEYS_SCRIPT: &str = "create and drop with 16 keys";
pub(super) const ROWS_SCRIPT: &str = "rows";
pub(super) const BATCHES_SCRIPT: &str = "batches";
pub(super) const BEYOND_SCRIPT: &str = "beyond memory";

pub(super) const MAYFLY: &str = "Mayfly";
pub(super) const EMBEDDED: &str = "Mayfly embedded";
pub(super) const WIRE: &str = "Mayfly, over the wire";
pub(super) const COMPRESSED: &str = "Mayfly compressed";
pub(super) const INNODB: &str = "InnoDB";
pub(super) const MEMORY: &str = "MEMORY";
pub(super) const MAYFLY_QUARTER: &str = "Mayfly, 1/4";

/// The storage engines of MariaDB, fastest client first.
pub(super) const MARIADB: [&str; 5] = [INNODB, "Aria", "MyISAM", MEMORY, "MEMORY piped"];
