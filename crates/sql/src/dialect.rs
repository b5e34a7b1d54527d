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
    BinaryOperator, CastKind, DataType, Expr, ObjectName, Statement, UnaryOperator,
};
use datafusion::sql::sqlparser::dialect::{Dialect, MySqlDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;
use mayfly_types::MySqlError;

use crate::climbing::{Climb, sounds_like};
use crate::constructs;
use crate::effort::Effort;
use crate::parse::is_reserved;

pub(crate) const PERIOD: u8 = 100;
const COLLATE: u8 = 50;
const PREFIX: u8 = 46;
const POWER: u8 = 45;
pub(crate) const TIMES: u8 = 40;
const PLUS: u8 = 30;
const SHIFT: u8 = 27;
const BIT_AND: u8 = 25;
const BIT_OR: u8 = 23;
pub(crate) const PREDICATE: u8 = 22;
pub(crate) const COMPARE: u8 = 20;
pub(crate) const NOT: u8 = 15;
pub(crate) const AND: u8 = 10;
const XOR: u8 = 7;
pub(crate) const OR: u8 = 5;
pub(crate) const NONE: u8 = 0;

/// MySQL 8.4 as Mayfly reads it, for the parser of one text.
#[derive(Debug)]
pub struct MayflyDialect {
    pub(crate) effort: Effort,
    pub(crate) climb: Climb,
}

impl MayflyDialect {
    /// The dialect for a text of so many tokens and bytes.
    pub(crate) fn for_text(tokens: usize, bytes: usize) -> MayflyDialect {
        MayflyDialect {
            effort: Effort::for_text(tokens, bytes),
            climb: Climb::default(),
        }
    }

    /// The error that has ended the reading, if the parser's own means nothing.
    pub(crate) fn ended(&self) -> Option<MySqlError> {
        self.effort.ended()
    }

    /// An operand with a reading of its own; the others are the stock parser's.
    pub(crate) fn own_operand(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        if let Err(error) = self.effort.operand(&parser.peek_token_ref().token) {
            return Some(Err(error));
        }
        let is_call = parser.peek_nth_token_ref(1).token == Token::LParen;
        match &parser.peek_token_ref().token {
            Token::Word(word) if word.keyword == Keyword::INTERVAL => {
                Some(crate::typing::syntax::parse_interval(self, parser))
            }
            Token::Word(word) if is_construct(word.keyword) && !is_call => {
                Some(parser.parse_identifier().map(Expr::Identifier))
            }
            Token::Word(w) if is_no_literal(w.keyword) && is_text(parser, 1) => {
                Some(parser.parse_identifier().map(Expr::Identifier))
            }
            Token::Word(w) if w.keyword == Keyword::CAST => Some(constructs::cast(parser)),
            Token::Word(w) if w.keyword == Keyword::CONVERT && is_call => {
                Some(constructs::convert(parser))
            }
            Token::Word(w) if w.keyword == Keyword::CHAR && is_call => {
                Some(constructs::char_of(parser))
            }
            Token::Word(w) if w.keyword == Keyword::POSITION => {
                Some(constructs::position(self, parser))
            }
            Token::Word(w)
                if w.keyword == Keyword::TRIM && constructs::is_trim_of_spaces(parser) =>
            {
                Some(constructs::trim_of_spaces(parser))
            }
            Token::Word(w) if w.keyword == Keyword::ARRAY && is_call => {
                let name = parser.parse_identifier();
                Some(name.and_then(|name| parser.parse_function(ObjectName::from(vec![name]))))
            }
            Token::Word(w)
                if w.keyword == Keyword::CURRENT_USER && w.quote_style.is_none() && !is_call =>
            {
                parser.advance_token();
                Some(Ok(crate::rewrite::call("current_user", Vec::new())))
            }
            Token::Word(w) if w.keyword == Keyword::NOT => {
                parser.advance_token();
                Some(self.expression(parser, NOT).map(negated))
            }
            Token::Word(w)
                if is_user_variable(&w.value)
                    && parser.peek_nth_token_ref(1).token == Token::Assignment =>
            {
                Some(self.assignment(parser))
            }
            Token::Plus => Some(self.unary(parser, UnaryOperator::Plus, TIMES)),
            Token::Minus => Some(self.unary(parser, UnaryOperator::Minus, PREFIX)),
            Token::ExclamationMark => Some(self.unary(parser, UnaryOperator::Not, PREFIX)),
            Token::Tilde => Some(self.unary(parser, UnaryOperator::BitwiseNot, PREFIX)),
            Token::Word(w) if w.keyword == Keyword::BINARY && w.quote_style.is_none() => {
                parser.advance_token();
                Some(self.expression(parser, PREFIX).map(|expr| Expr::Cast {
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

    /// A sign in front of what binds more tightly than `than`.
    fn unary(&self, parser: &mut Parser, op: UnaryOperator, than: u8) -> Result<Expr, ParserError> {
        parser.advance_token();
        Ok(Expr::UnaryOp {
            op,
            expr: Box::new(self.expression(parser, than)?),
        })
    }

    /// `@v := value`: an operand in which everything to its right is.
    fn assignment(&self, parser: &mut Parser) -> Result<Expr, ParserError> {
        let left = Box::new(Expr::Identifier(parser.parse_identifier()?));
        parser.expect_token(&Token::Assignment)?;
        Ok(Expr::BinaryOp {
            left,
            op: BinaryOperator::Assignment,
            right: Box::new(self.expression(parser, NONE)?),
        })
    }
}

/// NOT in front of an expression.
fn negated(expr: Expr) -> Expr {
    match expr {
        Expr::Exists {
            subquery,
            negated: false,
        } => Expr::Exists {
            subquery,
            negated: true,
        },
        expr => Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr: Box::new(expr),
        },
    }
}

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

    /// What has failed as the construct that begins with such a word is not read again as a call.
    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        matches!(
            keyword,
            Keyword::CASE
                | Keyword::CAST
                | Keyword::CONVERT
                | Keyword::CURRENT_DATE
                | Keyword::CURRENT_TIME
                | Keyword::CURRENT_TIMESTAMP
                | Keyword::EXISTS
                | Keyword::EXTRACT
                | Keyword::INTERVAL
                | Keyword::LOCALTIME
                | Keyword::LOCALTIMESTAMP
                | Keyword::MATCH
                | Keyword::NOT
                | Keyword::POSITION
                | Keyword::SUBSTR
                | Keyword::SUBSTRING
                | Keyword::TRIM
        )
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        self.asked(parser)
    }

    // Infix operators are read in `climbing`.

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
            Token::Period => PERIOD,
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
                Keyword::COLLATE => COLLATE,
                Keyword::MEMBER if is_word(parser, 1, "of") => PREDICATE,
                _ if sounds_like(parser) => PREDICATE,
                _ => predicate(&parser.peek_token_ref().token),
            },
            _ => NONE,
        };
        Some(Ok(precedence))
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        match precedence {
            Precedence::Period => PERIOD,
            Precedence::DoubleColon => 50,
            Precedence::AtTz => 49,
            Precedence::Caret => POWER,
            Precedence::MulDivModOp => TIMES,
            Precedence::PlusMinus => PLUS,
            Precedence::Ampersand => BIT_AND,
            Precedence::Pipe | Precedence::Colon => BIT_OR,
            Precedence::Like | Precedence::Between => PREDICATE,
            Precedence::Eq | Precedence::Is | Precedence::PgOther => COMPARE,
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

/// Whether a word begins a construct in front of a parenthesis, and is a name without one.
fn is_construct(of: Keyword) -> bool {
    matches!(
        of,
        Keyword::CAST
            | Keyword::EXTRACT
            | Keyword::POSITION
            | Keyword::SUBSTR
            | Keyword::SUBSTRING
            | Keyword::TRIM
    )
}

fn is_text(parser: &Parser, ahead: usize) -> bool {
    matches!(
        parser.peek_nth_token_ref(ahead).token,
        Token::SingleQuotedString(_) | Token::DoubleQuotedString(_)
    )
}

/// Whether a word is the name of a variable of the user.
fn is_user_variable(word: &str) -> bool {
    word.starts_with('@') && !word.starts_with("@@")
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
            Keyword::IN | Keyword::BETWEEN | Keyword::LIKE | Keyword::RLIKE | Keyword::REGEXP => {
                PREDICATE
            }
            _ => NONE,
        },
        _ => NONE,
    }
}

/// Whether an unquoted word stands so many tokens ahead.
pub(crate) fn is_word(parser: &Parser, ahead: usize, word: &str) -> bool {
    matches!(&parser.peek_nth_token_ref(ahead).token,
        Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word))
}
