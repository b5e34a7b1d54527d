//! Cells of one shape against the same cells alone.

use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::SessionConfig;
use mayfly_types::ColumnType;

use super::*;
use crate::bindings::Bindings;
use crate::functions::{SessionValues, register};
use crate::parse::parse_expression;
use crate::typing::type_planner;

fn state(session: &SessionValues) -> SessionState {
    let mut config = SessionConfig::new();
    config.options_mut().extensions.insert(session.clone());
    let builder = SessionStateBuilder::new().with_config(config);
    let mut state = register(builder.with_default_features()).build();
    // From here on functions find the session.
    state.mark_start_execution();
    state
}

fn bindings() -> Bindings {
    let variables = [("v".to_owned(), ScalarValue::Int64(Some(7)))];
    Bindings {
        user_variables: variables.into(),
        aggregates: Arc::new(["count".to_owned()].into()),
        ..Bindings::default()
    }
}

/// Runs a test with a planner; how many warnings that adds.
fn with_planner(run: impl FnOnce(&Planner<'_>)) -> u64 {
    let session = SessionValues::default();
    let (state, bindings) = (state(&session), bindings());
    run(&Planner {
        state: &state,
        type_planner: Some(type_planner()),
        bindings: &bindings,
    });
    session.lock().warning_count
}

fn parsed(sql: &str) -> ast::Expr {
    parse_expression(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// The values of cells computed together, and how many shapes were planned for them.
fn together(planner: &Planner<'_>, cells: &[&str]) -> (Vec<Option<TypedValue>>, usize) {
    let mut constants = Constants::default();
    for (place, cell) in cells.iter().enumerate() {
        let constant = Constant::of(&parsed(cell)).unwrap_or_else(|| panic!("{cell}"));
        constants.add(place, constant);
    }
    let mut shapes = Shapes::default();
    let computed = planner.constants(constants, &mut shapes);
    let mut values = vec![None; cells.len()];
    for (place, value) in computed.expect("no watch").values {
        values[place] = Some(value);
    }
    (values, shapes.made())
}

fn alone(planner: &Planner<'_>, cell: &str) -> TypedValue {
    let values = planner.values(vec![parsed(cell)]);
    let values = values.unwrap_or_else(|error| panic!("{cell}: {error}"));
    values.and_then(|mut values| values.pop()).expect(cell)
}

/// Cells that are of so many shapes, and have the values that they have alone.
fn check(shapes: usize, cells: &[&str]) {
    let warnings = with_planner(|planner| {
        let (values, made) = together(planner, cells);
        for (cell, value) in cells.iter().zip(values) {
            let expected = alone(planner, cell);
            let types = value.as_ref().map(TypedValue::column_type);
            assert_eq!(types, Some(expected.column_type()), "{cell}");
            let value = value.map(|typed| typed.value);
            assert_eq!(value, Some(expected.value), "{cell}");
        }
        assert_eq!(made, shapes, "{cells:?}");
    });
    assert_eq!(warnings, 0, "{cells:?}");
}

#[test]
fn a_thousand_cells_of_one_shape_are_planned_once() {
    let cells: Vec<String> = (1000..2000).map(|i| format!("CONCAT('a', {i})")).collect();
    let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
    with_planner(|planner| {
        let (values, made) = together(planner, &cells);
        assert_eq!(made, 1);
        for (number, value) in (1000..).zip(values) {
            let value = value.and_then(|typed| typed.value.try_as_str()?.map(str::to_owned));
            assert_eq!(value, Some(format!("a{number}")));
        }
    });
}

#[test]
fn a_statement_keeps_its_shapes() {
    with_planner(|planner| {
        let mut shapes = Shapes::default();
        for cell in ["UPPER('a')", "UPPER('b')"] {
            let mut constants = Constants::default();
            constants.add(5, Constant::of(&parsed(cell)).expect("a constant"));
            let computed = planner.constants(constants, &mut shapes);
            let values = computed.expect("no watch").values;
            let values: Vec<_> = { values.into_iter() }
                .map(|(place, typed)| (place, typed.value))
                .collect();
            assert_eq!(values, [(5, alone(planner, cell).value)]);
        }
        assert_eq!(shapes.made(), 1);
    });
}

#[test]
fn cells_that_differ_in_literals_are_of_one_shape() {
    for cells in [
        ["CONCAT('a', 1)", "CONCAT(\"bc\", -2)"],
        ["concat('a', (1))", "CONCAT('', (0))"],
        ["UPPER(LEFT('abc', 2))", "upper(left('defg', 3))"],
        ["1 + 2", "-3 + 4"],
        ["(10 - 2) * 3 / 7", "(99 - 9) * 8 / 1"],
        ["1.25 * 3", "-9.99 * 2"],
        ["'1.5' + 1", "'2.5' + 7"],
        ["7 DIV 2 + 7 % 4", "9 DIV 5 + 8 % 3"],
        ["5 | 8", "1 | 2"],
        ["-(5)", "-(5)"],
        ["- ABS(-5)", "- ABS(4)"],
        ["ROUND(1.25, 1)", "ROUND(9.35, 1)"],
        ["CAST('12' AS SIGNED)", "CAST('-7' AS SIGNED)"],
        ["CAST(1.5 AS CHAR)", "CAST(2.5 AS CHAR)"],
        [
            "CAST('1.25' AS DECIMAL(5,2))",
            "CAST('3.14' AS DECIMAL(5,2))",
        ],
        ["CAST('2026-01-02' AS DATE)", "CAST('1999-12-31' AS DATE)"],
        ["DATE '2026-01-02'", "DATE '1999-12-31'"],
        ["TIME '10:11:12.5'", "TIME '01:00:00.7'"],
        [
            "TIMESTAMP '2026-01-02 03:04:05'",
            "TIMESTAMP '1999-12-31 23:59:59'",
        ],
        [
            "TIMESTAMP('2026-01-02 03:04:05.25')",
            "TIMESTAMP('1999-12-31 23:59:59.75')",
        ],
        [
            "DATE_ADD('2026-01-31', INTERVAL 1 MONTH)",
            "DATE_ADD('2024-02-29', INTERVAL -1 MONTH)",
        ],
        [
            "DATE '2026-01-31' + INTERVAL 1 DAY",
            "DATE '2026-02-28' + INTERVAL 2 DAY",
        ],
        [
            "DATE_FORMAT('2026-01-02', '%d.%m.%y')",
            "DATE_FORMAT('2025-03-04', '%W')",
        ],
        [
            "STR_TO_DATE('1/2/2026', '%d/%m/%Y')",
            "STR_TO_DATE('3/4/2025', '%d/%m/%Y')",
        ],
        [
            "TIMESTAMPDIFF(DAY, '2026-01-01', '2026-02-01')",
            "TIMESTAMPDIFF(DAY, '2024-01-01', '2024-03-01')",
        ],
        ["IF(1 > 0, 'a', 'b')", "IF(1 > 0, 'c', 'd')"],
        ["COALESCE(NULL, 5)", "COALESCE(NULL, 6)"],
        [
            "CASE 1 WHEN 1 THEN CONCAT('a', 1) END",
            "CASE 1 WHEN 1 THEN CONCAT('b', 2) END",
        ],
        [
            "TRIM(LEADING 'x' FROM 'xxa')",
            "TRIM(LEADING 'y' FROM 'yb')",
        ],
        ["SUBSTRING('abcdef', 2, 3)", "SUBSTRING('ghijkl', 1, 2)"],
        ["@v + 1", "@v + 2"],
        ["NOW()", "now()"],
        ["MAKETIME(1, 2, 3)", "maketime(4, 5, 6)"],
        ["SEC_TO_TIME(61)", "SEC_TO_TIME(75)"],
        ["MD5('a')", "MD5('b')"],
    ] {
        check(1, &cells);
    }
}

#[test]
fn values_have_their_mysql_types() {
    for (cell, of) in [
        ("MAKETIME(1, 2, 3)", "time"),
        ("MAKETIME(1, 2, 3.5)", "time(1)"),
        ("CAST('2026-01-02 03:04:05' AS DATETIME(3))", "datetime(3)"),
        ("NOW(6)", "datetime(6)"),
        ("DATE '2026-01-02'", "date"),
    ] {
        with_planner(|planner| {
            let of: ColumnType = of.parse().expect(of);
            assert_eq!(alone(planner, cell).column_type(), of, "{cell}");
            let (values, _) = together(planner, &[cell, cell]);
            for value in values {
                assert_eq!(value.expect(cell).column_type(), of, "{cell}");
            }
        });
    }
}

#[test]
fn texts_of_many_lengths_stay_together() {
    with_planner(|planner| {
        let (short, long) = ("CONCAT('a', 1)", "CONCAT('abc', 1)");
        assert!(alone(planner, short).has_type_of(&alone(planner, long)));
        let (whole, parts) = ("MAKETIME(1, 2, 3)", "MAKETIME(1, 2, 3.5)");
        assert!(!alone(planner, whole).has_type_of(&alone(planner, parts)));
    });
}

#[test]
fn what_decides_a_type_is_part_of_the_shape() {
    for cells in [
        ["'1' + 1", "1 + 1"],
        ["1.5 + 1", "1.25 + 1"],
        ["1 / 3", "10 / 3"],
        ["ROUND(1.25, 1)", "ROUND(1.25, 0)"],
        ["NOW(1)", "NOW(2)"],
        [
            "TIMESTAMP('2026-01-02 03:04:05.2')",
            "TIMESTAMP('2026-01-02 03:04:05.25')",
        ],
        ["TIME '10:11:12'", "TIME '10:11:12.5'"],
        ["CAST('1' AS DECIMAL(5,2))", "CAST('1' AS DECIMAL(5,1))"],
        [
            "DATE_ADD('2026-01-31', INTERVAL 1 DAY)",
            "DATE_ADD('2026-01-31', INTERVAL 1 HOUR)",
        ],
        [
            "STR_TO_DATE('1/2/2026', '%d/%m/%Y')",
            "STR_TO_DATE('1/2/2026', '%m/%d/%Y')",
        ],
        ["CONCAT('a', NULL)", "CONCAT('a', 'b')"],
        ["CONCAT('a', 1e3)", "CONCAT('a', 2e3)"],
        ["CONCAT('a', TRUE)", "CONCAT('a', 1)"],
        ["CONCAT('a', X'41')", "CONCAT('a', X'42')"],
        ["2 > 1", "3 > 1"],
        ["'a' IN ('a', 'b')", "'a' IN ('c', 'b')"],
        ["NULLIF(1, 1)", "NULLIF(1, 2)"],
    ] {
        check(2, &cells);
    }
}

#[test]
fn cells_that_warn_or_fail_are_left() {
    for (cells, left) in [
        (["'1' + 1", "'x' + 1", "'2' + 1"], [false, true, false]),
        (["1 / 1", "1 / 0", "1 / 2"], [false, true, false]),
        (
            [
                "9223372036854775806 + 1",
                "9223372036854775807 + 1",
                "9223372036854775805 + 2",
            ],
            [false, true, false],
        ),
        // Their first cell warns, and is the one that is planned.
        (["'x' + 1", "'1' + 1", "'2' + 1"], [true, false, false]),
        (
            [
                "DATE '2026-02-30'",
                "DATE '2026-02-28'",
                "DATE '2026-02-27'",
            ],
            [true, false, false],
        ),
    ] {
        let warnings = with_planner(|planner| {
            let (values, _) = together(planner, &cells);
            let found: Vec<bool> = values.iter().map(Option::is_none).collect();
            assert_eq!(found, left, "{cells:?}");
            for (cell, value) in cells.iter().zip(values) {
                if let Some(typed) = value {
                    assert_eq!(typed.value, alone(planner, cell).value, "{cell}");
                }
            }
        });
        assert_eq!(warnings, 0, "{cells:?}");
    }
}

#[test]
fn long_values_are_not_all_made_ahead() {
    with_planner(|planner| {
        let cells = vec!["REPEAT('abc', 500000)"; 20];
        let (values, made) = together(planner, &cells);
        let ahead = values.iter().flatten().count();
        assert!((1..20).contains(&ahead), "{ahead}");
        assert_eq!(made, 1);
    });
}

#[test]
fn what_may_change_is_left() {
    with_planner(|planner| {
        let cells = [
            "RAND()",
            "RAND(3)",
            "UUID()",
            "SYSDATE()",
            "SLEEP(0)",
            "LAST_INSERT_ID()",
            "LAST_INSERT_ID(5)",
            "CONCAT('a', UUID())",
            "COUNT(1)",
            "NO_SUCH_FUNCTION(1)",
        ];
        let (values, _) = together(planner, &cells);
        assert_eq!(values, vec![None; cells.len()]);
    });
}

#[test]
fn what_is_no_constant_is_not_taken() {
    for sql in [
        "a + 1",
        "t.a",
        "(SELECT 1)",
        "1 IN (SELECT 1)",
        "EXISTS (SELECT 1)",
        "@@version",
        "@@session.sql_mode",
        "CONCAT(day, 'a')",
    ] {
        assert!(Constant::of(&parsed(sql)).is_none(), "{sql}");
    }
    let long = format!("UPPER('{}')", "a".repeat(100_000));
    assert!(Constant::of(&parsed(&long)).is_none());
    let variable = |sql: &str| Constant::of(&parsed(sql)).map(|of| of.reads_variables());
    assert_eq!(variable("@v + 1"), Some(true));
    assert_eq!(variable("1 + 1"), Some(false));
    assert!(may_assign(&parsed("(SELECT 1)")));
    assert!(!may_assign(&parsed("@v + 1")));
}

#[test]
fn literals_are_read_as_the_planner_reads_them() {
    with_planner(|planner| {
        for sql in [
            "0",
            "-1",
            "9223372036854775807",
            "9223372036854775808",
            "-9223372036854775808",
            "-9223372036854775809",
            "18446744073709551615",
            "18446744073709551616",
            "1.5",
            "-0.05",
            "00.50",
            "0.0",
            "123456789012345678901234567890",
            "''",
            "'it''s'",
        ] {
            let planned = planner.expression(parsed(sql), &DFSchema::empty());
            let value = literal(&parsed(sql)).expect(sql);
            assert_eq!(planned.expect(sql), Expr::Literal(value, None), "{sql}");
        }
        assert_eq!(literal(&parsed("1e3")), None);
        assert_eq!(literal(&parsed("NULL")), None);
    });
}
