//! The digest of a statement, made when somebody asks for it.

use std::sync::{Arc, OnceLock};

use mayfly_sql::digest::Digest;

/// Where those who come again remember their digest.
pub(crate) type DigestCell = OnceLock<Arc<Digest>>;
