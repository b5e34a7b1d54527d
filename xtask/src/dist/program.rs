//! The program itself: built, without its symbols, and not too large.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::repository::{cargo, output_of, text_of};

/// The most that the program may take without its symbols. Three quarters of it are DataFusion and
/// the parser, of which each crate that uses them has copies; a crate is one unit of code
/// (`codegen-units`).
const BYTES_MAX: u64 = 112_000_000;

/// Shared libraries that the program may ask for, with the Debian package that has them. Another
/// one is a decision to be made: a program that carries its libraries runs anywhere.
const LIBRARIES: [(&str, &str); 6] = [
    ("ld-linux-aarch64.so.1", "libc6"),
    ("ld-linux-x86-64.so.2", "libc6"),
    ("libc.so.6", "libc6"),
    ("libgcc_s.so.1", "libgcc-s1"),
    ("libm.so.6", "libc6"),
    ("libpthread.so.0", "libc6"),
];

/// Builds the program as README says.
pub fn build(root: &Path) -> Result<()> {
    let status = cargo()
        .args(["build", "--release", "--locked", "--bin", "mayfly"])
        .current_dir(root)
        .status();
    ensure!(
        status.context("running cargo")?.success(),
        "the program does not build"
    );
    Ok(())
}

/// Cuts a program into what runs and its symbols.
///
/// A panic's backtrace has names again where the symbols lie beside the program, or below
/// `/usr/lib/debug`: what runs has their file name and checksum in it.
pub fn strip(built: &Path, program: &Path, symbols: &Path) -> Result<()> {
    output_of(
        Command::new("objcopy")
            .arg("--only-keep-debug")
            .args([built, symbols]),
    )?;
    output_of(
        Command::new("strip")
            .args(["--remove-section=.gnu_debuglink", "-o"])
            .args([program, built]),
    )?;
    let mut link = std::ffi::OsString::from("--add-gnu-debuglink=");
    link.push(symbols);
    output_of(Command::new("objcopy").arg(link).arg(program))?;
    Ok(())
}

/// Fails where the program has grown beyond what it may take.
pub fn check_size(program: &Path) -> Result<()> {
    let bytes = fs::metadata(program).context("the program")?.len();
    ensure!(
        bytes <= BYTES_MAX,
        "the program takes {:.1} MB without its symbols, and may take {:.1} MB",
        bytes as f64 / 1e6,
        BYTES_MAX as f64 / 1e6
    );
    Ok(())
}

/// The Debian packages that the program needs, as `Depends` has them.
///
/// # Errors
/// Where it needs a shared library that is not among those that it may ask for.
pub fn dependencies(program: &Path) -> Result<String> {
    let headers = text_of(Command::new("objdump").arg("-p").arg(program))?;
    dependencies_of(&headers)
}

/// Reads them from what `objdump -p` prints.
pub fn dependencies_of(headers: &str) -> Result<String> {
    let mut packages: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for line in headers.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["NEEDED", library] => {
                let mut known = LIBRARIES.iter();
                let Some((_, package)) = known.find(|(name, _)| name == library) else {
                    bail!("the program needs {library}, whose package is not known");
                };
                packages.entry(package).or_default();
            }
            // 0x09691974 0x00 04 GLIBC_2.34
            [_, _, _, symbol] => {
                let Some(version) = symbol.strip_prefix("GLIBC_") else {
                    continue;
                };
                // GLIBC_ABI_DT_RELR and its kind came with versions that have symbols, too.
                let parts: Result<Vec<u32>, _> = version.split('.').map(str::parse).collect();
                let version = parts.unwrap_or_default();
                let known = packages.entry("libc6").or_default();
                *known = version.max(std::mem::take(known));
            }
            _ => {}
        }
    }
    let packages = packages.iter().map(|(package, version)| {
        let version: Vec<String> = version.iter().map(u32::to_string).collect();
        match version.is_empty() {
            true => (*package).to_owned(),
            false => format!("{package} (>= {})", version.join(".")),
        }
    });
    Ok(packages.collect::<Vec<_>>().join(", "))
}
