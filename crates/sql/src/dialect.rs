//! The MySQL dialect: what the tokenizer and the expression parser accept.
//!
//! Owns the operator precedence of MySQL, which the stock dialect of sqlparser gets wrong in
//! silence (`||` as concatenation, `^` weakest, `DIV` swallowing the rest of the expression), and
//! which words are no aliases. What MySQL's grammar has of the rest is decided in `parse`.
//! Never parses a whole statement: that is `parse`.
//!
//! Source: MySQL 8.4 reference manual, "Operator Precedence".

use std::any::TypeId;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, CharacterLength, DataType, Expr, Statement, UnaryOperator, Value,
};
use datafusion::sql::sqlparser::dialect::{Dialect, MySqlDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::parse::is_reserved;

const PREFIX: u8 = 46;
const POWER: u8 = 45;
const TIMES: u8 = 40;
const PLUS: u8 = 30;
const SHIFT: u8 = 27;
const BIT_AND: u8 = 25;
const BIT_OR: u8 = 23;
const COMPARE: u8 = 20;
const BETWEEN: u8 = 18;
const NOT: u8 = 15;
const AND: u8 = 10;
const XOR: u8 = 7;
const OR: u8 = 5;
const ASSIGN: u8 = 2;
const NONE: u8 = 0;

/// MySQL 8.4 as Mayfly reads it.
#[derive(Debug, Default, Clone, Copy)]
pub struct MayflyDialect;

const STOCK: MySqlDialect = MySqlDialect {};

macro_rules! same_as_stock {
    ($($name:ident),* $(,)?) => {
        $(fn $name(&self) -> bool { STOCK.$name() })*
    };
}

impl Dialect for MayflyDialect {
    fn dialect(&self) -> TypeId {
        TypeId::of::<MySqlDialect>()
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        STOCK.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        STOCK.is_identifier_part(ch)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        STOCK.is_delimited_identifier_start(ch)
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        STOCK.identifier_quote_style(identifier)
    }

    fn is_table_factor_alias(&self, explicit: bool, kw: &Keyword, parser: &mut Parser) -> bool {
        !is_at_reserved_word(parser) && STOCK.is_table_factor_alias(explicit, kw, parser)
    }

    fn is_select_item_alias(&self, explicit: bool, kw: &Keyword, parser: &mut Parser) -> bool {
        !is_at_reserved_word(parser) && STOCK.is_select_item_alias(explicit, kw, parser)
    }

    same_as_stock!(
        supports_string_literal_backslash_escape,
        supports_string_literal_concatenation,
        ignores_wildcard_escapes,
        supports_numeric_prefix,
        supports_bitwise_shift_operators,
        supports_multiline_comment_hints,
        require_interval_qualifier,
        supports_limit_comma,
        supports_create_table_select,
        supports_insert_set,
        supports_user_host_grantee,
        supports_table_hints,
        requires_single_line_comment_whitespace,
        supports_match_against,
        supports_select_modifiers,
        supports_set_names,
        supports_comma_separated_set_assignments,
        supports_update_order_by,
        supports_data_type_signed_suffix,
        supports_cross_join_constraint,
        supports_double_ampersand_operator,
        supports_comment_optimizer_hint,
        supports_constraint_keyword_without_name,
        supports_key_column_option,
    );

    fn supports_binary_kw_as_cast(&self) -> bool {
        false
    }

    fn allow_extract_custom(&self) -> bool {
        true
    }

    fn supports_bang_not_operator(&self) -> bool {
        true
    }

    fn supports_group_by_with_modifier(&self) -> bool {
        true
    }

    fn parse_statement(&self, parser: &mut Parser) -> Option<Result<Statement, ParserError>> {
        STOCK.parse_statement(parser)
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        match &parser.peek_token_ref().token {
            Token::Word(word) if word.keyword == Keyword::INTERVAL => {
                crate::typing::syntax::parse_interval(parser)
            }
            Token::Word(w) if is_no_literal(w.keyword) && is_text(parser, 1) => {
                Some(parser.parse_identifier().map(Expr::Identifier))
            }
            Token::Word(w) if w.keyword == Keyword::CAST && w.quote_style.is_none() => {
                parser.maybe_parse(cast_with_character_set).transpose()
            }
            Token::Word(w) if w.keyword == Keyword::CHAR && w.quote_style.is_none() => {
                parser.maybe_parse(char_using).transpose()
            }
            Token::Word(w) if w.keyword == Keyword::TRIM && is_trim_of_spaces(parser) => {
                Some(trim_of_spaces(parser))
            }
            Token::Word(w)
                if w.keyword == Keyword::CURRENT_USER
                    && w.quote_style.is_none()
                    && parser.peek_nth_token_ref(1).token != Token::LParen =>
            {
                parser.advance_token();
                Some(Ok(crate::rewrite::call("current_user", Vec::new())))
            }
            Token::Minus => {
                parser.advance_token();
                Some(parser.parse_subexpr(PREFIX).map(|expr| Expr::UnaryOp {
                    op: UnaryOperator::Minus,
                    expr: Box::new(expr),
                }))
            }
            Token::ExclamationMark => {
                parser.advance_token();
                Some(parser.parse_subexpr(PREFIX).map(|expr| Expr::UnaryOp {
                    op: UnaryOperator::Not,
                    expr: Box::new(expr),
                }))
            }
            Token::Tilde => {
                parser.advance_token();
                Some(parser.parse_subexpr(PREFIX).map(|expr| Expr::UnaryOp {
                    op: UnaryOperator::BitwiseNot,
                    expr: Box::new(expr),
                }))
            }
            Token::Word(w) if w.keyword == Keyword::BINARY && w.quote_style.is_none() => {
                parser.advance_token();
                Some(parser.parse_subexpr(PREFIX).map(|expr| Expr::Cast {
                    kind: CastKind::Cast,
                    expr: Box::new(expr),
                    data_type: DataType::Binary(None),
                    array: false,
                    format: None,
                }))
            }
            _ => None,
        }
    }

    fn parse_infix(
        &self,
        parser: &mut Parser,
        expr: &Expr,
        _precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        if sounds_like(parser) {
            parser.advance_token();
            parser.advance_token();
            let soundex = |expr: Expr| Box::new(crate::rewrite::call("SOUNDEX", vec![expr]));
            return Some(parser.parse_subexpr(COMPARE).map(|right| Expr::BinaryOp {
                left: soundex(expr.clone()),
                op: BinaryOperator::Eq,
                right: soundex(right),
            }));
        }
        if let Some(negated) = takes_pattern(parser) {
            let matched = parser.parse_subexpr(COMPARE).map(|pattern| Expr::RLike {
                negated,
                expr: Box::new(expr.clone()),
                pattern: Box::new(pattern),
                regexp: true,
            });
            return Some(matched);
        }
        for (keyword, op, precedence) in CONNECTIVES {
            if parser.peek_keyword(keyword) {
                return Some(connected(parser, expr.clone(), (keyword, op, precedence)));
            }
        }
        if begins_nested_list(parser) {
            let list = parser.maybe_parse(|parser| among(parser, expr));
            if let Some(list) = list.transpose() {
                return Some(list);
            }
        }
        let op = if parser.parse_keyword(Keyword::DIV) {
            BinaryOperator::MyIntegerDivide
        } else if is_mod(parser) {
            parser.advance_token();
            BinaryOperator::Modulo
        } else {
            return None;
        };
        Some(parser.parse_subexpr(TIMES).map(|right| Expr::BinaryOp {
            left: Box::new(expr.clone()),
            op,
            right: Box::new(right),
        }))
    }

    /// All of MySQL's infix operators. Whatever else stands behind an expression ends it.
    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        let precedence = match &parser.peek_token_ref().token {
            Token::StringConcat => OR,
            Token::Overlap => AND,
            Token::ShiftLeft | Token::ShiftRight => SHIFT,
            Token::Caret => POWER,
            Token::Mul | Token::Div | Token::Mod => TIMES,
            Token::Plus | Token::Minus => PLUS,
            Token::Ampersand => BIT_AND,
            Token::Pipe => BIT_OR,
            Token::Arrow | Token::LongArrow => 60,
            Token::Assignment => ASSIGN,
            Token::Period => self.prec_value(Precedence::Period),
            Token::Eq
            | Token::Neq
            | Token::Lt
            | Token::LtEq
            | Token::Gt
            | Token::GtEq
            | Token::Spaceship => COMPARE,
            Token::Word(word) if word.quote_style.is_none() => match word.keyword {
                Keyword::OR => OR,
                Keyword::XOR => XOR,
                Keyword::AND => AND,
                Keyword::DIV | Keyword::MOD => TIMES,
                // NOT takes the precedence of what it negates, and is no operator in front of NULL.
                Keyword::NOT => predicate(&parser.peek_nth_token_ref(1).token),
                Keyword::IS => COMPARE,
                Keyword::MEMBER if is_word(parser, 1, "of") => COMPARE,
                _ if sounds_like(parser) => COMPARE,
                _ => predicate(&parser.peek_token_ref().token),
            },
            _ => NONE,
        };
        Some(Ok(precedence))
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        match precedence {
            Precedence::Period => 100,
            Precedence::DoubleColon => 50,
            Precedence::AtTz => 49,
            Precedence::Caret => POWER,
            Precedence::MulDivModOp => TIMES,
            Precedence::PlusMinus => PLUS,
            Precedence::Ampersand => BIT_AND,
            Precedence::Pipe | Precedence::Colon => BIT_OR,
            Precedence::Eq | Precedence::Like | Precedence::Is => COMPARE,
            Precedence::PgOther => COMPARE,
            Precedence::Between => BETWEEN,
            Precedence::UnaryNot => NOT,
            Precedence::And => AND,
            Precedence::Xor => XOR,
            Precedence::Or => OR,
        }
    }
}

/// Whether a type makes no literal of the text behind it: that is an alias.
fn is_no_literal(of: Keyword) -> bool {
    matches!(
        of,
        Keyword::BOOLEAN
            | Keyword::CHAR
            | Keyword::CHARACTER
            | Keyword::DATETIME
            | Keyword::DEC
            | Keyword::DECIMAL
            | Keyword::DOUBLE
            | Keyword::FLOAT
            | Keyword::INT
            | Keyword::INTEGER
            | Keyword::JSON
            | Keyword::REAL
            | Keyword::SIGNED
            | Keyword::UNSIGNED
            | Keyword::VARCHAR
    )
}

fn is_text(parser: &Parser, ahead: usize) -> bool {
    matches!(
        parser.peek_nth_token_ref(ahead).token,
        Token::SingleQuotedString(_) | Token::DoubleQuotedString(_)
    )
}

/// Whether the parser has just passed a word that can be no alias without quotes.
fn is_at_reserved_word(parser: &Parser) -> bool {
    matches!(&parser.get_current_token().token,
        Token::Word(word) if word.quote_style.is_none() && is_reserved(&word.value))
}

/// The precedence of what NOT may stand in front of.
fn predicate(token: &Token) -> u8 {
    match token {
        Token::Word(word) if word.quote_style.is_none() => match word.keyword {
            Keyword::IN | Keyword::BETWEEN => BETWEEN,
            Keyword::LIKE | Keyword::RLIKE | Keyword::REGEXP => COMPARE,
            _ => NONE,
        },
        _ => NONE,
    }
}

/// Whether `[NOT] IN ((` is next.
fn begins_nested_list(parser: &Parser) -> bool {
    let ahead = usize::from(parser.peek_keyword(Keyword::NOT));
    let is = |ahead: usize, token: &Token| parser.peek_nth_token_ref(ahead).token == *token;
    matches!(&parser.peek_nth_token_ref(ahead).token,
        Token::Word(word) if word.keyword == Keyword::IN)
        && is(ahead + 1, &Token::LParen)
        && is(ahead + 2, &Token::LParen)
}

/// `IN ((SELECT ...), ...)`: a list whose first value is a subquery, which the stock parser takes
/// for all that there is. Fails for any other list.
fn among(parser: &mut Parser, expr: &Expr) -> Result<Expr, ParserError> {
    let negated = parser.parse_keyword(Keyword::NOT);
    parser.expect_keyword(Keyword::IN)?;
    parser.expect_token(&Token::LParen)?;
    let list = parser.parse_comma_separated(Parser::parse_expr)?;
    parser.expect_token(&Token::RParen)?;
    match list.as_slice() {
        [Expr::Subquery(_), _, ..] => Ok(Expr::InList {
            expr: Box::new(expr.clone()),
            list,
            negated,
        }),
        _ => Err(ParserError::ParserError("a list".to_owned())),
    }
}

/// Terms of a condition that lean to the left as they were written.
const LEANING_MAX: usize = 16;

type Connective = (Keyword, BinaryOperator, u8);

const CONNECTIVES: [Connective; 2] = [
    (Keyword::AND, BinaryOperator::And, AND),
    (Keyword::OR, BinaryOperator::Or, OR),
];

/// The terms that a connective joins, behind the first one. Many of them become a tree that is as
/// shallow as can be, with the terms in their order: whoever walks over a condition and asks at
/// each node what is below it would take the square of its length, and a stack as deep as that.
fn connected(
    parser: &mut Parser,
    first: Expr,
    (keyword, op, precedence): Connective,
) -> Result<Expr, ParserError> {
    let mut terms = vec![first];
    while parser.parse_keyword(keyword) {
        terms.push(parser.parse_subexpr(precedence)?);
    }
    let join = |left: Expr, right: Expr| Expr::BinaryOp {
        left: Box::new(left),
        op: op.clone(),
        right: Box::new(right),
    };
    while terms.len() > LEANING_MAX {
        let mut pairs = terms.into_iter();
        let mut joined = Vec::with_capacity(pairs.len().div_ceil(2));
        while let Some(left) = pairs.next() {
            joined.push(match pairs.next() {
                Some(right) => join(left, right),
                None => left,
            });
        }
        terms = joined;
    }
    let joined = terms.into_iter().reduce(join);
    joined.ok_or_else(|| ParserError::ParserError("no term".to_owned()))
}

/// `CAST(a AS CHAR(n) CHARACTER SET utf8mb4)`; without a character set it is the stock parser's.
fn cast_with_character_set(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.advance_token();
    parser.expect_token(&Token::LParen)?;
    let expr = Box::new(parser.parse_expr()?);
    parser.expect_keyword(Keyword::AS)?;
    let data_type = parser.parse_data_type()?;
    if !parser.parse_keyword(Keyword::CHARSET) {
        parser.expect_keywords(&[Keyword::CHARACTER, Keyword::SET])?;
    }
    let name = parser.parse_identifier()?.value.to_ascii_lowercase();
    let data_type = match (name.as_str(), data_type) {
        ("utf8mb4" | "utf8mb3" | "utf8", of) => of,
        ("binary", DataType::Char(length) | DataType::Character(length)) => {
            DataType::Binary(length.and_then(|length| match length {
                CharacterLength::IntegerLength { length, .. } => Some(length),
                CharacterLength::Max => None,
            }))
        }
        _ => return parser.expected_ref("a character set", parser.peek_token_ref()),
    };
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Cast {
        kind: CastKind::Cast,
        expr,
        data_type,
        array: false,
        format: None,
    })
}

/// `CHAR(numbers USING set)`, which is `CONVERT(CHAR(numbers) USING set)`; the parser stands at the
/// word CHAR.
fn char_using(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.advance_token();
    parser.expect_token(&Token::LParen)?;
    let numbers = parser.parse_comma_separated(Parser::parse_expr)?;
    parser.expect_keyword(Keyword::USING)?;
    let set = parser.parse_object_name(false)?;
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Convert {
        is_try: false,
        expr: Box::new(crate::rewrite::call("CHAR", numbers)),
        data_type: None,
        charset: Some(set),
        target_before_value: false,
        styles: Vec::new(),
    })
}

/// Whether `TRIM(BOTH FROM ...)` follows.
fn is_trim_of_spaces(parser: &Parser) -> bool {
    parser.peek_nth_token_ref(1).token == Token::LParen
        && ["both", "leading", "trailing"]
            .iter()
            .any(|place| is_word(parser, 2, place))
        && is_word(parser, 3, "from")
}

/// The stock parser wants to be told what is cut off; spaces are where nothing is.
fn trim_of_spaces(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.advance_token();
    parser.advance_token();
    let trim_where = Some(parser.parse_trim_where()?);
    parser.expect_keyword_is(Keyword::FROM)?;
    let expr = Box::new(parser.parse_expr()?);
    parser.expect_token(&Token::RParen)?;
    let space = Value::SingleQuotedString(" ".to_owned());
    Ok(Expr::Trim {
        expr,
        trim_where,
        trim_what: Some(Box::new(Expr::Value(space.into()))),
        trim_characters: None,
    })
}

/// Takes REGEXP or RLIKE with the NOT in front of it; whether there is one. The stock parser loses
/// a NULL behind them.
fn takes_pattern(parser: &mut Parser) -> Option<bool> {
    let negated = parser.peek_keyword(Keyword::NOT);
    let ahead = usize::from(negated);
    if !is_word(parser, ahead, "regexp") && !is_word(parser, ahead, "rlike") {
        return None;
    }
    for _ in 0..=ahead {
        parser.advance_token();
    }
    Some(negated)
}

fn is_mod(parser: &Parser) -> bool {
    is_word(parser, 0, "mod")
}

fn sounds_like(parser: &Parser) -> bool {
    is_word(parser, 0, "sounds") && is_word(parser, 1, "like")
}

fn is_word(parser: &Parser, ahead: usize, word: &str) -> bool {
    matches!(&parser.peek_nth_token_ref(ahead).token,
        Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::ast::Expr;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::{LEANING_MAX, MayflyDialect};

    fn depth(expr: &Expr) -> usize {
        match expr {
            Expr::BinaryOp { left, right, .. } => 1 + depth(left).max(depth(right)),
            _ => 0,
        }
    }

    #[test]
    fn long_conditions_are_shallow_and_in_order() {
        for (terms, most) in [(LEANING_MAX, 15), (17, 9), (1000, 22)] {
            for connective in ["AND", "or"] {
                let names: Vec<String> = (0..terms).map(|term| format!("c{term}")).collect();
                let text = names.join(&format!(" {connective} "));
                let parser = Parser::new(&MayflyDialect).try_with_sql(&text);
                let expr = parser.and_then(|mut parser| parser.parse_expr()).unwrap();
                assert_eq!(expr.to_string(), text.replace("or", "OR"));
                assert!(depth(&expr) <= most, "{terms}: {}", depth(&expr));
            }
        }
        let text = "a OR b AND c BETWEEN 1 AND 2 AND NOT d OR e";
        let parser = Parser::new(&MayflyDialect).try_with_sql(text);
        let expr = parser.and_then(|mut parser| parser.parse_expr()).unwrap();
        let Expr::BinaryOp { left, right, .. } = expr else {
            panic!("an OR");
        };
        assert_eq!(right.to_string(), "e");
        let Expr::BinaryOp { left, .. } = *left else {
            panic!("an OR");
        };
        assert_eq!(left.to_string(), "a");
    }
}
