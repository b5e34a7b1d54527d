use datafusion::sql::sqlparser::ast::Expr;
use mayfly_types::MySqlError;

use super::{Mention, in_change, in_value, settle, without_tables};
use crate::parse::{self, parse_expression};
use crate::statement::{Statement, TableName};

fn settled(sql: &str) -> Result<String, MySqlError> {
    let (Statement::Query(mut query), _) = parse::parse(sql)? else {
        panic!("{sql} is no query");
    };
    settle(&mut query, &without_tables(Some("here")))?;
    Ok(query.to_string().replace('`', ""))
}

fn check(sql: &str, expected: &str) {
    assert_eq!(settled(sql).unwrap(), expected, "{sql}");
}

fn refused(sql: &str, message: &str) {
    assert_eq!(settled(sql).unwrap_err().message, message, "{sql}");
}

#[test]
fn names_lose_a_database_that_says_nothing() {
    check("SELECT here.t.a FROM t", "SELECT t.a FROM here.t");
    check("SELECT d.t.a FROM d.t", "SELECT t.a FROM d.t");
    check("SELECT here.x.a FROM t AS x", "SELECT x.a FROM t AS x");
    check(
        "SELECT 1 FROM t WHERE EXISTS (SELECT 1 FROM u WHERE here.t.a = here.u.a)",
        "SELECT 1 FROM here.t WHERE EXISTS (SELECT 1 FROM here.u WHERE t.a = u.a)",
    );
    check(
        "SELECT a FROM t ORDER BY here.t.b",
        "SELECT a FROM here.t ORDER BY t.b",
    );
}

#[test]
fn tables_of_one_name_are_told_apart() {
    check(
        "SELECT d.t.a, here.t.a FROM t, d.t",
        "SELECT d.t.a, here.t.a FROM here.t, d.t",
    );
    check(
        "SELECT 1 FROM t WHERE EXISTS (SELECT 1 FROM d.t WHERE here.t.a = t.b)",
        "SELECT 1 FROM here.t WHERE EXISTS (SELECT 1 FROM d.t WHERE here.t.a = t.b)",
    );
    assert_eq!(
        settled("SELECT d.t.a FROM u AS t, d.t").unwrap_err().code,
        1235
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
        let (Statement::Update(mut update), _) = parse::parse(sql)? else {
            panic!("{sql} is no UPDATE");
        };
        let values = { update.assignments.iter_mut() }.filter_map(|set| set.value.as_mut());
        in_change(&mut update.choice, values, Some("here"))?;
        let condition = update
            .choice
            .condition
            .map(|condition| condition.to_string());
        Ok::<_, MySqlError>(condition.unwrap_or_default())
    };
    let message = |sql: &str| update(sql).unwrap_err().message;
    assert_eq!(
        update("UPDATE t SET a = 1 WHERE here.t.b = 1").unwrap(),
        "t.b = 1"
    );
    assert_eq!(
        message("UPDATE t SET a = 1 WHERE no.t.b = 1"),
        "Unknown column 'no.t.b' in 'where clause'"
    );
    assert_eq!(
        message("UPDATE t SET a = no.t.b"),
        "Unknown column 'no.t.b' in 'field list'"
    );
}

#[test]
fn a_value_of_a_row_knows_its_table() {
    let table = Mention::of(TableName {
        database: None,
        table: "t".to_owned(),
    });
    let value = |text: &str| -> Result<Expr, MySqlError> {
        let mut value = parse_expression(text)?;
        in_value(&mut value, &table, Some("here"))?;
        Ok(value)
    };
    assert_eq!(
        value("VALUES(here.t.a) + t.b").unwrap().to_string(),
        "VALUES(t.a) + t.b"
    );
    assert_eq!(value("no.t.a + 1").unwrap_err().code, 1054);
}

#[test]
fn a_table_beside_an_alias_of_its_name_is_refused_unless_columns_tell_them_apart() {
    for (sql, code) in [
        ("SELECT * FROM t AS x, x", 1066),
        ("SELECT * FROM d.t AS t, d.t", 1066),
        ("SELECT * FROM t, (SELECT 7 AS a) t", 1235),
        ("SELECT * FROM d.t, (SELECT 7 AS a) t", 1235),
        ("SELECT * FROM t AS t, d.t", 1235),
        (
            "SELECT 1 FROM u WHERE a IN (SELECT t.a FROM t AS t, d.t)",
            1235,
        ),
        ("WITH t AS (SELECT 7 AS a) SELECT * FROM t, d.t", 1235),
        ("SELECT t.* FROM t, d.t", 1235),
    ] {
        assert_eq!(settled(sql).unwrap_err().code, code, "{sql}");
    }
    refused(
        "SELECT * FROM u AS t, d.t",
        "This version of MySQL doesn't yet support 'one name for tables that may share columns: \
         here.u AS t and d.t'",
    );
}

#[test]
fn order_by_behind_parentheses_knows_the_tables_in_them() {
    check(
        "(SELECT a FROM t) ORDER BY here.t.a",
        "(SELECT a FROM here.t) ORDER BY t.a",
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
        "WITH t AS (SELECT t.a FROM here.t) SELECT t.a FROM t",
    );
    check(
        "SELECT here.t.a, d.b FROM t, (SELECT here.u.b FROM u) AS d",
        "SELECT t.a, d.b FROM here.t, (SELECT u.b FROM here.u) AS d",
    );
}
