//! Functions that never warn and never fail.
//!
//! Owns: the list of them, and what they are silent about: a function is on it with the kinds of
//! arguments for which that was read in its body. Never: tells whether arguments are silent.
//!
//! `SUBSTRING(text, 1, 2)` is silent; `SUBSTRING(text, '1x')` warns of its second argument, and
//! `YEAR(text)` of what is no date. What computes numbers may overflow, and what makes a longer
//! text may exceed `max_allowed_packet`: those are not here.
//!
//! The list goes by names, since what calls functions of a plan does not know their types. All
//! functions of MySQL's have one table, so that no other has a name of these.

use std::collections::HashMap;
use std::sync::LazyLock;

use arrow::datatypes::{DataType, Field, TimeUnit};
use mayfly_types::ColumnType;

/// A text of so many characters takes up to 1 KiB, which is the least `max_allowed_packet`.
const SHORT_CHARACTERS: u32 = 256;

/// What a value is to the functions of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A text that is short by the declaration of its column.
    ShortText,
    /// Any other text.
    Text,
    /// A number without a fraction. Not one of 64 bits without a sign: those of BIT are bytes.
    Integer,
    /// A floating-point number.
    Double,
    /// A DATE.
    Day,
    /// A DATETIME or TIMESTAMP.
    Moment,
    /// A TIME.
    Time,
}

use Kind::{Day, Double, Integer, Moment, ShortText, Text, Time};

impl Kind {
    /// The kind of the values of a field.
    pub fn of(field: &Field) -> Option<Kind> {
        match Kind::of_type(field.data_type())? {
            Text if is_short(field) => Some(ShortText),
            kind => Some(kind),
        }
    }

    /// The kind of values of a type of which nothing else is known.
    pub fn of_type(data_type: &DataType) -> Option<Kind> {
        match data_type {
            DataType::Dictionary(_, values) => Kind::of_type(values),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(Text),
            DataType::UInt64 => None,
            number if number.is_integer() => Some(Integer),
            DataType::Float32 | DataType::Float64 => Some(Double),
            DataType::Date32 => Some(Day),
            DataType::Timestamp(TimeUnit::Microsecond, None) => Some(Moment),
            DataType::Duration(TimeUnit::Microsecond) => Some(Time),
            _ => None,
        }
    }
}

fn is_short(field: &Field) -> bool {
    matches!(
        ColumnType::from_arrow(field),
        ColumnType::Char { length } | ColumnType::VarChar { length } if length <= SHORT_CHARACTERS
    )
}

/// What a function of the list answers.
#[derive(Clone, Copy, Debug)]
enum Answer {
    Is(Kind),
    /// A truth value, which is no argument of the functions here.
    Truth,
    /// One of its arguments, which are of one kind.
    Argument,
}

/// A function that is silent about arguments of some kinds.
#[derive(Debug)]
pub struct SilentFunction {
    /// For each argument the kinds that it may have; those behind the last are like the last.
    takes: &'static [&'static [Kind]],
    answer: Answer,
}

impl SilentFunction {
    /// The function of a name, if it is silent about some arguments.
    pub fn named(name: &str) -> Option<&'static SilentFunction> {
        BY_NAME.get(name).copied()
    }

    /// Whether the function itself is silent about arguments of these kinds, whatever computes
    /// them.
    pub fn is_silent(&self, arguments: impl IntoIterator<Item = Option<Kind>>) -> bool {
        let mut first = None;
        arguments.into_iter().enumerate().all(|(place, kind)| {
            let (Some(kind), Some(takes)) = (kind, self.takes.get(place).or(self.takes.last()))
            else {
                return false;
            };
            let is_like_others = match self.answer {
                Answer::Argument => any_length(kind) == any_length(*first.get_or_insert(kind)),
                _ => true,
            };
            takes.contains(&kind) && is_like_others
        })
    }

    /// The kind of what the function answers. `first` tells that of its first argument.
    pub fn answer(&self, first: impl FnOnce() -> Option<Kind>) -> Option<Kind> {
        match self.answer {
            Answer::Is(kind) => Some(kind),
            Answer::Truth => None,
            Answer::Argument => first().map(any_length),
        }
    }
}

/// Of a short text and another one, the one that is chosen may be the other.
fn any_length(kind: Kind) -> Kind {
    match kind {
        ShortText => Text,
        kind => kind,
    }
}

/// Values whose text any function takes.
const TEXTS: &[Kind] = &[ShortText, Text, Integer, Day, Moment];
const ONLY_TEXTS: &[Kind] = &[ShortText, Text];
const INTEGERS: &[Kind] = &[Integer];
const NUMBERS: &[Kind] = &[Integer, Double, Day, Moment];
const DAYS: &[Kind] = &[Day, Moment];
const TIMES: &[Kind] = &[Day, Moment, Time];

const fn silent(takes: &'static [&'static [Kind]], answer: Answer) -> SilentFunction {
    SilentFunction { takes, answer }
}

/// Names that begin with a mark are those that no statement can write.
static FUNCTIONS: &[(&[&str], SilentFunction)] = &[
    // Parts of texts.
    (
        &["left", "right", "substring"],
        silent(&[TEXTS, INTEGERS], Answer::Is(Text)),
    ),
    (
        &["substring_index"],
        silent(&[TEXTS, TEXTS, INTEGERS], Answer::Is(Text)),
    ),
    (
        &[
            "trim",
            "ltrim",
            "rtrim",
            "\u{1}trim_leading",
            "\u{1}trim_trailing",
        ],
        silent(&[TEXTS], Answer::Is(Text)),
    ),
    (&["elt"], silent(&[INTEGERS, TEXTS], Answer::Is(Text))),
    // One character for each: nothing that is short becomes long.
    (
        &["upper", "lower", "reverse"],
        silent(&[&[ShortText]], Answer::Is(ShortText)),
    ),
    // Numbers of texts.
    (
        &["length", "bit_length", "char_length", "ascii", "ord"],
        silent(&[TEXTS], Answer::Is(Integer)),
    ),
    (
        &["instr", "find_in_set", "strcmp"],
        silent(&[TEXTS], Answer::Is(Integer)),
    ),
    (
        &["locate"],
        silent(&[TEXTS, TEXTS, INTEGERS], Answer::Is(Integer)),
    ),
    // Others than texts are compared as numbers.
    (&["field"], silent(&[ONLY_TEXTS], Answer::Is(Integer))),
    (&["\u{1}like"], silent(&[TEXTS], Answer::Truth)),
    // Parts of days and times.
    (
        &[
            "year",
            "month",
            "day",
            "quarter",
            "dayofweek",
            "weekday",
            "dayofyear",
            "weekofyear",
            "to_days",
            "to_seconds",
        ],
        silent(&[DAYS], Answer::Is(Integer)),
    ),
    (
        &["week", "yearweek"],
        silent(&[DAYS, INTEGERS], Answer::Is(Integer)),
    ),
    (&["dayname", "monthname"], silent(&[DAYS], Answer::Is(Text))),
    (&["datediff"], silent(&[DAYS], Answer::Is(Integer))),
    (&["date", "last_day"], silent(&[DAYS], Answer::Is(Day))),
    (
        &["hour", "minute", "second", "microsecond", "time_to_sec"],
        silent(&[TIMES], Answer::Is(Integer)),
    ),
    // The grammar writes the name of the unit.
    (
        &["extract"],
        silent(&[ONLY_TEXTS, TIMES], Answer::Is(Integer)),
    ),
    // Numbers. Those of BIGINT may have no absolute value.
    (
        &["abs", "ceil", "floor"],
        silent(&[&[Double]], Answer::Is(Double)),
    ),
    (
        &["sign"],
        silent(&[&[Integer, Double]], Answer::Is(Integer)),
    ),
    (&["\u{1}to_boolean"], silent(&[NUMBERS], Answer::Truth)),
    (&["\u{1}to_double"], silent(&[NUMBERS], Answer::Is(Double))),
    (
        &["\u{1}to_number"],
        silent(&[INTEGERS], Answer::Is(Integer)),
    ),
    // The type of integers together holds each of them, and so does that of texts.
    (
        &["coalesce", "ifnull"],
        silent(&[&[ShortText, Text, Integer]], Answer::Argument),
    ),
];

/// Aggregates that never warn, whatever they add up. `GROUP_CONCAT` warns of what it cuts off.
const AGGREGATES: &[&str] = &[
    "count",
    "sum",
    "min",
    "max",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "any_value",
    "first_value",
];

/// Whether an aggregate never warns.
pub(super) fn is_silent_aggregate(name: &str) -> bool {
    AGGREGATES.contains(&name)
}

static BY_NAME: LazyLock<HashMap<&str, &SilentFunction>> = LazyLock::new(|| {
    let functions = FUNCTIONS.iter();
    functions
        .flat_map(|(names, function)| names.iter().map(move |name| (*name, function)))
        .collect()
});

/// The names of all functions of the list.
pub fn silent_names() -> impl Iterator<Item = &'static str> {
    BY_NAME.keys().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_silent(name: &str, kinds: &[Kind]) -> bool {
        let function = SilentFunction::named(name);
        let kinds = kinds.iter().copied().map(Some);
        function.is_some_and(|function| function.is_silent(kinds))
    }

    #[test]
    fn functions_are_silent_about_some_kinds_of_arguments() {
        for (name, kinds) in [
            ("substring", &[Text, Integer, Integer] as &[Kind]),
            ("substring", &[Day, Integer]),
            ("upper", &[ShortText]),
            ("locate", &[Text, ShortText, Integer]),
            ("year", &[Day]),
            ("week", &[Moment, Integer]),
            ("hour", &[Time]),
            ("extract", &[Text, Moment]),
            ("abs", &[Double]),
            ("coalesce", &[Text, ShortText, Text]),
            ("ifnull", &[Integer, Integer]),
        ] {
            assert!(is_silent(name, kinds), "{name} {kinds:?}");
        }
        for (name, kinds) in [
            ("substring", &[Text, Text] as &[Kind]),
            ("substring", &[Text, Integer, Double]),
            ("upper", &[Text]),
            ("concat", &[ShortText]),
            ("year", &[Text]),
            ("year", &[Time]),
            ("abs", &[Integer]),
            ("field", &[Text, Integer]),
            ("coalesce", &[Integer, Text]),
            ("/", &[Double, Double]),
        ] {
            assert!(!is_silent(name, kinds), "{name} {kinds:?}");
        }
        // Nothing is known of an argument.
        let year = SilentFunction::named("year").unwrap();
        assert!(!year.is_silent([None]));
    }

    #[test]
    fn what_a_function_answers_is_of_a_kind() {
        let answer = |name: &str, first: Kind| {
            let function = SilentFunction::named(name).unwrap();
            function.answer(|| Some(first))
        };
        assert_eq!(answer("year", Day), Some(Integer));
        assert_eq!(answer("left", ShortText), Some(Text));
        assert_eq!(answer("lower", ShortText), Some(ShortText));
        assert_eq!(answer("coalesce", ShortText), Some(Text));
        assert_eq!(answer("ifnull", Integer), Some(Integer));
        assert_eq!(answer("\u{1}like", Text), None);
    }

    #[test]
    fn values_are_of_a_kind_by_their_type() {
        let of = |declared: &str| {
            let of: ColumnType = declared.parse().unwrap();
            Kind::of(&of.to_arrow("a", true))
        };
        for (declared, expected) in [
            ("varchar(256)", Some(ShortText)),
            ("varchar(257)", Some(Text)),
            ("char(3)", Some(ShortText)),
            ("text", Some(Text)),
            ("int", Some(Integer)),
            ("bigint", Some(Integer)),
            ("year", Some(Integer)),
            ("bit(8)", None),
            ("bigint unsigned", None),
            ("double", Some(Double)),
            ("decimal(5,2)", None),
            ("date", Some(Day)),
            ("datetime(3)", Some(Moment)),
            ("time", Some(Time)),
            ("varbinary(3)", None),
        ] {
            assert_eq!(of(declared), expected, "{declared}");
        }
        let words = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
        assert_eq!(Kind::of_type(&words), Some(Text));
    }
}
