//! The text of a statement beside its tokens: where a select list stands and how it is written.
//!
//! MySQL labels a column with the text of its expression; a syntax tree no longer has it.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan};
use mayfly_types::MySqlError;

/// The items of every select list of a statement, as they are written.
#[derive(Debug, Clone, Default)]
pub struct Source {
    text: String,
    lists: Vec<(Location, Vec<String>)>,
    joins_by_name: bool,
}

impl Source {
    pub(crate) fn new(text: &str, tokens: &[TokenWithSpan]) -> Source {
        let lists = tokens
            .iter()
            .enumerate()
            .filter(|(_, token)| is_word(&token.token, "SELECT"))
            .map(|(index, token)| (token.span.start, select_list(text, &tokens[index + 1..])))
            .collect();
        Source {
            text: text.to_owned(),
            lists,
            joins_by_name: tokens.iter().any(|token| joins_by_name(&token.token)),
        }
    }

    /// Whether the statement may have NATURAL JOIN or USING.
    pub(crate) fn joins_by_name(&self) -> bool {
        self.joins_by_name
    }

    /// A syntax error at a place of the statement.
    pub(crate) fn syntax_error(&self, at: Location) -> MySqlError {
        crate::parse::syntax_error(&self.text, at.line, at.column)
    }

    /// The items of the list after the SELECT at `location`, aliases included.
    pub fn items(&self, location: Location) -> &[String] {
        self.lists
            .iter()
            .find(|(start, _)| *start == location)
            .map_or(&[], |(_, items)| items.as_slice())
    }

    /// Gives the list after the SELECT at `location` other items.
    pub fn set_items(&mut self, location: Location, items: Vec<String>) {
        let mut lists = self.lists.iter_mut();
        if let Some((_, list)) = lists.find(|(start, _)| *start == location) {
            *list = items;
        }
    }
}

fn joins_by_name(token: &Token) -> bool {
    matches!(token, Token::Word(word) if matches!(word.keyword, Keyword::NATURAL | Keyword::USING))
}

/// Byte offset of a place that sqlparser names by line and column.
pub(crate) fn offset(text: &str, line: u64, column: u64) -> usize {
    let start = match line {
        0 | 1 => 0,
        _ => text
            .match_indices('\n')
            .nth(usize::try_from(line - 2).unwrap_or(usize::MAX))
            .map_or(text.len(), |(at, _)| at + 1),
    };
    text[start..]
        .char_indices()
        .nth(usize::try_from(column.saturating_sub(1)).unwrap_or(usize::MAX))
        .map_or(text.len(), |(at, _)| start + at)
}

fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(found)
        if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

/// Words between SELECT and its list.
const MODIFIERS: [&str; 13] = [
    "ALL",
    "DISTINCT",
    "DISTINCTROW",
    "HIGH_PRIORITY",
    "STRAIGHT_JOIN",
    "SQL_SMALL_RESULT",
    "SQL_BIG_RESULT",
    "SQL_BUFFER_RESULT",
    "SQL_NO_CACHE",
    "SQL_CACHE",
    "SQL_CALC_FOUND_ROWS",
    "TOP",
    "LOW_PRIORITY",
];

/// Words that end a select list.
const ENDS: [&str; 14] = [
    "FROM",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "UNION",
    "INTERSECT",
    "EXCEPT",
    "FOR",
    "WINDOW",
    "INTO",
    "PROCEDURE",
    "LOCK",
];

fn select_list(text: &str, tokens: &[TokenWithSpan]) -> Vec<String> {
    let mut items = Vec::new();
    let mut depth = 0_usize;
    let mut case_depth = 0_usize;
    let mut first: Option<&TokenWithSpan> = None;
    let mut last: Option<&TokenWithSpan> = None;
    let mut started = false;
    for token in tokens {
        match &token.token {
            Token::Whitespace(_) => continue,
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => break,
            Token::RParen => depth -= 1,
            Token::EOF | Token::SemiColon => break,
            Token::Comma if depth == 0 => {
                items.push(between(text, first.take(), last.take()));
                continue;
            }
            Token::Word(word) if depth == 0 && word.quote_style.is_none() => {
                let word = word.value.to_ascii_uppercase();
                if !started && MODIFIERS.contains(&word.as_str()) {
                    continue;
                }
                match word.as_str() {
                    "CASE" => case_depth += 1,
                    "END" => case_depth = case_depth.saturating_sub(1),
                    _ if case_depth == 0 && ENDS.contains(&word.as_str()) => break,
                    _ => {}
                }
            }
            _ => {}
        }
        started = true;
        first.get_or_insert(token);
        last = Some(token);
    }
    items.push(between(text, first, last));
    items
}

fn between(text: &str, first: Option<&TokenWithSpan>, last: Option<&TokenWithSpan>) -> String {
    let (Some(first), Some(last)) = (first, last) else {
        return String::new();
    };
    let start = offset(text, first.span.start.line, first.span.start.column);
    let end = offset(text, last.span.end.line, last.span.end.column);
    text.get(start..end).unwrap_or_default().trim().to_owned()
}
