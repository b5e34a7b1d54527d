//! The MySQL protocol, server side, behind three traits.
//!
//! **Owns** the bytes between a client and a server: packets, the handshake, passwords, TLS,
//! compression, commands, prepared statements as clients see them, and the form of values.
//!
//! **Never** reads SQL, knows a table, or keeps a row longer than it takes to send it. It does not
//! know sessions; a program implements [`Server`], [`Connection`] and [`Cursor`] for them.
//!
//! ```text
//!              +-------------------------------------------------------------+
//!   bytes      | receiver: frames -> packets        sender: packets -> frames |     ^ bytes
//!      |       +-----------|--------------------------------------^----------+     |
//!      |       | handshake, auth, tls                             |          |     |
//!      v       +-----------|--------------------------------------|----------+     |
//!   command    | command, parameters, statements    reply, rows, column      |   packets
//!              +-----------|--------------------------------------^----------+
//!                          v                                      |
//!                   Connection::query(text, reply)   reply.rows(columns), push_batch, finish
//! ```
//!
//! # Life of a command
//!
//! 1. One read of the socket brings the packet; its payload is a slice of the read buffer.
//! 2. [`Connection::query`] runs on the same task: what answers at once costs no hop. While it
//!    waits, the receiver watches for a client that goes away; then the future is dropped, which
//!    stops the statement.
//! 3. Rows are written from Arrow arrays, or from single [`Value`]s, into the one buffer of the
//!    connection. Whoever writes waits when 32 KiB have gathered and the client does not read.
//! 4. The last packet tells status, warnings and whether another result follows; one write sends
//!    what is left.
//!
//! # Strangers
//!
//! Bytes from outside are read by a checked reader, never by index, and sums of lengths that
//! clients name saturate. Before a user is known, a packet is short, buffers grow with what has
//! come and not with what is promised, and the whole handshake has a time limit. Clients that have
//! not logged in are few; one more makes the oldest of them go. Failed logins look alike and slow
//! down. What a client that has logged in makes the server hold, long packets, long data and long
//! rows, is granted by the program before it is taken.
//!
//! **Source**: the pages of MySQL's source documentation under "Client/Server Protocol", cited by
//! their titles; where they are silent, `sql/protocol_classic.cc`, `sql-common/net_serv.cc` and
//! what servers send.

#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![deny(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::arithmetic_side_effects,
        reason = "a test may fail by a panic"
    )
)]

mod aside;
mod auth;
mod balance;
mod bytes_in;
mod bytes_out;
mod clock;
mod column;
mod command;
mod compression;
mod conversation;
mod encoding;
mod endpoint;
mod error;
mod flags;
mod handshake;
mod listener;
mod local_infile;
mod login;
mod memory;
mod packets;
mod parameters;
mod pending;
mod receiver;
mod reply;
mod rows;
mod sender;
mod server;
mod settings;
mod statements;
mod summary;
mod tls;
mod value;

/// What rows come in.
pub use arrow_array::RecordBatch;

pub use auth::{Method, NoRandomness, Secret, ShaCryptHash};
pub use balance::{Balance, Counted};
pub use column::{BINARY_COLLATION_ID, ColumnDefinition, UTF8MB4_COLLATION_ID};
pub use encoding::TextEncoding;
pub use endpoint::Endpoint;
pub use error::{ConnectionError, Failure, too_many_connections};
pub use flags::{Capabilities, ColumnFlags, Refresh, ServerStatus};
pub use listener::{Incoming, Listener};
pub use local_infile::LocalFile;
pub use login::{Account, Login, Peer, TlsInfo};
pub use memory::Memory;
pub use parameters::Parameter;
pub use reply::Reply;
pub use rows::Rows;
pub use server::{
    Answered, Connection, Cursor, NoCursor, OpenCursor, Prepared, Server, StatementCommand,
};
pub use settings::Settings;
pub use summary::{SessionChange, Summary};
pub use tls::{Tls, TlsError};
pub use value::Value;
