//! How signs between fields are named.

/// The sign as an option has it.
pub(super) fn named(sign: u8) -> String {
    match sign {
        b'\t' => "'\\t'".to_owned(),
        sign => format!("'{}'", char::from(sign)),
    }
}
