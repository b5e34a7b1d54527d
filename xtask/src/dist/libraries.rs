//! What is linked into the program, with the licences that go where it goes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::release::{PACKAGE, Package, Workspace};
use crate::repository::{cargo, text_of};

/// How the files begin that hold the terms of a library.
const TERMS: [&str; 6] = [
    "copying",
    "copyright",
    "licence",
    "license",
    "notice",
    "unlicense",
];

/// The list of libraries in the program, and the text of each licence once.
pub fn text(root: &Path, workspace: &Workspace) -> Result<String> {
    // With the features that are on: what `cargo metadata` resolves is more than what is built.
    let tree = text_of(
        cargo()
            .args(["tree", "--locked", "--package", PACKAGE])
            .args(["--edges", "normal,no-proc-macro"])
            .args(["--prefix", "none", "--format", "{p}"])
            .current_dir(root),
    )?;
    write(&linked(workspace, &tree))
}

/// The crates from outside whose names and versions stand in a tree: `arrow v59.3.2`, and `(*)`
/// behind those that stood there before.
fn linked<'a>(workspace: &'a Workspace, tree: &str) -> Vec<&'a Package> {
    let names = tree.lines().filter_map(|line| {
        let mut words = line.split(' ');
        Some((words.next()?, words.next()?.strip_prefix('v')?))
    });
    let names: BTreeSet<(&str, &str)> = names.collect();
    let packages = workspace.packages.iter();
    let mut linked: Vec<&Package> = packages
        .filter(|package| package.source.is_some())
        .filter(|package| names.contains(&(package.name.as_str(), package.version.as_str())))
        .collect();
    linked.sort_by_key(|package| (&package.name, &package.version));
    linked
}

fn write(packages: &[&Package]) -> Result<String> {
    let mut text = String::from("# Libraries in Mayfly\n\n");
    let mut terms: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for package in packages {
        let licence = package.license.as_deref().unwrap_or("see its text");
        writeln!(text, "- {} {}: {licence}", package.name, package.version)?;
        for term in terms_of(package)? {
            let names = terms.entry(term).or_default();
            if names.last() != Some(&package.name.as_str()) {
                names.push(&package.name);
            }
        }
    }
    let mut terms: Vec<(String, Vec<&str>)> = terms.into_iter().collect();
    terms.sort_by(|(_, one), (_, other)| one.cmp(other));
    for (term, names) in terms {
        write!(text, "\n## {}\n\n", names.join(", "))?;
        term.lines()
            .try_for_each(|line| writeln!(text, "    {line}"))?;
    }
    Ok(text)
}

/// The texts that lie beside the manifest of a crate.
fn terms_of(package: &Package) -> Result<Vec<String>> {
    let directory = package.manifest_path.parent().unwrap_or(Path::new(""));
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| package.name.clone())? {
        let path = entry.context("reading a directory")?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.to_ascii_lowercase();
        if path.is_file() && TERMS.iter().any(|begin| name.starts_with(begin)) {
            paths.push(path);
        }
    }
    paths.sort();
    let texts = paths.iter().map(|path| {
        let bytes = fs::read(path).with_context(|| path.display().to_string())?;
        Ok(String::from_utf8_lossy(&bytes).replace("\r\n", "\n"))
    });
    texts.collect()
}
