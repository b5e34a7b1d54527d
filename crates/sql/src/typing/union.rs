//! The types of UNION.
//!
//! The queries of a chain, `a UNION b UNION ALL c`, give the types of its columns together, and
//! every value becomes of that type at once, as in the one temporary table that MySQL fills. The
//! planner joins queries in pairs; [`flatten`] makes one union of a chain again, before anything is
//! typed. What stands in parentheses is typed by itself: the rewriter sets it apart.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Column;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{
    Cast, Distinct, Expr, LogicalPlan, LogicalPlanBuilder, Projection, RecursiveQuery, Union, lit,
};
use mayfly_types::ColumnType;

use super::nameless::data_type_of;
use crate::functions::cast;
use crate::functions::unify::unify_columns;
use crate::untyped;

/// Makes one union of each chain of a plan that nothing has typed.
pub(crate) fn flatten(plan: LogicalPlan) -> Result<LogicalPlan> {
    let flat = plan.transform_down_with_subqueries(|plan| {
        Ok(match &plan {
            LogicalPlan::Distinct(Distinct::All(input)) => match input.as_ref() {
                LogicalPlan::Union(union) => Transformed::yes(distinct(all_of(union, true)?)?),
                _ => Transformed::no(plan),
            },
            LogicalPlan::Union(union) => {
                let inputs = all_of(union, false)?;
                Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?))
            }
            _ => Transformed::no(plan),
        })
    })?;
    Ok(flat.data)
}

fn distinct(inputs: Vec<Arc<LogicalPlan>>) -> Result<LogicalPlan> {
    let union = LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?);
    Ok(LogicalPlan::Distinct(Distinct::All(Arc::new(union))))
}

/// The queries of a chain. Where rows are told apart at its end it does not matter whether they
/// were before. Where they were told apart before UNION ALL, they are by the types of the whole
/// chain: what follows stands there too, without its rows.
fn all_of(union: &Union, is_distinct: bool) -> Result<Vec<Arc<LogicalPlan>>> {
    let mut following: Vec<Arc<LogicalPlan>> = Vec::new();
    let mut union = union;
    loop {
        let Some((first, others)) = union.inputs.split_first() else {
            return Ok(following);
        };
        following.splice(0..0, others.iter().cloned());
        let inner = match first.as_ref() {
            LogicalPlan::Union(inner) => inner,
            LogicalPlan::Distinct(Distinct::All(input)) => match input.as_ref() {
                LogicalPlan::Union(inner) if is_distinct => inner,
                LogicalPlan::Union(inner) => {
                    let mut inputs = all_of(inner, true)?;
                    for other in &following {
                        let plan = LogicalPlanBuilder::from(other.as_ref().clone());
                        inputs.push(Arc::new(plan.filter(lit(false))?.build()?));
                    }
                    following.insert(0, Arc::new(distinct(inputs)?));
                    return Ok(following);
                }
                _ => {
                    following.insert(0, Arc::clone(first));
                    return Ok(following);
                }
            },
            _ => {
                following.insert(0, Arc::clone(first));
                return Ok(following);
            }
        };
        union = inner;
    }
}

/// The columns of a union have the type that their values have together.
pub(super) fn typed(union: Union) -> Result<LogicalPlan> {
    let inputs: Vec<&LogicalPlan> = union.inputs.iter().map(AsRef::as_ref).collect();
    let inputs = match together(&inputs) {
        Some(targets) => {
            let inputs = union.inputs.into_iter();
            let inputs = inputs.map(|input| converted(Arc::unwrap_or_clone(input), &targets));
            inputs
                .map(|input| input.map(Arc::new))
                .collect::<Result<_>>()?
        }
        // The types of the columns were made before those of the inputs were known.
        None => union.inputs,
    };
    Ok(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?))
}

/// The types that columns of several queries have together, where they differ; `None` where none
/// does.
pub(super) fn together(inputs: &[&LogicalPlan]) -> Option<Vec<Option<ColumnType>>> {
    let width = inputs.first()?.schema().fields().len();
    let mut widths = inputs.iter().map(|input| input.schema().fields().len());
    if widths.any(|other| other != width) {
        return None;
    }
    let targets: Vec<Option<ColumnType>> = (0..width)
        .map(|index| {
            let fields: Vec<_> = inputs
                .iter()
                .map(|input| input.schema().field(index))
                .collect();
            let same = fields.windows(2).all(|pair| {
                pair[0].data_type() == pair[1].data_type()
                    && ColumnType::from_arrow(pair[0]) == ColumnType::from_arrow(pair[1])
            });
            let types: Vec<ColumnType> = fields
                .iter()
                .map(|field| ColumnType::from_arrow(field))
                .collect();
            let is_list = types.iter().any(ColumnType::is_list);
            (!same || is_list).then(|| unify_columns(&types))
        })
        .collect();
    targets.iter().any(Option::is_some).then_some(targets)
}

/// A query whose columns are of other types, under the names that they had.
pub(super) fn converted(input: LogicalPlan, targets: &[Option<ColumnType>]) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = input
        .schema()
        .iter()
        .zip(targets)
        .map(|((qualifier, field), target)| {
            let mut column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
            if let ColumnType::Bit { .. } = ColumnType::from_arrow(field) {
                // Beside texts the column of a union keeps the digits of a BIT, not its bytes.
                let number = ColumnType::BigInt { unsigned: true };
                if target.as_ref().is_some_and(|of| !of.is_numeric()) {
                    column = cast::conversion(number).call(vec![column]);
                }
            }
            match target {
                Some(of) if needs(field.data_type(), &ColumnType::from_arrow(field), of) => {
                    let converted = cast::conversion(of.clone()).call(vec![column]);
                    converted.alias_qualified(qualifier.cloned(), field.name())
                }
                _ => column,
            }
        })
        .collect();
    LogicalPlanBuilder::from(input).project(columns)?.build()
}

/// A recursion has the types of its first part. The planner has seen to that as far as it knew the
/// types of the others, and what a union of several recursive parts gives it did not know.
pub(super) fn in_recursion(mut recursion: RecursiveQuery) -> Result<LogicalPlan> {
    if let Some(rounded) = rounded(&recursion.recursive_term)? {
        recursion.recursive_term = Arc::new(rounded);
    }
    let first = recursion.static_term.schema();
    let differs = |(of, to): (&FieldRef, &FieldRef)| {
        of.data_type() != to.data_type() || of.metadata() != to.metadata()
    };
    let term = recursion.recursive_term.as_ref();
    let fields = || term.schema().fields().iter().zip(first.fields());
    if !fields().any(differs) {
        return Ok(LogicalPlan::RecursiveQuery(recursion));
    }
    let columns = term.schema().columns().into_iter().map(Expr::Column);
    let columns: Vec<Expr> = fields()
        .zip(columns)
        .map(|((of, to), column)| {
            let (from, target) = (of.data_type(), to.data_type());
            let wanted = ColumnType::from_arrow(to);
            let is_same = from == target && ColumnType::from_arrow(of) == wanted;
            let value = match (is_same, target.is_integer()) {
                (true, _) => column,
                (false, false) => {
                    let held = wanted.data_type();
                    let value = cast::conversion(wanted).call(vec![column]);
                    // A constant has another type of Arrow than what is computed.
                    match held == *target {
                        true => value,
                        false => Expr::Cast(Cast::new(Box::new(value), target.clone())),
                    }
                }
                // A number that is too large for its column is an error.
                (false, true) => {
                    let unsigned = target.is_unsigned_integer();
                    let whole = match from.is_integer() {
                        true => column,
                        false => {
                            cast::conversion(ColumnType::BigInt { unsigned }).call(vec![column])
                        }
                    };
                    Expr::Cast(Cast::new(Box::new(whole), target.clone()))
                }
            };
            untyped::function().call(vec![value]).alias(of.name())
        })
        .collect();
    let term = LogicalPlanBuilder::from(term.clone()).project(columns)?;
    recursion.recursive_term = Arc::new(term.build()?);
    Ok(LogicalPlan::RecursiveQuery(recursion))
}

/// The last part of a recursion whose values the planner has made whole numbers by cutting them
/// off, which MySQL rounds; `None` for any other.
fn rounded(term: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let LogicalPlan::Projection(projection) = term else {
        return Ok(None);
    };
    let schema = projection.input.schema();
    let mut list = projection.expr.clone();
    let mut is_changed = false;
    for expr in &mut list {
        let inner = match expr {
            Expr::Alias(alias) => alias.expr.as_mut(),
            other => other,
        };
        let Expr::Cast(cast) = inner else {
            continue;
        };
        let (from, to) = (data_type_of(&cast.expr, schema)?, cast.field.data_type());
        if to.is_integer() && (from.is_decimal() || from.is_floating()) {
            let unsigned = to.is_unsigned_integer();
            let whole = cast::conversion(ColumnType::BigInt { unsigned });
            let value = whole.call(vec![std::mem::take(cast.expr.as_mut())]);
            *cast.expr = untyped::function().call(vec![value]);
            is_changed = true;
        }
    }
    if !is_changed {
        return Ok(None);
    }
    let input = Arc::clone(&projection.input);
    let schema = Arc::clone(&projection.schema);
    let projection = Projection::try_new_with_schema(list, input, schema)?;
    Ok(Some(LogicalPlan::Projection(projection)))
}

/// Whether values of a type must be converted to be of another. The planner gives a union what the
/// field of one branch says where that of another says nothing, so numbers always are.
fn needs(data_type: &DataType, from: &ColumnType, to: &ColumnType) -> bool {
    let tells = from.is_temporal() || from.is_list() || from.is_numeric();
    *data_type != to.data_type() || (tells && from != to)
}
