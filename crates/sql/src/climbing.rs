//! Precedence climbing: operands and the operators between them.
//!
//! The stock parser asks the dialect for each operand. It is given a whole expression instead, read
//! here, so that an operator has its left side by value and how deep the tree becomes is known
//! before it is that deep: whoever walks over a tree, and drops it, recurses. The stock parser
//! reads single operands, and the operators that are not read here.
//!
//! ```text
//!   stock: parse_subexpr -> parse_prefix -> climbed() ---> operand() -> stock: parse_prefix
//!                ^                              |
//!                |                              v  by value
//!           expression() <------------------ infix()
//! ```

use std::cell::Cell;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;
use mayfly_types::{ErrorCode, MySqlError};

use crate::constructs;
use crate::dialect::{
    AND, COMPARE, MayflyDialect, NONE, NOT, OR, PERIOD, PREDICATE, TIMES, is_word,
};
use crate::parse::{CHAIN_DEPTH_MAX, OPERATORS_MAX, RECURSION_LIMIT};
use crate::shallow;

type Result<T> = std::result::Result<T, ParserError>;

/// The depth of an expression: that of chains in chains, and what stands around and between them.
const HEIGHT_MAX: usize = CHAIN_DEPTH_MAX + 2 * RECURSION_LIMIT;

/// What has been read, as far as the bounds ask.
#[derive(Debug, Default)]
pub(crate) struct Climb {
    /// The depth of the tree that is read, with the deepest of those behind it that will become
    /// part of the same.
    height: Cell<usize>,
    /// The stock parser asks for a single operand next.
    wants_operand: Cell<bool>,
    /// The stock parser asks next for what stands behind an operator of this precedence.
    behind: Cell<u8>,
}

impl MayflyDialect {
    /// What the stock parser gets where it asks for an operand; `None` for one that it reads.
    pub(crate) fn asked(&self, parser: &mut Parser<'_>) -> Option<Result<Expr>> {
        if self.climb.wants_operand.take() {
            return self.own_operand(parser);
        }
        let behind = self.climb.behind.take();
        let than = match parser.get_current_token().token {
            Token::Period => PERIOD,
            _ => behind,
        };
        // A word behind a point is a name, whatever it is elsewhere.
        let is_name = than == PERIOD
            && matches!(parser.peek_token_ref().token, Token::Word(_))
            && parser.peek_nth_token_ref(1).token != Token::LParen;
        if is_name {
            let counted = self.effort.operand(&parser.peek_token_ref().token);
            return Some(counted.and_then(|()| parser.parse_identifier().map(Expr::Identifier)));
        }
        Some(self.climbed(parser, than))
    }

    /// Reads an expression, up to an operator that does not bind more tightly than `than`. By way
    /// of the stock parser, which counts how deep it is and looks for more stack.
    pub(crate) fn expression(&self, parser: &mut Parser<'_>, than: u8) -> Result<Expr> {
        self.climb.behind.set(than);
        let read = parser.parse_subexpr(than);
        self.climb.behind.set(NONE);
        read
    }

    /// Reads what stands alone between other words, where only operators that bind more tightly
    /// than `than` may follow an operand. Not by way of the stock parser, which would take a
    /// COLLATE.
    pub(crate) fn alone(&self, parser: &mut Parser<'_>, than: u8) -> Result<Expr> {
        self.climb.behind.set(than);
        let read = parser.parse_prefix();
        self.climb.behind.set(NONE);
        read
    }

    fn climbed(&self, parser: &mut Parser<'_>, than: u8) -> Result<Expr> {
        if than > NOT && parser.peek_keyword(Keyword::NOT) {
            return parser.expected_ref("an operand", parser.peek_token_ref());
        }
        let beside = self.climb.height.replace(0);
        let first = self.operand(parser);
        let read = first.and_then(|first| self.continued(parser, first, than));
        let height = self.climb.height.get();
        self.climb.height.set(beside.max(height));
        read
    }

    /// Reads one operand, without what stands behind it.
    pub(crate) fn operand(&self, parser: &mut Parser<'_>) -> Result<Expr> {
        self.climb.wants_operand.set(true);
        let operand = parser.parse_prefix();
        self.climb.wants_operand.set(false);
        operand
    }

    /// Goes on from the first operand of an expression.
    pub(crate) fn continued(&self, parser: &mut Parser<'_>, first: Expr, than: u8) -> Result<Expr> {
        let mut expr = parser.parse_compound_expr(first, Vec::new())?;
        self.grow(1)?;
        let mut operators = 0;
        // The precedence of the last operator: what binds more tightly would have gone into its
        // right side, unless it has none, like IS NULL, or one that is closed, like IN (...).
        let mut last = u8::MAX;
        loop {
            let precedence = parser.get_next_precedence()?;
            if precedence <= than || parser.peek_token_ref().token == Token::Period {
                return Ok(expr);
            }
            if precedence > last {
                return parser.expected_ref("another operator", parser.peek_token_ref());
            }
            last = precedence;
            operators += 1;
            if operators > OPERATORS_MAX {
                return Err(self.too_deep());
            }
            expr = self.infix(parser, expr, precedence)?;
            self.grow(1)?;
        }
    }

    fn grow(&self, levels: usize) -> Result<()> {
        let height = self.climb.height.get().saturating_add(levels);
        self.climb.height.set(height);
        match height > HEIGHT_MAX {
            true => Err(self.too_deep()),
            false => Ok(()),
        }
    }

    fn too_deep(&self) -> ParserError {
        let error = MySqlError::new(ErrorCode::StackOverrun, &[]);
        self.effort.end(error)
    }

    /// Reads an operator and what stands behind it.
    fn infix(&self, parser: &mut Parser<'_>, expr: Expr, precedence: u8) -> Result<Expr> {
        let left = Box::new(expr);
        if parser.parse_keyword(Keyword::COLLATE) {
            return Ok(Expr::Collate {
                expr: left,
                collation: parser.parse_object_name(false)?,
            });
        }
        if sounds_like(parser) {
            parser.advance_token();
            parser.advance_token();
            let soundex = |expr: Expr| Box::new(crate::rewrite::call("SOUNDEX", vec![expr]));
            return Ok(Expr::BinaryOp {
                left: soundex(*left),
                op: BinaryOperator::Eq,
                right: soundex(self.expression(parser, PREDICATE)?),
            });
        }
        if let Some(negated) = takes_pattern(parser) {
            return Ok(Expr::RLike {
                negated,
                expr: left,
                pattern: Box::new(self.expression(parser, PREDICATE)?),
                regexp: true,
            });
        }
        for connective in &CONNECTIVES {
            if connective.is_next(parser) {
                return self.connected(parser, *left, connective);
            }
        }
        if constructs::begins_nested_list(parser) {
            return constructs::among(parser, *left);
        }
        if begins_between(parser) {
            let negated = parser.parse_keyword(Keyword::NOT);
            parser.expect_keyword_is(Keyword::BETWEEN)?;
            // Both are predicates, so that BETWEEN in BETWEEN goes to the right.
            let low = Box::new(self.expression(parser, COMPARE)?);
            parser.expect_keyword_is(Keyword::AND)?;
            let high = Box::new(self.expression(parser, COMPARE)?);
            return Ok(Expr::Between {
                expr: left,
                negated,
                low,
                high,
            });
        }
        let op = if parser.parse_keyword(Keyword::DIV) {
            BinaryOperator::MyIntegerDivide
        } else if parser.parse_keyword(Keyword::MOD) {
            BinaryOperator::Modulo
        } else {
            self.climb.behind.set(behind(parser, precedence));
            let read = parser.parse_infix(*left, precedence);
            self.climb.behind.set(NONE);
            return read;
        };
        Ok(Expr::BinaryOp {
            left,
            op,
            right: Box::new(self.expression(parser, TIMES)?),
        })
    }

    /// The terms that a connective joins, behind the first one.
    fn connected(
        &self,
        parser: &mut Parser<'_>,
        first: Expr,
        connective: &Connective,
    ) -> Result<Expr> {
        let mut terms = vec![first];
        while connective.is_next(parser) {
            parser.advance_token();
            terms.push(self.expression(parser, connective.precedence)?);
        }
        let join = |left: Expr, right: Expr| Expr::BinaryOp {
            left: Box::new(left),
            op: connective.op.clone(),
            right: Box::new(right),
        };
        self.grow(shallow::depth(terms.len()))?;
        shallow::joined(terms, join).ok_or_else(|| ParserError::ParserError("no term".to_owned()))
    }
}

/// AND and OR. `||` is not among them: it may concatenate.
struct Connective {
    keyword: Keyword,
    sign: Option<Token>,
    op: BinaryOperator,
    precedence: u8,
}

const CONNECTIVES: [Connective; 2] = [
    Connective {
        keyword: Keyword::AND,
        sign: Some(Token::Overlap),
        op: BinaryOperator::And,
        precedence: AND,
    },
    Connective {
        keyword: Keyword::OR,
        sign: None,
        op: BinaryOperator::Or,
        precedence: OR,
    },
];

impl Connective {
    fn is_next(&self, parser: &Parser<'_>) -> bool {
        match &parser.peek_token_ref().token {
            Token::Word(word) => word.keyword == self.keyword,
            token => self.sign.as_ref() == Some(token),
        }
    }
}

/// The precedence that the stock parser asks for behind an operator. Words but these have values in
/// parentheses behind them, or none.
fn behind(parser: &Parser<'_>, precedence: u8) -> u8 {
    let ahead = usize::from(parser.peek_keyword(Keyword::NOT));
    match &parser.peek_nth_token_ref(ahead).token {
        Token::Word(word) if !matches!(word.keyword, Keyword::XOR | Keyword::LIKE) => NONE,
        _ => precedence,
    }
}

/// Whether `[NOT] BETWEEN` is next.
fn begins_between(parser: &Parser<'_>) -> bool {
    let ahead = usize::from(parser.peek_keyword(Keyword::NOT));
    matches!(&parser.peek_nth_token_ref(ahead).token,
        Token::Word(word) if word.keyword == Keyword::BETWEEN)
}

/// Takes REGEXP or RLIKE with the NOT in front of it; whether there is one. The stock parser loses
/// a NULL behind them.
fn takes_pattern(parser: &mut Parser<'_>) -> Option<bool> {
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

/// Whether SOUNDS LIKE is next.
pub(crate) fn sounds_like(parser: &Parser<'_>) -> bool {
    is_word(parser, 0, "sounds") && is_word(parser, 1, "like")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shallow::LEANING_MAX;

    fn depth(expr: &Expr) -> usize {
        match expr {
            Expr::BinaryOp { left, right, .. } => 1 + depth(left).max(depth(right)),
            _ => 0,
        }
    }

    fn read(text: &str) -> Expr {
        let dialect = MayflyDialect::for_text(text.len(), text.len());
        let parser = Parser::new(&dialect).try_with_sql(text);
        parser.and_then(|mut parser| parser.parse_expr()).unwrap()
    }

    #[test]
    fn long_conditions_are_shallow_and_in_order() {
        for (terms, most) in [(LEANING_MAX, 15), (17, 9), (1000, 22)] {
            for connective in ["AND", "or", "&&"] {
                let names: Vec<String> = (0..terms).map(|term| format!("c{term}")).collect();
                let text = names.join(&format!(" {connective} "));
                let expr = read(&text);
                let written = text.replace("or", "OR").replace("&&", "AND");
                assert_eq!(expr.to_string(), written);
                assert!(depth(&expr) <= most, "{terms}: {}", depth(&expr));
            }
        }
        let expr = read("a OR b AND c BETWEEN 1 AND 2 AND NOT d OR e");
        let Expr::BinaryOp { left, right, .. } = expr else {
            panic!("an OR");
        };
        assert_eq!(right.to_string(), "e");
        let Expr::BinaryOp { left, .. } = *left else {
            panic!("an OR");
        };
        assert_eq!(left.to_string(), "a");
    }

    /// An expression with parentheses around what each operator joins.
    fn divided(expr: &Expr) -> String {
        match expr {
            Expr::BinaryOp { left, op, right } => {
                format!("({} {op} {})", divided(left), divided(right))
            }
            Expr::UnaryOp { op, expr } => format!("({op} {})", divided(expr)),
            Expr::Between {
                expr, low, high, ..
            } => {
                let (low, high) = (divided(low), divided(high));
                format!("({} BETWEEN {low} AND {high})", divided(expr))
            }
            Expr::Like { expr, pattern, .. } => {
                format!("({} LIKE {})", divided(expr), divided(pattern))
            }
            Expr::RLike { expr, pattern, .. } => {
                format!("({} REGEXP {})", divided(expr), divided(pattern))
            }
            Expr::IsNull(expr) => format!("({} IS NULL)", divided(expr)),
            Expr::IsTrue(expr) => format!("({} IS TRUE)", divided(expr)),
            Expr::Collate { expr, collation } => {
                format!("({} COLLATE {collation})", divided(expr))
            }
            Expr::InList { expr, list, .. } => {
                let list: Vec<String> = list.iter().map(divided).collect();
                format!("({} IN [{}])", divided(expr), list.join(", "))
            }
            Expr::Nested(expr) => divided(expr),
            _ => expr.to_string(),
        }
    }

    #[test]
    fn operators_bind_as_mysql_binds_them() {
        for (text, expected) in [
            ("1 + 2 * 3 - 4", "((1 + (2 * 3)) - 4)"),
            ("1 - 2 - 3", "((1 - 2) - 3)"),
            ("-1 + 2", "((- 1) + 2)"),
            ("+1 * 2 + 3", "(((+ 1) * 2) + 3)"),
            ("NOT a = b AND c", "((NOT (a = b)) AND c)"),
            ("NOT NOT a OR b", "((NOT (NOT a)) OR b)"),
            ("a XOR b AND c XOR d", "((a XOR (b AND c)) XOR d)"),
            ("a OR b XOR c OR d", "((a OR (b XOR c)) OR d)"),
            ("a || b && c || d", "((a || (b AND c)) || d)"),
            (
                "a BETWEEN 1 + 1 AND 2 * 2 AND b",
                "((a BETWEEN (1 + 1) AND (2 * 2)) AND b)",
            ),
            (
                "a NOT BETWEEN 1 AND 2 BETWEEN 3 AND 4",
                "(a BETWEEN 1 AND (2 BETWEEN 3 AND 4))",
            ),
            ("a BETWEEN 1 AND 3 IS TRUE", "((a BETWEEN 1 AND 3) IS TRUE)"),
            ("a BETWEEN 1 AND 7 < 3", "((a BETWEEN 1 AND 7) < 3)"),
            ("a BETWEEN 0 AND 5 = 1", "((a BETWEEN 0 AND 5) = 1)"),
            ("a BETWEEN 1 AND 9 <> 0", "((a BETWEEN 1 AND 9) <> 0)"),
            ("a BETWEEN 1 AND 2 IS NULL", "((a BETWEEN 1 AND 2) IS NULL)"),
            ("a = b BETWEEN 2 AND 3", "(a = (b BETWEEN 2 AND 3))"),
            ("a BETWEEN 1 AND 7 IN (1)", "(a BETWEEN 1 AND (7 IN [1]))"),
            (
                "a BETWEEN 1 IN (1) AND 7 LIKE b",
                "(a BETWEEN (1 IN [1]) AND (7 LIKE b))",
            ),
            (
                "a BETWEEN 1 BETWEEN 0 AND 2 AND 5",
                "(a BETWEEN (1 BETWEEN 0 AND 2) AND 5)",
            ),
            ("a IN (0) BETWEEN 1 AND 2", "((a IN [0]) BETWEEN 1 AND 2)"),
            ("a = b IN (3)", "(a = (b IN [3]))"),
            ("a = b NOT IN (3)", "(a = (b IN [3]))"),
            ("a = b LIKE 2", "(a = (b LIKE 2))"),
            ("a = b REGEXP 2", "(a = (b REGEXP 2))"),
            ("a = b RLIKE 2 = c", "((a = (b REGEXP 2)) = c)"),
            ("a IN (0) IN (0)", "((a IN [0]) IN [0])"),
            ("a LIKE b LIKE 0", "((a LIKE b) LIKE 0)"),
            ("a REGEXP b NOT REGEXP 0", "((a REGEXP b) REGEXP 0)"),
            ("a LIKE b IN (0)", "((a LIKE b) IN [0])"),
            ("a | b IN (0)", "((a | b) IN [0])"),
            ("a LIKE b | c", "(a LIKE (b | c))"),
            ("a = b SOUNDS LIKE c", "(a = (SOUNDEX(b) = SOUNDEX(c)))"),
            ("NOT EXISTS (SELECT 1)", "NOT EXISTS (SELECT 1)"),
            (
                "NOT EXISTS (SELECT 1) IS NULL",
                "(NOT (EXISTS (SELECT 1) IS NULL))",
            ),
            ("NOT EXISTS (SELECT 1) + 1", "(NOT (EXISTS (SELECT 1) + 1))"),
            ("NOT NOT EXISTS (SELECT 1)", "(NOT NOT EXISTS (SELECT 1))"),
            ("a = b COLLATE c", "(a = (b COLLATE c))"),
            ("-a COLLATE c + 1", "((- (a COLLATE c)) + 1)"),
            ("a COLLATE b COLLATE c", "((a COLLATE b) COLLATE c)"),
            ("a LIKE b + 1 AND c", "((a LIKE (b + 1)) AND c)"),
            ("a NOT LIKE b OR c", "((a LIKE b) OR c)"),
            ("a IN (1 OR 2, 3) AND b", "((a IN [(1 OR 2), 3]) AND b)"),
            ("a NOT IN (1 AND 2) = b", "((a IN [(1 AND 2)]) = b)"),
            ("a IN ((1), 2) OR b", "((a IN [1, 2]) OR b)"),
            ("a = b IS NULL", "((a = b) IS NULL)"),
            ("a + 1 IS NULL AND b", "(((a + 1) IS NULL) AND b)"),
            ("2 * 3 MOD 4 DIV 5", "(((2 * 3) % 4) DIV 5)"),
            ("(1 + 2) * (3 OR 4)", "((1 + 2) * (3 OR 4))"),
            ("t.a + t.b * 2", "(t.a + (t.b * 2))"),
            ("@a := 1 + 2 OR 3", "(@a := ((1 + 2) OR 3))"),
            ("5 + @a := 2 * 3 OR b", "(5 + (@a := ((2 * 3) OR b)))"),
            ("@a := @b := 3 = c", "(@a := (@b := (3 = c)))"),
            ("NOT @a := 2", "(NOT (@a := 2))"),
            ("a = b = c", "((a = b) = c)"),
            ("1 | 2 & 3 << 4 ^ 5", "(1 | (2 & (3 << (4 ^ 5))))"),
        ] {
            assert_eq!(divided(&read(text)), expected, "{text}");
        }
        let quantified = read("a = ANY (SELECT 1) AND b");
        let Expr::BinaryOp { left, right, .. } = quantified else {
            panic!("an AND");
        };
        assert!(matches!(*left, Expr::AnyOp { .. }), "{left}");
        assert_eq!(right.to_string(), "b");
    }

    #[test]
    fn what_no_operator_can_take_is_refused() {
        for text in [
            "1 BETWEEN 0 = 0 AND 2",
            "1 BETWEEN 0 IS NULL AND 2",
            "1 BETWEEN @a := 0 AND 5",
            "1 IN (1) + 1",
            "1 = 2 IN (2) + 1",
            "NOT 1 IN ((1), 2) * 2",
            "1 IN (1) COLLATE utf8mb4_bin",
            "NULL IS NULL + 1",
            "NULL IS NULL IN (1)",
            "1 + NOT 2",
            "0 = NOT 1",
            "0 = NOT EXISTS (SELECT 1)",
            "1 LIKE NOT 1",
            "1 BETWEEN 0 AND NOT 0",
            "- NOT 1",
            "1 := 2",
            "@a + 1 := 2",
            "(@a) := 2",
            "@@a := 1",
            "POSITION('a' LIKE 'a' IN 'b1')",
        ] {
            let dialect = MayflyDialect::for_text(text.len(), text.len());
            let parser = Parser::new(&dialect).try_with_sql(text);
            let whole = parser.and_then(|mut parser| {
                parser.parse_expr()?;
                parser.expect_token(&Token::EOF)
            });
            assert!(whole.is_err(), "{text}");
        }
    }
}
