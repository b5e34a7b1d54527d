//! What a client may say, from its first byte to its last: handshakes, compressed frames, and every
//! command. The test `random` of the crate `wire` says the same for some seconds.

#![no_main]

// The field that a column has in a batch, which these types ask the tests for.
mod canned {
    use arrow_schema::Field;
    use mayfly_wire::ColumnDefinition;

    pub fn field(column: &ColumnDefinition) -> Field {
        column.column_type.to_arrow(&column.name, column.nullable)
    }
}
#[path = "../../crates/wire/tests/it/all_types.rs"]
mod all_types;
#[path = "../../crates/wire/tests/it/parrot.rs"]
mod parrot;
#[allow(dead_code, reason = "parts of it are for the test")]
#[path = "../../crates/wire/tests/it/stranger.rs"]
mod stranger;

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fuzz_target!(|input: &[u8]| {
    stranger::converse(input);
});

// Now and then something new that a client could mean, so that no corpus needs to be kept.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed % 16 != 0 {
        return fuzzer_mutate(data, size, max_size);
    }
    let input = stranger::plausible(u64::from(seed));
    let len = input.len().min(max_size).min(data.len());
    data[..len].copy_from_slice(&input[..len]);
    len
});
