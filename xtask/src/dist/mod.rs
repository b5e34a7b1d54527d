//! `cargo xtask dist`: the program as a `.tar.gz` and as a `.deb`, in `target/dist`.
//!
//! **Owns** what is carried and where it lies. **Never** compiles other than by
//! `cargo build --release --locked`, and needs only what a Debian machine has: `tar`, `gzip`,
//! `dpkg-deb` and binutils.
//!
//! ```text
//!   release    its version and its time               --+
//!   program    built, measured, its symbols cut off  --+
//!   libraries  what is linked in, with its licences  --+--> contents  files and their places
//!   packaging/ unit, configuration, scripts          --+      |
//!                                                             +--> tarball   .tar.gz
//!                                                             +--> debian    .deb
//! ```
//!
//! The same program gives the same packages: names are sorted, owners are 0, and times are those of
//! the commit (`SOURCE_DATE_EPOCH` where it is set). The program itself has the paths in it of the
//! crates that it was built from, so the same commit and toolchain give the same bytes only where
//! tree and cargo's home lie at the same places.

mod contents;
mod debian;
mod libraries;
mod program;
mod release;
mod tarball;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use self::contents::Item;
use self::release::{PACKAGE, Release, Workspace};
use crate::repository::{self, output_of};

/// Where everything goes, below the root.
const OUT: &str = "target/dist";
/// Builds the program unless told that it is there, and packs it.
pub fn run(arguments: &[&str]) -> Result<()> {
    let is_built = match arguments {
        [] => false,
        ["--no-build"] => true,
        _ => bail!("usage: cargo xtask dist [--no-build]"),
    };
    let root = repository::root()?;
    let workspace = Workspace::of(&root)?;
    let release = Release::of(&workspace, &root)?;
    if !is_built {
        program::build(&root)?;
    }
    let built = workspace.target_directory.join("release").join(PACKAGE);
    let out = root.join(OUT);
    let stage = out.join("stage");
    if stage.exists() {
        fs::remove_dir_all(&stage).context("removing what an earlier run left")?;
    }
    fs::create_dir_all(&stage).context("making the output directory")?;
    let program = stage.join("mayfly");
    let symbols = stage.join("mayfly.debug");
    program::strip(&built, &program, &symbols)?;
    program::check_size(&program)?;
    let libraries = stage.join("LIBRARIES.md");
    fs::write(&libraries, libraries::text(&root, &workspace)?).context("writing the libraries")?;

    let mut made = pack(&root, &release, &program, &libraries, &out)?;
    let name = format!("{}-symbols", release.name());
    let symbols = [Item::new(&symbols, "mayfly.debug", 0o644)];
    made.push(tarball::pack(&release, &name, &symbols, &out)?);
    let described = [("built", &built), ("stripped", &program)];
    for (what, path) in described {
        println!("{:>11} {what}", size_of(path)?);
    }
    for path in made {
        let shown = path.strip_prefix(&root).unwrap_or(&path);
        println!("{:>11} {}", size_of(&path)?, shown.display());
    }
    fs::remove_dir_all(&stage).context("removing what was packed")
}

/// Packs a program both ways, and returns where the packages are.
fn pack(
    root: &Path,
    release: &Release,
    program: &Path,
    libraries: &Path,
    out: &Path,
) -> Result<Vec<PathBuf>> {
    check_unit(root, program, out)?;
    let archive = tarball::pack(
        release,
        &release.name(),
        &contents::of_archive(root, program, libraries),
        out,
    )?;
    let package = debian::pack(root, release, program, libraries, out)?;
    Ok(vec![archive, package])
}

/// Asks systemd, where it is, whether it understands the unit.
fn check_unit(root: &Path, program: &Path, out: &Path) -> Result<()> {
    let text = fs::read_to_string(root.join(contents::UNIT)).context(contents::UNIT)?;
    // It wants the program to exist, and it is not installed here.
    let program = program.to_str().context("a path is not UTF-8")?;
    let text = text.replace("/usr/bin/mayfly", program);
    let unit = out.join("mayfly.service");
    fs::write(&unit, text).context("writing the unit to check")?;
    let asked = output_of(
        Command::new("systemd-analyze")
            .args(["verify", "--man=no", "--recursive-errors=no"])
            .arg(&unit),
    );
    fs::remove_file(&unit).context("removing the unit that was checked")?;
    match asked {
        // It says what it does not know and succeeds.
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            ensure!(said.trim().is_empty(), "{}: {said}", contents::UNIT);
            Ok(())
        }
        Err(error) if is_missing(&error) => {
            println!("skipped: systemd-analyze verify, which is not installed");
            Ok(())
        }
        Err(error) => Err(error.context(contents::UNIT)),
    }
}

/// Whether a program could not be run because there is none.
fn is_missing(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

/// The size of a file for people.
fn size_of(path: &Path) -> Result<String> {
    let bytes = fs::metadata(path).context("a file that was written")?.len();
    Ok(format!("{:.1} MB", bytes as f64 / 1e6))
}
