//! Tables, trees, rows of groups and runs whose pages are damaged on the disk.

#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use mayfly_fuzz::generated;
use mayfly_fuzz::tables::{check, plausible};

fuzz_target!(|input: &[u8]| {
    check(input);
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    generated(data, max_size, seed, plausible)
        .unwrap_or_else(|| fuzzer_mutate(data, size, max_size))
});
