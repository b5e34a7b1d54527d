//! Rules that the compiler does not know, each in one file.
//!
//! A problem is one line that names the place and the rule, so that it can be searched for.

mod circles;
mod debts;
mod documents;
mod functions;
mod imports;
mod made_up_names;
mod modules;
mod parsed;
mod sources;

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::repository::{self, text_of};

/// Checks every rule and returns what breaks them.
pub fn run() -> Result<Vec<String>> {
    let root = repository::root()?;
    let files = tracked_files(&root)?;
    let mut problems = imports::check(&root)?;
    problems.extend(sources::check(&root, &files)?);
    problems.extend(documents::check(&root, &files)?);
    problems.extend(debts::check(&root, &files)?);
    Ok(problems)
}

/// Strikes from the list of what breaks a rule all that is mended, and returns what has grown.
pub fn shrink() -> Result<Vec<String>> {
    let root = repository::root()?;
    debts::shrink(&root, &tracked_files(&root)?)
}

/// What the circles of modules consist of.
pub fn arrows() -> Result<Vec<String>> {
    let root = repository::root()?;
    debts::arrows(&root, &tracked_files(&root)?)
}

/// Paths of all files under version control or about to be, relative to the root.
fn tracked_files(root: &Path) -> Result<Vec<String>> {
    let text = text_of(
        Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others"])
            .arg("--exclude-standard")
            .current_dir(root),
    )?;
    let paths = text.split('\0').filter(|path| root.join(path).is_file());
    Ok(paths.map(str::to_string).collect())
}
