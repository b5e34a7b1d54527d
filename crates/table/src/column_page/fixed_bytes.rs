//! The bytes of an array of values of one width, whatever they are.

use arrow_array::{Array, downcast_primitive_array};

/// Hands over the bytes of an array of a fixed width.
pub(crate) fn fixed_bytes<R>(
    array: &dyn Array,
    width: usize,
    use_bytes: impl FnOnce(&[u8]) -> R,
) -> R {
    macro_rules! values {
        ($array:ident) => {
            use_bytes(&$array.values().inner().as_slice()[..$array.len() * width])
        };
    }
    downcast_primitive_array! {
        array => values!(array),
        _ => {
            let data = array.to_data();
            let from = data.offset() * width;
            use_bytes(&data.buffers()[0].as_slice()[from..from + array.len() * width])
        }
    }
}
