use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::datasource::empty::EmptyTable;
use datafusion::sql::sqlparser::ast::SetExpr;
use mayfly_types::MySqlError;

use super::changes::{
    RowColumns, in_change, in_value, is_needed_in_change, is_needed_in_value, tell_apart,
};
use super::settle;
use crate::bindings::{Bindings, BoundTable};
use crate::change::Mention;
use crate::inner_name::MARK;
use crate::parse::{self, parse_expression};
use crate::statement::{Statement, TableName};

/// Tables with their columns; `here` is the current database.
fn bindings() -> Bindings {
    let bound = |columns: &[&str]| BoundTable {
        view: None,
        provider: Arc::new(EmptyTable::new(Arc::new(Schema::empty()))),
        columns: columns.iter().map(|&column| column.to_owned()).collect(),
        unique: Vec::new(),
        invisible: Vec::new(),
    };
    let tables = [
        ("here", "t", bound(&["a", "b"])),
        ("here", "u", bound(&["a", "B"])),
        ("d", "t", bound(&["a", "X"])),
        ("d", "u", bound(&["a", "y"])),
    ];
    let tables = tables.map(|(database, table, bound)| {
        let place = (database.to_owned(), table.to_owned());
        (place, bound)
    });
    Bindings {
        database: Some("here".to_owned()),
        tables: tables.into(),
        aggregates: Arc::new(["max".to_owned()].into()),
        ..Bindings::default()
    }
}

/// A text with inner names as `name#number`.
fn legible(text: &str) -> String {
    let text = text.replace('`', "");
    let parts = text.split(MARK).enumerate();
    let parts = parts.map(|(place, part)| match place % 2 {
        0 => part.to_owned(),
        _ => format!("#{part}"),
    });
    parts.collect()
}

fn settled(sql: &str) -> Result<String, MySqlError> {
    let (Statement::Query(mut query), source) = parse::parse(sql)? else {
        panic!("{sql} is no query");
    };
    let written = settle(&mut query, &source, &bindings())?;
    if let (SetExpr::Select(select), Some(written)) = (query.body.as_ref(), written) {
        let texts = written.items(select.select_token.0.span.start);
        assert_eq!(texts.len(), select.projection.len(), "{sql}");
    }
    Ok(legible(&query.to_string()))
}

fn check(sql: &str, expected: &str) {
    assert_eq!(settled(sql).unwrap(), expected, "{sql}");
}

fn refused(sql: &str, message: &str) {
    assert_eq!(settled(sql).unwrap_err().message, message, "{sql}");
}

#[test]
fn names_lose_a_database_that_says_nothing() {
    check("SELECT here.t.a FROM t", "SELECT t.a FROM t");
    check("SELECT d.t.a FROM d.t", "SELECT t.a FROM d.t");
    check("SELECT here.x.a FROM t AS x", "SELECT x.a FROM t AS x");
    check(
        "SELECT 1 FROM t WHERE EXISTS (SELECT 1 FROM u WHERE here.t.a = here.u.a)",
        "SELECT 1 FROM t WHERE EXISTS (SELECT 1 FROM u WHERE t.a = u.a)",
    );
    check(
        "SELECT a FROM t ORDER BY here.t.b",
        "SELECT a FROM t ORDER BY t.b",
    );
    check("SELECT here.x.* FROM t AS x", "SELECT x.* FROM t AS x");
    check("SELECT d.t.*, 1 FROM d.t", "SELECT t.*, 1 FROM d.t");
    check("SELECT d.x.* FROM t AS x", "SELECT d.x.* FROM t AS x");
}

#[test]
fn tables_of_one_name_are_told_apart() {
    check(
        "SELECT d.t.a, here.t.a FROM t, d.t ORDER BY here.t.a, t.x",
        "SELECT t#1.a, t#0.a FROM t AS t#0, d.t AS t#1 ORDER BY t#0.a, t#1.x",
    );
    check(
        "SELECT d.t.a, t.b, t.nosuch, a FROM u AS t, d.t WHERE t.B = t.x",
        "SELECT t#1.a, t#0.b, t.nosuch, a FROM u AS t#0, d.t AS t#1 WHERE t#0.B = t#1.x",
    );
    check(
        "SELECT t.b, t.p FROM t, (SELECT 7 AS p) t",
        "SELECT t#0.b, t#1.p FROM t AS t#0, (SELECT 7 AS p) t#1",
    );
    check(
        "WITH t AS (SELECT 7 AS p) SELECT t.p, here.t.a FROM t, here.t",
        "WITH t AS (SELECT 7 AS p) SELECT t#0.p, t#1.a FROM t AS t#0, here.t AS t#1",
    );
    check(
        "SELECT t.a FROM t JOIN d.t USING (a)",
        "SELECT t#1.a FROM t AS t#0 JOIN d.t AS t#1 USING(a)",
    );
    check(
        "(SELECT t.b FROM t, d.t) ORDER BY t.x",
        "(SELECT t#0.b FROM t AS t#0, d.t AS t#1) ORDER BY t#1.x",
    );
}

#[test]
fn tables_of_selects_around_are_told_apart() {
    check(
        "SELECT 1 FROM t WHERE EXISTS (SELECT 1 FROM d.t WHERE here.t.a = t.X)",
        "SELECT 1 FROM t WHERE EXISTS (SELECT 1 FROM d.t AS t#0 WHERE t.a = t#0.X)",
    );
    // The nearer table has no such column.
    check(
        "SELECT here.t.a FROM t WHERE EXISTS (SELECT t.b, t.a FROM d.u AS t)",
        "SELECT t.a FROM t WHERE EXISTS (SELECT t.b, t#0.a FROM d.u AS t#0)",
    );
    check(
        "SELECT (SELECT t.x FROM d.t AS v) FROM t, d.t",
        "SELECT (SELECT t#1.x FROM d.t AS v) FROM t AS t#0, d.t AS t#1",
    );
}

#[test]
fn stars_are_those_of_all_tables_of_a_name() {
    check(
        "SELECT t.*, 1, d.t.*, u.* FROM t, d.t, u",
        "SELECT t#0.*, t#1.*, 1, t#1.*, u.* FROM t AS t#0, d.t AS t#1, u",
    );
    check(
        "SELECT no.t.*, no.* FROM t, d.t",
        "SELECT no.t.*, no.* FROM t AS t#0, d.t AS t#1",
    );
}

#[test]
fn names_without_a_database_stay() {
    for sql in [
        "SELECT t.a, a FROM t JOIN d.u ON t.a = u.a",
        "WITH t AS (SELECT 1 AS a) SELECT t.a FROM t",
        "SELECT @@session.sql_mode FROM t",
    ] {
        check(sql, sql);
    }
}

#[test]
fn names_of_no_table_are_unknown() {
    for (sql, clause) in [
        ("SELECT no.t.a FROM t", "field list"),
        ("SELECT no.x.a FROM t AS x", "field list"),
        ("SELECT 1 FROM t WHERE no.t.a = 1", "where clause"),
        ("SELECT 1 FROM t GROUP BY no.t.a", "group statement"),
        ("SELECT 1 FROM t ORDER BY no.t.a", "order clause"),
        ("SELECT 1 FROM t JOIN u ON no.t.a = u.a", "on clause"),
        ("SELECT here.t.a FROM (SELECT 1 AS a) AS t", "field list"),
        (
            "WITH t AS (SELECT 1 AS a) SELECT here.t.a FROM t",
            "field list",
        ),
    ] {
        let mut names = ["no.t.a", "no.x.a", "here.t.a"].into_iter();
        let name = names.find(|name| sql.contains(*name)).unwrap();
        refused(sql, &format!("Unknown column '{name}' in '{clause}'"));
    }
}

#[test]
fn a_change_knows_its_tables() {
    let update = |sql: &str| {
        let (Statement::Update(mut update), source) = parse::parse(sql)? else {
            panic!("{sql} is no UPDATE");
        };
        let values = { update.assignments.iter_mut() }.filter_map(|set| set.value.as_mut());
        tell_apart(&mut update.choice.from)?;
        let columns = RowColumns::default();
        in_change(&mut update.choice, values, columns, &source, &bindings())?;
        let condition = update
            .choice
            .condition
            .map(|condition| legible(&condition.to_string()));
        Ok::<_, MySqlError>(condition.unwrap_or_default())
    };
    let message = |sql: &str| update(sql).unwrap_err().message;
    assert_eq!(
        update("UPDATE t SET a = 1 WHERE here.t.b = 1").unwrap(),
        "t.b = 1"
    );
    assert_eq!(
        update("UPDATE t, u, d.t SET t.b = 1 WHERE here.t.a = d.t.a AND t.x = u.a").unwrap(),
        "t#0.a = t#2.a AND t#2.x = u.a"
    );
    assert_eq!(
        update("UPDATE t, d.t SET t.b = 1 WHERE t.x IN (SELECT t.y FROM d.u AS t)").unwrap(),
        "t#1.x IN (SELECT t#2.y FROM d.u AS t#2)"
    );
    assert_eq!(
        message("UPDATE t SET a = 1 WHERE no.t.b = 1"),
        "Unknown column 'no.t.b' in 'where clause'"
    );
    assert_eq!(
        message("UPDATE t SET a = no.t.b"),
        "Unknown column 'no.t.b' in 'field list'"
    );
    assert_eq!(
        message("UPDATE u, (SELECT 1 AS a) AS t, (SELECT 2 AS b) AS t SET u.a = t.b"),
        "Not unique table/alias: 't'"
    );
}

#[test]
fn tables_named_like_the_one_that_changes_are_told_apart() {
    let value = |sql: &str| {
        let (Statement::Update(mut update), source) = parse::parse(sql)? else {
            panic!("{sql} is no UPDATE");
        };
        tell_apart(&mut update.choice.from)?;
        let columns = RowColumns::of([&"B".to_owned()]);
        let is_needed = {
            let values = { update.assignments.iter() }.filter_map(|set| set.value.as_ref());
            is_needed_in_change(&update.choice, values, &columns)
        };
        assert!(is_needed, "{sql}");
        let values = { update.assignments.iter_mut() }.filter_map(|set| set.value.as_mut());
        in_change(&mut update.choice, values, columns, &source, &bindings())?;
        let last = update.assignments.pop().and_then(|set| set.value);
        Ok::<_, MySqlError>(last.map_or(String::new(), |value| legible(&value.to_string())))
    };
    for (sql, expected) in [
        (
            "UPDATE t SET b = 7, a = (SELECT MAX(t.b) FROM t)",
            "(SELECT MAX(t#1.b) FROM t AS t#1)",
        ),
        // The nearer table has no such column.
        (
            "UPDATE t SET b = 7, a = (SELECT MAX(t.b) FROM d.t)",
            "(SELECT MAX(t.b) FROM d.t AS t#1)",
        ),
        (
            "UPDATE t SET b = 7, a = (SELECT MAX(v.b) FROM (SELECT t.b FROM t) AS v)",
            "(SELECT MAX(v.b) FROM (SELECT t#1.b FROM t AS t#1) AS v)",
        ),
        (
            "UPDATE u AS t SET a = (WITH t AS (SELECT 3 AS b) SELECT t.b FROM t)",
            "(WITH t AS (SELECT 3 AS b) SELECT t#1.b FROM t AS t#1)",
        ),
        // Names that stand alone.
        (
            "UPDATE t SET b = 7, a = (SELECT MAX(v.y + b + a) FROM d.u AS v)",
            "(SELECT MAX(v.y + t.b + a) FROM d.u AS v)",
        ),
        (
            "UPDATE t SET b = 7, a = (SELECT MAX(b) FROM u)",
            "(SELECT MAX(b) FROM u)",
        ),
        (
            "UPDATE t SET b = 7, a = (SELECT MAX(B) FROM d.t)",
            "(SELECT MAX(t.B) FROM d.t AS t#1)",
        ),
        (
            "UPDATE t AS z SET b = 7, a = b + (SELECT (SELECT b FROM d.u LIMIT 1) FROM d.t)",
            "b + (SELECT (SELECT z.b FROM d.u LIMIT 1) FROM d.t)",
        ),
        (
            "UPDATE t SET b = 7, a = (SELECT v.y FROM d.u AS v JOIN u ON v.y = b WHERE b = 1)",
            "(SELECT v.y FROM d.u AS v JOIN u ON v.y = b WHERE b = 1)",
        ),
        (
            "UPDATE t SET b = 7, a = (SELECT v.y FROM d.u AS v JOIN d.t ON v.y = b, u)",
            "(SELECT v.y FROM d.u AS v JOIN d.t AS t#1 ON v.y = t.b, u)",
        ),
        // Items of a select list go first behind it.
        (
            "UPDATE t SET b = 7, a = (SELECT y + b AS b FROM d.u WHERE y < b GROUP BY b HAVING b > 1 ORDER BY b)",
            "(SELECT y + t.b AS b FROM d.u WHERE y < t.b GROUP BY b HAVING b > 1 ORDER BY b)",
        ),
        // Derived tables do not see the row.
        (
            "UPDATE t SET b = 7, a = (SELECT v.y FROM (SELECT y FROM d.u WHERE b = 1) AS v)",
            "(SELECT v.y FROM (SELECT y FROM d.u WHERE b = 1) AS v)",
        ),
        (
            "UPDATE t SET b = 7, a = (SELECT y FROM d.u UNION SELECT b FROM d.u ORDER BY b)",
            "(SELECT y FROM d.u UNION SELECT t.b FROM d.u ORDER BY b)",
        ),
    ] {
        assert_eq!(value(sql).unwrap(), expected, "{sql}");
    }
    // What `*` shows and what goes by its text is known.
    for (from, expected) in [
        ("(SELECT * FROM d.u) AS v", "t.b"),
        ("(SELECT y, COUNT(*) FROM d.u) AS v", "t.b"),
        ("(SELECT v.* FROM d.u, u AS v) AS v", "b"),
        ("(SELECT d.* FROM d.u, (SELECT 'b') AS d) AS v", "b"),
        ("(SELECT * FROM (SELECT * FROM u) AS w) AS v", "b"),
        ("(SELECT * FROM u) AS v (a, c)", "t.b"),
        ("(WITH w AS (SELECT * FROM u) SELECT * FROM w) AS v", "b"),
        ("(VALUES ROW(1, 2)) AS v", "t.b"),
        ("DUAL", "t.b"),
    ] {
        let sql = format!("UPDATE t SET b = 7, a = (SELECT MAX(b) FROM {from})");
        let expected = format!("(SELECT MAX({expected}) FROM {from})");
        assert_eq!(value(&sql).unwrap(), expected, "{sql}");
    }
    // The planner does not find the table.
    let unknown = "UPDATE t SET b = 7, a = (SELECT MAX(b) FROM (SELECT * FROM nosuch) AS v)";
    let expected = "(SELECT MAX(b) FROM (SELECT * FROM nosuch) AS v)";
    assert_eq!(value(unknown).unwrap(), expected);
}

#[test]
fn a_value_of_a_row_knows_its_table() {
    let table = Mention::of(TableName {
        database: None,
        table: "t".to_owned(),
    });
    let columns = ["a", "b"].map(str::to_owned);
    let value = |text: &str| -> Result<String, MySqlError> {
        let mut value = parse_expression(text)?;
        let put_in = RowColumns::of(&columns);
        let is_needed = is_needed_in_value(&value, &table, Some("new"), &put_in);
        assert!(is_needed, "{text}");
        in_value(
            &mut value,
            &table,
            &columns,
            Some("new"),
            put_in,
            &bindings(),
        )?;
        Ok(legible(&value.to_string()))
    };
    for (text, expected) in [
        ("VALUES(here.t.a) + t.b", "VALUES(t.a) + t.b"),
        (
            "(SELECT MAX(t.x) FROM d.t WHERE d.t.x > here.t.b)",
            "(SELECT MAX(t#0.x) FROM d.t AS t#0 WHERE t#0.x > t.b)",
        ),
        (
            "(SELECT MAX(t.b) FROM t WHERE here.t.a = 1)",
            "(SELECT MAX(t#0.b) FROM t AS t#0 WHERE t#0.a = 1)",
        ),
        (
            "(SELECT MAX(t.x + t.b) FROM t, d.t)",
            "(SELECT MAX(t#1.x + t#0.b) FROM t AS t#0, d.t AS t#1)",
        ),
        (
            "(SELECT new.y FROM d.u AS new)",
            "(SELECT new#0.y FROM d.u AS new#0)",
        ),
        ("a + (SELECT b)", "a + (SELECT t.b)"),
        (
            "(SELECT b FROM (SELECT * FROM u) AS v)",
            "(SELECT b FROM (SELECT * FROM u) AS v)",
        ),
        (
            "(SELECT b FROM (SELECT *, 1 FROM d.u) AS v)",
            "(SELECT t.b FROM (SELECT *, 1 FROM d.u) AS v)",
        ),
    ] {
        assert_eq!(value(text).unwrap(), expected, "{text}");
    }
    assert_eq!(value("no.t.a + 1").unwrap_err().code, 1054);
    let plain = parse_expression("b + t.a + (SELECT MAX(u.a) FROM u)").unwrap();
    let put_in = RowColumns::of(&columns);
    assert!(!is_needed_in_value(&plain, &table, None, &put_in));
}

#[test]
fn having_and_order_by_mean_items_first() {
    check(
        "SELECT here.t.a FROM t JOIN d.t USING (a) ORDER BY t.a, (t.a), t.a + 1",
        "SELECT t#0.a FROM t AS t#0 JOIN d.t AS t#1 USING(a) ORDER BY t#0.a, (t#0.a), t#1.a + 1",
    );
    check(
        "SELECT here.t.a AS q FROM t, d.t HAVING t.A > 1 AND t.x = 1",
        "SELECT t#0.a AS q FROM t AS t#0, d.t AS t#1 HAVING t#0.A > 1 AND t#1.x = 1",
    );
    check(
        "SELECT d.t.a FROM t, d.t GROUP BY here.t.a, d.t.x HAVING t.a > 1",
        "SELECT t#1.a FROM t AS t#0, d.t AS t#1 GROUP BY t#0.a, t#1.x HAVING t#0.a > 1",
    );
    check(
        "SELECT here.t.* FROM t JOIN d.t USING (a) ORDER BY t.a",
        "SELECT t#0.* FROM t AS t#0 JOIN d.t AS t#1 USING(a) ORDER BY t#0.a",
    );
    check(
        "SELECT * FROM t JOIN d.t USING (a) ORDER BY t.a, t.b",
        "SELECT * FROM t AS t#0 JOIN d.t AS t#1 USING(a) ORDER BY t#1.a, t#0.b",
    );
    // Inside of aggregates and subqueries they mean columns of FROM.
    check(
        "SELECT here.t.a FROM t JOIN d.t USING (a) HAVING MAX(t.a) > (SELECT t.a)",
        "SELECT t#0.a FROM t AS t#0 JOIN d.t AS t#1 USING(a) HAVING MAX(t#1.a) > (SELECT t#1.a)",
    );
    for (sql, clause) in [
        (
            "SELECT here.t.a, d.t.a FROM t JOIN d.t USING (a) ORDER BY t.a",
            "order clause",
        ),
        ("SELECT here.t.a FROM t, d.t ORDER BY t.a", "order clause"),
        (
            "SELECT here.t.a, d.t.a FROM t, d.t HAVING t.a > 1",
            "having clause",
        ),
    ] {
        refused(sql, &format!("Column 't.a' in {clause} is ambiguous"));
    }
    refused(
        "SELECT * FROM t JOIN (SELECT 1 AS b, 2 AS a) AS t USING (a) ORDER BY t.b",
        "Column 't.b' in order clause is ambiguous",
    );
}

#[test]
fn on_sees_the_tables_that_it_joins() {
    check(
        "SELECT 1 FROM t JOIN u ON t.a = u.a JOIN d.t ON here.t.a = d.t.a",
        "SELECT 1 FROM t AS t#0 JOIN u ON t#0.a = u.a JOIN d.t AS t#1 ON t#0.a = t#1.a",
    );
    check(
        "SELECT 1 FROM t, u JOIN d.t ON t.a = u.a",
        "SELECT 1 FROM t AS t#0, u JOIN d.t AS t#1 ON t#1.a = u.a",
    );
    check(
        "SELECT 1 FROM t JOIN (u JOIN d.t ON t.a = u.a) ON here.t.a = u.a",
        "SELECT 1 FROM t AS t#0 JOIN (u JOIN d.t AS t#1 ON t#1.a = u.a) ON t#0.a = u.a",
    );
    check(
        "SELECT 1 FROM t JOIN u ON EXISTS (SELECT 1 FROM u AS v WHERE v.a = t.a) JOIN d.t",
        "SELECT 1 FROM t AS t#0 JOIN u ON EXISTS (SELECT 1 FROM u AS v WHERE v.a = t#0.a) JOIN d.t AS t#1",
    );
    refused(
        "SELECT 1 FROM t JOIN u ON here.t.a = u.a JOIN d.t ON t.a = u.a",
        "Column 't.a' in on clause is ambiguous",
    );
    refused(
        "SELECT 1 FROM t JOIN u ON d.t.a = u.a JOIN d.t",
        "Unknown column 'd.t.a' in 'on clause'",
    );
}

#[test]
fn what_cannot_be_told_is_refused() {
    for (sql, code) in [
        ("SELECT * FROM t, here.t", 1066),
        ("SELECT * FROM t AS x, x", 1066),
        ("SELECT * FROM d.t AS t, d.t", 1066),
        ("SELECT * FROM (SELECT 1 AS a) t, (SELECT 2 AS b) t", 1066),
        ("SELECT t.a FROM t, d.t", 1052),
        ("SELECT t.a FROM t, (SELECT 7 AS a) t", 1052),
        ("SELECT t.a FROM d.t RIGHT JOIN t USING (a)", 1052),
        ("SELECT t.b FROM t, (SELECT * FROM u) t", 1052),
        ("SELECT t.b FROM t, (SELECT 'b') t", 1052),
        ("SELECT t.b FROM t, (SELECT * FROM nosuch) t", 1235),
    ] {
        assert_eq!(settled(sql).unwrap_err().code, code, "{sql}");
    }
    refused(
        "SELECT 1 FROM t, d.t WHERE t.a = 1",
        "Column 't.a' in where clause is ambiguous",
    );
}

#[test]
fn order_by_behind_parentheses_knows_the_tables_in_them() {
    check(
        "(SELECT a FROM t) ORDER BY here.t.a",
        "(SELECT a FROM t) ORDER BY t.a",
    );
    refused(
        "(SELECT a FROM t) ORDER BY no.t.a",
        "Unknown column 'no.t.a' in 'order clause'",
    );
    // Another rewrite refuses it, with the number that MySQL has for it.
    check(
        "SELECT a FROM here.t UNION SELECT a FROM here.t ORDER BY no.t.a",
        "SELECT a FROM here.t UNION SELECT a FROM here.t ORDER BY no.t.a",
    );
}

#[test]
fn derived_tables_see_no_table_around() {
    for sql in [
        "SELECT 1 FROM t, (SELECT here.t.a) AS d",
        "SELECT 1 FROM t WHERE EXISTS (WITH c AS (SELECT here.t.a) SELECT 1 FROM c)",
    ] {
        assert_eq!(settled(sql).unwrap_err().code, 1054, "{sql}");
    }
    check(
        "WITH t AS (SELECT here.t.a FROM t) SELECT t.a FROM t",
        "WITH t AS (SELECT t.a FROM t) SELECT t.a FROM t",
    );
    check(
        "SELECT here.t.a, d.b FROM t, (SELECT here.u.b FROM u) AS d",
        "SELECT t.a, d.b FROM t, (SELECT u.b FROM u) AS d",
    );
}
