//! Table maintenance: ANALYZE, CHECK, CHECKSUM, OPTIMIZE and REPAIR TABLE.

use super::name::TableName;

/// What is done with tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaintenanceKind {
    /// ANALYZE TABLE.
    Analyze,
    /// CHECK TABLE.
    Check,
    /// CHECKSUM TABLE; QUICK asks for a checksum that is kept.
    Checksum {
        /// Whether QUICK was written.
        quick: bool,
    },
    /// OPTIMIZE TABLE.
    Optimize,
    /// REPAIR TABLE.
    Repair,
}

/// A statement of table maintenance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Maintenance {
    /// What is done.
    pub kind: MaintenanceKind,
    /// The tables, one at least, as they are named.
    pub tables: Vec<TableName>,
}

impl Maintenance {
    /// Whether it commits what was open: all but CHECKSUM do.
    pub fn ends_transaction(&self) -> bool {
        !matches!(self.kind, MaintenanceKind::Checksum { .. })
    }
}
