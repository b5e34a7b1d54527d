//! The columns of views, as DESCRIBE and INFORMATION_SCHEMA show them.

use std::collections::HashMap;
use std::sync::Arc;

use mayfly_sql::origin::Origin;
use mayfly_sql::references::References;
use mayfly_sql::stored::{self, Stored};
use mayfly_table::{Column, View};
use mayfly_types::{ColumnType, ErrorCode, MySqlError};

use super::super::Job;
use super::bound::{BoundViews, Inside};

/// The columns of views by database and name.
type Known = HashMap<(String, String), Vec<Column>>;

impl Job {
    /// The columns of a view as it is now.
    ///
    /// # Errors
    /// 1356 for one whose tables or columns are gone.
    pub(crate) async fn view_columns(
        &self,
        database: &str,
        view: &View,
    ) -> Result<Vec<Column>, MySqlError> {
        self.known_columns(database, view, &mut Known::new()).await
    }

    /// The same where columns of other views are known already: each is planned once, however many
    /// columns of others show its own.
    async fn known_columns(
        &self,
        database: &str,
        view: &View,
        known: &mut Known,
    ) -> Result<Vec<Column>, MySqlError> {
        let place = (database.to_owned(), view.name.clone());
        if let Some(columns) = known.get(&place) {
            return Ok(columns.clone());
        }
        let columns = self.planned_columns(database, view, known).await;
        if let Ok(columns) = &columns {
            known.insert(place, columns.clone());
        }
        columns.map_err(|error| {
            let gone = [
                ErrorCode::NoSuchTable,
                ErrorCode::UnknownColumn,
                ErrorCode::NoSuchFunction,
            ];
            match gone.iter().any(|code| error.is(*code)) {
                true => MySqlError::new(ErrorCode::ViewInvalid, &[&database, &view.name]),
                false => error,
            }
        })
    }

    async fn planned_columns(
        &self,
        database: &str,
        view: &View,
        known: &mut Known,
    ) -> Result<Vec<Column>, MySqlError> {
        let (query, source) = super::text::read(&view.query)?;
        let references = References::of_query(&query);
        let mut views = BoundViews::inside(database, &view.name);
        let inside = Inside {
            database: Some(database.to_owned()),
            pipes_as_concat: view.pipes_as_concat,
        };
        let bindings = self
            .shared_bindings(&references, inside, &mut views)
            .await?;
        let planned = self.planned_of(query, &bindings, Arc::new(source)).await?;
        let stored = stored::columns(&planned.plan);
        let mut columns = Vec::with_capacity(view.columns.len());
        let found = view.columns.iter().zip(stored).zip(planned.origins.iter());
        for ((name, stored), origin) in found {
            let model = match origin {
                Some(origin) => self.shown_column(database, origin, known).await?,
                None => None,
            };
            columns.push(column(name, stored, model, origin.is_none()));
        }
        Ok(columns)
    }

    /// The column of a table, or of another view, that a column shows.
    async fn shown_column(
        &self,
        database: &str,
        origin: &Origin,
        known: &mut Known,
    ) -> Result<Option<Column>, MySqlError> {
        let dictionary = &self.connection.engine.shared().dictionary;
        let columns = match (&origin.database, origin.table_name()) {
            (of, Some(table)) => {
                let of = of.as_deref().unwrap_or(database);
                match dictionary.table(of, &table.table) {
                    Ok(table) => table.columns().to_vec(),
                    Err(_) => return Ok(None),
                }
            }
            (Some(of), None) => match dictionary.view(of, &origin.table) {
                Some(view) => Box::pin(self.known_columns(of, &view, known)).await?,
                None => return Ok(None),
            },
            (None, None) => return Ok(None),
        };
        let mut columns = columns.into_iter();
        Ok(columns.find(|column| column.name.to_lowercase() == origin.column))
    }
}

/// A column of a view: the type of its values, and the default of the column that it shows.
fn column(name: &str, stored: Stored, model: Option<Column>, is_computed: bool) -> Column {
    let mut column = Column::new(name, stored.column_type, stored.nullable);
    match model {
        Some(model) => {
            column.default = match model.is_auto_increment {
                true => Some("0".to_owned()),
                false => model.default,
            };
            column.comment = model.comment;
        }
        None if is_computed && !column.is_nullable => {
            column.default = zero(&column.column_type).map(str::to_owned);
        }
        None => {}
    }
    column
}

/// What a column of a temporary table has that is computed and never NULL.
fn zero(column_type: &ColumnType) -> Option<&'static str> {
    match column_type {
        of if of.is_integer() => Some("0"),
        ColumnType::Char { .. } | ColumnType::VarChar { .. } => Some("''"),
        _ => None,
    }
}
