//! The operators that compute.

use super::super::own::{BIT_NOT, NEGATE};

/// An operator on numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    IntegerDivide,
    Modulo,
    Negate,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    BitNot,
}

impl Operator {
    pub(super) fn symbol(self) -> &'static str {
        match self {
            Operator::Add => "+",
            Operator::Subtract | Operator::Negate => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
            Operator::IntegerDivide => "DIV",
            Operator::Modulo => "%",
            Operator::BitAnd => "&",
            Operator::BitOr => "|",
            Operator::BitXor => "^",
            Operator::ShiftLeft => "<<",
            Operator::ShiftRight => ">>",
            Operator::BitNot => "~",
        }
    }

    /// The name in the table of functions.
    pub(super) fn name(self) -> &'static str {
        match self {
            Operator::Modulo => "mod",
            Operator::Negate => NEGATE,
            Operator::BitNot => BIT_NOT,
            other => other.symbol(),
        }
    }
}
