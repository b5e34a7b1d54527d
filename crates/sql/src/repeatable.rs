//! Which queries return the same for the same rows, whenever they run.
//!
//! Owns the lists of the expressions and the functions that are known to, but for values that
//! every statement has of its own ([`crate::statement_values`]), such as `NOW()`. What is on no
//! list, such as RAND(), a variable or a common table expression, is taken to be otherwise.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArguments, Query, Select, SelectModifiers, SetExpr, TableFactor,
    Visitor,
};

use crate::call::name_of;
use crate::references::References;
use crate::statement_values::is_call;
use crate::walk;

/// Functions whose value depends on their arguments, and on nothing but the session's variables
/// besides, and is not much longer; in order.
const FUNCTIONS: &[&str] = &[
    "abs",
    "ascii",
    "avg",
    "ceil",
    "ceiling",
    "char_length",
    "character_length",
    "coalesce",
    "concat",
    "concat_ws",
    "count",
    "crc32",
    "date",
    "date_format",
    "datediff",
    "day",
    "dayname",
    "dayofmonth",
    "dayofweek",
    "dayofyear",
    "elt",
    "exp",
    "field",
    "find_in_set",
    "floor",
    "greatest",
    "hex",
    "hour",
    "if",
    "ifnull",
    "instr",
    "isnull",
    "lcase",
    "least",
    "left",
    "length",
    "ln",
    "locate",
    "lower",
    "ltrim",
    "max",
    "md5",
    "mid",
    "min",
    "minute",
    "mod",
    "month",
    "monthname",
    "nullif",
    "octet_length",
    "pow",
    "power",
    "quarter",
    "reverse",
    "right",
    "round",
    "rtrim",
    "second",
    "sha1",
    "sign",
    "sqrt",
    "strcmp",
    "substr",
    "substring",
    "substring_index",
    "sum",
    "truncate",
    "ucase",
    "unhex",
    "upper",
    "week",
    "weekday",
    "year",
];

/// Further functions whose value depends on their arguments and the session's variables, in order.
const OF_PLANS: &[&str] = &[
    "adddate",
    "convert_tz",
    "date_add",
    "date_sub",
    "extract",
    "from_unixtime",
    "last_day",
    "subdate",
    "timestampadd",
    "timestampdiff",
    "to_days",
    "unix_timestamp",
];

/// Whether a query returns the same for the same rows of its tables, the same variables and the
/// same values of the statement.
pub fn is_repeatable(query: &Query, references: &References) -> bool {
    let is_outside = !references.files.is_empty()
        || !references.user_variables.is_empty()
        || !references.system_variables.is_empty();
    !is_outside && walk::read(query, &mut Reader).is_continue()
}

struct Reader;

impl Visitor for Reader {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let is_plain = query.with.is_none()
            // FOR UPDATE locks nothing.
            && query.locks.iter().all(|lock| lock.of.is_none())
            && matches!(
                query.body.as_ref(),
                SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::SetOperation { .. }
            );
        go_on(is_plain)
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        // SQL_CALC_FOUND_ROWS runs a query twice.
        let is_plain = |modifiers: &SelectModifiers| !modifiers.sql_calc_found_rows;
        go_on(select.into.is_none() && select.select_modifiers.as_ref().is_none_or(is_plain))
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        go_on(match factor {
            TableFactor::Table { args, .. } => args.is_none(),
            TableFactor::Derived { .. } | TableFactor::NestedJoin { .. } => true,
            _ => false,
        })
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        go_on(match expr {
            Expr::Identifier(_)
            | Expr::CompoundIdentifier(_)
            | Expr::Cast { .. }
            | Expr::Interval(_)
            | Expr::Extract { .. }
            | Expr::Value(_)
            | Expr::Nested(_)
            | Expr::Tuple(_)
            | Expr::BinaryOp { .. }
            | Expr::UnaryOp { .. }
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::IsTrue(_)
            | Expr::IsNotTrue(_)
            | Expr::IsFalse(_)
            | Expr::IsNotFalse(_)
            | Expr::InList { .. }
            | Expr::InSubquery { .. }
            | Expr::Between { .. }
            | Expr::Like { .. }
            | Expr::Case { .. }
            | Expr::Exists { .. }
            | Expr::Subquery(_)
            | Expr::Substring { .. }
            | Expr::Trim { .. } => true,
            Expr::Function(function) => {
                is_function(function) || is_on(OF_PLANS, function) || is_call(function)
            }
            _ => false,
        })
    }
}

fn go_on(may_be: bool) -> ControlFlow<()> {
    match may_be {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    }
}

/// Whether a call is that of a function whose value depends on its arguments only.
pub fn is_function(function: &Function) -> bool {
    is_on(FUNCTIONS, function)
}

/// Whether a call is that of a function of a list.
fn is_on(list: &[&str], function: &Function) -> bool {
    let Some(name) = name_of(&function.name) else {
        return false;
    };
    let has_arguments = matches!(function.args, FunctionArguments::List(_));
    has_arguments && function.over.is_none() && list.binary_search(&name.as_str()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;
    use crate::statement::Statement;

    #[test]
    fn queries_that_may_return_something_else_are_told_apart() {
        let is_it = |text: &str| match parse(text).unwrap().0 {
            Statement::Query(query) => is_repeatable(&query, &References::of_query(&query)),
            other => panic!("{other:?}"),
        };
        assert!(FUNCTIONS.is_sorted() && OF_PLANS.is_sorted());
        for text in [
            "SELECT a, (SELECT b FROM u WHERE u.id = t.id) FROM t WHERE id IN (1, 2) ORDER BY a",
            "SELECT COUNT(*), UPPER(a) FROM t JOIN u USING (id) GROUP BY 2 HAVING COUNT(*) > 1",
            "SELECT 1 UNION SELECT a + 1 FROM (SELECT a FROM t LIMIT 3) AS d",
            "SELECT a FROM t LIMIT 1 FOR UPDATE",
            "SELECT a FROM t WHERE id = 1 LOCK IN SHARE MODE",
            "SELECT NOW()",
            "SELECT NOW(6), LOCALTIME, CURRENT_TIME(3), UNIX_TIMESTAMP(), UNIX_TIMESTAMP(a) FROM t",
            "SELECT CURRENT_TIMESTAMP",
            "SELECT a FROM t WHERE a = (SELECT LAST_INSERT_ID())",
            "SELECT DATABASE(), SCHEMA(), USER(), CURRENT_USER, CONNECTION_ID()",
            "SELECT UTC_TIMESTAMP",
            "SELECT id FROM t WHERE d > utc_date",
            "SELECT CAST('10:00' AS TIME)",
            "SELECT a FROM t WHERE d > CURDATE() - INTERVAL 1 DAY",
            "SELECT a FROM t WHERE DATE_ADD(d, INTERVAL 5 MINUTE) > NOW()",
        ] {
            assert!(is_it(text), "{text}");
        }
        for text in [
            "SELECT a FROM t WHERE b = RAND()",
            "SELECT @a",
            "SELECT SYSDATE()",
            "SELECT LAST_INSERT_ID(5)",
            "SELECT @@autocommit",
            "SELECT a FROM 'file.csv'",
            "WITH d AS (SELECT 1) SELECT * FROM d",
            "SELECT a FROM t ORDER BY UUID()",
            "SELECT SQL_CALC_FOUND_ROWS a FROM t LIMIT 2",
            "SELECT MD5(RPAD(a, 1000000, 'x')) FROM t",
            "SELECT a, ROW_NUMBER() OVER (ORDER BY a) FROM t",
            "SELECT a FROM t LIMIT 1 FOR UPDATE OF t",
        ] {
            assert!(!is_it(text), "{text}");
        }
    }
}
