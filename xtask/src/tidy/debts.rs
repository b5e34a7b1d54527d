//! What stands in the tree and breaks a rule, in a list that only shrinks.
//!
//! The list must say exactly what is there: what is new or has grown is a problem, and so is a line
//! that promises less than it says, so that the commit that mends something strikes its line.
//! `cargo xtask tidy --shrink` writes the list anew where nothing has grown. What only moves to
//! another file is moved in the list by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::parsed::{self, SourceFile};
use super::{circles, functions, made_up_names};

const LIST: &str = "xtask/debts.toml";
const HEADER: &str = "\
# What breaks a rule of `cargo xtask tidy` today. The lists only shrink: what is new is mended, not
# added, and a commit that mends something strikes its line. `cargo xtask tidy --shrink` writes this
# file; `cargo xtask tidy --arrows` prints what the circles consist of. A line whose file is renamed is
# changed by hand.
#
# functions      functions beyond 80 lines, with their lines
# made_up_names  files that spell names which rewrites make up, with how many they spell
# circles        files of one crate that need each other

";

#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Debts {
    #[serde(default)]
    functions: BTreeMap<String, usize>,
    #[serde(default)]
    made_up_names: BTreeMap<String, usize>,
    #[serde(default)]
    circles: Vec<Circle>,
}

#[derive(Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Circle {
    files: BTreeSet<String>,
}

impl Debts {
    fn read(root: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(root.join(LIST)).context(LIST)?;
        toml::from_str(&text).context(LIST)
    }

    fn of(sources: &[SourceFile], arrows: &circles::Arrows) -> Self {
        let circles = circles::circles(arrows).into_iter().map(|files| Circle {
            files: files.into_iter().collect(),
        });
        Self {
            functions: functions::long(sources),
            made_up_names: made_up_names::count(sources),
            circles: circles.collect(),
        }
    }
}

pub fn check(root: &Path, files: &[String]) -> Result<Vec<String>> {
    let sources = parsed::read(root, files)?;
    let arrows = circles::arrows(&sources);
    let found = Debts::of(&sources, &arrows);
    let listed = Debts::read(root)?;
    let mut problems = growth(&listed, &found, &arrows);
    problems.extend(stale(&listed, &found));
    Ok(problems)
}

/// Writes the list anew, unless something has grown, which is returned.
pub fn shrink(root: &Path, files: &[String]) -> Result<Vec<String>> {
    let sources = parsed::read(root, files)?;
    let arrows = circles::arrows(&sources);
    let found = Debts::of(&sources, &arrows);
    let problems = growth(&Debts::read(root)?, &found, &arrows);
    if problems.is_empty() {
        let text = format!("{HEADER}{}", toml::to_string_pretty(&found)?);
        let again: Debts = toml::from_str(&text)?;
        ensure!(again == found, "{LIST}: what is written is read otherwise");
        std::fs::write(root.join(LIST), text).context(LIST)?;
    }
    Ok(problems)
}

/// The arrows of every circle of the tree, one a line.
pub fn arrows(root: &Path, files: &[String]) -> Result<Vec<String>> {
    let sources = parsed::read(root, files)?;
    let arrows = circles::arrows(&sources);
    let mut lines = Vec::new();
    for circle in circles::circles(&arrows) {
        lines.push(format!("{} files", circle.len()));
        let files = circle.into_iter().collect();
        lines.extend(inner_arrows(&arrows, &files, &files));
    }
    Ok(lines)
}

/// The arrows inside a circle that begin or end at some of its files.
fn inner_arrows(
    arrows: &circles::Arrows,
    circle: &BTreeSet<String>,
    some: &BTreeSet<String>,
) -> Vec<String> {
    let inside = arrows
        .iter()
        .filter(|((from, to), _)| circle.contains(from) && circle.contains(to))
        .filter(|((from, to), _)| some.contains(from) || some.contains(to));
    let line = |((from, to), names): (&(String, String), &BTreeSet<String>)| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        format!("  {from} -> {to}: {}", names.join(", "))
    };
    inside.map(line).collect()
}

/// What is there and not in the list, or more than the list says.
fn growth(listed: &Debts, found: &Debts, arrows: &circles::Arrows) -> Vec<String> {
    let mut problems = Vec::new();
    for (function, lines) in &found.functions {
        let before = listed.functions.get(function).copied();
        if before.is_none_or(|before| *lines > before) {
            let were = before.map_or(String::new(), |before| format!(" ({LIST}: {before})"));
            problems.push(format!(
                "{function}: a function of {lines} lines{were}; split it"
            ));
        }
    }
    for (file, count) in &found.made_up_names {
        let before = listed.made_up_names.get(file).copied().unwrap_or(0);
        if *count > before {
            problems.push(format!(
                "{file}: spells {count} names that are made up for columns or tables ({LIST}: \
                 {before}); number columns, or name them in one place"
            ));
        }
    }
    for circle in &found.circles {
        // Two circles that have become one have grown, even without a new file: only the larger
        // of them is what was known.
        let known = listed.circles.iter().map(|old| &old.files);
        let known = known.filter(|old| !old.is_disjoint(&circle.files));
        let old = known
            .max_by_key(|old| old.len())
            .cloned()
            .unwrap_or_default();
        let new: BTreeSet<String> = circle.files.difference(&old).cloned().collect();
        if new.is_empty() {
            continue;
        }
        let names: Vec<&str> = new.iter().map(String::as_str).collect();
        let what = if old.is_empty() {
            "a circle of modules".to_string()
        } else {
            format!("a circle of {} modules has grown by", old.len())
        };
        let arrows = inner_arrows(arrows, &circle.files, &new).join("\n");
        problems.push(format!("{what}: {}\n{arrows}", names.join(", ")));
    }
    problems
}

/// What the list says and is not there any more.
fn stale(listed: &Debts, found: &Debts) -> Vec<String> {
    let mut problems = Vec::new();
    let counts = [
        (&listed.functions, &found.functions, "lines"),
        (&listed.made_up_names, &found.made_up_names, "made-up names"),
    ];
    let how = "cargo xtask tidy --shrink";
    for (listed, found, what) in counts {
        for (place, before) in listed {
            match found.get(place) {
                None => problems.push(format!("{LIST}: {place} is mended; {how}")),
                Some(now) if now < before => problems.push(format!(
                    "{LIST}: {place} has {now} {what} and no longer {before}; {how}"
                )),
                Some(_) => {}
            }
        }
    }
    for circle in &listed.circles {
        // In more than one circle now, or in none: `growth` speaks of the larger ones.
        let is_same = found
            .circles
            .iter()
            .any(|now| now.files.is_superset(&circle.files));
        if !is_same {
            let of: BTreeSet<&String> = found.circles.iter().flat_map(|now| &now.files).collect();
            let gone: Vec<&str> = circle
                .files
                .iter()
                .filter(|file| !of.contains(file))
                .map(String::as_str)
                .collect();
            problems.push(format!(
                "{LIST}: a circle of {} modules is smaller (gone: {}); {how}",
                circle.files.len(),
                gone.join(", ")
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(entries: &[(&str, usize)]) -> BTreeMap<String, usize> {
        let entries = entries.iter();
        entries
            .map(|(name, count)| (name.to_string(), *count))
            .collect()
    }

    fn ring(circles: &[&[&str]]) -> Debts {
        let circles = circles.iter().map(|files| Circle {
            files: files.iter().map(ToString::to_string).collect(),
        });
        Debts {
            circles: circles.collect(),
            ..Debts::default()
        }
    }

    /// How many problems of each kind: what has grown, what the list says too much.
    fn compare(listed: &Debts, found: &Debts) -> (usize, usize) {
        let arrows = circles::Arrows::new();
        (
            growth(listed, found, &arrows).len(),
            stale(listed, found).len(),
        )
    }

    #[test]
    fn functions_only_shrink() {
        let debts = |entries| Debts {
            functions: counts(entries),
            ..Debts::default()
        };
        let listed = debts(&[("f", 90)]);
        assert_eq!(compare(&listed, &debts(&[("f", 90)])), (0, 0));
        assert_eq!(compare(&listed, &debts(&[("f", 91)])), (1, 0));
        assert_eq!(compare(&listed, &debts(&[("f", 89)])), (0, 1));
        assert_eq!(compare(&listed, &debts(&[])), (0, 1));
        assert_eq!(compare(&listed, &debts(&[("f", 90), ("g", 81)])), (1, 0));
        assert_eq!(compare(&listed, &debts(&[("g", 90)])), (1, 1));
    }

    #[test]
    fn made_up_names_only_get_fewer() {
        let debts = |entries| Debts {
            made_up_names: counts(entries),
            ..Debts::default()
        };
        let listed = debts(&[("a.rs", 2)]);
        assert_eq!(compare(&listed, &debts(&[("a.rs", 2)])), (0, 0));
        assert_eq!(compare(&listed, &debts(&[("a.rs", 3)])), (1, 0));
        assert_eq!(compare(&listed, &debts(&[("a.rs", 1)])), (0, 1));
        assert_eq!(compare(&listed, &debts(&[("b.rs", 1)])), (1, 1));
    }

    #[test]
    fn circles_only_shrink() {
        let listed = ring(&[&["a", "b", "c", "d"], &["x", "y"]]);
        assert_eq!(compare(&listed, &listed), (0, 0));
        // A new one, one that grows, one that two have become.
        let new = ring(&[&["a", "b", "c", "d"], &["m", "n"], &["x", "y"]]);
        assert_eq!(compare(&listed, &new), (1, 0));
        let larger = ring(&[&["a", "b", "c", "d", "e"], &["x", "y"]]);
        assert_eq!(compare(&listed, &larger), (1, 0));
        let one = ring(&[&["a", "b", "c", "d", "x", "y"]]);
        assert_eq!(compare(&listed, &one), (1, 0));
        // One that is smaller, one in two pieces, one that is gone, one that has moved on.
        assert_eq!(compare(&listed, &ring(&[&["a", "b"], &["x", "y"]])), (0, 1));
        let pieces = ring(&[&["a", "b"], &["c", "d"], &["x", "y"]]);
        assert_eq!(compare(&listed, &pieces), (0, 1));
        assert_eq!(compare(&listed, &ring(&[&["a", "b", "c", "d"]])), (0, 1));
        let moved = ring(&[&["a", "b", "e"], &["x", "y"]]);
        assert_eq!(compare(&listed, &moved), (1, 1));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let debts = Debts {
            functions: counts(&[("crates/a/src/b.rs: T::f", 90)]),
            made_up_names: counts(&[("crates/a/src/b.rs", 1)]),
            ..ring(&[&["a", "b"], &["c", "d"]])
        };
        let text = format!(
            "{HEADER}{}",
            toml::to_string_pretty(&debts).expect("it writes")
        );
        let again: Debts = toml::from_str(&text).expect("it reads");
        assert_eq!(again, debts);
    }
}
