//! What is known of the values of an expression: kind, digits, length, NULL.

use mayfly_types::{BlobSize, ColumnType, Digits};

use crate::functions::listed::text_type;
use crate::functions::unify::{decimal, exact_digits};

/// The longest text of an expression, in characters, that becomes a VARCHAR and no TEXT.
const VARCHAR_CHARS: u64 = 512;
/// The longest VARCHAR that can be declared.
const DECLARED_CHARS: u64 = 16383;
/// Bytes of a character.
const CHAR_BYTES: u64 = 4;
/// A whole number of an expression with more characters than these is a BIGINT.
const INT_CHARS: u32 = 9;

/// What values are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Int {
        unsigned: bool,
        digits: u32,
        /// The most characters that a value has.
        chars: u32,
        /// Whether INT holds it, however long it may be.
        is_int: bool,
    },
    Decimal {
        before: u32,
        scale: u32,
    },
    Double(Option<Digits>),
    Text {
        chars: u64,
    },
    Bytes {
        bytes: u64,
    },
    /// As it is, whatever it is.
    Other(ColumnType),
}

/// The values of an expression.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) kind: Kind,
    /// The type of a column that is handed on as it is.
    pub(super) declared: Option<ColumnType>,
    pub(super) nullable: bool,
}

impl Shape {
    pub(super) fn new(kind: Kind, nullable: bool) -> Shape {
        Shape {
            kind,
            declared: None,
            nullable,
        }
    }

    /// A whole number of an expression.
    pub(super) fn int(digits: u32, unsigned: bool, nullable: bool) -> Shape {
        let chars = digits + 1;
        let is_int = chars <= INT_CHARS;
        let kind = Kind::Int {
            unsigned,
            digits,
            chars,
            is_int,
        };
        Shape::new(kind, nullable)
    }

    /// A whole number that is an INT.
    pub(super) fn small(digits: u32, nullable: bool) -> Shape {
        let kind = Kind::Int {
            unsigned: false,
            digits,
            chars: digits,
            is_int: true,
        };
        Shape::new(kind, nullable)
    }

    /// A whole number that is a BIGINT.
    pub(super) fn big(unsigned: bool, nullable: bool) -> Shape {
        Shape::of(&ColumnType::BigInt { unsigned }, nullable)
    }

    pub(super) fn text(chars: u64, nullable: bool) -> Shape {
        Shape::new(Kind::Text { chars }, nullable)
    }

    /// The values of a column.
    pub(super) fn of(column: &ColumnType, nullable: bool) -> Shape {
        let int = |digits: u32, unsigned: bool, is_int: bool| Kind::Int {
            unsigned,
            digits,
            chars: digits + u32::from(!unsigned),
            is_int,
        };
        let kind = match column {
            ColumnType::Null => Kind::Null,
            ColumnType::Bool => int(1, false, true),
            ColumnType::TinyInt { unsigned } => int(3, *unsigned, true),
            ColumnType::SmallInt { unsigned } => int(5, *unsigned, true),
            ColumnType::MediumInt { unsigned } => int(8, *unsigned, true),
            ColumnType::Int { unsigned } => int(10, *unsigned, true),
            ColumnType::BigInt { unsigned: true } => int(20, true, false),
            ColumnType::BigInt { unsigned: false } => int(19, false, false),
            ColumnType::Year => int(4, true, true),
            ColumnType::Decimal { .. } => {
                let (before, scale) = exact_digits(column).unwrap_or((65, 0));
                Kind::Decimal {
                    before: before.into(),
                    scale: scale.into(),
                }
            }
            ColumnType::Double { digits, .. } => Kind::Double(*digits),
            ColumnType::Char { length } | ColumnType::VarChar { length } => Kind::Text {
                chars: (*length).into(),
            },
            ColumnType::Text(size) => Kind::Text {
                chars: size.max_bytes() / CHAR_BYTES,
            },
            ColumnType::Enum(_) | ColumnType::Set(_) => match text_type(column) {
                ColumnType::VarChar { length } => Kind::Text {
                    chars: length.into(),
                },
                of => Kind::Other(of),
            },
            ColumnType::Binary { length } | ColumnType::VarBinary { length } => Kind::Bytes {
                bytes: (*length).into(),
            },
            ColumnType::Blob(size) => Kind::Bytes {
                bytes: size.max_bytes(),
            },
            other => Kind::Other(other.clone()),
        };
        let declared = Some(column.clone()).filter(|_| kind != Kind::Null);
        Shape {
            kind,
            declared,
            nullable: nullable || *column == ColumnType::Null,
        }
    }

    /// The same values as an expression, no longer a column handed on.
    pub(super) fn computed(self, nullable: bool) -> Shape {
        Shape {
            declared: None,
            nullable,
            ..self
        }
    }

    /// The same values where ENUM and SET are texts.
    pub(super) fn without_list(self) -> Shape {
        match &self.declared {
            Some(declared) if declared.is_list() => {
                let nullable = self.nullable;
                self.computed(nullable)
            }
            _ => self,
        }
    }

    /// The most characters that a value has as text.
    pub(super) fn chars(&self) -> u64 {
        match &self.kind {
            Kind::Null => 0,
            Kind::Int { chars, .. } => (*chars).into(),
            Kind::Decimal { before, scale } => {
                u64::from(before + scale) + 1 + u64::from(*scale > 0)
            }
            Kind::Double(Some(digits)) => digits.total.into(),
            Kind::Double(None) => 22,
            Kind::Text { chars } => *chars,
            Kind::Bytes { bytes } => *bytes,
            Kind::Other(of) => match of {
                ColumnType::Float { .. } => 12,
                ColumnType::Date | ColumnType::Time { digits: 0 } => 10,
                ColumnType::Time { digits } => 11 + u64::from(*digits),
                ColumnType::DateTime { digits: 0 } | ColumnType::Timestamp { digits: 0 } => 19,
                ColumnType::DateTime { digits } | ColumnType::Timestamp { digits } => {
                    20 + u64::from(*digits)
                }
                ColumnType::Bit { length } => (*length).into(),
                _ => BlobSize::Long.max_bytes() / CHAR_BYTES,
            },
        }
    }

    /// Whether values are bytes where a text is wanted.
    pub(super) fn is_binary_string(&self) -> bool {
        matches!(
            self.kind,
            Kind::Bytes { .. } | Kind::Other(ColumnType::Bit { .. })
        )
    }

    /// Digits before and behind the point of an exact number.
    pub(super) fn exact(&self) -> Option<(u32, u32)> {
        match &self.kind {
            Kind::Int { digits, .. } => Some((*digits, 0)),
            Kind::Decimal { before, scale } => Some((*before, *scale)),
            Kind::Null => Some((0, 0)),
            Kind::Other(ColumnType::Bit { length }) => Some(((*length).into(), 0)),
            _ => None,
        }
    }

    /// The type of a column that takes the values of an expression.
    pub(super) fn column_type(&self) -> ColumnType {
        match &self.declared {
            Some(declared) => declared.clone(),
            None => self.type_within(VARCHAR_CHARS),
        }
    }

    /// The type of a column of a union, where VARCHAR is as long as it can be.
    pub(super) fn type_in_union(&self) -> ColumnType {
        match &self.declared {
            Some(declared) => declared.clone(),
            None => self.type_within(DECLARED_CHARS),
        }
    }

    fn type_within(&self, varchar_chars: u64) -> ColumnType {
        match &self.kind {
            Kind::Null => ColumnType::Binary { length: 0 },
            Kind::Int {
                unsigned,
                is_int: true,
                ..
            } => ColumnType::Int {
                unsigned: *unsigned,
            },
            Kind::Int { unsigned, .. } => ColumnType::BigInt {
                unsigned: *unsigned,
            },
            Kind::Decimal { before, scale } => decimal(narrow(*before), narrow(*scale)),
            Kind::Double(digits) => ColumnType::Double {
                unsigned: false,
                digits: *digits,
            },
            Kind::Text { chars: 0 } => ColumnType::Char { length: 0 },
            Kind::Text { chars } if *chars <= varchar_chars => ColumnType::VarChar {
                length: u32::try_from(*chars).unwrap_or(u32::MAX),
            },
            Kind::Text { chars } => ColumnType::Text(size(chars.saturating_mul(CHAR_BYTES))),
            Kind::Bytes { bytes } if *bytes <= varchar_chars => ColumnType::VarBinary {
                length: u32::try_from(*bytes).unwrap_or(u32::MAX),
            },
            Kind::Bytes { bytes } => ColumnType::Blob(size(*bytes)),
            Kind::Other(of) => of.clone(),
        }
    }
}

fn narrow(digits: u32) -> u8 {
    u8::try_from(digits).unwrap_or(u8::MAX)
}

fn size(bytes: u64) -> BlobSize {
    BlobSize::holding(bytes).max(BlobSize::Normal)
}

/// The values of several expressions together: branches of CASE, arguments of COALESCE, the
/// columns of a union.
pub(super) fn together(shapes: &[Shape]) -> Shape {
    let mut shapes = shapes.iter().cloned();
    let first = shapes.next().unwrap_or(Shape::new(Kind::Null, true));
    shapes.fold(first, |all, one| pair(&all, &one))
}

fn pair(left: &Shape, right: &Shape) -> Shape {
    let nullable = left.nullable || right.nullable;
    if left.kind == Kind::Null || right.kind == Kind::Null {
        let other = if left.kind == Kind::Null { right } else { left };
        return Shape {
            nullable: true,
            ..other.clone()
        };
    }
    let is_list = |of: &ColumnType| of.is_list();
    if left.declared.is_some()
        && left.declared == right.declared
        && !left.declared.as_ref().is_some_and(is_list)
    {
        return Shape {
            nullable,
            ..left.clone()
        };
    }
    let longest = left.chars().max(right.chars());
    let kind = match (&left.kind, &right.kind) {
        (
            Kind::Int {
                unsigned: left_unsigned,
                digits: left_digits,
                chars: left_chars,
                is_int: left_int,
            },
            Kind::Int {
                unsigned: right_unsigned,
                digits: right_digits,
                chars: right_chars,
                is_int: right_int,
            },
        ) => {
            let digits = *left_digits.max(right_digits);
            if left_unsigned != right_unsigned && digits >= 20 {
                Kind::Decimal {
                    before: digits,
                    scale: 0,
                }
            } else {
                Kind::Int {
                    unsigned: *left_unsigned && *right_unsigned,
                    digits,
                    chars: *left_chars.max(right_chars),
                    is_int: *left_int && *right_int && left_unsigned == right_unsigned,
                }
            }
        }
        (Kind::Double(left_digits), Kind::Double(right_digits)) => Kind::Double(
            (left_digits == right_digits)
                .then_some(*left_digits)
                .flatten(),
        ),
        (Kind::Double(_), _) if right.exact().is_some() => Kind::Double(None),
        (_, Kind::Double(_)) if left.exact().is_some() => Kind::Double(None),
        (Kind::Bytes { .. }, _) | (_, Kind::Bytes { .. }) => Kind::Bytes { bytes: longest },
        (Kind::Other(left), Kind::Other(right)) => {
            match crate::functions::unify::unify(&[left.clone(), right.clone()]) {
                ColumnType::Text(_) => Kind::Text { chars: longest },
                ColumnType::Blob(_) => Kind::Bytes { bytes: longest },
                of => Kind::Other(of),
            }
        }
        _ => match (left.exact(), right.exact()) {
            (Some((left, left_scale)), Some((right, right_scale))) => Kind::Decimal {
                before: left.max(right),
                scale: left_scale.max(right_scale),
            },
            _ if left.is_binary_string() || right.is_binary_string() => {
                Kind::Bytes { bytes: longest }
            }
            _ => Kind::Text { chars: longest },
        },
    };
    Shape::new(kind, nullable)
}
