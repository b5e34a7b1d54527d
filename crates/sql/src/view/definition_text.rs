//! The text that defines a view.
//!
//! It is the text of its query as it was written, changed in three ways: each `*` becomes the
//! columns that it shows now, so that none is added later; comments go, since a dump writes the
//! text into a comment of its own; and where the view stands in another database than the current
//! one, tables get their database in front of them.
//!
//! ```text
//!   USE e; CREATE VIEW d.v AS SELECT * FROM t -- all      SELECT t.`id`, t.`B` FROM `e`.t
//! ```

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Ident, Query, TableFactor, Visitor};
use datafusion::sql::sqlparser::tokenizer::Location;
use mayfly_types::{ErrorCode, MySqlError};

use crate::bindings::Bindings;
use crate::references::{file_path, table_name};
use crate::rewrite::common_columns::stars;
use crate::rewrite::ctes::Ctes;
use crate::rewrite::relation::is_dual;
use crate::scanner::{Lexeme, Scanner};
use crate::source::Source;
use crate::statement::CreateView;
use crate::text_places::offset;
use crate::walk;

/// The text to keep of a view in a database.
///
/// # Errors
/// Those for which the columns behind a `*` are not known.
pub fn definition_text(
    view: &CreateView,
    database: &str,
    source: &Source,
    bindings: &Bindings,
) -> Result<String, MySqlError> {
    let mut patches: Vec<Patch> = Vec::new();
    // One without tables has its error when it is planned.
    let stars = stars(&view.query, source, bindings)?.into_iter();
    for star in stars.filter(|star| !star.columns.is_empty()) {
        let columns: Vec<String> = star.columns.iter().map(ToString::to_string).collect();
        patches.push(Patch {
            from: star.place.start,
            to: star.place.end,
            text: columns.join(", "),
        });
    }
    let current = bindings.database.as_deref();
    if current != Some(database) {
        let mut names = Unqualified {
            bindings,
            ctes: Ctes::default(),
            found: Vec::new(),
        };
        let _ = walk::read(view.query.as_ref(), &mut names);
        if current.is_none() && !names.found.is_empty() {
            return Err(MySqlError::new(ErrorCode::NoDatabase, &[]));
        }
        let prefix = format!("{}.", Ident::with_quote('`', current.unwrap_or_default()));
        patches.extend(names.found.into_iter().map(|at| Patch {
            from: at,
            to: at,
            text: prefix.clone(),
        }));
    }
    patches.sort_by_key(|patch| patch.from);
    let text = source.text();
    let at = |place: Location| offset(text, place.line, place.column);
    let (start, end) = (at(view.place.0), at(view.place.1));
    let mut kept = String::with_capacity(end.saturating_sub(start));
    let mut next = start;
    for patch in patches {
        let (from, to) = (at(patch.from), at(patch.to));
        kept.push_str(text.get(next..from).unwrap_or_default());
        kept.push_str(&patch.text);
        next = to;
    }
    kept.push_str(text.get(next..end).unwrap_or_default());
    Ok(without_comments(&kept).trim().to_owned())
}

/// A text without its comments.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    for (lexeme, range) in Scanner::new(text.as_bytes()) {
        match lexeme {
            Lexeme::Comment | Lexeme::Later if kept.ends_with(char::is_whitespace) => {}
            Lexeme::Comment | Lexeme::Later => kept.push(' '),
            _ => kept.push_str(text.get(range).unwrap_or_default()),
        }
    }
    kept
}

/// A part of a text that becomes another one.
struct Patch {
    from: Location,
    to: Location,
    text: String,
}

/// Finds the tables that are named without a database.
struct Unqualified<'a> {
    bindings: &'a Bindings,
    /// The names of common table expressions, in lower case.
    ctes: Ctes<String>,
    found: Vec<Location>,
}

impl Visitor for Unqualified<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.ctes.enter();
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.ctes.add(cte.alias.name.value.to_lowercase());
        }
        self.ctes.go_inside(query.with.as_ref());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
        self.ctes.leave();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, .. } = factor
            && file_path(name).is_none()
            && !is_dual(factor, self.bindings)
            && let Some(found) = table_name(name)
            && found.database.is_none()
            && !self.ctes.visible().contains(&found.table.to_lowercase())
            && let Some(ident) = name.0.first().and_then(|part| part.as_ident())
        {
            self.found.push(ident.span.start);
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::datatypes::Schema;
    use datafusion::datasource::empty::EmptyTable;

    use super::*;
    use crate::bindings::BoundTable;
    use crate::parse::parse;
    use crate::statement::Statement;

    /// The text that is kept of a view in the database `d`, where two databases have a table `t`.
    fn kept(text: &str, current: Option<&str>) -> String {
        let Ok((Statement::CreateView(view), source)) = parse(text) else {
            panic!("{text}");
        };
        let table = BoundTable {
            provider: Arc::new(EmptyTable::new(Arc::new(Schema::empty()))),
            columns: vec!["id".to_owned(), "B".to_owned()],
            unique: Vec::new(),
            invisible: Vec::new(),
            view: None,
        };
        let mut bindings = Bindings {
            database: current.map(str::to_owned),
            ..Bindings::default()
        };
        for database in ["d", "e"] {
            let place = (database.to_owned(), "t".to_owned());
            bindings.tables.insert(place, table.clone());
        }
        match definition_text(&view, "d", &source, &bindings) {
            Ok(kept) => kept,
            Err(error) => error.code.to_string(),
        }
    }

    #[test]
    fn stars_are_written_out_and_comments_go() {
        for (text, expected) in [
            ("SELECT * FROM t", "SELECT t.`id`, t.`B` FROM t"),
            (
                "SELECT x.*, 1 FROM t x, d.t WHERE x.id > 1 WITH CHECK OPTION",
                "SELECT x.`id`, x.`B`, 1 FROM t x, d.t WHERE x.id > 1",
            ),
            (
                "SELECT COUNT(*) FROM t UNION\nSELECT id * 2 FROM (SELECT * FROM t) AS d ;",
                "SELECT COUNT(*) FROM t UNION\nSELECT id * 2 FROM (SELECT t.`id`, t.`B` FROM t) AS d",
            ),
            (
                "SELECT * FROM t JOIN t AS u USING (id)",
                "SELECT t.`id`, t.`B`, u.`B` FROM t JOIN t AS u USING (id)",
            ),
            ("(SELECT id FROM t) LIMIT 1", "(SELECT id FROM t) LIMIT 1"),
            (
                "SELECT 1 /* a */ + 2 -- b\n, 3/*c*/AS d # e",
                "SELECT 1  + 2 \n, 3 AS d",
            ),
            (
                "SELECT '/* a */' FROM (SELECT 1 AS `-- b`) AS d",
                "SELECT '/* a */' FROM (SELECT 1 AS `-- b`) AS d",
            ),
            ("SELECT * FROM nosuch", "1146"),
            ("SELECT *", "SELECT *"),
            ("TABLE t", "1235"),
        ] {
            let statement = format!("CREATE VIEW v AS {text}");
            assert_eq!(kept(&statement, Some("d")), expected, "{text}");
        }
        let dumped = "/*!50001 CREATE ALGORITHM=MERGE */\n/*!50013 DEFINER=`a`@`%` \
                      SQL SECURITY INVOKER */\n/*!50001 VIEW `v` (`x`) AS SELECT 1 */;";
        assert_eq!(kept(dumped, Some("d")), "SELECT 1");
    }

    #[test]
    fn tables_of_another_database_are_named_with_it() {
        for (text, expected) in [
            (
                "SELECT id FROM t WHERE id IN (SELECT id FROM d.t)",
                "SELECT id FROM `e`.t WHERE id IN (SELECT id FROM d.t)",
            ),
            (
                "WITH q AS (SELECT id FROM t) SELECT * FROM q, t",
                "WITH q AS (SELECT id FROM `e`.t) SELECT q.`id`, t.`id`, t.`B` FROM q, `e`.t",
            ),
            (
                "WITH t AS (SELECT id FROM t) SELECT id FROM t",
                "WITH t AS (SELECT id FROM `e`.t) SELECT id FROM t",
            ),
            (
                "SELECT 1 FROM (WITH t AS (SELECT 1) SELECT 1 FROM t) AS q, t",
                "SELECT 1 FROM (WITH t AS (SELECT 1) SELECT 1 FROM t) AS q, `e`.t",
            ),
            (
                "WITH RECURSIVE t AS (SELECT 1 UNION SELECT 2 FROM t) SELECT 1 FROM t",
                "WITH RECURSIVE t AS (SELECT 1 UNION SELECT 2 FROM t) SELECT 1 FROM t",
            ),
            ("SELECT 1 FROM DUAL", "SELECT 1 FROM DUAL"),
        ] {
            let statement = format!("CREATE VIEW d.v AS {text}");
            assert_eq!(kept(&statement, Some("e")), expected, "{text}");
        }
        assert_eq!(kept("CREATE VIEW d.v AS SELECT id FROM t", None), "1046");
        assert_eq!(kept("CREATE VIEW d.v AS SELECT 1", None), "SELECT 1");
    }
}
