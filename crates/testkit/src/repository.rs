//! Where the repository lies whose tests run.

use std::path::PathBuf;

/// A directory that only the root of the repository has.
const MARK: &str = "crates/testkit";

/// The root of the repository: cargo says when it runs a test which package that belongs to, and a
/// program that is run by hand stands in it.
///
/// It is asked for when the test runs. What was known when it was compiled may be another clone
/// with the same target directory, which cargo does not compile anew for.
///
/// # Panics
/// Outside of the repository.
pub fn repository() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = package.map_or_else(std::env::current_dir, Ok);
    let here = here.expect("a program stands in a directory");
    let root = here.ancestors().find(|above| above.join(MARK).is_dir());
    root.unwrap_or_else(|| panic!("{} is outside of the repository", here.display()))
        .to_path_buf()
}
