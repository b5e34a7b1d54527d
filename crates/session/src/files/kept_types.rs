//! MySQL types of columns that the types of Parquet and Arrow do not tell: `DATETIME(3)`, `YEAR`.
//!
//! A file that INTO OUTFILE wrote carries them with its fields. Only numbers, days and times have
//! one: whatever the values are, they are such values. The length of a text, the words of an ENUM
//! and that a text is JSON are promises that a file may break, and so nobody reads them from one.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use mayfly_types::{ColumnType, TYPE_KEY};

/// The MySQL type that a field of a file declares, where it is not the nearest to its Arrow type.
pub(crate) fn declaration(column_type: &ColumnType, data_type: &DataType) -> Option<String> {
    let is_declared = column_type.is_numeric() || column_type.is_temporal();
    if !is_declared || *column_type == ColumnType::from_data_type(data_type) {
        return None;
    }
    let text = column_type.to_string();
    let field = declaring(Field::new("", data_type.clone(), true), Some(text.clone()));
    (ColumnType::from_arrow(&field) == *column_type).then_some(text)
}

/// A field that declares that type, and nothing else.
fn declaring(field: Field, declared: Option<String>) -> Field {
    let metadata = declared.map(|text| (TYPE_KEY.to_owned(), text));
    field.with_metadata(metadata.into_iter().collect::<HashMap<_, _>>())
}

/// What a field of a file declares that can be relied on.
fn declared(field: &Field) -> Option<String> {
    declaration(&ColumnType::from_arrow(field), field.data_type())
}

/// The columns of one file with the types that it declares.
pub(super) fn of_one(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter();
    let fields = fields.map(|field| declaring(field.as_ref().clone(), declared(field)));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// What several files declare of their columns.
#[derive(Default)]
pub(super) struct Declarations {
    /// By the name of the column; `None` where two files differ, or do not say.
    columns: HashMap<String, Option<String>>,
}

impl Declarations {
    /// Takes what one more file declares; whether anything is left that all of them do.
    pub(super) fn add(&mut self, schema: &Schema) -> bool {
        for field in schema.fields() {
            let declared = declared(field);
            match self.columns.get_mut(field.name()) {
                None => {
                    self.columns.insert(field.name().clone(), declared);
                }
                Some(known) if *known != declared => *known = None,
                Some(_) => {}
            }
        }
        self.columns.values().any(Option::is_some)
    }

    /// The columns of all files with the types that each file declares that has them.
    pub(super) fn apply(&self, schema: &Schema) -> SchemaRef {
        let fields = schema.fields().iter().map(|field| {
            let declared = self.columns.get(field.name()).cloned().flatten();
            let field = declaring(field.as_ref().clone(), declared);
            // The files may have differed in more than that.
            let declared = self::declared(&field);
            declaring(field, declared)
        });
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::TimeUnit;

    use super::*;

    const MICROS: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

    fn field(name: &str, data_type: DataType, declared: &str) -> Field {
        declaring(Field::new(name, data_type, true), Some(declared.to_owned()))
    }

    fn types(schema: &Schema) -> Vec<String> {
        let fields = schema.fields().iter();
        fields
            .map(|field| ColumnType::from_arrow(field).to_string())
            .collect()
    }

    #[test]
    fn numbers_and_times_are_declared() {
        let check = |text: &str, expect: Option<&str>| {
            let column_type: ColumnType = text.parse().expect(text);
            let found = declaration(&column_type, &column_type.data_type());
            assert_eq!(found.as_deref(), expect, "{text}");
        };
        for kept in [
            "datetime",
            "datetime(3)",
            "timestamp(6)",
            "time",
            "year",
            "bit(9)",
            "mediumint",
            "tinyint(1)",
            "float(7,3)",
            "decimal(10,2) unsigned",
        ] {
            check(kept, Some(kept));
        }
        for nearest in ["int", "bigint unsigned", "decimal(10,2)", "double", "date"] {
            check(nearest, None);
        }
        for text in ["varchar(9)", "longtext", "json", "enum('a')", "binary(4)"] {
            check(text, None);
        }
        check("datetime(6)", None);
        // A comparison is described as another type than its values have.
        let bigint = ColumnType::BigInt { unsigned: false };
        assert_eq!(declaration(&bigint, &DataType::Boolean), None);
    }

    #[test]
    fn what_a_file_cannot_promise_is_not_read() {
        let schema = Schema::new(vec![
            field("a", MICROS, "datetime(3)"),
            field("b", DataType::Utf8View, "enum('x')"),
            field("c", DataType::Utf8View, "json"),
            field("d", DataType::Int32, "datetime(3)"),
            field("e", DataType::UInt64, "bit(200)"),
        ]);
        let expect = [
            "datetime(3)",
            "longtext",
            "longtext",
            "int",
            "bigint unsigned",
        ];
        assert_eq!(types(&of_one(&schema)), expect);
    }

    #[test]
    fn several_files_must_agree() {
        let schema = |digits: &str| {
            Schema::new(vec![
                field("a", MICROS, "datetime"),
                field("b", MICROS, digits),
            ])
        };
        let mut declarations = Declarations::default();
        assert!(declarations.add(&schema("datetime(3)")));
        assert!(declarations.add(&schema("datetime(3)")));
        let both = declarations.apply(&schema("datetime"));
        assert_eq!(types(&both), ["datetime", "datetime(3)"]);
        assert!(declarations.add(&schema("datetime(2)")));
        let one = declarations.apply(&schema("datetime"));
        assert_eq!(types(&one), ["datetime", "datetime(6)"]);
        let bare = Schema::new(vec![Field::new("a", MICROS, true)]);
        assert!(!declarations.add(&bare));
    }
}
