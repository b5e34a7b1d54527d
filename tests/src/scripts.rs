//! The SQL logic tests on disk.

use std::path::{Path, PathBuf};

/// The directory of the SQL logic tests.
pub fn directory() -> PathBuf {
    mayfly_testkit::repository().join("tests/slt")
}

/// The root of the repository, for the variable `__REPOSITORY__` of the tests.
pub fn repository() -> String {
    mayfly_testkit::repository().display().to_string()
}

/// All SQL logic tests, sorted by name.
///
/// # Panics
/// If the directory cannot be read.
pub fn all() -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(&directory(), &mut found);
    found.sort();
    found
}

fn collect(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("the directory of the tests is there") {
        let path = entry
            .expect("the directory of the tests can be read")
            .path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "slt") {
            found.push(path);
        }
    }
}
