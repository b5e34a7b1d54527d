//! How large a statement becomes where rewrites, the planner and the types write parts of it more
//! than once: what `copies` counts in a plan, counted in the text, before any of it is made.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType, Expr, Function, ObjectName, ObjectNamePart, Query, Select,
    TypedString, UnaryOperator, Value, Visit, Visitor,
};

use super::copies::{LISTED_MAX, hold_grown};
use crate::functions::is_waiting as waits;
use crate::literal::decimal_of;
use crate::select_list::expression_of;
use crate::walk;

/// Functions that the types make a CASE of.
const BECOME_CASE: [&str; 2] = ["if", "nullif"];

/// Refuses a query, or an expression, that would grow to a size that has little to do with its own.
///
/// # Errors
/// 1436 for such a one; those of the watch.
pub fn check_syntax(node: &impl Visit) -> datafusion::error::Result<()> {
    let total = count(node);
    hold_grown(total.plain, total.written, total.field)
}

fn count(node: &impl Visit) -> Cost {
    let mut counter = Counter::default();
    let _always_continues = walk::read(node, &mut counter);
    let mut total = counter.total;
    total.field = total.field.saturating_add(counter.asked);
    total
}

/// What an expression costs, each in nodes that are visited.
#[derive(Clone, Copy, Default)]
struct Cost {
    /// As it stands.
    plain: u64,
    /// With all copies written out.
    written: u64,
    /// Asked for its type; asked for that and for whether it may be NULL.
    of_type: u64,
    field: u64,
    /// Whether a function in it waits: it is asked for only where its turn comes.
    waits: bool,
}

impl Cost {
    const LEAF: Cost = Cost {
        plain: 1,
        written: 1,
        of_type: 1,
        field: 1,
        waits: false,
    };

    fn add_written(&mut self, part: Cost, times: u64) {
        let add = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        add(&mut self.plain, part.plain);
        add(&mut self.written, part.written.saturating_mul(times));
        add(&mut self.of_type, part.of_type);
        add(&mut self.field, part.field);
        self.waits |= part.waits;
    }
}

/// A node whose parts are visited, in the order of the text.
struct Node {
    /// With the parts that are done.
    cost: Cost,
    /// How often its next part is written, and how often those behind it.
    next: u64,
    others: u64,
    last_waits: bool,
    /// Whether the values of its parts are asked for, and not only whether they are true.
    asks_values: bool,
}

impl Node {
    fn new(cost: Cost, (next, others): (u64, u64), asks_values: bool) -> Node {
        Node {
            cost,
            next,
            others,
            last_waits: false,
            asks_values,
        }
    }

    /// What is no expression: each part is written once.
    fn around() -> Node {
        Node::new(Cost::default(), (1, 1), false)
    }
}

#[derive(Default)]
struct Counter {
    /// Those around the place that is visited, the innermost last.
    nodes: Vec<Node>,
    /// What stands in no other.
    total: Cost,
    /// How often types are asked for in queries that are done: nobody asks them again.
    asked: u64,
    /// The items of select lists that are not visited yet, by their address.
    selected: HashSet<usize>,
}

impl Counter {
    fn leave(&mut self) -> Node {
        self.nodes.pop().unwrap_or_else(Node::around)
    }

    fn add(&mut self, part: Cost) {
        match self.nodes.last_mut() {
            Some(node) => {
                node.cost.add_written(part, node.next);
                node.next = node.others;
                node.last_waits = part.waits;
            }
            None => self.total.add_written(part, 1),
        }
    }
}

impl Visitor for Counter {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
        self.nodes.push(Node::around());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
        let mut cost = self.leave().cost;
        self.asked = self.asked.saturating_add(cost.field);
        (cost.of_type, cost.field) = (1, 1);
        self.add(cost);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let items = select.projection.iter().filter_map(expression_of);
        self.selected.extend(items.map(address));
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let around = self.nodes.last();
        let is_value =
            self.selected.remove(&address(expr)) || around.is_some_and(|node| node.asks_values);
        let copies = match expr {
            // Its value is a CASE of the rows that are equal, and of those that could be.
            Expr::InSubquery { .. } if is_value => (2, 3),
            Expr::AnyOp { .. } | Expr::AllOp { .. } if is_value => (2, 2),
            expr => copies(expr),
        };
        let asks_values = is_value || !is_connective(expr);
        self.nodes.push(Node::new(Cost::LEAF, copies, asks_values));
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let node = self.leave();
        self.add(whole(expr, node));
        ControlFlow::Continue(())
    }
}

/// An expression whose parts are done.
fn whole(expr: &Expr, node: Node) -> Cost {
    let mut cost = node.cost;
    match expr {
        Expr::Nested(_) => {}
        // It is asked for the types of its branches, and then for whether they may be NULL.
        Expr::Case { .. } => cost.field = cost.of_type.saturating_mul(2),
        Expr::Function(Function { name, .. }) => {
            match BECOME_CASE.iter().any(|word| is_named(name, word)) {
                true => cost.field = cost.of_type.saturating_mul(2),
                false => cost.of_type = cost.field,
            }
            let words = name.0.as_slice();
            cost.waits |= matches!(words, [ObjectNamePart::Identifier(name)] if waits(&name.value));
        }
        // What becomes a function asks its arguments for both at once.
        _ => cost.of_type = cost.field,
    }
    if let Expr::BinaryOp {
        op: BinaryOperator::And | BinaryOperator::Or,
        ..
    } = expr
        && node.last_waits
    {
        // It becomes a CASE, which asks for what waits only where its turn comes.
        cost.written = cost.written.saturating_mul(2);
    }
    cost
}

/// How often the first part of an expression is written, and how often the others.
fn copies(expr: &Expr) -> (u64, u64) {
    use BinaryOperator::{Gt, GtEq, Lt, LtEq};
    match expr {
        Expr::Between { .. } => (2, 1),
        Expr::InList {
            expr: operand,
            list,
            ..
        } if list.len() <= LISTED_MAX || is_row(operand) || is_mixed(list) => {
            (list.len().max(1) as u64, 1)
        }
        Expr::Case {
            operand: Some(_),
            conditions,
            ..
        } => (conditions.len().max(1) as u64, 1),
        Expr::Function(function) if is_named(&function.name, "nullif") => (2, 1),
        // All but the last value of the rows are compared twice.
        Expr::BinaryOp {
            left,
            op: Lt | LtEq | Gt | GtEq,
            right,
        } if is_row(left) || is_row(right) => (2, 2),
        _ => (1, 1),
    }
}

fn address(expr: &Expr) -> usize {
    std::ptr::from_ref(expr).addr()
}

/// Whether an expression is true by what its parts are.
fn is_connective(expr: &Expr) -> bool {
    use BinaryOperator::{And, Or};
    match expr {
        Expr::BinaryOp { op: And | Or, .. } | Expr::Nested(_) | Expr::IsTrue(_) => true,
        Expr::UnaryOp { op, .. } => *op == UnaryOperator::Not,
        _ => false,
    }
}

fn is_row(mut expr: &Expr) -> bool {
    while let Expr::Nested(inner) = expr {
        expr = inner;
    }
    match expr {
        Expr::Tuple(_) => true,
        Expr::Function(Function { name, .. }) => is_named(name, "row"),
        _ => false,
    }
}

fn is_named(name: &ObjectName, word: &str) -> bool {
    matches!(name.0.as_slice(), [ObjectNamePart::Identifier(ident)]
        if ident.value.eq_ignore_ascii_case(word))
}

/// What an item of a list is compared as, as far as its form says.
#[derive(PartialEq, Eq)]
enum Kind<'a> {
    Whole,
    Number,
    Spelled,
    Text,
    Hexadecimal,
    Bits,
    Typed(&'a DataType),
    Other,
}

/// Whether items of a list may have to be compared one by one, each with a value converted for it.
fn is_mixed(list: &[Expr]) -> bool {
    let mut kinds = list.iter().filter_map(kind);
    let first = kinds.next();
    first.is_some_and(|first| first == Kind::Other || kinds.any(|kind| kind != first))
}

/// `None` for NULL, which is as the others.
fn kind(item: &Expr) -> Option<Kind<'_>> {
    match item {
        Expr::UnaryOp {
            op: UnaryOperator::Minus | UnaryOperator::Plus,
            expr,
        } if matches!(expr.as_ref(), Expr::Value(_)) => kind(expr),
        Expr::Value(value) => match &value.value {
            Value::Null => None,
            Value::Number(digits, _) => Some(match digits.bytes().all(|b| b.is_ascii_digit()) {
                true => Kind::Whole,
                false => Kind::Number,
            }),
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => {
                Some(match decimal_of(text.trim()).is_some() {
                    true => Kind::Spelled,
                    false => Kind::Text,
                })
            }
            Value::HexStringLiteral(_) => Some(Kind::Hexadecimal),
            Value::SingleQuotedByteStringLiteral(_) => Some(Kind::Bits),
            _ => Some(Kind::Other),
        },
        Expr::TypedString(TypedString { data_type, .. }) => Some(Kind::Typed(data_type)),
        _ => Some(Kind::Other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse_expression;
    use crate::planning::check_grown;

    fn cost(text: &str) -> Cost {
        count(&parse_expression(text).unwrap())
    }

    fn grown(text: &str) -> bool {
        let Cost {
            plain,
            written,
            field,
            ..
        } = cost(text);
        check_grown(plain, written, field).is_err()
    }

    #[test]
    fn what_is_copied_is_counted_as_often() {
        let check = |text: &str, plain: u64, written: u64| {
            let cost = cost(text);
            assert_eq!((cost.plain, cost.written), (plain, written), "{text}");
        };
        check("a + 1", 3, 3);
        check("NULLIF(a + 1, 2)", 5, 8);
        check("a + 1 BETWEEN 2 AND 3", 6, 9);
        check("CASE a + 1 WHEN 1 THEN 2 WHEN 3 THEN 4 END", 8, 11);
        check("CASE WHEN a THEN 2 WHEN b THEN 4 END", 5, 5);
        check("a + 1 IN (1, 2)", 6, 9);
        check("a + 1 IN (1, 2, 3, 4, NULL)", 9, 9);
        check("a + 1 IN (1, 2, 3, 'x')", 8, 17);
        check("a + 1 IN (x'31', x'32', x'33', x'34')", 8, 8);
        check("a + 1 IN (x'31', x'32', x'33', 4)", 8, 17);
        check("(a, b) = (c, d)", 7, 7);
        check("(a, b) < (c, d)", 7, 13);
        check("(a, b) IN ((1, 2), (3, 4), (5, 6), (7, 8))", 16, 25);
        check("a IN (SELECT b FROM t)", 3, 3);
        check("NOT b IN (SELECT c FROM t)", 4, 4);
        check("CONCAT(b IN (SELECT c FROM t))", 4, 7);
        check("EXISTS (SELECT a IN (SELECT b FROM t) FROM t)", 4, 7);
        check("EXISTS (SELECT a < ANY (SELECT b FROM t) FROM t)", 5, 8);
    }

    #[test]
    fn what_doubles_is_refused_at_some_depth() {
        let check = |open: &str, close: &str| {
            let nested = |depth: usize| format!("{}a{}", open.repeat(depth), close.repeat(depth));
            assert!(!grown(&nested(5)), "{}", nested(5));
            // Two parentheses a level are as many as a parser takes that is given no limit.
            assert!(grown(&nested(20)), "{}", nested(20));
        };
        check("NULLIF(", ", 1)");
        check("(", " BETWEEN 0 AND 1)");
        check("CASE ", " WHEN 1 THEN 0 WHEN 0 THEN 1 END");
        check("(", " IN (0, 1))");
        check("(", " IN (0, 1.5, 'a', 'b'))");
        check("((", ", b) < (a, b))");
        check("((", ", b) IN ((0, 1), (1, 0)))");
        check("1 + CASE WHEN b THEN ", " END");
        check("1 + IF(b, ", ", 0)");
        check("a AND (", " OR SLEEP(0))");
    }

    #[test]
    fn tests_of_subqueries_are_copied_where_their_values_are_asked_for() {
        let nested = |(open, close): (&str, &str), depth: usize| {
            format!("{}a{}", open.repeat(depth), close.repeat(depth))
        };
        for around in [
            ("a IN (SELECT ", " FROM t)"),
            ("a IN (SELECT b AND ", " FROM t)"),
            ("a NOT IN (SELECT a FROM t WHERE IFNULL(1, ", "))"),
        ] {
            assert!(!grown(&nested(around, 5)), "{}", nested(around, 5));
            assert!(grown(&nested(around, 11)), "{}", nested(around, 11));
        }
        for around in [
            ("a IN (SELECT a FROM t WHERE ", ")"),
            ("a > 1 OR NOT a IN (SELECT a FROM t WHERE ", ")"),
            ("EXISTS (SELECT ", " FROM t)"),
        ] {
            let cost = cost(&nested(around, 11));
            assert_eq!(cost.plain, cost.written, "{around:?}");
        }
    }

    #[test]
    fn long_statements_are_not() {
        let terms = vec!["a BETWEEN 1 AND 2"; 20_000].join(", ");
        let items = vec!["1"; 5000].join(", ");
        let rows = vec!["(1, 2)"; 5000].join(", ");
        let parts = "CONCAT(a, '-', b, '-', c, '-', d)";
        let lower = "LOWER(CONCAT(TRIM(a), '-', TRIM(b)))";
        let branches = "WHEN 1 THEN 2 ".repeat(4000);
        let sum = ["a"; 10].join(" + ");
        let nested = format!(
            "{}0{}",
            "CASE WHEN a THEN b ELSE ".repeat(30),
            " END".repeat(30)
        );
        for text in [
            format!("CONCAT({terms})"),
            format!("LOWER(TRIM(a + b)) IN ({items})"),
            format!("(a, b) IN ({rows})"),
            format!("{parts} IN ({})", vec!["x'31'"; 8000].join(", ")),
            format!(
                "{parts} IN ({})",
                vec!["DATE '2024-02-29'"; 8000].join(", ")
            ),
            format!("{lower} IN ({})", vec!["'12', 'ab'"; 4000].join(", ")),
            format!("CASE {sum} {branches}END"),
            nested,
        ] {
            assert!(!grown(&text), "{}", &text[..40]);
        }
    }
}
