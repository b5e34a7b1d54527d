//! MySQL's functions.
//!
//! **Owns** one table of functions: name, arguments, result type, implementation. Scalar functions
//! take their arguments as they come and convert them by MySQL's rules; aggregates are the
//! engine's own with the argument converted first, so that the native operators recognise them,
//! and two of ours: `any_value` and `group_concat`.
//!
//! **Never** reads a clock, a variable or a session but through [`SessionValues`], an extension of
//! the configuration that the session shares with its functions.
//!
//! [`register`] puts functions, the planner of operators and the typing rule into a session.

mod addresses;
mod aggregate;
pub(crate) mod any_constant;
pub(crate) mod any_value;
pub(crate) mod arithmetic;
mod bytes;
pub(crate) mod calendar;
mod call;
pub(crate) mod cast;
mod control;
pub(crate) mod convert;
pub(crate) mod date;
pub(crate) mod define;
pub(crate) mod group_concat;
mod information;
mod json;
pub(crate) mod listed;
mod long_text;
mod math;
mod named_locks;
mod number;
pub(crate) mod octets;
pub(crate) mod one_key;
pub mod own;
mod raise;
mod regexp;
mod register;
mod results;
pub(crate) mod seeded;
mod session_values;
#[cfg(test)]
mod silent;
pub(crate) mod single;
mod text;
pub(crate) mod unify;
mod waiting;
pub(crate) mod warned;
pub(crate) mod window;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion::functions_aggregate::{
    average, bit_and_or_xor, count, grouping, min_max, stddev, sum, variance,
};
use datafusion::logical_expr::{AggregateUDF, Expr, ScalarUDF};

pub use arithmetic::refusing_zero;
use arithmetic::{Operator, arithmetic as operator};
pub use cast::{assignment, converted, rows_seen, see_again, shown_texts, skip_rows, zero};
use define::Function;
pub use information::random_uuid;
pub use json::is_json;
pub use long_text::LongTexts;
pub use named_locks::{LockHolder, NamedLocks};
pub(crate) use number::{read_double, read_integer};
pub use raise::raise;
pub use register::register;
pub(crate) use session_values::looked_at;
pub use session_values::{SessionValues, Values, Waiting, aside};
pub(crate) use text::has_parts;
pub use waiting::waits;
pub(crate) use waiting::{has_waiting, is_waiting};

/// Names and aliases of DataFusion's aggregates that MySQL does not have.
const FOREIGN_AGGREGATES: [&str; 4] = ["mean", "var", "var_population", "var_sample"];

/// The scalar function of a name, which is in lower case.
pub fn scalar_function(name: &str) -> Option<Arc<ScalarUDF>> {
    BY_NAME.get(name).cloned()
}

/// The names of all scalar functions that users can call.
pub fn scalar_names() -> impl Iterator<Item = &'static str> {
    let names = BY_NAME.keys().map(String::as_str);
    names.filter(|name| !name.starts_with(own::MARK))
}

/// Whether MySQL has an aggregate of that name, which is in lower case.
pub(crate) fn is_aggregate_name(name: &str) -> bool {
    !FOREIGN_AGGREGATES.contains(&name)
}

/// Every scalar function, once, aliases within.
fn scalar_functions() -> Vec<Arc<ScalarUDF>> {
    let tables = [
        bytes::FUNCTIONS,
        math::FUNCTIONS,
        control::FUNCTIONS,
        regexp::FUNCTIONS,
        information::FUNCTIONS,
        waiting::FUNCTIONS,
        addresses::FUNCTIONS,
        json::FUNCTIONS,
    ];
    let families = text::TABLES.into_iter().chain(date::TABLES);
    let defined = families
        .chain(tables)
        .flatten()
        .map(|definition| Arc::new(ScalarUDF::new_from_impl(Function::new(definition))));
    let operators =
        [Operator::Modulo, Operator::Negate, Operator::BitNot].map(|of| Arc::new(operator(of)));
    defined.chain(operators).collect()
}

static BY_NAME: LazyLock<HashMap<String, Arc<ScalarUDF>>> = LazyLock::new(|| {
    let mut functions = HashMap::new();
    for function in scalar_functions() {
        for alias in function.aliases() {
            functions.insert(alias.clone(), Arc::clone(&function));
        }
        functions.insert(function.name().to_owned(), function);
    }
    functions
});

/// The name that a function has of its own, if `alias` is another one for it.
pub(crate) fn own_name(alias: &str) -> Option<&'static str> {
    let name = BY_NAME.get(alias)?.name();
    (name != alias).then_some(name)
}

/// A call of a function of the table.
///
/// # Panics
/// If there is no such function: names are written in the source, not by users.
pub(crate) fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    BY_NAME
        .get(name)
        .expect("a function of the table")
        .call(arguments)
}

/// Every aggregate function.
///
/// The stock ones go by MySQL's names: STDDEV is the population's, not the sample's.
pub fn aggregate_functions() -> Vec<Arc<AggregateUDF>> {
    static FUNCTIONS: LazyLock<Vec<Arc<AggregateUDF>>> = LazyLock::new(make_aggregate_functions);
    FUNCTIONS.clone()
}

fn make_aggregate_functions() -> Vec<Arc<AggregateUDF>> {
    let named = |function: Arc<AggregateUDF>, aliases: &[&'static str]| {
        Arc::new(
            function
                .as_ref()
                .clone()
                .with_aliases(aliases.iter().copied()),
        )
    };
    vec![
        count::count_udaf(),
        sum::sum_udaf(),
        average::avg_udaf(),
        min_max::min_udaf(),
        min_max::max_udaf(),
        bit_and_or_xor::bit_and_udaf(),
        bit_and_or_xor::bit_or_udaf(),
        bit_and_or_xor::bit_xor_udaf(),
        // The stock sample deviation is called `stddev`; the population's takes that name over.
        stddev::stddev_udaf(),
        named(stddev::stddev_pop_udaf(), &["std", "stddev"]),
        variance::var_samp_udaf(),
        named(variance::var_pop_udaf(), &["variance"]),
        grouping::grouping_udaf(),
        Arc::new(any_value::any_value()),
        Arc::new(group_concat::group_concat(group_concat::Options::default())),
    ]
}
