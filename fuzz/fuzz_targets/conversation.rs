//! What a client may say, from its first byte to its last: handshakes, compressed frames, and every
//! command.

#![no_main]

mayfly_fuzz::target!(
    mayfly_fuzz::wire::conversation::converse,
    mayfly_fuzz::wire::conversation::plausible
);
