//! Constants of a query that may be others the next time, without another plan: its slots.
//!
//! Owns which constants these are by their place in the text, what kinds they have, the constants
//! that stand for them while a plan is made, and their values in the types of a plan. Never: makes
//! the plan, nor trusts that it does not depend on them; `mayfly_session` plans twice and compares.
//!
//! A slot is a side of a comparison, of BETWEEN or of IN, in WHERE, HAVING or ON. Constants
//! elsewhere make types or another query: they are part of the shape. So are those in the names of
//! columns of queries inside; the labels of the result are put together for each run
//! (`slot_labels`).

use std::collections::{HashMap, HashSet};
use std::ops::{ControlFlow, Range};

use arrow::datatypes::DataType;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    Expr, JoinConstraint, Query, Select, SelectItem, SetExpr, Visitor,
};
use datafusion::sql::sqlparser::tokenizer::Location;

use crate::comparison::is_comparison;
use crate::from_list::constraint;
use crate::functions::calendar::days_in_month;
use crate::literal::Literal;
use crate::walk;

/// Bytes of a text that may be a slot.
const TEXT_BYTES_MAX: usize = 256;
/// Digits of a number that may be one: it is a BIGINT.
const DIGITS_MAX: usize = 18;
/// Digits of a number in quotes that a DOUBLE has exactly.
const QUOTED_DIGITS_MAX: usize = 15;

/// What a constant is to the rules that make a plan: two of one kind are treated alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number that fits a BIGINT.
    Integer,
    /// The same with a minus that is part of the constant: `a = -5`.
    Negative,
    /// A text that is no number, no day and no moment.
    Text,
    /// A whole number in quotes.
    QuotedInteger,
    /// `'2026-01-31'`.
    Day,
    /// `'2026-01-31 23:59:59'`.
    Moment,
}

impl Kind {
    /// The kind of a constant; `None` if only this very constant may have a plan.
    pub fn of(literal: &Literal<'_>) -> Option<Kind> {
        let spelled = literal.spelled.as_ref();
        let is_digits = !spelled.is_empty() && spelled.bytes().all(|byte| byte.is_ascii_digit());
        if !literal.is_text {
            let kind = match literal.is_negative {
                false => Kind::Integer,
                true => Kind::Negative,
            };
            return (is_digits && spelled.len() <= DIGITS_MAX).then_some(kind);
        }
        if is_digits {
            let is_plain = spelled == "0" || !spelled.starts_with('0');
            let is_short = spelled.len() <= QUOTED_DIGITS_MAX;
            return (is_plain && is_short).then_some(Kind::QuotedInteger);
        }
        if is_like(spelled, b"0000-00-00") {
            return is_day(spelled).then_some(Kind::Day);
        }
        if is_like(spelled, b"0000-00-00 00:00:00") {
            return is_moment(spelled).then_some(Kind::Moment);
        }
        // A number, a part of one or a moment spelled otherwise begins with one of these; how
        // spaces at the end compare depends on them.
        let begins_plainly = spelled.starts_with(|first: char| first.is_alphabetic());
        let ends_plainly = !spelled.ends_with(char::is_whitespace);
        let is_plain = begins_plainly && ends_plainly && spelled.len() <= TEXT_BYTES_MAX;
        is_plain.then_some(Kind::Text)
    }

    /// A constant of this kind that no statement has, one of two for each place: they rise from
    /// place to place, or they fall, so that a plan that depends on their order shows it.
    fn stand_in(self, place: usize, falls: bool) -> Literal<'static> {
        let place = i128::try_from(place).unwrap_or_default();
        match (self, falls) {
            (Kind::Integer, false) => Literal::integral(1_717_100_003 + 37 * place),
            (Kind::Integer, true) => Literal::integral(1_917_900_007 - 41 * place),
            (Kind::Negative, false) => Literal::integral(-1_117_100_009 + 37 * place),
            (Kind::Negative, true) => Literal::integral(-1_017_900_001 - 41 * place),
            (Kind::QuotedInteger, false) => Literal::text((1_217_100_011 + 37 * place).to_string()),
            (Kind::QuotedInteger, true) => Literal::text((1_617_900_013 - 41 * place).to_string()),
            (Kind::Text, false) => Literal::text(format!("mayfly stands in {place:04}")),
            (Kind::Text, true) => Literal::text(format!("mayfly stands in {:04}", 9999 - place)),
            (Kind::Day, falls) => Literal::text(day(place, falls)),
            (Kind::Moment, falls) => Literal::text(format!("{} 13:17:19", day(place, falls))),
        }
    }
}

/// A day that rises or falls with a place; there are 12 times 28.
fn day(place: i128, falls: bool) -> String {
    let (year, place) = match falls {
        false => (1981, place),
        true => (2031, 335 - place.min(335)),
    };
    let (month, day) = (1 + (place / 28) % 12, 1 + place % 28);
    format!("{year}-{month:02}-{day:02}")
}

/// Whether a text has digits and signs where an example has them.
fn is_like(text: &str, example: &[u8]) -> bool {
    let bytes = text.as_bytes();
    let is_alike = |(byte, of): (&u8, &u8)| match of {
        b'0' => byte.is_ascii_digit(),
        sign => byte == sign,
    };
    bytes.len() == example.len() && bytes.iter().zip(example).all(is_alike)
}

/// Whether a text is a day that MySQL takes as it stands, of a year that every type has.
fn is_day(text: &str) -> bool {
    let number = |range: Range<usize>| text.get(range).and_then(|part| part.parse::<i64>().ok());
    let (Some(year), Some(month), Some(day)) = (number(0..4), number(5..7), number(8..10)) else {
        return false;
    };
    let is_month = (1..=12).contains(&month);
    (1000..=9999).contains(&year) && is_month && (1..=days_in_month(year, month)).contains(&day)
}

fn is_moment(text: &str) -> bool {
    let below = |range: Range<usize>, end: u32| {
        let part = text.get(range).and_then(|part| part.parse::<u32>().ok());
        part.is_some_and(|part| part < end)
    };
    text.get(..10).is_some_and(is_day)
        && below(11..13, 24)
        && below(14..16, 60)
        && below(17..19, 60)
}

/// A slot of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Which of the constants of the text it is.
    pub constant: usize,
    /// What it is.
    pub kind: Kind,
    /// Whether a minus stands before it that is no part of the constant: `a > - 5`.
    is_negated: bool,
}

impl Slot {
    /// The value of a constant of its kind in a type of a plan; `None` where that does not have it
    /// exactly.
    pub fn value(&self, constant: &Literal<'_>, of_type: &DataType) -> Option<ScalarValue> {
        match self.kind {
            Kind::Integer | Kind::Negative => {
                let number = constant.integer()?;
                integer(if self.is_negated { -number } else { number }, of_type)
            }
            Kind::QuotedInteger if !is_text(of_type) => {
                integer(constant.spelled.parse().ok()?, of_type)
            }
            Kind::Day | Kind::Moment if of_type.is_temporal() => {
                let is_known = matches!(of_type, DataType::Date32 | DataType::Timestamp(_, None));
                let text = ScalarValue::Utf8(Some(constant.spelled.to_string()));
                let value = is_known.then(|| text.cast_to(of_type).ok()).flatten()?;
                (!value.is_null()).then_some(value)
            }
            _ => {
                let text = Some(constant.spelled.to_string());
                match of_type {
                    DataType::Utf8 => Some(ScalarValue::Utf8(text)),
                    DataType::LargeUtf8 => Some(ScalarValue::LargeUtf8(text)),
                    DataType::Utf8View => Some(ScalarValue::Utf8View(text)),
                    _ => None,
                }
            }
        }
    }
}

fn is_text(of_type: &DataType) -> bool {
    matches!(
        of_type,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

/// A whole number in a type of numbers.
fn integer(number: i128, of_type: &DataType) -> Option<ScalarValue> {
    /// Whole numbers up to here are exact.
    const DOUBLE_MAX: i128 = 1 << 53;
    const FLOAT_MAX: i128 = 1 << 24;
    Some(match of_type {
        DataType::Int8 => ScalarValue::Int8(Some(number.try_into().ok()?)),
        DataType::Int16 => ScalarValue::Int16(Some(number.try_into().ok()?)),
        DataType::Int32 => ScalarValue::Int32(Some(number.try_into().ok()?)),
        DataType::Int64 => ScalarValue::Int64(Some(number.try_into().ok()?)),
        DataType::UInt8 => ScalarValue::UInt8(Some(number.try_into().ok()?)),
        DataType::UInt16 => ScalarValue::UInt16(Some(number.try_into().ok()?)),
        DataType::UInt32 => ScalarValue::UInt32(Some(number.try_into().ok()?)),
        DataType::UInt64 => ScalarValue::UInt64(Some(number.try_into().ok()?)),
        DataType::Float32 if number.abs() <= FLOAT_MAX => ScalarValue::Float32(Some(number as f32)),
        DataType::Float64 if number.abs() <= DOUBLE_MAX => {
            ScalarValue::Float64(Some(number as f64))
        }
        DataType::Decimal128(precision, scale) => {
            let unit = 10_i128.checked_pow(u32::try_from(*scale).ok()?)?;
            let value = number.checked_mul(unit)?;
            let end = 10_i128.checked_pow(u32::from(*precision))?;
            let value = (value.abs() < end).then_some(value)?;
            ScalarValue::Decimal128(Some(value), *precision, *scale)
        }
        _ => return None,
    })
}

/// Constants in the place of others: all that may be slots, one by one.
#[derive(Debug)]
pub struct StandIns {
    /// For each constant of the text, what stands in its place, if anything does.
    pub constants: Vec<Option<Literal<'static>>>,
}

impl StandIns {
    /// Constants for some places of a text; `None` where a constant of the text is one of them.
    pub fn of(
        constants: &[Option<Literal<'_>>],
        is_slot: impl Fn(usize) -> bool,
        falls: bool,
    ) -> Option<StandIns> {
        let kinds = constants.iter().enumerate().map(|(place, constant)| {
            let literal = constant.as_ref().filter(|_| is_slot(place));
            literal.and_then(Kind::of)
        });
        let stand_ins: Vec<Option<Literal<'static>>> = kinds
            .enumerate()
            .map(|(place, kind)| kind.map(|kind| kind.stand_in(place, falls)))
            .collect();
        let spelled: HashSet<&str> = { stand_ins.iter().flatten() }
            .map(|literal| literal.spelled.as_ref())
            .collect();
        let is_apart =
            spelled.len() == stand_ins.iter().flatten().count() && { constants.iter().flatten() }
                .all(|of| !spelled.contains(of.spelled.as_ref()));
        is_apart.then_some(StandIns {
            constants: stand_ins,
        })
    }

    /// A text with them in the places of its constants.
    pub fn text(&self, text: &str, places: &[Range<usize>]) -> String {
        let mut replaced = String::with_capacity(text.len() + places.len() * 24);
        let mut copied = 0;
        for (place, literal) in places.iter().zip(&self.constants) {
            let Some(literal) = literal else { continue };
            replaced += &text[copied..place.start];
            replaced += &written(literal);
            copied = place.end;
        }
        replaced += &text[copied..];
        replaced
    }

    /// How what stands in the place of a constant is written, if anything does.
    pub(crate) fn written(&self, constant: usize) -> Option<String> {
        self.constants.get(constant)?.as_ref().map(written)
    }

    /// Whether an expression of such a text is one of them.
    pub(crate) fn is_one(&self, expr: &Expr) -> bool {
        let literal = Literal::of(expr).flatten();
        let is_it = |of: &Literal<'_>, literal: &Literal<'_>| {
            of.is_text == literal.is_text && of.spelled == literal.spelled
        };
        literal.is_some_and(|literal| {
            self.constants
                .iter()
                .flatten()
                .any(|of| is_it(of, &literal))
        })
    }

    /// The slots of a query that was read from such a text.
    pub fn slots(&self, query: &Query) -> Vec<Slot> {
        let mut by_text = HashMap::new();
        for (constant, literal) in self.constants.iter().enumerate() {
            if let Some(literal) = literal {
                by_text.insert((literal.is_text, literal.spelled.as_ref()), constant);
            }
        }
        let mut found = Conditions {
            by_text,
            labelling: labelling(query),
            compared: Vec::new(),
            labelled: HashSet::new(),
        };
        let _always_continues = walk::read(query, &mut found);
        let Conditions {
            compared, labelled, ..
        } = found;
        let slots = compared.into_iter().filter_map(|(constant, is_negative)| {
            let literal = self.constants[constant].as_ref()?;
            (!labelled.contains(&constant)).then_some(Slot {
                constant,
                kind: Kind::of(literal)?,
                is_negated: is_negative != literal.is_negative,
            })
        });
        slots.collect()
    }
}

/// Where the select list stands that labels the result, if it is that of one SELECT.
pub(crate) fn labelling(query: &Query) -> Option<Location> {
    let SetExpr::Select(select) = query.body.as_ref() else {
        return None;
    };
    Some(place_of(select))
}

pub(crate) fn place_of(select: &Select) -> Location {
    select.select_token.0.span.start
}

/// A stand-in as it is written; the sign that a constant may have stands in its place too.
fn written(literal: &Literal<'_>) -> String {
    match (literal.is_text, literal.is_negative) {
        (true, _) => format!("'{}'", literal.spelled),
        (false, true) => format!("-{}", literal.spelled),
        (false, false) => literal.spelled.to_string(),
    }
}

/// Finds constants in conditions.
struct Conditions<'a> {
    /// Constants by whether they are texts, and their text.
    by_text: HashMap<(bool, &'a str), usize>,
    /// Where the select list stands that labels the result.
    labelling: Option<Location>,
    /// Those that are compared, and whether they are negative.
    compared: Vec<(usize, bool)>,
    /// Those that stand in an item without an alias of a query inside, which is named by its text.
    labelled: HashSet<usize>,
}

impl Conditions<'_> {
    fn constant(&self, expr: &Expr) -> Option<(usize, bool)> {
        let literal = Literal::of(expr)??;
        let constant = self
            .by_text
            .get(&(literal.is_text, literal.spelled.as_ref()))?;
        Some((*constant, literal.is_negative))
    }

    fn compare(&mut self, side: &Expr) {
        match side {
            Expr::Nested(inner) => self.compare(inner),
            Expr::Tuple(sides) => sides.iter().for_each(|side| self.compare(side)),
            side => {
                let found = self.constant(side);
                self.compared.extend(found);
            }
        }
    }

    fn condition(&mut self, condition: &Expr) {
        let mut compared = |expr: &Expr| {
            match expr {
                Expr::BinaryOp { left, op, right } if is_comparison(op) => {
                    self.compare(left);
                    self.compare(right);
                }
                Expr::Between {
                    expr, low, high, ..
                } => {
                    for side in [expr, low, high] {
                        self.compare(side);
                    }
                }
                Expr::InList { expr, list, .. } => {
                    self.compare(expr);
                    list.iter().for_each(|side| self.compare(side));
                }
                _ => {}
            }
            false
        };
        walk::finds(condition, &mut compared);
    }
}

impl Visitor for Conditions<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        for condition in select.selection.iter().chain(&select.having) {
            self.condition(condition);
        }
        for join in select.from.iter().flat_map(|from| &from.joins) {
            if let Some(JoinConstraint::On(condition)) = constraint(&join.join_operator) {
                self.condition(condition);
            }
        }
        if self.labelling == Some(place_of(select)) {
            return ControlFlow::Continue(());
        }
        for item in &select.projection {
            let SelectItem::UnnamedExpr(expr) = item else {
                continue;
            };
            let mut inside = Inside {
                conditions: self,
                found: Vec::new(),
            };
            let _always_continues = walk::read(expr, &mut inside);
            let found = inside.found;
            self.labelled.extend(found);
        }
        ControlFlow::Continue(())
    }
}

/// Finds all constants of an item, in its subqueries too.
struct Inside<'c, 'a> {
    conditions: &'c Conditions<'a>,
    found: Vec<usize>,
}

impl Visitor for Inside<'_, '_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let found = self.conditions.constant(expr);
        self.found.extend(found.map(|(constant, _)| constant));
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use crate::statement::Statement;
    use crate::template::Template;

    fn number(value: i128) -> Literal<'static> {
        Literal::integral(value)
    }

    #[test]
    fn constants_of_one_kind_are_treated_alike() {
        let kind = |text: &'static str| Kind::of(&Literal::text(text));
        assert_eq!(Kind::of(&number(5)), Some(Kind::Integer));
        assert_eq!(Kind::of(&number(-5)), Some(Kind::Negative));
        for none in [
            number(i128::from(i64::MAX)),
            Literal::number("1.5"),
            Literal::number("1e3"),
        ] {
            assert_eq!(Kind::of(&none), None, "{none:?}");
        }
        for (text, expected) in [
            ("abc", Some(Kind::Text)),
            ("12", Some(Kind::QuotedInteger)),
            ("2024-02-29", Some(Kind::Day)),
            ("2024-12-31 23:59:59", Some(Kind::Moment)),
            ("", None),
            ("abc ", None),
            ("012", None),
            ("12a", None),
            ("-1", None),
            ("2023-02-29", None),
            ("0000-00-00", None),
            ("2024-12-31 24:00:00", None),
            ("2024-1-1", None),
            ("%a", None),
        ] {
            assert_eq!(kind(text), expected, "{text}");
        }
    }

    #[test]
    fn stand_ins_are_of_the_kind_of_what_they_stand_for_and_rise_or_fall() {
        let kinds = [
            Kind::Integer,
            Kind::Negative,
            Kind::Text,
            Kind::QuotedInteger,
            Kind::Day,
            Kind::Moment,
        ];
        for kind in kinds {
            for falls in [false, true] {
                let all: Vec<_> = (0..60).map(|place| kind.stand_in(place, falls)).collect();
                assert!(all.iter().all(|of| Kind::of(of) == Some(kind)), "{all:?}");
                let rises = |pair: &[Literal<'_>]| match pair[0].integer() {
                    Some(number) => number < pair[1].integer().unwrap(),
                    None => pair[0].spelled < pair[1].spelled,
                };
                assert!(all.windows(2).all(|pair| rises(pair) != falls), "{all:?}");
            }
        }
    }

    /// The constants of a query that are slots, each with the minus before it.
    fn slots(text: &str) -> Vec<String> {
        let (template, places) = Template::placed(text).unwrap();
        let stand_ins = StandIns::of(&template.constants, |_| true, false).unwrap();
        let replaced = stand_ins.text(text, &places);
        let Ok((Statement::Query(query), _)) = parse::parse(&replaced) else {
            panic!("{replaced} is no query");
        };
        let mut slots = stand_ins.slots(&query);
        slots.sort_by_key(|slot| slot.constant);
        let shown = slots.iter().map(|slot| {
            let sign = if slot.is_negated { "-" } else { "" };
            let constant = template.constants[slot.constant].as_ref().unwrap();
            format!("{sign}{}", &constant.spelled)
        });
        shown.collect()
    }

    #[test]
    fn slots_are_what_conditions_compare() {
        for (query, expected) in [
            ("SELECT a, 1 FROM t WHERE b = 2 AND c > 'x' LIMIT 3", "2 x"),
            (
                "SELECT a FROM t WHERE b BETWEEN 1 AND 2 OR b IN (3, -4) OR (b, c) = (5, 6)",
                "1 2 3 4 5 6",
            ),
            ("SELECT a FROM t WHERE b > - 2 AND 3 <= c", "-2 3"),
            ("SELECT a FROM t WHERE b > -2 AND c <>-3", "2 3"),
            (
                "SELECT a FROM t WHERE b + 1 = 2 AND c LIKE 'x%' AND ABS(3) = 4",
                "2 4",
            ),
            (
                "SELECT a FROM t JOIN u ON t.a = u.a AND u.b = 1 GROUP BY a HAVING COUNT(*) > 2",
                "1 2",
            ),
            (
                "SELECT a FROM t WHERE a IN (SELECT b + 1 FROM u WHERE c = 2)",
                "2",
            ),
            (
                "SELECT (SELECT b FROM u WHERE c = 1) FROM t WHERE a = 2",
                "1 2",
            ),
            (
                "SELECT * FROM (SELECT (SELECT b FROM u WHERE c = 1) FROM t) d WHERE 3 = 2",
                "3 2",
            ),
            (
                "SELECT (SELECT b FROM u WHERE c = 1) AS x FROM t WHERE a = 2",
                "1 2",
            ),
            ("SELECT a = 1 AS x FROM t ORDER BY a = 2", ""),
        ] {
            assert_eq!(slots(query).join(" "), expected, "{query}");
        }
    }

    #[test]
    fn a_slot_has_a_value_where_its_type_has_it_exactly() {
        let slot = |kind, is_negated| Slot {
            constant: 0,
            kind,
            is_negated,
        };
        let value = |number_of: i128, of_type: &DataType| {
            slot(Kind::Integer, false).value(&number(number_of), of_type)
        };
        assert_eq!(
            value(127, &DataType::Int8),
            Some(ScalarValue::Int8(Some(127)))
        );
        assert_eq!(value(128, &DataType::Int8), None);
        let decimal = DataType::Decimal128(5, 2);
        let held = ScalarValue::Decimal128(Some(99_900), 5, 2);
        assert_eq!(value(999, &decimal), Some(held));
        assert_eq!(value(1000, &decimal), None);
        assert_eq!(value((1 << 53) + 1, &DataType::Float64), None);
        assert_eq!(value(5, &DataType::Utf8), None);
        let negated = slot(Kind::Integer, true).value(&number(5), &DataType::Int64);
        assert_eq!(negated, Some(ScalarValue::Int64(Some(-5))));
        let day = slot(Kind::Day, false).value(&Literal::text("1970-01-03"), &DataType::Date32);
        assert_eq!(day, Some(ScalarValue::Date32(Some(2))));
    }
}
