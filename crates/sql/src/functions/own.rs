//! The names of functions that statements are rewritten to, and that no user can call.
//!
//! The parser refuses a function whose name begins with [`MARK`].

/// What names begin with that no statement can write.
pub const MARK: char = '\u{1}';

/// The average of a sum and a count.
pub(crate) const AVG_RESULT: &str = "\u{1}avg_result";
/// `~`.
pub(crate) const BIT_NOT: &str = "\u{1}~";
/// A comparison whose sides have no types yet.
pub(crate) const COMPARE: &str = "\u{1}compare";
/// `CONVERT(value USING set)`.
pub(crate) const CONVERT_USING: &str = "\u{1}convert_using";
/// What the name begins with of what a column keeps of a value; the type of the column follows.
pub(crate) const KEPT_AS: &str = "\u{1}kept_as_";
/// LIKE.
pub(crate) const LIKE: &str = "\u{1}like";
/// What the names of long literals begin with; their place among those of the statement follows.
pub(crate) const LONG_TEXT: &str = "\u{1}long_text_";
/// `-` in front of a value.
pub(crate) const NEGATE: &str = "\u{1}negate";
/// LAST_INSERT_ID with an argument.
pub(crate) const SET_LAST_INSERT_ID: &str = "\u{1}set_last_insert_id";
/// What SUM and AVG add up.
pub(crate) const SUM_ARGUMENT: &str = "\u{1}sum_argument";
/// What SUM answers of what was added up.
pub(crate) const SUM_RESULT: &str = "\u{1}sum_result";
/// A value as a truth value.
pub(crate) const TO_BOOLEAN: &str = "\u{1}to_boolean";
/// A value as a DOUBLE.
pub(crate) const TO_DOUBLE: &str = "\u{1}to_double";
/// A value as a whole number.
pub(crate) const TO_NUMBER: &str = "\u{1}to_number";
/// `TRIM(LEADING ... FROM ...)`.
pub(crate) const TRIM_LEADING: &str = "\u{1}trim_leading";
/// `TRIM(TRAILING ... FROM ...)`.
pub(crate) const TRIM_TRAILING: &str = "\u{1}trim_trailing";
/// A constant that warns for each row.
pub(crate) const WARNED: &str = "\u{1}warned";
/// Several values as one, for COUNT(DISTINCT a, b).
pub(crate) const TUPLE_KEY: &str = "\u{1}tuple_key";
