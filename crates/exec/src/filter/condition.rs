//! The condition of a filter, and its terms once they are asked for.

use std::sync::{Arc, OnceLock};

use arrow::datatypes::SchemaRef;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::filter::FilterExec;

use super::late_terms::LateTerms;
use super::terms::{Terms, is_silent};

/// The condition of a filter. Its terms are made when they are first asked for: many plans are made
/// and never run.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    predicate: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
    terms: Arc<OnceLock<Terms>>,
    late_terms: Arc<OnceLock<Option<LateTerms>>>,
}

impl Condition {
    pub(crate) fn of(filter: &FilterExec) -> Condition {
        Condition {
            predicate: Arc::clone(filter.predicate()),
            schema: filter.input().schema(),
            terms: Arc::default(),
            late_terms: Arc::default(),
        }
    }

    /// The same with another predicate.
    pub(crate) fn with_predicate(&self, predicate: Arc<dyn PhysicalExpr>) -> Condition {
        Condition {
            predicate,
            schema: Arc::clone(&self.schema),
            terms: Arc::default(),
            late_terms: Arc::default(),
        }
    }

    /// The condition of a filter that is often the one of before: then its terms are too.
    pub(super) fn again(&self, filter: &FilterExec) -> Condition {
        let is_same = Arc::ptr_eq(&self.predicate, filter.predicate())
            && self.schema == filter.input().schema();
        match is_same {
            true => self.clone(),
            false => Condition::of(filter),
        }
    }

    pub(crate) fn terms(&self) -> &Terms {
        let make = || Terms::of(&self.predicate, &self.schema);
        self.terms.get_or_init(make)
    }

    /// Whether nobody notices for which rows it is evaluated.
    pub(super) fn is_silent(&self) -> bool {
        is_silent(&self.predicate, &self.schema)
    }

    /// The terms for rows whose columns are read late; `None` where a term reads who knows what.
    pub(super) fn late_terms(&self) -> Option<&LateTerms> {
        let make = || LateTerms::of(&self.predicate, &self.schema);
        self.late_terms.get_or_init(make).as_ref()
    }
}
