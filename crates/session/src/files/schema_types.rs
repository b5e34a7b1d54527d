//! MySQL types of columns that the types of Parquet and Arrow do not tell: `DATETIME(3)`, `YEAR`.
//!
//! A file that INTO OUTFILE wrote carries them with its fields. Only numbers, days and times have
//! one: whatever the values are, they are such values. The length of a text, the words of an ENUM
//! and that a text is JSON are promises that a file may break, and so nobody reads them from one.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use mayfly_types::{ColumnType, TYPE_KEY};

/// A field of a file that declares its MySQL type, where that is not the nearest to its Arrow type.
pub(crate) fn declaring_field(name: &str, column_type: &ColumnType, data_type: &DataType) -> Field {
    let field = Field::new(name, data_type.clone(), true);
    declaring(field, declaration(column_type, data_type))
}

/// The MySQL type that a field of a file declares, where it is not the nearest to its Arrow type.
fn declaration(column_type: &ColumnType, data_type: &DataType) -> Option<String> {
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

/// The columns of a file without what it declares.
pub(super) fn undeclared(schema: &Schema) -> Schema {
    let fields = schema.fields().iter();
    let fields = fields.map(|field| declaring(field.as_ref().clone(), None));
    Schema::new(fields.collect::<Vec<_>>())
}

/// The columns of some files, with the types that each file declares that has them: `schemas` are
/// those of the files, `merged` is what they have together.
pub(super) fn with_declared(merged: &Schema, schemas: &[SchemaRef]) -> SchemaRef {
    // `None` where two files differ, or do not say.
    let mut by_name: HashMap<&str, Option<String>> = HashMap::new();
    for field in schemas.iter().flat_map(|schema| schema.fields()) {
        let declared = declared(field);
        let known = by_name.entry(field.name());
        let known = known.or_insert_with(|| declared.clone());
        if *known != declared {
            *known = None;
        }
    }
    let fields = merged.fields().iter().map(|field| {
        let declared = by_name.get(field.name().as_str()).cloned().flatten();
        let field = declaring(field.as_ref().clone(), declared);
        // The files may have differed in more than that.
        let declared = self::declared(&field);
        declaring(field, declared)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::TimeUnit;

    use super::*;

    const MICROS: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

    fn field(name: &str, data_type: DataType, declared: &str) -> Field {
        declaring(Field::new(name, data_type, true), Some(declared.to_owned()))
    }

    /// The types of the columns that files have which are those of the first one.
    fn types(schemas: &[Schema]) -> Vec<String> {
        let merged = undeclared(schemas.first().expect("a file"));
        let schemas = schemas.iter().cloned().map(Arc::new);
        let schema = with_declared(&merged, &schemas.collect::<Vec<_>>());
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
        assert_eq!(types(&[schema]), expect);
    }

    #[test]
    fn several_files_must_agree() {
        let schema = |digits: &str| {
            Schema::new(vec![
                field("a", MICROS, "datetime"),
                field("b", MICROS, digits),
            ])
        };
        let alike = ["datetime(3)", "datetime(3)"].map(schema);
        assert_eq!(types(&alike), ["datetime", "datetime(3)"]);
        let unlike = ["datetime(3)", "datetime(3)", "datetime(2)"].map(schema);
        assert_eq!(types(&unlike), ["datetime", "datetime(6)"]);
        let bare = Schema::new(vec![Field::new("a", MICROS, true)]);
        let none = [unlike.as_slice(), &[bare]].concat();
        assert_eq!(types(&none), ["datetime(6)", "datetime(6)"]);
    }
}
