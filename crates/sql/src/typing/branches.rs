//! Constants that warn and that not every row asks for: they are left for the rows that do
//! (`functions::warned`).
//!
//! Runs over what has its types. The branches of a CASE are computed for the rows that take them,
//! but for constants, which the optimizer would compute before. So would it those beside columns in
//! the condition of a statement that writes in strict mode, where a warning is an error.
//!
//! On the way the errors of operators learn of the databases of their tables. **Cost**: such
//! constants are computed once more; IFNULL and COALESCE become a CASE where one of them warns, and
//! ELT where it chooses among what is computed.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Case, Expr, ExprSchemable, LogicalPlan, Operator, lit};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

use super::case::case_of;
use crate::bindings::FILES;
use crate::functions::own::MARK;
use crate::functions::warned::warned;
use crate::functions::{SessionValues, arithmetic, aside, define, looked_at};
use crate::planning::check;

/// The plan with its constants that warn left for their rows.
pub(super) fn in_plan(plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
    let session = config.extensions.get::<SessionValues>();
    let database = session.and_then(|session| session.lock().database.clone());
    let mut branches = Branches {
        config,
        simplifier: None,
        databases: databases(&plan, database.as_deref())?,
    };
    let refuses = session.is_some_and(|session| session.lock().refuses_misfits);
    let changed = plan.transform_up_with_subqueries(|mut node| {
        check()?;
        let mut changes = false;
        if refuses && let LogicalPlan::Filter(filter) = &mut node {
            changes = branches.condition(&mut filter.predicate)?;
        }
        let names = NamePreserver::new(&node);
        // Few nodes ask for it, and it is made of all columns below.
        let schema = match has_choice(&node)? {
            true => merge_schema(&node.inputs()),
            false => DFSchema::empty(),
        };
        let changed = node.map_expressions(|expr| {
            let name = names.save(&expr);
            let changed = expr.transform_up(|expr| branches.of(expr, &schema))?;
            Ok(changed.update_data(|expr| name.restore(expr)))
        })?;
        let changes = changes || changed.transformed;
        match changes {
            true => Ok(Transformed::yes(changed.data.recompute_schema()?)),
            false => Ok(changed),
        }
    });
    Ok(changed?.data)
}

/// How many arguments an ELT may have to become a CASE, and how many nodes their number, which
/// stands in each condition.
const ELT_MAX: usize = 100;
const INDEX_NODES_MAX: usize = 5;

struct Branches<'a> {
    config: &'a ConfigOptions,
    /// Made when it is needed first.
    simplifier: Option<ExprSimplifier>,
    /// The databases of tables, by the names that columns have for these.
    databases: HashMap<String, String>,
}

fn databases(plan: &LogicalPlan, current: Option<&str>) -> Result<HashMap<String, String>> {
    let mut databases = HashMap::new();
    plan.apply_with_subqueries(|node| {
        check()?;
        let named = match node {
            LogicalPlan::TableScan(scan) => Some((scan.table_name.table(), scan)),
            LogicalPlan::SubqueryAlias(alias) => match alias.input.as_ref() {
                LogicalPlan::TableScan(scan) => Some((alias.alias.table(), scan)),
                _ => None,
            },
            _ => None,
        };
        if let Some((name, scan)) = named {
            let database = match scan.table_name.schema() {
                Some(FILES) => None,
                Some(database) if !database.starts_with(MARK) => Some(database),
                // What a statement changes stands in a database of its own.
                _ => current,
            };
            let database = database.map(|database| (name.to_owned(), database.to_owned()));
            databases.extend(database);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(databases)
}

impl Branches<'_> {
    /// One expression, whose parts are done.
    fn of(&mut self, expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        match expr {
            Expr::Case(case) if case.expr.is_none() => {
                let Case {
                    when_then_expr,
                    else_expr,
                    ..
                } = case;
                let mut changes = false;
                let mut pairs = Vec::with_capacity(when_then_expr.len());
                for (index, (mut when, mut then)) in when_then_expr.into_iter().enumerate() {
                    // All rows ask for the first condition.
                    if index > 0 {
                        changes |= self.leave(&mut when)?;
                    }
                    changes |= self.leave(&mut then)?;
                    pairs.push((when, then));
                }
                let otherwise = match else_expr {
                    Some(mut otherwise) => {
                        changes |= self.leave(&mut otherwise)?;
                        Some(otherwise)
                    }
                    None => None,
                };
                let case = Expr::Case(Case::new(None, pairs, otherwise));
                Ok(Transformed::new(case, changes, TreeNodeRecursion::Continue))
            }
            Expr::ScalarFunction(call) if chooses(&call) => {
                let mut args = call.args.clone();
                let mut changes = false;
                for argument in args.iter_mut().skip(1) {
                    changes |= self.leave(argument)?;
                }
                match changes {
                    true => Ok(Transformed::yes(chosen(args, schema)?)),
                    false => Ok(Transformed::no(Expr::ScalarFunction(call))),
                }
            }
            Expr::ScalarFunction(call) if picks(&call, schema) => {
                let mut pairs = Vec::with_capacity(call.args.len());
                let index = call.args.first().cloned().unwrap_or_default();
                // NULL is the number of none.
                let of_type = Some(index.get_type(schema)?).filter(|of| !of.is_null());
                for (place, argument) in (1_i64..).zip(call.args.iter().skip(1)) {
                    let literal = |place, of| ScalarValue::Int64(Some(place)).cast_to(of);
                    let (when, first) = match &of_type {
                        Some(of) => (index.clone().eq(lit(literal(place, of)?)), literal(1, of)?),
                        None => (lit(false), ScalarValue::Int64(Some(1))),
                    };
                    let mut argument = argument.clone();
                    self.leave(&mut argument)?;
                    let first = lit(first);
                    let then = call.func.call(vec![first, argument]);
                    pairs.push((Box::new(when), Box::new(then)));
                }
                let case = case_of(Case::new(None, pairs, None), schema)?;
                Ok(Transformed::yes(case))
            }
            Expr::ScalarFunction(mut call) => {
                match arithmetic::in_databases(&call.func, &self.databases) {
                    Some(named) => {
                        call.func = Arc::new(named);
                        Ok(Transformed::yes(Expr::ScalarFunction(call)))
                    }
                    None => Ok(Transformed::no(Expr::ScalarFunction(call))),
                }
            }
            other => Ok(Transformed::no(other)),
        }
    }

    /// Leaves the constants beside columns of a condition for its rows; whether one warns. What has
    /// no columns is asked once, before all rows.
    fn condition(&mut self, expr: &mut Expr) -> Result<bool> {
        match expr {
            Expr::BinaryExpr(both) if both.op == Operator::And => {
                let left = self.condition(&mut both.left)?;
                Ok(self.condition(&mut both.right)? || left)
            }
            constant if is_constant(constant) => Ok(false),
            other => self.leave(other),
        }
    }

    /// Leaves the constants of a branch for its rows; whether one warns.
    fn leave(&mut self, expr: &mut Expr) -> Result<bool> {
        let left = std::mem::take(expr).transform_down(|part| {
            if !matches!(part, Expr::ScalarFunction(_)) || !is_constant(&part) {
                return Ok(Transformed::no(part));
            }
            let part = match self.warned(&part)? {
                Some(warned) => Transformed::yes(warned),
                None => Transformed::no(part),
            };
            Ok(Transformed {
                tnr: TreeNodeRecursion::Jump,
                ..part
            })
        })?;
        *expr = left.data;
        Ok(left.transformed)
    }

    /// What a constant becomes that warns.
    fn warned(&mut self, expr: &Expr) -> Result<Option<Expr>> {
        let schema = DFSchema::empty();
        let config = self.config;
        let simplifier = self.simplifier.get_or_insert_with(|| {
            let context = SimplifyContext::builder();
            ExprSimplifier::new(
                context
                    .with_config_options(Arc::new(config.clone()))
                    .build(),
            )
        });
        let looked = || aside(|| simplifier.simplify(expr.clone()));
        let ((value, warnings), reads_statement) = looked_at(looked);
        match value {
            Ok(Expr::Literal(value, _)) if !warnings.is_empty() => {
                // The value stays in the plan, which is good for this statement only then.
                let values = self.config.extensions.get::<SessionValues>();
                if let Some(values) = values.filter(|_| reads_statement) {
                    drop(values.of_statement());
                }
                let (_, field) = expr.to_field(&schema)?;
                Ok(Some(warned(value, field, warnings).call(Vec::new())))
            }
            _ => Ok(None),
        }
    }
}

/// Whether a node has a function that may become a CASE.
fn has_choice(node: &LogicalPlan) -> Result<bool> {
    let is_choice = |expr: &Expr| match expr {
        Expr::ScalarFunction(call) => chooses(call) || is_elt(call),
        _ => false,
    };
    let mut found = false;
    node.apply_expressions(|expr| {
        found |= expr.exists(|part| Ok(is_choice(part)))?;
        Ok(match found {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(found)
}

/// Whether a function answers the first of its arguments that is one, and may be asked for it
/// twice.
fn chooses(call: &ScalarFunction) -> bool {
    let name = define::name_of(&call.func);
    let mut before = { call.args.iter() }.take(call.args.len().saturating_sub(1));
    matches!(name, Some("ifnull" | "coalesce")) && before.all(|argument| !argument.is_volatile())
}

fn is_elt(call: &ScalarFunction) -> bool {
    define::name_of(&call.func) == Some("elt")
}

/// Whether a function answers the argument whose number the first one is, and one of those may
/// warn: nothing but functions does.
fn picks(call: &ScalarFunction, schema: &DFSchema) -> bool {
    if !is_elt(call) {
        return false;
    }
    let is_computed = |argument: &Expr| {
        let computed = argument.exists(|part| Ok(matches!(part, Expr::ScalarFunction(_))));
        computed.unwrap_or(true)
    };
    let Some((index, arguments)) = call.args.split_first() else {
        return false;
    };
    // The greatest number of an argument is one of the type of the first, too. It is asked for
    // last: the type of a long sum takes the square of its length.
    let counts = || { index.get_type(schema) }.is_ok_and(|of| of.is_integer() || of.is_null());
    is_silent(index) && arguments.len() <= ELT_MAX && arguments.iter().any(is_computed) && counts()
}

/// Whether a number may be asked for in each condition: it is made of few columns and literals, and
/// never warns.
fn is_silent(index: &Expr) -> bool {
    let mut nodes = 0;
    let is_else = index.exists(|part| {
        nodes += 1;
        let warns = match part {
            Expr::Column(_)
            | Expr::OuterReferenceColumn(..)
            | Expr::Literal(..)
            | Expr::Cast(_) => false,
            Expr::ScalarFunction(call) => !arithmetic::is_sum(&call.func),
            _ => true,
        };
        Ok(warns || nodes > INDEX_NODES_MAX)
    });
    !is_else.unwrap_or(true)
}

/// The same as a CASE.
fn chosen(mut args: Vec<Expr>, schema: &DFSchema) -> Result<Expr> {
    let Some(last) = args.pop() else {
        return internal_err!("there is an argument");
    };
    let pairs = args.into_iter().map(|argument| {
        let when = argument.clone().is_not_null();
        (Box::new(when), Box::new(argument))
    });
    case_of(
        Case::new(None, pairs.collect(), Some(Box::new(last))),
        schema,
    )
}

/// Whether an expression has one value whatever the row.
fn is_constant(expr: &Expr) -> bool {
    let varies = expr.exists(|part| {
        Ok(!matches!(
            part,
            Expr::Literal(..)
                | Expr::ScalarFunction(_)
                | Expr::Cast(_)
                | Expr::Case(_)
                | Expr::BinaryExpr(_)
                | Expr::Not(_)
                | Expr::Negative(_)
                | Expr::IsNull(_)
                | Expr::IsNotNull(_)
                | Expr::IsTrue(_)
                | Expr::IsFalse(_)
                | Expr::IsUnknown(_)
                | Expr::IsNotTrue(_)
                | Expr::IsNotFalse(_)
                | Expr::IsNotUnknown(_)
                | Expr::Between(_)
                | Expr::InList(_)
        ))
    });
    !varies.unwrap_or(true) && !expr.is_volatile()
}
