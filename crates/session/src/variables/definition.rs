//! How a system variable is defined.

/// Where a variable lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Where {
    /// The engine has a value, each session a copy of its own.
    Both,
    /// Only the engine.
    Global,
    /// Only the session.
    Session,
}

/// What values a variable takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// ON or OFF.
    Switch,
    /// OFF: what ON would do is not done.
    Off,
    /// A number from `least` to `most`, rounded down to a multiple of `block`.
    Number { least: u64, most: u64, block: u64 },
    /// Seconds with a fraction.
    Fraction,
    /// Any text.
    Text,
    /// One of some words.
    Word(&'static [&'static str]),
    /// `sql_mode`.
    SqlMode,
    /// Names of variables, or `*` for all of them.
    VariableNames,
    /// A character set.
    CharacterSet,
    /// A collation.
    Collation,
    /// `optimizer_switch`: flags that are remembered.
    Flags,
    /// A time zone: SYSTEM, UTC or an offset.
    TimeZone,
    /// The name of a locale; `of_english`: one in which days and months have English names.
    Locale { of_english: bool },
    /// Identifiers of transactions; with `+` in front they are added.
    GtidSet,
}

/// One variable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    pub(crate) place: Where,
    pub(crate) kind: Kind,
    pub(crate) default: &'static str,
    pub(crate) read_only: bool,
}

pub(super) const fn new(
    name: &'static str,
    place: Where,
    kind: Kind,
    default: &'static str,
    read_only: bool,
) -> Definition {
    Definition {
        name,
        place,
        kind,
        default,
        read_only,
    }
}

/// Session and global, may be set.
pub(super) const fn both(name: &'static str, kind: Kind, default: &'static str) -> Definition {
    new(name, Where::Both, kind, default, false)
}

/// Global, may be set.
pub(super) const fn global(name: &'static str, kind: Kind, default: &'static str) -> Definition {
    new(name, Where::Global, kind, default, false)
}

/// Global, fixed when the engine starts.
pub(super) const fn fixed(name: &'static str, default: &'static str) -> Definition {
    new(name, Where::Global, Kind::Text, default, true)
}

pub(super) const fn fixed_number(name: &'static str, default: &'static str) -> Definition {
    new(name, Where::Global, ANY, default, true)
}

pub(super) const fn fixed_switch(name: &'static str, default: &'static str) -> Definition {
    new(name, Where::Global, Kind::Switch, default, true)
}

pub(super) const fn from(least: u64, block: u64) -> Kind {
    Kind::Number {
        least,
        most: u64::MAX,
        block,
    }
}

pub(super) const fn range(least: u64, most: u64) -> Kind {
    Kind::Number {
        least,
        most,
        block: 1,
    }
}

pub(super) const ANY: Kind = from(0, 1);
pub(super) const SIZE_32: Kind = range(0, u32::MAX as u64);

pub(super) const ENGINE: Kind = Kind::Word(&[
    "Mayfly",
    "InnoDB",
    "MEMORY",
    "MyISAM",
    "Aria",
    "TempTable",
    "CSV",
]);
