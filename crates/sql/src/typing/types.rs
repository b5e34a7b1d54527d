//! The types of CAST and of typed literals.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::FieldRef;
use datafusion::error::Result;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::sqlparser::ast::DataType;
use mayfly_types::{BlobSize, ColumnType};

use crate::functions::raise;

/// Reads a type's text as MySQL does.
#[derive(Debug)]
struct Types;

static TYPES: LazyLock<Arc<dyn TypePlanner>> = LazyLock::new(|| Arc::new(Types));

/// What reads the types of CAST.
pub fn type_planner() -> &'static Arc<dyn TypePlanner> {
    &TYPES
}

impl TypePlanner for Types {
    fn plan_type_field(&self, of: &DataType) -> Result<Option<FieldRef>> {
        let text = of.to_string().to_ascii_lowercase();
        let text = text.split(" character set ").next().unwrap_or(&text);
        let words: Vec<&str> = text.split_whitespace().collect();
        let target = match words.as_slice() {
            ["signed", ..] => ColumnType::BigInt { unsigned: false },
            ["unsigned", ..] => ColumnType::BigInt { unsigned: true },
            ["char" | "character" | "nchar" | "varchar"] => ColumnType::Text(BlobSize::Long),
            ["binary" | "varbinary"] => ColumnType::Blob(BlobSize::Long),
            _ => text.parse::<ColumnType>().map_err(raise)?,
        };
        Ok(Some(Arc::new(target.to_arrow("", true))))
    }
}
