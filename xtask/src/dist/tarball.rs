//! A `.tar.gz` that is the same wherever and whenever it is made.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::contents::{Item, lay_out};
use super::release::Release;
use crate::repository::output_of;

/// Packs files into a folder of that name, and returns the archive.
pub fn pack(release: &Release, name: &str, items: &[Item], out: &Path) -> Result<PathBuf> {
    let stage = out.join("stage").join("tar");
    lay_out(items, &stage.join(name))?;
    let archive = out.join(format!("{name}.tar.gz"));
    output_of(
        Command::new("tar")
            .args(["--create", "--format=gnu", "--sort=name"])
            .args(["--owner=0", "--group=0", "--numeric-owner"])
            .arg(format!("--mtime=@{}", release.epoch))
            // Without name and time of what is compressed.
            .arg("--use-compress-program=gzip -9n")
            .arg("--file")
            .arg(&archive)
            .arg("--directory")
            .arg(&stage)
            .arg(name),
    )?;
    fs::remove_dir_all(&stage).context("removing what was packed")?;
    Ok(archive)
}
