//! The fuzz targets of this crate, run on their corpus, what they generate and mutations of it.
//! `fuzz/fuzz_targets/` hands the same functions to libFuzzer.

mod damage;

use mayfly_testkit::FuzzTarget;

/// A bit in each of the first pieces of 16 KiB of the file. Which of them are in use depends on
/// what the background writer wrote twice.
fn bits_all_over() -> Vec<u8> {
    let place = |piece: u16| (16 + piece * 1024).to_le_bytes();
    let flip = |piece| [place(piece).as_slice(), &[0, 1]].concat();
    (0..8).flat_map(flip).collect()
}

/// The damage is where the pages are, whatever they hold.
#[test]
fn flipped_bits_lose_something_of_each_structure() {
    for structure in 0..damage::STRUCTURES {
        for codec in 0..3 {
            let head = [codec, 0, structure, 200, 7];
            assert_eq!(damage::failures(&head), 0, "{structure} as it was");
            let input = [&head[..], &bits_all_over()].concat();
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
