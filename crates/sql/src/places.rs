//! Where the places of a text are, which sqlparser names by line and column.

/// Byte offset of a place that sqlparser names by line and column.
pub(crate) fn offset(text: &str, line: u64, column: u64) -> usize {
    Places::of(text).offset(line, column)
}

/// Where places of a text are. Those in the order of the text are found in one pass over it.
pub(crate) struct Places<'a> {
    pub(crate) text: &'a str,
    /// The place that was found last.
    line: u64,
    column: u64,
    offset: usize,
}

impl<'a> Places<'a> {
    pub(crate) fn of(text: &'a str) -> Places<'a> {
        Places {
            text,
            line: 1,
            column: 1,
            offset: 0,
        }
    }

    /// Byte offset of a line and a column, both from 1; that of the end where there is none.
    pub(crate) fn offset(&mut self, line: u64, column: u64) -> usize {
        if (line, column) < (self.line, self.column) {
            *self = Places::of(self.text);
        }
        while self.line < line {
            let Some(end) = self.text[self.offset..].find('\n') else {
                return self.text.len();
            };
            (self.line, self.column) = (self.line + 1, 1);
            self.offset += end + 1;
        }
        for character in self.text[self.offset..].chars() {
            if self.column >= column || character == '\n' {
                break;
            }
            self.column += 1;
            self.offset += character.len_utf8();
        }
        self.offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_in_any_order() {
        let text = "a\u{e9} b,\n\n  cd\n\u{fc}";
        let mut places = Places::of(text);
        for (line, column, rest) in [
            (1, 1, text),
            (1, 3, " b,\n\n  cd\n\u{fc}"),
            (1, 6, "\n\n  cd\n\u{fc}"),
            (2, 1, "\n  cd\n\u{fc}"),
            (3, 3, "cd\n\u{fc}"),
            (3, 5, "\n\u{fc}"),
            (4, 2, ""),
            (3, 4, "d\n\u{fc}"),
            (1, 2, "\u{e9} b,\n\n  cd\n\u{fc}"),
            (4, 1, "\u{fc}"),
            // Before the first place, and behind the last one.
            (0, 0, text),
            (9, 1, ""),
            (2, 1, "\n  cd\n\u{fc}"),
        ] {
            let found = &text[places.offset(line, column)..];
            assert_eq!(found, rest, "{line} {column}");
            assert_eq!(offset(text, line, column), text.len() - rest.len());
        }
    }
}
