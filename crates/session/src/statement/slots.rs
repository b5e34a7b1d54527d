//! Plans that serve a query with other constants.
//!
//! Owns which constants of a query a plan may take from each statement (its slots), the plan with
//! places for them, and the constants that a statement must have to run it.
//!
//! Rules that make a plan fold constants and compare them: `a > 3 AND a > 5` is `a > 5`. So they
//! see placeholders, of which they know a type and no value, and what they make holds for all
//! values. The types come first, and MySQL chooses some of them by the constants. So the query is
//! typed twice, with constants in those places that no statement has; where the two plans differ in
//! nothing but these, each the whole of a side of a comparison, types do not depend on them. A
//! constant that is nowhere else becomes a part of the plan, and so does one beside a moment or a
//! YEAR, where its value tells how it is compared.
//!
//! **Never** takes a constant that its place in the plan cannot hold exactly: the statement goes
//! the long way.
//!
//! **Cost**: types twice, rules once, some milliseconds, once for a shape.

use std::collections::BTreeSet;
use std::iter;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::Query;
use mayfly_exec::slots::{placeholder, runnable_plan};
use mayfly_sql::bindings::Bindings;
use mayfly_sql::comparison::compares_in_plan;
use mayfly_sql::origin::Origins;
use mayfly_sql::parse;
use mayfly_sql::planning::{analyzed, with_rules};
use mayfly_sql::slot_labels::SlotLabel;
use mayfly_sql::slots::{Kind, Slot, StandIns};
use mayfly_sql::source::Source;
use mayfly_sql::statement::Statement;
use mayfly_sql::template::{Template, bare};
use mayfly_types::ColumnType;

use super::Job;
use super::plan_constants::{KeptConstants, StatementValues};
use super::typed_comparisons::{narrower, schema_below};
use crate::column_info::ColumnInfo;

/// How often a query is planned anew with fewer slots.
const ATTEMPTS: usize = 3;

/// A plan with places for constants.
pub(super) struct Slotted {
    /// Behind all rules but those for operators.
    pub(super) plan: LogicalPlan,
    pub(super) labels: Vec<String>,
    pub(super) origins: Origins,
    pub(super) constants: KeptConstants,
    pub(super) statement_values: StatementValues,
    /// The labels that hold slots.
    pub(super) slot_labels: Vec<SlotLabel>,
}

impl Job {
    /// The plan of the statement's query, for other constants too; `None` where it depends on all
    /// of them.
    pub(super) fn slotted_here(&self, bindings: &Bindings) -> Option<Slotted> {
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
            let one = self.with_places(&texts[0], bindings, &slots, &rising)?;
            if !one.refused.is_empty() {
                // These become part of the plan.
                let all = slots.into_iter().enumerate();
                let left = all.filter(|(place, _)| !one.refused.contains(place));
                slots = left.map(|(_, slot)| slot).collect();
                continue;
            }
            let other = self.with_places(&texts[1], bindings, &slots, &falling)?;
            if !one.is(&other) {
                return None;
            }
            let of_text = KeptConstants::fixed(constants).fixed.into_iter();
            let fixed = of_text.filter(|(place, _)| !is_slot(*place)).collect();
            let state = self.few_rows_state()?;
            let plan = with_rules(&state, one.plan).ok()?;
            return Some(Slotted {
                plan: runnable_plan(plan).ok()?,
                labels: one.labels,
                origins: one.origins,
                constants: KeptConstants {
                    fixed,
                    slots,
                    values: one.values,
                },
                statement_values: one.statement_values,
                slot_labels: one.slot_labels,
            });
        }
        None
    }

    /// Gives a text its types, and puts places where its stand-ins are.
    fn with_places(
        &self,
        text: &str,
        bindings: &Bindings,
        slots: &[Slot],
        stand_ins: &StandIns,
    ) -> Option<WithPlaces> {
        let (mut query, source) = query_of(text)?;
        let slot_labels = stand_ins.take_labels(&mut query, &source)?;
        let query = self.limited(query);
        let planned = self.planned_here(query, bindings, &source).ok()?;
        let schema = Arc::clone(planned.plan.schema());
        let columns = self.described(schema.as_arrow(), &planned.labels, &planned.origins);
        // What converts a constant may depend on the variables of the session.
        let state = self.few_rows_state()?;
        let options = Arc::clone(state.config_options());
        let folding = SimplifyContext::builder().with_config_options(options);
        let mut placing = Placing {
            slots,
            stand_ins,
            simplifier: ExprSimplifier::new(folding.build()),
            values: Vec::new(),
            refused: BTreeSet::new(),
        };
        let looked = planned.plan.apply_with_subqueries(|node| {
            let schema = schema_below(node);
            node.apply_expressions(|expr| placing.look(expr, &schema))
        });
        looked.ok()?;
        let plan = analyzed(&state, planned.plan).ok()?;
        let plan = plan.transform_down_with_subqueries(|node| {
            let schema = schema_below(&node);
            node.map_expressions(|expr| {
                let placed = expr.transform_down(|expr| placing.place(expr, &schema))?;
                placing.refuse_rest(&placed.data)?;
                Ok(placed)
            })
        });
        let places = placing.values.len();
        let placed = StatementValues::placed(plan.ok()?.data, places, state.config_options());
        let (plan, statement_values) = placed.ok()?;
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
            statement_values,
            slot_labels,
            refused: placing.refused,
        })
    }
}

/// A slot, the type of its value in a plan, and what else a constant carries there.
type StandIn = (usize, DataType, Option<FieldMetadata>);

/// Puts places into a plan.
struct Placing<'a> {
    slots: &'a [Slot],
    stand_ins: &'a StandIns,
    /// Folds what converts a stand-in.
    simplifier: ExprSimplifier,
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

    /// Puts places into a comparison where a side of it is a stand-in.
    fn place(&mut self, expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        match expr {
            Expr::BinaryExpr(mut binary) if compares_in_plan(binary.op) => {
                let sides = &mut [binary.left.as_mut(), binary.right.as_mut()];
                let placed = self.sides(sides, schema)?;
                Ok(Transformed::new_transformed(
                    Expr::BinaryExpr(binary),
                    placed,
                ))
            }
            Expr::Between(mut of) => {
                let sides = &mut [of.expr.as_mut(), of.low.as_mut(), of.high.as_mut()];
                let placed = self.sides(sides, schema)?;
                Ok(Transformed::new_transformed(Expr::Between(of), placed))
            }
            Expr::InList(mut of) => {
                let list = of.list.iter_mut();
                let mut sides: Vec<_> = iter::once(of.expr.as_mut()).chain(list).collect();
                let placed = self.sides(&mut sides, schema)?;
                Ok(Transformed::new_transformed(Expr::InList(of), placed))
            }
            other => Ok(Transformed::no(other)),
        }
    }

    /// Puts places where sides of a comparison are stand-ins, converted or not, and says whether
    /// there are any.
    fn sides(&mut self, sides: &mut [&mut Expr], schema: &DFSchema) -> Result<bool> {
        let mut found = Vec::new();
        let mut others = Vec::new();
        for (place, side) in sides.iter_mut().enumerate() {
            if let Some(constant) = self.stand_in(side)? {
                found.push((place, constant));
            } else {
                others.push(place);
            }
        }
        if found.is_empty() {
            return Ok(false);
        }
        let others_are = others.iter().map(|place| Beside::of(sides[*place], schema));
        self.refuse_beside(others_are, found.iter().map(|(_, (slot, _, _))| *slot));
        if let [other] = others.as_slice()
            && let Some((inner, of_type)) = narrower(sides[*other], schema)
        {
            let narrow = found.iter().map(|(_, (slot, _, _))| {
                let stand_in = self.stand_ins.constants[self.slots[*slot].constant].as_ref()?;
                self.slots[*slot].value(stand_in, &of_type)
            });
            if narrow.clone().all(|value| value.is_some()) {
                *sides[*other] = inner;
                for (_, (_, found_type, _)) in &mut found {
                    *found_type = of_type.clone();
                }
            }
        }
        for (place, (slot, of_type, metadata)) in found {
            *sides[place] = self.placeholder(slot, of_type, metadata);
        }
        Ok(true)
    }

    fn placeholder(
        &mut self,
        slot: usize,
        of_type: DataType,
        metadata: Option<FieldMetadata>,
    ) -> Expr {
        // Rules take a placeholder for something that may be NULL.
        let field = Field::new("slot", of_type.clone(), true);
        let field = match metadata {
            Some(metadata) => metadata.add_to_field(field),
            None => field,
        };
        let wanted = (slot, of_type);
        let place = self.values.iter().position(|of| *of == wanted);
        let place = place.unwrap_or_else(|| {
            self.values.push(wanted);
            self.values.len() - 1
        });
        placeholder(place, Arc::new(field))
    }

    /// The slot whose stand-in a side of a comparison is, and its type there.
    fn stand_in(&self, side: &Expr) -> Result<Option<StandIn>> {
        if side.exists(|part| Ok(is_of_a_row(part)))? || !self.has_stand_in(side)? {
            return Ok(None);
        }
        let Expr::Literal(value, metadata) = self.simplifier.simplify(side.clone())? else {
            return Ok(None);
        };
        let slot = self.slot_of(&value);
        Ok(slot.map(|slot| (slot, value.data_type(), metadata)))
    }

    fn has_stand_in(&self, expr: &Expr) -> Result<bool> {
        expr.exists(|part| {
            Ok(matches!(part, Expr::Literal(value, _) if self.slot_of(value).is_some()))
        })
    }

    /// Refuses the slots whose stand-ins are left in an expression.
    fn refuse_rest(&mut self, expr: &Expr) -> Result<()> {
        expr.apply(|part| {
            if let Expr::Literal(value, _) = part {
                self.refused.extend(self.slot_of(value));
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(())
    }

    /// Refuses slots by whose values MySQL chooses how it compares: beside a moment or a year, `24`
    /// is a year, `20240131` a day and `5` a number.
    fn refuse_beside(
        &mut self,
        others: impl Iterator<Item = Beside>,
        slots: impl IntoIterator<Item = usize>,
    ) {
        let beside = others.max().unwrap_or(Beside::Unknown);
        let refused = slots.into_iter().filter(|slot| match beside {
            Beside::Anything => false,
            Beside::Moment => !matches!(self.slots[*slot].kind, Kind::Day | Kind::Moment),
            Beside::Unknown => true,
        });
        self.refused.extend(refused);
    }

    /// Refuses the slots of an expression whose types are not known yet.
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
            let others_are = others.iter().map(|other| Beside::of(other, schema));
            self.refuse_beside(others_are, found);
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

/// What a constant is compared with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Beside {
    Anything,
    /// Something of a day or a moment.
    Moment,
    /// Something of a YEAR, of a type that is not known, or nothing.
    Unknown,
}

impl Beside {
    fn of(expr: &Expr, schema: &DFSchema) -> Beside {
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
    statement_values: StatementValues,
    slot_labels: Vec<SlotLabel>,
    refused: BTreeSet<usize>,
}

impl WithPlaces {
    /// Whether another one is the same plan.
    fn is(&self, other: &WithPlaces) -> bool {
        self.values == other.values
            && self.statement_values == other.statement_values
            && self.slot_labels == other.slot_labels
            && self.columns == other.columns
            && self.plan == other.plan
    }
}

/// The query that a text is.
fn query_of(text: &str) -> Option<(Query, Source)> {
    match parse::parse(text).ok()? {
        (Statement::Query(query), source) => Some((*query, source)),
        _ => None,
    }
}
