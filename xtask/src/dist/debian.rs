//! The `.deb`: what is installed, what dpkg knows of it, and the scripts that it runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::contents::{self, Item, lay_out};
use super::program;
use super::release::Release;
use crate::repository::{output_of, text_of};

/// Scripts that dpkg runs, with what they need beside the libraries of the program.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];
const NEEDED_BY_SCRIPTS: &str = "init-system-helpers (>= 1.54~)";

/// What `apt show` says after the first line.
const ABOUT: &str = " A SQL engine in MySQL's dialect whose groupings, sorts, joins and windows
 finish within the memory that they are given: what does not fit moves to
 disk, page by page.
 .
 It runs as a shell on files and as a server of MySQL clients. The server
 listens on this machine, and lets nobody in before users are made.
";

/// Packs the program for Debian, and returns the package.
pub fn pack(
    root: &Path,
    release: &Release,
    program: &Path,
    libraries: &Path,
    out: &Path,
) -> Result<PathBuf> {
    let architecture = text_of(Command::new("dpkg").arg("--print-architecture"))?;
    let architecture = architecture.trim();
    let version = version(&release.version);
    let stage = out.join("stage").join("deb");
    let items = contents::of_debian(root, program, libraries);
    lay_out(&items, &stage)?;

    let facts = stage.join("DEBIAN");
    let scripts = root.join("packaging").join("debian");
    let scripts = SCRIPTS.map(|name| Item::new(scripts.join(name), name, 0o755));
    lay_out(&scripts, &facts)?;
    let control = format!(
        "Package: mayfly\n\
         Version: {version}\n\
         Architecture: {architecture}\n\
         Maintainer: {}\n\
         Installed-Size: {}\n\
         Depends: {}, {NEEDED_BY_SCRIPTS}\n\
         Section: database\n\
         Priority: optional\n\
         Homepage: {}\n\
         Description: {}\n{ABOUT}",
        maintainer(&release.homepage),
        installed_kib(&stage, &items)?,
        program::dependencies(program)?,
        release.homepage,
        release.description,
    );
    let write = |name: &str, text: &str| {
        fs::write(facts.join(name), text).with_context(|| format!("writing {name}"))
    };
    write("control", &control)?;
    write("conffiles", &configuration(&items))?;
    write("md5sums", &checksums(&stage, &items)?)?;

    let package = out.join(format!("mayfly_{version}_{architecture}.deb"));
    output_of(
        Command::new("dpkg-deb")
            .args(["--root-owner-group", "-Zxz", "-z3", "--build"])
            .args([&stage, &package])
            .env("SOURCE_DATE_EPOCH", &release.epoch),
    )?;
    fs::remove_dir_all(&stage).context("removing what was packed")?;
    Ok(package)
}

/// A version of cargo's as dpkg orders it: 1.0.0-rc.1 comes before 1.0.0.
fn version(version: &str) -> String {
    version.replacen('-', "~", 1)
}

/// Whom to write to: the host of the repository knows.
fn maintainer(homepage: &str) -> String {
    let host = homepage.split("://").last().unwrap_or(homepage);
    let host = host.split('/').next().unwrap_or(host);
    format!("The Mayfly authors <mayfly@{host}>")
}

/// Files that keep what an administrator wrote into them: all below `/etc`.
fn configuration(items: &[Item]) -> String {
    let paths = items.iter().map(|item| &item.to);
    let paths = paths.filter(|path| path.starts_with("etc"));
    let mut lines: Vec<String> = paths.map(|path| format!("/{}\n", path.display())).collect();
    lines.sort();
    lines.concat()
}

/// What `dpkg --verify` compares files with. Those below `/etc` may be changed.
fn checksums(stage: &Path, items: &[Item]) -> Result<String> {
    let paths = items.iter().map(|item| &item.to);
    let mut paths: Vec<_> = paths.filter(|path| !path.starts_with("etc")).collect();
    paths.sort();
    text_of(Command::new("md5sum").current_dir(stage).args(paths))
}

/// The KiB that it takes when it is installed.
fn installed_kib(stage: &Path, items: &[Item]) -> Result<u64> {
    let mut kib = 0;
    for item in items {
        let found = fs::metadata(stage.join(&item.to)).context("a file that was laid out")?;
        kib += found.len().div_ceil(1024);
    }
    Ok(kib)
}
