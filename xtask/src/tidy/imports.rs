//! The arrows between crates are those of `imports.toml`, and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::repository;

const LIST: &str = "xtask/imports.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Allowed {
    ours: Vec<String>,
    other: Vec<String>,
    #[serde(default)]
    tests: Vec<String>,
}

#[derive(Deserialize)]
pub struct Metadata {
    pub packages: Vec<Package>,
}

#[derive(Deserialize)]
pub struct Package {
    pub name: String,
    pub dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
pub struct Dependency {
    pub name: String,
    /// `dev` and `build` dependencies name their kind; normal ones do not.
    pub kind: Option<String>,
    /// Set for crates of the workspace.
    pub path: Option<String>,
}

/// What cargo knows of the crates of the workspace.
pub fn metadata(root: &Path) -> Result<Metadata> {
    repository::metadata(root, &["--no-deps"])
}

/// The name of a crate of the workspace as the list has it.
fn short(name: &str) -> &str {
    name.strip_prefix("mayfly-").unwrap_or(name)
}

/// The dependencies that the workspace names for its crates.
#[derive(Deserialize)]
struct Manifest {
    workspace: Workspace,
}

#[derive(Deserialize)]
struct Workspace {
    dependencies: BTreeMap<String, toml::Value>,
}

/// What the workspace names and no crate of it depends on.
fn unused(root: &Path, packages: &[Package]) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(root.join("Cargo.toml")).context("Cargo.toml")?;
    let manifest: Manifest = toml::from_str(&text).context("Cargo.toml")?;
    let used = packages.iter().flat_map(|package| &package.dependencies);
    let used: BTreeSet<&str> = used.map(|dependency| dependency.name.as_str()).collect();
    let named = manifest.workspace.dependencies.into_keys();
    let unused = named.filter(|name| !used.contains(name.as_str()));
    Ok(unused
        .map(|name| format!("Cargo.toml: no crate uses the workspace's dependency '{name}'"))
        .collect())
}

pub fn check(root: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(root.join(LIST)).context(LIST)?;
    let list: BTreeMap<String, Allowed> = toml::from_str(&text).context(LIST)?;
    let packages = metadata(root)?.packages;
    let mut problems = unused(root, &packages)?;
    for package in packages {
        let name = short(&package.name);
        let Some(allowed) = list.get(name) else {
            problems.push(format!("{LIST}: crate '{name}' is not listed"));
            continue;
        };
        for dependency in &package.dependencies {
            let target = short(&dependency.name);
            let normal = if dependency.path.is_some() {
                &allowed.ours
            } else {
                &allowed.other
            };
            let for_tests = dependency.kind.as_deref() == Some("dev");
            let listed = normal.iter().any(|entry| entry == target)
                || (for_tests && allowed.tests.iter().any(|entry| entry == target));
            if !listed {
                let kind = dependency.kind.as_deref().unwrap_or("normal");
                problems.push(format!(
                    "'{name}' may not import '{target}' ({kind}); see {LIST}"
                ));
            }
            if target == "testkit" && !for_tests && name != "tests" {
                problems.push(format!("'{name}': testkit is only ever a dev-dependency"));
            }
        }
    }
    Ok(problems)
}
