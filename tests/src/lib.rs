//! What the integration tests and the recorder of expected answers share: a private MariaDB, and
//! the list of SQL logic tests.
//!
//! **Owns** server processes that it starts, each with a data directory and a socket of its own
//! that end with it. **Never** talks to a server that was there before.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod mariadb;
pub mod scripts;
