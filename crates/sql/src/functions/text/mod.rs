//! Functions over texts. Positions and lengths count characters, from one; NULL in, NULL out,
//! unless a function says otherwise.

mod build;
mod characters;
mod find;
mod like;
mod part;
mod shape;

pub(crate) use like::has_parts;

use super::define::Definition;

pub(super) static TABLES: [&[Definition]; 5] = [
    build::FUNCTIONS,
    part::FUNCTIONS,
    find::FUNCTIONS,
    like::FUNCTIONS,
    shape::FUNCTIONS,
];
