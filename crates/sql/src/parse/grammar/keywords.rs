//! Keywords that sqlparser may see.
//!
//! A word that has no meaning in MySQL's queries and expressions is a name there, as it is to
//! MySQL: an alias, a column, or what an error begins at. Statements are read by our own parsers,
//! which look at the words themselves.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// Makes names of all words that are not in the list, or not in their place.
pub(super) fn forget_foreign(tokens: &mut [TokenWithSpan]) {
    let mut before = Keyword::NoKeyword;
    let mut is_behind_call = false;
    // The token before, if it is a word that is a name in front of some tokens.
    let mut open: Option<&mut Word> = None;
    for token in tokens {
        if matches!(token.token, Token::Whitespace(_)) {
            continue;
        }
        if let Some(word) = open.take()
            && is_name_before(word.keyword, &token.token)
        {
            word.keyword = Keyword::NoKeyword;
        }
        let is_call_end = token.token == Token::RParen;
        before = match &mut token.token {
            Token::Word(word) => {
                if !is_mysql(word.keyword) || is_misplaced(before, word.keyword) {
                    word.keyword = Keyword::NoKeyword;
                }
                let keyword = word.keyword;
                let is_open = match keyword {
                    Keyword::ARRAY | Keyword::RESPECT => true,
                    Keyword::IGNORE => is_behind_call,
                    _ => false,
                };
                open = is_open.then_some(word);
                keyword
            }
            _ => Keyword::NoKeyword,
        };
        is_behind_call = is_call_end;
    }
    // Nothing stands behind it.
    if let Some(word) = open
        && is_name_before(word.keyword, &Token::EOF)
    {
        word.keyword = Keyword::NoKeyword;
    }
}

/// Whether a word is a name in front of a token: ARRAY `<` would begin the type of others, and what
/// tells a call what to do about NULL is two words. IGNORE also begins a hint for an index.
fn is_name_before(keyword: Keyword, next: &Token) -> bool {
    let next_word = match next {
        Token::Word(word) => word.keyword,
        _ => Keyword::NoKeyword,
    };
    match keyword {
        Keyword::ARRAY => *next == Token::Lt,
        Keyword::RESPECT => next_word != Keyword::NULLS,
        Keyword::IGNORE => !matches!(next_word, Keyword::NULLS | Keyword::INDEX | Keyword::KEY),
        _ => false,
    }
}

/// Whether a keyword has no meaning behind another one: OUTER APPLY, FOR JSON.
fn is_misplaced(before: Keyword, keyword: Keyword) -> bool {
    match keyword {
        Keyword::OUTER => !matches!(before, Keyword::LEFT | Keyword::RIGHT),
        Keyword::JSON => before == Keyword::FOR,
        _ => false,
    }
}

/// Whether MySQL's queries and expressions have a keyword in the sense in which sqlparser reads it.
fn is_mysql(keyword: Keyword) -> bool {
    matches!(
        keyword,
        // queries
        Keyword::ALL
            | Keyword::AS
            | Keyword::ASC
            | Keyword::BY
            | Keyword::DESC
            | Keyword::DISTINCT
            | Keyword::DISTINCTROW
            | Keyword::EXCEPT
            | Keyword::FOR
            | Keyword::FROM
            | Keyword::GROUP
            | Keyword::HAVING
            | Keyword::HIGH_PRIORITY
            | Keyword::INTERSECT
            | Keyword::INTO
            | Keyword::LIMIT
            | Keyword::LOCKED
            | Keyword::NOWAIT
            | Keyword::OF
            | Keyword::OFFSET
            | Keyword::ORDER
            | Keyword::RECURSIVE
            | Keyword::ROLLUP
            | Keyword::SELECT
            | Keyword::SHARE
            | Keyword::SKIP
            | Keyword::SQL_BIG_RESULT
            | Keyword::SQL_BUFFER_RESULT
            | Keyword::SQL_CALC_FOUND_ROWS
            | Keyword::SQL_NO_CACHE
            | Keyword::SQL_SMALL_RESULT
            | Keyword::RETURNING
            | Keyword::TABLE
            | Keyword::UNION
            | Keyword::UPDATE
            | Keyword::VALUES
            | Keyword::WHERE
            | Keyword::WITH
            // tables and joins
            | Keyword::CROSS
            | Keyword::FORCE
            | Keyword::IGNORE
            | Keyword::INDEX
            | Keyword::INNER
            | Keyword::JOIN
            | Keyword::KEY
            | Keyword::LATERAL
            | Keyword::LEFT
            | Keyword::NATURAL
            | Keyword::ON
            | Keyword::OUTER
            | Keyword::PARTITION
            | Keyword::RIGHT
            | Keyword::SET
            | Keyword::STRAIGHT_JOIN
            | Keyword::USE
            | Keyword::USING
            // JSON_TABLE
            | Keyword::COLUMNS
            | Keyword::EMPTY
            | Keyword::ERROR
            | Keyword::JSON_TABLE
            | Keyword::NESTED
            | Keyword::ORDINALITY
            | Keyword::PATH
            // operators
            | Keyword::AND
            | Keyword::ANY
            | Keyword::BETWEEN
            | Keyword::COLLATE
            | Keyword::DIV
            | Keyword::ESCAPE
            | Keyword::EXISTS
            | Keyword::IN
            | Keyword::IS
            | Keyword::LIKE
            | Keyword::MEMBER
            | Keyword::MOD
            | Keyword::NOT
            | Keyword::OR
            | Keyword::REGEXP
            | Keyword::RLIKE
            | Keyword::SOME
            | Keyword::UNKNOWN
            | Keyword::XOR
            // values and constructs
            | Keyword::AGAINST
            | Keyword::BOOLEAN
            | Keyword::BOTH
            | Keyword::CASE
            | Keyword::CAST
            | Keyword::CHARSET
            | Keyword::CONVERT
            | Keyword::CURRENT_DATE
            | Keyword::CURRENT_TIME
            | Keyword::CURRENT_TIMESTAMP
            | Keyword::CURRENT_USER
            | Keyword::DEFAULT
            | Keyword::ELSE
            | Keyword::END
            | Keyword::EXPANSION
            | Keyword::EXTRACT
            | Keyword::FALSE
            | Keyword::FN
            | Keyword::INTERVAL
            | Keyword::LANGUAGE
            | Keyword::LEADING
            | Keyword::LOCALTIME
            | Keyword::LOCALTIMESTAMP
            | Keyword::MATCH
            | Keyword::MODE
            | Keyword::NULL
            | Keyword::POSITION
            | Keyword::QUERY
            | Keyword::SEPARATOR
            | Keyword::SUBSTR
            | Keyword::SUBSTRING
            | Keyword::THEN
            | Keyword::TRAILING
            | Keyword::TRIM
            | Keyword::TRUE
            | Keyword::WHEN
            // windows
            | Keyword::CURRENT
            | Keyword::FOLLOWING
            | Keyword::GROUPS
            | Keyword::NULLS
            | Keyword::OVER
            | Keyword::PRECEDING
            | Keyword::RANGE
            | Keyword::RESPECT
            | Keyword::ROW
            | Keyword::ROWS
            | Keyword::UNBOUNDED
            | Keyword::WINDOW
            // units of time
            | Keyword::DAY
            | Keyword::HOUR
            | Keyword::MICROSECOND
            | Keyword::MINUTE
            | Keyword::MONTH
            | Keyword::QUARTER
            | Keyword::SECOND
            | Keyword::WEEK
            | Keyword::YEAR
            // types of CAST, and of literals
            | Keyword::ARRAY
            | Keyword::BINARY
            | Keyword::CHAR
            | Keyword::CHARACTER
            | Keyword::DATE
            | Keyword::DATETIME
            | Keyword::DEC
            | Keyword::DECIMAL
            | Keyword::DOUBLE
            | Keyword::FLOAT
            | Keyword::INT
            | Keyword::INTEGER
            | Keyword::JSON
            | Keyword::PRECISION
            | Keyword::REAL
            | Keyword::SIGNED
            | Keyword::TIME
            | Keyword::TIMESTAMP
            | Keyword::UNSIGNED
            | Keyword::VARCHAR
    )
}
