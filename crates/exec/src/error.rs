//! The way of a temp space failure through DataFusion.
//!
//! Owns: the conversions between `mayfly_space::Error`, `mayfly_table::Error` and
//! `DataFusionError`. Never: decides what a failure means to a user.
//!
//! Operators of this crate raise `DataFusionError::External` with the space's error inside, so
//! that a caller finds it whole with [`find_space_error`]. The memory pool cannot: stock
//! operators begin to spill only when they see the variant `ResourcesExhausted`, which holds
//! nothing but text. There the figures travel in a bracketed suffix that
//! [`find_space_error`] reads back.

use std::error::Error;

use datafusion::common::DataFusionError;

/// Wraps a failure of the temp space for the journey through DataFusion.
pub fn space_error(error: mayfly_space::Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Wraps a failure of a table or run for the journey through DataFusion.
pub fn table_error(error: mayfly_table::Error) -> DataFusionError {
    match error {
        mayfly_table::Error::Space(error) => space_error(error),
        mayfly_table::Error::Arrow(error) => error.into(),
        other => DataFusionError::External(Box::new(other)),
    }
}

/// Wraps a failure of row pages for the journey through DataFusion.
pub(crate) fn rows_error(error: mayfly_table::rows::Error) -> DataFusionError {
    match error {
        mayfly_table::rows::Error::Space(error) => space_error(error),
        mayfly_table::rows::Error::Arrow(error) => error.into(),
        stopped @ mayfly_table::rows::Error::Stopped => {
            DataFusionError::External(Box::new(stopped))
        }
    }
}

const MARK: &str = "[asked_bytes=";

/// A refused grant as the variant that makes stock operators spill.
pub(crate) fn exhausted(consumer: &str, error: &mayfly_space::Error) -> DataFusionError {
    let text = match error {
        mayfly_space::Error::BudgetExceeded {
            asked_bytes,
            available_bytes,
            limit_bytes,
        } => {
            format!(
                "{error} for {consumer} {MARK}{asked_bytes} available_bytes={available_bytes} \
                 limit_bytes={limit_bytes}]"
            )
        }
        other => format!("{other} for {consumer}"),
    };
    DataFusionError::ResourcesExhausted(text)
}

fn read_exhausted(text: &str) -> Option<mayfly_space::Error> {
    let inside = text.get(text.find(MARK)? + 1..)?;
    let inside = inside.get(..inside.find(']')?)?;
    let mut values = inside
        .split(' ')
        .map(|part| part.split('=').nth(1)?.parse::<u64>().ok());
    Some(mayfly_space::Error::BudgetExceeded {
        asked_bytes: values.next()??,
        available_bytes: values.next()??,
        limit_bytes: values.next()??,
    })
}

/// A failure of the temp space found inside a `DataFusionError`.
#[derive(Debug)]
pub enum SpaceFailure<'a> {
    /// The error itself, found in the chain of sources.
    Found(&'a mayfly_space::Error),
    /// An error rebuilt from the text of `ResourcesExhausted`.
    Rebuilt(mayfly_space::Error),
}

impl std::ops::Deref for SpaceFailure<'_> {
    type Target = mayfly_space::Error;

    fn deref(&self) -> &mayfly_space::Error {
        match self {
            Self::Found(error) => error,
            Self::Rebuilt(error) => error,
        }
    }
}

/// Finds the temp space's own error in whatever DataFusion wrapped around it.
pub fn find_space_error(error: &DataFusionError) -> Option<SpaceFailure<'_>> {
    search(error)
}

fn search<'a>(mut error: &'a (dyn Error + 'static)) -> Option<SpaceFailure<'a>> {
    loop {
        if let Some(found) = error.downcast_ref::<mayfly_space::Error>() {
            return Some(SpaceFailure::Found(found));
        }
        // A transparent variant answers with the source of what it holds, not with what it holds.
        if let Some(mayfly_table::Error::Space(found)) = error.downcast_ref() {
            return Some(SpaceFailure::Found(found));
        }
        // The source of an `io::Error` is the source of what it carries, not the carried error.
        if let Some(io) = error.downcast_ref::<std::io::Error>()
            && let Some(inner) = io.get_ref()
        {
            return search(inner);
        }
        match error.downcast_ref::<DataFusionError>() {
            Some(DataFusionError::ResourcesExhausted(text)) => {
                return read_exhausted(text).map(SpaceFailure::Rebuilt);
            }
            Some(DataFusionError::Collection(errors)) => {
                return errors.iter().find_map(|each| search(each));
            }
            Some(DataFusionError::Shared(shared)) => return search(shared.as_ref()),
            _ => {}
        }
        error = error.source()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::error::ArrowError;

    fn budget() -> mayfly_space::Error {
        mayfly_space::Error::BudgetExceeded {
            asked_bytes: 11,
            available_bytes: 7,
            limit_bytes: 64,
        }
    }

    #[test]
    fn finds_the_error_behind_every_wrapper() {
        let through_io = || std::io::Error::other(budget());
        for error in [
            space_error(budget()),
            space_error(budget()).context("while sorting"),
            DataFusionError::External(Box::new(mayfly_table::Error::Space(budget()))),
            exhausted("HashJoinInput", &budget()),
            DataFusionError::IoError(through_io()),
            DataFusionError::ArrowError(
                Box::new(ArrowError::IoError("write".into(), through_io())),
                None,
            ),
            DataFusionError::Shared(std::sync::Arc::new(space_error(budget()))),
            DataFusionError::Collection(vec![
                DataFusionError::Plan("other".into()),
                space_error(budget()),
            ]),
        ] {
            let found = find_space_error(&error).unwrap_or_else(|| panic!("lost in {error}"));
            assert!(
                matches!(
                    *found,
                    mayfly_space::Error::BudgetExceeded {
                        asked_bytes: 11,
                        available_bytes: 7,
                        limit_bytes: 64
                    }
                ),
                "{error}"
            );
        }
    }

    #[test]
    fn stock_operators_see_the_variant_that_makes_them_spill() {
        let error = exhausted("ExternalSorter", &budget());
        assert!(matches!(
            error.find_root(),
            DataFusionError::ResourcesExhausted(_)
        ));
    }

    #[test]
    fn foreign_errors_stay_foreign() {
        assert!(find_space_error(&DataFusionError::Plan("x".into())).is_none());
        assert!(find_space_error(&DataFusionError::ResourcesExhausted("x".into())).is_none());
    }
}
