//! The value of a subquery in a plan that is kept.
//!
//! Owns: the expression that stands for such a value, and the values of the run that this thread is
//! in. Never: keeps one between two runs. DataFusion has one place for a value in a plan, and
//! several threads may run a kept plan at once; each of them runs it from its beginning to its end.

use std::cell::RefCell;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{FieldRef, Schema};
use datafusion::common::{Result, ScalarValue, internal_datafusion_err};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;

use crate::run_values;

thread_local! {
    /// The values of the run that this thread is in, by their place.
    static VALUES: RefCell<Vec<Option<ScalarValue>>> = const { RefCell::new(Vec::new()) };
}

/// Runs a plan in which no value of a subquery is known yet.
pub(crate) fn without_values<T>(run: impl FnOnce() -> T) -> T {
    run_values::with(&VALUES, Vec::new(), run)
}

/// Tells the run of this thread a value.
pub(crate) fn tell(place: usize, value: ScalarValue) {
    VALUES.with_borrow_mut(|values| {
        if values.len() <= place {
            values.resize(place + 1, None);
        }
        values[place] = Some(value);
    });
}

/// The value of a place.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct SubqueryValue {
    pub(crate) place: usize,
    pub(crate) field: FieldRef,
}

impl fmt::Display for SubqueryValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "subquery_value({})", self.place)
    }
}

impl PhysicalExpr for SubqueryValue {
    fn return_field(&self, _input_schema: &Schema) -> Result<FieldRef> {
        Ok(Arc::clone(&self.field))
    }

    fn evaluate(&self, _batch: &RecordBatch) -> Result<ColumnarValue> {
        let value = VALUES.with_borrow(|values| values.get(self.place).cloned().flatten());
        let value = value.ok_or_else(|| {
            internal_datafusion_err!("the value of subquery {} is not known yet", self.place)
        })?;
        Ok(ColumnarValue::Scalar(value))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        Vec::new()
    }

    fn with_new_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(self)
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "(scalar subquery)")
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field};

    use super::*;

    #[test]
    fn values_are_those_of_the_run() {
        let field = Arc::new(Field::new("value", DataType::Int32, true));
        let value = SubqueryValue { place: 1, field };
        let rows = RecordBatch::new_empty(Arc::new(Schema::empty()));
        let is_known = || match value.evaluate(&rows) {
            Ok(ColumnarValue::Scalar(value)) => Some(value),
            _ => None,
        };
        let run = |number: i32| {
            without_values(|| {
                assert_eq!(is_known(), None);
                tell(1, number.into());
                assert_eq!(without_values(is_known), None);
                is_known()
            })
        };
        assert_eq!(run(5), Some(5.into()));
        assert_eq!(run(7), Some(7.into()));
        assert_eq!(is_known(), None);
    }
}
