//! The numbers that values of ENUM and SET stand for.
//!
//! Such values are kept as texts. Their number depends on the list that a column was declared with,
//! so the function that tells it owns the list: the words of an ENUM count from one, and nothing is
//! zero; each word of a SET is a bit. No statement can write its name: [`crate::typing`] puts it
//! where a number is wanted.
//!
//! **Never** tells an empty word from the empty text that a wrong value has become: both are kept
//! as the same text, and count as the word if the list has it.
//!
//! **Cost**: a look into a hash table for each word of a value.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array, UInt64Array};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use mayfly_types::ColumnType;

use super::call::{Callee, invoke};
use super::convert;

/// The words of a SET whose bits a BIGINT with a sign holds.
const SIGNED_WORDS: usize = 63;

/// The place of a value in its list, as a function of the plan.
#[derive(Debug)]
struct Place {
    /// The ENUM or SET.
    of: ColumnType,
    signature: Signature,
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        self.of == other.of
    }
}

impl Eq for Place {}

impl Hash for Place {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.of.hash(state);
    }
}

/// The function that tells the number of a value of an ENUM or SET.
pub(crate) fn place(of: &ColumnType) -> ScalarUDF {
    ScalarUDF::new_from_impl(Place {
        of: of.clone(),
        signature: Signature::user_defined(Volatility::Immutable),
    })
}

/// The type of the numbers of an ENUM or SET: without a sign only where a SET uses the last bit, so
/// that differences may be negative.
pub(crate) fn number_type(of: &ColumnType) -> ColumnType {
    match of {
        ColumnType::Set(words) => ColumnType::BigInt {
            unsigned: words.len() > SIGNED_WORDS,
        },
        _ => ColumnType::Int { unsigned: false },
    }
}

/// The type of what is computed of an ENUM or SET without being a number: a text that is as long
/// as the longest value. Other types stay what they are.
pub(crate) fn text_type(of: &ColumnType) -> ColumnType {
    let chars = |word: &String| u32::try_from(word.chars().count()).unwrap_or(u32::MAX);
    let length = match of {
        ColumnType::Enum(words) => words.iter().map(chars).max().unwrap_or(0),
        ColumnType::Set(words) => {
            let commas = words.len().saturating_sub(1);
            let commas = u32::try_from(commas).unwrap_or(u32::MAX);
            words.iter().map(chars).fold(commas, u32::saturating_add)
        }
        other => return other.clone(),
    };
    ColumnType::VarChar { length }
}

/// The numbers of the values of an ENUM or SET, as an array of their type.
pub(crate) fn places(values: &ArrayRef, of: &ColumnType) -> Result<ArrayRef> {
    let texts = convert::to_text(values, of)?;
    Ok(match of {
        ColumnType::Set(words) => {
            let bits: HashMap<&str, u64> = words
                .iter()
                .zip(0..u64::BITS)
                .map(|(word, bit)| (word.as_str(), 1_u64 << bit))
                .collect();
            let number = |text: &str| {
                let of_words = text.split(',').filter_map(|word| bits.get(word));
                of_words.fold(0, |all, bit| all | bit)
            };
            let numbers = texts.iter().map(|text| text.map(number));
            match number_type(of) {
                ColumnType::BigInt { unsigned: true } => Arc::new(numbers.collect::<UInt64Array>()),
                _ => {
                    let signed = numbers.map(|number| number.map(u64::cast_signed));
                    Arc::new(signed.collect::<Int64Array>())
                }
            }
        }
        ColumnType::Enum(words) => {
            let numbers: HashMap<&str, i32> = words.iter().map(String::as_str).zip(1..).collect();
            let number = |text: &str| numbers.get(text).copied().unwrap_or(0);
            let numbers = texts.iter().map(|text| text.map(number));
            Arc::new(numbers.collect::<Int32Array>())
        }
        _ => Arc::new(texts),
    })
}

impl ScalarUDFImpl for Place {
    fn name(&self) -> &'static str {
        "place_in_list"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(number_type(&self.of).data_type())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(number_type(&self.of).to_arrow(self.name(), true)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        invoke(&arguments, &Callee::of(self), |call| {
            places(call.array(0), &self.of)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, StringViewArray};
    use arrow::compute::cast;
    use arrow::datatypes::DataType;
    use mayfly_types::ColumnType;

    use super::{number_type, places, text_type};

    fn check(of: &str, text: Option<&str>, expected: Option<&str>) {
        let of: ColumnType = of.parse().expect(of);
        let values: ArrayRef = Arc::new(StringViewArray::from(vec![text]));
        let numbers = places(&values, &of).expect("texts have places");
        assert_eq!(*numbers.data_type(), number_type(&of).data_type());
        let shown = cast(&numbers, &DataType::Utf8View).expect("numbers are shown");
        let shown: Vec<Option<&str>> = shown.as_string_view().iter().collect();
        assert_eq!(shown, [expected], "{text:?} in {of}");
    }

    #[test]
    fn words_of_an_enum_count_from_one() {
        let of = "enum('b','a','')";
        check(of, Some("b"), Some("1"));
        check(of, Some("a"), Some("2"));
        check(of, Some(""), Some("3"));
        check(of, None, None);
        check("enum('b')", Some(""), Some("0"));
    }

    #[test]
    fn words_of_a_set_are_bits() {
        let of = "set('x','y','z')";
        check(of, Some(""), Some("0"));
        check(of, Some("y"), Some("2"));
        check(of, Some("x,z"), Some("5"));
        check(of, None, None);
    }

    #[test]
    fn the_last_bit_has_no_sign() {
        let words: Vec<String> = (1..=64).map(|number| format!("'w{number}'")).collect();
        let of = format!("set({})", words.join(","));
        check(&of, Some("w64"), Some("9223372036854775808"));
        check(&of, Some("w1,w64"), Some("9223372036854775809"));
        let of = format!("set({})", words[..63].join(","));
        check(&of, Some("w63"), Some("4611686018427387904"));
    }

    #[test]
    fn a_text_is_as_long_as_the_longest_value() {
        for (of, expected) in [
            ("enum('a','three','bc')", "varchar(5)"),
            ("set('red','green')", "varchar(9)"),
            ("int", "int"),
        ] {
            let of: ColumnType = of.parse().expect(of);
            assert_eq!(text_type(&of).to_string(), expected);
        }
    }
}
