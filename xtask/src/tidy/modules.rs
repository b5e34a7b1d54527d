//! What names mean in the modules of one crate: which file defines what a path names.
//!
//! This is as much of Rust's name resolution as the arrows between files need. Re-exports and glob
//! imports are followed. What a macro defines is taken to stand in the module that is named, and
//! imports inside functions count for the whole module.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Block, Item, ItemMod, ItemUse, UseTree, Visibility};

use super::parsed::SourceFile;

/// Re-exports of re-exports that are followed. Two globs that name each other would never end.
const STEPS_MAX: usize = 16;

/// One name that a `use` brings in.
pub struct Import {
    /// `None` for a glob, `_` for a trait that is only used for its methods.
    pub name: Option<String>,
    pub path: Vec<String>,
}

/// The imports of one `use`.
pub fn imports_of(item: &ItemUse) -> Vec<Import> {
    let mut imports = Vec::new();
    if item.leading_colon.is_none() {
        flatten(&item.tree, &mut Vec::new(), &mut imports);
    }
    imports
}

pub fn is_re_export(item: &ItemUse) -> bool {
    !matches!(item.vis, Visibility::Inherited)
}

fn flatten(tree: &UseTree, prefix: &mut Vec<String>, imports: &mut Vec<Import>) {
    let with = |prefix: &[String], last: String| {
        let mut path = prefix.to_vec();
        if last != "self" {
            path.push(last);
        }
        path
    };
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            flatten(&path.tree, prefix, imports);
            prefix.pop();
        }
        UseTree::Name(name) => {
            let path = with(prefix, name.ident.to_string());
            let name = path.last().cloned();
            imports.push(Import { name, path });
        }
        UseTree::Rename(rename) => imports.push(Import {
            name: Some(rename.rename.to_string()),
            path: with(prefix, rename.ident.to_string()),
        }),
        UseTree::Glob(_) => imports.push(Import {
            name: None,
            path: prefix.clone(),
        }),
        UseTree::Group(group) => {
            for tree in &group.items {
                flatten(tree, prefix, imports);
            }
        }
    }
}

#[derive(Default)]
struct Module {
    /// Index of the file that the module is, or that it stands in.
    file: usize,
    items: BTreeSet<String>,
    imports: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
}

/// The modules of one crate.
pub struct Modules {
    by_path: BTreeMap<Vec<String>, Module>,
}

impl Modules {
    /// Reads the files of one crate; files are known by their place in the slice.
    pub fn of(sources: &[&SourceFile]) -> Self {
        let mut reader = Reader {
            modules: Self {
                by_path: BTreeMap::new(),
            },
            module: Vec::new(),
            file: 0,
            blocks: 0,
        };
        for (file, source) in sources.iter().enumerate() {
            reader.file = file;
            reader.module = source.module.clone();
            reader.current();
            reader.visit_file(&source.syntax);
        }
        reader.modules
    }

    /// The file that defines what a path names, seen from a module. `None` if it is not of this
    /// crate, or a module and no more.
    pub fn file_of(&self, module: &[String], path: &[String]) -> Option<usize> {
        self.find(module, path, 0)
    }

    fn find(&self, module: &[String], path: &[String], steps: usize) -> Option<usize> {
        if steps > STEPS_MAX {
            return None;
        }
        let mut place = module.to_vec();
        let mut rest = path;
        let mut rooted = false;
        while let Some((first, behind)) = rest.split_first() {
            match first.as_str() {
                "crate" => place.clear(),
                "self" => {}
                "super" => {
                    place.pop()?;
                }
                _ => break,
            }
            rooted = true;
            rest = behind;
        }
        while let Some((first, behind)) = rest.split_first() {
            let here = self.by_path.get(&place)?;
            // What has more behind it is a module if it can be, the last name is one only if it
            // can be nothing else: a function and its module may share their name.
            let mut child = place.clone();
            child.push(first.clone());
            let is_module = self.by_path.contains_key(&child);
            if !behind.is_empty() && is_module {
                place = child;
                rest = behind;
                rooted = true;
                continue;
            }
            if here.items.contains(first) {
                return Some(here.file);
            }
            let named = here.imports.get(first).and_then(|target| {
                // `use a::{self}` in `a` itself would look for itself.
                let target: Vec<String> = target.iter().chain(behind).cloned().collect();
                (target != rest).then(|| self.find(&place, &target, steps + 1))?
            });
            let named = named.or_else(|| {
                here.globs.iter().find_map(|glob| {
                    let target: Vec<String> = glob.iter().chain(rest).cloned().collect();
                    self.find_exact(&place, &target, steps + 1)
                })
            });
            if named.is_some() || is_module {
                return named;
            }
            let imported = here.imports.contains_key(first);
            // A macro defines it.
            return (rooted && !imported).then_some(here.file);
        }
        None
    }

    /// As `find`, without guessing that a macro defines it: a glob may not have the name at all.
    fn find_exact(&self, module: &[String], path: &[String], steps: usize) -> Option<usize> {
        let (name, parents) = path.split_last()?;
        let file = self.find(module, path, steps)?;
        let mut place = module.to_vec();
        for parent in parents {
            match parent.as_str() {
                "crate" => place.clear(),
                "self" => {}
                "super" => {
                    place.pop()?;
                }
                _ => place.push(parent.clone()),
            }
        }
        let here = self.by_path.get(&place)?;
        let known = here.items.contains(name) || here.imports.contains_key(name);
        known.then_some(file)
    }
}

struct Reader {
    modules: Modules,
    module: Vec<String>,
    file: usize,
    /// How many blocks are open: what they define is seen by nobody else.
    blocks: usize,
}

impl Reader {
    fn current(&mut self) -> &mut Module {
        let file = self.file;
        let module = self.modules.by_path.entry(self.module.clone());
        module.or_insert_with(|| Module {
            file,
            ..Module::default()
        })
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_block(&mut self, block: &'ast Block) {
        self.blocks += 1;
        visit::visit_block(self, block);
        self.blocks -= 1;
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if item.content.is_some() {
            self.module.push(item.ident.to_string());
            self.current();
            visit::visit_item_mod(self, item);
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        for import in imports_of(item) {
            let module = self.current();
            match import.name {
                Some(name) if name != "_" => {
                    module.imports.entry(name).or_insert(import.path);
                }
                Some(_) => {}
                None => module.globs.push(import.path),
            }
        }
    }

    fn visit_item(&mut self, item: &'ast Item) {
        let name = match item {
            Item::Const(item) => Some(&item.ident),
            Item::Enum(item) => Some(&item.ident),
            Item::Fn(item) => Some(&item.sig.ident),
            Item::Macro(item) => item.ident.as_ref(),
            Item::Static(item) => Some(&item.ident),
            Item::Struct(item) => Some(&item.ident),
            Item::Trait(item) => Some(&item.ident),
            Item::Type(item) => Some(&item.ident),
            Item::Union(item) => Some(&item.ident),
            _ => None,
        };
        if let Some(name) = name
            && self.blocks == 0
        {
            let name = name.to_string();
            self.current().items.insert(name);
        }
        visit::visit_item(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::super::parsed::parse;
    use super::*;

    fn words(path: &str) -> Vec<String> {
        let path = path.split("::").filter(|word| !word.is_empty());
        path.map(str::to_string).collect()
    }

    /// Where paths of a small crate lead, seen from a module.
    fn check(texts: &[(&str, &str)], from: &str, expect: &[(&str, Option<&str>)]) {
        let sources = parse(texts.iter().copied()).expect("it parses");
        let sources: Vec<&SourceFile> = sources.iter().collect();
        let modules = Modules::of(&sources);
        for (path, expected) in expect {
            let found = modules.file_of(&words(from), &words(path));
            let found = found.map(|file| sources[file].path.as_str());
            assert_eq!(found, *expected, "{path}");
        }
    }

    #[test]
    fn re_exports_lead_to_the_file_that_defines() {
        let texts = [
            (
                "c/src/lib.rs",
                "pub mod a; mod d; pub use a::Type as Renamed;",
            ),
            (
                "c/src/a/mod.rs",
                "mod b; mod all; pub use b::{Type, make}; pub use all::*;",
            ),
            (
                "c/src/a/b.rs",
                "pub struct Type; pub fn make() {} pub mod deep { pub fn f() {} }",
            ),
            ("c/src/a/all.rs", "pub const LIMIT: usize = 1;"),
            ("c/src/d.rs", "use crate::a::{self, make}; use std::fmt;"),
        ];
        let expect = [
            ("crate::a::Type", Some("c/src/a/b.rs")),
            ("crate::a::Type::new", Some("c/src/a/b.rs")),
            ("crate::Renamed", Some("c/src/a/b.rs")),
            ("super::a::LIMIT", Some("c/src/a/all.rs")),
            ("a::LIMIT", Some("c/src/a/all.rs")),
            ("make", Some("c/src/a/b.rs")),
            ("a::b::deep::f", Some("c/src/a/b.rs")),
            ("crate::a::by_a_macro", Some("c/src/a/mod.rs")),
            ("crate::a", None),
            ("a::b", None),
            ("fmt::Debug", None),
            ("std::fmt", None),
            ("unknown", None),
        ];
        check(&texts, "d", &expect);
    }

    #[test]
    fn a_module_and_a_function_may_share_a_name() {
        let texts = [
            (
                "c/src/lib.rs",
                "mod run; mod other; use run::run; fn f() {}",
            ),
            ("c/src/run.rs", "pub fn run() {} pub fn more() {}"),
            ("c/src/other.rs", "use super::run;"),
        ];
        let expect = [
            ("run", Some("c/src/run.rs")),
            ("run::more", Some("c/src/run.rs")),
            ("super::run", Some("c/src/run.rs")),
        ];
        check(&texts, "other", &expect);
    }

    #[test]
    fn globs_that_name_each_other_end() {
        let texts = [
            ("c/src/lib.rs", "mod a; mod b;"),
            ("c/src/a.rs", "pub use crate::b::*;"),
            ("c/src/b.rs", "pub use crate::a::*;"),
        ];
        check(&texts, "a", &[("Nothing", None)]);
    }
}
