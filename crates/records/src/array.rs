//! What stands around the objects of a JSON array that is a whole file: `[`, `,` and `]`.
//!
//! These signs become white space, so that whoever reads the objects sees them one after the other,
//! as in a file without an array. Whether the signs stand where they belong is found out here.

/// Where a file stands between two objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ArrayPlace {
    /// Nothing but white space was there.
    #[default]
    Start,
    /// The file is no array.
    None,
    /// Behind `[`.
    First,
    /// Behind `,`.
    Next,
    /// In front of the bracket of an object.
    Within,
    /// Behind an object.
    Behind,
    /// Behind `]`.
    End,
}

/// A byte that does not belong where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Misplaced {
    /// Its place in the buffer.
    pub(crate) at: usize,
    /// What should stand there.
    pub(crate) expected: &'static str,
}

impl ArrayPlace {
    /// Whether the file may end here.
    pub(crate) fn may_end(self) -> bool {
        matches!(self, ArrayPlace::Start | ArrayPlace::None | ArrayPlace::End)
    }

    /// Makes white space of the signs from `start` on; gives the place of the next object, or the
    /// end of the buffer.
    ///
    /// # Errors
    /// A byte that is none of them.
    pub(crate) fn skip(&mut self, buffer: &mut [u8], start: usize) -> Result<usize, Misplaced> {
        let bytes = buffer.iter_mut().enumerate().skip(start);
        for (at, byte) in bytes {
            if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                continue;
            }
            let wrong = |expected| Err(Misplaced { at, expected });
            *self = match (*self, *byte) {
                (ArrayPlace::Start, b'[') => ArrayPlace::First,
                (ArrayPlace::First | ArrayPlace::Behind, b']') => ArrayPlace::End,
                (ArrayPlace::Behind, b',') => ArrayPlace::Next,
                (ArrayPlace::Start | ArrayPlace::None, _) => {
                    *self = ArrayPlace::None;
                    return Ok(at);
                }
                (ArrayPlace::First | ArrayPlace::Next, b'{') => {
                    *self = ArrayPlace::Within;
                    return Ok(at);
                }
                (ArrayPlace::First | ArrayPlace::Next, _) => return wrong("an object"),
                (ArrayPlace::Within | ArrayPlace::Behind, _) => {
                    return wrong("',' or ']' behind an object of the array");
                }
                (ArrayPlace::End, _) => return wrong("nothing behind the array"),
            };
            *byte = b' ';
        }
        Ok(buffer.len())
    }
}
