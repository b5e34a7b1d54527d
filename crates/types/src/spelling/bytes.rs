//! Bytes inside a message.

/// Bytes as a message shows them: those that are no printable ASCII by their numbers.
pub fn shown_bytes(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b' '..=b'~' => text.push(char::from(*byte)),
            other => text.push_str(&format!("\\x{other:02X}")),
        }
    }
    text
}
