//! The expressions of a table's definition: their text, the columns that they mention, and what
//! they may not be made of.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    ObjectName, ObjectNamePart, Query, Value, Visit, Visitor,
};

use crate::call::name_of;
use crate::functions::scalar_function;
use crate::parse::parse_expression;
use crate::references::{is_clock, variable};
use crate::typing::syntax::is_truth;
use crate::walk;

/// Functions whose value is not made of their arguments alone, or whose call has an effect.
const IMPURE: [&str; 36] = [
    "benchmark",
    "connection_id",
    "curdate",
    "current_date",
    "current_role",
    "current_time",
    "current_timestamp",
    "current_user",
    "curtime",
    "database",
    "found_rows",
    "get_lock",
    "is_free_lock",
    "is_used_lock",
    "last_insert_id",
    "load_file",
    "localtime",
    "localtimestamp",
    "name_const",
    "now",
    "rand",
    "release_all_locks",
    "release_lock",
    "row_count",
    "schema",
    "session_user",
    "sleep",
    "sysdate",
    "system_user",
    "user",
    "utc_date",
    "utc_time",
    "utc_timestamp",
    "uuid",
    "uuid_short",
    "version",
];

/// Names that MySQL's errors have for others.
const CALLED: [(&str, &str); 8] = [
    ("current_date", "curdate"),
    ("current_time", "curtime"),
    ("current_timestamp", "now"),
    ("localtime", "now"),
    ("localtimestamp", "now"),
    ("schema", "database"),
    ("session_user", "user"),
    ("system_user", "user"),
];

const AGGREGATES: [&str; 20] = [
    "any_value",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "count",
    "group_concat",
    "grouping",
    "json_arrayagg",
    "json_objectagg",
    "max",
    "min",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "sum",
    "var_pop",
    "var_samp",
    "variance",
];

/// Whether a call is one of the aggregates of MySQL's grammar; the others are functions to it,
/// whose arguments are counted later.
pub fn is_aggregate(name: &ObjectName) -> bool {
    name_of(name).is_some_and(|name| {
        AGGREGATES.contains(&name.as_str()) && !["any_value", "grouping"].contains(&name.as_str())
    })
}

/// Functions whose first argument is a word that looks like a column.
const WITH_UNIT: [&str; 2] = ["timestampadd", "timestampdiff"];

/// What makes an expression unfit for a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    /// A function of this name.
    Function(String),
    /// A subquery.
    Subquery,
    /// A variable of the session or of the server.
    Variable,
    /// An aggregate function.
    Aggregate,
    /// A window function of this name.
    Window(String),
    /// A row in the place of a value.
    Row,
}

/// What is first found of that which an expression of a definition may not have.
pub fn unfit(expression: &Expr) -> Option<Unfit> {
    find_unfit(expression, false)
}

/// The same of the expression of a default, which may differ in each row.
pub fn unfit_default(expression: &Expr) -> Option<Unfit> {
    find_unfit(expression, true)
}

fn find_unfit(expression: &Expr, is_default: bool) -> Option<Unfit> {
    struct Find {
        found: Option<Unfit>,
        is_default: bool,
    }
    impl Visitor for Find {
        type Break = ();

        fn pre_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
            self.found = Some(Unfit::Subquery);
            ControlFlow::Break(())
        }

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            self.found = match expr {
                Expr::Function(function) => unfit_function(function),
                Expr::Identifier(ident) if is_clock(ident) => {
                    Some(Unfit::Function(ident.value.to_ascii_lowercase()))
                }
                expr => variable(expr).map(|_| Unfit::Variable),
            };
            if self.is_default && matches!(self.found, Some(Unfit::Function(_))) {
                self.found = None;
            }
            match self.found {
                Some(_) => ControlFlow::Break(()),
                None => ControlFlow::Continue(()),
            }
        }
    }
    if let Expr::Tuple(_) = bare(expression) {
        return Some(Unfit::Row);
    }
    let found = None;
    let mut find = Find { found, is_default };
    let _ = walk::read(expression, &mut find);
    find.found
}

fn unfit_function(function: &Function) -> Option<Unfit> {
    let name = name_of(&function.name)?;
    if function.over.is_some() {
        return Some(Unfit::Window(name));
    }
    if AGGREGATES.contains(&name.as_str()) {
        return Some(Unfit::Aggregate);
    }
    let has_arguments = match &function.args {
        FunctionArguments::List(list) => !list.args.is_empty(),
        _ => false,
    };
    let of_now = name == "unix_timestamp" && !has_arguments;
    if !of_now && !IMPURE.contains(&name.as_str()) && name != "values" {
        return None;
    }
    let mut called = CALLED.iter().filter(|(other, _)| *other == name);
    let name = called
        .next()
        .map_or(name.as_str(), |(_, called)| called)
        .to_owned();
    Some(Unfit::Function(name))
}

/// Whether an expression is CURRENT_TIMESTAMP, in any of its spellings.
pub fn is_now(expression: &Expr) -> bool {
    match bare(expression) {
        Expr::Function(function) => name_of(&function.name).is_some_and(|name| {
            let mut called = CALLED.iter().filter(|(_, called)| *called == "now");
            name == "now" || called.any(|(other, _)| *other == name)
        }),
        _ => false,
    }
}

fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => bare(inner),
        other => other,
    }
}

/// Whether an expression is true or false by its form, as MySQL asks of a CHECK.
pub fn is_condition(expression: &Expr) -> bool {
    match bare(expression) {
        Expr::Function(function) => {
            let truths = ["isnull", "json_valid", "regexp_like"];
            name_of(&function.name).is_some_and(|name| truths.contains(&name.as_str()))
        }
        other => is_truth(other),
    }
}

/// Whether an expression is the call of a function that users do not have, which is refused where
/// it is planned.
pub fn is_unknown_call(expression: &Expr) -> bool {
    match bare(expression) {
        Expr::Function(function) => {
            name_of(&function.name).is_some_and(|name| scalar_function(&name).is_none())
        }
        _ => false,
    }
}

/// An expression as MySQL prints it: names in backquotes and without their table, each operation in
/// parentheses. It can be read again in the same sense.
pub fn text(expression: &Expr) -> String {
    let mut expression = expression.clone();
    normalize(&mut expression);
    escape(&mut expression);
    expression.to_string()
}

/// An expression as it was written, in a form that can be read again: CURRENT_TIMESTAMP in its
/// first spelling, names of columns without their table.
pub fn written(expression: &Expr) -> String {
    if !mentions(expression).is_empty() {
        return text(expression);
    }
    if let Expr::Function(now) = expression
        && is_now(expression)
    {
        let name = "CURRENT_TIMESTAMP";
        return match &now.args {
            FunctionArguments::List(list) if !list.args.is_empty() => {
                format!("{name}({})", list.args[0])
            }
            _ => name.to_owned(),
        };
    }
    let mut expression = expression.clone();
    escape(&mut expression);
    expression.to_string()
}

/// Gives `||` the meaning that it has now, for good.
pub fn fix_pipes(expression: &mut Expr, pipes_as_concat: bool) {
    walk::change_expressions(expression, &mut |expr| {
        if let Expr::BinaryOp { op, .. } = expr
            && *op == BinaryOperator::StringConcat
            && !pipes_as_concat
        {
            *op = BinaryOperator::Or;
        }
    });
}

/// Whether `||`, which means one thing or another by `sql_mode`, stands in something; in a subquery
/// too.
pub fn has_pipes(node: &impl Visit) -> bool {
    struct Search;
    impl Visitor for Search {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::BinaryOp {
                    op: BinaryOperator::StringConcat,
                    ..
                } => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    walk::read(node, &mut Search).is_break()
}

/// Whether the printed form of an expression is read as the same expression.
pub fn survives(expression: &Expr) -> bool {
    let Ok(mut again) = parse_expression(&text(expression)) else {
        return false;
    };
    let mut expression = expression.clone();
    normalize(&mut expression);
    normalize(&mut again);
    expression == again
}

fn normalize(expression: &mut Expr) {
    walk::change_expressions(expression, &mut |expr| match expr {
        Expr::Identifier(name) => name.quote_style = Some('`'),
        Expr::CompoundIdentifier(names) if variable_free(names) => {
            if let Some(mut name) = names.pop() {
                name.quote_style = Some('`');
                *expr = Expr::Identifier(name);
            }
        }
        Expr::Function(function) => {
            if let Some(unit) = unit_of(function) {
                *unit = Ident::new(unit.value.to_ascii_uppercase());
            }
            if let [ObjectNamePart::Identifier(name)] = function.name.0.as_mut_slice() {
                *name = Ident::new(name.value.to_ascii_lowercase());
            }
        }
        Expr::Value(value) => {
            if let Value::DoubleQuotedString(text) = &mut value.value {
                value.value = Value::SingleQuotedString(std::mem::take(text));
            }
        }
        Expr::Nested(inner) if stands_alone(inner) => {
            let inner = std::mem::replace(inner.as_mut(), Expr::Value(Value::Null.into()));
            *expr = inner;
        }
        other if !stands_alone(other) => {
            let inner = std::mem::replace(other, Expr::Value(Value::Null.into()));
            *other = Expr::Nested(Box::new(inner));
        }
        _ => {}
    });
}

fn variable_free(names: &[Ident]) -> bool {
    names
        .first()
        .is_some_and(|name| !name.value.starts_with('@'))
}

/// Whether an expression needs no parentheses, wherever it stands.
fn stands_alone(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Nested(_)
            | Expr::Identifier(_)
            | Expr::CompoundIdentifier(_)
            | Expr::Value(_)
            | Expr::TypedString(_)
            | Expr::Prefixed { .. }
            | Expr::Function(_)
            | Expr::Cast { .. }
            | Expr::Convert { .. }
            | Expr::Case { .. }
            | Expr::Extract { .. }
            | Expr::Position { .. }
            | Expr::Substring { .. }
            | Expr::Trim { .. }
            | Expr::Overlay { .. }
            | Expr::Ceil { .. }
            | Expr::Floor { .. }
            | Expr::Interval(_)
            | Expr::Tuple(_)
            | Expr::Subquery(_)
    )
}

/// The printer writes a string as it is: its backslashes and quotes must be written for a reader.
fn escape(expression: &mut Expr) {
    walk::change_expressions(expression, &mut |expr| {
        if let Expr::Value(value) = expr
            && let Value::SingleQuotedString(text) = &mut value.value
        {
            *text = text.replace('\\', "\\\\").replace('\'', "\\'");
        }
    });
}

/// The word for a unit of time, where a call has one among its arguments.
pub(crate) fn unit_of(function: &mut Function) -> Option<&mut Ident> {
    let name = name_of(&function.name)?;
    if !WITH_UNIT.contains(&name.as_str()) {
        return None;
    }
    match &mut function.args {
        FunctionArguments::List(list) => match list.args.first_mut()? {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(unit))) => Some(unit),
            _ => None,
        },
        _ => None,
    }
}

/// The columns that an expression mentions, in lower case.
pub fn columns(expression: &Expr) -> HashSet<String> {
    let names = mentions(expression).into_iter();
    names.map(|(_, name)| name.to_lowercase()).collect()
}

/// The columns that an expression mentions, in their order, as they are written: with the name of
/// their table, if there is one.
pub fn mentions(expression: &Expr) -> Vec<(Option<String>, String)> {
    let mut expression = expression.clone();
    walk::change_expressions(&mut expression, &mut |expr| {
        if let Expr::Function(function) = expr
            && let Some(unit) = unit_of(function)
        {
            // Not a column: a variable that nobody has is none either.
            unit.value = "@".to_owned();
        }
    });
    let mut found = Vec::new();
    walk::finds(&expression, &mut |expr| {
        match expr {
            Expr::Identifier(name) if !name.value.starts_with('@') && !is_clock(name) => {
                found.push((None, name.value.clone()));
            }
            Expr::CompoundIdentifier(names) if variable_free(names) => {
                if let [.., table, name] = names.as_slice() {
                    found.push((Some(table.value.clone()), name.value.clone()));
                }
            }
            _ => {}
        }
        false
    });
    found
}

#[cfg(test)]
mod tests {
    use super::{Unfit, fix_pipes, is_condition, mentions, survives, text, unfit};
    use crate::parse::parse_expression;

    fn printed(sql: &str) -> String {
        let expression = parse_expression(sql).expect(sql);
        assert!(survives(&expression), "{sql}");
        let once = text(&expression);
        let again = parse_expression(&once).expect(&once);
        assert_eq!(text(&again), once, "{sql}");
        once
    }

    #[test]
    fn a_text_is_read_again_in_the_same_sense() {
        for (sql, expected) in [
            ("a + 1 * b", "(`a` + (1 * `b`))"),
            ("((a + 1)) > t.c", "((`a` + 1) > `c`)"),
            ("(a = 1) IS TRUE = b", "(((`a` = 1) IS TRUE) = `b`)"),
            (
                "NOT a AND b IS NOT NULL",
                "((NOT `a`) AND (`b` IS NOT NULL))",
            ),
            (r"a = 'it\'s \\ here'", r"(`a` = 'it\'s \\ here')"),
            (r"a = '\\'", r"(`a` = '\\')"),
            ("CONCAT(a, \"x\")", "concat(`a`, 'x')"),
            ("TIMESTAMPDIFF(day, a, b)", "timestampdiff(DAY, `a`, `b`)"),
            (
                "DATE_ADD(a, INTERVAL 1 DAY)",
                "date_add(`a`, INTERVAL 1 DAY)",
            ),
            (
                "a REGEXP 'x' OR b LIKE 'y%'",
                "((`a` REGEXP 'x') OR (`b` LIKE 'y%'))",
            ),
        ] {
            assert_eq!(printed(sql), expected);
        }
    }

    #[test]
    fn many_forms_survive() {
        for sql in [
            "CASE WHEN a > 1 THEN 'x' ELSE b END",
            "CASE a WHEN 1 THEN 2 END",
            "CAST(a AS DECIMAL(10,2))",
            "CAST(a AS SIGNED)",
            "CONVERT(a, CHAR)",
            "a DIV b",
            "a MOD b",
            "a % b",
            "a <=> b",
            "a XOR b",
            "-a",
            "!a",
            "~a & b | c ^ d << 2",
            "a BETWEEN 1 AND 2 + b",
            "a NOT BETWEEN 1 AND 2",
            "a IN (1, 2, b)",
            "a NOT IN (1, 2)",
            "a NOT LIKE 'x|%' ESCAPE '|'",
            "SUBSTRING(a FROM 2 FOR 3)",
            "SUBSTRING(a, 2, 3)",
            "TRIM(LEADING 'x' FROM a)",
            "EXTRACT(YEAR FROM a)",
            "POSITION('x' IN a)",
            "DATE '2020-01-01' < a",
            "x'41'",
            "b'101'",
            "1.50 + 2e3",
            "a || b",
            "a IS NOT FALSE",
            "a IS UNKNOWN",
            "IF(a, 1, NULL)",
            "CHAR_LENGTH(a) COLLATE utf8mb4_bin",
            "a - INTERVAL 1 MONTH",
            "LEFT(a, 3)",
            "CEIL(a) + FLOOR(b)",
            "`select` + `a b`",
        ] {
            printed(sql);
        }
    }

    #[test]
    fn what_is_not_made_of_the_row_is_found() {
        for (sql, expected) in [
            ("a > RAND()", Some(Unfit::Function("rand".to_owned()))),
            (
                "CURRENT_TIMESTAMP > a",
                Some(Unfit::Function("now".to_owned())),
            ),
            ("utc_date", Some(Unfit::Function("utc_date".to_owned()))),
            ("`utc_date`", None),
            (
                "UNIX_TIMESTAMP()",
                Some(Unfit::Function("unix_timestamp".to_owned())),
            ),
            ("UNIX_TIMESTAMP(a)", None),
            ("a = @x", Some(Unfit::Variable)),
            ("a = @@sql_mode", Some(Unfit::Variable)),
            ("a = (SELECT 1)", Some(Unfit::Subquery)),
            ("a IN (SELECT 1)", Some(Unfit::Subquery)),
            ("SUM(a)", Some(Unfit::Aggregate)),
            ("(a, b)", Some(Unfit::Row)),
            ("(a, b) = (1, 2)", None),
            ("UPPER(a)", None),
        ] {
            assert_eq!(unfit(&parse_expression(sql).expect(sql)), expected, "{sql}");
        }
    }

    #[test]
    fn conditions_are_known_by_their_form() {
        let is = |sql: &str| is_condition(&parse_expression(sql).expect(sql));
        for sql in [
            "a > 1",
            "(a) IS NULL",
            "NOT a",
            "a AND b",
            "TRUE",
            "ISNULL(a)",
        ] {
            assert!(is(sql), "{sql}");
        }
        for sql in ["a", "1", "a + 1", "UPPER(a)", "'x'"] {
            assert!(!is(sql), "{sql}");
        }
    }

    #[test]
    fn a_unit_of_time_is_no_column() {
        let expression = parse_expression("TIMESTAMPDIFF(DAY, a, t.b)").expect("an expression");
        let expected = [
            (None, "a".to_owned()),
            (Some("t".to_owned()), "b".to_owned()),
        ];
        assert_eq!(mentions(&expression), expected);
    }

    #[test]
    fn pipes_keep_the_meaning_that_they_had() {
        for (pipes_as_concat, expected) in [(false, "(`a` OR `b`)"), (true, "(`a` || `b`)")] {
            let mut expression = parse_expression("a || b").expect("an expression");
            fix_pipes(&mut expression, pipes_as_concat);
            assert_eq!(text(&expression), expected);
        }
    }
}
