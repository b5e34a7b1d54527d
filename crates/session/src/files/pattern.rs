//! Which files a name means: one, those that match a pattern, or those in a directory.
//!
//! In a pattern `*` and `?` stand for characters of one name, `[ab]` for one of some, `{a,b}` for
//! one of some words, and `**` for any number of directories. A directory means all files in it and
//! below whose names say a format; hidden ones and those with `_` in front, which other systems
//! leave there, are none.

use std::collections::HashSet;
use std::fs::DirEntry;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};
use mayfly_exec::TimeSlice;
use mayfly_types::MySqlError;

use super::constants::parts_of;
use super::kind;
use super::wrong::cannot_open;
use super::wrong::read_error;
use crate::file_access::FileAccess;

/// Patterns that one with braces may stand for.
const PATTERNS_MAX: usize = 1024;
const ENOENT: i32 = 2;
/// What a name has that is a pattern.
const WILDCARDS: [char; 4] = ['*', '?', '[', '{'];
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
    /// If the name stands for several files, however many there are: how many of its parts are
    /// the same for all of them, those above its first wildcard.
    pub(super) fixed_parts: Option<usize>,
}

/// Finds the files. Any file of a directory is one if `has_format`: then it is known what it is.
///
/// # Errors
/// 1290 for what may not be named, 1017 where there is nothing, 1024 for a name that is not UTF-8,
/// and other errors of directories.
pub(super) async fn find(
    access: &FileAccess,
    path: &str,
    has_format: bool,
    slice: &mut TimeSlice,
) -> Result<Found, MySqlError> {
    access.check(path)?;
    let is_directory = Path::new(path).is_dir();
    let is_pattern = path.contains(WILDCARDS) && !Path::new(path).exists();
    if !is_pattern && !is_directory {
        let opened = access.open_regular(path);
        let found = opened.and_then(|file| file.metadata());
        let bytes = found.map_err(|error| cannot_open(path, &error))?.len();
        return Ok(Found {
            paths: vec![path.to_owned()],
            bytes,
            fixed_parts: None,
        });
    }
    let directory = path.trim_end_matches('/');
    let searches = match is_directory {
        true => vec![Search::below(path, directory)?],
        false => {
            let patterns = words(path).ok_or_else(|| too_many(path))?;
            let searches = patterns.iter().map(|pattern| {
                // Each of the words in braces may lead elsewhere.
                access.check(pattern)?;
                Search::of(pattern)
            });
            searches.collect::<Result<Vec<_>, MySqlError>>()?
        }
    };
    let mut found = Vec::new();
    for search in searches {
        for entry in search.matches(access, slice).await? {
            slice.share().await;
            let name = entry.to_string_lossy().into_owned();
            if is_directory && !is_in_directory(&name, directory, has_format) {
                continue;
            }
            // A link may lead away from where the pattern looks.
            access.check(&name)?;
            let meta = match std::fs::metadata(&entry) {
                // Removed since; of a link that leads nowhere the rows would be missed.
                Err(error) if error.kind() == ErrorKind::NotFound && !entry.is_symlink() => {
                    continue;
                }
                meta => meta.map_err(|error| cannot_open(&name, &error))?,
            };
            if !meta.is_file() {
                continue;
            }
            if entry.to_str().is_none() {
                let name = entry.as_os_str().as_encoded_bytes().escape_ascii();
                return Err(read_error(&name.to_string(), "its name is not UTF-8"));
            }
            found.push((name, meta.len()));
        }
    }
    if found.is_empty() {
        let error = io::Error::from_raw_os_error(ENOENT);
        return Err(cannot_open(path, &error));
    }
    found.sort();
    // Words in braces may name one file in two ways.
    let mut seen = HashSet::new();
    found
        .retain(|(name, _)| seen.insert(std::path::absolute(name).unwrap_or_else(|_| name.into())));
    found.retain(|(_, bytes)| *bytes > 0);
    let is_fixed = |part: &&str| is_directory || !part.contains(WILDCARDS);
    Ok(Found {
        bytes: found.iter().map(|(_, bytes)| bytes).sum(),
        paths: found.into_iter().map(|(path, _)| path).collect(),
        fixed_parts: Some(parts_of(path).take_while(is_fixed).count()),
    })
}

/// A part of a pattern.
#[derive(Debug)]
enum Part {
    Name(String),
    Wild(Pattern),
    /// `**`: a directory, and all of those below.
    Deep,
}

/// A pattern without braces.
#[derive(Debug)]
struct Search {
    /// Where it begins.
    base: PathBuf,
    parts: Vec<Part>,
}

impl Search {
    /// All files below a directory.
    fn below(path: &str, directory: &str) -> Result<Search, MySqlError> {
        let base = match directory {
            "" => "/",
            directory => directory,
        };
        Ok(Search {
            base: PathBuf::from(base),
            parts: vec![Part::Deep, wild(path, "*")?],
        })
    }

    fn of(pattern: &str) -> Result<Search, MySqlError> {
        let base = match pattern.starts_with('/') {
            true => "/",
            false => "",
        };
        let mut parts = Vec::new();
        for part in parts_of(pattern) {
            let is_deep = matches!(parts.last(), Some(Part::Deep));
            match part {
                "**" if is_deep => {}
                "**" => parts.push(Part::Deep),
                part if part.contains(['*', '?', '[']) => parts.push(wild(pattern, part)?),
                part => parts.push(Part::Name(part.to_owned())),
            }
        }
        if matches!(parts.last(), Some(Part::Deep)) {
            parts.push(wild(pattern, "*")?);
        } else if pattern.ends_with('/') {
            // A directory and no file.
            parts.push(Part::Name(".".to_owned()));
        }
        Ok(Search {
            base: PathBuf::from(base),
            parts,
        })
    }

    /// What matches. Links are followed where a name or a star stands for them, but not where `**`
    /// does: they may lead in circles.
    async fn matches(
        &self,
        access: &FileAccess,
        slice: &mut TimeSlice,
    ) -> Result<Vec<PathBuf>, MySqlError> {
        let mut found = vec![self.base.clone()];
        for part in &self.parts {
            found = match part {
                Part::Name(name) => named(&found, name, slice).await?,
                Part::Wild(pattern) => matched(&found, pattern, slice).await?,
                Part::Deep => directories(found, access, slice).await?,
            };
        }
        Ok(found)
    }
}

fn wild(pattern: &str, part: &str) -> Result<Part, MySqlError> {
    let read = Pattern::new(part);
    let read = read.map_err(|error| read_error(pattern, error))?;
    Ok(Part::Wild(read))
}

/// What goes by a name in some directories.
async fn named(
    directories: &[PathBuf],
    name: &str,
    slice: &mut TimeSlice,
) -> Result<Vec<PathBuf>, MySqlError> {
    let mut found = Vec::new();
    for directory in directories {
        slice.share().await;
        let path = directory.join(name);
        match path.symlink_metadata() {
            Ok(_) => found.push(path),
            Err(error)
                if [ErrorKind::NotFound, ErrorKind::NotADirectory].contains(&error.kind()) => {}
            Err(error) => return Err(cannot_open(&path.to_string_lossy(), &error)),
        }
    }
    Ok(found)
}

/// What matches in some directories.
async fn matched(
    directories: &[PathBuf],
    pattern: &Pattern,
    slice: &mut TimeSlice,
) -> Result<Vec<PathBuf>, MySqlError> {
    let mut found = Vec::new();
    for directory in directories.iter().filter(|path| listed(path).is_dir()) {
        let take = |entry: DirEntry| {
            let name = entry.file_name();
            if pattern.matches_with(&name.to_string_lossy(), MATCHED) {
                found.push(directory.join(name));
            }
            Ok(())
        };
        each_entry(directory, slice, take).await?;
    }
    Ok(found)
}

/// Some directories and all of those below, each once.
async fn directories(
    mut open: Vec<PathBuf>,
    access: &FileAccess,
    slice: &mut TimeSlice,
) -> Result<Vec<PathBuf>, MySqlError> {
    open.retain(|path| listed(path).is_dir());
    for directory in &open {
        access.check(&listed(directory).to_string_lossy())?;
    }
    let mut found = HashSet::new();
    while let Some(directory) = open.pop() {
        if !found.insert(directory.clone()) {
            continue;
        }
        let take = |entry: DirEntry| {
            if entry.file_type()?.is_dir() {
                open.push(directory.join(entry.file_name()));
            }
            Ok(())
        };
        each_entry(&directory, slice, take).await?;
    }
    Ok(found.into_iter().collect())
}

/// Hands on what is in a directory; others have their turn between two entries.
async fn each_entry(
    directory: &Path,
    slice: &mut TimeSlice,
    mut take: impl FnMut(DirEntry) -> io::Result<()>,
) -> Result<(), MySqlError> {
    let failed = |error: io::Error| cannot_open(&directory.to_string_lossy(), &error);
    for entry in std::fs::read_dir(listed(directory)).map_err(failed)? {
        slice.share().await;
        entry.and_then(&mut take).map_err(failed)?;
    }
    Ok(())
}

/// A directory as the file system names it: that of the process has no name in a path.
fn listed(directory: &Path) -> &Path {
    match directory.as_os_str().is_empty() {
        true => Path::new("."),
        false => directory,
    }
}

/// Whether a file below a directory is one of its table.
fn is_in_directory(path: &str, directory: &str, has_format: bool) -> bool {
    let below = path.strip_prefix(directory).unwrap_or(path);
    let is_hidden = parts_of(below).any(|name| name.starts_with(['.', '_']) && !name.contains('='));
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
    let what = format!("its braces stand for more than {PATTERNS_MAX} patterns");
    read_error(path, what)
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
        let check = |pattern: &str, base: &str, expect: &[&str]| {
            let search = Search::of(pattern).expect(pattern);
            let parts = search.parts.iter().map(|part| match part {
                Part::Name(name) => format!("={name}"),
                Part::Wild(pattern) => pattern.as_str().to_owned(),
                Part::Deep => "**".to_owned(),
            });
            assert_eq!(search.base, Path::new(base), "{pattern}");
            assert_eq!(parts.collect::<Vec<_>>(), expect, "{pattern}");
        };
        check("a//*.csv", "", &["=a", "*.csv"]);
        check("a/**/*.csv", "", &["=a", "**", "*.csv"]);
        check("/a?/**/b/**/c", "/", &["a?", "**", "=b", "**", "=c"]);
        check("/**/**/**/c", "/", &["**", "=c"]);
        check("**", "", &["**", "*"]);
        check("a/**/", "", &["=a", "**", "*"]);
        check("a*/", "", &["a*", "=."]);
        for wrong in ["a/b**", "a/[b"] {
            assert_eq!(Search::of(wrong).map_err(|it| it.code).err(), Some(1024));
        }
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
