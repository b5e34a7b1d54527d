//! A cursor over tokens: sqlparser's parser with the words that our parsers need.

use datafusion::sql::sqlparser::ast::{ObjectName, ObjectNamePart, Query};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use mayfly_types::{ErrorCode, MySqlError};

use super::refusal::{RECURSION_LIMIT, Refusal, Result};
use super::reserved::is_reserved;
use crate::dialect::MayflyDialect;
use crate::references;
use crate::statement::TableName;

pub(crate) struct Cursor<'a> {
    pub(crate) parser: Parser<'a>,
    pub(crate) dialect: &'a MayflyDialect,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(dialect: &'a MayflyDialect, tokens: Vec<TokenWithSpan>) -> Cursor<'a> {
        let parser = Parser::new(dialect).with_recursion_limit(RECURSION_LIMIT);
        Cursor {
            parser: parser.with_tokens_with_locations(tokens),
            dialect,
        }
    }

    pub(crate) fn peek(&self) -> Token {
        self.parser.peek_token_ref().token.clone()
    }

    /// A token behind the next one, by how many stand before it.
    pub(crate) fn peek_ahead(&self, ahead: usize) -> &Token {
        &self.parser.peek_nth_token_ref(ahead).token
    }

    pub(crate) fn skip(&mut self) {
        self.parser.advance_token();
    }

    pub(crate) fn end(&mut self) -> Result<()> {
        while self.parser.consume_token(&Token::SemiColon) {}
        match self.parser.peek_token_ref().token {
            Token::EOF => Ok(()),
            _ => self.fail("the end of the statement"),
        }
    }

    /// Whether nothing follows but ends of statements.
    pub(crate) fn is_over(&self) -> bool {
        let tokens = (0..).map(|ahead| &self.parser.peek_nth_token_ref(ahead).token);
        let mut behind = tokens.skip_while(|token| **token == Token::SemiColon);
        behind.next() == Some(&Token::EOF)
    }

    /// A syntax error at the next token.
    pub(crate) fn fail<T>(&self, expected: &str) -> Result<T> {
        Err(Refusal::Syntax(self.error(expected)))
    }

    fn error(&self, expected: &str) -> ParserError {
        match self
            .parser
            .expected_ref::<()>(expected, self.parser.peek_token_ref())
        {
            Err(error) => error,
            Ok(()) => ParserError::ParserError(String::new()),
        }
    }

    fn is_word(&self, ahead: usize, word: &str) -> bool {
        matches!(&self.parser.peek_nth_token_ref(ahead).token,
            Token::Word(found)
                if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
    }

    pub(crate) fn peek_word(&self, word: &str) -> bool {
        self.is_word(0, word)
    }

    pub(crate) fn peek_words(&self, words: &[&str]) -> bool {
        words
            .iter()
            .enumerate()
            .all(|(ahead, word)| self.is_word(ahead, word))
    }

    /// Takes `word` if it is next.
    pub(crate) fn word(&mut self, word: &str) -> bool {
        let found = self.is_word(0, word);
        if found {
            self.parser.advance_token();
        }
        found
    }

    /// Takes all of `words` if they are next.
    pub(crate) fn words(&mut self, words: &[&str]) -> bool {
        let found = self.peek_words(words);
        if found {
            for _ in words {
                self.parser.advance_token();
            }
        }
        found
    }

    pub(crate) fn expect(&mut self, word: &str) -> Result<()> {
        if self.word(word) {
            Ok(())
        } else {
            self.fail(word)
        }
    }

    pub(crate) fn token(&mut self, token: &Token) -> bool {
        self.parser.consume_token(token)
    }

    /// Items with a comma between two of them, one at least.
    pub(crate) fn list(&mut self, mut item: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        loop {
            item(self)?;
            if !self.token(&Token::Comma) {
                return Ok(());
            }
        }
    }

    /// `(a, b)`, if it is there: the names in it.
    pub(super) fn names_in_parentheses(&mut self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        if self.token(&Token::LParen) {
            self.list(|cursor| {
                names.push(cursor.name()?);
                Ok(())
            })?;
            self.parser.expect_token(&Token::RParen)?;
        }
        Ok(names)
    }

    /// The names of tables or views that are dropped, and words that change nothing.
    pub(super) fn dropped(&mut self) -> Result<Vec<TableName>> {
        let mut names = Vec::new();
        self.list(|cursor| {
            names.push(cursor.table_name()?);
            Ok(())
        })?;
        let _ = self.word("RESTRICT") || self.word("CASCADE");
        Ok(names)
    }

    /// The parts of the name of a column: its database and its table may stand before it.
    pub(crate) fn column_name(&mut self) -> Result<Vec<String>> {
        let mut names = vec![self.name()?];
        while names.len() < 3 && self.token(&Token::Period) {
            names.push(self.name()?);
        }
        Ok(names)
    }

    /// A column and, if they stand before it, its table and the database of that.
    pub(crate) fn qualified_column(&mut self) -> Result<(Option<TableName>, String)> {
        let mut names = self.column_name()?;
        let column = names.pop().unwrap_or_default();
        let table = names.pop().map(|table| TableName {
            database: names.pop(),
            table,
        });
        Ok((table, column))
    }

    /// A name: reserved words only in quotes, or beside a point, where they are read as if they
    /// stood in quotes.
    pub(crate) fn name(&mut self) -> Result<String> {
        match self.peek() {
            Token::Word(word) if word.quote_style.is_none() && is_reserved(&word.value) => {
                self.fail("an identifier")
            }
            _ => self.any_word(),
        }
    }

    /// A word, reserved or not.
    pub(crate) fn any_word(&mut self) -> Result<String> {
        match self.peek() {
            Token::Word(word) => {
                self.skip();
                Ok(word.value)
            }
            _ => self.fail("an identifier"),
        }
    }

    /// An identifier or a string.
    pub(crate) fn value_word(&mut self) -> Result<String> {
        match self.peek() {
            Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => {
                self.skip();
                Ok(text)
            }
            Token::Number(text, _) => {
                self.skip();
                Ok(text)
            }
            _ => self.any_word(),
        }
    }

    /// A string.
    pub(crate) fn string(&mut self) -> Result<String> {
        match self.peek() {
            Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => {
                self.skip();
                Ok(text)
            }
            Token::HexStringLiteral(digits) => {
                self.skip();
                let bytes: Option<Vec<u8>> = (0..digits.len() / 2)
                    .map(|i| u8::from_str_radix(digits.get(2 * i..2 * i + 2)?, 16).ok())
                    .collect();
                match bytes.map(String::from_utf8) {
                    Some(Ok(text)) => Ok(text),
                    _ => self.fail("a string"),
                }
            }
            _ => self.fail("a string"),
        }
    }

    pub(crate) fn table_name(&mut self) -> Result<TableName> {
        match self.peek() {
            Token::Word(word) if word.quote_style.is_some() || !is_reserved(&word.value) => {}
            _ => return self.fail("a table name"),
        }
        let name = self.parser.parse_object_name(false)?;
        let mut parts = name.0.iter().filter_map(ObjectNamePart::as_ident);
        if parts.any(|part| part.quote_style.is_none() && is_reserved(&part.value)) {
            return self.fail("a table name");
        }
        table_name(&name)
    }

    pub(crate) fn query(&mut self) -> Result<Box<Query>> {
        Ok(self.parser.parse_query()?)
    }
}

/// The table that an object name means.
pub(crate) fn table_name(name: &ObjectName) -> Result<TableName> {
    let wrong = || MySqlError::new(ErrorCode::WrongTableName, &[&name]).into();
    references::table_name(name).ok_or_else(wrong)
}
