//! The types of columns of a text file that an option says: `types = (a = 'INT')`.

use mayfly_records::TextType;
use mayfly_types::{ColumnType, ErrorCode, MySqlError};

use crate::errors;

/// Gives the columns that are named their types; `names` are those of the columns, `types` what
/// their values say. For each column, whether its type is declared.
///
/// # Errors
/// 1054 for a column that there is not, 1235 for a type that text files do not have.
pub(super) fn apply(
    declared: &[(String, ColumnType)],
    names: &[String],
    types: &mut [TextType],
    path: &str,
) -> Result<Vec<bool>, MySqlError> {
    let mut is_declared = vec![false; types.len()];
    for (name, column_type) in declared {
        let lower = name.to_lowercase();
        let place = names.iter().position(|known| known.to_lowercase() == lower);
        let unknown = || {
            let place = format!("types of file {path}");
            MySqlError::new(ErrorCode::UnknownColumn, &[name, &place])
        };
        let place = place.ok_or_else(unknown)?;
        let columns = types.get_mut(place).zip(is_declared.get_mut(place));
        if let Some((known, is_declared)) = columns {
            *known = match column_type {
                // MySQL's BOOL is TINYINT(1): a whole number, where the first values are numbers.
                ColumnType::Bool if *known == TextType::Integer => TextType::Integer,
                other => text_type(other)?,
            };
            *is_declared = true;
        }
    }
    Ok(is_declared)
}

/// What a type is in a text file: whole numbers have 64 bits, texts any length.
fn text_type(column_type: &ColumnType) -> Result<TextType, MySqlError> {
    Ok(match column_type {
        ColumnType::Bool => TextType::Boolean,
        ColumnType::TinyInt { unsigned }
        | ColumnType::SmallInt { unsigned }
        | ColumnType::MediumInt { unsigned }
        | ColumnType::Int { unsigned }
        | ColumnType::BigInt { unsigned } => match unsigned {
            true => TextType::Unsigned,
            false => TextType::Integer,
        },
        ColumnType::Decimal {
            precision,
            scale,
            unsigned: false,
        } => TextType::Decimal {
            precision: *precision,
            scale: *scale,
        },
        ColumnType::Float {
            unsigned: false,
            digits: None,
        }
        | ColumnType::Double {
            unsigned: false,
            digits: None,
        } => TextType::Double,
        ColumnType::Char { .. } | ColumnType::VarChar { .. } | ColumnType::Text(_) => {
            TextType::Text
        }
        ColumnType::Date => TextType::Date,
        ColumnType::DateTime { digits } | ColumnType::Timestamp { digits } => TextType::DateTime {
            digits: match digits {
                0 => 0,
                1..=3 => 3,
                _ => 6,
            },
        },
        other => {
            let what = format!("the type {other} of a column of a text file");
            return Err(errors::not_supported(&what));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_the_types_that_are_said() {
        let names = ["a".to_owned(), "B".to_owned()];
        let mut types = [TextType::Text, TextType::Double];
        let declared = [("b".to_owned(), ColumnType::Date)];
        let is_declared = apply(&declared, &names, &mut types, "x.csv").expect("a day");
        assert_eq!(types, [TextType::Text, TextType::Date]);
        assert_eq!(is_declared, [false, true]);
        for (known, expect) in [
            (TextType::Integer, TextType::Integer),
            (TextType::Text, TextType::Boolean),
            (TextType::Boolean, TextType::Boolean),
        ] {
            let mut types = [known];
            let declared = [("a".to_owned(), ColumnType::Bool)];
            apply(&declared, &names, &mut types, "x.csv").expect("a truth value");
            assert_eq!(types, [expect]);
        }
        for (name, column_type, code) in [
            ("c", ColumnType::Date, 1054),
            ("a", ColumnType::Year, 1235),
            ("a", ColumnType::Binary { length: 3 }, 1235),
        ] {
            let declared = [(name.to_owned(), column_type)];
            let error = apply(&declared, &names, &mut types, "x.csv").expect_err(name);
            assert_eq!(error.code, code, "{error}");
        }
    }
}
