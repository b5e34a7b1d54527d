//! The program as its users meet it: arguments, streams, exit codes, signals, a terminal.
//!
//! Nothing here links the engine; each test starts the binary.

mod bench;
mod errors;
mod formats;
mod interactive;
mod program;
mod scripts;
mod serve;
mod signals;
