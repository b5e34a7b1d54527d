//! The values of aggregates.

use mayfly_types::{BlobSize, ColumnType};

use super::shape::{Kind, Shape};

/// The digits that SUM adds for its rows.
const SUM_DIGITS: u32 = 22;
/// The digits that AVG adds behind the point.
const AVG_DIGITS: u32 = 4;

/// The values of an aggregate; `None` for one that has no rule.
pub(super) fn shape(name: &str, arguments: &[Shape]) -> Option<Shape> {
    let first = arguments.first();
    Some(match name {
        "count" => Shape::big(false, false),
        "sum" => sum(first?),
        "avg" => average(first?),
        "min" | "max" => Shape {
            nullable: true,
            ..first?.clone()
        },
        "any_value" => first?.clone(),
        "bit_and" | "bit_or" | "bit_xor" => Shape::big(true, false),
        "group_concat" => match first?.kind {
            Kind::Bytes { .. } => Shape::of(&ColumnType::Blob(BlobSize::Normal), true),
            _ => Shape::of(&ColumnType::Text(BlobSize::Normal), true),
        },
        _ => return None,
    })
}

pub(super) fn sum(of: &Shape) -> Shape {
    let kind = match of.exact() {
        Some((before, scale)) if of.kind != Kind::Null => Kind::Decimal {
            before: before + SUM_DIGITS,
            scale,
        },
        _ => match of.kind {
            Kind::Double(Some(digits)) => double(digits.fraction),
            _ => Kind::Double(None),
        },
    };
    Shape::new(kind, true)
}

pub(super) fn average(of: &Shape) -> Shape {
    let kind = match of.exact() {
        Some((before, scale)) if of.kind != Kind::Null => Kind::Decimal {
            before,
            scale: scale + AVG_DIGITS,
        },
        _ => Kind::Double(None),
    };
    Shape::new(kind, true)
}

fn double(fraction: u8) -> Kind {
    match ColumnType::double_with(fraction) {
        ColumnType::Double { digits, .. } => Kind::Double(digits),
        _ => Kind::Double(None),
    }
}
