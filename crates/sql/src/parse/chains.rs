//! Chains: `a + b + c ...`, `SELECT ... UNION SELECT ...`, `t JOIN u JOIN v ...`.
//!
//! The parser reads them in a loop, and what it makes of them is as deep as they are long: whoever
//! walks over that recurses. Nesting that can be seen in the text is limited by the parser; this is
//! the limit for the rest. It looks at the tokens, before anything deep is made. A chain in
//! parentheses makes the one around it deeper: there is a limit for both together. SELECTs inside
//! one another are limited too, as in MySQL, where the parser would stop by its own depth.
//!
//! It also counts how often the parser reads a token. Behind FROM, `((SELECT` may begin a derived
//! table or a join in parentheses, and the parser tries one after the other: what is inside is read
//! once for each parenthesis, and tables inside of that as often for each of these readings. What
//! follows inside of the parentheses is read once, unless a query may go on so.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use mayfly_types::{ErrorCode, MySqlError};

use super::refusal::{RECURSION_LIMIT, nested_too_deeply};
use crate::effort;

/// Operators in a row. The engine names what it plans, which takes the square of their number.
pub(crate) const OPERATORS_MAX: usize = 500;
/// Set operations in a row, and operators with those inside of parentheses: a thread that plans has
/// stack for several times as many.
pub(crate) const DEPTH_MAX: usize = 1000;
/// Tables of a FROM clause: as in MySQL.
const TABLES_MAX: usize = 61;
/// SELECTs around another one: as in MySQL.
const NESTING_MAX: usize = 63;

/// Parentheses inside one another. The parser stops earlier, but where it does not count.
const PARENTHESES_MAX: usize = RECURSION_LIMIT + 50;
/// Readings of tokens that a short statement may have beyond those of any statement.
const READINGS_MAX: usize = 100_000;

/// What has been seen between two parentheses so far.
#[derive(Default)]
struct Level {
    operators: usize,
    /// The longest of its chains of operators.
    operators_max: usize,
    sets: usize,
    /// The depth of the deepest parentheses in it.
    inner_depth: usize,
    tables: usize,
    is_from: bool,
    /// Whether it has a SELECT, not counted those in further parentheses.
    selects: bool,
    /// How often the parser reads it, at most; 0 is once.
    readings: usize,
    /// For tables in parentheses: how often it is read as a query where one goes on behind the
    /// parentheses in it, before these have ended.
    tries: usize,
}

/// Looks at the length of chains.
///
/// # Errors
/// 1436 for a chain of operators or set operations that is too long, and for tables in parentheses
/// that would be read too often, 1116 for too many tables, 1473 for SELECTs that are nested too
/// deeply, 1064 for parentheses that are.
pub(super) fn check(tokens: &[TokenWithSpan]) -> Result<(), MySqlError> {
    let mut outer: Vec<Level> = Vec::new();
    let mut level = Level::default();
    // Of the levels around this one, those with a SELECT.
    let mut nesting = 0;
    let mut opening = Opening::default();
    let mut read = 0_usize;
    let read_max = effort::bound(tokens.len(), READINGS_MAX);
    let mut is_behind = false;
    for token in tokens {
        if matches!(token.token, Token::Whitespace(_)) {
            continue;
        }
        if std::mem::replace(&mut is_behind, token.token == Token::RParen) {
            level.go_on(&token.token);
        }
        if opening.begins_table(&token.token) {
            read_again(&mut outer, &mut level, opening.parentheses);
        }
        opening.pass(&token.token, &level);
        read = read.saturating_add(level.readings.max(1));
        if read > read_max {
            return Err(effort::refusal());
        }
        match &token.token {
            Token::LParen => {
                nesting += usize::from(level.selects);
                let inner = Level {
                    readings: level.readings,
                    ..Level::default()
                };
                outer.push(std::mem::replace(&mut level, inner));
                if outer.len() > PARENTHESES_MAX {
                    return Err(nested_too_deeply());
                }
            }
            Token::RParen => {
                // Whoever has more of these than of the others is told so by the parser.
                let inner_depth = level.depth();
                level = outer.pop().unwrap_or_default();
                level.inner_depth = level.inner_depth.max(inner_depth);
                nesting -= usize::from(level.selects);
            }
            Token::Comma => {
                level.operators = 0;
                level.tables += usize::from(level.is_from);
            }
            Token::Word(word) if word.quote_style.is_none() => level.word(word.keyword),
            Token::Overlap => level.operators = 0,
            token if is_operator(token) => level.add_operator(),
            _ => {}
        }
        if level.selects && nesting > NESTING_MAX {
            return Err(MySqlError::new(ErrorCode::TooHighNesting, &[]));
        }
        if level.operators > OPERATORS_MAX || level.depth() > DEPTH_MAX {
            return Err(MySqlError::new(ErrorCode::StackOverrun, &[]));
        }
        if level.tables > TABLES_MAX {
            return Err(MySqlError::new(ErrorCode::TooManyTables, &[&TABLES_MAX]));
        }
    }
    Ok(())
}

/// Parentheses with nothing between them, up to the next token.
#[derive(Default)]
struct Opening {
    parentheses: usize,
    /// Whether a table may stand where the first of them is.
    is_table: bool,
}

impl Opening {
    /// Whether `token` makes the parentheses in front of it those of a table that is tried twice.
    fn begins_table(&self, token: &Token) -> bool {
        self.is_table
            && self.parentheses > 1
            && matches!(token, Token::Word(word) if matches!(
                word.keyword,
                Keyword::SELECT
                    | Keyword::WITH
                    | Keyword::VALUES
                    | Keyword::TABLE
                    | Keyword::UPDATE
            ))
    }

    fn pass(&mut self, token: &Token, level: &Level) {
        if *token == Token::LParen {
            self.parentheses += 1;
            return;
        }
        self.parentheses = 0;
        self.is_table = match token {
            Token::Comma => level.is_from,
            Token::Word(word) => matches!(
                word.keyword,
                Keyword::FROM | Keyword::JOIN | Keyword::STRAIGHT_JOIN | Keyword::UPDATE
            ),
            _ => false,
        };
    }
}

/// The query in the last `parentheses` is read once for each of them. What stands behind it in the
/// outer ones is read so often only where a query goes on.
fn read_again(outer: &mut [Level], level: &mut Level, parentheses: usize) {
    let once = level.readings.max(1);
    level.readings = once.saturating_mul(parentheses);
    let around = outer.iter_mut().rev().take(parentheses - 1);
    for (tries, around) in (1..parentheses).rev().zip(around) {
        around.tries = tries;
    }
}

impl Level {
    /// Decides with the token behind the inner parentheses how often the rest is read.
    fn go_on(&mut self, token: &Token) {
        let tries = std::mem::take(&mut self.tries);
        if tries > 1 && goes_on_as_query(token) {
            self.readings = self.readings.max(1).saturating_mul(tries);
        }
    }

    fn word(&mut self, word: Keyword) {
        match word {
            Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::MINUS => {
                self.sets += 1;
                self.begin(false);
            }
            Keyword::SELECT => {
                self.begin(false);
                self.selects = true;
            }
            Keyword::FROM => {
                self.begin(true);
                self.tables = 1;
            }
            Keyword::JOIN | Keyword::STRAIGHT_JOIN => {
                self.operators = 0;
                self.tables += usize::from(self.is_from);
            }
            Keyword::WHERE
            | Keyword::GROUP
            | Keyword::HAVING
            | Keyword::ORDER
            | Keyword::LIMIT
            | Keyword::SET
            | Keyword::VALUES
            | Keyword::WINDOW
            | Keyword::UPDATE
            | Keyword::INTO
            | Keyword::FOR => {
                self.begin(false);
            }
            // Conditions are made shallow where they are read; what these words do not end is
            // bounded there, too.
            Keyword::AND
            | Keyword::OR
            | Keyword::ON
            | Keyword::WHEN
            | Keyword::THEN
            | Keyword::ELSE
            | Keyword::END
            | Keyword::AS => self.operators = 0,
            Keyword::DIV
            | Keyword::MOD
            | Keyword::XOR
            | Keyword::IS
            | Keyword::LIKE
            | Keyword::IN
            | Keyword::BETWEEN
            | Keyword::REGEXP
            | Keyword::RLIKE
            | Keyword::COLLATE => self.add_operator(),
            _ => {}
        }
    }

    fn add_operator(&mut self) {
        self.operators += 1;
        self.operators_max = self.operators_max.max(self.operators);
    }

    /// How deep a tree it is at most.
    fn depth(&self) -> usize {
        self.operators_max + self.sets + self.inner_depth
    }

    /// Begins another clause.
    fn begin(&mut self, is_from: bool) {
        self.operators = 0;
        self.tables = 0;
        self.is_from = is_from;
    }
}

/// Whether a query in parentheses may go on with a token inside of other parentheses.
fn goes_on_as_query(token: &Token) -> bool {
    matches!(token, Token::Word(word) if matches!(
        word.keyword,
        Keyword::UNION
            | Keyword::EXCEPT
            | Keyword::INTERSECT
            | Keyword::MINUS
            | Keyword::ORDER
            | Keyword::LIMIT
            | Keyword::OFFSET
            | Keyword::FETCH
            | Keyword::FOR
            | Keyword::LOCK
            | Keyword::INTO
            | Keyword::SETTINGS
            | Keyword::FORMAT
    ))
}

fn is_operator(token: &Token) -> bool {
    matches!(
        token,
        Token::Plus
            | Token::Minus
            | Token::Mul
            | Token::Div
            | Token::Mod
            | Token::Caret
            | Token::Pipe
            | Token::Ampersand
            | Token::ShiftLeft
            | Token::ShiftRight
            | Token::StringConcat
            | Token::Eq
            | Token::DoubleEq
            | Token::Neq
            | Token::Lt
            | Token::Gt
            | Token::LtEq
            | Token::GtEq
            | Token::Spaceship
            | Token::Arrow
            | Token::LongArrow
    )
}

#[cfg(test)]
mod tests {
    use super::{DEPTH_MAX, NESTING_MAX, OPERATORS_MAX};
    use crate::parse::parse;

    fn code(text: &str) -> Option<u16> {
        parse(text).err().map(|error| error.code)
    }

    #[test]
    fn long_chains_are_refused_and_long_lists_are_not() {
        let sum = |terms: usize| format!("SELECT 1{}", " + 1".repeat(terms));
        assert_eq!(code(&sum(OPERATORS_MAX)), None);
        assert_eq!(code(&sum(OPERATORS_MAX + 1)), Some(1436));
        assert_eq!(code(&sum(100_000)), Some(1436));
        let list = " + 1, 1".repeat(5000);
        assert_eq!(code(&format!("SELECT 1{list}")), None);
        assert_eq!(
            code(&format!("SELECT 1 WHERE 1{}", " = 1 OR 1".repeat(5000))),
            None
        );
        let parts = |parts: usize| format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(parts));
        assert_eq!(code(&parts(DEPTH_MAX)), None);
        assert_eq!(code(&parts(DEPTH_MAX + 1)), Some(1436));
        let joins = |joins: usize| format!("SELECT 1 FROM t{}", " JOIN t USING (a)".repeat(joins));
        assert_eq!(code(&joins(60)), None);
        assert_eq!(code(&joins(61)), Some(1116));
        assert_eq!(
            code(&format!("SELECT 1 FROM t{}", ", t".repeat(61))),
            Some(1116)
        );
        let nested = |levels: usize| {
            let (begin, end) = ("SELECT (".repeat(levels), ")".repeat(levels));
            format!("{begin}SELECT 1{end}")
        };
        assert_eq!(code(&nested(NESTING_MAX)), None);
        assert_eq!(code(&nested(NESTING_MAX + 1)), Some(1473));
        // Beside one another, and in parentheses of their own.
        assert_eq!(
            code(&format!("SELECT 1{}", ", (SELECT 1)".repeat(1000))),
            None
        );
        assert_eq!(code(&format!("({})", nested(NESTING_MAX))), None);
        let values = format!("INSERT INTO t VALUES (1){}", ", (1 + 1)".repeat(5000));
        assert_eq!(code(&values), None);
    }
    #[test]
    fn chains_in_chains_are_as_deep_as_both() {
        let sets = " UNION SELECT 1".repeat(DEPTH_MAX / 2);
        let around = |inner: &str| format!("SELECT 1 FROM ({inner}) d{sets}");
        let inside = |inner: &str| format!("SELECT 1{sets} UNION SELECT 1 FROM ({inner}) d");
        let chain = format!("SELECT 1{sets}");
        assert_eq!(code(&around(&chain)), None);
        assert_eq!(code(&around(&around(&chain))), Some(1436));
        assert_eq!(code(&inside("SELECT 1")), None);
        assert_eq!(code(&inside(&chain)), Some(1436));
        let operators = " + 1".repeat(OPERATORS_MAX);
        let two = format!("(1{operators}){operators}");
        assert_eq!(code(&format!("SELECT {two}")), None);
        assert_eq!(code(&format!("SELECT ({two}) + 1")), Some(1436));
        // Beside one another.
        assert_eq!(
            code(&format!("SELECT {two}{}", format!(", {two}").repeat(20))),
            None
        );
    }
}
