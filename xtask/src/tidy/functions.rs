//! Functions have at most 80 lines, from `fn` to the closing brace, with comments and empty lines.
//!
//! Two functions of one name in one place count as the longer one.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};
use syn::{Block, ImplItemFn, ItemFn, ItemImpl, ItemMod, ItemTrait, Signature, TraitItemFn, Type};

use super::parsed::SourceFile;

/// About what a screen shows.
const LINES_MAX: usize = 80;

/// The functions that are longer, with their lines.
pub fn long(sources: &[SourceFile]) -> BTreeMap<String, usize> {
    let mut long = BTreeMap::new();
    for source in sources {
        let mut functions = Functions {
            path: &source.path,
            within: Vec::new(),
            long: &mut long,
        };
        functions.visit_file(&source.syntax);
    }
    long
}

struct Functions<'a> {
    path: &'a str,
    /// Names of the modules, types and functions around.
    within: Vec<String>,
    long: &'a mut BTreeMap<String, usize>,
}

impl Functions<'_> {
    fn measure(&mut self, signature: &Signature, block: &Block) {
        let first = signature.fn_token.span.start().line;
        let last = block.brace_token.span.close().end().line;
        let lines = last - first + 1;
        if lines > LINES_MAX {
            let name = format!("{}: {}", self.path, self.within.join("::"));
            let longest = self.long.entry(name).or_default();
            *longest = lines.max(*longest);
        }
    }

    fn inside(&mut self, name: String, visit: impl FnOnce(&mut Self)) {
        self.within.push(name);
        visit(self);
        self.within.pop();
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        let name = item.ident.to_string();
        self.inside(name, |this| visit::visit_item_mod(this, item));
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let name = match &*item.self_ty {
            Type::Path(path) => path.path.segments.last().map(|s| s.ident.to_string()),
            _ => None,
        };
        let name = name.unwrap_or_else(|| "impl".to_string());
        self.inside(name, |this| visit::visit_item_impl(this, item));
    }

    fn visit_item_trait(&mut self, item: &'ast ItemTrait) {
        let name = item.ident.to_string();
        self.inside(name, |this| visit::visit_item_trait(this, item));
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.inside(item.sig.ident.to_string(), |this| {
            this.measure(&item.sig, &item.block);
            visit::visit_item_fn(this, item);
        });
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.inside(item.sig.ident.to_string(), |this| {
            this.measure(&item.sig, &item.block);
            visit::visit_impl_item_fn(this, item);
        });
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        self.inside(item.sig.ident.to_string(), |this| {
            if let Some(block) = &item.default {
                this.measure(&item.sig, block);
            }
            visit::visit_trait_item_fn(this, item);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::parsed::parse;
    use super::*;

    fn long_of(text: &str) -> Vec<(String, usize)> {
        let sources = parse([("c/src/a.rs", text)].into_iter());
        long(&sources.expect("it parses")).into_iter().collect()
    }

    #[test]
    fn lines_count_from_the_keyword_to_the_brace() {
        let function =
            |lines: usize| format!("/// Why.\n\npub fn f() {{{}}}", "\n".repeat(lines - 1));
        assert!(long_of(&function(80)).is_empty());
        assert_eq!(long_of(&function(81)), [("c/src/a.rs: f".to_string(), 81)]);
    }

    #[test]
    fn functions_are_named_by_where_they_stand() {
        let body = "{\n".to_string() + &"\n".repeat(90) + "}";
        let text = format!(
            "mod m {{ impl<T> Trait for a::Type<T> {{ async fn f(&self) {body} }} }}
             trait U {{ fn g() {body} fn h(); }}
             fn outer() {{ fn inner() {body} }}
             #[cfg(test)] mod tests {{ fn long() {body} }}"
        );
        let names: Vec<String> = long_of(&text).into_iter().map(|(name, _)| name).collect();
        let expected = ["U::g", "m::Type::f", "outer", "outer::inner"];
        assert_eq!(names, expected.map(|name| format!("c/src/a.rs: {name}")));
    }
}
