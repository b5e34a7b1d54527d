//! The budgets at which the same statements must give the same rows.

const MIB: u64 = 1 << 20;

/// More than any test needs.
pub const UNLIMITED: u64 = 1 << 30;

/// The smallest budget at which every statement of the tests finishes.
pub const MINIMUM: u64 = 4 * MIB;

/// Some of the tables of the tests have room in it.
pub const ROOMY: u64 = 64 * MIB;

/// At this budget statements on some MB of rows write to disk.
pub const SPILLING: u64 = 8 * MIB;

/// From the largest to the smallest.
pub const ALL: [u64; 4] = [UNLIMITED, ROOMY, SPILLING, MINIMUM];
