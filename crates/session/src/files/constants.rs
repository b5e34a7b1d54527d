//! Columns that have one value for all rows of a file: the name of the file, and what the
//! directories around it say (`year=2024/month=1/x.csv`).

use std::collections::HashSet;

use datafusion::scalar::ScalarValue;
use mayfly_records::{Guess, Kind, TextType};
use mayfly_sql::file_name::FileOptions;
use mayfly_types::{ErrorCode, MySqlError};

use super::arrays::scalar_of;

/// The column with the name of the file.
const FILE_NAME: &str = "filename";
/// The directory of rows without a value.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// What stands in the directories of a file: names and values.
type Keys = Vec<(String, Option<String>)>;

/// The columns, and their texts for each file.
#[derive(Debug, Default)]
pub(super) struct Constants {
    pub(super) names: Vec<String>,
    texts: Vec<Vec<Option<String>>>,
}

impl Constants {
    /// The columns of some files, which have columns of their own. All directories count if an
    /// option says so; otherwise those of a pattern do, but for its first parts that are the same
    /// for all of its files, and a column of the files goes before one of the directories.
    ///
    /// # Errors
    /// 1060 for a name that the files have too, 1024 for files whose directories do not agree.
    pub(super) fn of(
        paths: &[impl AsRef<str>],
        own: &[String],
        options: &FileOptions,
        fixed_parts: Option<usize>,
    ) -> Result<Constants, MySqlError> {
        let is_said = options.partitions == Some(true);
        let from = match options.partitions {
            Some(true) => Some(0),
            Some(false) => None,
            None => fixed_parts,
        };
        let of_path = |path| from.map(|from| keys_of(path, from)).unwrap_or_default();
        let of_paths = paths.iter().map(|path| of_path(path.as_ref()));
        let mut keys: Vec<Keys> = of_paths.collect();
        let names = |keys: &Keys| -> Vec<String> {
            keys.iter().map(|(name, _)| name.to_lowercase()).collect()
        };
        let expected = keys.first().map(names).unwrap_or_default();
        let other = keys.iter().position(|keys| names(keys) != expected);
        match other.and_then(|other| paths.first().zip(paths.get(other))) {
            Some((first, other)) if is_said => {
                let (first, other) = (first.as_ref(), other.as_ref());
                let text = format!(
                    "The directories of file '{other}' have other keys than those of '{first}'"
                );
                return Err(MySqlError::with_message(ErrorCode::FileRead, text));
            }
            Some(_) => keys = vec![Keys::new(); paths.len()],
            None => {}
        }
        let own: HashSet<String> = own.iter().map(|name| name.to_lowercase()).collect();
        let is_own = |name: &str| own.contains(&name.to_lowercase());
        if !is_said {
            for keys in &mut keys {
                keys.retain(|(name, _)| !is_own(name));
            }
        }
        if options.filename == Some(true) {
            for (keys, path) in keys.iter_mut().zip(paths) {
                keys.push((FILE_NAME.to_owned(), Some(path.as_ref().to_owned())));
            }
        }
        let first = keys.first().cloned().unwrap_or_default();
        let names: Vec<String> = first.into_iter().map(|(name, _)| name).collect();
        for (place, name) in names.iter().enumerate() {
            let before = names.get(..place).unwrap_or_default();
            let is_twice = before
                .iter()
                .any(|it| it.to_lowercase() == name.to_lowercase());
            if is_twice || is_own(name) {
                let option = match name.as_str() {
                    FILE_NAME => "filename",
                    _ => "partitions",
                };
                let path = paths.first().map(AsRef::as_ref).unwrap_or_default();
                let mut error = MySqlError::new(ErrorCode::DuplicateColumn, &[name]);
                let advice = format!(
                    "; file '{path}' has a column of that name; ({option} = off) behind its name \
                     leaves the other one out"
                );
                error.message.push_str(&advice);
                return Err(error);
            }
        }
        let texts = keys.into_iter();
        let texts = texts.map(|keys| keys.into_iter().map(|(_, text)| text).collect());
        Ok(Constants {
            names,
            texts: texts.collect(),
        })
    }

    /// The types that hold the texts of all files.
    pub(super) fn types(&self) -> Vec<TextType> {
        let columns = 0..self.names.len();
        let types = columns.map(|column| {
            let mut guess = Guess::default();
            for texts in &self.texts {
                if let Some(Some(text)) = texts.get(column) {
                    guess.add(text, Kind::Plain);
                }
            }
            guess.text_type()
        });
        types.collect()
    }

    /// For each file the values of the columns, in these types.
    ///
    /// # Errors
    /// 1366 for a text that a type cannot hold, which an option says.
    pub(super) fn values(&self, types: &[TextType]) -> Result<Vec<Vec<ScalarValue>>, MySqlError> {
        let of_file = |texts: &Vec<Option<String>>| {
            let columns = self.names.iter().zip(texts).zip(types);
            let values =
                columns.map(|((name, text), text_type)| value(text.as_deref(), name, *text_type));
            values.collect()
        };
        self.texts.iter().map(of_file).collect()
    }
}

fn value(text: Option<&str>, name: &str, text_type: TextType) -> Result<ScalarValue, MySqlError> {
    scalar_of(text, text_type).ok_or_else(|| {
        let text = text.unwrap_or_default();
        let text = format!(
            "Incorrect value: '{text}' for column '{name}', which the directories of a file say; its \
             type is that of the option 'types'"
        );
        MySqlError::with_message(ErrorCode::TruncatedWrongValueForField, text)
    })
}

/// What the directories of a path say behind its first parts. Of a key that comes twice the inner
/// one counts.
fn keys_of(path: &str, from: usize) -> Keys {
    let directories = path
        .rsplit_once('/')
        .map_or("", |(directories, _)| directories);
    let mut keys = Keys::new();
    for part in parts_of(directories).skip(from) {
        let Some((name, text)) = part.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            continue;
        };
        let name = decoded(name);
        keys.retain(|(known, _)| known.to_lowercase() != name.to_lowercase());
        keys.push((name, (text != NULL).then(|| decoded(text))));
    }
    keys
}

/// A text in which `%3D` stands for `=`, as writers of such directories have it.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, behind)) = rest.split_first() {
        let digits = behind
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let code = code.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code.filter(|_| *byte == b'%') {
            Some(code) => {
                bytes.push(code);
                rest = behind.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*byte);
                rest = behind;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// The names of a path from its first directory down.
pub(super) fn parts_of(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(
        paths: &[&str],
        own: &[&str],
        options: &FileOptions,
        fixed_parts: Option<usize>,
    ) -> Result<Vec<String>, u16> {
        let own: Vec<String> = own.iter().map(|name| (*name).to_owned()).collect();
        let constants = Constants::of(paths, &own, options, fixed_parts);
        constants
            .map(|constants| constants.names)
            .map_err(|error| error.code)
    }

    #[test]
    fn directories_have_keys() {
        let usual = FileOptions::default;
        let said = |partitions| FileOptions {
            partitions: Some(partitions),
            ..usual()
        };
        let paths = ["d/y=1/m=2/a.csv", "d/y=2/m=3/b=4.csv"];
        assert_eq!(
            of(&paths, &[], &usual(), Some(1)),
            Ok(vec!["y".to_owned(), "m".to_owned()])
        );
        assert_eq!(
            of(&paths, &["Y"], &usual(), Some(1)),
            Ok(vec!["m".to_owned()])
        );
        assert_eq!(of(&paths, &[], &usual(), None), Ok(Vec::new()));
        assert_eq!(of(&paths, &[], &said(false), Some(1)), Ok(Vec::new()));
        assert_eq!(of(&paths, &["Y"], &said(true), Some(1)), Err(1060));
        let unlike = ["d/y=1/a.csv", "d/m=1/a.csv"];
        assert_eq!(of(&unlike, &[], &usual(), Some(1)), Ok(Vec::new()));
        assert_eq!(of(&unlike, &[], &said(true), Some(1)), Err(1024));
        let named = FileOptions {
            filename: Some(true),
            ..usual()
        };
        assert_eq!(
            of(&["a.csv"], &[], &named, None),
            Ok(vec![FILE_NAME.to_owned()])
        );
        assert_eq!(of(&["a.csv"], &["FileName"], &named, None), Err(1060));
        // Not above the first wildcard, and the inner one of two.
        let below = |fixed| of(&paths, &[], &usual(), Some(fixed));
        assert_eq!(below(2), Ok(vec!["m".to_owned()]));
        assert_eq!(below(3), Ok(Vec::new()));
        let twice = [("K".to_owned(), Some("2".to_owned()))];
        assert_eq!(keys_of("k=1/K=2/a.csv", 0), twice);
    }

    #[test]
    fn values_have_the_types_of_all_files() {
        let paths = [
            "y=1/d=2024-01-01/s=a%2Fb/x",
            "y=20/d=2024-01-02/s=__HIVE_DEFAULT_PARTITION__/x",
        ];
        let options = FileOptions::default();
        let constants = Constants::of(&paths, &[], &options, Some(0)).expect("keys");
        let types = constants.types();
        assert_eq!(types, [TextType::Integer, TextType::Date, TextType::Text]);
        let values = constants.values(&types).expect("values");
        assert_eq!(values.len(), 2);
        let first = values.first().and_then(|values| values.first());
        assert_eq!(first, Some(&ScalarValue::Int64(Some(1))));
        let text = values.first().and_then(|values| values.get(2));
        assert_eq!(text, Some(&ScalarValue::Utf8View(Some("a/b".to_owned()))));
        let null = values.get(1).and_then(|values| values.get(2));
        assert_eq!(null, Some(&ScalarValue::Utf8View(None)));
        let wrong = constants.values(&[TextType::Date, TextType::Date, TextType::Text]);
        assert_eq!(wrong.map_err(|error| error.code), Err(1366));
    }

    #[test]
    fn values_are_taken_as_fields_are() {
        let decimal = TextType::Decimal {
            precision: 10,
            scale: 2,
        };
        for (text, text_type, is_right) in [
            ("1.55", decimal, true),
            ("1.555", decimal, false),
            ("5", TextType::Integer, true),
            (" 5", TextType::Integer, false),
            ("+5", TextType::Integer, false),
            ("yes", TextType::Boolean, false),
            ("TRUE", TextType::Boolean, true),
            ("2024-01-01", TextType::Date, true),
            ("2024-01-01 12:34:56", TextType::Date, false),
            (
                "2024-01-01 12:34:56",
                TextType::DateTime { digits: 0 },
                true,
            ),
        ] {
            let found = value(Some(text), "p", text_type);
            assert_eq!(found.is_ok(), is_right, "{text}: {found:?}");
        }
    }
}
