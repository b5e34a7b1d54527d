//! Reading a column type from its text, in any spelling that MySQL takes.

use std::str::FromStr;

use crate::{BlobSize, ColumnType, Digits, ErrorCode, MySqlError};

/// The digits of a DECIMAL without a declared precision.
const DECIMAL_DEFAULT_DIGITS: u8 = 10;
const DECIMAL_MAX_DIGITS: u8 = 65;
const DECIMAL_MAX_SCALE: u8 = 30;
const SECOND_MAX_DIGITS: u8 = 6;
const BIT_MAX_LENGTH: u8 = 64;
const CHAR_MAX_LENGTH: u32 = 255;
/// The longest VARCHAR in characters: a row has 65535 bytes, a character up to four.
const VARCHAR_MAX_LENGTH: u32 = 16383;
const VARBINARY_MAX_LENGTH: u32 = 65535;
/// FLOAT(p) with more bits than this is DOUBLE.
const FLOAT_MAX_BITS: u32 = 24;
/// FLOAT(p) with more bits than this is nothing.
const DOUBLE_MAX_BITS: u32 = 53;
/// The most digits that a number is declared to be shown with.
const DISPLAY_WIDTH_MAX: u8 = u8::MAX;

/// The parts of a type's text: words in lower case, and what stood in parentheses.
struct Parts {
    words: Vec<String>,
    arguments: Vec<String>,
}

impl FromStr for ColumnType {
    type Err = MySqlError;

    fn from_str(text: &str) -> Result<Self, MySqlError> {
        let syntax = || MySqlError::new(ErrorCode::Syntax, &[&text, &1]);
        let parts = split(text).ok_or_else(syntax)?;
        read(&parts).and_then(|found| found.ok_or_else(syntax))
    }
}

fn read(parts: &Parts) -> Result<Option<ColumnType>, MySqlError> {
    let unsigned = parts
        .words
        .iter()
        .any(|word| word == "unsigned" || word == "zerofill");
    let Some(first) = parts.words.first() else {
        return Ok(None);
    };
    let second = parts.words.get(1).map_or("", String::as_str);
    let length = |default: u32| -> Result<u32, MySqlError> {
        match parts.arguments.first() {
            None => Ok(default),
            Some(text) => text
                .parse()
                .map_err(|_| MySqlError::new(ErrorCode::Syntax, &[text, &1])),
        }
    };
    let integer = |found: ColumnType| {
        let width = parts.arguments.first().map(|text| text.parse::<u8>());
        match width {
            Some(Err(_)) => {
                let code = ErrorCode::TooBigDisplayWidth;
                Err(MySqlError::new(code, &[first, &DISPLAY_WIDTH_MAX]))
            }
            _ => Ok(found),
        }
    };
    let digits = || -> Result<u8, MySqlError> {
        let count = length(0)?;
        u8::try_from(count)
            .ok()
            .filter(|count| *count <= SECOND_MAX_DIGITS)
            .ok_or_else(|| {
                MySqlError::new(
                    ErrorCode::TooBigPrecision,
                    &[&count, &first, &SECOND_MAX_DIGITS],
                )
            })
    };
    let limited = |default: u32, limit: u32| -> Result<u32, MySqlError> {
        let asked = length(default)?;
        if asked > limit {
            return Err(MySqlError::new(ErrorCode::ColumnTooBig, &[first, &limit]));
        }
        Ok(asked)
    };
    Ok(Some(match first.as_str() {
        "bool" | "boolean" => ColumnType::Bool,
        "tinyint" if !unsigned && parts.arguments == ["1"] => ColumnType::Bool,
        "tinyint" | "int1" => integer(ColumnType::TinyInt { unsigned })?,
        "smallint" | "int2" => integer(ColumnType::SmallInt { unsigned })?,
        "mediumint" | "middleint" | "int3" => integer(ColumnType::MediumInt { unsigned })?,
        "int" | "integer" | "int4" => integer(ColumnType::Int { unsigned })?,
        "bigint" | "int8" => integer(ColumnType::BigInt { unsigned })?,
        "serial" => ColumnType::BigInt { unsigned: true },
        "decimal" | "dec" | "numeric" | "fixed" => decimal(parts, unsigned)?,
        "float" | "float4" if parts.arguments.len() == 1 && length(0)? > DOUBLE_MAX_BITS => {
            return Err(MySqlError::new(ErrorCode::ColumnSpecifier, &[first]));
        }
        "float" | "float4" if parts.arguments.len() < 2 && length(0)? > FLOAT_MAX_BITS => {
            ColumnType::Double {
                unsigned,
                digits: None,
            }
        }
        "float" | "float4" => ColumnType::Float {
            unsigned,
            digits: floating_digits(parts)?,
        },
        "double" | "real" | "float8" if parts.arguments.len() == 1 => return Ok(None),
        "double" | "real" | "float8" => ColumnType::Double {
            unsigned,
            digits: floating_digits(parts)?,
        },
        "bit" => {
            let asked = length(1)?;
            let length = u8::try_from(asked)
                .ok()
                .filter(|bits| *bits <= BIT_MAX_LENGTH);
            ColumnType::Bit {
                length: length.ok_or_else(|| {
                    MySqlError::new(ErrorCode::TooBigDisplayWidth, &[first, &BIT_MAX_LENGTH])
                })?,
            }
        }
        "char" | "character" | "nchar" if second == "varying" || second == "varchar" => {
            ColumnType::VarChar {
                length: limited(1, VARCHAR_MAX_LENGTH)?,
            }
        }
        "national"
            if matches!(second, "varchar" | "varcharacter")
                || parts.words.iter().any(|word| word == "varying") =>
        {
            ColumnType::VarChar {
                length: limited(1, VARCHAR_MAX_LENGTH)?,
            }
        }
        "national" | "char" | "character" | "nchar" => ColumnType::Char {
            length: limited(1, CHAR_MAX_LENGTH)?,
        },
        "varchar" | "nvarchar" | "varcharacter" => ColumnType::VarChar {
            length: limited(1, VARCHAR_MAX_LENGTH)?,
        },
        "tinytext" => ColumnType::Text(BlobSize::Tiny),
        "text" => ColumnType::Text(size(length(0)?, 4)),
        "mediumtext" => ColumnType::Text(BlobSize::Medium),
        "long" if second == "varbinary" => ColumnType::Blob(BlobSize::Medium),
        "long" => ColumnType::Text(BlobSize::Medium),
        "longtext" => ColumnType::Text(BlobSize::Long),
        "binary" => ColumnType::Binary {
            length: limited(1, CHAR_MAX_LENGTH)?,
        },
        "varbinary" => ColumnType::VarBinary {
            length: limited(1, VARBINARY_MAX_LENGTH)?,
        },
        "tinyblob" => ColumnType::Blob(BlobSize::Tiny),
        "blob" => ColumnType::Blob(size(length(0)?, 1)),
        "mediumblob" => ColumnType::Blob(BlobSize::Medium),
        "longblob" => ColumnType::Blob(BlobSize::Long),
        "date" => ColumnType::Date,
        "datetime" => ColumnType::DateTime { digits: digits()? },
        "timestamp" => ColumnType::Timestamp { digits: digits()? },
        "time" => ColumnType::Time { digits: digits()? },
        "year" => ColumnType::Year,
        "json" => ColumnType::Json,
        "enum" if !parts.arguments.is_empty() => ColumnType::Enum(words(parts)),
        "set" if !parts.arguments.is_empty() => ColumnType::Set(words(parts)),
        "null" => ColumnType::Null,
        _ => return Ok(None),
    }))
}

fn decimal(parts: &Parts, unsigned: bool) -> Result<ColumnType, MySqlError> {
    let number = |index: usize, default: u8| {
        parts.arguments.get(index).map_or(Ok(default), |text| {
            text.parse::<u8>()
                .map_err(|_| MySqlError::new(ErrorCode::Syntax, &[text, &1]))
        })
    };
    let name = &parts.words[0];
    let precision = match number(0, DECIMAL_DEFAULT_DIGITS)? {
        0 => DECIMAL_DEFAULT_DIGITS,
        digits => digits,
    };
    let scale = number(1, 0)?;
    if precision > DECIMAL_MAX_DIGITS {
        let arguments: [&dyn std::fmt::Display; 3] = [&precision, name, &DECIMAL_MAX_DIGITS];
        return Err(MySqlError::new(ErrorCode::TooBigPrecision, &arguments));
    }
    if scale > DECIMAL_MAX_SCALE {
        let arguments: [&dyn std::fmt::Display; 3] = [&scale, name, &DECIMAL_MAX_SCALE];
        return Err(MySqlError::new(ErrorCode::TooBigScale, &arguments));
    }
    if scale > precision {
        return Err(MySqlError::new(ErrorCode::ScaleAbovePrecision, &[name]));
    }
    Ok(ColumnType::Decimal {
        precision,
        scale,
        unsigned,
    })
}

/// What FLOAT(M,D) and DOUBLE(M,D) declare.
fn floating_digits(parts: &Parts) -> Result<Option<Digits>, MySqlError> {
    let [total, fraction] = parts.arguments.as_slice() else {
        return Ok(None);
    };
    let name = &parts.words[0];
    let number = |text: &String| {
        let code = ErrorCode::TooBigDisplayWidth;
        let too_wide = |_| MySqlError::new(code, &[name, &DISPLAY_WIDTH_MAX]);
        text.parse::<u8>().map_err(too_wide)
    };
    let digits = Digits {
        total: number(total)?,
        fraction: number(fraction)?,
    };
    if digits.fraction > DECIMAL_MAX_SCALE {
        let arguments: [&dyn std::fmt::Display; 3] = [&digits.fraction, name, &DECIMAL_MAX_SCALE];
        return Err(MySqlError::new(ErrorCode::TooBigScale, &arguments));
    }
    if digits.fraction > digits.total {
        return Err(MySqlError::new(ErrorCode::ScaleAbovePrecision, &[name]));
    }
    Ok(Some(digits))
}

/// The smallest size class for that many characters; zero means that none was declared.
fn size(length: u32, bytes_each: u64) -> BlobSize {
    match u64::from(length) * bytes_each {
        0 => BlobSize::Normal,
        bytes => BlobSize::holding(bytes),
    }
}

/// The words of a list, which never end with spaces.
fn words(parts: &Parts) -> Vec<String> {
    let words = parts.arguments.iter();
    words
        .map(|word| word.trim_end_matches(' ').to_owned())
        .collect()
}

/// Splits a type's text into words and arguments; `None` if quotes or parentheses are open.
fn split(text: &str) -> Option<Parts> {
    let mut parts = Parts {
        words: Vec::new(),
        arguments: Vec::new(),
    };
    let mut characters = text.chars().peekable();
    let mut word = String::new();
    while let Some(character) = characters.next() {
        if character.is_alphanumeric() || character == '_' {
            word.extend(character.to_lowercase());
            continue;
        }
        if !word.is_empty() {
            parts.words.push(std::mem::take(&mut word));
        }
        if character == '(' {
            parts.arguments = arguments(&mut characters)?;
        } else if !character.is_whitespace() {
            return None;
        }
    }
    if !word.is_empty() {
        parts.words.push(word);
    }
    Some(parts)
}

/// Reads a list up to its closing parenthesis.
fn arguments(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<Vec<String>> {
    let mut found = Vec::new();
    let mut argument = String::new();
    while let Some(character) = characters.next() {
        match character {
            ')' => {
                found.push(argument);
                return Some(found);
            }
            ',' => found.push(std::mem::take(&mut argument)),
            '\'' => loop {
                match characters.next()? {
                    '\'' if characters.peek() == Some(&'\'') => {
                        characters.next();
                        argument.push('\'');
                    }
                    '\'' => break,
                    '\\' => argument.push(characters.next()?),
                    other => argument.push(other),
                }
            },
            other if other.is_whitespace() => {}
            other => argument.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::ColumnType;

    #[test]
    fn spellings() {
        let table = [
            ("INTEGER", "int"),
            ("INT(11) UNSIGNED", "int unsigned"),
            ("int unsigned zerofill", "int unsigned"),
            ("BOOLEAN", "tinyint(1)"),
            ("tinyint(4)", "tinyint"),
            ("NUMERIC", "decimal(10,0)"),
            ("DECIMAL(5)", "decimal(5,0)"),
            ("decimal(0,0)", "decimal(10,0)"),
            ("decimal(65,30) unsigned", "decimal(65,30) unsigned"),
            ("DOUBLE PRECISION", "double"),
            ("FLOAT(7,4)", "float(7,4)"),
            ("FLOAT(30)", "double"),
            ("real", "double"),
            ("CHAR", "char(1)"),
            ("character varying(20)", "varchar(20)"),
            ("TEXT(20)", "tinytext"),
            ("TEXT", "text"),
            ("blob(70000)", "mediumblob"),
            ("DATETIME(6)", "datetime(6)"),
            ("Enum('a', 'b,c', 'd''e')", "enum('a','b,c','d''e')"),
            ("SET(' a ', 'b  ')", "set(' a','b')"),
            ("bit", "bit(1)"),
            ("serial", "bigint unsigned"),
            ("enum('a\\\\b')", "enum('a\\\\b')"),
            ("char(32)", "char(32)"),
        ];
        for (text, expected) in table {
            assert_eq!(
                text.parse::<ColumnType>().expect(text).to_string(),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn refusals() {
        let table = [
            ("blub", 1064),
            ("int(256)", 1439),
            ("double(256,2)", 1439),
            ("float(54)", 1063),
            ("int(", 1064),
            ("decimal(66,0)", 1426),
            ("decimal(40,31)", 1425),
            ("decimal(3,4)", 1427),
            ("char(256)", 1074),
            ("varchar(70000)", 1074),
            ("datetime(7)", 1426),
            ("bit(65)", 1439),
            ("enum", 1064),
        ];
        for (text, expected) in table {
            assert_eq!(
                text.parse::<ColumnType>().expect_err(text).code,
                expected,
                "{text}"
            );
        }
    }
}
