//! MIN, MAX and SUM over a window, whose values have the MySQL type of their argument, or its
//! digits.
//!
//! The stock functions answer an Arrow type. Where rows are grouped the typing puts the MySQL type
//! on the column that they become; the column of a window has what the function says.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::error::Result;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ReversedUDAF, SetMonotonicity, Signature,
};
use mayfly_types::{COLLATION_KEY, ColumnType, TYPE_KEY};

use super::listed::text_type;

/// An aggregate with the type of its argument.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OfWindow {
    stock: Arc<AggregateUDF>,
}

/// The function for a window of a stock one: MIN, MAX or SUM.
pub(crate) fn of_window(stock: &Arc<AggregateUDF>) -> Arc<AggregateUDF> {
    let stock = Arc::clone(stock);
    Arc::new(AggregateUDF::new_from_impl(OfWindow { stock }))
}

impl AggregateUDFImpl for OfWindow {
    fn name(&self) -> &str {
        self.stock.name()
    }

    fn signature(&self) -> &Signature {
        self.stock.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.stock.return_type(types)
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        let field = self.stock.return_field(fields)?.as_ref().clone();
        let of = ColumnType::from_arrow(&fields[0]);
        let keeps = of.data_type() == *field.data_type()
            && (self.name() != "sum" || of.shown_digits().is_some());
        if !keeps {
            return Ok(Arc::new(field));
        }
        let of_argument = fields[0].metadata().iter();
        let mut metadata: HashMap<String, String> = of_argument
            .filter(|(key, _)| *key == TYPE_KEY || *key == COLLATION_KEY)
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if of.is_list() {
            // What is found of ENUM or SET is a text.
            metadata.insert(TYPE_KEY.to_owned(), text_type(&of).to_string());
        }
        Ok(Arc::new(field.with_metadata(metadata)))
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.stock.accumulator(arguments)
    }

    fn create_sliding_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        self.stock.create_sliding_accumulator(arguments)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.stock.order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.stock.coerce_types(types)
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.stock.inner().set_monotonicity(data_type)
    }
}
