//! How long names may be.

use mayfly_types::{ErrorCode, MySqlError};

/// Most characters of a name.
pub(crate) const NAME_LENGTH: usize = 64;

/// Refuses a name that is longer (1059).
pub(crate) fn check_name_length(name: &str) -> Result<(), MySqlError> {
    match name.chars().count() > NAME_LENGTH {
        true => Err(MySqlError::new(ErrorCode::IdentifierTooLong, &[&name])),
        false => Ok(()),
    }
}
