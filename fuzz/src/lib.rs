//! The fuzz targets: functions over bytes that live in the tests of the crates that they fuzz,
//! where they run on the stable toolchain too. CONTRIBUTING.md says how to add one.

#![forbid(unsafe_code)]

// The field that a column has in a batch, which these types ask the tests for.
mod canned {
    use arrow_schema::Field;
    use mayfly_wire::ColumnDefinition;

    pub fn field(column: &ColumnDefinition) -> Field {
        column.column_type.to_arrow(&column.name, column.nullable)
    }
}
#[path = "../../crates/wire/tests/it/all_types.rs"]
pub mod all_types;

/// The target of the crate `space`.
#[path = "../../crates/space/tests/space/fuzz/extents.rs"]
pub mod extents;

/// The target of the crate `table`.
#[path = "../../crates/table/tests/it/fuzz/damage.rs"]
pub mod tables;

/// Targets of the crate `records`. Paths as below.
#[path = "."]
pub mod records {
    #[path = "../../crates/records/tests/it/csv.rs"]
    pub mod csv;
    #[path = "../../crates/records/tests/it/delimited.rs"]
    pub mod delimited;
    #[path = "../../crates/records/tests/it/json.rs"]
    pub mod json;
}

/// Targets of the crate `wire`. Paths inside are from this directory: one that does not exist has
/// no parent.
#[path = "."]
pub mod wire {
    #[path = "../../crates/wire/tests/it/fuzz/client.rs"]
    pub mod client;
    #[path = "../../crates/wire/tests/it/fuzz/conversation.rs"]
    pub mod conversation;
    #[path = "../../crates/wire/tests/it/fuzz/parrot.rs"]
    pub mod parrot;
    #[path = "../../crates/wire/tests/it/fuzz/prepared/mod.rs"]
    pub mod prepared;
}

use mayfly_testkit::Random;

pub use libfuzzer_sys;

/// A target for libFuzzer: the function that checks bytes, and the one that makes some of a seed.
#[macro_export]
macro_rules! target {
    ($check:path, $plausible:path) => {
        use $crate::libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

        fuzz_target!(|input: &[u8]| {
            $check(input);
        });

        fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            $crate::generated(data, max_size, seed, $plausible)
                .unwrap_or_else(|| fuzzer_mutate(data, size, max_size))
        });
    };
}

/// Replaces one input in sixteen by what `generate` makes of a seed, so that libFuzzer has what a
/// client could mean from the beginning; `None` for the others.
pub fn generated(
    data: &mut [u8],
    max_size: usize,
    seed: u32,
    generate: impl Fn(&mut Random) -> Vec<u8>,
) -> Option<usize> {
    if seed % 16 != 0 {
        return None;
    }
    let input = generate(&mut Random::new(u64::from(seed)));
    let len = input.len().min(max_size).min(data.len());
    data[..len].copy_from_slice(&input[..len]);
    Some(len)
}
