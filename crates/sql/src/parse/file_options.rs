//! Options in parentheses behind the name of a file: `'x.csv' (delimiter = ';', header = off)`.
//!
//! No text is followed by a parenthesis where MySQL has a table, so the options are found in the
//! tokens. They become a part of the name ([`crate::file_name`]).

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing
    )
)]

use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan};
use mayfly_types::{ColumnType, ErrorCode, MySqlError};

use super::column::column_type;
use super::cursor::Cursor;
use super::grammar;
use super::own_text::tokenize;
use super::refusal::Result;
use crate::dialect::MayflyDialect;
use crate::file_name::{FileKind, FileOptions, with_options};
use crate::text_places;

/// Words in front of a table.
const BEFORE_TABLES: [&str; 7] = [
    "FROM",
    "JOIN",
    "STRAIGHT_JOIN",
    "USING",
    "DESCRIBE",
    "DESC",
    "EXPLAIN",
];

/// The options, and other names for them.
const OPTIONS: [(&str, &[&str]); 11] = [
    ("format", &[]),
    ("delimiter", &["delim", "sep"]),
    ("quote", &[]),
    ("escape", &[]),
    ("header", &[]),
    ("null", &["nullstr"]),
    ("types", &[]),
    ("sample", &["sample_size"]),
    ("skip", &[]),
    ("filename", &[]),
    ("partitions", &["hive_partitioning"]),
];

/// Makes one word of each name of a file and the options behind it.
pub(super) fn join(text: &str, tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    let mut from = 0;
    while let Some(found) = find(tokens, from) {
        let Found { name, open, close } = found;
        let behind = close.map_or(tokens.len(), |close| close + 1);
        let within = tokens.get(open..behind).unwrap_or_default();
        read(within.to_vec())?;
        let (Some(first), Some(last)) = (within.first(), within.last()) else {
            return Ok(());
        };
        let offset = |at: Location| text_places::offset(text, at.line, at.column);
        let range = offset(first.span.start)..offset(last.span.end);
        let options = text.get(range).unwrap_or_default().to_owned();
        if let Some(word) = tokens.get_mut(name)
            && let Token::SingleQuotedString(path) | Token::DoubleQuotedString(path) =
                &mut word.token
        {
            *path = with_options(path, &options);
        }
        tokens.drain(name + 1..behind);
        from = name + 1;
    }
    Ok(())
}

/// Where the name of a file with options stands.
struct Found {
    name: usize,
    open: usize,
    /// The parenthesis that ends the options; `None` where there is none.
    close: Option<usize>,
}

fn find(tokens: &[TokenWithSpan], from: usize) -> Option<Found> {
    let significant = tokens.iter().enumerate().skip(from);
    let mut significant =
        significant.filter(|(_, token)| !matches!(token.token, Token::Whitespace(_)));
    let (mut is_table, mut name) = (false, None);
    let (name, open) = loop {
        let (at, token) = significant.next()?;
        match &token.token {
            Token::LParen if name.is_some() => break (name?, at),
            Token::SingleQuotedString(_) | Token::DoubleQuotedString(_) if is_table => {
                name = Some(at);
            }
            _ => name = None,
        }
        is_table = match &token.token {
            Token::Comma | Token::LParen => true,
            Token::Word(word) if word.quote_style.is_none() => {
                let mut words = BEFORE_TABLES.iter();
                words.any(|before| word.value.eq_ignore_ascii_case(before))
            }
            _ => false,
        };
    };
    let mut depth: usize = 1;
    let close = significant.find(|(_, token)| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    Some(Found {
        name,
        open,
        close: close.map(|(at, _)| at),
    })
}

/// Reads options that stand in a text of their own.
///
/// # Errors
/// Those of a statement that has them.
pub(crate) fn file_options(text: &str) -> std::result::Result<FileOptions, MySqlError> {
    let mut tokens = tokenize(text)?;
    grammar::read_as_mysql(&mut tokens);
    read(tokens).map_err(|refusal| refusal.of_text(text))
}

fn read(tokens: Vec<TokenWithSpan>) -> Result<FileOptions> {
    let dialect = MayflyDialect::for_text(tokens.len(), 0);
    let mut cursor = Cursor::new(&dialect, tokens);
    let mut options = FileOptions::default();
    cursor.parser.expect_token(&Token::LParen)?;
    cursor.list(|cursor| option(cursor, &mut options))?;
    cursor.parser.expect_token(&Token::RParen)?;
    cursor.end()?;
    check(&options)?;
    Ok(options)
}

fn option(cursor: &mut Cursor<'_>, options: &mut FileOptions) -> Result<()> {
    let written = cursor.any_word()?;
    let word = written.to_ascii_lowercase();
    let mut known = OPTIONS.iter();
    let known = known.find(|(name, others)| *name == word || others.contains(&word.as_str()));
    let Some((name, _)) = known else {
        let names: Vec<&str> = OPTIONS.iter().map(|(name, _)| *name).collect();
        let text = format!(
            "Unknown option '{written}' of a file; the options are {}",
            names.join(", ")
        );
        return Err(MySqlError::with_message(ErrorCode::Syntax, text).into());
    };
    if options.given.contains(name) {
        let text = format!("The option '{name}' of a file is given twice");
        return Err(MySqlError::with_message(ErrorCode::Syntax, text).into());
    }
    options.given.push(name);
    cursor.parser.expect_token(&Token::Eq)?;
    match *name {
        "format" => options.kind = Some(kind(cursor)?),
        "delimiter" => match sign(cursor, name)? {
            Some(delimiter) => options.delimiter = Some(delimiter),
            None => return wrong(name, "one character"),
        },
        "quote" => options.quote = Some(sign(cursor, name)?),
        "escape" => options.escape = Some(sign(cursor, name)?),
        "header" => options.header = Some(switch(cursor, name)?),
        "null" => options.nulls = Some(texts(cursor, name)?),
        "types" => options.types = types(cursor)?,
        "sample" if cursor.word("ALL") => options.sample = Some(0),
        "sample" => options.sample = Some(number(cursor, name)?),
        "filename" => options.filename = Some(switch(cursor, name)?),
        "partitions" => options.partitions = Some(switch(cursor, name)?),
        _ => options.skip = Some(number(cursor, name)?),
    }
    // A value is one word, or stands in parentheses.
    match cursor.peek() {
        Token::Comma | Token::RParen => Ok(()),
        _ => cursor.fail("',' or ')'"),
    }
}

/// The error of a value that an option cannot have.
fn wrong<T>(name: &str, expected: &str) -> Result<T> {
    let text = format!("Incorrect arguments to {name}: the option of a file takes {expected}");
    Err(MySqlError::with_message(ErrorCode::WrongArguments, text).into())
}

/// What options ask for together.
fn check(options: &FileOptions) -> Result<()> {
    let quote = options.quote.unwrap_or(Some(b'"'));
    if options.delimiter.is_some() && quote == options.delimiter {
        return wrong("quote", "another character than delimiter");
    }
    if options.delimiter.is_some() && options.escape.flatten() == options.delimiter {
        return wrong("escape", "another character than delimiter");
    }
    if quote.is_none() && options.escape.flatten().is_some() {
        return wrong("escape", "a character only where there are quotes");
    }
    Ok(())
}

fn kind(cursor: &mut Cursor<'_>) -> Result<FileKind> {
    let word = cursor.value_word()?.to_ascii_lowercase();
    match word.as_str() {
        "csv" => Ok(FileKind::Csv),
        "tsv" => Ok(FileKind::Tsv),
        "json" => Ok(FileKind::Json),
        "parquet" => Ok(FileKind::Parquet),
        _ => wrong("format", "csv, tsv, json or parquet"),
    }
}

/// A text in quotes; `None` for anything else, which is taken too.
fn text(cursor: &mut Cursor<'_>) -> Option<String> {
    let token = cursor.peek();
    cursor.skip();
    match token {
        Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => Some(text),
        _ => None,
    }
}

/// One character, or none.
fn sign(cursor: &mut Cursor<'_>, name: &str) -> Result<Option<u8>> {
    if cursor.word("NONE") {
        return Ok(None);
    }
    let text = text(cursor);
    match text.as_ref().map(String::as_bytes) {
        Some([]) => Ok(None),
        // Where backslashes are characters like any other.
        Some(b"\\t") => Ok(Some(b'\t')),
        Some([byte]) if byte.is_ascii() && !b"\n\r\0".contains(byte) => Ok(Some(*byte)),
        _ => wrong(
            name,
            "one character of ASCII in quotes, and no end of a line",
        ),
    }
}

fn switch(cursor: &mut Cursor<'_>, name: &str) -> Result<bool> {
    let word = match cursor.peek() {
        Token::Word(word) => word.value,
        Token::SingleQuotedString(word)
        | Token::DoubleQuotedString(word)
        | Token::Number(word, _) => word,
        _ => String::new(),
    };
    cursor.skip();
    match word.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Ok(true),
        "off" | "false" | "no" | "0" => Ok(false),
        _ => wrong(name, "ON or OFF"),
    }
}

fn number(cursor: &mut Cursor<'_>, name: &str) -> Result<u64> {
    let token = cursor.peek();
    cursor.skip();
    let number = match token {
        Token::Number(digits, false) => digits.parse().ok(),
        _ => None,
    };
    match number {
        Some(number) => Ok(number),
        None => wrong(name, "a whole number"),
    }
}

/// A text, or some in parentheses.
fn texts(cursor: &mut Cursor<'_>, name: &str) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    let mut one = |cursor: &mut Cursor<'_>| match text(cursor) {
        Some(text) => {
            texts.push(text);
            Ok(())
        }
        None => wrong(name, "a text in quotes, or some in parentheses"),
    };
    if cursor.token(&Token::LParen) {
        cursor.list(one)?;
        cursor.parser.expect_token(&Token::RParen)?;
    } else {
        one(cursor)?;
    }
    Ok(texts)
}

/// Columns and their types in parentheses: `(a = INT, b = 'DECIMAL(10,2)')`.
fn types(cursor: &mut Cursor<'_>) -> Result<Vec<(String, ColumnType)>> {
    let mut types: Vec<(String, ColumnType)> = Vec::new();
    if !cursor.token(&Token::LParen) {
        return wrong("types", "columns and their types in parentheses: (a = INT)");
    }
    cursor.list(|cursor| {
        let column = cursor.value_word()?;
        cursor.parser.expect_token(&Token::Eq)?;
        let column_type = match cursor.peek() {
            Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => {
                cursor.skip();
                spelled(&text, &column)?
            }
            _ => column_type(cursor, &column)?,
        };
        let lower = column.to_lowercase();
        if types.iter().any(|(known, _)| known.to_lowercase() == lower) {
            let code = ErrorCode::ColumnTwice;
            return Err(MySqlError::new(code, &[&column]).into());
        }
        types.push((column, column_type));
        Ok(())
    })?;
    cursor.parser.expect_token(&Token::RParen)?;
    Ok(types)
}

/// A type that is written as a text.
fn spelled(text: &str, column: &str) -> Result<ColumnType> {
    let dialect = MayflyDialect::for_text(text.len(), 0);
    let mut tokens = tokenize(text)?;
    grammar::read_as_mysql(&mut tokens);
    let mut cursor = Cursor::new(&dialect, tokens);
    let read = column_type(&mut cursor, column).and_then(|column_type| {
        cursor.end()?;
        Ok(column_type)
    });
    Ok(read.map_err(|refusal| refusal.of_text(text))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_name::FileName;
    use crate::parse::parse;
    use crate::references::References;
    use crate::statement::{Show, Statement};

    fn files(text: &str) -> Vec<FileName> {
        let references = match parse(text).expect(text).0 {
            Statement::Query(query) => References::of_query(&query),
            Statement::Show(Show::FileColumns(name)) => {
                return vec![FileName::of(&name).expect(text)];
            }
            other => panic!("{other:?}"),
        };
        let files = references.files.iter();
        files.map(|file| FileName::of(file).expect(text)).collect()
    }

    #[track_caller]
    fn check(options: &str, expect: impl FnOnce(&mut FileOptions)) {
        let mut expected = FileOptions::default();
        expect(&mut expected);
        for text in [
            format!("SELECT * FROM 'x.csv' ({options}) AS t WHERE a = 'b'"),
            format!("SELECT a FROM t JOIN \"x.csv\"\n ( {options} ) u USING (a)"),
            format!("SELECT (SELECT MAX(a) FROM t, 'x.csv' ({options}) u) FROM t"),
            format!("SELECT a FROM ('x.csv'({options}) u JOIN t)"),
            format!("DESCRIBE 'x.csv' ({options});"),
        ] {
            let files = files(&text);
            let [file] = files.as_slice() else {
                panic!("{text}: {files:?}");
            };
            assert_eq!(file.path, "x.csv", "{text}");
            let mut found = file.options.clone();
            found.given.clear();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn options_are_read() {
        check("delimiter = ';'", |it| it.delimiter = Some(b';'));
        check("SEP='\\t',header=off", |it| {
            it.delimiter = Some(b'\t');
            it.header = Some(false);
        });
        check("quote = '', escape = none", |it| {
            it.quote = Some(None);
            it.escape = Some(None);
        });
        check("quote = '\\'', escape = \"\\\\\"", |it| {
            it.quote = Some(Some(b'\''));
            it.escape = Some(Some(b'\\'));
        });
        check("null = 'NA', skip = 2, sample = 100", |it| {
            it.nulls = Some(vec!["NA".to_owned()]);
            it.skip = Some(2);
            it.sample = Some(100);
        });
        check("nullstr = ('', 'n/a (none)'), sample = ALL", |it| {
            it.nulls = Some(vec![String::new(), "n/a (none)".to_owned()]);
            it.sample = Some(0);
        });
        check(
            "types = (a = 'INT', `b c` = DECIMAL(10, 2), 'd' = date)",
            |it| {
                let decimal = ColumnType::Decimal {
                    precision: 10,
                    scale: 2,
                    unsigned: false,
                };
                it.types = vec![
                    ("a".to_owned(), ColumnType::Int { unsigned: false }),
                    ("b c".to_owned(), decimal),
                    ("d".to_owned(), ColumnType::Date),
                ];
            },
        );
        check("format = json, header = 1", |it| {
            it.kind = Some(FileKind::Json);
            it.header = Some(true);
        });
        check("filename = on, hive_partitioning = false", |it| {
            it.filename = Some(true);
            it.partitions = Some(false);
        });
    }

    #[test]
    fn other_options_are_another_table() {
        let text = "SELECT * FROM 'x.csv' (header = on) a, 'x.csv' (header = off) b, 'x.csv' c";
        let files = files(text);
        let headers: Vec<_> = files.iter().map(|file| file.options.header).collect();
        assert_eq!(headers.len(), 3, "{headers:?}");
        for header in [None, Some(true), Some(false)] {
            assert!(headers.contains(&header), "{headers:?}");
        }
    }

    #[test]
    fn wrong_options_are_refused() {
        for (options, code, part) in [
            ("delimeter = ';'", 1064, "'delimeter'"),
            ("delimeter = ';'", 1064, "format, delimiter, quote, escape"),
            ("skip = 1, skip = 2", 1064, "'skip'"),
            ("delim = ';', sep = ';'", 1064, "'delimiter'"),
            ("delimiter ';'", 1064, "near '';')"),
            ("skip = 1 + 1", 1064, "near '+ 1)"),
            ("delimiter = ';' header = on", 1064, "near 'header"),
            ("", 1064, "near ')"),
            ("skip = 1,", 1064, "near ')"),
            ("delimiter = ';;'", 1210, "delimiter"),
            ("delimiter = ''", 1210, "delimiter"),
            ("delimiter = NULL", 1210, "delimiter"),
            ("delimiter = '\\n'", 1210, "delimiter"),
            ("quote = '\u{ab}'", 1210, "quote"),
            ("delimiter = '\"'", 1210, "quote"),
            ("delimiter = ';', escape = ';'", 1210, "escape"),
            ("quote = '', escape = '!'", 1210, "escape"),
            ("header = maybe", 1210, "header"),
            ("skip = -1", 1210, "skip"),
            ("skip = '1'", 1210, "skip"),
            ("sample = 1.5", 1210, "sample"),
            ("null = 1", 1210, "null"),
            ("types = INT", 1210, "types"),
            ("types = (a INT)", 1064, "near 'INT)"),
            ("types = (a = 'no type')", 1064, "no type"),
            ("types = (a = INT, A = INT)", 1110, "'A'"),
            ("format = xml", 1210, "format"),
        ] {
            let text = format!("SELECT * FROM 'x.csv' ({options}) t");
            let error = parse(&text).expect_err(&text);
            assert_eq!(error.code, code, "{text}: {error}");
            assert!(error.message.contains(part), "{text}: {error}");
        }
        let error = parse("SELECT * FROM 'x.csv' (skip = 1").expect_err("no end");
        assert_eq!(error.code, 1064);
    }

    #[test]
    fn texts_elsewhere_have_no_options() {
        for text in [
            "LOAD DATA INFILE 'x' INTO TABLE t FIELDS TERMINATED BY ',' (a, b)",
            "INSERT INTO t VALUES ('a'), ('b', 'c')",
        ] {
            parse(text).expect(text);
        }
    }
}
