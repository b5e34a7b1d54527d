//! Views: made, altered, dropped and renamed.
//!
//! **Owns** what is checked of a view before it is kept. What it means where a query names it is
//! for `bindings`, what changes of its rows mean for `changes`.

mod bindings;
mod changes;
mod columns;
mod text;

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{Query, Select, SelectItem, SetExpr};
use mayfly_sql::bindings::BoundView;
use mayfly_sql::declared;
use mayfly_sql::references::References;
use mayfly_sql::statement::{CreateView, DropView, OldView, TableName};
use mayfly_sql::updatable_view::Updatability;
use mayfly_sql::view::{self, ViewParts};
use mayfly_table::{View, ViewAlgorithm};
use mayfly_types::{ErrorCode, MySqlError, Warning};

use super::Job;
use super::define::check_table_name;
use super::name_length::NAME_LENGTH;
use crate::connection::Connection;
use crate::errors;
use crate::outcome::Outcome;
use bindings::{BoundQuery, Scope};
use text::read;

pub(crate) use bindings::BoundViews;

/// What an object is that is not what a statement wants.
const VIEW: &str = "VIEW";
const BASE_TABLE: &str = "BASE TABLE";

impl Connection {
    /// The view of a name, whether a temporary table hides it or not.
    pub(crate) fn view(&self, database: &str, name: &str) -> Option<Arc<View>> {
        self.engine.shared().dictionary.view(database, name)
    }
}

impl Job {
    /// The view that a name means, and its database: no temporary table of the session has it.
    pub(crate) fn view(&self, name: &TableName) -> Option<(String, Arc<View>)> {
        let database = self.database_of(name).ok()?;
        let view = self.connection.view(&database, &name.table)?;
        let is_hidden = self.connection.exists(&database, &name.table, true);
        (!is_hidden).then_some((database, view))
    }

    /// The error of a view in the place of a table.
    pub(crate) fn not_base_table(database: &str, name: &str) -> MySqlError {
        MySqlError::new(ErrorCode::ViewNotObject, &[&database, &name, &BASE_TABLE])
    }

    /// Whether the text of a view means here what it means in the view.
    pub(crate) fn reads_as_written(&self, view: &View) -> bool {
        let pipes_as_concat = self
            .connection
            .local()
            .variables
            .has_mode("PIPES_AS_CONCAT");
        view.pipes_as_concat == pipes_as_concat
            || read(&view.query).is_ok_and(|(query, _)| !declared::has_pipes(&query))
    }

    pub(crate) async fn create_view(&self, create: CreateView) -> Result<Outcome, MySqlError> {
        let database = self.database_of(&create.name)?;
        let name = &create.name.table;
        check_table_name(name)?;
        self.refuse_system(&database)?;
        let dictionary = &self.connection.engine.shared().dictionary;
        if !dictionary.has_database(&database) {
            return Err(MySqlError::new(ErrorCode::UnknownDatabase, &[&database]));
        }
        let references = References::of_query(&create.query);
        if !references.user_variables.is_empty() || !references.system_variables.is_empty() {
            return Err(MySqlError::new(ErrorCode::ViewSelectVariable, &[]));
        }
        self.refuse_temporary(&create.query, &references)?;
        let old = dictionary.view(&database, name);
        if self.connection.exists(&database, name, false) && create.old != OldView::Refused {
            return Err(MySqlError::new(
                ErrorCode::ViewNotObject,
                &[&database, name, &VIEW],
            ));
        }
        let is_taken = old.is_some() || self.connection.exists(&database, name, false);
        match create.old {
            OldView::Refused if is_taken && create.if_not_exists => {
                self.note(ErrorCode::TableExists, &[name]);
                return Ok(Outcome::done(0));
            }
            OldView::Refused if is_taken => {
                return Err(MySqlError::new(ErrorCode::TableExists, &[name]));
            }
            OldView::Needed if old.is_none() => {
                return Err(MySqlError::no_such_table(&database, name));
            }
            _ => {}
        }
        let place = (database.as_str(), name.as_str());
        let (view, warning) = self.made_view(&create, place, &references).await?;
        let mut old = old;
        loop {
            let error = match dictionary.set_view(&database, view.clone(), old.as_ref()) {
                Ok(()) => break,
                Err(error) => error,
            };
            // Another session was faster: what stands in its place is as good as what stood there.
            let found = dictionary.view(&database, name);
            let is_other = old.as_ref().map(Arc::as_ptr) != found.as_ref().map(Arc::as_ptr);
            match create.old {
                OldView::Replaced if is_other => old = found,
                OldView::Needed if is_other && found.is_some() => old = found,
                OldView::Needed if found.is_none() => {
                    return Err(MySqlError::no_such_table(&database, name));
                }
                _ => return Err(errors::from_table(&error)),
            }
        }
        if let Some(warning) = warning {
            self.connection.warn(warning);
        }
        Ok(Outcome::done(0))
    }

    /// The view that a statement makes, once its query has been planned; the warning that goes with
    /// it.
    async fn made_view(
        &self,
        create: &CreateView,
        (database, name): (&str, &str),
        references: &References,
    ) -> Result<(View, Option<Warning>), MySqlError> {
        // The view itself is none of what it may name.
        let mut views = BoundViews::inside(database, name);
        let current = self.current_database();
        let (pipes_as_concat, character_set_client, collation_connection) = {
            let variables = &self.connection.local().variables;
            (
                variables.has_mode("PIPES_AS_CONCAT"),
                variables.text("character_set_client"),
                variables.text("collation_connection"),
            )
        };
        let scope = Scope {
            database: current,
            pipes_as_concat,
        };
        let bindings = self.shared_bindings(references, scope, &mut views).await?;
        let text = view::definition_text(create, database, &self.source, &bindings)?;
        let scope = Scope {
            database: Some(database.to_owned()),
            pipes_as_concat,
        };
        let BoundQuery {
            query,
            source,
            bindings,
        } = self.bound_query(&text, scope, &mut views).await?;
        let source = Arc::new(source);
        let planned = self.planned_of(query.clone(), &bindings, Arc::clone(&source));
        let planned = planned.await?;
        let labels = planned.labels.clone();
        // What cannot be run is refused now.
        self.physical(planned).await?;
        let (columns, are_made) = names_of_columns(create, &query, labels)?;
        let bound = ViewParts {
            name: (database.to_owned(), name.to_owned()),
            query: query.clone(),
            source: source.as_ref().clone(),
            bindings: bindings.clone(),
            is_apart: create.algorithm == ViewAlgorithm::TempTable,
        };
        let is_merged = BoundView::new(bound).is_merged();
        let mut algorithm = create.algorithm;
        let mut warning = None;
        if algorithm == ViewAlgorithm::Merge && !is_merged {
            algorithm = ViewAlgorithm::Undefined;
            warning = Some(Warning::new(ErrorCode::ViewCannotMerge, &[]));
        }
        let cannot_change = || {
            let updatability = Updatability::of(&query, &columns, &bindings, false);
            !is_merged || matches!(updatability, Updatability::NotUpdatable)
        };
        if create.check.is_some() && cannot_change() {
            let code = ErrorCode::ViewCheckNotUpdatable;
            return Err(MySqlError::new(code, &[&database, &name]));
        }
        let definer = match &create.definer {
            Some(account) => (account.user.clone(), account.host.clone()),
            None => super::information::connection_account(&self.connection),
        };
        let view = View {
            name: name.to_owned(),
            columns,
            names_columns: are_made || !create.columns.is_empty(),
            query: text,
            pipes_as_concat,
            algorithm,
            definer,
            security: create.security,
            check: create.check,
            character_set_client,
            collation_connection,
        };
        Ok((view, warning))
    }

    /// A view lives longer than the temporary tables of the session.
    fn refuse_temporary(&self, query: &Query, references: &References) -> Result<(), MySqlError> {
        let with = query.with.iter().flat_map(|with| &with.cte_tables);
        let ctes: HashSet<&str> = with.map(|cte| cte.alias.name.value.as_str()).collect();
        for name in &references.tables {
            let is_cte = name.database.is_none() && ctes.contains(name.table.as_str());
            let Ok(database) = self.database_of(name) else {
                continue;
            };
            if !is_cte && self.connection.exists(&database, &name.table, true) {
                let code = ErrorCode::ViewSelectTemporaryTable;
                return Err(MySqlError::new(code, &[&name.table]));
            }
        }
        Ok(())
    }

    /// DROP VIEW: all of them, or none. With IF EXISTS a table in the place of one is left alone.
    pub(crate) fn drop_views(&self, drop: &DropView) -> Result<Outcome, MySqlError> {
        let mut found: Vec<(String, String)> = Vec::new();
        let mut missing = Vec::new();
        // What the notes of IF EXISTS say, in the order of the statement.
        let mut notes = Vec::new();
        for name in &drop.names {
            let place = (self.database_of(name)?, name.table.clone());
            if found.contains(&place) {
                return Err(MySqlError::new(ErrorCode::NotUniqueTable, &[&name.table]));
            }
            let (database, table) = &place;
            if self.connection.view(database, table).is_some() {
                found.push(place);
            } else if self.connection.exists(database, table, false) {
                let code = ErrorCode::ViewNotObject;
                if !drop.if_exists {
                    return Err(MySqlError::new(code, &[database, table, &VIEW]));
                }
                notes.push(Warning::note(code, &[database, table, &VIEW]));
            } else {
                let name = format!("{database}.{table}");
                notes.push(Warning::note(ErrorCode::UnknownTable, &[&name]));
                missing.push(name);
            }
        }
        if !missing.is_empty() && !drop.if_exists {
            let code = ErrorCode::UnknownTable;
            return Err(MySqlError::new(code, &[&missing.join(",")]));
        }
        let dictionary = &self.connection.engine.shared().dictionary;
        dictionary
            .drop_views(&found)
            .map_err(|error| errors::from_table(&error))?;
        for note in notes {
            self.connection.warn(note);
        }
        Ok(Outcome::done(0))
    }

    /// RENAME TABLE of a view, which stays in its database.
    pub(crate) fn rename_view(
        &self,
        (database, view): (&str, &View),
        new: &TableName,
    ) -> Result<Outcome, MySqlError> {
        let new_database = self.database_of(new)?;
        check_table_name(&new.table)?;
        if new_database != database {
            let code = ErrorCode::ForbidSchemaChange;
            return Err(MySqlError::new(code, &[&database, &new_database]));
        }
        let dictionary = &self.connection.engine.shared().dictionary;
        dictionary
            .rename_view(database, &view.name, &new.table)
            .map_err(|error| errors::from_table(&error))?;
        Ok(Outcome::done(0))
    }
}

/// What the columns of a view are called, and whether some got names that are written nowhere.
fn names_of_columns(
    create: &CreateView,
    query: &Query,
    labels: Vec<String>,
) -> Result<(Vec<String>, bool), MySqlError> {
    let mut names = labels;
    let mut are_made = false;
    if create.columns.is_empty() {
        let items = first_select(&query.body).map_or(&[][..], |select| &select.projection);
        for (place, name) in names.iter_mut().enumerate() {
            let is_text = !matches!(items.get(place), Some(SelectItem::ExprWithAlias { .. }));
            if is_text && (!is_column_name(name) || name.chars().count() > NAME_LENGTH) {
                *name = format!("Name_exp_{}", place + 1);
                are_made = true;
            }
        }
    } else if create.columns.len() == names.len() {
        names.clone_from(&create.columns);
    } else {
        return Err(MySqlError::new(ErrorCode::ViewWrongList, &[]));
    }
    let mut seen = HashSet::new();
    for name in &names {
        if !is_column_name(name) {
            return Err(MySqlError::new(ErrorCode::WrongColumnName, &[name]));
        }
        super::name_length::check_name_length(name)?;
        if !seen.insert(name.to_lowercase()) {
            return Err(MySqlError::new(ErrorCode::DuplicateColumn, &[name]));
        }
    }
    Ok((names, are_made))
}

fn is_column_name(name: &str) -> bool {
    !name.is_empty() && !name.ends_with(' ')
}

/// The SELECT that names the columns of a query.
fn first_select(body: &SetExpr) -> Option<&Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => first_select(&query.body),
        SetExpr::SetOperation { left, .. } => first_select(left),
        _ => None,
    }
}
