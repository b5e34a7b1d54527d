//! The size of the terminal, and texts that fit it.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What stands for the rest of a text that is cut.
const CUT: &str = "...";

/// Columns and rows of a terminal.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub columns: usize,
    pub rows: usize,
}

impl Size {
    /// The size of the terminal behind a stream, if there is one and it says so.
    pub fn of(stream: impl std::os::fd::AsFd) -> Option<Self> {
        let size = rustix::termios::tcgetwinsize(stream).ok()?;
        let [columns, rows] = [size.ws_col, size.ws_row].map(usize::from);
        (columns > 0 && rows > 0).then_some(Self { columns, rows })
    }
}

/// Columns that `text` takes on a terminal.
pub fn width(text: &[u8]) -> usize {
    match std::str::from_utf8(text) {
        Ok(text) => text.width(),
        Err(_) => text.len(),
    }
}

/// The beginning of `text` that leaves room in `columns` for what stands for the rest, and that.
pub fn cut(text: &[u8], columns: usize) -> (&[u8], &'static str) {
    let mark = &CUT[..CUT.len().min(columns)];
    let room = columns - mark.len();
    let Ok(characters) = std::str::from_utf8(text) else {
        return (&text[..room.min(text.len())], mark);
    };
    let end = fitting(characters, room);
    (&text[..end], mark)
}

/// An excerpt of a line that fits `columns` and holds the character at byte `at`, and the column of
/// that character in it.
pub fn excerpt(line: &str, at: usize, columns: usize) -> (String, usize) {
    // A tab takes one column here, so that what stands below it can be aligned.
    let shown = |text: &str| text.replace(|c: char| c.is_control(), " ");
    let before = line[..at].width();
    if line.width() <= columns {
        return (shown(line), before);
    }
    let mut start = 0;
    let mut lead = "";
    // At least a third of the room is left for what follows the place.
    let room_before = columns * 2 / 3;
    if before > room_before {
        lead = CUT;
        let excess = before + lead.len() - room_before;
        start = fitting(&line[..at], excess);
        // A wide character that begins before the excess ends belongs to it.
        if line[..start].width() < excess
            && let Some(next) = line[start..at].chars().next()
        {
            start += next.len_utf8();
        }
    }
    let rest = &line[start..];
    let room = columns.saturating_sub(lead.len());
    let (text, tail) = if rest.width() <= room {
        (rest, "")
    } else {
        (&rest[..fitting(rest, room.saturating_sub(CUT.len()))], CUT)
    };
    let column = lead.len() + line[start..at].width();
    (format!("{lead}{}{tail}", shown(text)), column)
}

/// End of the longest beginning of `text` that takes no more than `columns`.
fn fitting(text: &str, columns: usize) -> usize {
    let mut taken = 0;
    let too_far = text.char_indices().find(|(_, character)| {
        taken += character.width().unwrap_or(1);
        taken > columns
    });
    too_far.map_or(text.len(), |(at, _)| at)
}
