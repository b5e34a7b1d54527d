//! How the program is linked.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // A generic function stands in each crate that uses it. Here, Rust links with LLD, which folds
    // those whose code is the same into one: 2 % of the program. Rust promises no function an
    // address of its own. The linkers of other targets may not know the option.
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|set| set == value);
    if is("CARGO_CFG_TARGET_ARCH", "x86_64")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
    {
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
    }
}
