//! How much of a statement is read again.
//!
//! The parser tries a reading, goes back when it fails, and tries another one. Where both begin
//! alike, what is inside is read twice, and what is inside of that four times: a line of nested
//! parentheses would take longer than anybody waits. Wherever we know of it the dialect looks
//! ahead and does not try. This is the bound for the rest: the operands that are read, counted,
//! are not many more than the text has tokens.
//!
//! Who counts also asks the watch of the thread, so that a statement which is stopped while its
//! text is read ends soon.

use std::cell::{Cell, RefCell};

use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::Token;
use mayfly_types::{ErrorCode, MySqlError};

use crate::planning;

/// Readings of a token that a statement of any length may have on average.
const READINGS: usize = 4;
/// Operands that a short statement may have read beyond that.
const OPERANDS: usize = 10_000;
/// Bytes of a token that cost as much as another token: a reading copies them.
const BYTES: usize = 64;
/// How often the watch is asked.
const ASKED_EVERY: usize = 4096;

/// The operands that a parser has read, and may read.
#[derive(Debug)]
pub(crate) struct Effort {
    read: Cell<usize>,
    most: usize,
    /// Why the parser has to stop.
    ended: RefCell<Option<MySqlError>>,
}

impl Effort {
    /// The effort for a text of so many tokens and bytes.
    pub(crate) fn for_text(tokens: usize, bytes: usize) -> Effort {
        Effort {
            read: Cell::new(0),
            most: bound(tokens.saturating_add(bytes / BYTES), OPERANDS),
            ended: RefCell::default(),
        }
    }

    /// Counts an operand that begins with a token.
    ///
    /// # Errors
    /// That of a recursion that is too deep, when there are too many, or when the watch ends the
    /// statement: it is the only one after which the parser tries no other reading.
    pub(crate) fn operand(&self, first: &Token) -> Result<(), ParserError> {
        let before = self.read.get();
        let read = before
            .saturating_add(1)
            .saturating_add(bytes(first) / BYTES);
        self.read.set(read);
        if self.ended.borrow().is_some() {
            return Err(ParserError::RecursionLimitExceeded);
        }
        if read > self.most {
            return Err(self.end(refusal()));
        }
        if before / ASKED_EVERY != read / ASKED_EVERY
            && let Err(error) = planning::ask_watch()
        {
            return Err(self.end(error));
        }
        Ok(())
    }

    /// Ends the reading with an error for the user; what the parser is told.
    pub(crate) fn end(&self, error: MySqlError) -> ParserError {
        self.ended.borrow_mut().get_or_insert(error);
        ParserError::RecursionLimitExceeded
    }

    /// The error that has ended the reading: what the parser has made of the text means nothing.
    pub(crate) fn ended(&self) -> Option<MySqlError> {
        self.ended.borrow_mut().take()
    }
}

/// How often tokens may be read, all together.
pub(crate) fn bound(tokens: usize, more: usize) -> usize {
    tokens.saturating_mul(READINGS).saturating_add(more)
}

fn bytes(token: &Token) -> usize {
    match token {
        Token::SingleQuotedString(text)
        | Token::DoubleQuotedString(text)
        | Token::NationalStringLiteral(text)
        | Token::HexStringLiteral(text)
        | Token::SingleQuotedByteStringLiteral(text)
        | Token::Number(text, _) => text.len(),
        Token::Word(word) => word.value.len(),
        _ => 0,
    }
}

/// What the user is told.
pub(crate) fn refusal() -> MySqlError {
    MySqlError::with_message(
        ErrorCode::StackOverrun,
        "Thread stack overrun: the statement is nested in a way that takes too long to read",
    )
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::planning::{Watch, watched};

    #[test]
    fn the_bound_grows_with_the_tokens() {
        for tokens in [0, 1, 1000] {
            let effort = Effort::for_text(tokens, 0);
            let most = READINGS * tokens + OPERANDS;
            assert!((0..most).all(|_| effort.operand(&Token::LParen).is_ok()));
            assert!(effort.ended().is_none());
            assert!(effort.operand(&Token::LParen).is_err());
            assert!(effort.ended().is_some());
        }
        let effort = Effort::for_text(usize::MAX, usize::MAX);
        assert!(effort.operand(&Token::LParen).is_ok());
    }

    #[test]
    fn a_long_literal_costs_what_it_is_long() {
        let bytes = 16 << 20;
        let literal = Token::SingleQuotedString("x".repeat(bytes));
        let effort = Effort::for_text(10, bytes);
        assert!((0..READINGS).all(|_| effort.operand(&literal).is_ok()));
        assert!(effort.operand(&literal).is_err());
    }

    #[test]
    fn a_statement_that_is_stopped_is_not_read_on() {
        struct Stopped;
        impl Watch for Stopped {
            fn check(&self) -> Result<(), MySqlError> {
                Err(MySqlError::new(ErrorCode::QueryInterrupted, &[]))
            }

            fn hold_bytes(&self, _bytes: u64) -> Result<(), MySqlError> {
                Ok(())
            }
        }
        let effort = Effort::for_text(1_000_000, 0);
        watched(Rc::new(Stopped), || {
            assert!((0..=ASKED_EVERY).any(|_| effort.operand(&Token::LParen).is_err()));
        });
        let ended = effort.ended().expect("an error");
        assert!(ended.is(ErrorCode::QueryInterrupted), "{ended}");
    }
}
