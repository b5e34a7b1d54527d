//! No circles of modules inside a crate: whoever reads a file can read what it needs before.
//!
//! A module is a file, and an arrow leads from a file to the file that defines what it names: in a
//! `use`, in a path, or in the tokens of a macro. Arrows pass through re-exports: what names
//! `super::Type`, which the parent re-exports from another child, points to that child.
//!
//! What makes no arrow:
//! - `mod child;`, and `pub use child::Type;` of a parent that does not itself use the type: both
//!   say where things are and need nothing of them.
//! - The import of a module. What is named in it makes the arrow.
//! - `pub(in crate::a)`, which says who may see.
//! - A method that is called on a value, or a field. Only types would tell whose it is.
//!
//! A parent and a child that use each other are a circle as any two files are. What both need moves
//! to a file of its own, or the parent hands it to the child as an argument.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprCall, ItemMod, ItemUse, Macro, Path, VisRestricted};

use super::modules::{Modules, imports_of, is_re_export};
use super::parsed::SourceFile;

/// From a file to another one, with the names that the arrow stands for.
pub type Arrows = BTreeMap<(String, String), BTreeSet<String>>;

/// All arrows between the files of each crate.
pub fn arrows(sources: &[SourceFile]) -> Arrows {
    let mut crates: BTreeMap<&str, Vec<&SourceFile>> = BTreeMap::new();
    for source in sources {
        let files = crates.entry(source.crate_folder.as_str()).or_default();
        files.push(source);
    }
    let mut arrows = Arrows::new();
    for sources in crates.values() {
        let modules = Modules::of(sources);
        for (file, source) in sources.iter().enumerate() {
            let mut names = Names {
                modules: &modules,
                module: source.module.clone(),
                found: BTreeSet::new(),
            };
            names.visit_file(&source.syntax);
            for (target, name) in names.found {
                if target != file {
                    let ends = (source.path.clone(), sources[target].path.clone());
                    arrows.entry(ends).or_default().insert(name);
                }
            }
        }
    }
    arrows
}

/// The files that reach each other, each circle once and in order.
pub fn circles(arrows: &Arrows) -> Vec<Vec<String>> {
    let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (from, to) in arrows.keys() {
        next.entry(from).or_default().push(to);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> = next
        .keys()
        .map(|file| (*file, reach(file, &next)))
        .collect();
    let mut circles = BTreeSet::new();
    for (file, others) in &reached {
        let back = |other: &&&str| reached.get(**other).is_some_and(|all| all.contains(file));
        let circle: Vec<String> = others
            .iter()
            .filter(back)
            .map(ToString::to_string)
            .collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

/// The files that arrows lead to from a file, over others too.
fn reach<'a>(file: &str, next: &BTreeMap<&str, Vec<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = next.get(file).cloned().unwrap_or_default();
    while let Some(file) = open.pop() {
        if reached.insert(file) {
            open.extend(next.get(file).into_iter().flatten());
        }
    }
    reached
}

/// Looks for what a file names.
struct Names<'a> {
    modules: &'a Modules,
    module: Vec<String>,
    found: BTreeSet<(usize, String)>,
}

impl Names<'_> {
    fn name(&mut self, path: &[String]) {
        if let Some(file) = self.modules.file_of(&self.module, path) {
            let name = path.last().cloned().unwrap_or_default();
            self.found.insert((file, name));
        }
    }

    /// A word alone may be a variable; one in small letters names something of ours if it is
    /// called. (A private import counts by itself, so only re-exports are asked for here.)
    fn word(&mut self, word: &str, called: bool) {
        if called || word.starts_with(char::is_uppercase) {
            self.name(&[word.to_string()]);
        }
    }

    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let is = |at: usize, c: char| matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == c);
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(first) => {
                    // `value.name` is a field or a method.
                    let of_value = at > 0 && is(at - 1, '.');
                    let mut path = vec![first.to_string()];
                    while is(at + 1, ':')
                        && is(at + 2, ':')
                        && let Some(TokenTree::Ident(next)) = tokens.get(at + 3)
                    {
                        path.push(next.to_string());
                        at += 3;
                    }
                    let called = matches!(tokens.get(at + 1), Some(TokenTree::Group(group))
                        if group.delimiter() == Delimiter::Parenthesis);
                    match path.as_slice() {
                        _ if of_value => {}
                        [word] => self.word(word, called),
                        path => self.name(path),
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }
}

impl<'ast> Visit<'ast> for Names<'_> {
    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_vis_restricted(&mut self, _: &'ast VisRestricted) {}

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if !is_re_export(item) {
            for import in imports_of(item) {
                self.name(&import.path);
            }
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        let words: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        match words.as_slice() {
            _ if path.leading_colon.is_some() => {}
            [word] => self.word(word, false),
            words => self.name(words),
        }
        visit::visit_path(self, path);
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Expr::Path(function) = &*call.func
            && let Some(word) = function.path.get_ident()
        {
            self.word(&word.to_string(), true);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::super::parsed::parse;
    use super::*;

    /// The arrows of a small crate, as `a -> b`.
    fn arrows_of(texts: &[(&str, &str)]) -> Vec<String> {
        let paths: Vec<String> = texts
            .iter()
            .map(|(path, _)| format!("c/src/{path}"))
            .collect();
        let texts = paths.iter().zip(texts);
        let sources = parse(texts.map(|(path, (_, text))| (path.as_str(), *text)));
        let arrows = arrows(&sources.expect("it parses"));
        let short = |path: &str| path.replace("c/src/", "").replace(".rs", "");
        let all = arrows.keys();
        all.map(|(from, to)| format!("{} -> {}", short(from), short(to)))
            .collect()
    }

    fn circles_of(arrows: &[(&str, &str)]) -> Vec<Vec<String>> {
        let ends = arrows.iter();
        let ends = ends.map(|(from, to)| ((from.to_string(), to.to_string()), BTreeSet::new()));
        circles(&ends.collect())
    }

    #[test]
    fn circles_are_files_that_reach_each_other() {
        let ring = [
            ("a", "b"),
            ("b", "c"),
            ("c", "a"),
            ("c", "d"),
            ("d", "e"),
            ("x", "a"),
        ];
        assert_eq!(circles_of(&ring), [["a", "b", "c"]]);
        assert!(circles_of(&ring[1..]).is_empty());
        let two = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "d"), ("d", "c")];
        assert_eq!(circles_of(&two), [["a", "b"], ["c", "d"]]);
    }

    #[test]
    fn a_use_a_path_and_a_macro_make_arrows() {
        for text in [
            "use crate::b::f;",
            "fn g() { use super::b::f; }",
            "fn g() { crate::b::f() }",
            "fn g(x: Vec<super::b::T>) {}",
            "use crate::b; fn g() { b::f() }",
            "fn g() { println!(\"{}\", crate::b::f()) }",
            "use super::*; fn g() { b::f() }",
            "mod inner { use super::super::b::T; }",
            "use super::b::Trait as _;",
            "use super::again;",
            "impl crate::b::T {}",
            "#[derive(Debug)] struct S { field: crate::b::T }",
        ] {
            let b = "pub fn f() {} pub struct T; pub trait Trait {}";
            let texts = [
                ("lib.rs", "mod a; mod b; pub use b::f as again;"),
                ("a.rs", text),
            ];
            let found = arrows_of(&[texts[0], texts[1], ("b.rs", b)]);
            assert_eq!(found, ["a -> b"], "{text}");
        }
    }

    #[test]
    fn what_needs_nothing_makes_no_arrow() {
        for text in [
            "use crate::b;",
            "pub use crate::b::f;",
            "pub(in crate::b) fn g() {}",
            "pub use crate::b::f; fn g(f: usize) -> usize { f }",
            "#[cfg(test)] mod tests { use crate::b::f; }",
            "#[cfg(test)] use crate::b::f;",
            "fn g(x: usize) { x.f(); println!(\"{}\", x.f()) }",
            "use std::b::f;",
        ] {
            let texts = [("lib.rs", "mod a; mod b;"), ("a.rs", text)];
            let found = arrows_of(&[texts[0], texts[1], ("b.rs", "pub fn f() {}")]);
            assert!(found.is_empty(), "{text}: {found:?}");
        }
    }

    #[test]
    fn a_parent_that_uses_what_it_re_exports_points_to_its_child() {
        let child = (
            "a/child.rs",
            "use super::{Sibling, own}; pub struct Type; pub fn f() {}",
        );
        let sibling = ("a/sibling.rs", "pub struct Sibling;");
        let exports = "mod child; mod sibling; pub use child::{f, Type};
            pub(crate) use sibling::Sibling; fn own() {}";
        let uses =
            |code: &str| arrows_of(&[("a/mod.rs", &format!("{exports} {code}")), child, sibling]);
        let alone = ["a/child -> a/mod", "a/child -> a/sibling"];
        assert_eq!(uses(""), alone);
        let circle = [
            "a/child -> a/mod",
            "a/child -> a/sibling",
            "a/mod -> a/child",
        ];
        assert_eq!(uses("fn g(x: Type) {}"), circle);
        assert_eq!(uses("fn g() { f() }"), circle);
        assert_eq!(uses("fn g() { println!(\"{}\", f()) }"), circle);
        assert_eq!(uses("fn g() { child::f() }"), circle);
    }
}
