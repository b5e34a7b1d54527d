//! The tokens of a normal form.

/// A token of the normal form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A keyword, as it was written.
    Word(&'a str),
    Name(&'a str),
    /// An operator, a comma, a parenthesis.
    Mark(&'a str),
    Value,
    Values,
    /// A row of one value, and several such rows.
    SingleRow,
    SingleRows,
    /// A row of several values, and several such rows.
    Row,
    Rows,
    /// IN with values.
    InValues,
}

impl Token<'_> {
    /// Its bytes in the text, with the space behind it.
    pub(super) fn length(self) -> usize {
        match self {
            Token::Word(word) => word.len() + 1,
            Token::Name(name) => name.len() + 3,
            Token::Mark(mark) => mark.len() + 1,
            other => other.fixed().len() + 1,
        }
    }

    /// The text of a token that has always the same.
    pub(super) fn fixed(self) -> &'static str {
        match self {
            Token::Value => "?",
            Token::Values => "?, ...",
            Token::SingleRow => "(?)",
            Token::SingleRows => "(?) /* , ... */",
            Token::Row => "(...)",
            Token::Rows => "(...) /* , ... */",
            Token::InValues => "IN (...)",
            Token::Word(_) | Token::Name(_) | Token::Mark(_) => "",
        }
    }

    pub(super) fn write(self, text: &mut String) {
        match self {
            Token::Word(word) => text.extend(word.chars().map(|it| it.to_ascii_uppercase())),
            Token::Name(name) => text.extend(["`", name, "`"]),
            Token::Mark(mark) => text.push_str(mark),
            other => text.push_str(other.fixed()),
        }
    }

    pub(super) fn is_word(self, word: &str) -> bool {
        matches!(self, Token::Word(own) if own.eq_ignore_ascii_case(word))
    }
}
