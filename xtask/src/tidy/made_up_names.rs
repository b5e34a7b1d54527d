//! Names that rewrites make up for columns and tables, to know them again later.
//!
//! A name that nobody else writes ties two places together that share nothing that the compiler
//! sees. Where a bound tree is lowered to a plan, such names are made and read in one place; all
//! others are counted, file by file, until they are gone.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Lit, LitChar, LitStr, Macro};

use super::parsed::SourceFile;

/// Crates that plan statements and read plans. Others say `mayfly` to people.
const CRATES: [&str; 4] = [
    "crates/exec/src",
    "crates/session/src",
    "crates/sql/src",
    "crates/table/src",
];
/// Where such names may stand: what lowers a bound tree; the table of our own functions, which the
/// planner finds by name.
const HOMES: [&str; 2] = ["crates/sql/src/lower/", "crates/sql/src/functions/own.rs"];

/// How many of these names each file spells.
pub fn count(sources: &[SourceFile]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    let planning = sources
        .iter()
        .filter(|source| CRATES.contains(&source.crate_folder.as_str()));
    for source in planning {
        let mut literals = Literals { count: 0 };
        literals.visit_file(&source.syntax);
        let at_home = HOMES.iter().any(|home| source.path.starts_with(home));
        if literals.count > 0 && !at_home {
            counts.insert(source.path.clone(), literals.count);
        }
    }
    counts
}

/// Whether a literal is such a name, or begins one.
fn is_made_up(text: &str) -> bool {
    let marked = text.contains(['\u{1}', '\u{10FFFF}']);
    let ours = text.starts_with("mayfly ") || text.starts_with("$slot_");
    // DataFusion's own, such as `__scalar_sq`.
    let stock = text.starts_with("__") && !text.contains(char::is_uppercase);
    marked || ours || stock
}

struct Literals {
    count: usize,
}

impl Literals {
    fn literal(&mut self, text: &str) {
        self.count += usize::from(is_made_up(text));
    }

    fn tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Literal(literal) => match Lit::new(literal) {
                    Lit::Str(text) => self.literal(&text.value()),
                    Lit::Char(text) => self.literal(&text.value().to_string()),
                    _ => {}
                },
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Literals {
    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_lit_str(&mut self, text: &'ast LitStr) {
        self.literal(&text.value());
    }

    fn visit_lit_char(&mut self, text: &'ast LitChar) {
        self.literal(&text.value().to_string());
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }
}

#[cfg(test)]
mod tests {
    use super::super::parsed::parse;
    use super::*;

    fn count_of(path: &str, text: &str) -> usize {
        let sources = parse([(path, text)].into_iter()).expect("it parses");
        count(&sources).into_values().sum()
    }

    #[test]
    fn names_that_nobody_else_writes_are_counted() {
        let text = r#"
            //! "mayfly comment"
            const ROW: &str = "\u{1}row";
            const MARK: char = '\u{10FFFF}';
            fn f(n: usize) -> String { format!("mayfly value {n}") }
            fn g(name: &str) -> bool { matches!(name, "__scalar_sq") || name == "$slot_" }
            const OTHER: [&str; 4] = ["mayfly", "row", "__HIVE_DEFAULT_PARTITION__", "a$slot_"];
            #[cfg(test)] mod tests { const X: &str = "mayfly test"; }
        "#;
        assert_eq!(count_of("crates/sql/src/a.rs", text), 5);
        assert_eq!(count_of("crates/sql/src/functions/a.rs", text), 5);
        assert_eq!(count_of("crates/sql/src/functions/own.rs", text), 0);
        assert_eq!(count_of("crates/sql/src/lower/names.rs", text), 0);
        assert_eq!(count_of("crates/app/src/a.rs", text), 0);
    }
}
