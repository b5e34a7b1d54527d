//! Source files: length, width, alphabet, unsafe code, words.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

const EXCEPTIONS: &str = "xtask/tidy.toml";
/// Lines after which a file needs a reason.
const LINES_MAX: usize = 700;
const COLUMNS_MAX: usize = 100;
/// Written in two parts so that this file does not break its own rule.
const BANNED: [&str; 6] = [
    concat!("to", "do!("),
    concat!("unimpl", "emented!("),
    concat!("FIX", "ME"),
    concat!("XX", "X:"),
    concat!("TO", "DO"),
    concat!("#[ign", "ore"),
];
const UNWRAP: &str = concat!(".unw", "rap()");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exceptions {
    unsafe_files: Vec<String>,
    long_files: BTreeMap<String, String>,
}

pub fn check(root: &Path, files: &[String]) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(root.join(EXCEPTIONS)).context(EXCEPTIONS)?;
    let exceptions: Exceptions = toml::from_str(&text).context(EXCEPTIONS)?;
    let mut problems = Vec::new();
    for path in files.iter().filter(|path| path.ends_with(".rs")) {
        let text = std::fs::read_to_string(root.join(path)).with_context(|| path.clone())?;
        check_file(path, &text, &exceptions, &mut problems);
    }
    let known = exceptions
        .unsafe_files
        .iter()
        .chain(exceptions.long_files.keys());
    for path in known.filter(|path| !files.contains(path)) {
        problems.push(format!("{EXCEPTIONS}: there is no file {path}"));
    }
    Ok(problems)
}

fn check_file(path: &str, text: &str, exceptions: &Exceptions, problems: &mut Vec<String>) {
    let lines = text.lines().count();
    if lines > LINES_MAX && !exceptions.long_files.contains_key(path) {
        problems.push(format!(
            "{path}: {lines} lines; split it or give the reason in {EXCEPTIONS}"
        ));
    }
    let test_file = is_test_file(path);
    let may_be_unsafe = exceptions.unsafe_files.iter().any(|listed| listed == path);
    let mut in_tests = test_file;
    for (index, line) in text.lines().enumerate() {
        let place = || format!("{path}:{}", index + 1);
        in_tests |= line.trim_start().starts_with("#[cfg(test)]");
        if !line.is_ascii() {
            problems.push(format!("{}: not ASCII; write an escape", place()));
        }
        // rustfmt sees to code; comments and the rows of tables it leaves alone.
        if line.trim_start().starts_with("//") && line.chars().count() > COLUMNS_MAX {
            problems.push(format!("{}: wider than {COLUMNS_MAX} columns", place()));
        }
        for word in BANNED.iter().filter(|word| line.contains(**word)) {
            problems.push(format!("{}: '{word}'", place()));
        }
        let code = line.split("//").next().unwrap_or(line);
        if !in_tests && code.contains(UNWRAP) {
            problems.push(format!(
                "{}: '{UNWRAP}'; use expect with the reason",
                place()
            ));
        }
        if !may_be_unsafe && has_unsafe(code) {
            problems.push(format!("{}: unsafe code outside {EXCEPTIONS}", place()));
        }
    }
    let forbids = text.contains("#![forbid(unsafe_code)]");
    // A crate with a file of the list forbids nothing: this check does it file by file.
    let of_crate = |file: &str| file.split("/src/").next() == path.split("/src/").next();
    let excused = exceptions.unsafe_files.iter().any(|file| of_crate(file));
    let crate_root = path.ends_with("src/lib.rs") || path.ends_with("src/main.rs");
    let is_library = path.ends_with("src/lib.rs") && !path.starts_with("fuzz/");
    if is_library && !text.contains("missing_docs") {
        problems.push(format!("{path}: must say #![warn(missing_docs)]"));
    }
    if crate_root && !forbids && !excused {
        problems.push(format!("{path}: must say #![forbid(unsafe_code)]"));
    }
}

pub fn is_test_file(path: &str) -> bool {
    path.starts_with("tests/")
        || path.starts_with("crates/testkit/")
        || path.contains("/tests/")
        || path.contains("/examples/")
        || path.ends_with("tests.rs")
}

/// Whether the keyword opens a block, function, trait or implementation.
fn has_unsafe(code: &str) -> bool {
    code.match_indices("unsafe").any(|(at, word)| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].trim_start();
        let opens = ["{", "fn", "impl", "extern", "trait"];
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '"')
            && opens.iter().any(|next| after.starts_with(next))
    })
}
