//! The fuzz targets of this crate, run on their corpus, what they generate and mutations of it.
//! `fuzz/fuzz_targets/` hands the same functions to libFuzzer.

mod extents;

use mayfly_testkit::FuzzTarget;

/// The damage is where the pages are.
#[test]
fn one_flipped_bit_loses_one_page() {
    // Four raw pages, and then one with a bit changed: sixteen bytes a step.
    let intact = [0, 0, 3, 0, 7, 0, 9, 0, 11, 0, 13];
    assert_eq!(extents::lost_pages(&intact), 0);
    assert_eq!(
        extents::lost_pages(&[&intact[..], &[3, 0, 0, 1]].concat()),
        1
    );
    // From the last bytes of the first page into the second.
    assert_eq!(
        extents::lost_pages(&[&intact[..], &[255, 0, 31, 1]].concat()),
        2
    );
}

#[test]
fn damaged_extents_are_typed_errors() {
    FuzzTarget::new("extents", &extents::check)
        .generate(&extents::plausible)
        .inputs(400)
        .check();
}
