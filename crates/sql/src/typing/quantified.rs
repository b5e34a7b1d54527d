//! Tests of subqueries where the stock rules do not answer them, or not with NULL for unknown.
//!
//! IN, ANY and ALL become EXISTS over the rows that belong to the outer row. Where a condition
//! only asks whether a test is true it is one EXISTS; where its value is asked for it is a CASE of
//! two, whose second one finds what could be equal.
//!
//! | | is true | is false |
//! |---|---|---|
//! | `v op ANY (...)` | a comparison is true | none is true or unknown |
//! | `v op ALL (...)` | none is false or unknown | a comparison is false |
//!
//! The stock rules keep what they do as well: IN that is tested for being true, NOT IN that is a
//! condition by itself, and ANY and ALL, as long as no outer column is named.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ExprSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Case, Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, FetchType, LogicalPlan, Operator, SkipType, Subquery,
    binary_expr, lit,
};

use super::compare::compare;
use super::correlated::{is_mended, refused};
use super::partners::Partners;
use super::subquery::{count_of, in_part_of_condition, not_in_of_all};
use super::subquery_expressions::{has_correlated, is_correlated};

/// EXISTS of a correlated subquery: without an order and without a LIMIT, which the stock rules
/// refuse or forget, and without derived tables in the way.
pub(super) fn existing(exists: Exists) -> Result<Expr> {
    let Exists { subquery, negated } = exists;
    let unchanged = |subquery| Expr::Exists(Exists { subquery, negated });
    if !is_correlated(&subquery) {
        return Ok(unchanged(subquery));
    }
    let (mut skipped, mut is_limited) = (0, false);
    let mut plan = subquery.subquery.as_ref();
    loop {
        plan = match plan {
            LogicalPlan::Limit(limit) if !is_limited => {
                let (SkipType::Literal(skip), FetchType::Literal(fetch)) =
                    (limit.get_skip_type()?, limit.get_fetch_type()?)
                else {
                    return Err(refused());
                };
                if fetch == Some(0) {
                    return Ok(lit(negated));
                }
                (skipped, is_limited) = (skip, true);
                limit.input.as_ref()
            }
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => sort.input.as_ref(),
            // A projection is kept where nothing else changes.
            LogicalPlan::Projection(projection)
                if matches!(
                    projection.input.as_ref(),
                    LogicalPlan::Sort(_) | LogicalPlan::Limit(_) | LogicalPlan::Projection(_)
                ) =>
            {
                projection.input.as_ref()
            }
            _ => break,
        };
    }
    let plan = Arc::new(plan.clone());
    let subquery = Subquery {
        outer_ref_columns: plan.all_out_ref_exprs(),
        subquery: plan,
        spans: subquery.spans,
    };
    let is_mended = is_mended(&subquery.subquery);
    if skipped > 0 {
        if is_mended {
            return Err(refused());
        }
        let Ok(skipped) = i64::try_from(skipped) else {
            return Ok(lit(negated));
        };
        let outer = subquery.outer_ref_columns.clone();
        let operator = if negated {
            Operator::LtEq
        } else {
            Operator::Gt
        };
        return Ok(binary_expr(
            count_of(&subquery, None, outer)?,
            operator,
            lit(skipped),
        ));
    }
    if is_mended {
        let partners = Partners::of(&subquery.subquery)?.ok_or_else(refused)?;
        let exists = partners.exists(None, &subquery)?;
        return Ok(if negated { opposite(exists) } else { exists });
    }
    Ok(unchanged(subquery))
}

/// A condition, of which only what is true passes.
pub(super) fn condition(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    if !has_test(&expr)? {
        return Ok(expr);
    }
    is_true(expr, true, schema)
}

/// Something that is true where an expression is; `is_whole` is whether it is a condition of its
/// own, and not a part of one.
fn is_true(expr: Expr, is_whole: bool, schema: &DFSchema) -> Result<Expr> {
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: op @ (Operator::And | Operator::Or),
            right,
        }) => {
            let is_whole = is_whole && op == Operator::And;
            let left = is_true(*left, is_whole, schema)?;
            binary_expr(left, op, is_true(*right, is_whole, schema)?)
        }
        Expr::Not(inner) => is_false(*inner, is_whole, schema)?,
        Expr::IsTrue(inner) => is_true(*inner, is_whole, schema)?,
        Expr::InSubquery(query) => {
            let is_free = !is_correlated(&query.subquery);
            let is_stock = match query.negated {
                true => is_free && is_whole,
                false => is_free || !is_mended(&query.subquery.subquery),
            };
            match is_stock {
                true if query.negated && is_one_for_all(&query, schema)? => not_in_of_all(query)?,
                true if is_whole => Expr::InSubquery(query),
                true => in_part_of_condition(query)?,
                false => Test::of_in(query).is_true(schema)?,
            }
        }
        Expr::SetComparison(comparison) if is_correlated(&comparison.subquery) => {
            Test::of_comparison(comparison).is_true(schema)?
        }
        other => values(other, false, schema)?,
    })
}

/// Whether the value of an IN names no rows, and it or what it is compared with may be NULL.
fn is_one_for_all(query: &InSubquery, schema: &DFSchema) -> Result<bool> {
    let value = &query.expr;
    let names_rows = !value.column_refs().is_empty() || value.contains_outer();
    let items = query.subquery.subquery.schema().fields();
    let may_be_null = value.nullable(schema)? || items.iter().any(|item| item.is_nullable());
    Ok(!names_rows && !has_correlated(value)? && may_be_null)
}

/// Something that is true where an expression is false.
fn is_false(expr: Expr, is_whole: bool, schema: &DFSchema) -> Result<Expr> {
    if !has_test(&expr)? {
        return Ok(Expr::Not(Box::new(expr)));
    }
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: op @ (Operator::And | Operator::Or),
            right,
        }) => {
            let (op, is_whole) = match op {
                Operator::And => (Operator::Or, false),
                _ => (Operator::And, is_whole),
            };
            let left = is_false(*left, is_whole, schema)?;
            binary_expr(left, op, is_false(*right, is_whole, schema)?)
        }
        Expr::Not(inner) => is_true(*inner, is_whole, schema)?,
        Expr::InSubquery(query) => {
            let negated = !query.negated;
            is_true(
                Expr::InSubquery(InSubquery { negated, ..query }),
                is_whole,
                schema,
            )?
        }
        Expr::SetComparison(comparison) if is_correlated(&comparison.subquery) => {
            Test::of_comparison(comparison).is_false(schema)?
        }
        other => Expr::Not(Box::new(values(other, false, schema)?)),
    })
}

/// An expression whose tests have NULL for unknown; `all` is whether the stock rules would do none
/// of them.
pub(super) fn values(expr: Expr, all: bool, schema: &DFSchema) -> Result<Expr> {
    let changed = expr.transform_down(|expr| {
        let test = match expr {
            Expr::InSubquery(query) if !all || is_correlated(&query.subquery) => Test::of_in(query),
            Expr::SetComparison(comparison) if all || is_correlated(&comparison.subquery) => {
                Test::of_comparison(comparison)
            }
            other => return Ok(Transformed::no(other)),
        };
        let value = test.value(schema)?;
        Ok(Transformed::new(value, true, TreeNodeRecursion::Jump))
    })?;
    Ok(changed.data)
}

fn has_test(expr: &Expr) -> Result<bool> {
    expr.exists(|expr| Ok(matches!(expr, Expr::InSubquery(_) | Expr::SetComparison(_))))
}

/// A value compared with the rows of a subquery.
struct Test {
    value: Expr,
    operator: Operator,
    is_all: bool,
    subquery: Subquery,
    /// Whether both sides are what they are compared as.
    is_typed: bool,
}

impl Test {
    fn of_in(query: InSubquery) -> Test {
        let InSubquery {
            expr,
            subquery,
            negated,
        } = query;
        Test {
            value: *expr,
            operator: if negated {
                Operator::NotEq
            } else {
                Operator::Eq
            },
            is_all: negated,
            subquery,
            is_typed: false,
        }
    }

    fn of_comparison(comparison: SetComparison) -> Test {
        let SetComparison {
            expr,
            subquery,
            op,
            quantifier,
        } = comparison;
        Test {
            value: *expr,
            operator: op,
            is_all: quantifier == SetQuantifier::All,
            subquery,
            is_typed: true,
        }
    }

    /// The rows of the subquery, and their comparison with the outer row.
    fn compared(&self, schema: &DFSchema) -> Result<(Partners, Expr)> {
        if has_correlated(&self.value)? || self.value.contains_outer() {
            return Err(refused());
        }
        let Some(partners) = Partners::of(&self.subquery.subquery)? else {
            return Err(refused());
        };
        let Some(item) = partners.value().cloned() else {
            return Err(refused());
        };
        let value = as_outer(self.value.clone(), schema)?;
        let comparison = match self.is_typed {
            true => binary_expr(value, self.operator, item),
            false => compare(value, self.operator, item, partners.schema())?,
        };
        Ok((partners, comparison))
    }

    fn is_true(&self, schema: &DFSchema) -> Result<Expr> {
        let (partners, comparison) = self.compared(schema)?;
        Ok(if self.is_all {
            let other = or_unknown(opposite_of(comparison), partners.schema())?;
            opposite(partners.exists(Some(other), &self.subquery)?)
        } else {
            partners.exists(Some(comparison), &self.subquery)?
        })
    }

    fn is_false(&self, schema: &DFSchema) -> Result<Expr> {
        let (partners, comparison) = self.compared(schema)?;
        Ok(if self.is_all {
            partners.exists(Some(opposite_of(comparison)), &self.subquery)?
        } else {
            let other = or_unknown(comparison, partners.schema())?;
            opposite(partners.exists(Some(other), &self.subquery)?)
        })
    }

    fn value(&self, schema: &DFSchema) -> Result<Expr> {
        let (partners, comparison) = self.compared(schema)?;
        let is_unknown = unknown(&comparison, partners.schema())?;
        let decides = match self.is_all {
            true => opposite_of(comparison),
            false => comparison,
        };
        let decided = partners.exists(Some(decides), &self.subquery)?;
        let mut branches = vec![(Box::new(decided), Box::new(lit(!self.is_all)))];
        if let Some(is_unknown) = is_unknown {
            let unknown = partners.exists(Some(is_unknown), &self.subquery)?;
            let null = Expr::Literal(ScalarValue::Boolean(None), None);
            branches.push((Box::new(unknown), Box::new(null)));
        }
        let otherwise = Some(Box::new(lit(self.is_all)));
        Ok(Expr::Case(Case::new(None, branches, otherwise)))
    }
}

/// A comparison that is true where another is false.
fn opposite_of(comparison: Expr) -> Expr {
    match comparison {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op.negate() {
            Some(op) => binary_expr(*left, op, *right),
            None => Expr::Not(Box::new(binary_expr(*left, op, *right))),
        },
        other => Expr::Not(Box::new(other)),
    }
}

/// A comparison that is true or unknown.
fn or_unknown(comparison: Expr, schema: &DFSchema) -> Result<Expr> {
    Ok(match unknown(&comparison, schema)? {
        Some(unknown) => comparison.or(unknown),
        None => comparison,
    })
}

/// Whether a comparison is unknown; `None` if it never is.
fn unknown(comparison: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let Expr::BinaryExpr(BinaryExpr { left, right, .. }) = comparison else {
        return Ok(Some(comparison.clone().is_null()));
    };
    let mut unknown: Option<Expr> = None;
    for side in [left, right] {
        if side.nullable(schema)? {
            let is_null = side.as_ref().clone().is_null();
            unknown = Some(match unknown {
                Some(other) => other.or(is_null),
                None => is_null,
            });
        }
    }
    Ok(unknown)
}

fn opposite(exists: Expr) -> Expr {
    match exists {
        Expr::Exists(Exists { subquery, negated }) => Expr::Exists(Exists {
            subquery,
            negated: !negated,
        }),
        other => Expr::Not(Box::new(other)),
    }
}

/// An expression over outer rows, as a subquery names them.
pub(super) fn as_outer(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let outer = expr.transform_up(|expr| {
        Ok(match expr {
            Expr::Column(column) => {
                let field = Arc::new(schema.field_from_column(&column)?.as_ref().clone());
                Transformed::yes(Expr::OuterReferenceColumn(field, column))
            }
            other => Transformed::no(other),
        })
    })?;
    Ok(outer.data)
}
