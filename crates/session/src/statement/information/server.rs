//! What the server is and knows: its words, character sets, engines, plugins, variables, counters.
//!
//! Most of it is what SHOW says, under other names.

use mayfly_sql::parse;
use mayfly_sql::statement::Scope;

use super::super::Job;
use super::super::show::server;
use crate::listing::{Listing, some};
use crate::plugins::{self, PLUGINS};

pub(super) fn keywords(_: &Job) -> Listing {
    let mut listing = Listing::declared("WORD varchar(128), RESERVED int");
    for (word, is_reserved) in parse::keywords() {
        listing.push(vec![some(word), some(u8::from(is_reserved))]);
    }
    listing
}

pub(super) fn character_sets(_: &Job) -> Listing {
    server::character_sets().renamed(&[
        ("CHARACTER_SET_NAME", "Charset"),
        ("DEFAULT_COLLATE_NAME", "Default collation"),
        ("DESCRIPTION", "Description"),
        ("MAXLEN", "Maxlen"),
    ])
}

pub(super) fn collations(_: &Job) -> Listing {
    server::collations().renamed(&[
        ("COLLATION_NAME", "Collation"),
        ("CHARACTER_SET_NAME", "Charset"),
        ("ID", "Id"),
        ("IS_DEFAULT", "Default"),
        ("IS_COMPILED", "Compiled"),
        ("SORTLEN", "Sortlen"),
        ("PAD_ATTRIBUTE", "Pad_attribute"),
    ])
}

/// COLLATION_CHARACTER_SET_APPLICABILITY, with the columns of MariaDB.
pub(super) fn applicability(_: &Job) -> Listing {
    server::collations().renamed(&[
        ("COLLATION_NAME", "Collation"),
        ("CHARACTER_SET_NAME", "Charset"),
        ("FULL_COLLATION_NAME", "Collation"),
        ("ID", "Id"),
        ("IS_DEFAULT", "Default"),
    ])
}

pub(super) fn engines(_: &Job) -> Listing {
    server::engines().renamed(&[
        ("ENGINE", "Engine"),
        ("SUPPORT", "Support"),
        ("COMMENT", "Comment"),
        ("TRANSACTIONS", "Transactions"),
        ("XA", "XA"),
        ("SAVEPOINTS", "Savepoints"),
    ])
}

/// PLUGINS, with the columns of MariaDB.
pub(super) fn plugins(_: &Job) -> Listing {
    let mut listing = Listing::declared(
        "PLUGIN_NAME varchar(64), PLUGIN_VERSION varchar(20), PLUGIN_STATUS varchar(10), \
         PLUGIN_TYPE varchar(80), PLUGIN_TYPE_VERSION varchar(20), PLUGIN_LIBRARY varchar(64), \
         PLUGIN_LIBRARY_VERSION varchar(20), PLUGIN_AUTHOR varchar(64), \
         PLUGIN_DESCRIPTION longtext, PLUGIN_LICENSE varchar(80), LOAD_OPTION varchar(64), \
         PLUGIN_MATURITY varchar(12), PLUGIN_AUTH_VERSION varchar(80)",
    );
    for plugin in PLUGINS {
        listing.push(vec![
            some(plugin.name),
            some(plugins::VERSION),
            some("ACTIVE"),
            some(plugin.kind),
            some(plugin.kind_version),
            None,
            None,
            some("Mayfly"),
            some(plugin.description),
            some(plugins::LICENSE),
            some("FORCE"),
            some("Stable"),
            some(plugins::VERSION),
        ]);
    }
    listing
}

pub(super) fn global_status(job: &Job) -> Listing {
    values(&job.list_status(Scope::Global))
}

pub(super) fn session_status(job: &Job) -> Listing {
    values(&job.list_status(Scope::Session))
}

pub(super) fn global_variables(job: &Job) -> Listing {
    values(&job.list_variables(Scope::Global))
}

pub(super) fn session_variables(job: &Job) -> Listing {
    values(&job.list_variables(Scope::Session))
}

/// What SHOW STATUS or SHOW VARIABLES says, with its names: texts compare by their bytes here, and
/// tools write those.
fn values(shown: &Listing) -> Listing {
    let columns = [
        ("VARIABLE_NAME", "Variable_name"),
        ("VARIABLE_VALUE", "Value"),
    ];
    shown.renamed(&columns)
}
