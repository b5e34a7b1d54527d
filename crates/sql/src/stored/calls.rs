//! The values of calls of functions.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::ScalarFunction;
use mayfly_types::{BlobSize, ColumnType};

use super::aggregates;
use super::shape::{Kind, Shape, together};
use crate::functions::octets::{returns_bytes, takes_number};
use crate::functions::own::{
    AVG_RESULT, BIT_NOT, COMPARE, CONVERT_USING, LIKE, NEGATE, SET_LAST_INSERT_ID, SUM_ARGUMENT,
    SUM_RESULT, TO_BOOLEAN, TO_DOUBLE, TRIM_LEADING, TRIM_TRAILING,
};

/// The digits that `/` adds behind the point.
const DIVISION_DIGITS: u32 = 4;
/// Characters of a value that nothing is known of.
const ANY_CHARS: u64 = BlobSize::Long.max_bytes() / 4;
const CHAR_BYTES: u64 = 4;
/// Characters of a moment that is moved as a text: MySQL's `MAX_DATETIME_FULL_WIDTH`.
const MOVED_CHARS: u64 = 29;
/// Characters that a letter of a format may become.
const LETTER_CHARS: u64 = 10;

/// The arguments of a call.
struct Arguments<'a> {
    exprs: &'a [Expr],
    shapes: Vec<Shape>,
}

impl Arguments<'_> {
    fn chars(&self, index: usize) -> u64 {
        self.shapes.get(index).map_or(0, Shape::chars)
    }

    /// Takes texts for the bytes that they have if there are bytes beside them; whether there are.
    fn count_bytes(&mut self, name: &str) -> bool {
        let mut places = self.shapes.iter().enumerate();
        if !places.any(|(index, of)| of.is_binary_string() && !takes_number(name, index)) {
            return false;
        }
        for index in 0..self.shapes.len() {
            let bytes = match (&self.shapes[index].kind, self.constant_text(index)) {
                (Kind::Text { .. }, Some(text)) => text.len() as u64,
                (Kind::Text { chars }, None) => chars.saturating_mul(CHAR_BYTES),
                _ => continue,
            };
            self.shapes[index].kind = Kind::Bytes { bytes };
        }
        true
    }

    /// Whether an argument is a day, a time or both; a text that says one is not.
    fn is_temporal(&self, index: usize) -> bool {
        let kind = self.shapes.get(index).map(|shape| &shape.kind);
        matches!(kind, Some(Kind::Other(of)) if of.is_temporal())
    }

    fn any_nullable(&self) -> bool {
        self.shapes.iter().any(|shape| shape.nullable)
    }

    /// The number that an argument is.
    fn number(&self, index: usize) -> Option<u64> {
        let mut expr = self.exprs.get(index)?;
        while let Expr::Alias(alias) = expr {
            expr = &alias.expr;
        }
        match expr {
            Expr::Literal(ScalarValue::Int64(Some(number)), _) => {
                Some(u64::try_from(*number).unwrap_or(0))
            }
            _ => None,
        }
    }

    /// Whether it is a comparison that is never NULL.
    fn is_null_safe(&self) -> bool {
        self.constant_text(0) == Some("IS NOT DISTINCT FROM")
    }

    fn constant_text(&self, index: usize) -> Option<&str> {
        match self.exprs.get(index)? {
            Expr::Literal(value, _) => value.try_as_str().flatten(),
            _ => None,
        }
    }
}

/// The values of a call with such arguments; `None` where the plan's own type says enough.
pub(super) fn shape(call: &ScalarFunction, shapes: Vec<Shape>) -> Option<Shape> {
    let mut arguments = Arguments {
        exprs: &call.args,
        shapes,
    };
    let name = call.func.name();
    if let Some(target) = crate::functions::cast::target(&call.func) {
        return Some(cast(arguments.shapes.first()?, target));
    }
    numeric(name, &arguments)
        .or_else(|| chosen(name, &arguments))
        .or_else(|| small_number(name, &arguments))
        .or_else(|| bytes(name, &arguments))
        .or_else(|| {
            let of_bytes = returns_bytes(name) && arguments.count_bytes(name);
            text_chars(name, &arguments).map(|chars| match of_bytes {
                true => Shape::new(Kind::Bytes { bytes: chars }, true),
                false => Shape::text(chars, true),
            })
        })
}

/// Functions that have a value always, whatever their type says.
pub(super) fn is_never_null(name: &str) -> bool {
    matches!(
        name,
        "pi" | "now"
            | "curdate"
            | "curtime"
            | "sysdate"
            | "utc_date"
            | "utc_time"
            | "utc_timestamp"
    )
}

/// Whether a DOUBLE is NULL only where an argument is, if a call with such arguments makes one:
/// numbers with an exponent and what is made of them.
pub(super) fn is_double(call: &ScalarFunction, shapes: &[Shape]) -> Option<bool> {
    match call.func.name() {
        TO_DOUBLE => match call.args.as_slice() {
            [Expr::Literal(value, _)] => Some(value.is_null()),
            _ => None,
        },
        "+" | "-" | "*" | NEGATE | "abs" => {
            let is_double = |shape: &Shape| matches!(shape.kind, Kind::Double(_));
            let are_numbers = shapes
                .iter()
                .all(|shape| is_double(shape) || shape.exact().is_some());
            let makes_double = are_numbers && shapes.iter().any(is_double);
            makes_double.then(|| shapes.iter().any(|shape| shape.nullable))
        }
        _ => None,
    }
}

/// The values of CAST.
pub(super) fn cast(from: &Shape, target: &ColumnType) -> Shape {
    let nullable = from.nullable;
    match target {
        ColumnType::BigInt { unsigned: false } => match from.kind {
            Kind::Int { .. } => from.clone().computed(nullable),
            _ => Shape::big(false, nullable).computed(nullable),
        },
        ColumnType::Text(BlobSize::Long) => Shape::text(from.chars(), true),
        ColumnType::Char { length } | ColumnType::VarChar { length } => {
            Shape::text(u64::from(*length), true)
        }
        ColumnType::Blob(BlobSize::Long) => {
            let each = match from.kind {
                Kind::Text { .. } => CHAR_BYTES,
                _ => 1,
            };
            let bytes = from.chars().saturating_mul(each);
            Shape::new(Kind::Bytes { bytes }, true)
        }
        ColumnType::Binary { length } => {
            let bytes = u64::from(*length);
            Shape::new(Kind::Bytes { bytes }, true)
        }
        of if of.is_temporal() => Shape::of(of, true).computed(true),
        ColumnType::Float { .. } | ColumnType::Double { .. } => Shape::of(target, true),
        _ => Shape::of(target, nullable).computed(nullable),
    }
}

/// Operators and functions that make numbers of numbers.
fn numeric(name: &str, arguments: &Arguments<'_>) -> Option<Shape> {
    let nullable = arguments.any_nullable();
    let first = arguments.shapes.first();
    let exact = |index: usize| arguments.shapes.get(index).and_then(Shape::exact);
    let is_int = |index: usize| {
        matches!(
            arguments.shapes.get(index).map(|shape| &shape.kind),
            Some(Kind::Int { .. })
        )
    };
    let unsigned = arguments
        .shapes
        .iter()
        .any(|shape| matches!(shape.kind, Kind::Int { unsigned: true, .. }));
    let decimal = |before: u32, scale: u32, nullable: bool| {
        Some(Shape::new(Kind::Decimal { before, scale }, nullable))
    };
    match name {
        "+" | "-" | "*" => {
            let ((left, left_scale), (right, right_scale)) = (exact(0)?, exact(1)?);
            let digits = if name == "*" {
                left + right
            } else {
                left.max(right) + 1
            };
            if is_int(0) && is_int(1) {
                return Some(Shape::int(digits, unsigned, nullable));
            }
            let scale = if name == "*" {
                left_scale + right_scale
            } else {
                left_scale.max(right_scale)
            };
            decimal(digits, scale, nullable)
        }
        "/" => {
            let ((left, left_scale), (_, right_scale)) = (exact(0)?, exact(1)?);
            decimal(left + right_scale, left_scale + DIVISION_DIGITS, true)
        }
        "DIV" if is_int(0) => Some(Shape::int(exact(0)?.0 - 1, unsigned, true)),
        "mod" => {
            let ((left, left_scale), (right, right_scale)) = (exact(0)?, exact(1)?);
            if is_int(0) && is_int(1) {
                return Some(Shape::int(left, unsigned, true));
            }
            decimal(left.max(right), left_scale.max(right_scale), true)
        }
        NEGATE if is_int(0) => Some(Shape::int(exact(0)?.0 + 1, false, nullable)),
        "abs" if is_int(0) => Some(Shape::int(exact(0)?.0, unsigned, nullable)),
        NEGATE | "abs" if exact(0).is_some() => Some(first?.clone().computed(nullable)),
        "ceil" | "floor" | "round" | "truncate" if is_int(0) => {
            Some(first?.clone().computed(nullable))
        }
        "ceil" | "floor" => {
            let (before, _) = exact(0)?;
            Some(Shape::int(before + 1, false, nullable))
        }
        "&" | "|" | "^" | "<<" | ">>" | BIT_NOT => Some(Shape::big(true, nullable)),
        SUM_RESULT | SUM_ARGUMENT => Some(first?.clone()),
        AVG_RESULT => match first?.kind {
            // The sum has digits of its own, which the average does not have.
            Kind::Decimal { before, scale } => {
                let before = before.saturating_sub(22).max(1);
                Some(aggregates::average(&Shape::new(
                    Kind::Decimal { before, scale },
                    true,
                )))
            }
            _ => Some(aggregates::average(first?)),
        },
        "rand" => Some(Shape::new(Kind::Double(None), false)),
        "inet_aton" | "last_insert_id" | SET_LAST_INSERT_ID => {
            Some(Shape::big(true, name == "inet_aton"))
        }
        "row_count" | "found_rows" => Some(Shape::big(false, false)),
        _ => None,
    }
}

/// Functions that answer one of their arguments.
fn chosen(name: &str, arguments: &Arguments<'_>) -> Option<Shape> {
    let shapes = &arguments.shapes;
    let all_of = |shapes: &[Shape], nullable: bool| {
        let all = together(shapes);
        Some(all.computed(nullable))
    };
    match name {
        "if" => {
            let branches = shapes.get(1..)?;
            all_of(branches, branches.iter().any(|shape| shape.nullable))
        }
        "coalesce" | "ifnull" => all_of(shapes, shapes.iter().all(|shape| shape.nullable)),
        "nullif" => all_of(shapes.get(..1)?, true),
        "greatest" | "least" => {
            let texts = shapes
                .iter()
                .filter(|shape| matches!(shape.kind, Kind::Text { .. }))
                .count();
            let all = texts == 0 || texts == shapes.len();
            all.then(|| together(shapes).computed(arguments.any_nullable()))
        }
        _ => None,
    }
}

/// Whole numbers of a known size.
fn small_number(name: &str, arguments: &Arguments<'_>) -> Option<Shape> {
    let nullable = arguments.any_nullable();
    let (digits, nullable) = match name {
        "length" | "char_length" => (10, nullable),
        "instr" | "locate" | "regexp_instr" => (11, nullable),
        "ascii" | "field" | "find_in_set" => (3, nullable),
        "ord" => (7, nullable),
        "strcmp" | "sign" | "bit_count" | "interval" => (2, nullable),
        LIKE | "regexp_like" | TO_BOOLEAN => (1, nullable),
        COMPARE => (1, nullable && !arguments.is_null_safe()),
        "isnull" => (1, false),
        "year" => (5, true),
        "month" | "day" | "hour" | "minute" | "second" | "week" | "weekofyear" => (3, true),
        "quarter" | "dayofweek" | "weekday" => (2, true),
        "dayofyear" => (4, true),
        "microsecond" | "to_days" => (7, true),
        "yearweek" => (6, true),
        "datediff" => (8, true),
        "extract" => (9, true),
        "period_add" | "period_diff" => (6, nullable),
        "sleep" => (1, false),
        "is_ipv4" | "is_ipv6" | "is_ipv4_compat" | "is_ipv4_mapped" | "is_uuid" | "json_valid" => {
            (1, nullable)
        }
        "get_lock" | "release_lock" | "is_free_lock" => (1, true),
        "is_used_lock" => (10, true),
        "release_all_locks" => {
            return Some(Shape::of(&ColumnType::Int { unsigned: true }, false));
        }
        "bit_length" => return Some(Shape::big(false, nullable)),
        "crc32" | "connection_id" => {
            let of = ColumnType::Int { unsigned: true };
            return Some(Shape::of(&of, nullable && name == "crc32"));
        }
        _ => return None,
    };
    Some(Shape::small(digits, nullable))
}

fn bytes(name: &str, arguments: &Arguments<'_>) -> Option<Shape> {
    let all = arguments.chars(0).saturating_mul(CHAR_BYTES);
    let bytes = match name {
        "char" => CHAR_BYTES * arguments.shapes.len() as u64,
        "unhex" => all / 2,
        "from_base64" => all / 4 * 3,
        "inet6_aton" | "uuid_to_bin" => 16,
        _ => return None,
    };
    Some(Shape::new(Kind::Bytes { bytes }, true))
}

/// The most characters of a text.
fn text_chars(name: &str, arguments: &Arguments<'_>) -> Option<u64> {
    let chars = |index: usize| arguments.chars(index);
    let count = arguments.shapes.len() as u64;
    let whole = chars(0);
    Some(match name {
        "concat" => (0..arguments.shapes.len()).map(chars).sum(),
        "concat_ws" => {
            let texts: u64 = (1..arguments.shapes.len()).map(chars).sum();
            texts + whole * count.saturating_sub(2)
        }
        "left" | "right" => arguments.number(1).map_or(whole, |most| most.min(whole)),
        "substring" => {
            let rest = match arguments.number(1) {
                Some(start) if start > 0 => whole.saturating_sub(start - 1),
                _ => whole,
            };
            arguments.number(2).map_or(rest, |most| most.min(rest))
        }
        CONVERT_USING | "substring_index" | "trim" | "ltrim" | "rtrim" | TRIM_LEADING
        | TRIM_TRAILING | "upper" | "lower" | "reverse" | "regexp_substr" => whole,
        "replace" => match (chars(1), chars(2)) {
            (from, to) if from > 0 && to > from => (whole / from).saturating_mul(to),
            _ => whole,
        },
        "lpad" | "rpad" => arguments.number(1).unwrap_or(ANY_CHARS),
        "repeat" => arguments
            .number(1)
            .map_or(ANY_CHARS, |times| whole.saturating_mul(times)),
        "space" => arguments.number(0).unwrap_or(ANY_CHARS),
        "insert" => whole + chars(3),
        "elt" => (1..arguments.shapes.len()).map(chars).max().unwrap_or(0),
        "make_set" => {
            let texts: u64 = (1..arguments.shapes.len()).map(chars).sum();
            texts + count.saturating_sub(2)
        }
        "export_set" => 64 * chars(1).max(chars(2)) + 63 * if count > 3 { chars(3) } else { 1 },
        "quote" => 2 * whole + 2,
        "soundex" => whole.max(4),
        "format" => match arguments.number(1) {
            Some(0) => whole + whole / 3,
            Some(digits) => whole + whole / 3 + digits + 1,
            None => return None,
        },
        "hex" => match arguments.shapes[0].kind {
            Kind::Text { .. } => whole.saturating_mul(2 * CHAR_BYTES),
            Kind::Bytes { .. } => whole.saturating_mul(2),
            _ => 16,
        },
        "md5" => 32,
        "sha1" => 40,
        "sha2" => match arguments.number(1) {
            Some(224) => 56,
            Some(0 | 256) => 64,
            Some(384) => 96,
            _ => 128,
        },
        "to_base64" => {
            let encoded = whole
                .saturating_mul(CHAR_BYTES)
                .div_ceil(3)
                .saturating_mul(4);
            encoded + encoded.saturating_sub(1) / 76
        }
        "conv" | "bin" | "oct" => 65,
        "inet_ntoa" => 31,
        "inet6_ntoa" => 39,
        "dayname" | "monthname" => 9,
        "date_format" | "time_format" | "from_unixtime" => match arguments.constant_text(1) {
            Some(format) => formatted_chars(format),
            // Servers count the bytes of the format.
            None if count > 1 => chars(1).saturating_mul(CHAR_BYTES * LETTER_CHARS),
            None => return None,
        },
        "date_add" | "date_sub" | "addtime" | "subtime" if !arguments.is_temporal(0) => MOVED_CHARS,
        "timestampadd" if !arguments.is_temporal(2) => MOVED_CHARS,
        "database" | "charset" | "collation" => 64,
        "user" => 288,
        "version" => 60,
        "uuid" | "bin_to_uuid" => 36,
        _ => return None,
    })
}

/// The most characters of a date in a format.
fn formatted_chars(format: &str) -> u64 {
    let mut letters = format.chars();
    let mut chars = 0;
    while let Some(letter) = letters.next() {
        chars += match letter {
            '%' => match letters.next() {
                Some('M' | 'W') => 64,
                Some('a' | 'b') => 32,
                Some('r') => 11,
                Some('T') => 8,
                Some('H' | 'k') => 7,
                Some('f') => 6,
                Some('Y' | 'x' | 'X') => 4,
                Some('j' | 'D') => 4,
                Some('w' | '%') => 1,
                _ => 2,
            },
            _ => 1,
        };
    }
    chars
}
