//! What the constants and values of a statement must be to run a kept plan.

use arrow::datatypes::DataType;
use datafusion::scalar::ScalarValue;
use mayfly_sql::literal::Literal;
use mayfly_sql::slots::{Kind, Slot};
use mayfly_sql::statement_values::StatementValue;

/// The values that a plan asks for.
#[derive(Default, PartialEq)]
pub(super) struct StatementValues(pub(super) Vec<StatementValue>);

/// The constants of a statement, in the order of its text.
pub(super) type Constants<'a> = [Option<Literal<'a>>];

/// What the constants of a statement must be to run a kept plan.
#[derive(Default)]
pub(super) struct KeptConstants {
    /// Those that are part of the plan.
    pub(super) fixed: Vec<(usize, Option<Literal<'static>>)>,
    pub(super) slots: Vec<Slot>,
    /// The values that the plan asks for: of which slot, in which type.
    pub(super) values: Vec<(usize, DataType)>,
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
