//! The text of a view, read again, and what its names mean: tables and views that all sessions
//! share.
//!
//! **Never** looks at temporary tables: those of a session do not hide what a view names.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::Query;
use mayfly_sql::bindings::{Bindings, BoundTable, BoundView};
use mayfly_sql::file_name::FileName;
use mayfly_sql::references::References;
use mayfly_sql::source::Source;
use mayfly_sql::statement::TableName;
use mayfly_sql::view::ViewParts;
use mayfly_table::{View, ViewAlgorithm};
use mayfly_types::{ErrorCode, MySqlError};

use super::super::Job;
use super::super::bound_table::bind_table;
use super::text::read;
use crate::lowered;

/// How many views may stand in one another: the planner begins anew in each.
pub(super) const DEPTH_MAX: usize = 60;

/// The views of a statement.
#[derive(Default)]
pub(crate) struct BoundViews {
    /// Those around the one that is being bound, the innermost last.
    around: Vec<(String, String)>,
    /// Each is bound once, however many others name it.
    known: HashMap<(String, String), BoundTable>,
    /// Whether nobody reads their rows.
    only_columns: bool,
}

impl BoundViews {
    /// Those in a view that is looked at, and whose rows nobody reads.
    pub(super) fn inside(database: &str, view: &str) -> BoundViews {
        BoundViews {
            around: vec![(database.to_owned(), view.to_owned())],
            known: HashMap::new(),
            only_columns: true,
        }
    }
}

/// What gives the text of a view its meaning.
pub(super) struct Scope {
    /// The database of names without one.
    pub(super) database: Option<String>,
    pub(super) pipes_as_concat: bool,
}

impl Scope {
    /// That of a view which stands in a database.
    pub(super) fn of(database: &str, view: &View) -> Scope {
        Scope {
            database: Some(database.to_owned()),
            pipes_as_concat: view.pipes_as_concat,
        }
    }
}

/// The query of a view, and what its names mean.
pub(super) struct BoundQuery {
    pub(super) query: Query,
    /// The text of the query.
    pub(super) source: Source,
    pub(super) bindings: Bindings,
}

type Bound<'a> = Pin<Box<dyn Future<Output = Result<BoundTable, MySqlError>> + Send + 'a>>;

impl Job {
    /// A view as a table of a statement.
    ///
    /// # Errors
    /// 1462 for one that names itself, 1436 for views that are nested too deeply.
    pub(crate) fn bound_view<'a>(
        &'a self,
        database: &'a str,
        view: &'a View,
        views: &'a mut BoundViews,
    ) -> Bound<'a> {
        Box::pin(async move {
            let place = (database.to_owned(), view.name.clone());
            if let Some(known) = views.known.get(&place) {
                return Ok(known.clone());
            }
            if views.around.contains(&place) {
                let code = ErrorCode::ViewRecursion;
                return Err(MySqlError::new(code, &[&database, &view.name]));
            }
            if views.around.len() >= DEPTH_MAX {
                return Err(MySqlError::with_message(
                    ErrorCode::StackOverrun,
                    "Thread stack overrun: views are nested too deeply",
                ));
            }
            views.around.push(place.clone());
            let scope = Scope::of(database, view);
            let bound = self.bound_query(&view.query, scope, views).await;
            views.around.pop();
            let BoundQuery {
                query,
                source,
                bindings,
            } = bound?;
            let bound = BoundView::new(ViewParts {
                name: place.clone(),
                query,
                source,
                bindings,
                is_apart: view.algorithm == ViewAlgorithm::TempTable,
            });
            let bound = bound.into_table(view.columns.clone());
            views.known.insert(place, bound.clone());
            Ok(bound)
        })
    }

    /// Reads the text of a view, and binds its names.
    pub(super) async fn bound_query(
        &self,
        text: &str,
        scope: Scope,
        views: &mut BoundViews,
    ) -> Result<BoundQuery, MySqlError> {
        let (query, source) = read(text)?;
        let references = References::of_query(&query);
        let bindings = self.shared_bindings(&references, scope, views).await?;
        Ok(BoundQuery {
            query,
            source,
            bindings,
        })
    }

    /// What names in a view mean.
    pub(super) async fn shared_bindings(
        &self,
        references: &References,
        scope: Scope,
        views: &mut BoundViews,
    ) -> Result<Bindings, MySqlError> {
        let connection = &self.connection;
        let only_full_group_by = connection.local().variables.has_mode("ONLY_FULL_GROUP_BY");
        let mut bindings = Bindings {
            database: scope.database,
            only_full_group_by,
            pipes_as_concat: scope.pipes_as_concat,
            aggregates: Arc::clone(&connection.aggregates),
            ..Bindings::default()
        };
        for name in &references.tables {
            let database = name.database.clone().or_else(|| bindings.database.clone());
            // What is not found may be a common table expression; the planner tells.
            let Some(database) = database else {
                continue;
            };
            let place = (database.clone(), name.table.clone());
            let full = TableName {
                database: Some(database.clone()),
                table: name.table.clone(),
            };
            let dictionary = &connection.engine.shared().dictionary;
            let made = match views.only_columns {
                true => self.system_table(&database, &full),
                false => self.planned_system_table(&database, &full).await?,
            };
            let bound = if let Some(made) = made {
                lowered::bind_batch(made.batch(None)?)?
            } else if let Ok(table) = dictionary.table(&database, &name.table) {
                self.running.also_count(table.account());
                bind_table(table)?
            } else if let Some(view) = dictionary.view(&database, &name.table) {
                self.bound_view(&database, &view, views).await?
            } else {
                continue;
            };
            bindings.tables.insert(place, bound);
        }
        for name in &references.files {
            let table = self.open_file(&FileName::of(name)?).await?;
            bindings.files.insert(name.clone(), lowered::bind(table)?);
        }
        Ok(bindings)
    }
}
