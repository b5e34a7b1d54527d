//! Literals of many bytes, which stand in plans as functions without arguments.
//!
//! DataFusion copies a literal with the plan, and with the names of all that it is a part of: one
//! of 20 MB took 230 to 500 MB while its statement was planned. A function has a short name, and
//! its copies share the text. It is computed when the plan runs ([`crate::long_values`]).

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, Volatility,
};
use mayfly_types::{BlobSize, ColumnType};

use super::define::result_field;
use super::own::LONG_TEXT;
use crate::long_values::{self, LONG_BYTES};

/// The long literals of a statement.
#[derive(Clone, Debug, Default)]
pub struct LongTexts(Arc<Mutex<Vec<Arc<str>>>>);

impl LongTexts {
    /// Whether a literal is one of them.
    pub(crate) fn is_one(text: &str) -> bool {
        text.len() > LONG_BYTES
    }

    /// Takes a literal; the name of the function that gives it, which is the same for equal ones:
    /// an expression in a select list and in GROUP BY is one.
    pub(crate) fn take(&self, text: String) -> String {
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = texts.iter().position(|known| **known == *text);
        let place = known.unwrap_or_else(|| {
            texts.push(text.into());
            texts.len() - 1
        });
        format!("{LONG_TEXT}{place}")
    }

    /// The literal that the function of a name gives.
    pub(crate) fn text(&self, name: &str) -> Option<Arc<str>> {
        let place: usize = name.strip_prefix(LONG_TEXT)?.parse().ok()?;
        let texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        texts.get(place).cloned()
    }

    /// The function of a name.
    pub(crate) fn function(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        let text = self.text(name)?;
        Some(Arc::new(ScalarUDF::new_from_impl(LongText {
            name: name.to_owned(),
            of: type_of(&text),
            text,
            signature: Signature::new(TypeSignature::Nullary, Volatility::Immutable),
        })))
    }
}

/// The type of a literal that is longer than a VARCHAR.
fn type_of(text: &str) -> ColumnType {
    const CHARACTER_BYTES: u64 = 4;
    let bytes = text.chars().count() as u64 * CHARACTER_BYTES;
    ColumnType::Text(BlobSize::holding(bytes))
}

/// The function that gives a literal.
struct LongText {
    name: String,
    text: Arc<str>,
    of: ColumnType,
    signature: Signature,
}

impl fmt::Debug for LongText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl PartialEq for LongText {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for LongText {}

impl Hash for LongText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.len().hash(state);
    }
}

impl ScalarUDFImpl for LongText {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(result_field("", &self.of).data_type().clone())
    }

    fn return_field_from_args(&self, _arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = result_field(&self.name, &self.of);
        Ok(Arc::new(field.as_ref().clone().with_nullable(false)))
    }

    fn invoke_with_args(&self, _arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        long_values::check(self.text.len())?;
        let text = Some(self.text.as_ref().to_owned());
        Ok(ColumnarValue::Scalar(ScalarValue::Utf8View(text)))
    }
}
