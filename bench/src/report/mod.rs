//! Results for readers: a table on the terminal, a page with curves.

pub(crate) mod html;
pub(crate) mod svg;
pub(crate) mod text;
