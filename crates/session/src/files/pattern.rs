//! Which files a name means: one, those that match a pattern, or those in a directory.
//!
//! In a pattern `*` and `?` stand for characters of one name, `[ab]` for one of some, `{a,b}` for
//! one of some words, and `**` for any number of directories. A directory means all files in it and
//! below whose names say a format; hidden ones and those with `_` in front, which other systems
//! leave there, are none.

use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};
use mayfly_exec::TimeSlice;
use mayfly_types::{ErrorCode, MySqlError};

use super::{cannot_open, kind};
use crate::file_access::FileAccess;

/// Patterns that one with braces may stand for.
const PATTERNS_MAX: usize = 1024;
const ENOENT: i32 = 2;
const MATCHED: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// Files that a name means.
#[derive(Debug)]
pub(super) struct Found {
    /// Those that hold anything, in the order of their names.
    pub(super) paths: Vec<String>,
    /// Bytes of all of them.
    pub(super) bytes: u64,
    /// Whether the name stands for several files, however many there are.
    pub(super) is_pattern: bool,
}

/// Finds the files. Any file of a directory is one if `has_format`: then it is known what it is.
///
/// # Errors
/// 1290 for what may not be named, 1017 where there is nothing, and other errors of directories.
pub(super) async fn find(
    access: &FileAccess,
    path: &str,
    has_format: bool,
    slice: &mut TimeSlice,
) -> Result<Found, MySqlError> {
    access.check(path)?;
    let is_directory = Path::new(path).is_dir();
    let is_pattern = path.contains(['*', '?', '[', '{']) && !Path::new(path).exists();
    if !is_pattern && !is_directory {
        let opened = access.open_regular(path);
        let found = opened.and_then(|file| file.metadata());
        let bytes = found.map_err(|error| cannot_open(path, &error))?.len();
        return Ok(Found {
            paths: vec![path.to_owned()],
            bytes,
            is_pattern: false,
        });
    }
    let directory = path.trim_end_matches('/');
    let patterns = match is_directory {
        true => vec![format!("{}/**/*", Pattern::escape(directory))],
        false => words(path).ok_or_else(|| too_many(path))?,
    };
    let mut found = Vec::new();
    for pattern in patterns {
        // Each of the words in braces may lead elsewhere.
        access.check(&pattern)?;
        for entry in matches(access, &pattern, slice).await? {
            slice.share().await;
            let name = entry.to_string_lossy().into_owned();
            let is_told = !is_directory || is_in_directory(&name, directory, has_format);
            if is_told {
                // A link may lead away from where the pattern looks.
                access.check(&name)?;
                let meta = std::fs::metadata(&entry);
                let meta = meta.map_err(|error| cannot_open(&name, &error))?;
                if meta.is_file() {
                    found.push((name, meta.len()));
                }
            }
        }
    }
    if found.is_empty() {
        let error = std::io::Error::from_raw_os_error(ENOENT);
        return Err(cannot_open(path, &error));
    }
    found.sort();
    found.dedup();
    found.retain(|(_, bytes)| *bytes > 0);
    Ok(Found {
        bytes: found.iter().map(|(_, bytes)| bytes).sum(),
        paths: found.into_iter().map(|(path, _)| path).collect(),
        is_pattern: true,
    })
}

/// What matches a pattern without braces. Links are followed where a name or a star stands for
/// them, but not where `**` does: they may lead in circles.
async fn matches(
    access: &FileAccess,
    pattern: &str,
    slice: &mut TimeSlice,
) -> Result<Vec<PathBuf>, MySqlError> {
    let mut found = Vec::new();
    let mut open = vec![pattern.to_owned()];
    while let Some(pattern) = open.pop() {
        let Some((before, behind)) = recursive(&pattern) else {
            found.extend(matched(&pattern, slice).await?);
            continue;
        };
        let mut directories = matched(before, slice).await?;
        directories.retain(|directory| directory.is_dir());
        for directory in &directories {
            access.check(&directory.to_string_lossy())?;
        }
        while let Some(directory) = directories.pop() {
            slice.share().await;
            let name = directory.to_string_lossy();
            let failed = |error: std::io::Error| cannot_open(&name, &error);
            for entry in std::fs::read_dir(&directory).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                if entry.file_type().map_err(failed)?.is_dir() {
                    directories.push(entry.path());
                }
            }
            let directory = Pattern::escape(name.trim_end_matches('/'));
            open.push(format!("{directory}/{behind}"));
        }
    }
    Ok(found)
}

/// What matches a pattern without braces and without `**`.
async fn matched(pattern: &str, slice: &mut TimeSlice) -> Result<Vec<PathBuf>, MySqlError> {
    let entries = glob::glob_with(pattern, MATCHED);
    let entries = entries.map_err(|error| wrong(pattern, &error.to_string()))?;
    let mut found = Vec::new();
    for entry in entries {
        slice.share().await;
        found.push(entry.map_err(|error| {
            let directory = error.path().display().to_string();
            cannot_open(&directory, error.error())
        })?);
    }
    Ok(found)
}

/// The first `**` of a pattern: what stands before it, and what follows.
fn recursive(pattern: &str) -> Option<(&str, &str)> {
    let any = |behind| match behind {
        "" => "*",
        behind => behind,
    };
    if let Some(behind) = pattern.strip_prefix("**/") {
        return Some((".", any(behind)));
    }
    if pattern == "**" {
        return Some((".", "*"));
    }
    let (before, behind) = pattern
        .split_once("/**/")
        .or_else(|| Some((pattern.strip_suffix("/**")?, "")))?;
    Some((if before.is_empty() { "/" } else { before }, any(behind)))
}

/// Whether a file below a directory is one of its table.
fn is_in_directory(path: &str, directory: &str, has_format: bool) -> bool {
    let below = path.strip_prefix(directory).unwrap_or(path);
    let mut names = below.split('/').filter(|name| !name.is_empty());
    let is_hidden = names.any(|name| name.starts_with(['.', '_']) && !name.contains('='));
    !is_hidden && (has_format || kind::named(path).is_some())
}

/// The patterns without braces that one stands for; `None` for too many. Braces without a comma are
/// part of a name.
fn words(pattern: &str) -> Option<Vec<String>> {
    let mut done = Vec::new();
    let mut open = vec![pattern.to_owned()];
    while let Some(pattern) = open.pop() {
        let chosen = choices(&pattern).map(|(before, words, behind)| {
            // The last one first, so that the first one comes next.
            let words = words.into_iter().rev();
            let patterns = words.map(|word| format!("{before}{word}{behind}"));
            patterns.collect::<Vec<_>>()
        });
        match chosen {
            None => done.push(pattern),
            Some(patterns) => open.extend(patterns),
        }
        if done.len().saturating_add(open.len()) > PATTERNS_MAX {
            return None;
        }
    }
    Some(done)
}

/// The first braces with a comma: what stands before them, the words in them, and what follows.
fn choices(pattern: &str) -> Option<(&str, Vec<&str>, &str)> {
    for (start, _) in pattern.match_indices('{') {
        let (before, from) = pattern.split_at_checked(start)?;
        let inner = from.strip_prefix('{')?;
        let mut depth: usize = 0;
        let mut begin = 0;
        let mut words = Vec::new();
        for (at, sign) in inner.char_indices() {
            match sign {
                '{' => depth = depth.saturating_add(1),
                '}' if depth > 0 => depth = depth.saturating_sub(1),
                '}' => {
                    words.push(inner.get(begin..at)?);
                    let behind = inner.get(at.saturating_add(1)..)?;
                    if words.len() > 1 {
                        return Some((before, words, behind));
                    }
                    break;
                }
                ',' if depth == 0 => {
                    words.push(inner.get(begin..at)?);
                    begin = at.saturating_add(1);
                }
                _ => {}
            }
        }
    }
    None
}

fn too_many(path: &str) -> MySqlError {
    wrong(
        path,
        &format!("its braces stand for more than {PATTERNS_MAX} patterns"),
    )
}

fn wrong(path: &str, what: &str) -> MySqlError {
    let text = format!("Error reading file '{path}': {what}");
    MySqlError::with_message(ErrorCode::FileRead, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_stand_for_patterns() {
        let check = |pattern: &str, expect: &[&str]| {
            assert_eq!(words(pattern).expect(pattern), expect, "{pattern}");
        };
        check("a/*.csv", &["a/*.csv"]);
        check("{a,b}.csv", &["a.csv", "b.csv"]);
        check("x{1,2}/{a,b}", &["x1/a", "x1/b", "x2/a", "x2/b"]);
        check("{a,b{1,2},}.csv", &["a.csv", "b1.csv", "b2.csv", ".csv"]);
        check("{a}{b,c}", &["{a}b", "{a}c"]);
        check("{a,b", &["{a,b"]);
        check("{a{b,c}", &["{ab", "{ac"]);
        check("a,b}", &["a,b}"]);
        assert_eq!(words(&"{a,b}".repeat(30)), None);
    }

    #[test]
    fn two_stars_stand_for_directories() {
        let check = |pattern: &str, expect: Option<(&str, &str)>| {
            assert_eq!(recursive(pattern), expect, "{pattern}");
        };
        check("a/*.csv", None);
        check("a/b**", None);
        check("a/**/*.csv", Some(("a", "*.csv")));
        check("/a*/**/b/**/c", Some(("/a*", "b/**/c")));
        check("/**/c", Some(("/", "c")));
        check("**/c", Some((".", "c")));
        check("**", Some((".", "*")));
        check("a/**", Some(("a", "*")));
    }

    #[test]
    fn directories_have_files_that_say_what_they_are() {
        let check = |path: &str, has_format: bool, expect: bool| {
            assert_eq!(is_in_directory(path, "/d", has_format), expect, "{path}");
        };
        check("/d/a.csv", false, true);
        check("/d/k=1/a.csv.gz", false, true);
        check("/d/_k=1/a.csv", false, true);
        check("/d/a.log", false, false);
        check("/d/a.log", true, true);
        check("/d/_SUCCESS", true, false);
        check("/d/.a.csv", false, false);
        check("/d/_temporary/a.csv", false, false);
    }
}
