//! Which files statements may name, and how they are opened.
//!
//! The user of an embedded engine may use what the process may use. A server's clients may not:
//! they use nothing, or what lies in one directory, as `secure_file_priv` has it.
//!
//! Checking a name and then opening it would leave time to put a symbolic link in between. So names
//! are resolved first, and what they resolve to is opened from the directory downwards, one part
//! after the other, without following a link: what `openat2` does with `RESOLVE_BENEATH` and
//! `RESOLVE_NO_SYMLINKS`, on any kernel.

#![deny(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use mayfly_types::{ErrorCode, MySqlError};
use rustix::fs::{AtFlags, Mode, OFlags, fstat, open, openat, statat, unlinkat};

use crate::{errors, standard_input};

/// Which files statements may name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FileAccess {
    /// All that the process can read.
    #[default]
    All,
    /// Those in a directory and below.
    Under(PathBuf),
    /// None.
    Nothing,
}

impl FileAccess {
    /// The value of `@@secure_file_priv`.
    pub(crate) fn variable(&self) -> String {
        match self {
            FileAccess::All => String::new(),
            FileAccess::Under(directory) => format!("{}/", directory.display()),
            FileAccess::Nothing => "NULL".to_owned(),
        }
    }

    /// Whether a client's own files are those of the process.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self, FileAccess::All)
    }

    /// Checks the name of a file, or a pattern of names, so that what may not be named is told
    /// before whether it exists.
    ///
    /// # Errors
    /// 1290 for one that statements may not name.
    pub(crate) fn check(&self, path: &str) -> Result<(), MySqlError> {
        let is_allowed = match self {
            FileAccess::All => true,
            FileAccess::Under(directory) => lies_under(Path::new(path), directory),
            FileAccess::Nothing => false,
        };
        match is_allowed {
            true => Ok(()),
            false => Err(about(refused(), path)),
        }
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// Those of the operating system; one that holds error 1290 for a file that statements may not
    /// name, 1085 for what is no file, or 1235 for the standard input once a table has it all.
    pub(crate) fn open(&self, path: &str) -> io::Result<File> {
        self.open_after(path, || ())
    }

    /// The same, with what others do between looking at the name and opening the file.
    fn open_after(&self, path: &str, meanwhile: impl FnOnce()) -> io::Result<File> {
        self.check(path).map_err(io::Error::other)?;
        if standard_input::is_named(path) && standard_input::is_taken() {
            let what = format!("'{path}' as a file where it is a table");
            return Err(io::Error::other(errors::not_supported(&what)));
        }
        let FileAccess::Under(directory) = self else {
            return File::open(path);
        };
        let told = |error| told_about(error, path);
        let resolved = Path::new(path).canonicalize()?;
        meanwhile();
        let (parent, name) = parent_below(&resolved, directory).map_err(told)?;
        // A pipe would wait for whoever writes into it.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::from(beneath(&parent, name, flags).map_err(told)?);
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(no_file(path)),
        }
    }

    /// Opens a file that is to be read as a table, which takes more than one reading.
    ///
    /// # Errors
    /// As [`FileAccess::open`]; 1085 for pipes and devices.
    pub(crate) fn open_regular(&self, path: &str) -> io::Result<File> {
        self.check(path).map_err(io::Error::other)?;
        let kind = std::fs::metadata(path)?.file_type();
        if kind.is_fifo() || kind.is_socket() || kind.is_char_device() {
            return Err(no_file(path));
        }
        let file = self.open(path)?;
        match file.metadata()?.is_dir() {
            true => Err(ErrorKind::IsADirectory.into()),
            false => Ok(file),
        }
    }

    /// Makes a file that does not exist yet.
    ///
    /// # Errors
    /// As [`FileAccess::open`]; `AlreadyExists` for a name that is taken, by a link too.
    pub(crate) fn create(&self, path: &str) -> io::Result<CreatedFile> {
        self.create_after(path, || ())
    }

    /// The same, with what others do between looking at the name and making the file.
    fn create_after(&self, path: &str, meanwhile: impl FnOnce()) -> io::Result<CreatedFile> {
        self.check(path).map_err(io::Error::other)?;
        let told = |error| told_about(error, path);
        let path = Path::new(path);
        let name = path.file_name().ok_or(ErrorKind::IsADirectory)?;
        let parent = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let parent = match self {
            FileAccess::Under(directory) => {
                let resolved = parent.canonicalize()?.join(name);
                meanwhile();
                parent_below(&resolved, directory).map_err(told)?.0
            }
            _ => directory_at(parent)?,
        };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(0o666);
        let file = openat(&parent, name, flags | OFlags::CLOEXEC, mode)?;
        Ok(CreatedFile {
            file: File::from(file),
            parent,
            name: PathBuf::from(name),
        })
    }
}

/// A file that was made, and the directory that it lies in.
#[derive(Debug)]
pub(crate) struct CreatedFile {
    pub(crate) file: File,
    parent: OwnedFd,
    name: PathBuf,
}

impl CreatedFile {
    /// Removes it from its directory, wherever that is now. A file of somebody else that has its
    /// name by now stays.
    pub(crate) fn remove(&self) -> io::Result<()> {
        let ours = fstat(&self.file)?;
        let named = statat(&self.parent, &self.name, AtFlags::SYMLINK_NOFOLLOW)?;
        if (ours.st_dev, ours.st_ino) != (named.st_dev, named.st_ino) {
            return Ok(());
        }
        Ok(unlinkat(&self.parent, &self.name, AtFlags::empty())?)
    }
}

fn refused() -> MySqlError {
    MySqlError::new(ErrorCode::OptionPreventsStatement, &[&"--secure-file-priv"])
}

/// An error that says of which file it is, as the statement or its pattern names it.
fn about(mut error: MySqlError, path: &str) -> MySqlError {
    error.message.push_str(&format!("; file '{path}'"));
    error
}

/// The same for one that holds it.
fn told_about(error: io::Error, path: &str) -> io::Error {
    match errors::carried(&error).cloned() {
        Some(carried) => io::Error::other(about(carried, path)),
        None => error,
    }
}

fn no_file(path: &str) -> io::Error {
    io::Error::other(MySqlError::new(ErrorCode::FileReadable, &[&path]))
}

fn directory_at(path: &Path) -> io::Result<OwnedFd> {
    let mut options = OpenOptions::new();
    let flags = OFlags::DIRECTORY | OFlags::PATH;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = options.read(true).custom_flags(flags).open(path)?;
    Ok(file.into())
}

/// The directory of a file that was resolved, opened from `directory` downwards, and its name.
fn parent_below<'a>(resolved: &'a Path, directory: &Path) -> io::Result<(OwnedFd, &'a Path)> {
    let directory = directory.canonicalize()?;
    let outside = || io::Error::other(refused());
    let inside = resolved.strip_prefix(&directory).map_err(|_| outside())?;
    let name = inside.file_name().ok_or_else(outside)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut parent = open(&directory, flags, Mode::empty())?;
    let parts = inside.parent().unwrap_or(Path::new("")).components();
    for part in parts {
        let Component::Normal(part) = part else {
            return Err(outside());
        };
        parent = beneath(&parent, Path::new(part), OFlags::PATH | OFlags::DIRECTORY)?;
    }
    Ok((parent, Path::new(name)))
}

/// Opens one name of a directory, which must not be a link: it was none when it was resolved.
fn beneath(parent: &OwnedFd, name: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty()).map_err(|error| match error {
        rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR => io::Error::other(refused()),
        other => other.into(),
    })
}

/// Whether a file lies in a directory whatever links its path goes through. What a pattern matches
/// is not known yet: nothing above its first wildcard may lead away, and no part below may go up.
fn lies_under(path: &Path, directory: &Path) -> bool {
    let is_wild = |part: &Component<'_>| {
        part.as_os_str()
            .to_string_lossy()
            .contains(['*', '?', '[', '{'])
    };
    let goes_up = |part: Component<'_>| part == Component::ParentDir;
    if path.components().any(goes_up) {
        return false;
    }
    let (Ok(directory), Ok(found)) = (directory.canonicalize(), path.canonicalize()) else {
        // A pattern, or a file that does not exist: where its directory lies decides.
        let fixed: PathBuf = path
            .components()
            .take_while(|part| !is_wild(part))
            .collect();
        let parent = match fixed == path {
            true => path.parent().unwrap_or(path).to_owned(),
            false => fixed,
        };
        return match (directory.canonicalize(), parent.canonicalize()) {
            (Ok(directory), Ok(parent)) => parent.starts_with(directory),
            _ => false,
        };
    };
    found.starts_with(directory)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_files_below_the_directory_are_allowed() {
        let dir = std::env::temp_dir().join(format!("mayfly-file-access-{}", std::process::id()));
        let (inside, outside) = (dir.join("in"), dir.join("out"));
        fs::create_dir_all(inside.join("deep")).expect("a directory");
        fs::create_dir_all(&outside).expect("a directory");
        for file in [
            inside.join("a.csv"),
            inside.join("deep/b.csv"),
            outside.join("c.csv"),
        ] {
            fs::write(file, "1\n").expect("a file");
        }
        symlink(outside.join("c.csv"), inside.join("link.csv")).expect("a link");
        symlink(&outside, inside.join("away")).expect("a link");
        let access = FileAccess::Under(inside.clone());
        let check = |path: &str| access.check(path).is_ok();
        let at = |name: &str| inside.join(name).display().to_string();
        for allowed in ["a.csv", "deep/b.csv", "*.csv", "deep/*.csv", "none.csv"] {
            assert!(check(&at(allowed)), "{allowed}");
        }
        for refused in [
            "../out/c.csv",
            "link.csv",
            "away/c.csv",
            "away/*.csv",
            "deep/../a.csv",
        ] {
            assert!(!check(&at(refused)), "{refused}");
        }
        assert!(!check("/etc/passwd"));
        assert!(!check(&outside.join("c.csv").display().to_string()));
        assert!(FileAccess::All.check("/etc/passwd").is_ok());
        let refused = FileAccess::Nothing
            .check(&at("a.csv"))
            .expect_err("nothing is allowed");
        assert_eq!(refused.code, 1290);
        assert!(refused.message.contains("/in/a.csv'"), "{refused}");
        fs::remove_dir_all(dir).expect("ours");
    }

    #[test]
    fn a_link_that_takes_the_place_of_a_file_is_not_followed() {
        let dir = std::env::temp_dir().join(format!("mayfly-links-{}", std::process::id()));
        let (inside, outside) = (dir.join("in"), dir.join("out"));
        fs::create_dir_all(inside.join("deep")).expect("a directory");
        fs::create_dir_all(&outside).expect("a directory");
        for directory in [&inside.join("deep"), &outside] {
            fs::write(directory.join("a.csv"), "1\n").expect("a file");
        }
        let directory = inside.canonicalize().expect("it is there");
        let refused = |path: &Path| {
            let opened = parent_below(path, &directory)
                .and_then(|(parent, name)| beneath(&parent, name, OFlags::RDONLY));
            let error = opened.expect_err("it is a link");
            let told = errors::carried(&error).expect("a MySQL error");
            assert_eq!(told.code, 1290);
        };
        // What was resolved is a link when it is opened: the file, or a directory above it.
        let file = directory.join("deep/a.csv");
        assert!(parent_below(&file, &directory).is_ok());
        fs::remove_file(&file).expect("ours");
        symlink(outside.join("a.csv"), &file).expect("a link");
        refused(&file);
        fs::remove_dir_all(directory.join("deep")).expect("ours");
        symlink(&outside, directory.join("deep")).expect("a link");
        refused(&file);
        refused(&outside.join("a.csv"));
        fs::remove_dir_all(dir).expect("ours");
    }

    /// Somebody puts links in the way while a statement opens or makes a file.
    #[test]
    fn links_that_come_between_a_look_and_its_use_lead_nowhere() {
        let dir = std::env::temp_dir().join(format!("mayfly-swapped-{}", std::process::id()));
        let (inside, outside) = (dir.join("in"), dir.join("out"));
        fs::create_dir_all(inside.join("deep/down")).expect("a directory");
        fs::create_dir_all(outside.join("down")).expect("a directory");
        let access = FileAccess::Under(inside.clone());
        let told = |error: io::Error| errors::carried(&error).expect("a MySQL error").code;
        let file = inside.join("deep/down/a.csv");
        let path = file.display().to_string();
        fs::write(outside.join("down/a.csv"), "secret\n").expect("a file");
        let swap = |name: &str| {
            let name = Path::new(name);
            fs::rename(inside.join(name), dir.join("away")).expect("it is there");
            let target = outside.join(name.strip_prefix("deep").expect("all are below"));
            symlink(target, inside.join(name)).expect("a link");
        };
        let undo = |name: &str| {
            fs::remove_file(inside.join(name)).expect("a link");
            fs::rename(dir.join("away"), inside.join(name)).expect("it is there");
        };
        fs::write(&file, "1\n").expect("a file");
        for name in ["deep/down/a.csv", "deep/down", "deep"] {
            let opened = access.open_after(&path, || swap(name));
            assert_eq!(told(opened.expect_err("a link")), 1290, "{name}");
            // Now that it is there when the name is looked at, it is told as well.
            assert_eq!(
                told(access.open(&path).expect_err("a link")),
                1290,
                "{name}"
            );
            undo(name);
            assert!(access.open(&path).is_ok(), "{name}");
        }
        let path = inside.join("deep/down/new.csv").display().to_string();
        for name in ["deep/down", "deep"] {
            let made = access.create_after(&path, || swap(name));
            assert_eq!(told(made.expect_err("a link")), 1290, "{name}");
            undo(name);
        }
        assert!(!outside.join("down/new.csv").exists());
        // A link in the place of the file itself is a name that is taken.
        let new = inside.join("deep/down/new.csv");
        let made = access.create_after(&path, || {
            symlink(outside.join("down/new.csv"), &new).expect("a link");
        });
        let refused = made.expect_err("a link");
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
        assert!(!outside.join("down/new.csv").exists());
        fs::remove_dir_all(dir).expect("ours");
    }

    #[test]
    fn what_is_made_is_never_there_before() {
        let dir = std::env::temp_dir().join(format!("mayfly-made-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        symlink(dir.join("elsewhere"), dir.join("link")).expect("a link");
        for access in [FileAccess::All, FileAccess::Under(dir.clone())] {
            let at = |name: &str| dir.join(name).display().to_string();
            let made = access.create(&at("new")).expect("it is not there");
            for taken in ["new", "link"] {
                let error = access.create(&at(taken)).expect_err("it is there");
                assert_eq!(error.kind(), ErrorKind::AlreadyExists, "{taken}");
            }
            // What has taken its name is not ours.
            fs::rename(dir.join("new"), dir.join("old")).expect("it is there");
            fs::write(dir.join("new"), "theirs").expect("a file");
            made.remove().expect("nothing to do");
            assert!(dir.join("new").exists());
            fs::rename(dir.join("old"), dir.join("new")).expect("it is there");
            made.remove().expect("ours");
            assert!(!dir.join("new").exists());
        }
        fs::remove_dir_all(dir).expect("ours");
    }
}
