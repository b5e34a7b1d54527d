//! Comparisons, kept from rules that put two of them together by how they are spelled.
//!
//! DataFusion's simplifier makes one of two comparisons with the same side: of
//! `a IN (1, 2) AND a IN (2, 3)` it makes `a = 2`, of `a = 5 AND a <> 6` `a = 5`. It does so
//! - where values are no constants: of `a IN (b, c) AND a IN (d)` it makes FALSE;
//! - where a constant was computed, which carries what its function says of its type and so is
//!   another one than the same number in the text: of `a <> 2 + 3 AND a = 5` it makes `a = 5`;
//! - where a NULL is among the values, or the side is NULL: `NOT (a IN (1) AND a IN (2))` is NULL
//!   for that, and it makes TRUE.
//!
//! So comparisons that may meet another one go through that rule as calls of a function that it
//! does not know, each around one of them: within, it simplifies as ever. The rule that pushes
//! filters down compares constants, too: it gets them as plain values, behind their columns.
//!
//! **Never** changes what a condition means. **Cost**: linear in the terms of a condition and in
//! the sides of their comparisons, but for a logarithm.

use std::collections::{HashMap, HashSet};

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator, lit};
use datafusion::scalar::ScalarValue;

use super::filter_terms::filter_terms;
use super::hidden_expressions::{hide_each, hide_whole};
use crate::comparison::compares_in_plan;

/// Hides comparisons of a node that meet from the rule that simplifies expressions.
///
/// # Errors
/// None of its own.
pub(super) fn hide_meeting_comparisons(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut meeting = HashSet::new();
    node.apply_expressions(|expr| {
        meeting.extend(sides_that_meet(expr)?.into_iter().cloned());
        Ok(TreeNodeRecursion::Continue)
    })?;
    match meeting.is_empty() {
        true => Ok(Transformed::no(node)),
        false => hide_each(node, |expr| hide_meeting(expr, &meeting)),
    }
}

/// A filter, and those right below it, whose constants are plain values.
///
/// # Errors
/// None of its own.
pub(super) fn with_plain_constants(node: LogicalPlan) -> Result<LogicalPlan> {
    let mut has_adorned = false;
    for term in filter_terms(&node).0 {
        has_adorned |= term.exists(|part| Ok(is_adorned(part)))?;
    }
    if !has_adorned {
        return Ok(node);
    }
    let plain = node.transform_down(|node| {
        if !matches!(node, LogicalPlan::Filter(_)) {
            return Ok(Transformed::new(node, false, TreeNodeRecursion::Jump));
        }
        node.map_expressions(|expr| expr.transform_up(|expr| Ok(plain(expr))))
    })?;
    Ok(plain.data)
}

/// Whether a comparison has a constant that is no plain value, or that stands before a column.
fn is_adorned(expr: &Expr) -> bool {
    let is_adorned = |side: &Expr| match side {
        Expr::Literal(ScalarValue::Float64(Some(value)), None) => is_negative_zero(*value),
        Expr::Literal(_, metadata) => metadata.is_some(),
        _ => false,
    };
    match expr {
        Expr::BinaryExpr(binary) if compares_in_plan(binary.op) => {
            is_adorned(&binary.left) || is_adorned(&binary.right) || is_turned(binary)
        }
        _ => false,
    }
}

/// Whether a comparison is `5 = a`, which the rule takes for another one than `a = 5`.
fn is_turned(comparison: &BinaryExpr) -> bool {
    let BinaryExpr { left, op, right } = comparison;
    matches!(left.as_ref(), Expr::Literal(..))
        && matches!(right.as_ref(), Expr::Column(_))
        && op.swap().is_some()
}

fn is_negative_zero(value: f64) -> bool {
    value == 0.0 && value.is_sign_negative()
}

/// A comparison whose constants are plain values, behind what they are compared with.
fn plain(expr: Expr) -> Transformed<Expr> {
    if !is_adorned(&expr) {
        return Transformed::no(expr);
    }
    let Expr::BinaryExpr(mut binary) = expr else {
        return Transformed::no(expr);
    };
    for side in [&mut binary.left, &mut binary.right] {
        match side.as_mut() {
            // Of either sign.
            Expr::Literal(ScalarValue::Float64(Some(0.0)), _) => **side = lit(0.0),
            Expr::Literal(_, metadata) => *metadata = None,
            _ => {}
        }
    }
    if is_turned(&binary)
        && let Some(op) = binary.op.swap()
    {
        let BinaryExpr { left, right, .. } = binary;
        binary = BinaryExpr::new(right, op, left);
    }
    Transformed::yes(Expr::BinaryExpr(binary))
}

/// The sides of a comparison that may be put together with another one: what is no constant, and
/// not converted.
fn sides(expr: &Expr) -> Option<[Option<&Expr>; 2]> {
    fn side(mut expr: &Expr) -> Option<&Expr> {
        loop {
            expr = match expr {
                Expr::Cast(cast) => &cast.expr,
                Expr::TryCast(cast) => &cast.expr,
                Expr::Alias(alias) => &alias.expr,
                Expr::Literal(..) | Expr::Placeholder(_) => return None,
                side => return Some(side),
            }
        }
    }
    match expr {
        Expr::InList(list) => Some([side(&list.expr), None]),
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Eq | Operator::NotEq,
            right,
        }) => Some([side(left), side(right)]),
        _ => None,
    }
}

/// What a part of a condition compares: each side, and whether a comparison with it is negative.
type Compared<'e> = HashMap<&'e Expr, bool>;

/// Sides that are compared twice such that the rule may put both together.
fn sides_that_meet(expr: &Expr) -> Result<HashSet<&Expr>> {
    let mut meeting = HashSet::new();
    expr.apply(|part| {
        let is_condition = match part {
            Expr::Not(_) => true,
            Expr::BinaryExpr(binary) => matches!(binary.op, Operator::And | Operator::Or),
            _ => false,
        };
        if !is_condition {
            return Ok(TreeNodeRecursion::Continue);
        }
        compared(part, false, &mut meeting);
        // What conditions are within its terms is looked at for itself.
        let mut terms = vec![part];
        while let Some(term) = terms.pop() {
            match term {
                Expr::Not(inner) => terms.push(inner),
                Expr::BinaryExpr(both) if matches!(both.op, Operator::And | Operator::Or) => {
                    terms.extend([both.left.as_ref(), both.right.as_ref()]);
                }
                term => {
                    term.apply_children(|child| {
                        meeting.extend(sides_that_meet(child)?);
                        Ok(TreeNodeRecursion::Continue)
                    })?;
                }
            }
        }
        Ok(TreeNodeRecursion::Jump)
    })?;
    Ok(meeting)
}

/// What a condition compares; adds the sides that meet. `is_negated`: an odd number of NOTs is
/// around it, which change AND for OR, and equal for different.
fn compared<'e>(
    condition: &'e Expr,
    is_negated: bool,
    meeting: &mut HashSet<&'e Expr>,
) -> Compared<'e> {
    match condition {
        Expr::Not(inner) => compared(inner, !is_negated, meeting),
        Expr::BinaryExpr(both) if matches!(both.op, Operator::And | Operator::Or) => {
            let is_and = (both.op == Operator::And) != is_negated;
            let mut all = Compared::new();
            for term in terms(condition, both.op) {
                let of_term = compared(term, is_negated, meeting);
                let (fewer, mut more) = match of_term.len() < all.len() {
                    true => (of_term, all),
                    false => (all, of_term),
                };
                for (side, is_negative) in fewer {
                    match more.get_mut(side) {
                        Some(other) => {
                            if is_and || (is_negative && *other) {
                                meeting.insert(side);
                            }
                            *other |= is_negative;
                        }
                        None => {
                            more.insert(side, is_negative);
                        }
                    }
                }
                all = more;
            }
            all
        }
        comparison => {
            let is_different = match comparison {
                Expr::InList(InList { negated, .. }) => *negated,
                Expr::BinaryExpr(binary) => binary.op == Operator::NotEq,
                _ => false,
            };
            let sides = sides(comparison).into_iter().flatten().flatten();
            sides
                .map(|side| (side, is_different != is_negated))
                .collect()
        }
    }
}

/// The terms of a chain of ANDs or ORs.
fn terms(chain: &Expr, of: Operator) -> Vec<&Expr> {
    let (mut terms, mut waiting) = (Vec::new(), vec![chain]);
    while let Some(expr) = waiting.pop() {
        match expr {
            Expr::BinaryExpr(both) if both.op == of => {
                waiting.extend([both.right.as_ref(), both.left.as_ref()]);
            }
            term => terms.push(term),
        }
    }
    terms
}

fn hide_meeting(expr: Expr, meeting: &HashSet<Expr>) -> Transformed<Expr> {
    let meets = |side: &&Expr| meeting.contains(*side);
    if !sides(&expr).is_some_and(|sides| sides.iter().flatten().any(meets)) {
        return Transformed::no(expr);
    }
    Transformed::yes(hide_whole(expr))
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::{col, in_list, not};

    use super::*;

    fn meeting(condition: &Expr) -> Vec<String> {
        let sides = sides_that_meet(condition).unwrap();
        let mut names: Vec<String> = sides.iter().map(ToString::to_string).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn constants_are_plain_and_behind_their_columns() {
        let turned = lit(5).gt(col("a"));
        assert_eq!(plain(turned).data, col("a").lt(lit(5)));
        assert!(!plain(col("a").lt(lit(5))).transformed);
        assert_eq!(plain(col("a").eq(lit(-0.0))).data, col("a").eq(lit(0.0)));
    }

    #[test]
    fn comparisons_meet_where_both_must_hold() {
        let list = |column, values: [i32; 2], negated| {
            in_list(col(column), values.map(lit).to_vec(), negated)
        };
        let one = list("a", [1, 2], false);
        let none = Vec::<String>::new();
        assert_eq!(meeting(&one.clone().and(list("b", [1, 2], false))), none);
        assert_eq!(meeting(&one.clone().or(list("a", [3, 4], false))), none);
        assert_eq!(meeting(&one.clone().and(list("a", [3, 4], true))), ["a"]);
        assert_eq!(meeting(&not(one.clone().or(col("a").eq(lit(7))))), ["a"]);
        let negative = list("a", [1, 2], true).or(list("a", [3, 4], true));
        assert_eq!(meeting(&negative), ["a"]);
        let pairs = (col("a").eq(lit(1)).or(col("a").eq(lit(2))))
            .and(col("a").eq(lit(4)).or(col("b").eq(lit(5))));
        assert_eq!(meeting(&pairs), ["a"]);
        let within = col("c")
            .eq(one.clone().and(col("a").eq(lit(5))))
            .or(col("d"));
        assert_eq!(meeting(&within), ["a"]);
    }
}
