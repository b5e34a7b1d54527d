//! The files that are carried, and where they lie in a package.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

pub const UNIT: &str = "packaging/mayfly.service";

/// What everybody reads before or after installing it.
const DOCUMENTS: [&str; 3] = ["README.md", "COMPAT.md", "CHANGELOG.md"];

/// A file, and its place in a package.
pub struct Item {
    from: PathBuf,
    pub to: PathBuf,
    mode: u32,
}

impl Item {
    pub fn new(from: impl Into<PathBuf>, to: impl Into<PathBuf>, mode: u32) -> Item {
        Item {
            from: from.into(),
            to: to.into(),
            mode,
        }
    }
}

/// What the archive has: the program, and what a unit of one's own begins with.
pub fn of_archive(root: &Path, program: &Path, libraries: &Path) -> Vec<Item> {
    let mut items = vec![
        Item::new(program, "mayfly", 0o755),
        Item::new(root.join("LICENSE"), "LICENSE", 0o644),
        Item::new(libraries, "LIBRARIES.md", 0o644),
        Item::new(root.join(UNIT), "mayfly.service", 0o644),
        Item::new(root.join("packaging/mayfly.toml"), "mayfly.toml", 0o644),
        Item::new(
            root.join("packaging/mayfly.default"),
            "mayfly.default",
            0o644,
        ),
    ];
    let documents = DOCUMENTS.iter();
    items.extend(documents.map(|name| Item::new(root.join(name), *name, 0o644)));
    items
}

/// What the Debian package installs.
pub fn of_debian(root: &Path, program: &Path, libraries: &Path) -> Vec<Item> {
    let documents = Path::new("usr/share/doc/mayfly");
    let packaging = root.join("packaging");
    let unit = "usr/lib/systemd/system/mayfly.service";
    let mut items = vec![
        Item::new(program, "usr/bin/mayfly", 0o755),
        Item::new(root.join(UNIT), unit, 0o644),
        Item::new(
            packaging.join("mayfly.toml"),
            "etc/mayfly/mayfly.toml",
            0o644,
        ),
        Item::new(
            packaging.join("mayfly.default"),
            "etc/default/mayfly",
            0o644,
        ),
        Item::new(
            packaging.join("debian/copyright"),
            documents.join("copyright"),
            0o644,
        ),
        Item::new(libraries, documents.join("LIBRARIES.md"), 0o644),
    ];
    let names = DOCUMENTS.iter();
    items.extend(names.map(|name| Item::new(root.join(name), documents.join(name), 0o644)));
    items
}

/// Lays files out below a directory, with the modes that they are to have, whatever the umask is.
pub fn lay_out(items: &[Item], below: &Path) -> Result<()> {
    make_directory(below)?;
    for item in items {
        let mut directory = below.to_owned();
        for part in item.to.parent().into_iter().flatten() {
            directory.push(part);
            make_directory(&directory)?;
        }
        let to = below.join(&item.to);
        fs::copy(&item.from, &to).with_context(|| format!("copying {}", item.from.display()))?;
        set_mode(&to, item.mode)?;
    }
    Ok(())
}

fn make_directory(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory)
        .with_context(|| format!("making the directory {}", directory.display()))?;
    set_mode(directory, 0o755)
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
        .with_context(|| format!("the mode of {}", path.display()))
}
