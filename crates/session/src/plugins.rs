//! What MySQL has as plugins.
//!
//! The one list of it: SHOW PLUGINS and INFORMATION_SCHEMA.PLUGINS read it. Nothing can be loaded
//! or unloaded: these are parts of the program.

/// A part of the program that is a plugin in MySQL.
pub(crate) struct Plugin {
    pub(crate) name: &'static str,
    /// What kind of plugin it is, in MySQL's words.
    pub(crate) kind: &'static str,
    /// The version of the interface between MySQL 8.4 and plugins of that kind.
    pub(crate) kind_version: &'static str,
    pub(crate) description: &'static str,
}

/// The version of all of them, which has no third number in MySQL.
pub(crate) const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION_MAJOR"),
    ".",
    env!("CARGO_PKG_VERSION_MINOR")
);

/// The licence of all of them.
pub(crate) const LICENSE: &str = env!("CARGO_PKG_LICENSE");

/// What Mayfly calls its storage engine.
pub(crate) const ENGINE: &str = "Mayfly";

/// What is said of the engine, here and by SHOW ENGINES.
pub(crate) const ENGINE_COMMENT: &str =
    "Temporary tables, transactions, row versions; one space of memory and disk";

/// The plugins, all of them active.
pub(crate) const PLUGINS: [Plugin; 3] = [
    Plugin {
        name: "mysql_native_password",
        kind: "AUTHENTICATION",
        kind_version: "2.1",
        description: "Native MySQL authentication",
    },
    Plugin {
        name: "caching_sha2_password",
        kind: "AUTHENTICATION",
        kind_version: "2.1",
        description: "Caching sha2 authentication",
    },
    Plugin {
        name: ENGINE,
        kind: "STORAGE ENGINE",
        kind_version: "80406.0",
        description: ENGINE_COMMENT,
    },
];
