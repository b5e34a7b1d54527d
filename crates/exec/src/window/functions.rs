//! Which function of ours answers which one of the plan.

use datafusion::common::Result;

use super::function::Function;
use super::rank::RankFunction;
use super::running::RunningAggregate;
use super::spec::FunctionSpec;
use super::value::ValueFunction;
use super::whole::WholeAggregate;

/// The function of a specification; `first_flag` is the column of the first order's flags.
pub(super) fn function_of(spec: &FunctionSpec, first_flag: usize) -> Result<Box<dyn Function>> {
    Ok(match spec.clone() {
        FunctionSpec::Ranking { kind, order } => {
            Box::new(RankFunction::new(kind, order, first_flag))
        }
        FunctionSpec::Value {
            value,
            field,
            place,
        } => Box::new(ValueFunction::new(value, &field, place, first_flag)?),
        FunctionSpec::Aggregate {
            aggregate,
            arguments,
            frame,
            ..
        } if frame.is_whole() => Box::new(WholeAggregate::new(aggregate, arguments)?),
        FunctionSpec::Aggregate {
            aggregate,
            arguments,
            types,
            frame,
        } => Box::new(RunningAggregate::new(
            aggregate, arguments, &types, &frame, first_flag,
        )?),
    })
}
