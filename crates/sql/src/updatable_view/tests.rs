//! Which views are updatable, and conditions on their rows.

use super::*;
use crate::parse::{parse, parse_expression};
use crate::statement::Statement;

fn base(text: &str, columns: &[&str]) -> Result<BaseTable> {
    let Ok((Statement::Query(query), _)) = parse(text) else {
        panic!("{text}");
    };
    let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
    match Updatability::of(&query, &columns, &Bindings::default(), true) {
        Updatability::OneTable(base) => Ok(*base),
        Updatability::Unsupported(what) => Err(not_yet(what)),
        other => Err(not_yet(&format!("{other:?}"))),
    }
}

/// A condition on rows of a view, and what the view asks besides, as one on rows of its table.
fn chosen(base: &BaseTable, condition: &str) -> String {
    let columns = ["id", "a", "b"].map(str::to_owned);
    let substitution = Substitution {
        base,
        called: "v",
        named: "v",
        table_columns: &columns,
        has_others: false,
        new_row: None,
    };
    let mut choice = RowChoice {
        from: Vec::new(),
        condition: Some(parse_expression(condition).expect(condition)),
        order_by: Vec::new(),
        limit: None,
    };
    match substitution.choose(&mut choice) {
        Ok(()) => choice.condition.map(|c| c.to_string()).unwrap_or_default(),
        Err(error) => format!("{} {}", error.code, error.message),
    }
}

#[test]
fn columns_of_a_view_become_those_of_its_table() {
    let view = "SELECT id AS i, (a), t.a + 1 AS b FROM t WHERE d.t.a > 1";
    let base = base(view, &["I", "a", "b"]).expect(view);
    for (condition, expected) in [
        ("i = 5", "(`v`.`a` > 1) AND (`v`.`id` = 5)"),
        (
            "v.b = d.v.I",
            "(`v`.`a` > 1) AND ((`v`.`a` + 1) = `v`.`id`)",
        ),
        ("a OR b", "(`v`.`a` > 1) AND (`v`.`a` OR (`v`.`a` + 1))"),
        ("id = 5", "1054 Unknown column 'id' in 'where clause'"),
        ("v.id = 5", "1054 Unknown column 'v.id' in 'where clause'"),
        // Of the tables of a subquery.
        (
            "i IN (SELECT x.i + y FROM x)",
            "(`v`.`a` > 1) AND (`v`.`id` IN (SELECT x.i + y FROM x))",
        ),
        (
            "EXISTS (SELECT a FROM x WHERE x.i = v.i)",
            "(`v`.`a` > 1) AND (EXISTS (SELECT a FROM x WHERE x.i = `v`.`id`))",
        ),
    ] {
        assert_eq!(chosen(&base, condition), expected, "{condition}");
    }
    for condition in [
        "EXISTS (SELECT 1 FROM x WHERE i = 1)",
        "EXISTS (SELECT 1 FROM x WHERE id = 1)",
        "EXISTS (SELECT 1 FROM v WHERE v.i = 1)",
    ] {
        let refused = chosen(&base, condition);
        assert!(refused.starts_with("1235"), "{condition} {refused}");
    }
}

#[test]
fn views_over_views_are_those_of_the_table() {
    let inner = base("SELECT a + 1 AS b, id FROM t WHERE id < 9", &["b", "i"]).expect("one");
    let outer = base("SELECT -b AS c, i AS b FROM w WHERE b > 3", &["c", "b"]).expect("two");
    let base = outer.over(&inner).expect("one over the other");
    assert_eq!(
        chosen(&base, "b = c"),
        "((`v`.`id` < 9) AND ((`v`.`a` + 1) > 3)) AND (`v`.`id` = (-(`v`.`a` + 1)))"
    );
    assert_eq!(base.table.table, "t");
    assert_eq!(base.shown().collect::<Vec<_>>(), ["id"]);
    let check = base.check().map(ToString::to_string);
    assert_eq!(check.as_deref(), Some("(`id` < 9) AND ((`a` + 1) > 3)"));
}

#[test]
fn the_order_of_a_view_says_which_rows_are_the_first() {
    for (order, expected) in [
        ("", Some("")),
        ("ORDER BY 2 DESC, t.id", Some("(`a` + 1) DESC, `id`")),
        ("ORDER BY B, -a DESC, 'x'", Some("(`a` + 1), -`a` DESC")),
        // Of the table or of the list.
        ("ORDER BY b + 1", None),
        ("ORDER BY (SELECT 1)", None),
    ] {
        let text = format!("SELECT id AS i, (a + 1) AS b FROM t {order}");
        let base = base(&text, &["i", "b"]).expect(&text);
        let shown = base.order.map(|order| {
            let order: Vec<String> = order.iter().map(ToString::to_string).collect();
            order.join(", ")
        });
        assert_eq!(shown.as_deref(), expected, "{text}");
    }
}

#[test]
fn rows_of_some_views_are_none_of_a_table() {
    for (text, expected) in [
        ("SELECT DISTINCT a FROM t", "NotUpdatable"),
        ("SELECT a FROM t GROUP BY a", "NotUpdatable"),
        ("SELECT a FROM t LIMIT 1", "NotUpdatable"),
        ("SELECT a FROM t UNION SELECT a FROM t", "NotUpdatable"),
        ("SELECT ROW_NUMBER() OVER () AS a FROM t", "NotUpdatable"),
        (
            "SELECT a FROM t ORDER BY ROW_NUMBER() OVER ()",
            "NotUpdatable",
        ),
        ("SELECT 1 AS a", "NotUpdatable"),
        ("SELECT a FROM 'a.csv'", "NotUpdatable"),
        ("SELECT a FROM (SELECT a FROM t) AS d", "NotUpdatable"),
        ("SELECT t.a FROM t JOIN u", "SeveralTables"),
        ("SELECT a FROM t WHERE a IN (SELECT 1)", "subquery"),
    ] {
        let refused = base(text, &["a"]).expect_err(text).message;
        assert!(refused.contains(expected), "{text} {refused}");
    }
}
