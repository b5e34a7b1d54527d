//! Records of text files: CSV, JSON, and the delimited format of LOAD DATA.
//!
//! Owns where a record begins and ends, what its fields are, and which types their texts have.
//! **Never** opens a file, and knows neither tables nor Arrow.
//!
//! ```text
//!   bytes --[ChunkReader]--> chunks of whole records --[CsvReader, JsonReader]--> cells --> Guess
//!                                                                                   \--> value::*
//!   pieces of a client's file --[Delimited]--> one record after the other
//! ```
//!
//! Cutting a file into chunks is sequential and cheap; what is in a chunk can be read on any
//! thread. A record is never split, so each chunk knows the line on which it begins.
//!
//! **Promises.** No record is lost: every byte of a file is part of a record, of a blank line or of
//! an error. A record has a limit, and its memory is granted before it grows ([`Reserve`]). What is
//! kept for each field is kept for as many fields as there are columns, whatever a record has; the
//! others are only counted. Errors name the line on which the record begins. Nothing here panics,
//! whatever the bytes.
//!
//! **Cost.** One pass of `memchr` to cut, one pass to read fields; fields stay where they lie.

#![forbid(unsafe_code)]
#![deny(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    missing_docs
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "tests may fail"
    )
)]

mod array;
mod cells;
mod chunk;
mod csv;
mod delimited;
mod error;
mod guess;
mod json;
mod json_text;
mod lines;
mod split;
pub mod value;

pub use cells::{Cell, Cells, Kind, Texts};
pub use chunk::{Chunk, ChunkReader, ChunkStep, Limits, Reserve, Unlimited};
pub use csv::{CsvReader, NullTexts};
pub use delimited::{Delimited, Delimiters, Record, Step};
pub use error::Error;
pub use guess::{Guess, TextType};
pub use json::JsonReader;
pub use json_text::write_json;
pub use split::{CsvSyntax, Format};

/// Characters of the longest name of a column that a file may give: those of MySQL's longest alias.
pub const NAME_CHARACTERS_MAX: usize = 256;
