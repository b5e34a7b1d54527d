//! Arguments of which a planner need not know the value.
//!
//! Most functions have one type, and their arguments are read when a row is computed. Of the
//! others some have a type by the value of a constant: `ROUND(1.55, 1)`, `NOW(3)`.

use datafusion::logical_expr::ScalarUDF;

use super::{arithmetic, define};

/// Whether a call is planned in the same way for all constants in the place of an argument that
/// have one type, and that are alike: whole numbers with as many digits, texts with as many digits
/// behind their last point.
pub(crate) fn takes_any_constant(function: &ScalarUDF, index: usize) -> bool {
    if arithmetic::is_operator(function) {
        return true;
    }
    match function.name() {
        // The others of these decide the type by the types of their arguments.
        "if" => index > 0,
        "coalesce" | "ifnull" | "greatest" | "least" => true,
        "abs" | "ceil" | "floor" => true,
        "maketime" | "sec_to_time" | "addtime" | "subtime" => true,
        // By the digits of a second that their arguments show.
        "time" | "timestamp" | "timediff" | "unix_timestamp" => true,
        // By the number of digits that stay, by the format, by the zones.
        "round" | "truncate" | "str_to_date" | "from_unixtime" | "convert_tz" => index == 0,
        // By the unit.
        "date_add" | "date_sub" => index < 2,
        "timestampadd" | "timestampdiff" => index > 0,
        // The locale must be one that is known.
        "format" => index < 2,
        _ => define::has_one_type(function),
    }
}
