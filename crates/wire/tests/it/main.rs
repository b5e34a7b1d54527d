//! The protocol from outside: real clients, single packets, and strangers.

mod all_types;
mod async_client;
mod canned;
mod fuzz;
mod harness;
mod memory;
mod packets;
mod shell;
mod strangers;
