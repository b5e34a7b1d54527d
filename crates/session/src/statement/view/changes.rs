//! Changes of rows through views: which table a view stands for, and the statement on that table.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::TableWithJoins;
use mayfly_sql::bindings::Bindings;
use mayfly_sql::change::{self, Mention};
use mayfly_sql::declared;
use mayfly_sql::statement::{Delete, Insert, LoadData, LoadTarget, RowChoice, Statement, Update};
use mayfly_sql::updatable_view::{BaseTable, Substitution, Updatability};
use mayfly_table::{CheckOption, Table, View, ViewAlgorithm};
use mayfly_types::{ErrorCode, MySqlError};

use super::super::{Job, ThroughViews, ViewCheck};
use super::bindings::DEPTH_MAX;
use super::text::read;
use crate::errors;

/// A view whose rows a statement changes, and the table that it changes for it.
struct ChangedView {
    database: String,
    view: Arc<View>,
    base: Box<BaseTable>,
    table: Arc<Table>,
    /// The columns of the table, in lower case.
    columns: Vec<String>,
}

impl ChangedView {
    fn through(&self) -> ThroughViews {
        let check = self.base.check().map(|condition| ViewCheck {
            view: (self.database.clone(), self.view.name.clone()),
            table: self.base.table.table.clone(),
            condition: condition.clone(),
        });
        ThroughViews {
            check: check.map(Arc::new),
            hides_numbers: false,
        }
    }

    /// Whether the view does not show the AUTO_INCREMENT column of its table.
    fn hides_numbers(&self) -> bool {
        let numbers = self.table.columns().iter();
        let mut numbers = numbers.filter(|column| column.is_auto_increment);
        numbers.any(|own| !{ self.base.shown() }.any(|name| name.eq_ignore_ascii_case(&own.name)))
    }

    fn substitution<'a>(&'a self, called: &'a str, named: &'a str) -> Substitution<'a> {
        Substitution {
            base: &self.base,
            called,
            named,
            table_columns: &self.columns,
            has_others: false,
            new_row: None,
        }
    }
}

impl Job {
    /// Makes a statement that changes rows of views one that changes rows of their tables; `None`
    /// for any other one. What is found out about such a one depends on more than the names in its
    /// text.
    ///
    /// # Errors
    /// 1288, 1348, 1394, 1395, 1423 and 1471 for what cannot be changed, 1235 for what cannot be
    /// here.
    pub(crate) fn change_through_views(
        &self,
        statement: &mut Statement,
    ) -> Result<Option<ThroughViews>, MySqlError> {
        match statement {
            Statement::Explain(explain) => self.change_through_views(&mut explain.statement),
            Statement::Insert(insert) => self.insert_through(insert),
            Statement::LoadData(load) => self.load_through(load),
            Statement::Update(update) => self.update_through(update),
            Statement::Delete(delete) => self.delete_through(delete),
            _ => Ok(None),
        }
    }

    fn insert_through(&self, insert: &mut Insert) -> Result<Option<ThroughViews>, MySqlError> {
        let Some((database, view)) = self.view(&insert.table) else {
            return Ok(None);
        };
        let called = insert.table.table.clone();
        let changed = match self.updatability(&database, &view)? {
            Updatability::SeveralTables if insert.columns.is_empty() => {
                let code = ErrorCode::ViewWithoutFieldList;
                return Err(MySqlError::new(code, &[&database, &view.name]));
            }
            other => self.changed((database, view), other, "INSERT")?,
        };
        let named = changed.base.table.table.clone();
        let substitution = changed.substitution(&called, &named);
        substitution.insert(insert, &changed.view.columns)?;
        let columns = insert.columns.iter().map(String::as_str);
        self.check_defaults(&changed, columns, insert.ignore)?;
        Ok(Some(ThroughViews {
            hides_numbers: changed.hides_numbers(),
            ..changed.through()
        }))
    }

    fn load_through(&self, load: &mut LoadData) -> Result<Option<ThroughViews>, MySqlError> {
        let Some((database, view)) = self.view(&load.table) else {
            return Ok(None);
        };
        let called = load.table.table.clone();
        let updatability = self.updatability(&database, &view)?;
        let changed = self.changed((database, view), updatability, "LOAD")?;
        let named = changed.base.table.table.clone();
        changed
            .substitution(&called, &named)
            .load(load, &changed.view.columns)?;
        let targets = load.targets.iter().filter_map(|target| match target {
            LoadTarget::Column(name) => Some(name.as_str()),
            LoadTarget::Variable(_) => None,
        });
        let sets = load.assignments.iter().map(|set| set.column.as_str());
        self.check_defaults(&changed, targets.chain(sets), load.ignore || load.local)?;
        Ok(Some(changed.through()))
    }

    fn update_through(&self, update: &mut Update) -> Result<Option<ThroughViews>, MySqlError> {
        let Some((mention, changed)) = self.changed_alone(&mut update.choice, "UPDATE")? else {
            return self.read_views(&mut update.choice.from);
        };
        let substitution = changed.substitution(&mention.alias, &mention.alias);
        substitution.assign_all(&mut update.assignments)?;
        substitution.choose(&mut update.choice)?;
        Ok(Some(changed.through()))
    }

    fn delete_through(&self, delete: &mut Delete) -> Result<Option<ThroughViews>, MySqlError> {
        let Some((mention, changed)) = self.changed_alone(&mut delete.choice, "DELETE")? else {
            return self.read_views(&mut delete.choice.from);
        };
        let substitution = changed.substitution(&mention.alias, &mention.alias);
        substitution.choose(&mut delete.choice)?;
        // The table has an alias now, which stands in no database.
        for target in &mut delete.targets {
            if target.table == mention.alias {
                target.database = None;
            }
        }
        Ok(Some(changed.through()))
    }

    /// The view that is all that a statement names before it chooses rows.
    fn changed_alone(
        &self,
        choice: &mut RowChoice,
        command: &str,
    ) -> Result<Option<(Mention, ChangedView)>, MySqlError> {
        let Some(mention) = change::only_table(&choice.from) else {
            return Ok(None);
        };
        let Some((database, view)) = self.view(&mention.table) else {
            return Ok(None);
        };
        let changed = match self.updatability(&database, &view)? {
            Updatability::SeveralTables if command == "DELETE" => {
                let code = ErrorCode::ViewDeleteOfSeveralTables;
                return Err(MySqlError::new(code, &[&database, &view.name]));
            }
            Updatability::NotUpdatable => {
                let code = ErrorCode::NonUpdatableTable;
                return Err(MySqlError::new(code, &[&mention.alias, &command]));
            }
            other => self.changed((database, view), other, command)?,
        };
        Ok(Some((mention, changed)))
    }

    /// Among other tables a view is one that is only read: a derived table.
    fn read_views(&self, from: &mut [TableWithJoins]) -> Result<Option<ThroughViews>, MySqlError> {
        let is_view = |mention: &Mention| self.view(&mention.table).is_some();
        let views: Vec<Mention> = change::mentions(from).into_iter().filter(is_view).collect();
        for mention in &views {
            change::derive(from, mention)?;
        }
        Ok((!views.is_empty()).then(ThroughViews::default))
    }

    /// The view and its table, if it has one that can change.
    fn changed(
        &self,
        (database, view): (String, Arc<View>),
        updatability: Updatability,
        command: &str,
    ) -> Result<ChangedView, MySqlError> {
        let base = match updatability {
            Updatability::OneTable(base) => base,
            Updatability::Unsupported(what) => return Err(errors::not_supported(what)),
            Updatability::SeveralTables => {
                let what = format!("{command} through a view of several tables");
                return Err(errors::not_supported(&what));
            }
            Updatability::NotUpdatable => {
                let code = ErrorCode::NonInsertableTable;
                return Err(MySqlError::new(code, &[&view.name, &command]));
            }
        };
        let name = &base.table;
        let of = name.database.as_deref().unwrap_or(&database);
        if self.connection.exists(of, &name.table, true) {
            let what = "a change through a view of a table that a temporary table hides";
            return Err(errors::not_supported(what));
        }
        let dictionary = &self.connection.engine.shared().dictionary;
        let table = dictionary
            .table(of, &name.table)
            .map_err(|_| MySqlError::new(ErrorCode::ViewInvalid, &[&database, &view.name]))?;
        // One that the view shows may be gone.
        let definition = table.definition();
        if !base.shown().all(|name| definition.column(name).is_some()) {
            let code = ErrorCode::ViewInvalid;
            return Err(MySqlError::new(code, &[&database, &view.name]));
        }
        let numbers = definition.auto_increment();
        let numbers = numbers.map(|place| &definition.columns[place].name);
        let mentions = base.check().map(declared::mentions).unwrap_or_default();
        let mut named = mentions.iter().map(|(_, name)| name);
        let needs_number =
            numbers.is_some_and(|own| named.any(|name| name.eq_ignore_ascii_case(own)));
        if needs_number && ["INSERT", "LOAD"].contains(&command) {
            let what = "WITH CHECK OPTION of an AUTO_INCREMENT column";
            return Err(errors::not_supported(what));
        }
        let columns = table.columns().iter();
        let columns = columns.map(|column| column.name.to_lowercase()).collect();
        Ok(ChangedView {
            database,
            view,
            base,
            table,
            columns,
        })
    }

    /// Whether rows of a view can change.
    pub(crate) fn updatability(
        &self,
        database: &str,
        view: &View,
    ) -> Result<Updatability, MySqlError> {
        self.updatability_at(database, view, false, 0)
    }

    fn updatability_at(
        &self,
        database: &str,
        view: &View,
        is_cascaded: bool,
        depth: usize,
    ) -> Result<Updatability, MySqlError> {
        if view.algorithm == ViewAlgorithm::TempTable {
            return Ok(Updatability::NotUpdatable);
        }
        if depth > DEPTH_MAX {
            let code = ErrorCode::ViewRecursion;
            return Err(MySqlError::new(code, &[&database, &view.name]));
        }
        let (query, _) = read(&view.query)?;
        let bindings = Bindings {
            aggregates: Arc::clone(&self.connection.aggregates),
            database: Some(database.to_owned()),
            pipes_as_concat: view.pipes_as_concat,
            ..Bindings::default()
        };
        let is_checked = is_cascaded || view.check.is_some();
        let is_cascaded = is_cascaded || view.check == Some(CheckOption::Cascaded);
        let updatability = Updatability::of(&query, &view.columns, &bindings, is_checked);
        let mut base = match updatability {
            Updatability::OneTable(base) => base,
            other => return Ok(other),
        };
        let of = base
            .table
            .database
            .get_or_insert_with(|| database.to_owned());
        let dictionary = &self.connection.engine.shared().dictionary;
        let Some(inner) = dictionary.view(of, &base.table.table) else {
            return Ok(Updatability::OneTable(base));
        };
        let of = of.clone();
        Ok(
            match self.updatability_at(&of, &inner, is_cascaded, depth + 1)? {
                Updatability::OneTable(inner) => {
                    Updatability::OneTable(Box::new(base.over(&inner)?))
                }
                other => other,
            },
        )
    }

    /// Columns of the table that a view does not show need a default where rows come through it.
    fn check_defaults<'c>(
        &self,
        changed: &ChangedView,
        named: impl Iterator<Item = &'c str>,
        ignore: bool,
    ) -> Result<(), MySqlError> {
        let is_strict = {
            let variables = &self.connection.local().variables;
            let modes = ["STRICT_TRANS_TABLES", "STRICT_ALL_TABLES"];
            modes.iter().any(|mode| variables.has_mode(mode))
        };
        if ignore || !is_strict {
            return Ok(());
        }
        let named: Vec<String> = named.map(str::to_lowercase).collect();
        let needs = changed.table.columns().iter().any(|column| {
            let is_given = column.default.is_some()
                || column.generated.is_some()
                || column.is_auto_increment
                || column.is_nullable;
            !is_given && !named.contains(&column.name.to_lowercase())
        });
        match needs {
            true => {
                let code = ErrorCode::ViewNoDefault;
                Err(MySqlError::new(
                    code,
                    &[&changed.database, &changed.view.name],
                ))
            }
            false => Ok(()),
        }
    }
}
