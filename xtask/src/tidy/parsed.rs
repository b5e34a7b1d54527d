//! The source files of all crates as syntax trees, without their tests.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use syn::{Attribute, File, ImplItem, Item};

use super::sources::is_test_file;

/// One file of a crate.
pub struct SourceFile {
    /// Relative to the root of the repository.
    pub path: String,
    /// The folder that `lib.rs` or `main.rs` of its crate stands in.
    pub crate_folder: String,
    /// The module that the file is, from the root of its crate.
    pub module: Vec<String>,
    pub syntax: File,
}

/// Reads the files below the `src` folders of all crates, without tests.
pub fn read(root: &Path, files: &[String]) -> Result<Vec<SourceFile>> {
    let mut texts = Vec::new();
    for path in files.iter().filter(|path| is_source(path)) {
        let text = std::fs::read_to_string(root.join(path)).with_context(|| path.clone())?;
        texts.push((path.as_str(), text));
    }
    parse(texts.iter().map(|(path, text)| (*path, text.as_str())))
}

/// The same for files that are given as paths and texts.
pub fn parse<'a>(texts: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Vec<SourceFile>> {
    let mut sources = Vec::new();
    for (path, text) in texts {
        let syntax = syn::parse_file(text).with_context(|| path.to_string())?;
        let (crate_folder, rest) = path.split_once("/src/").context("a path without src")?;
        sources.push(SourceFile {
            path: path.to_string(),
            crate_folder: format!("{crate_folder}/src"),
            module: module_of(rest),
            syntax,
        });
    }
    let mut tests = BTreeSet::new();
    for source in &sources {
        for item in &source.syntax.items {
            if let Item::Mod(declared) = item
                && is_test(&declared.attrs)
            {
                let mut module = source.module.clone();
                module.push(declared.ident.to_string());
                tests.insert((source.crate_folder.clone(), module));
            }
        }
    }
    sources.retain(|source| {
        !(1..=source.module.len()).any(|len| {
            let module = source.module[..len].to_vec();
            tests.contains(&(source.crate_folder.clone(), module))
        })
    });
    for source in &mut sources {
        drop_tests(&mut source.syntax.items);
    }
    Ok(sources)
}

fn is_source(path: &str) -> bool {
    path.ends_with(".rs")
        && path.contains("/src/")
        && !path.starts_with("fuzz/")
        && !is_test_file(path)
}

/// The module of a file, by its path below `src`.
fn module_of(path: &str) -> Vec<String> {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let mut names: Vec<String> = path.split('/').map(str::to_string).collect();
    let root = names.len() == 1 && (names[0] == "lib" || names[0] == "main");
    if root || names.last().is_some_and(|name| name == "mod") {
        names.pop();
    }
    names
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else {
            return false;
        };
        let condition = list.tokens.to_string();
        attribute.path().is_ident("cfg")
            && !condition.contains("not")
            && condition
                .split(|c: char| !c.is_alphanumeric())
                .any(|word| word == "test")
    })
}

fn drop_tests(items: &mut Vec<Item>) {
    items.retain(|item| !is_test(attributes_of(item)));
    for item in items {
        match item {
            Item::Mod(module) => {
                if let Some((_, items)) = &mut module.content {
                    drop_tests(items);
                }
            }
            Item::Impl(block) => block.items.retain(|item| match item {
                ImplItem::Fn(function) => !is_test(&function.attrs),
                _ => true,
            }),
            _ => {}
        }
    }
}

fn attributes_of(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_the_modules_that_rust_makes_of_them() {
        for (path, module) in [
            ("lib.rs", ""),
            ("main.rs", ""),
            ("a.rs", "a"),
            ("a/mod.rs", "a"),
            ("a/main.rs", "a::main"),
            ("a/b.rs", "a::b"),
        ] {
            assert_eq!(module_of(path).join("::"), module, "{path}");
        }
    }

    #[test]
    fn tests_are_left_out() {
        let lib = "#[cfg(test)] mod model; #[cfg(test)] use std::fmt; mod a;
            struct S;
            impl S { #[cfg(test)] fn checked() {} fn made() {} }
            #[cfg(all(test, unix))] mod tests { fn f() {} }
            #[cfg(not(test))] fn real() {}";
        let texts = [
            ("c/src/lib.rs", lib),
            ("c/src/a.rs", "fn a() {}"),
            ("c/src/model/mod.rs", "mod deep;"),
            ("c/src/model/deep.rs", "fn b() {}"),
        ];
        let sources = parse(texts.into_iter()).expect("it parses");
        let paths: Vec<&str> = sources.iter().map(|source| source.path.as_str()).collect();
        assert_eq!(paths, ["c/src/lib.rs", "c/src/a.rs"]);
        let items = &sources[0].syntax.items;
        assert_eq!(items.len(), 4);
        let Item::Impl(block) = &items[2] else {
            panic!("the third item is the implementation");
        };
        assert_eq!(block.items.len(), 1);
    }

    #[test]
    fn only_sources_of_crates_are_read() {
        for (path, read) in [
            ("crates/a/src/b.rs", true),
            ("bench/src/lib.rs", true),
            ("crates/a/src/tests.rs", false),
            ("crates/a/src/b/tests/mod.rs", false),
            ("crates/a/tests/it/main.rs", false),
            ("crates/a/examples/b.rs", false),
            ("fuzz/src/lib.rs", false),
            ("crates/a/src/b.md", false),
        ] {
            assert_eq!(is_source(path), read, "{path}");
        }
    }
}
