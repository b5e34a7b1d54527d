//! The fuzz targets of this crate, run on their corpus, what they generate and mutations of it.
//! `fuzz/fuzz_targets/` hands the same functions to libFuzzer.

mod damage;

use mayfly_testkit::FuzzTarget;

/// One bit of the first bytes of the file, which are in use.
const ONE_BIT: [u8; 8] = [16, 0, 0, 1, 0, 0, 0, 0];

/// The damage is where the pages are, whatever they hold.
#[test]
fn a_flipped_bit_loses_something_of_each_structure() {
    for structure in 0..damage::STRUCTURES {
        for codec in 0..3 {
            let head = [codec, 0, structure, 200, 7];
            assert_eq!(damage::failures(&head), 0, "{structure} as it was");
            let input = [&head[..], &ONE_BIT].concat();
            assert!(damage::failures(&input) > 0, "{structure}, codec {codec}");
        }
    }
}

#[test]
fn damaged_tables_are_typed_errors() {
    FuzzTarget::new("tables", &damage::check)
        .generate(&damage::plausible)
        .inputs(400)
        .check();
}
