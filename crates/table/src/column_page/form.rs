//! How the values of a column stand in one page.

use super::frame::Frame;
use super::text_codes::TextCodes;

/// How the values of a column stand in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As all pages can have them.
    Plain,
    /// Integers as their distances from a base.
    Narrow(Frame),
    /// Texts as codes of the different ones.
    Coded(TextCodes),
}
