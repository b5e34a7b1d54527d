//! Statements that ended by a bug.

use std::any::Any;

use mayfly_types::{ErrorCode, MySqlError};

/// What a panic said.
pub(crate) fn panic_text(payload: Box<dyn Any + Send>) -> String {
    let text = if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "panic".to_owned()
    };
    tracing::error!(reason = text, "a statement crashed");
    text
}

/// The error for a bug: a panic inside a statement.
pub(crate) fn crashed(what: &str) -> MySqlError {
    MySqlError::with_message(ErrorCode::Unknown, format!("internal error: {what}"))
}
