//! What tests share: faults, damage, seeded data, budgets, an allocator that counts, runs of fuzz
//! targets, the place of the repository.
//!
//! **Owns** nothing at run time. **Never** a normal dependency of anything but the crate of tests:
//! others name it under `[dev-dependencies]` only.

#![warn(missing_docs)]

mod allocator;
mod budgets;
mod damage;
mod data;
mod faults;
mod faulty_disk;
mod fuzz;
mod repository;

pub use allocator::CountingAllocator;
pub use budgets::{BUDGETS, budgets, space_of};
pub use damage::{Damage, DamagedSpace, plausible_damage, push_out};
pub use data::{Random, Zipf};
pub use faults::{FaultPlan, until_it_passes};
pub use faulty_disk::FaultyDisk;
pub use fuzz::{FuzzRun, FuzzTarget};
pub use repository::repository;
