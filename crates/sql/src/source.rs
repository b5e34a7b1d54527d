//! The text of a statement beside its tokens: where a select list stands and how it is written.
//!
//! MySQL labels a column with the text of its expression; a syntax tree no longer has it.

use datafusion::sql::sqlparser::ast::{Select, SelectItem};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan};
use mayfly_types::MySqlError;

use super::places::Places;

/// The items of every select list of a statement, as they are written.
#[derive(Debug, Clone, Default)]
pub struct Source {
    text: String,
    lists: Vec<(Location, Vec<String>)>,
    joins_by_name: bool,
}

impl Source {
    pub(crate) fn new(text: &str, tokens: &[TokenWithSpan]) -> Source {
        let mut places = Places::of(text);
        let lists = tokens
            .iter()
            .enumerate()
            .filter(|(_, token)| is_word(&token.token, "SELECT"))
            .map(|(index, token)| {
                let list = select_list(&mut places, &tokens[index + 1..]);
                (token.span.start, list)
            })
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

    /// The text of the statement, as it was read.
    pub(crate) fn text(&self) -> &str {
        &self.text
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

/// Puts others in the places of the items of a list, each with its text, which is empty where
/// nobody knows it. `written` has the longer lists of the statement, if some have become longer.
///
/// # Errors
/// Those of `others`.
pub(crate) fn replace_items<E>(
    select: &mut Select,
    source: &Source,
    written: &mut Option<Source>,
    mut others: impl FnMut(SelectItem, String) -> Result<Vec<(SelectItem, String)>, E>,
) -> Result<(), E> {
    let at = select.select_token.0.span.start;
    let texts = written.as_ref().unwrap_or(source).items(at).to_vec();
    let before = std::mem::take(&mut select.projection);
    let are_known = texts.len() == before.len();
    let mut texts = texts.into_iter();
    let count = before.len();
    let mut items = Vec::with_capacity(count);
    let mut longer = Vec::with_capacity(count);
    for item in before {
        for (item, text) in others(item, texts.next().unwrap_or_default())? {
            items.push(item);
            longer.push(text);
        }
    }
    if are_known && items.len() != count {
        let written = written.get_or_insert_with(|| source.clone());
        written.set_items(at, longer);
    }
    select.projection = items;
    Ok(())
}

fn joins_by_name(token: &Token) -> bool {
    matches!(token, Token::Word(word) if matches!(word.keyword, Keyword::NATURAL | Keyword::USING))
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

fn select_list(places: &mut Places<'_>, tokens: &[TokenWithSpan]) -> Vec<String> {
    let mut items = Vec::new();
    let mut depth = 0_usize;
    let mut case_depth = 0_usize;
    let mut first: Option<&TokenWithSpan> = None;
    let mut last: Option<&TokenWithSpan> = None;
    let mut started = false;
    let mut is_behind_point = false;
    for token in tokens {
        // A word right behind a point is a name.
        let is_name = std::mem::replace(&mut is_behind_point, token.token == Token::Period);
        match &token.token {
            Token::Whitespace(_) => continue,
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => break,
            Token::RParen => depth -= 1,
            Token::EOF | Token::SemiColon => break,
            Token::Comma if depth == 0 => {
                items.push(between(places, first.take(), last.take()));
                continue;
            }
            Token::Word(word) if depth == 0 && word.quote_style.is_none() && !is_name => {
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
    items.push(between(places, first, last));
    items
}

fn between(
    places: &mut Places<'_>,
    first: Option<&TokenWithSpan>,
    last: Option<&TokenWithSpan>,
) -> String {
    let (Some(first), Some(last)) = (first, last) else {
        return String::new();
    };
    let start = places.offset(first.span.start.line, first.span.start.column);
    let end = places.offset(last.span.end.line, last.span.end.column);
    let text = places.text.get(start..end).unwrap_or_default();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_behind_points_end_no_list() {
        let text = "SELECT t.window, t.from + 1, (SELECT u.limit FROM u) FROM t";
        let (_, source) = crate::parse::parse(text).expect("a statement");
        let items = source.items(Location::new(1, 1));
        assert_eq!(items, ["t.window", "t.from + 1", "(SELECT u.limit FROM u)"]);
    }
}
