//! What is nested is read once.
//!
//! Each of these ends at once when that is so. When it is not, the depths of 40 and 200 take longer
//! than anybody waits, or are refused by the bound on what is read.

use super::parse;

fn code(text: &str) -> Option<u16> {
    parse(text).err().map(|error| error.code)
}

fn nested(open: &str, inner: &str, close: &str, depth: usize) -> String {
    format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
}

/// Expressions around an expression, each with one level of its own, or two at most.
const SHAPES: [(&str, &str); 35] = [
    ("(", ")"),
    ("1 IN (", ")"),
    ("1 NOT IN (", ", 2)"),
    ("1 IN ((", "))"),
    ("1 IN ((1), ", ")"),
    ("1 IN ((", "), 2)"),
    ("(1, 2) IN ((", ", 2), (3, 4))"),
    ("CAST(", " AS CHAR)"),
    ("CAST(", " AS CHAR(3) CHARACTER SET utf8mb4)"),
    ("CAST(", " AS CHAR(3) CHARACTER SET latin1)"),
    ("CONVERT(", ", CHAR)"),
    ("CONVERT(", ", CHAR(3) CHARSET utf8)"),
    ("CONVERT(", " USING utf8mb4)"),
    ("CHAR(", ")"),
    ("CHAR(65, ", " USING utf8mb4)"),
    ("INTERVAL(", ", 2)"),
    ("1 + INTERVAL ", " DAY"),
    ("DATE_ADD(1, INTERVAL ", " DAY)"),
    ("DATE_ADD(1, INTERVAL (", ") DAY)"),
    ("POSITION('a' IN ", ")"),
    ("POSITION((", ") IN 'a')"),
    ("SUBSTRING(", ", 1, 2)"),
    ("SUBSTR('a' FROM ", " FOR 1)"),
    ("TRIM(", ")"),
    ("TRIM(BOTH FROM ", ")"),
    ("EXTRACT(DAY FROM ", ")"),
    ("CASE WHEN 1 THEN ", " END"),
    ("CASE (", ") WHEN 1 THEN 2 END"),
    ("NOT (", ")"),
    ("+(", ")"),
    ("1 BETWEEN 0 AND (", ")"),
    ("ABS(", ")"),
    ("{fn ABS(", ")}"),
    ("CURRENT_TIMESTAMP(", ")"),
    ("ROW(1, ", ")"),
];

#[test]
fn an_expression_in_an_expression_is_read_once() {
    for (open, close) in SHAPES {
        for depth in [24, 40, 90] {
            let text = format!("SELECT {}", nested(open, "1", close, depth));
            assert_eq!(code(&text), None, "{depth}: {text}");
        }
        // No deeper than the parser goes.
        let text = format!("SELECT {}", nested(open, "1", close, 200));
        assert_eq!(code(&text), Some(1064), "{text}");
    }
}

/// An error in the middle does not make the parser try what is around it in another way.
#[test]
fn a_wrong_expression_in_an_expression_is_read_once() {
    for (open, close) in SHAPES {
        for (inner, depth) in [
            ("1 +", 24),
            ("1 + * 2", 40),
            ("1 2", 24),
            (")", 90),
            ("", 200),
        ] {
            let text = format!("SELECT {}", nested(open, inner, close, depth));
            assert_eq!(code(&text), Some(1064), "{text}");
        }
    }
}

#[test]
fn a_query_in_a_query_is_read_once() {
    for (open, close) in [
        ("SELECT * FROM (", ") x"),
        ("SELECT 1 IN (", ")"),
        ("SELECT 1 IN ((", "))"),
        ("SELECT 1 IN (((", ")))"),
        ("SELECT 1 IN ((", "), 2)"),
        ("SELECT 1 IN ((", ") UNION (SELECT 2))"),
        ("SELECT 1 IN ((", ") + 1)"),
        ("SELECT EXISTS (", ")"),
        ("SELECT NOT EXISTS ((", "))"),
        ("SELECT 1 = ANY (", ")"),
        ("SELECT ((", "))"),
        ("SELECT DATE_ADD(1, INTERVAL (", ") DAY)"),
        ("SELECT CAST((", ") AS CHAR)"),
        ("SELECT * FROM t, LATERAL (", ") x"),
    ] {
        for depth in [24, 40, 60] {
            // Behind more levels than the parser goes down, three parentheses are too many.
            let text = nested(open, "SELECT 1", close, depth);
            let found = code(&text);
            let is_too_deep = depth > 24 && found == Some(1064);
            assert!(found.is_none() || is_too_deep, "{found:?}: {text}");
            let wrong = nested(open, "SELECT 1 +", close, depth);
            assert_eq!(code(&wrong), Some(1064), "{wrong}");
        }
        let found = code(&nested(open, "SELECT 1", close, 200));
        assert!(matches!(found, Some(1064 | 1473)), "{open}: {found:?}");
    }
}

/// Two readings of tables in parentheses are tried, so those in them are limited.
#[test]
fn tables_in_parentheses_are_read_a_few_times() {
    let joined = |depth: usize| nested("SELECT * FROM ((", "SELECT 1", ") x JOIN t)", depth);
    let wrong = |depth: usize| nested("SELECT * FROM ((", "SELECT", ") x JOIN t)", depth);
    let united = |depth: usize| {
        nested(
            "SELECT * FROM ((",
            "SELECT 1",
            ") UNION (SELECT 2)) x",
            depth,
        )
    };
    assert_eq!(code(&joined(8)), None);
    assert_eq!(code(&united(8)), None);
    assert_eq!(code(&wrong(8)), Some(1064));
    for depth in [24, 40, 200] {
        for text in [joined(depth), wrong(depth), united(depth)] {
            assert_eq!(code(&text), Some(1436), "{text}");
        }
        let unclosed = format!("{}SELECT 1", "SELECT * FROM ((".repeat(depth));
        assert_eq!(code(&unclosed), Some(1436), "{unclosed}");
    }
    let many = |depth: usize| nested("(", "(SELECT 1) x JOIN t", ")", depth);
    for depth in [24, 40, 90] {
        assert_eq!(code(&format!("SELECT * FROM {}", many(depth))), None);
    }
    assert_eq!(code(&format!("SELECT * FROM {}", many(200))), Some(1064));
    // What follows the query in the parentheses is read once.
    let right = |depth: usize| nested("((SELECT 1) x JOIN ", "t", ")", depth);
    for depth in [15, 24, 40] {
        assert_eq!(code(&format!("SELECT * FROM {}", right(depth))), None);
    }
    let condition = vec!["b.c = 1"; 1000].join(" OR ");
    let join = format!(" JOIN b ON {condition})");
    let left = nested("(", "(SELECT 1) a", &join, 20);
    assert_eq!(code(&format!("SELECT * FROM {left}")), None);
    // Beside one another.
    let beside = ", ((SELECT 1) x JOIN t)".repeat(20);
    assert_eq!(code(&format!("SELECT * FROM t{beside}")), None);
}

#[test]
fn lists_and_queries_behind_in_are_told_apart() {
    for (values, shown) in [
        ("((SELECT 1))", "1 IN ((SELECT 1))"),
        ("((SELECT 1), 2)", "1 IN ((SELECT 1), 2)"),
        ("((SELECT 1) + 1)", "1 IN ((SELECT 1) + 1)"),
        ("(((SELECT 1)), 2)", "1 IN (((SELECT 1)), 2)"),
        (
            "((SELECT 1) UNION (SELECT 2))",
            "1 IN ((SELECT 1) UNION (SELECT 2))",
        ),
        (
            "((SELECT 1) ORDER BY 1 LIMIT 1)",
            "1 IN ((SELECT 1) ORDER BY 1 LIMIT 1)",
        ),
        ("((1), 2)", "1 IN ((1), 2)"),
        ("((VALUES(a)), 2)", "1 IN ((VALUES(a)), 2)"),
    ] {
        let parsed = super::parse_expression(&format!("1 IN {values}"));
        assert_eq!(parsed.unwrap().to_string(), shown);
    }
}

#[test]
fn types_of_casts_have_character_sets() {
    for (text, shown) in [
        ("CAST(a AS CHAR CHARACTER SET utf8)", "CAST(a AS CHAR)"),
        ("CAST(a AS CHAR(3) CHARSET binary)", "CAST(a AS BINARY(3))"),
        (
            "CAST(a AS CHAR CHARACTER SET latin1)",
            "CONVERT(CAST(a AS CHAR) USING latin1)",
        ),
        (
            "CAST(a AS CHAR(3) CHARSET ascii)",
            "CONVERT(CAST(a AS CHAR(3)) USING ascii)",
        ),
        (
            "CAST(a AS CHAR ASCII)",
            "CONVERT(CAST(a AS CHAR) USING latin1)",
        ),
        ("CAST(a AS CHAR BINARY)", "CAST(a AS CHAR)"),
        ("CONVERT(a, CHAR(3) CHARSET utf8)", "CONVERT(a, CHAR(3))"),
        (
            "CONVERT(a, CHAR CHARACTER SET latin1)",
            "CONVERT(CONVERT(a, CHAR) USING latin1)",
        ),
        ("CONVERT(a USING latin1)", "CONVERT(a USING latin1)"),
    ] {
        let parsed = super::parse_expression(text);
        assert_eq!(parsed.unwrap().to_string(), shown);
    }
    for set in ["latin1", "utf8"] {
        let text = format!("SELECT CAST(1 AS SIGNED CHARACTER SET {set})");
        assert_eq!(code(&text), Some(1064));
    }
}

#[test]
fn intervals_are_values_and_a_function() {
    for (text, shown) in [
        ("1 + INTERVAL (2) DAY", "1 + INTERVAL (2) DAY"),
        ("1 + INTERVAL (2) + 3 DAY", "1 + INTERVAL (2) + 3 DAY"),
        (
            "1 + INTERVAL (a) COLLATE b DAY",
            "1 + INTERVAL (a) COLLATE b DAY",
        ),
        (
            "1 + INTERVAL a COLLATE b DAY",
            "1 + INTERVAL a COLLATE b DAY",
        ),
        ("INTERVAL(1, 2, 3) + 4", "interval(1, 2, 3) + 4"),
        ("t.interval", "t.`interval`"),
        ("1 + INTERVAL 1 SQL_TSI_DAY", "1 + INTERVAL 1 DAY"),
    ] {
        let parsed = super::parse_expression(text);
        assert_eq!(parsed.unwrap().to_string(), shown);
    }
}

/// The bound on what is read ends what nobody has thought of: here a name of many parts whose last
/// one is missing, where the parser tries each part as the beginning of a name.
#[test]
fn readings_that_double_are_refused() {
    for depth in [24, 40, 150] {
        let text = format!("SELECT 1 WHERE ({})", "a.".repeat(depth));
        let error = parse(&text).unwrap_err();
        assert_eq!(error.code, 1436, "{error}");
    }
}

/// Behind a point a word is a name, whatever it begins elsewhere.
#[test]
fn columns_with_the_names_of_constructs_are_read_once() {
    for word in ["interval", "case", "cast", "not", "position", "`a`"] {
        let terms = vec![format!("t.{word}"); 400].join(" - ");
        assert_eq!(code(&format!("SELECT {terms} FROM t")), None, "{word}");
    }
}

#[test]
fn a_name_does_not_go_on_with_a_value() {
    let text = "x".repeat(1 << 20);
    for depth in [1, 12, 100] {
        let name = "a.".repeat(depth);
        assert_eq!(code(&format!("SELECT {name}('{text}')")), Some(1064));
        assert_eq!(code(&format!("SELECT {name}'{text}'.")), Some(1064));
    }
    // Each reading of a long text counts as what it costs.
    let name = "a.".repeat(20);
    let found = code(&format!("SELECT {name}\"{text}\" . )"));
    assert!(matches!(found, Some(1064 | 1436)), "{found:?}");
}

#[test]
fn long_statements_are_read_whole() {
    let terms = |between: &str, count: usize| vec!["a.b"; count].join(between);
    for text in [
        format!("SELECT 1 WHERE {}", terms(" OR ", 10_000)),
        format!("SELECT 1 WHERE {}", terms(" = 1 AND ", 10_000)),
        format!("SELECT {}", terms(", ", 5000)),
        format!("SELECT 1 IN ({})", terms(", ", 5000)),
        format!("SELECT 1 IN (({}))", terms("), (", 5000)),
        format!("SELECT CONCAT({})", terms(", ", 5000)),
        format!("INSERT INTO t VALUES ({})", vec!["1"; 5000].join("), (")),
        format!("SELECT 1 WHERE {}", vec!["a = 1"; 10_000].join(" OR ")),
        format!(
            "SELECT 1 WHERE {}",
            vec!["a = 1 AND b = 2"; 5000].join(" OR ")
        ),
        format!(
            "SELECT 1 WHERE {}",
            vec!["x BETWEEN 1 AND 2"; 5000].join(" OR ")
        ),
        format!("SELECT 1 WHERE {}", vec!["a = 1 && b"; 5000].join(" AND ")),
        format!("SELECT {}", vec!["CASE WHEN 1 THEN 1 END"; 400].join(" + ")),
        format!(
            "SELECT {}",
            vec!["CASE a WHEN 1 THEN 'b' ELSE 2 END"; 5000].join(", ")
        ),
        format!(
            "SELECT CASE {}END",
            "WHEN a + 1 > b THEN c - 1 ".repeat(5000)
        ),
        format!("SELECT {}", vec!["t.a"; 400].join(" || ")),
        format!(
            "SELECT CONCAT({}){}",
            terms(", ", 100_000),
            " DIV 1".repeat(499)
        ),
        format!("SELECT '{}'", "x".repeat(1 << 20)),
    ] {
        assert_eq!(code(&text), None, "{}", &text[..60]);
    }
}

/// Chains whose words end other chains: they would become trees as deep as they are long.
#[test]
fn endless_chains_are_refused() {
    for (first, more) in [
        ("1", " XOR 1 AND 1"),
        ("1", " XOR 1"),
        ("1", " || 1 OR 1"),
        ("1", " XOR 1 && 1"),
        ("CASE WHEN 1 THEN 1 END", " + CASE WHEN 1 THEN 1 END"),
        ("1", " MEMBER OF(1)"),
        ("1", " IS NULL"),
        ("1", " LIKE 1"),
        ("1", " REGEXP 1"),
        ("1", " SOUNDS LIKE 1"),
        ("1", " IN (1)"),
        ("1", " IN ((1), 2)"),
        ("1", " COLLATE utf8mb4_bin"),
        ("1", " = ANY (SELECT 1)"),
        ("a", " -> '$'"),
        ("(SELECT 1 AS a)", " + (SELECT 1 AS a)"),
    ] {
        for count in [2000, 100_000] {
            let text = format!("SELECT {first}{}", more.repeat(count));
            assert_eq!(code(&text), Some(1436), "{first}{more}");
        }
    }
    // What goes to the right is nested.
    for (first, more) in [
        ("1", " BETWEEN 0 AND 1"),
        ("1", " NOT BETWEEN 0 AND 1"),
        ("@a", " := @a"),
    ] {
        let text = |count: usize| format!("SELECT {first}{}", more.repeat(count));
        assert_eq!(code(&text(20)), None, "{first}{more}");
        for count in [2000, 100_000] {
            assert_eq!(code(&text(count)), Some(1064), "{first}{more}");
        }
    }
    for text in [
        format!("SELECT 1{}", " && 1 AND 1".repeat(100_000)),
        format!("SELECT 1{}", " OR 1 AND 1".repeat(100_000)),
    ] {
        assert_eq!(code(&text), None, "{}", &text[..60]);
    }
}

/// Chains inside of chains count together.
#[test]
fn chains_that_end_others_are_as_deep_as_those_in_them() {
    let chain = " XOR 1 AND 1".repeat(400);
    let around = |depth: usize| nested("(", "1", &format!("{chain})"), depth);
    assert_eq!(code(&format!("SELECT {}", around(2))), None);
    for depth in [5, 40, 90] {
        assert_eq!(code(&format!("SELECT {}", around(depth))), Some(1436));
    }
    let calls = nested("ABS(1 + ", "1", &format!("{chain})"), 5);
    assert_eq!(code(&format!("SELECT {calls}")), Some(1436));
    let beside = vec![around(2); 20].join(", ");
    assert_eq!(code(&format!("SELECT {beside}")), None);
    let joined = vec![around(2); 20].join(" AND ");
    assert_eq!(code(&format!("SELECT {joined}")), None);
}

/// What the parser goes down without counting.
#[test]
fn endless_nesting_is_refused() {
    let columns = "NESTED PATH '$' COLUMNS (".repeat(100_000);
    let table = format!("SELECT * FROM JSON_TABLE('[]', '$' COLUMNS ({columns}");
    assert_eq!(code(&table), Some(1064));
    let explained = format!("{}SELECT 1", "EXPLAIN ANALYZE ".repeat(100_000));
    assert_eq!(code(&explained), Some(1064));
    let typed = format!("SELECT CAST(1 AS {}INT)", "ARRAY<".repeat(400));
    assert_eq!(code(&typed), Some(1064));
    assert_eq!(code(&format!("SELECT {}1", "array < ".repeat(400))), None);
}
