//! Operands and operators with a syntax of their own, each read once.
//!
//! The stock parser reads what is in their parentheses, fails behind it, and reads it again as
//! something else. These look ahead where two readings begin alike, and an error in them is final.

use datafusion::sql::sqlparser::ast::{
    CastKind, CharacterLength, DataType, Expr, Ident, ObjectName, Value,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::dialect::{MayflyDialect, PREDICATE, is_word};
use crate::rewrite::call;

type Result<T> = std::result::Result<T, ParserError>;

/// `CAST(a AS type)`, `CAST(a AS CHAR(n) CHARACTER SET utf8mb4)`; the parser stands at the word
/// CAST, in front of a parenthesis.
pub(crate) fn cast(parser: &mut Parser<'_>) -> Result<Expr> {
    parser.advance_token();
    parser.expect_token(&Token::LParen)?;
    let expr = Box::new(parser.parse_expr()?);
    parser.expect_keyword(Keyword::AS)?;
    let (data_type, set) = type_in_set(parser)?;
    let array = parser.parse_keyword(Keyword::ARRAY);
    parser.expect_token(&Token::RParen)?;
    let cast = Expr::Cast {
        kind: CastKind::Cast,
        expr,
        data_type,
        array,
        format: None,
    };
    Ok(in_set(cast, set))
}

/// `CONVERT(a, type)` and `CONVERT(a USING set)`; the parser stands at the word, in front of a
/// parenthesis.
pub(crate) fn convert(parser: &mut Parser<'_>) -> Result<Expr> {
    parser.advance_token();
    parser.expect_token(&Token::LParen)?;
    let expr = parser.parse_expr()?;
    if parser.parse_keyword(Keyword::USING) {
        let set = parser.parse_object_name(false)?;
        parser.expect_token(&Token::RParen)?;
        return Ok(in_set(expr, Some(set)));
    }
    parser.expect_token(&Token::Comma)?;
    let (data_type, set) = type_in_set(parser)?;
    parser.expect_token(&Token::RParen)?;
    let converted = Expr::Convert {
        is_try: false,
        expr: Box::new(expr),
        data_type: Some(data_type),
        charset: None,
        target_before_value: false,
        styles: Vec::new(),
    };
    Ok(in_set(converted, set))
}

/// `CONVERT(a USING set)`, where there is a set.
fn in_set(expr: Expr, set: Option<ObjectName>) -> Expr {
    if set.is_none() {
        return expr;
    }
    Expr::Convert {
        is_try: false,
        expr: Box::new(expr),
        data_type: None,
        charset: set,
        target_before_value: false,
        styles: Vec::new(),
    }
}

/// A type, and the character set behind it when that is not the engine's own.
fn type_in_set(parser: &mut Parser<'_>) -> Result<(DataType, Option<ObjectName>)> {
    let of = parser.parse_data_type()?;
    let length = match &of {
        DataType::Char(length) | DataType::Character(length) | DataType::Varchar(length) => {
            Some(*length)
        }
        _ => None,
    };
    let found = parser.peek_token_ref().clone();
    let has_set = parser.parse_keyword(Keyword::CHARSET)
        || parser.parse_keywords(&[Keyword::CHARACTER, Keyword::SET]);
    let set = if has_set {
        if length.is_none() {
            return parser.expected("the end of a type", found);
        }
        parser.parse_identifier()?
    } else if length.is_some() {
        // Short forms. BINARY means the collation of the bytes, which is the engine's.
        let short = match &found.token {
            Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
            _ => String::new(),
        };
        let set = match short.as_str() {
            "ascii" => Some("latin1"),
            "unicode" => Some("ucs2"),
            "byte" => Some("binary"),
            "binary" => None,
            _ => return Ok((of, None)),
        };
        parser.advance_token();
        match set {
            Some(set) => Ident::new(set),
            None => return Ok((of, None)),
        }
    } else {
        return Ok((of, None));
    };
    match set.value.to_ascii_lowercase().as_str() {
        "utf8mb4" | "utf8mb3" | "utf8" => Ok((of, None)),
        "binary" => {
            let bytes = length.flatten().and_then(|length| match length {
                CharacterLength::IntegerLength { length, .. } => Some(length),
                CharacterLength::Max => None,
            });
            Ok((DataType::Binary(bytes), None))
        }
        _ => Ok((of, Some(ObjectName::from(vec![set])))),
    }
}

/// `CHAR(numbers)`, and `CHAR(numbers USING set)`, which is `CONVERT(CHAR(numbers) USING set)`; the
/// parser stands at the word CHAR, in front of a parenthesis.
pub(crate) fn char_of(parser: &mut Parser<'_>) -> Result<Expr> {
    let name = parser.parse_identifier()?;
    parser.expect_token(&Token::LParen)?;
    if parser
        .peek_one_of_keywords(&[Keyword::DISTINCT, Keyword::ALL])
        .is_some()
    {
        return parser.expected_ref("a number", parser.peek_token_ref());
    }
    let numbers = parser.parse_comma_separated(Parser::parse_expr)?;
    let set = match parser.parse_keyword(Keyword::USING) {
        true => Some(parser.parse_object_name(false)?),
        false => None,
    };
    parser.expect_token(&Token::RParen)?;
    let mut text = call("CHAR", numbers);
    if let Expr::Function(function) = &mut text {
        function.name = ObjectName::from(vec![name]);
    }
    Ok(in_set(text, set))
}

/// `POSITION(a IN b)`; the parser stands at the word, in front of a parenthesis.
pub(crate) fn position(dialect: &MayflyDialect, parser: &mut Parser<'_>) -> Result<Expr> {
    parser.advance_token();
    parser.expect_token(&Token::LParen)?;
    let expr = Box::new(dialect.expression(parser, PREDICATE)?);
    parser.expect_keyword(Keyword::IN)?;
    let text = Box::new(parser.parse_expr()?);
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Position { expr, r#in: text })
}

/// Whether `TRIM(BOTH FROM ...)` follows.
pub(crate) fn is_trim_of_spaces(parser: &Parser<'_>) -> bool {
    parser.peek_nth_token_ref(1).token == Token::LParen
        && ["both", "leading", "trailing"]
            .iter()
            .any(|place| is_word(parser, 2, place))
        && is_word(parser, 3, "from")
}

/// The stock parser wants to be told what is cut off; spaces are where nothing is.
pub(crate) fn trim_of_spaces(parser: &mut Parser<'_>) -> Result<Expr> {
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

/// Whether `[NOT] IN ((` is next: a query in parentheses or a list. The stock parser tries both.
pub(crate) fn begins_nested_list(parser: &Parser<'_>) -> bool {
    let ahead = usize::from(parser.peek_keyword(Keyword::NOT));
    let is = |ahead: usize, token: &Token| parser.peek_nth_token_ref(ahead).token == *token;
    matches!(&parser.peek_nth_token_ref(ahead).token,
        Token::Word(word) if word.keyword == Keyword::IN)
        && is(ahead + 1, &Token::LParen)
        && is(ahead + 2, &Token::LParen)
}

/// `a IN ((1), 2)`, `a IN ((SELECT 1), 2)` and `a IN ((SELECT 1) UNION (SELECT 2))`.
pub(crate) fn among(parser: &mut Parser<'_>, expr: Expr) -> Result<Expr> {
    let negated = parser.parse_keyword(Keyword::NOT);
    parser.expect_keyword(Keyword::IN)?;
    parser.expect_token(&Token::LParen)?;
    let expr = Box::new(expr);
    let among = if holds_query(parser) {
        Expr::InSubquery {
            expr,
            subquery: parser.parse_query()?,
            negated,
        }
    } else {
        Expr::InList {
            expr,
            list: parser.parse_comma_separated(Parser::parse_expr)?,
            negated,
        }
    };
    parser.expect_token(&Token::RParen)?;
    Ok(among)
}

/// Whether the parentheses that the parser has entered hold a query, and no list.
fn holds_query(parser: &mut Parser<'_>) -> bool {
    let mut is_query = false;
    // Goes over tokens, parses nothing, and always goes back.
    let _ = parser.try_parse(|parser| -> Result<()> {
        is_query = is_query_in_parentheses(parser);
        Err(ParserError::ParserError(String::new()))
    });
    is_query
}

/// A query may stand in parentheses of its own. It is a value when something follows them that
/// follows no query.
fn is_query_in_parentheses(parser: &mut Parser<'_>) -> bool {
    let mut around = 0_usize;
    while parser.consume_token(&Token::LParen) {
        around += 1;
    }
    if !begins_query(parser) {
        return false;
    }
    for _ in 0..around {
        if !leaves_parentheses(parser) {
            return true;
        }
        if !is_end_of_query(&parser.peek_token_ref().token) {
            return false;
        }
    }
    true
}

fn begins_query(parser: &mut Parser<'_>) -> bool {
    let words = [
        Keyword::SELECT,
        Keyword::WITH,
        Keyword::TABLE,
        Keyword::VALUES,
    ];
    match parser.parse_one_of_keywords(&words) {
        // `VALUES(a)` may be the function of ON DUPLICATE KEY UPDATE, too.
        Some(Keyword::VALUES) if !parser.peek_keyword(Keyword::ROW) => {
            parser.consume_token(&Token::LParen)
                && leaves_parentheses(parser)
                && (is_end_of_query(&parser.peek_token_ref().token) || is_at_next_row(parser))
        }
        found => found.is_some(),
    }
}

fn is_at_next_row(parser: &Parser<'_>) -> bool {
    parser.peek_token_ref().token == Token::Comma
        && match &parser.peek_nth_token_ref(1).token {
            Token::LParen => true,
            Token::Word(word) => word.keyword == Keyword::ROW,
            _ => false,
        }
}

/// Goes behind the next `)` that closes what is open; whether there is one.
fn leaves_parentheses(parser: &mut Parser<'_>) -> bool {
    let mut inside = 0_usize;
    loop {
        parser.advance_token();
        match parser.get_current_token().token {
            Token::LParen => inside += 1,
            Token::RParen if inside == 0 => return true,
            Token::RParen => inside -= 1,
            Token::EOF => return false,
            _ => {}
        }
    }
}

/// Whether a token may stand behind a query in parentheses, in other parentheses.
fn is_end_of_query(token: &Token) -> bool {
    match token {
        Token::RParen => true,
        Token::Word(word) => matches!(
            word.keyword,
            Keyword::UNION
                | Keyword::EXCEPT
                | Keyword::INTERSECT
                | Keyword::ORDER
                | Keyword::LIMIT
                | Keyword::FOR
        ),
        _ => false,
    }
}
