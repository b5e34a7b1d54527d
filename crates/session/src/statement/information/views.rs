//! VIEWS.

use std::sync::Arc;

use mayfly_sql::statement::TableName;
use mayfly_sql::updatable_view::Updatability;
use mayfly_table::View;

use super::super::Job;
use super::system::CATALOG;
use crate::listing::{Listing, some};

pub(super) fn views(job: &Job) -> Listing {
    let mut listing = Listing::declared(
        "TABLE_CATALOG varchar(64), TABLE_SCHEMA varchar(64), TABLE_NAME varchar(64), \
         VIEW_DEFINITION longtext, CHECK_OPTION varchar(8), IS_UPDATABLE varchar(3), \
         DEFINER varchar(288), SECURITY_TYPE varchar(7), CHARACTER_SET_CLIENT varchar(64), \
         COLLATION_CONNECTION varchar(64)",
    );
    for (database, view) in all_views(job) {
        let check = view
            .check
            .map_or("NONE".to_owned(), |check| check.to_string());
        let (user, host) = &view.definer;
        listing.push(vec![
            some(CATALOG),
            some(&database),
            some(&view.name),
            job.reads_as_written(&view).then(|| view.query.clone()),
            Some(check),
            some(is_updatable(job, &database, &view)),
            Some(format!("{user}@{host}")),
            some(view.security),
            some(&view.character_set_client),
            some(&view.collation_connection),
        ]);
    }
    listing
}

/// Whether rows can change through a view: one that shows columns of a table as they are, which is
/// none of the server's own.
fn is_updatable(job: &Job, database: &str, view: &View) -> &'static str {
    match job.updatability(database, view) {
        Ok(Updatability::OneTable(base))
            if base.shown().next().is_some() && !is_system(&base.table) =>
        {
            "YES"
        }
        _ => "NO",
    }
}

fn is_system(table: &TableName) -> bool {
    let database = table.database.as_deref().unwrap_or_default();
    database.eq_ignore_ascii_case("information_schema")
}

/// All views with their databases.
pub(super) fn all_views(job: &Job) -> Vec<(String, Arc<View>)> {
    let dictionary = &job.connection.engine.shared().dictionary;
    let databases = dictionary.databases().into_iter();
    let views = databases.flat_map(|database| {
        let views = dictionary.views(&database).into_iter();
        views
            .map(move |view| (database.clone(), view))
            .collect::<Vec<_>>()
    });
    views.collect()
}
