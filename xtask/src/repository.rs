//! The clone that a chore works on.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use serde::de::DeserializeOwned;

/// The root of the workspace.
pub fn root() -> Result<PathBuf> {
    // Asked for now: other clones may have been built in the same target directory.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").context("run it by `cargo xtask`")?;
    let here = Path::new(&here).parent().map(Path::to_path_buf);
    here.context("xtask lies in the workspace")
}

/// The cargo that runs this.
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// What cargo knows of the workspace, as far as `T` asks for it.
pub fn metadata<T: DeserializeOwned>(root: &Path, arguments: &[&str]) -> Result<T> {
    let printed = text_of(
        cargo()
            .args(["metadata", "--format-version", "1"])
            .args(arguments)
            .current_dir(root),
    )?;
    serde_json::from_str(&printed).context("reading what cargo metadata printed")
}

/// Runs a command whose output is wanted.
pub fn output_of(command: &mut Command) -> Result<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("running {name}"))?;
    ensure!(
        output.status.success(),
        "{name} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(output)
}

/// The same where only its text matters.
pub fn text_of(command: &mut Command) -> Result<String> {
    let output = output_of(command)?;
    String::from_utf8(output.stdout).context("it printed what is not UTF-8")
}
