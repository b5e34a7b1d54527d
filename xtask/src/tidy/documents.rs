//! Documents name what exists: paths, and every dependency with its reason.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

use super::imports;

const DEPENDENCIES: &str = "docs/dependencies.md";
/// Documents whose paths must exist.
const DOCUMENTS: [&str; 5] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "COMPAT.md",
    "demo/README.md",
];

pub fn check(root: &Path, files: &[String]) -> Result<Vec<String>> {
    let mut problems = check_dependencies(root)?;
    for document in DOCUMENTS {
        if !files.iter().any(|path| path == document) {
            problems.push(format!("{document} is missing"));
            continue;
        }
        let text = std::fs::read_to_string(root.join(document)).context(document)?;
        for path in quoted(&text).filter(|word| is_path(word)) {
            if !root.join(path.trim_end_matches('/')).exists() {
                problems.push(format!("{document}: names '{path}', which does not exist"));
            }
        }
    }
    Ok(problems)
}

/// Every crate from outside has its line, and no line speaks of a crate that is gone.
fn check_dependencies(root: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(root.join(DEPENDENCIES)).context(DEPENDENCIES)?;
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    let listed: BTreeSet<&str> = rows
        .flat_map(|line| quoted(line.split('|').nth(1).unwrap_or("")))
        .collect();
    let packages = imports::metadata(root)?.packages;
    let used: BTreeSet<&str> = packages
        .iter()
        .flat_map(|package| &package.dependencies)
        .filter(|dependency| dependency.path.is_none())
        .map(|dependency| dependency.name.as_str())
        .collect();
    let missing = used
        .difference(&listed)
        .map(|name| format!("'{name}' has no line"));
    let stale = listed
        .difference(&used)
        .map(|name| format!("nothing uses '{name}'"));
    Ok(missing
        .chain(stale)
        .map(|problem| format!("{DEPENDENCIES}: {problem}"))
        .collect())
}

/// What stands between single backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// Whether a quoted word claims to be a path of this repository.
fn is_path(word: &str) -> bool {
    const ROOTS: [&str; 10] = [
        "crates/",
        "bench/",
        "tests/",
        "xtask/",
        "demo/",
        "docs/",
        ".ci/",
        "fuzz/",
        ".cargo/",
        "packaging/",
    ];
    let plain = word
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte));
    let file = !word.contains('/') && (word.ends_with(".md") || word.ends_with(".toml"));
    plain && (ROOTS.iter().any(|root| word.starts_with(root)) || file)
}
