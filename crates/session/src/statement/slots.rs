//! Plans that serve a query with other constants.
//!
//! Owns the proof that a plan does not depend on some constants of its query (its slots), the plan
//! with places for them, and the constants that a statement must have to run it.
//!
//! The query is planned twice, with constants in those places that no statement has. Where the two
//! plans differ in nothing but these, each where its own stands, no rule has looked at them: not
//! at their values, since they are others; not at their order, since they rise in one query and
//! fall in the other. A rule that folds one, drops it or makes another value of it leaves a
//! difference, and each text has a plan of its own then, or a slot that is nowhere in the plan,
//! which becomes a part of it. So does one whose value tells MySQL how to compare it, and one that
//! a rule could compare with what it knows without a row.
//!
//! **Never** takes a constant that its place in the plan cannot hold exactly: the statement goes
//! the long way.
//!
//! **Cost**: two plans, some milliseconds, once for a shape.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::Query;
use mayfly_exec::slots::slot;
use mayfly_sql::bindings::Bindings;
use mayfly_sql::literal::Literal;
use mayfly_sql::origin::Origins;
use mayfly_sql::parse;
use mayfly_sql::slots::{Kind, Slot, StandIns};
use mayfly_sql::source::Source;
use mayfly_sql::statement::Statement;
use mayfly_sql::template::{Template, bare};
use mayfly_types::ColumnType;

use super::Job;
use crate::outcome::ColumnInfo;

/// How often a query is planned anew with fewer slots.
const ATTEMPTS: usize = 3;

/// The constants of a statement, in the order of its text.
pub(super) type Constants<'a> = [Option<Literal<'a>>];

/// What the constants of a statement must be to run a kept plan.
#[derive(Default)]
pub(super) struct KeptConstants {
    /// Those that are part of the plan.
    fixed: Vec<(usize, Option<Literal<'static>>)>,
    slots: Vec<Slot>,
    /// The values that the plan asks for: of which slot, in which type.
    values: Vec<(usize, DataType)>,
}

impl KeptConstants {
    /// The very constants of a statement.
    pub(super) fn fixed(constants: &Constants<'_>) -> KeptConstants {
        let owned = constants.iter().cloned();
        let owned = owned.map(|constant| constant.map(Literal::into_owned));
        KeptConstants {
            fixed: owned.enumerate().collect(),
            ..KeptConstants::default()
        }
    }

    /// The values of a statement with the shape of the plan; `None` if the plan is not for it.
    pub(super) fn values(&self, constants: &Constants<'_>) -> Option<Vec<ScalarValue>> {
        let is_same = |(place, constant): &(usize, Option<Literal<'_>>)| {
            constants.get(*place).is_some_and(|of| of == constant)
        };
        if !self.fixed.iter().all(is_same) {
            return None;
        }
        for slot in &self.slots {
            let constant = constants.get(slot.constant)?.as_ref()?;
            if Kind::of(constant) != Some(slot.kind) {
                return None;
            }
        }
        let values = self.values.iter().map(|(slot, of_type)| {
            let slot = &self.slots[*slot];
            slot.value(constants[slot.constant].as_ref()?, of_type)
        });
        values.collect()
    }

    /// Whether the plan has slots.
    pub(super) fn has_slots(&self) -> bool {
        !self.slots.is_empty()
    }
}

/// A plan with places for constants.
pub(super) struct Slotted {
    /// Behind all rules but those for operators.
    pub(super) plan: LogicalPlan,
    pub(super) labels: Vec<String>,
    pub(super) origins: Origins,
    pub(super) constants: KeptConstants,
}

impl Job {
    /// The plan of the statement's query, for other constants too; `None` where it depends on all
    /// of them.
    pub(super) async fn slotted(&self, bindings: &Bindings) -> Option<Slotted> {
        let text = bare(&self.running.text);
        let (template, places) = Template::placed(text)?;
        let constants = &template.constants;
        // Which of them stand in conditions tells a text in which all are replaced.
        let all = StandIns::of(constants, |_| true, false)?;
        let query = query_of(&all.text(text, &places))?.0;
        let mut slots = all.slots(&query);
        for _ in 0..ATTEMPTS {
            if slots.is_empty() {
                return None;
            }
            let is_slot = |place: usize| slots.iter().any(|slot| slot.constant == place);
            let rising = StandIns::of(constants, is_slot, false)?;
            let falling = StandIns::of(constants, is_slot, true)?;
            let texts = [rising.text(text, &places), falling.text(text, &places)];
            let one = Box::pin(self.with_places(&texts[0], bindings, &slots, &rising)).await?;
            if !one.refused.is_empty() {
                // These become part of the plan.
                let all = slots.into_iter().enumerate();
                let left = all.filter(|(place, _)| !one.refused.contains(place));
                slots = left.map(|(_, slot)| slot).collect();
                continue;
            }
            let other = Box::pin(self.with_places(&texts[1], bindings, &slots, &falling)).await?;
            if !one.is(&other) {
                return None;
            }
            let of_text = KeptConstants::fixed(constants).fixed.into_iter();
            let fixed = of_text.filter(|(place, _)| !is_slot(*place)).collect();
            return Some(Slotted {
                plan: one.plan,
                labels: one.labels,
                origins: one.origins,
                constants: KeptConstants {
                    fixed,
                    slots,
                    values: one.values,
                },
            });
        }
        None
    }

    /// Plans a text, and puts places where its stand-ins are.
    async fn with_places(
        &self,
        text: &str,
        bindings: &Bindings,
        slots: &[Slot],
        stand_ins: &StandIns,
    ) -> Option<WithPlaces> {
        let (query, source) = query_of(text)?;
        let query = self.limited(query);
        let planned = self.planned_of(query, bindings, Arc::new(source));
        let planned = planned.await.ok()?;
        let schema = Arc::clone(planned.plan.schema());
        let columns = self.described(schema.as_arrow(), &planned.labels, &planned.origins);
        let mut placing = Placing {
            slots,
            stand_ins,
            values: Vec::new(),
            refused: BTreeSet::new(),
        };
        if constants_may_meet(&planned.plan).ok()? {
            return None;
        }
        placing.outermost(&planned.plan).ok()?;
        let plan = self.few_rows_optimized(planned.plan).await?;
        let plan = plan.transform_down_with_subqueries(|node| {
            node.map_expressions(|expr| expr.transform_up(|expr| placing.place(expr)))
        });
        let plan = plan.ok()?.data;
        // One that is nowhere had its part in what the plan is.
        let is_gone = |slot: &usize| placing.values.iter().all(|(of, _)| of != slot);
        let gone: Vec<usize> = (0..slots.len()).filter(is_gone).collect();
        placing.refused.extend(gone);
        Some(WithPlaces {
            plan,
            columns,
            labels: planned.labels,
            origins: planned.origins,
            values: placing.values,
            refused: placing.refused,
        })
    }
}

/// The columns that the expressions of a node see.
fn below(node: &LogicalPlan) -> DFSchema {
    match node {
        LogicalPlan::TableScan(scan) => {
            let all = scan.source.schema();
            let seen = DFSchema::try_from_qualified_schema(scan.table_name.clone(), &all);
            seen.unwrap_or_else(|_| DFSchema::empty())
        }
        node => merge_schema(&node.inputs()),
    }
}

/// Puts places into a plan.
struct Placing<'a> {
    slots: &'a [Slot],
    stand_ins: &'a StandIns,
    /// The values that are asked for: of which slot, in which type.
    values: Vec<(usize, DataType)>,
    /// Slots whose value means something to MySQL.
    refused: BTreeSet<usize>,
}

impl Placing<'_> {
    /// The slot whose stand-in a constant of the plan is.
    fn slot_of(&self, value: &ScalarValue) -> Option<usize> {
        let of_type = value.data_type();
        let is_it = |slot: &Slot| {
            let stand_in = self.stand_ins.constants[slot.constant].as_ref();
            stand_in.and_then(|of| slot.value(of, &of_type)).as_ref() == Some(value)
        };
        self.slots.iter().position(is_it)
    }

    /// Puts a place where an expression is a stand-in.
    fn place(&mut self, expr: Expr) -> Result<Transformed<Expr>> {
        let Expr::Literal(value, metadata) = &expr else {
            return Ok(Transformed::no(expr));
        };
        let Some(found) = self.slot_of(value) else {
            return Ok(Transformed::no(expr));
        };
        let of_type = value.data_type();
        let field = Field::new("slot", of_type.clone(), false);
        let field = match metadata {
            Some(metadata) => metadata.add_to_field(field),
            None => field,
        };
        let wanted = (found, of_type);
        let place = self.values.iter().position(|of| *of == wanted);
        let place = place.unwrap_or_else(|| {
            self.values.push(wanted);
            self.values.len() - 1
        });
        Ok(Transformed::yes(slot(place, Arc::new(field))))
    }

    /// Refuses slots of a plan before its rules, whose outermost list may be anything.
    fn outermost(&mut self, plan: &LogicalPlan) -> Result<()> {
        match plan {
            LogicalPlan::Sort(_)
            | LogicalPlan::Limit(_)
            | LogicalPlan::Distinct(_)
            | LogicalPlan::Union(_) => {
                let mut inputs = plan.inputs().into_iter();
                inputs.try_for_each(|input| self.outermost(input))
            }
            LogicalPlan::Projection(projection) => {
                projection
                    .expr
                    .iter()
                    .try_for_each(|item| self.subqueries(item))?;
                self.inside(&projection.input)
            }
            other => self.inside(other),
        }
    }

    /// Refuses slots of a plan whose columns conditions may see. A rule may move a comparison to
    /// where a column comes from, and there know its value: that of a constant, that of CASE or
    /// IFNULL for the row that an outer join adds, the COUNT of no rows.
    fn inside(&mut self, plan: &LogicalPlan) -> Result<()> {
        let schema = below(plan);
        let is_condition = matches!(plan, LogicalPlan::Filter(_) | LogicalPlan::Join(_));
        plan.apply_expressions(|expr| {
            self.subqueries(expr)?;
            match is_condition {
                true => self.look(expr, &schema)?,
                false if is_open(expr) => TreeNodeRecursion::Continue,
                false => self.refuse_all(),
            };
            Ok(TreeNodeRecursion::Continue)
        })?;
        let mut inputs = plan.inputs().into_iter();
        inputs.try_for_each(|input| self.inside(input))
    }

    /// The same of the subqueries of an expression.
    fn subqueries(&mut self, expr: &Expr) -> Result<()> {
        expr.apply(|part| {
            let (plan, is_asked_for) = match part {
                Expr::Exists(exists) => (&exists.subquery.subquery, false),
                Expr::InSubquery(of) => (&of.subquery.subquery, true),
                Expr::SetComparison(of) => (&of.subquery.subquery, true),
                Expr::ScalarSubquery(of) => (&of.subquery, true),
                _ => return Ok(TreeNodeRecursion::Continue),
            };
            if plan.exists(|node| Ok(matches!(node, LogicalPlan::Aggregate(_))))? {
                self.refuse_within(plan)?;
            }
            match plan.as_ref() {
                LogicalPlan::Projection(list) if !is_asked_for => self.inside(&list.input)?,
                plan => self.inside(plan)?,
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(())
    }

    /// Refuses the slots of a plan.
    fn refuse_within(&mut self, plan: &LogicalPlan) -> Result<()> {
        plan.apply_with_subqueries(|node| {
            node.apply_expressions(|expr| {
                expr.apply(|part| {
                    let found = constant(part).and_then(|value| self.slot_of(value));
                    self.refused.extend(found);
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        Ok(())
    }

    fn refuse_all(&mut self) -> TreeNodeRecursion {
        self.refused.extend(0..self.slots.len());
        TreeNodeRecursion::Continue
    }

    /// Refuses slots beside what may have a value without a row, and those beside moments and
    /// years: there `24` is a year, `20240131` a day, and `5` a number, by which MySQL chooses how
    /// it compares.
    fn look(&mut self, expr: &Expr, schema: &DFSchema) -> Result<TreeNodeRecursion> {
        expr.apply(|parent| {
            let (mut found, mut others) = (Vec::new(), Vec::new());
            parent.apply_children(|child| {
                match constant(child).map(|value| self.slot_of(value)) {
                    Some(slot) => found.extend(slot),
                    None => others.push(child),
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
            if !found.is_empty() {
                let beside = others.iter().map(|other| Beside::of(other, schema));
                let beside = beside.max().unwrap_or(Beside::Unknown);
                found.retain(|slot| match beside {
                    Beside::Anything => false,
                    Beside::Moment => !matches!(self.slots[*slot].kind, Kind::Day | Kind::Moment),
                    Beside::Unknown => true,
                });
                self.refused.extend(found);
            }
            Ok(TreeNodeRecursion::Continue)
        })
    }
}

/// The constant that an expression is, converted or not.
fn constant(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        Expr::Cast(cast) => constant(&cast.expr),
        Expr::TryCast(cast) => constant(&cast.expr),
        Expr::Alias(alias) => constant(&alias.expr),
        _ => None,
    }
}

/// Whether two constants of a plan's conditions may be compared with the same value. A rule keeps
/// the narrower one then, or none, by values that no stand-in shows: `a > 20 AND a > ?`, or `a = ?`
/// and `b <> ?` where a join makes `a` and `b` equal. Over one table without groups each column may
/// be compared with a constant once; anywhere else there may be one comparison in all.
fn constants_may_meet(plan: &LogicalPlan) -> Result<bool> {
    let (mut scans, mut is_plain, mut count) = (0, true, 0);
    let mut columns = HashSet::new();
    let mut is_twice = false;
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(_) => scans += 1,
            LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) => {}
            LogicalPlan::Projection(_) | LogicalPlan::Sort(_) | LogicalPlan::Limit(_) => {}
            _ => is_plain = false,
        }
        if !matches!(node, LogicalPlan::Filter(_) | LogicalPlan::Join(_)) {
            return Ok(TreeNodeRecursion::Continue);
        }
        node.apply_expressions(|expr| {
            expr.apply(|parent| {
                let (mut has_constant, mut of) = (false, Vec::new());
                parent.apply_children(|child| {
                    has_constant |= !child.exists(|part| Ok(is_of_a_row(part)))?;
                    of.extend(child.column_refs().into_iter().cloned());
                    Ok(TreeNodeRecursion::Continue)
                })?;
                if has_constant && !matches!(parent, Expr::Cast(_) | Expr::TryCast(_)) {
                    count += 1;
                    of.sort_unstable();
                    of.dedup();
                    is_twice |= of.into_iter().any(|column| !columns.insert(column.name));
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(match is_plain && scans == 1 {
        true => is_twice,
        false => count > 1,
    })
}

/// Whether an expression has a value of its own for each row.
fn is_of_a_row(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Column(_)
            | Expr::OuterReferenceColumn(..)
            | Expr::ScalarSubquery(_)
            | Expr::Exists(_)
            | Expr::InSubquery(_)
            | Expr::SetComparison(_)
    )
}

/// Functions that are NULL where an argument is, whatever the others are.
const STRICT: [&str; 22] = [
    "abs",
    "ascii",
    "ceil",
    "ceiling",
    "char_length",
    "crc32",
    "date",
    "day",
    "dayofmonth",
    "floor",
    "hour",
    "lcase",
    "length",
    "lower",
    "minute",
    "month",
    "reverse",
    "second",
    "sqrt",
    "ucase",
    "upper",
    "year",
];

/// Whether a column that an expression makes has a value that depends on its row, and is NULL where
/// one of its columns is.
fn is_open(expr: &Expr) -> bool {
    let is_strict = !expr.exists(|part| Ok(!is_strict(part))).unwrap_or(true);
    let is_of_rows = |part: &Expr| {
        matches!(
            part,
            Expr::Column(_) | Expr::OuterReferenceColumn(..) | Expr::AggregateFunction(_)
        )
    };
    is_strict && expr.exists(|part| Ok(is_of_rows(part))).unwrap_or(false)
}

/// Whether an expression is NULL where one of those that it consists of is.
fn is_strict(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_)
        | Expr::OuterReferenceColumn(..)
        | Expr::Literal(..)
        | Expr::Cast(_)
        | Expr::TryCast(_)
        | Expr::Negative(_)
        | Expr::Alias(_)
        | Expr::AggregateFunction(_) => true,
        Expr::BinaryExpr(binary) => matches!(
            binary.op,
            Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide
        ),
        Expr::ScalarFunction(function) => STRICT.contains(&function.name()),
        _ => false,
    }
}

/// What a constant is compared with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Beside {
    Anything,
    /// Something of a day or a moment.
    Moment,
    /// Something of a YEAR or of a type that is not known, or a value that depends on no row.
    Unknown,
}

impl Beside {
    fn of(expr: &Expr, schema: &DFSchema) -> Beside {
        if !is_open(expr) {
            return Beside::Unknown;
        }
        let mut all = Beside::Anything;
        let _never_fails = expr.apply(|part| {
            let own = match part.to_field(schema) {
                Ok((_, field)) if ColumnType::from_arrow(&field) == ColumnType::Year => {
                    Beside::Unknown
                }
                Ok((_, field)) if field.data_type().is_temporal() => Beside::Moment,
                Ok(_) => Beside::Anything,
                Err(_) => Beside::Unknown,
            };
            all = all.max(own);
            Ok(TreeNodeRecursion::Continue)
        });
        all
    }
}

/// A plan with places in it.
struct WithPlaces {
    plan: LogicalPlan,
    columns: Vec<ColumnInfo>,
    labels: Vec<String>,
    origins: Origins,
    values: Vec<(usize, DataType)>,
    refused: BTreeSet<usize>,
}

impl WithPlaces {
    /// Whether another one is the same plan.
    fn is(&self, other: &WithPlaces) -> bool {
        self.values == other.values && self.columns == other.columns && self.plan == other.plan
    }
}

/// The query that a text is.
fn query_of(text: &str) -> Option<(Query, Source)> {
    match parse::parse(text).ok()? {
        (Statement::Query(query), source) => Some((*query, source)),
        _ => None,
    }
}
