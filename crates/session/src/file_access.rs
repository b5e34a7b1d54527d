//! Which files statements may name.
//!
//! The user of an embedded engine may read what the process may read. A server's clients may not:
//! they read nothing, or what lies in one directory, as `secure_file_priv` has it.

use std::path::{Component, Path, PathBuf};

use mayfly_types::{ErrorCode, MySqlError};

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

    /// Checks the name of a file, or a pattern of names.
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
            false => {
                let code = ErrorCode::OptionPreventsStatement;
                Err(MySqlError::new(code, &[&"--secure-file-priv"]))
            }
        }
    }
}

/// Whether a file lies in a directory whatever links its path goes through. What a pattern matches
/// is not known yet: nothing above its first wildcard may lead away, and no part below may go up.
fn lies_under(path: &Path, directory: &Path) -> bool {
    let is_wild =
        |part: &Component<'_>| part.as_os_str().to_string_lossy().contains(['*', '?', '[']);
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

    use super::FileAccess;

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
        fs::remove_dir_all(dir).expect("ours");
    }
}
