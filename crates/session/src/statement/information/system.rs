//! What every file of these databases names.

use super::super::Job;
use crate::listing::Listing;

/// The name of the database of accounts and logs.
pub(super) const MYSQL: &str = "mysql";

/// The catalog that everything is in.
pub(super) const CATALOG: &str = "def";

pub(super) type Make = fn(&Job) -> Listing;
