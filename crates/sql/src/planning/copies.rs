//! How large expressions become where rules write parts of them more than once.
//!
//! `a BETWEEN 1 AND 2` becomes `a >= 1 AND a <= 2`: forty of them inside one another are a trillion
//! nodes, of a line of text. Others are asked for their types twice at each level, which takes as
//! long. Both are counted before it happens, in what stands there: each node has the sizes of its
//! parts, times how often each part is written.
//!
//! **Cost**: linear in the nodes, whatever they stand for.

use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Case, Expr, LogicalPlan};
use mayfly_types::{ErrorCode, MySqlError};

use super::size::EXPRESSION_BYTES;
use super::watch::{check, hold_bytes};

/// Nodes of all expressions of a statement with all copies written out. Fewer are never refused,
/// nor are those of a statement that is long itself: TPC-H has some hundreds.
const COPIED_MAX: u64 = 64 << 10;
/// How often a type may be asked for where one is wanted.
const ASKED_MAX: u64 = 256 << 10;
/// How much larger than the statement either may be when it is beyond these. The memory for it is
/// bounded apart from that.
const GROWN_MAX: u64 = 32;
/// Lists that are no longer are written as comparisons, `THRESHOLD_INLINE_INLIST` in DataFusion.
pub(super) const LISTED_MAX: usize = 3;
/// A CASE of truth values with fewer branches is written as ANDs and ORs.
const BRANCHES_MAX: usize = 3;

/// A filter may have so many nodes before it is not pushed below what computes its columns.
const PUSHED_MAX: u64 = 4 << 10;

/// Refuses a plan with types whose expressions the optimizer would write out to a size that has
/// little to do with that of the statement.
///
/// # Errors
/// 1436 for such a plan; those of the watch.
pub(super) fn check_simplified(plan: &LogicalPlan) -> Result<()> {
    let mut total = Cost::default();
    plan.apply_with_subqueries(|node| {
        check()?;
        node.apply_expressions(|expression| {
            total.add(cost(expression)?);
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    let asked = total.field.max(total.operator);
    hold_grown(total.plain, total.written, asked)
}

/// Refuses expressions as [`check_grown`] does, and tells the watch what the others will take.
///
/// # Errors
/// 1436 for those that are refused; those of the watch.
pub(super) fn hold_grown(plain: u64, written: u64, asked: u64) -> Result<()> {
    check_grown(plain, written, asked).map_err(raise)?;
    if written > COPIED_MAX {
        hold_bytes(written.saturating_mul(EXPRESSION_BYTES))?;
    }
    Ok(())
}

/// Whether expressions of so many nodes may grow to so many, and be asked for so many types.
///
/// # Errors
/// 1436 if not.
pub(crate) fn check_grown(plain: u64, written: u64, asked: u64) -> Result<(), MySqlError> {
    let max = plain.saturating_mul(GROWN_MAX);
    match written > COPIED_MAX.max(max) || asked > ASKED_MAX.max(max) {
        true => Err(MySqlError::new(ErrorCode::StackOverrun, &[])),
        false => Ok(()),
    }
}

fn raise(error: MySqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Whether the filter that a node is would become too large below its input: each column of it
/// would be written as what computes it there. In a chain of `SELECT a + a AS a FROM (...)` it
/// doubles at each level.
pub(super) fn grows_below(node: &LogicalPlan) -> bool {
    let LogicalPlan::Filter(filter) = node else {
        return false;
    };
    let (expressions, schema) = match filter.input.as_ref() {
        LogicalPlan::Projection(projection) => (&projection.expr, &projection.schema),
        LogicalPlan::Aggregate(aggregate) => (&aggregate.group_expr, &aggregate.schema),
        _ => return false,
    };
    let plain = nodes(&filter.predicate);
    let mut grown = plain;
    for (column, count) in filter.predicate.column_refs_counts() {
        let index = schema.maybe_index_of_column(column);
        if let Some(expression) = index.and_then(|index| expressions.get(index)) {
            let more = nodes(unaliased(expression)).saturating_sub(1);
            grown = grown.saturating_add(more.saturating_mul(count as u64));
        }
    }
    grown > plain.max(PUSHED_MAX)
}

fn unaliased(mut expression: &Expr) -> &Expr {
    while let Expr::Alias(alias) = expression {
        expression = &alias.expr;
    }
    expression
}

fn nodes(expression: &Expr) -> u64 {
    let mut count = 0;
    // Counting does not fail.
    let _ = expression.apply(|_| {
        count += 1;
        Ok(TreeNodeRecursion::Continue)
    });
    count
}

/// What an expression costs, each in nodes that are visited.
#[derive(Clone, Copy, Default, Debug)]
struct Cost {
    /// As it stands.
    plain: u64,
    /// With all copies written out.
    written: u64,
    /// Asked for its type, for whether it may be NULL, and for both at once.
    of_type: u64,
    nullable: u64,
    field: u64,
    /// Its operator, asked for whether it may be NULL.
    operator: u64,
}

impl Cost {
    const LEAF: Cost = Cost {
        plain: 1,
        written: 1,
        of_type: 1,
        nullable: 1,
        field: 1,
        operator: 1,
    };

    fn add(&mut self, part: Cost) {
        self.add_written(part, 1);
    }

    /// Adds a part that is written so many times.
    fn add_written(&mut self, part: Cost, times: u64) {
        let add = |to: &mut u64, more: u64| *to = to.saturating_add(more);
        add(&mut self.plain, part.plain);
        add(&mut self.written, part.written.saturating_mul(times));
        add(&mut self.of_type, part.of_type);
        add(&mut self.nullable, part.nullable);
        add(&mut self.field, part.field);
        add(&mut self.operator, part.operator.saturating_mul(times));
    }
}

enum Step<'a> {
    /// A part, with its place among those of the expression around it.
    Enter(&'a Expr, usize),
    /// All parts are done: constants and columns are in the cost, the others have been added behind
    /// this place.
    Leave(&'a Expr, usize, Copies, Cost, usize),
}

/// Without recursion: a condition of ten thousand terms is as deep.
fn cost(expression: &Expr) -> Result<Cost> {
    if is_leaf(expression) {
        return Ok(Cost::LEAF);
    }
    let mut steps = vec![Step::Enter(expression, 0)];
    let mut done: Vec<(usize, Cost)> = Vec::new();
    while let Some(step) = steps.pop() {
        match step {
            Step::Enter(expression, place) => {
                let first = steps.len();
                let copies = Copies::of(expression);
                let mut cost = Cost::LEAF;
                let mut part_place = 0;
                expression.apply_children(|part| {
                    match is_leaf(part) {
                        true => cost.add_written(Cost::LEAF, copies.at(part_place)),
                        false => steps.push(Step::Enter(part, part_place)),
                    }
                    part_place += 1;
                    Ok(TreeNodeRecursion::Continue)
                })?;
                // Behind its parts, which are taken first.
                steps.insert(
                    first,
                    Step::Leave(expression, place, copies, cost, done.len()),
                );
            }
            Step::Leave(expression, place, copies, mut cost, first) => {
                for (place, part) in done.drain(first..) {
                    cost.add_written(part, copies.at(place));
                }
                done.push((place, whole(expression, cost)));
            }
        }
    }
    Ok(done.pop().map_or(Cost::LEAF, |(_, cost)| cost))
}

fn is_leaf(expression: &Expr) -> bool {
    matches!(
        expression,
        Expr::Literal(..) | Expr::Placeholder(_) | Expr::Column(_) | Expr::OuterReferenceColumn(..)
    )
}

/// An expression, whose parts have been added.
fn whole(expression: &Expr, mut cost: Cost) -> Cost {
    match expression {
        Expr::Cast(_) | Expr::TryCast(_) => {
            cost.of_type = 1;
            // `CastExpr::nullable` asks what it casts twice.
            cost.operator = cost.operator.saturating_mul(2);
        }
        // It knows what it is.
        Expr::ScalarFunction(_) => cost.operator = 1,
        Expr::Alias(_) => cost.field = cost.field.saturating_mul(2),
        Expr::Case(_) => cost.field = cost.of_type.saturating_add(cost.nullable),
        Expr::Between(_) | Expr::InList(_) | Expr::Like(_) | Expr::SimilarTo(_) | Expr::Not(_) => {
            cost.of_type = 1;
            cost.field = cost.nullable.saturating_add(1);
        }
        Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::IsNotUnknown(_) => (cost.of_type, cost.field) = (1, 1),
        _ => {}
    }
    // What a function, or an aggregate, is depends on all that its arguments are.
    if matches!(
        expression,
        Expr::ScalarFunction(_) | Expr::AggregateFunction(_) | Expr::WindowFunction(_)
    ) {
        (cost.of_type, cost.nullable) = (cost.field, cost.field);
    }
    cost
}

/// How often the simplifier writes the parts of an expression.
#[derive(Clone, Copy)]
struct Copies {
    first: u64,
    /// The conditions of a CASE: every other part of these.
    conditions: u64,
    conditions_end: usize,
}

impl Copies {
    fn of(expression: &Expr) -> Copies {
        let (mut conditions, mut conditions_end) = (1, 0);
        let first = match expression {
            Expr::Between(_) => 2,
            Expr::InList(InList { list, .. }) if list.len() <= LISTED_MAX => {
                list.len().max(1) as u64
            }
            // `a LIKE '%'` is a CASE of `a IS NOT NULL`, and that again ANDs and ORs.
            Expr::Like(_) => 3,
            Expr::Case(case) if case.expr.is_some() => case.when_then_expr.len() as u64,
            Expr::Case(case) if is_connectives(case) => {
                let branches = case.when_then_expr.len();
                // In its own branch, and for being false in those behind it.
                (conditions, conditions_end) = (branches as u64 + 1, 2 * branches);
                conditions
            }
            _ => 1,
        };
        Copies {
            first,
            conditions,
            conditions_end,
        }
    }

    fn at(self, place: usize) -> u64 {
        match place {
            0 => self.first,
            place if place < self.conditions_end && place.is_multiple_of(2) => self.conditions,
            _ => 1,
        }
    }
}

/// Whether a CASE is written as ANDs and ORs. A first result that is no truth value for certain is
/// a constant of another type.
fn is_connectives(case: &Case) -> bool {
    let truth = |result: &Expr| match result {
        Expr::Literal(ScalarValue::Boolean(value), _) => Some(*value),
        _ => None,
    };
    if case.when_then_expr.len() < BRANCHES_MAX {
        let mut results = case.when_then_expr.iter().map(|(_, then)| then.as_ref());
        return results
            .next()
            .is_some_and(|then| truth(then).is_some() || !matches!(then, Expr::Literal(..)));
    }
    let (mut trues, mut falses) = (0, 0);
    for (_, then) in &case.when_then_expr {
        match truth(then) {
            Some(Some(true)) => trues += 1,
            Some(_) => falses += 1,
            None => return false,
        }
    }
    trues < BRANCHES_MAX || falses < BRANCHES_MAX
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::DataType;
    use datafusion::logical_expr::{LogicalPlanBuilder, cast, col, lit, when};

    use super::*;

    fn cost(expression: &Expr) -> Cost {
        super::cost(expression).unwrap()
    }

    fn nested(depth: usize, around: impl Fn(Expr) -> Expr) -> Expr {
        (0..depth).fold(col("a"), |inner, _| around(inner))
    }

    #[test]
    fn what_is_written_once_has_its_own_size() {
        let sum = (0..500).fold(col("a"), |sum, number| sum + lit(number));
        assert_eq!((cost(&sum).plain, cost(&sum).written), (1001, 1001));
        assert_eq!((cost(&sum).field, cost(&sum).operator), (1001, 1001));
        let items = (0..5000).map(lit).collect();
        let list = col("a").in_list(items, false);
        assert_eq!((cost(&list).plain, cost(&list).written), (5002, 5002));
    }

    #[test]
    fn what_is_copied_is_counted_as_often() {
        let check = |expression: Expr, plain: u64, written: u64| {
            let cost = cost(&expression);
            assert_eq!((cost.plain, cost.written), (plain, written), "{expression}");
        };
        let sum = || col("a") + col("b");
        check(sum().between(lit(1), lit(2)), 6, 9);
        check(sum().in_list(vec![lit(1), lit(2)], false), 6, 9);
        check(sum().like(lit("%")), 5, 11);
        let choice = when(sum().is_null(), col("a")).otherwise(col("b"));
        check(choice.unwrap(), 7, 11);
        let texts = when(sum().is_null(), lit("a")).otherwise(lit("b"));
        check(texts.unwrap(), 7, 7);
    }

    #[test]
    fn what_doubles_is_refused_before_it_does() {
        let check = |around: &dyn Fn(Expr) -> Expr| {
            let is_refused = |depth: usize| {
                let plan = LogicalPlanBuilder::empty(true);
                let plan = plan.project(vec![lit(1)]).unwrap().build().unwrap();
                let LogicalPlan::Projection(mut projection) = plan else {
                    panic!("{plan:?}")
                };
                projection.expr = vec![nested(depth, around)];
                check_simplified(&LogicalPlan::Projection(projection)).is_err()
            };
            assert!(!is_refused(5));
            assert!(is_refused(40));
            assert!(is_refused(100));
        };
        check(&|inner| inner.between(lit(0), lit(1)));
        check(&|inner| inner.in_list(vec![lit(0), lit(1)], false));
        check(&|inner| -(cast(inner + lit(1), DataType::Int64)));
        check(&|inner| {
            let choice = when(inner.is_null(), col("a")).otherwise(col("b"));
            choice.unwrap()
        });
    }

    #[test]
    fn filters_stay_above_what_would_make_them_large() {
        let one_row = || LogicalPlanBuilder::empty(true);
        let filtered = |size: usize, uses: usize| {
            let wide = (0..size).fold(lit(1), |sum, _| sum + lit(1));
            let sum = (1..uses).fold(col("a"), |sum, _| sum + col("a"));
            let plan = one_row().project(vec![wide.alias("a")]).unwrap();
            plan.filter(sum.gt(lit(0))).unwrap().build().unwrap()
        };
        assert!(!grows_below(&filtered(10, 10)));
        assert!(!grows_below(&filtered(0, 100)));
        assert!(grows_below(&filtered(100, 100)));
        assert!(!grows_below(&one_row().build().unwrap()));
    }
}
