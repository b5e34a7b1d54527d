//! The benchmarks themselves: cases, limits and the figures drawn from them.

pub(crate) mod clients;
pub(crate) mod cliff;
pub(crate) mod groupings;
pub(crate) mod joins;
pub(crate) mod neighbours;
pub(crate) mod pages;
pub(crate) mod planning;
mod ratios;
pub(crate) mod seed0;
pub(crate) mod seed1;
pub(crate) mod seed2;
pub(crate) mod seed3;
pub(crate) mod seed4;
pub(crate) mod soak;
pub(crate) mod space;
pub(crate) mod subqueries;
pub(crate) mod tables;
pub(crate) mod tpch;
pub(crate) mod windows;
