//! The protocol from outside: real clients, single packets, and strangers.

mod all_types;
mod async_client;
mod canned;
mod harness;
mod packets;
mod parrot;
mod random;
mod shell;
mod stranger;
mod strangers;
