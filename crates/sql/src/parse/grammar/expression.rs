//! Expressions: literals, operators, windows, and constructs with a syntax of their own.
//!
//! Each function takes one node; the walk goes to the expressions and queries inside by itself.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, CeilFloorKind, DateTimeField, Expr, ExtractSyntax, MemberOf,
    ObjectName, SearchModifier, Spanned, TrimWhereField, TypedString, UnaryOperator, Value,
    ValueWithSpan, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowSpec,
};

use super::{Begins, Grammar};
use crate::comparison::compares;

impl Grammar {
    /// The table of all expressions.
    pub(super) fn expression(&mut self, expr: &Expr) {
        match expr {
            Expr::Identifier(name) => self.name(name),
            Expr::CompoundIdentifier(parts) => {
                parts.iter().for_each(|part| self.name(part));
                // A database, a table and a column; a variable has parts of its own.
                if let [first, _, third, _, ..] = parts.as_slice()
                    && !first.value.starts_with('@')
                {
                    self.refuse(third.span.end, Begins::With("."));
                }
            }
            Expr::Value(value) => self.value(value),
            Expr::Nested(_)
            | Expr::Subquery(_)
            | Expr::Tuple(_)
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::IsTrue(_)
            | Expr::IsNotTrue(_)
            | Expr::IsFalse(_)
            | Expr::IsNotFalse(_)
            | Expr::IsUnknown(_)
            | Expr::IsNotUnknown(_) => {}
            Expr::Exists {
                subquery: _,
                negated: _,
            }
            | Expr::InList {
                expr: _,
                list: _,
                negated: _,
            }
            | Expr::InSubquery {
                expr: _,
                subquery: _,
                negated: _,
            }
            | Expr::Between {
                expr: _,
                negated: _,
                low: _,
                high: _,
            }
            | Expr::RLike {
                negated: _,
                expr: _,
                pattern: _,
                regexp: _,
            }
            | Expr::Case {
                case_token: _,
                end_token: _,
                operand: _,
                conditions: _,
                else_result: _,
            }
            | Expr::Position { expr: _, r#in: _ } => {}
            Expr::Collate { expr: _, collation } => self.name_of_one_part(collation),
            Expr::Like {
                negated: _,
                any,
                expr: left,
                pattern: _,
                escape_char,
            } => {
                if *any {
                    self.refuse(left.span().end, Begins::Behind("ANY"));
                }
                if let Some(escape) = escape_char {
                    self.value(escape);
                }
            }
            Expr::UnaryOp { op, expr: operand } => self.unary(op, operand),
            Expr::BinaryOp { left, op, right: _ } => {
                if !is_operator(op) {
                    self.refuse(left.span().end, Begins::Here);
                }
            }
            Expr::AnyOp {
                left,
                compare_op,
                right,
                is_some: _,
            }
            | Expr::AllOp {
                left,
                compare_op,
                right,
            } => self.quantified(left, compare_op, right),
            Expr::Function(function) => self.function(function),
            Expr::Cast {
                kind,
                expr: value,
                data_type,
                array,
                format,
            } => {
                match kind {
                    CastKind::Cast => {}
                    CastKind::DoubleColon | CastKind::TryCast | CastKind::SafeCast => {
                        self.refuse_node(expr);
                    }
                }
                if !is_cast_type(data_type) {
                    self.refuse(value.span().end, Begins::Behind("AS"));
                }
                if *array {
                    self.unsupported("CAST to an ARRAY");
                }
                if format.is_some() {
                    self.refuse_behind(value.as_ref(), "FORMAT");
                }
            }
            Expr::Convert {
                is_try,
                expr: value,
                data_type,
                charset,
                target_before_value,
                styles,
            } => {
                if *is_try || *target_before_value || !styles.is_empty() {
                    self.refuse_node(expr);
                }
                if let Some(of) = data_type
                    && !is_cast_type(of)
                {
                    self.refuse(value.span().end, Begins::Behind(","));
                }
                if let Some(set) = charset {
                    self.name_of_one_part(set);
                }
            }
            Expr::Extract {
                field,
                syntax,
                expr: value,
            } => {
                match syntax {
                    ExtractSyntax::From => {}
                    ExtractSyntax::Comma => self.refuse_word(","),
                }
                if !is_unit(field) {
                    self.unit(field, value);
                }
            }
            Expr::Substring {
                expr: _,
                substring_from: _,
                substring_for: _,
                special: _,
                shorthand: _,
            } => {}
            Expr::Trim {
                trim_where,
                trim_what,
                expr: value,
                trim_characters,
            } => {
                match (trim_where, trim_what) {
                    (None, _)
                    | (
                        Some(
                            TrimWhereField::Both
                            | TrimWhereField::Leading
                            | TrimWhereField::Trailing,
                        ),
                        Some(_),
                    ) => {}
                    (Some(_), None) => self.refuse_behind(value.as_ref(), ")"),
                }
                if trim_characters.is_some() {
                    self.refuse_behind(value.as_ref(), ",");
                }
            }
            // CEIL and FLOOR are functions like any other; these two are made of `CEIL(a TO DAY)`.
            Expr::Ceil { expr: value, field } | Expr::Floor { expr: value, field } => match field {
                CeilFloorKind::DateTimeField(_) => self.refuse_behind(value.as_ref(), "TO"),
                CeilFloorKind::Scale(_) => self.refuse_behind(value.as_ref(), ","),
            },
            Expr::Interval(_) => {}
            Expr::TypedString(literal) => self.typed_literal(literal),
            Expr::Prefixed { prefix: _, value } => {
                if !matches!(value.as_ref(), Expr::Value(_)) {
                    self.refuse_node(value.as_ref());
                }
            }
            Expr::MatchAgainst {
                columns: _,
                match_value: _,
                opt_search_modifier,
            } => {
                match opt_search_modifier {
                    None
                    | Some(
                        SearchModifier::InNaturalLanguageMode
                        | SearchModifier::InNaturalLanguageModeWithQueryExpansion
                        | SearchModifier::InBooleanMode
                        | SearchModifier::WithQueryExpansion,
                    ) => {}
                }
                self.unsupported("MATCH ... AGAINST");
            }
            Expr::MemberOf(MemberOf { value: _, array: _ }) => self.unsupported("MEMBER OF"),

            Expr::IsDistinctFrom(left, _) | Expr::IsNotDistinctFrom(left, _) => {
                self.refuse_behind(left.as_ref(), "DISTINCT");
            }
            Expr::ILike { expr: left, .. } => self.refuse_behind(left.as_ref(), "ILIKE"),
            Expr::SimilarTo { expr: left, .. } => self.refuse_behind(left.as_ref(), "SIMILAR"),
            Expr::IsNormalized { expr: left, .. } => {
                self.refuse_behind(left.as_ref(), "NORMALIZED");
            }
            Expr::AtTimeZone { timestamp, .. } => self.refuse_behind(timestamp.as_ref(), "TIME"),
            Expr::InUnnest { expr: left, .. } => self.refuse_behind(left.as_ref(), "UNNEST"),
            Expr::CompoundFieldAccess { root, .. } => self.refuse(root.span().end, Begins::Here),
            Expr::JsonAccess { value, .. } => self.refuse(value.span().end, Begins::Here),
            Expr::Overlay { expr: left, .. } => self.refuse_behind(left.as_ref(), "PLACING"),
            Expr::Wildcard(star) | Expr::QualifiedWildcard(_, star) => {
                self.refuse(star.0.span.start, Begins::Here);
            }
            Expr::Array(_)
            | Expr::Cube(_)
            | Expr::Dictionary(_)
            | Expr::GroupingSets(_)
            | Expr::Lambda(_)
            | Expr::Map(_)
            | Expr::Named { .. }
            | Expr::OuterJoin(_)
            | Expr::Prior(_)
            | Expr::Rollup(_)
            | Expr::Struct { .. } => self.refuse_node(expr),
        }
    }

    /// The table of all literals.
    pub(super) fn value(&mut self, literal: &ValueWithSpan) {
        let ValueWithSpan { value, span } = literal;
        match value {
            Value::Number(_, _)
            | Value::SingleQuotedString(_)
            | Value::DoubleQuotedString(_)
            | Value::NationalStringLiteral(_)
            | Value::HexStringLiteral(_)
            | Value::SingleQuotedByteStringLiteral(_)
            | Value::Boolean(_)
            | Value::Null
            | Value::Placeholder(_) => {}
            Value::DollarQuotedString(_)
            | Value::TripleSingleQuotedString(_)
            | Value::TripleDoubleQuotedString(_)
            | Value::EscapedStringLiteral(_)
            | Value::UnicodeStringLiteral(_)
            | Value::DoubleQuotedByteStringLiteral(_)
            | Value::TripleSingleQuotedByteStringLiteral(_)
            | Value::TripleDoubleQuotedByteStringLiteral(_)
            | Value::SingleQuotedRawStringLiteral(_)
            | Value::DoubleQuotedRawStringLiteral(_)
            | Value::TripleSingleQuotedRawStringLiteral(_)
            | Value::TripleDoubleQuotedRawStringLiteral(_)
            | Value::QuoteDelimitedStringLiteral(_)
            | Value::NationalQuoteDelimitedStringLiteral(_) => {
                self.refuse(span.start, Begins::Here);
            }
        }
    }

    fn unary(&mut self, op: &UnaryOperator, operand: &Expr) {
        match op {
            UnaryOperator::Plus
            | UnaryOperator::Minus
            | UnaryOperator::Not
            | UnaryOperator::BangNot
            | UnaryOperator::BitwiseNot => {}
            UnaryOperator::AtDashAt
            | UnaryOperator::DoubleAt
            | UnaryOperator::Hash
            | UnaryOperator::PGAbs
            | UnaryOperator::PGCubeRoot
            | UnaryOperator::PGPostfixFactorial
            | UnaryOperator::PGPrefixFactorial
            | UnaryOperator::PGSquareRoot
            | UnaryOperator::QuestionDash
            | UnaryOperator::QuestionPipe => self.refuse_node(operand),
        }
    }

    /// `a = ANY (SELECT ...)`: a comparison, and nothing but a subquery.
    fn quantified(&mut self, left: &Expr, op: &BinaryOperator, right: &Expr) {
        if !compares(op) {
            self.refuse(left.span().end, Begins::Here);
        }
        let mut inner = right;
        while let Expr::Nested(nested) = inner {
            inner = nested;
        }
        if !matches!(inner, Expr::Subquery(_)) {
            self.refuse_node(inner);
        }
    }

    /// DATE, TIME and TIMESTAMP in front of a text.
    fn typed_literal(&mut self, literal: &TypedString) {
        let TypedString {
            data_type,
            value,
            uses_odbc_syntax: _,
        } = literal;
        let is_text = matches!(
            value.value,
            Value::SingleQuotedString(_) | Value::DoubleQuotedString(_)
        );
        if !is_text || !super::data_type::is_literal_type(data_type) {
            self.refuse(value.span.start, Begins::Here);
        }
        self.value(value);
    }

    fn unit(&mut self, field: &DateTimeField, value: &Expr) {
        match field {
            DateTimeField::Custom(unit) => self.refuse(unit.span.start, Begins::Here),
            // These do not know where they stand: in front of FROM, behind EXTRACT.
            _ => self.refuse(value.span().start, Begins::Here),
        }
    }

    pub(super) fn window(&mut self, window: &WindowSpec) {
        let WindowSpec {
            window_name,
            partition_by: _,
            order_by,
            window_frame,
        } = window;
        if let Some(name) = window_name {
            self.name(name);
        }
        self.order_keys(order_by);
        let Some(WindowFrame {
            units,
            start_bound,
            end_bound,
        }) = window_frame
        else {
            return;
        };
        match units {
            WindowFrameUnits::Rows | WindowFrameUnits::Range => {}
            WindowFrameUnits::Groups => self.unsupported("GROUPS"),
        }
        for bound in [Some(start_bound), end_bound.as_ref()]
            .into_iter()
            .flatten()
        {
            match bound {
                WindowFrameBound::CurrentRow
                | WindowFrameBound::Preceding(_)
                | WindowFrameBound::Following(_) => {}
            }
        }
    }

    /// The name of what can stand in no database: a collation, a character set.
    fn name_of_one_part(&mut self, name: &ObjectName) {
        let ObjectName(parts) = name;
        if let [_, second, ..] = parts.as_slice() {
            self.refuse_node(second);
        }
    }
}

/// The table of all infix operators.
fn is_operator(op: &BinaryOperator) -> bool {
    match op {
        BinaryOperator::Plus
        | BinaryOperator::Minus
        | BinaryOperator::Multiply
        | BinaryOperator::Divide
        | BinaryOperator::Modulo
        | BinaryOperator::MyIntegerDivide
        | BinaryOperator::StringConcat
        | BinaryOperator::Gt
        | BinaryOperator::Lt
        | BinaryOperator::GtEq
        | BinaryOperator::LtEq
        | BinaryOperator::Spaceship
        | BinaryOperator::Eq
        | BinaryOperator::NotEq
        | BinaryOperator::And
        | BinaryOperator::Or
        | BinaryOperator::Xor
        | BinaryOperator::BitwiseOr
        | BinaryOperator::BitwiseAnd
        | BinaryOperator::BitwiseXor
        | BinaryOperator::PGBitwiseShiftLeft
        | BinaryOperator::PGBitwiseShiftRight
        | BinaryOperator::Arrow
        | BinaryOperator::LongArrow
        | BinaryOperator::Assignment => true,
        BinaryOperator::DuckIntegerDivide
        | BinaryOperator::Match
        | BinaryOperator::Regexp
        | BinaryOperator::Custom(_)
        | BinaryOperator::PGBitwiseXor
        | BinaryOperator::PGExp
        | BinaryOperator::PGOverlap
        | BinaryOperator::PGRegexMatch
        | BinaryOperator::PGRegexIMatch
        | BinaryOperator::PGRegexNotMatch
        | BinaryOperator::PGRegexNotIMatch
        | BinaryOperator::PGLikeMatch
        | BinaryOperator::PGILikeMatch
        | BinaryOperator::PGNotLikeMatch
        | BinaryOperator::PGNotILikeMatch
        | BinaryOperator::PGStartsWith
        | BinaryOperator::HashArrow
        | BinaryOperator::HashLongArrow
        | BinaryOperator::AtAt
        | BinaryOperator::AtArrow
        | BinaryOperator::ArrowAt
        | BinaryOperator::HashMinus
        | BinaryOperator::AtQuestion
        | BinaryOperator::Question
        | BinaryOperator::QuestionAnd
        | BinaryOperator::QuestionPipe
        | BinaryOperator::PGCustomBinaryOperator(_)
        | BinaryOperator::Overlaps
        | BinaryOperator::DoubleHash
        | BinaryOperator::LtDashGt
        | BinaryOperator::AndLt
        | BinaryOperator::AndGt
        | BinaryOperator::LtLtPipe
        | BinaryOperator::PipeGtGt
        | BinaryOperator::AndLtPipe
        | BinaryOperator::PipeAndGt
        | BinaryOperator::LtCaret
        | BinaryOperator::GtCaret
        | BinaryOperator::QuestionHash
        | BinaryOperator::QuestionDash
        | BinaryOperator::QuestionDashPipe
        | BinaryOperator::QuestionDoublePipe
        | BinaryOperator::At
        | BinaryOperator::TildeEq => false,
    }
}

/// The table of all units of EXTRACT; those of two words are custom to sqlparser.
fn is_unit(field: &DateTimeField) -> bool {
    match field {
        DateTimeField::Year
        | DateTimeField::Quarter
        | DateTimeField::Month
        | DateTimeField::Week(None)
        | DateTimeField::Day
        | DateTimeField::Hour
        | DateTimeField::Minute
        | DateTimeField::Second
        | DateTimeField::Microsecond => true,
        DateTimeField::Custom(unit) => crate::typing::syntax::is_unit(&unit.value),
        DateTimeField::Week(Some(_))
        | DateTimeField::Years
        | DateTimeField::Months
        | DateTimeField::Weeks
        | DateTimeField::Days
        | DateTimeField::DayOfWeek
        | DateTimeField::DayOfYear
        | DateTimeField::Date
        | DateTimeField::Datetime
        | DateTimeField::Hours
        | DateTimeField::Minutes
        | DateTimeField::Seconds
        | DateTimeField::Century
        | DateTimeField::Decade
        | DateTimeField::Dow
        | DateTimeField::Doy
        | DateTimeField::Epoch
        | DateTimeField::Isodow
        | DateTimeField::Isoyear
        | DateTimeField::IsoWeek
        | DateTimeField::Julian
        | DateTimeField::Microseconds
        | DateTimeField::Millenium
        | DateTimeField::Millennium
        | DateTimeField::Millisecond
        | DateTimeField::Milliseconds
        | DateTimeField::Nanosecond
        | DateTimeField::Nanoseconds
        | DateTimeField::Time
        | DateTimeField::Timezone
        | DateTimeField::TimezoneAbbr
        | DateTimeField::TimezoneHour
        | DateTimeField::TimezoneMinute
        | DateTimeField::TimezoneRegion
        | DateTimeField::NoDateTime => false,
    }
}

use super::data_type::is_cast_type;
