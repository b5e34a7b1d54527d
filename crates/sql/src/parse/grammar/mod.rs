//! What MySQL's grammar has, of all that sqlparser reads.
//!
//! sqlparser knows the SQL of many systems at once, and a dialect closes only some of its doors. In
//! here stands, for every token, every keyword and every node of its syntax tree, whether MySQL has
//! it. What it has not is error 1064 with the text from there on, and never obeyed.
//!
//! ```text
//!   tokens
//!     | operators    `==`, `::`, `!~` are divided into what MySQL reads there
//!     | keywords     a word that MySQL's grammar does not have is a name: QUALIFY, PIVOT, SEMI
//!   sqlparser, under the dialect, which has MySQL's infix operators and aliases only
//!     | statement    finds the queries and expressions of a statement
//!     | query        selects, tables, joins, ORDER BY, LIMIT     each field and each variant of
//!     | expression   expressions, literals, windows              the syntax tree: taken, or 1064
//!     | call         calls of functions
//!     | data_type    the types of CAST
//!   statement, or the first place that MySQL would not read on from
//! ```
//!
//! The first two change what is read, so that an error stands where MySQL's does: to MySQL `t SEMI
//! JOIN u` is a table with the alias `SEMI`. The tree is looked at for what is made of MySQL's own
//! words, such as DISTINCT ON.
//!
//! **The tables are checked by the compiler.** Tokens, structs and enums of sqlparser, and the
//! statements that hold them, are taken apart without `..` and without `_`, so a version of it that
//! reads more does not compile until somebody has decided here what that is. `..` stands only where
//! the whole node is refused whatever it holds. Keywords are a list of those that are taken, so a
//! new one is a name.
//!
//! MySQL 8.4 decides; MariaDB's additions count where Mayfly has them (`CAST(... AS INT)`). What
//! MySQL has and Mayfly has not is error 1235 and names the feature.

mod call;
mod data_type;
mod expression;
mod keywords;
mod operators;
mod query;
mod statement;
#[cfg(test)]
mod tests;

use datafusion::sql::sqlparser::ast::{Ident, ObjectName, ObjectNamePart, Spanned};
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan};
use mayfly_types::{ErrorCode, MySqlError};

use super::reserved::is_reserved;
use crate::statement::Statement;

/// Makes the tokens those that MySQL reads in the text.
pub(super) fn read_as_mysql(tokens: &mut Vec<TokenWithSpan>) {
    operators::divide(tokens);
    keywords::forget_foreign(tokens);
}

/// Looks at all that a statement holds of sqlparser's syntax tree; `tokens` makes its tokens again,
/// which is asked for when something is refused only.
///
/// # Errors
/// The first place that MySQL does not read on from, or what it has and Mayfly has not.
pub(super) fn check(
    statement: &Statement,
    tokens: impl FnOnce() -> Vec<TokenWithSpan>,
) -> Result<(), Refused> {
    let mut grammar = Grammar {
        foreign: Vec::new(),
        unsupported: None,
        around: Location::empty(),
    };
    grammar.statement(statement);
    if !grammar.foreign.is_empty() {
        let tokens = tokens();
        let places = { grammar.foreign.iter() }.map(|foreign| foreign.place(&tokens));
        return Err(Refused::Syntax(
            places.min().unwrap_or_else(Location::empty),
        ));
    }
    match grammar.unsupported {
        Some(what) => Err(Refused::Known(MySqlError::new(
            ErrorCode::NotSupportedYet,
            &[&what],
        ))),
        None => Ok(()),
    }
}

/// Why a statement is no statement of Mayfly.
pub(super) enum Refused {
    /// MySQL does not read on from here.
    Syntax(Location),
    /// An error with its own number.
    Known(MySqlError),
}

/// What has been found in a statement.
struct Grammar {
    foreign: Vec<Foreign>,
    unsupported: Option<&'static str>,
    /// Where what is being looked at begins, for nodes that do not know where they stand.
    around: Location,
}

/// Something that MySQL does not have, and how to find the token with which it begins.
struct Foreign {
    from: Location,
    begins: Begins,
}

enum Begins {
    /// With the first token that stands there or behind.
    Here,
    /// With the next one that is this word or this sign.
    With(&'static str),
    /// Behind the next one that is this word or this sign.
    Behind(&'static str),
}

impl Grammar {
    fn refuse(&mut self, from: Location, begins: Begins) {
        let is_known = from.line > 0;
        let from = if is_known { from } else { self.around };
        self.foreign.push(Foreign { from, begins });
    }

    /// Refuses a node from its first token on.
    fn refuse_node(&mut self, node: &impl Spanned) {
        self.refuse(node.span().start, Begins::Here);
    }

    /// Refuses what begins with a word behind a node.
    fn refuse_behind(&mut self, node: &impl Spanned, word: &'static str) {
        self.refuse(node.span().end, Begins::With(word));
    }

    /// Refuses what begins with a word, somewhere in what is being looked at.
    fn refuse_word(&mut self, word: &'static str) {
        self.refuse(self.around, Begins::With(word));
    }

    /// Refuses what is MySQL's and not Mayfly's.
    fn unsupported(&mut self, what: &'static str) {
        self.unsupported.get_or_insert(what);
    }

    /// A name: reserved words only in quotes, or beside a point, where they are read as if they
    /// stood in quotes.
    fn name(&mut self, name: &Ident) {
        if name.quote_style.is_none() && is_reserved(&name.value) {
            self.refuse(name.span.start, Begins::Here);
        }
    }
}

impl Foreign {
    fn place(&self, tokens: &[TokenWithSpan]) -> Location {
        let is_meant = |token: &&TokenWithSpan| {
            token.span.start >= self.from && !matches!(token.token, Token::Whitespace(_))
        };
        let mut behind = tokens.iter().filter(is_meant);
        let found = match self.begins {
            Begins::Here => behind.next(),
            Begins::With(word) => behind.find(|token| is(&token.token, word)),
            Begins::Behind(word) => {
                let _word = behind.find(|token| is(&token.token, word));
                behind.next()
            }
        };
        found.map_or(self.from, |token| token.span.start)
    }
}

/// Whether a name of one part is one of these.
fn is_one_of(name: &ObjectName, known: &[&str]) -> bool {
    let [ObjectNamePart::Identifier(name)] = name.0.as_slice() else {
        return false;
    };
    { known.iter() }.any(|known| name.value.eq_ignore_ascii_case(known))
}

fn is(token: &Token, wanted: &str) -> bool {
    match token {
        Token::Word(word) => word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted),
        other => other.to_string() == wanted,
    }
}
