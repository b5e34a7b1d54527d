//! Tokens as MySQL's lexer divides a text.
//!
//! The operators of other systems are one token to sqlparser and several to MySQL: `!!a` is NOT
//! NOT a, `a <@b` compares with a variable, and in `a == b` the second sign is one too many.

use datafusion::sql::sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Word};

use Token::{
    AtSign, Caret, Char, Div, Eq, ExclamationMark, Gt, Lt, Minus, Mul, Pipe, StringConcat, Tilde,
};

/// What MySQL reads where sqlparser reads one token.
enum Reading {
    /// The same.
    Same,
    /// Several tokens.
    Several(&'static [Token]),
    /// No token at all: an error where it stands.
    Nothing,
    /// A name.
    Name,
    /// The name `b` and a text right behind it: it is no literal in these quotes.
    NameAndText(String),
}

/// Divides tokens that MySQL does not have into those that it has.
pub(super) fn divide(tokens: &mut Vec<TokenWithSpan>) {
    if tokens
        .iter()
        .all(|token| matches!(reading(&token.token), Reading::Same))
    {
        return;
    }
    let mut divided: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 8);
    for token in tokens.drain(..) {
        let start = token.span.start;
        match reading(&token.token) {
            Reading::Same => match join_variable(&divided, &token) {
                Some(variable) => {
                    divided.pop();
                    divided.push(variable);
                }
                None => divided.push(token),
            },
            Reading::Several(parts) => {
                let mut at = start;
                for part in parts {
                    let next = behind(at, part.to_string().chars().count());
                    divided.push(placed(part.clone(), at, next));
                    at = next;
                }
            }
            Reading::Nothing => {
                let sign = token.token.to_string().chars().next().unwrap_or_default();
                divided.push(placed(Char(sign), start, token.span.end));
            }
            Reading::Name => {
                let name = Token::make_word(&token.token.to_string(), None);
                divided.push(placed(name, start, token.span.end));
            }
            Reading::NameAndText(text) => {
                let middle = behind(start, 1);
                divided.push(placed(Token::make_word("b", None), start, middle));
                let text = Token::DoubleQuotedString(text);
                divided.push(placed(text, middle, token.span.end));
            }
        }
    }
    *tokens = divided;
}

/// A variable of the user whose sign was part of an operator: `a <@b`.
fn join_variable(before: &[TokenWithSpan], name: &TokenWithSpan) -> Option<TokenWithSpan> {
    let sign = before.last().filter(|last| last.token == AtSign)?;
    match &name.token {
        Token::Word(Word {
            value,
            quote_style: None,
            ..
        }) if sign.span.end == name.span.start => {
            let variable = Token::make_word(&format!("@{value}"), None);
            Some(placed(variable, sign.span.start, name.span.end))
        }
        _ => None,
    }
}

fn placed(token: Token, start: Location, end: Location) -> TokenWithSpan {
    let span = Span::new(start, end);
    TokenWithSpan { token, span }
}

fn behind(at: Location, characters: usize) -> Location {
    Location::new(at.line, at.column + characters as u64)
}

/// What MySQL reads there: the table of all tokens.
fn reading(token: &Token) -> Reading {
    match token {
        Token::EOF
        | Token::Word(_)
        | Token::Number(..)
        | Token::Char(_)
        | Token::SingleQuotedString(_)
        | Token::DoubleQuotedString(_)
        | Token::SingleQuotedByteStringLiteral(_)
        | Token::NationalStringLiteral(_)
        | Token::HexStringLiteral(_)
        | Token::Comma
        | Token::Whitespace(_)
        | Token::Eq
        | Token::Neq
        | Token::Lt
        | Token::Gt
        | Token::LtEq
        | Token::GtEq
        | Token::Spaceship
        | Token::Plus
        | Token::Minus
        | Token::Mul
        | Token::Div
        | Token::Mod
        | Token::StringConcat
        | Token::LParen
        | Token::RParen
        | Token::Period
        | Token::Assignment
        | Token::SemiColon
        | Token::Ampersand
        | Token::Pipe
        | Token::Caret
        | Token::LBrace
        | Token::RBrace
        | Token::Tilde
        | Token::ShiftLeft
        | Token::ShiftRight
        | Token::Overlap
        | Token::ExclamationMark
        | Token::AtSign
        | Token::Arrow
        | Token::LongArrow => Reading::Same,

        Token::DoubleEq => Reading::Several(&[Eq, Eq]),
        Token::RArrow => Reading::Several(&[Eq, Gt]),
        Token::DuckIntDiv => Reading::Several(&[Div, Div]),
        Token::TildeAsterisk => Reading::Several(&[Tilde, Mul]),
        Token::ExclamationMarkTilde => Reading::Several(&[ExclamationMark, Tilde]),
        Token::ExclamationMarkTildeAsterisk => Reading::Several(&[ExclamationMark, Tilde, Mul]),
        Token::DoubleTilde => Reading::Several(&[Tilde, Tilde]),
        Token::DoubleTildeAsterisk => Reading::Several(&[Tilde, Tilde, Mul]),
        Token::ExclamationMarkDoubleTilde => Reading::Several(&[ExclamationMark, Tilde, Tilde]),
        Token::ExclamationMarkDoubleTildeAsterisk => {
            Reading::Several(&[ExclamationMark, Tilde, Tilde, Mul])
        }
        Token::DoubleExclamationMark => Reading::Several(&[ExclamationMark, ExclamationMark]),
        Token::CaretAt => Reading::Several(&[Caret, AtSign]),
        Token::PGSquareRoot => Reading::Several(&[Pipe, Div]),
        Token::PGCubeRoot => Reading::Several(&[StringConcat, Div]),
        Token::ArrowAt => Reading::Several(&[Lt, AtSign]),
        Token::AtArrow => Reading::Several(&[AtSign, Gt]),
        Token::AtDashAt => Reading::Several(&[AtSign, Minus, AtSign]),
        Token::AtAt => Reading::Several(&[AtSign, AtSign]),

        // The mark of a parameter has no number; `$1` is a name.
        Token::Placeholder(mark) => match mark.as_str() {
            "?" => Reading::Same,
            mark if mark.starts_with('$') => Reading::Name,
            _ => Reading::Nothing,
        },
        Token::DoubleQuotedByteStringLiteral(text) => Reading::NameAndText(text.clone()),

        Token::Colon
        | Token::DoubleColon
        | Token::Backslash
        | Token::LBracket
        | Token::RBracket
        | Token::Sharp
        | Token::DoubleSharp
        | Token::HashArrow
        | Token::HashLongArrow
        | Token::HashMinus
        | Token::AtQuestion
        | Token::Question
        | Token::QuestionAnd
        | Token::QuestionPipe
        | Token::QuestionMarkDash
        | Token::QuestionMarkSharp
        | Token::QuestionMarkDashVerticalBar
        | Token::QuestionMarkDoubleVerticalBar
        | Token::AmpersandLeftAngleBracket
        | Token::AmpersandRightAngleBracket
        | Token::AmpersandLeftAngleBracketVerticalBar
        | Token::VerticalBarAmpersandRightAngleBracket
        | Token::VerticalBarRightAngleBracket
        | Token::VerticalBarShiftRight
        | Token::TwoWayArrow
        | Token::LeftAngleBracketCaret
        | Token::RightAngleBracketCaret
        | Token::TildeEqual
        | Token::ShiftLeftVerticalBar
        | Token::CustomBinaryOperator(_)
        | Token::TripleSingleQuotedString(_)
        | Token::TripleDoubleQuotedString(_)
        | Token::DollarQuotedString(_)
        | Token::TripleSingleQuotedByteStringLiteral(_)
        | Token::TripleDoubleQuotedByteStringLiteral(_)
        | Token::SingleQuotedRawStringLiteral(_)
        | Token::DoubleQuotedRawStringLiteral(_)
        | Token::TripleSingleQuotedRawStringLiteral(_)
        | Token::TripleDoubleQuotedRawStringLiteral(_)
        | Token::QuoteDelimitedStringLiteral(_)
        | Token::NationalQuoteDelimitedStringLiteral(_)
        | Token::EscapedStringLiteral(_)
        | Token::UnicodeStringLiteral(_) => Reading::Nothing,
    }
}
