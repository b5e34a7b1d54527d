//! What values are to a comparison.

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, Operator, lit};

use super::nameless::data_type_of;

/// What a value is to a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Boolean,
    Integer,
    Decimal,
    Single,
    Double,
    Text,
    Bytes,
    Date,
    Moment,
    Time,
    Other,
}

pub(super) fn kind_of(of: &DataType) -> Kind {
    match of {
        DataType::Null => Kind::Null,
        DataType::Boolean => Kind::Boolean,
        DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => Kind::Decimal,
        DataType::Float16 | DataType::Float32 => Kind::Single,
        DataType::Float64 => Kind::Double,
        of if of.is_integer() => Kind::Integer,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Kind::Text,
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => Kind::Bytes,
        DataType::Date32 | DataType::Date64 => Kind::Date,
        DataType::Timestamp(..) => Kind::Moment,
        DataType::Time32(_) | DataType::Time64(_) | DataType::Duration(_) => Kind::Time,
        DataType::Dictionary(_, values) => kind_of(values),
        _ => Kind::Other,
    }
}

impl Kind {
    pub(super) fn is_number(self) -> bool {
        use Kind::{Boolean, Decimal, Double, Integer, Single};
        matches!(self, Boolean | Integer | Decimal | Single | Double)
    }

    pub(super) fn is_exact(self) -> bool {
        matches!(self, Kind::Boolean | Kind::Integer | Kind::Decimal)
    }

    pub(super) fn is_temporal(self) -> bool {
        matches!(self, Kind::Date | Kind::Moment | Kind::Time)
    }
}

pub(super) fn kind(expr: &Expr, schema: &DFSchema) -> Result<Kind> {
    match is_truth(expr) {
        true => Ok(Kind::Boolean),
        false => Ok(kind_of(&data_type_of(expr, schema)?)),
    }
}

/// Whether an expression is a truth value by its form: a long condition is not walked through for
/// each of its connectives.
pub(super) fn is_truth(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(binary) => matches!(
            binary.op,
            Operator::And
                | Operator::Or
                | Operator::Eq
                | Operator::NotEq
                | Operator::Lt
                | Operator::LtEq
                | Operator::Gt
                | Operator::GtEq
                | Operator::IsDistinctFrom
                | Operator::IsNotDistinctFrom
        ),
        Expr::Not(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::IsNotUnknown(_)
        | Expr::Like(_)
        | Expr::Between(_)
        | Expr::InList(_)
        | Expr::InSubquery(_)
        | Expr::Exists(_) => true,
        _ => false,
    }
}

/// The number that `0x10` is where one is wanted; none beyond 8 bytes.
pub(super) fn number_of_bytes(expr: &Expr) -> Option<Expr> {
    let Expr::Literal(value, _) = expr else {
        return None;
    };
    let (ScalarValue::Binary(Some(bytes)) | ScalarValue::BinaryView(Some(bytes))) = value else {
        return None;
    };
    if bytes.len() > 8 {
        return None;
    }
    let number = bytes
        .iter()
        .fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    Some(i64::try_from(number).map_or_else(|_| lit(number), lit))
}
