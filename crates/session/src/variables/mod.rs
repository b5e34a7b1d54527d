//! System and user variables.
//!
//! Owns the values of one scope: the engine has one set, each session a copy. Never acts on a
//! value; who needs one reads it when it is needed.

mod accepted;
mod catalog;
mod definition;
mod gtid;
mod versions;

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::scalar::ScalarValue;
use mayfly_sql::statement::Scope;
use mayfly_types::{CharacterSet, ErrorCode, Level, MySqlError, Warning};

pub(crate) use catalog::{all, find};
pub(crate) use definition::{Definition, Kind, Where};
use versions::Versions;

/// Values of system variables that differ from their defaults.
#[derive(Debug, Clone, Default)]
pub(crate) struct Variables {
    values: BTreeMap<&'static str, String>,
    version: u64,
    versions: Arc<Versions>,
}

impl Variables {
    /// The text of a variable; `name` is in lower case and in the catalog.
    pub(crate) fn text(&self, name: &str) -> String {
        let name = stored_name(name);
        match self.values.get(name) {
            Some(value) => value.clone(),
            None => find(name).map_or_else(String::new, |found| found.default.to_owned()),
        }
    }

    /// Whether a variable differs from its default.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.values.contains_key(stored_name(name))
    }

    /// The number of a variable.
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or(0)
    }

    /// How long a statement waits for its tables. InnoDB's limit counts where it was set: by its
    /// default of 50 s, which is meant for rows, whoever waits for a long LOAD DATA would fail.
    pub(crate) fn lock_wait_seconds(&self) -> u64 {
        let seconds = self.number("lock_wait_timeout");
        match self.is_set("innodb_lock_wait_timeout") {
            true => seconds.min(self.number("innodb_lock_wait_timeout")),
            false => seconds,
        }
    }

    /// The bytes of a quota; 0 is none.
    pub(crate) fn quota(&self, name: &str) -> Option<u64> {
        Some(self.number(name)).filter(|bytes| *bytes > 0)
    }

    /// The longest record of a text file.
    pub(crate) fn record_bytes_max(&self) -> usize {
        usize::try_from(self.number("mayfly_max_record_bytes")).unwrap_or(usize::MAX)
    }

    /// Whether a switch is on.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.text(name) == "ON"
    }

    /// Whether `sql_mode` has this mode.
    pub(crate) fn has_mode(&self, mode: &str) -> bool {
        self.text("sql_mode").split(',').any(|each| each == mode)
    }

    /// Whether bad values are errors.
    pub(crate) fn is_strict(&self) -> bool {
        self.has_mode("STRICT_TRANS_TABLES") || self.has_mode("STRICT_ALL_TABLES")
    }

    /// Puts a value that has been checked, or that the engine knows.
    pub(crate) fn put(&mut self, name: &str, value: String) {
        if let Some(definition) = find(stored_name(name)) {
            match value == definition.default {
                true => self.values.remove(definition.name),
                false => self.values.insert(definition.name, value),
            };
            self.version = self.versions.of(&self.values);
        }
    }

    /// The values of a session that begins: those of its own that the engine's variables differ in.
    pub(crate) fn of_session(globals: &Variables) -> Variables {
        let is_of_sessions = |(name, _): &(&&'static str, &String)| {
            find(name).is_some_and(|found| found.place == Where::Both)
        };
        let values = globals.values.iter().filter(is_of_sessions);
        let values = values.map(|(name, value)| (*name, value.clone())).collect();
        Variables {
            version: globals.versions.of(&values),
            values,
            versions: Arc::clone(&globals.versions),
        }
    }

    /// A number that no other values have, of whatever session of the engine.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }
}

/// The name under which a variable is kept.
pub(crate) fn stored_name(name: &str) -> &str {
    catalog::ALIASES
        .iter()
        .find(|(alias, _)| *alias == name)
        .map_or(name, |(_, stored)| stored)
}

/// The value of a variable as an expression sees it.
pub(crate) fn as_scalar(definition: &Definition, text: &str) -> ScalarValue {
    match definition.kind {
        Kind::Switch | Kind::Off => ScalarValue::Int64(Some(i64::from(text == "ON"))),
        Kind::Number { .. } => match text.parse::<u64>() {
            Ok(number) => match i64::try_from(number) {
                Ok(number) => ScalarValue::Int64(Some(number)),
                Err(_) => ScalarValue::UInt64(Some(number)),
            },
            Err(_) => ScalarValue::Null,
        },
        Kind::Fraction => ScalarValue::Float64(text.parse().ok()),
        Kind::CharacterSet if text.is_empty() => ScalarValue::Utf8(None),
        _ => ScalarValue::Utf8(Some(text.to_owned())),
    }
}

/// Checks that a variable may be set in a scope.
pub(crate) fn check_scope(definition: &Definition, scope: Scope) -> Result<(), MySqlError> {
    let name = definition.name;
    if definition.read_only {
        return Err(MySqlError::new(
            ErrorCode::ReadOnlyVariable,
            &[&name, &"read only"],
        ));
    }
    match (definition.place, scope) {
        (Where::Session, Scope::Global | Scope::Persist) => {
            Err(MySqlError::new(ErrorCode::LocalVariable, &[&name]))
        }
        (Where::Global, Scope::Session) => {
            Err(MySqlError::new(ErrorCode::GlobalVariable, &[&name]))
        }
        _ => Ok(()),
    }
}

/// Checks a value and gives it the form in which it is kept.
pub(crate) fn check(
    definition: &Definition,
    value: &ScalarValue,
    current: &str,
    warnings: &mut Vec<Warning>,
) -> Result<String, MySqlError> {
    let wrong_value = || {
        let shown = show(value);
        MySqlError::new(
            ErrorCode::WrongValueForVariable,
            &[&definition.name, &shown],
        )
    };
    let wrong_type = || MySqlError::new(ErrorCode::WrongTypeForVariable, &[&definition.name]);
    match definition.kind {
        Kind::Switch => switch(value).ok_or_else(wrong_value),
        Kind::Off => switch(value)
            .filter(|asked| asked == "OFF")
            .ok_or_else(wrong_value),
        Kind::Locale { of_english } => locale(definition.name, value, of_english),
        Kind::GtidSet => {
            gtid::set(&text(value).ok_or_else(wrong_value)?, current).ok_or_else(wrong_value)
        }
        Kind::Number { least, most, block } => {
            let asked = integer(value).ok_or_else(wrong_type)?;
            let kept = bounded(asked, least, most, block);
            if i128::from(kept) != asked {
                let code = ErrorCode::TruncatedValue;
                warnings.push(Warning::new(code, &[&definition.name, &asked]));
            }
            Ok(kept.to_string())
        }
        Kind::Fraction => {
            let number = match value {
                ScalarValue::Float64(Some(number)) => *number,
                ScalarValue::Decimal128(Some(number), _, scale) => {
                    *number as f64 / 10_f64.powi(i32::from(*scale))
                }
                other => integer(other).ok_or_else(wrong_type)? as f64,
            };
            Ok(format!("{number:.6}"))
        }
        Kind::Text if definition.name == "log_slow_verbosity" => {
            let words = text(value).ok_or_else(wrong_value)?;
            let is_known = |word: &str| {
                let word = word.trim().to_ascii_lowercase();
                catalog::SLOW_VERBOSITY.contains(&word.as_str())
            };
            match words.split(',').all(is_known) {
                true => Ok(words),
                false => Err(wrong_value()),
            }
        }
        Kind::Text => Ok(text(value).unwrap_or_else(|| show(value))),
        Kind::Word(words) => {
            let number = integer(value);
            let word = text(value)
                .or_else(|| number.map(|number| number.to_string()))
                .ok_or_else(wrong_value)?;
            // The number of a word, where no word is spelled so.
            let place = number.and_then(|number| words.get(usize::try_from(number).ok()?));
            words
                .iter()
                .find(|known| known.eq_ignore_ascii_case(&word))
                .or(place)
                .map(|known| (*known).to_owned())
                .ok_or_else(wrong_value)
        }
        Kind::SqlMode => match value {
            ScalarValue::Int64(Some(bits)) => {
                let bits = u64::try_from(*bits).map_err(|_| wrong_value())?;
                sql_mode(&modes_of(bits).ok_or_else(wrong_value)?)
            }
            value => sql_mode(&text(value).ok_or_else(wrong_value)?),
        },
        Kind::VariableNames => {
            let names = text(value).ok_or_else(wrong_value)?;
            for name in names.split(',').map(str::trim) {
                let is_known =
                    ["", "*"].contains(&name) || find(&name.to_ascii_lowercase()).is_some();
                if !is_known {
                    let message =
                        format!("{name} is not a valid system variable and will be ignored.");
                    warnings.push(Warning {
                        level: Level::Warning,
                        error: MySqlError::with_message(ErrorCode::WrongValueForVariable, message),
                    });
                }
            }
            Ok(names)
        }
        Kind::CharacterSet => {
            // NULL is the absence of any conversion.
            if value.is_null() && definition.name == "character_set_results" {
                return Ok(String::new());
            }
            character_set(definition.name, value).map(|set| set.name().to_owned())
        }
        Kind::Collation => collation(value).ok_or_else(wrong_value)?,
        Kind::Flags => flags(&text(value).ok_or_else(wrong_value)?, current, definition),
        Kind::TimeZone => {
            let zone = text(value).ok_or_else(wrong_value)?;
            time_zone_seconds(&zone)
                .map(|_| zone.clone())
                .ok_or_else(|| MySqlError::new(ErrorCode::UnknownTimeZone, &[&zone]))
        }
    }
}

/// ON or OFF, as a switch is set to it; `None` for another value.
fn switch(value: &ScalarValue) -> Option<String> {
    let is_on = match (integer(value), text(value)) {
        (Some(0), _) => false,
        (Some(1), _) => true,
        (None, Some(word)) => match word.to_ascii_uppercase().as_str() {
            "ON" | "TRUE" => true,
            "OFF" | "FALSE" => false,
            _ => return None,
        },
        _ => return None,
    };
    Some(if is_on { "ON" } else { "OFF" }.to_owned())
}

/// The nearest number that a variable takes.
fn bounded(asked: i128, least: u64, most: u64, block: u64) -> u64 {
    let bounded = u64::try_from(asked.max(0))
        .unwrap_or(u64::MAX)
        .clamp(least, most);
    let kept = match bounded {
        u64::MAX => bounded,
        _ => bounded / block * block,
    };
    kept.max(least)
}

/// The locale that a variable is set to. Messages are English whatever it is; names of days and
/// months are, so that a variable which chooses them takes no locale that has others.
fn locale(
    variable: &'static str,
    value: &ScalarValue,
    of_english: bool,
) -> Result<String, MySqlError> {
    let mut locales = accepted::LOCALES.split(' ');
    let name = match (integer(value), text(value)) {
        (Some(number), _) => usize::try_from(number)
            .ok()
            .and_then(|number| locales.clone().nth(number))
            .map_or_else(|| number.to_string(), str::to_owned),
        (None, Some(name)) => name,
        (None, None) => {
            let code = ErrorCode::WrongValueForVariable;
            return Err(MySqlError::new(code, &[&variable, &show(value)]));
        }
    };
    let found = locales.find(|locale| locale.eq_ignore_ascii_case(&name));
    let unknown = || MySqlError::new(ErrorCode::UnknownLocale, &[&name]);
    let locale = found.ok_or_else(unknown)?;
    if of_english && !locale.starts_with("en_") {
        let what = format!("{variable} {locale}");
        return Err(MySqlError::new(ErrorCode::NotSupportedYet, &[&what]));
    }
    Ok(locale.to_owned())
}

/// The character set that a variable is set to: by its name, or by the number of a collation.
fn character_set(name: &'static str, value: &ScalarValue) -> Result<CharacterSet, MySqlError> {
    if let Some(id) = integer(value) {
        let of_id = u16::try_from(id).ok().map(CharacterSet::of_collation_id);
        let of_id = of_id.and_then(Result::ok).flatten();
        let unknown = || MySqlError::new(ErrorCode::UnknownCharacterSet, &[&id]);
        return of_id.map(|(set, _)| set).ok_or_else(unknown);
    }
    match text(value) {
        Some(word) if name == "character_set_client" => CharacterSet::parse_of_client(&word),
        Some(word) => CharacterSet::parse(&word),
        None => {
            let code = ErrorCode::WrongValueForVariable;
            Err(MySqlError::new(code, &[&name, &show(value)]))
        }
    }
}

/// Clients name their default collation when they connect, so that every collation of the sets
/// that are served is accepted for a connection; comparison stays by code point.
fn collation(value: &ScalarValue) -> Option<Result<String, MySqlError>> {
    if let Some(id) = integer(value) {
        let of_id = u16::try_from(id).ok().map(CharacterSet::of_collation_id);
        let of_id = of_id.and_then(Result::ok).flatten();
        let unknown = || MySqlError::new(ErrorCode::UnknownCollation, &[&id]);
        return Some(of_id.map(|(_, name)| name.to_owned()).ok_or_else(unknown));
    }
    let name = text(value)?.to_ascii_lowercase();
    let unknown = |_| MySqlError::new(ErrorCode::UnknownCollation, &[&name]);
    let set = CharacterSet::of_collation(&name).map_err(unknown);
    Some(set.map(|_| name))
}

/// The variables that come in pairs: a character set, and a collation of it.
const PAIRS: [(&str, &str); 3] = [
    ("character_set_connection", "collation_connection"),
    ("character_set_database", "collation_database"),
    ("character_set_server", "collation_server"),
];

impl Variables {
    /// Puts a value that has been checked, and what follows from it: a collation has a character
    /// set, and a character set a collation that it means.
    pub(crate) fn put_with_pair(&mut self, name: &str, value: String) {
        if let Some((_, of_set)) = PAIRS.iter().find(|(set, _)| *set == name)
            && let Ok(set) = CharacterSet::parse(&value)
        {
            self.put(of_set, set.default_collation().to_owned());
        }
        if let Some((set, _)) = PAIRS.iter().find(|(_, collation)| *collation == name)
            && let Ok(of_collation) = CharacterSet::of_collation(&value)
        {
            self.put(set, of_collation.name().to_owned());
        }
        self.put(name, value);
    }

    /// What SET NAMES does. Variables that have their value already stay untouched.
    pub(crate) fn set_names(&mut self, set: CharacterSet, collation: &str) {
        for (name, value) in [
            ("character_set_client", set.name()),
            ("character_set_results", set.name()),
            ("character_set_connection", set.name()),
            ("collation_connection", collation),
        ] {
            if self.text(name) != value {
                self.put(name, value.to_owned());
            }
        }
    }

    /// The character set of what a client sends.
    pub(crate) fn client_set(&self) -> CharacterSet {
        CharacterSet::parse(&self.text("character_set_client")).unwrap_or_default()
    }

    /// The character set of what a client reads, and the collation that it is told of; `None` if
    /// nothing is converted.
    pub(crate) fn results_set(&self) -> Option<(CharacterSet, u16)> {
        let set = CharacterSet::parse(&self.text("character_set_results")).ok()?;
        let collation = self.text("collation_connection");
        // The one that SET NAMES or the login named with it.
        let id = match CharacterSet::of_collation(&collation) {
            Ok(of_collation) if of_collation == set => set.collation_id(&collation),
            _ => set.default_collation_id(),
        };
        Some((set, id))
    }
}

/// The modes of a number, which has a bit for each; `None` for bits that mean none.
fn modes_of(bits: u64) -> Option<String> {
    let mut rest = bits;
    let mut modes = Vec::new();
    for (bit, mode) in catalog::MODE_BITS {
        if rest & (1 << bit) != 0 {
            modes.push(*mode);
            rest &= !(1 << bit);
        }
    }
    (rest == 0).then(|| modes.join(","))
}

fn sql_mode(text: &str) -> Result<String, MySqlError> {
    let mut modes: Vec<&str> = Vec::new();
    for word in text
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
    {
        let upper = word.to_ascii_uppercase();
        if catalog::REFUSED_MODES.contains(&upper.as_str()) {
            let what = format!("sql_mode {upper}");
            return Err(MySqlError::new(ErrorCode::NotSupportedYet, &[&what]));
        }
        let Some(known) = catalog::SQL_MODES.iter().find(|known| **known == upper) else {
            let code = ErrorCode::WrongValueForVariable;
            return Err(MySqlError::new(code, &[&"sql_mode", &word]));
        };
        if !modes.contains(known) {
            modes.push(known);
        }
    }
    for (combined, parts) in catalog::COMBINED_MODES {
        if modes.contains(combined) {
            let missing = parts.iter().filter(|part| !modes.contains(part));
            let missing: Vec<&str> = missing.copied().collect();
            modes.extend(missing);
        }
    }
    modes.sort_by_key(|mode| catalog::SQL_MODES.iter().position(|known| known == mode));
    Ok(modes.join(","))
}

fn flags(text: &str, current: &str, definition: &Definition) -> Result<String, MySqlError> {
    let mut flags: Vec<(String, String)> = current
        .split(',')
        .filter_map(|flag| flag.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    for flag in text
        .split(',')
        .map(str::trim)
        .filter(|flag| !flag.is_empty())
    {
        if flag == "default" {
            continue;
        }
        let wrong =
            || MySqlError::new(ErrorCode::WrongValueForVariable, &[&definition.name, &flag]);
        let (name, value) = flag.split_once('=').ok_or_else(wrong)?;
        if !["on", "off", "default"].contains(&value) {
            return Err(wrong());
        }
        match flags.iter_mut().find(|(known, _)| known == name) {
            Some((_, kept)) => *kept = value.to_owned(),
            None if catalog::OTHER_FLAGS.split(',').any(|known| known == name) => {
                flags.push((name.to_owned(), value.to_owned()));
            }
            None => return Err(wrong()),
        }
    }
    Ok(flags
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect::<Vec<_>>()
        .join(","))
}

/// The offset of a time zone from UTC; the system's zone is UTC.
pub(crate) fn time_zone_seconds(zone: &str) -> Option<i32> {
    if ["SYSTEM", "UTC", "GMT"]
        .iter()
        .any(|name| zone.eq_ignore_ascii_case(name))
    {
        return Some(0);
    }
    let (sign, rest) = match zone.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    let seconds = sign * (hours * 3600 + minutes * 60);
    // MySQL's range is not the same on both sides.
    let range = -(14 * 3600 - 60)..=14 * 3600;
    ((0..60).contains(&minutes) && hours >= 0 && range.contains(&seconds)).then_some(seconds)
}

fn integer(value: &ScalarValue) -> Option<i128> {
    Some(match value {
        ScalarValue::Int8(Some(number)) => i128::from(*number),
        ScalarValue::Int16(Some(number)) => i128::from(*number),
        ScalarValue::Int32(Some(number)) => i128::from(*number),
        ScalarValue::Int64(Some(number)) => i128::from(*number),
        ScalarValue::UInt8(Some(number)) => i128::from(*number),
        ScalarValue::UInt16(Some(number)) => i128::from(*number),
        ScalarValue::UInt32(Some(number)) => i128::from(*number),
        ScalarValue::UInt64(Some(number)) => i128::from(*number),
        ScalarValue::Decimal128(Some(number), _, 0) => *number,
        ScalarValue::Boolean(Some(truth)) => i128::from(*truth),
        _ => return None,
    })
}

fn text(value: &ScalarValue) -> Option<String> {
    match value {
        ScalarValue::Utf8(text) | ScalarValue::Utf8View(text) | ScalarValue::LargeUtf8(text) => {
            text.clone()
        }
        _ => None,
    }
}

fn show(value: &ScalarValue) -> String {
    if value.is_null() {
        "NULL".to_owned()
    } else {
        value.to_string()
    }
}
