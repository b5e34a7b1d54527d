//! RAND with a constant seed: one sequence for the statement.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::Float64Array;
use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::math::Generator;

/// A sequence that goes on from batch to batch. Rows get its numbers in the order in which their
/// batches are evaluated, which is the order of the rows where one thread evaluates them.
#[derive(Debug)]
struct SeededRand {
    identity: u64,
    generator: Mutex<Generator>,
    signature: Signature,
}

static IDENTITIES: AtomicU64 = AtomicU64::new(0);

/// A function without arguments that yields the sequence of a seed.
pub(crate) fn seeded_rand(seed: i64) -> ScalarUDF {
    ScalarUDF::new_from_impl(SeededRand {
        identity: IDENTITIES.fetch_add(1, Ordering::Relaxed),
        generator: Mutex::new(Generator::new(seed)),
        signature: Signature::nullary(Volatility::Volatile),
    })
}

impl PartialEq for SeededRand {
    fn eq(&self, other: &Self) -> bool {
        self.identity == other.identity
    }
}

impl Eq for SeededRand {}

impl Hash for SeededRand {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity.hash(state);
    }
}

impl ScalarUDFImpl for SeededRand {
    fn name(&self) -> &'static str {
        "rand"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut generator = self
            .generator
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let values: Float64Array = (0..arguments.number_rows)
            .map(|_| Some(generator.next()))
            .collect();
        Ok(ColumnarValue::Array(Arc::new(values)))
    }
}
