//! What is packed and what it is called, as cargo and git know it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::repository::{metadata, text_of};

/// The package whose binary is carried.
pub const PACKAGE: &str = "mayfly";

/// The workspace and all that it depends on.
#[derive(Deserialize)]
pub struct Workspace {
    pub packages: Vec<Package>,
    pub target_directory: PathBuf,
}

#[derive(Deserialize)]
pub struct Package {
    pub name: String,
    pub version: String,
    pub license: Option<String>,
    description: Option<String>,
    repository: Option<String>,
    /// Nothing for crates of the workspace.
    pub source: Option<String>,
    pub manifest_path: PathBuf,
}

impl Workspace {
    pub fn of(root: &Path) -> Result<Workspace> {
        metadata(root, &["--locked"])
    }
}

/// What names a release.
pub struct Release {
    pub version: String,
    pub description: String,
    pub homepage: String,
    /// Seconds since 1970 that all files are from.
    pub epoch: String,
}

impl Release {
    pub fn of(workspace: &Workspace, root: &Path) -> Result<Release> {
        let mut own = workspace.packages.iter();
        let package = own.find(|package| package.source.is_none() && package.name == PACKAGE);
        let package = package.context("the workspace has no program")?;
        let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(epoch) => epoch,
            Err(_) => {
                let log = ["log", "-1", "--format=%ct"];
                text_of(Command::new("git").current_dir(root).args(log))
                    .context("the time of the commit; SOURCE_DATE_EPOCH says another")?
            }
        };
        let epoch = epoch.trim().to_owned();
        ensure!(
            epoch.parse::<u64>().is_ok(),
            "SOURCE_DATE_EPOCH is not a number of seconds: {epoch}"
        );
        Ok(Release {
            version: package.version.clone(),
            description: package.description.clone().context("no description")?,
            homepage: package.repository.clone().context("no repository")?,
            epoch,
        })
    }

    /// The name of its archive and of the folder in it.
    pub fn name(&self) -> String {
        format!("mayfly-{}-{}-linux", self.version, std::env::consts::ARCH)
    }
}
