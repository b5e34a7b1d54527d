//! Chores of this repository: `cargo xtask tidy`, `cargo xtask steady` and `cargo xtask dist`.

#![forbid(unsafe_code)]

mod dist;
mod repository;
mod steady;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask tidy [--shrink | --arrows]
       cargo xtask steady RUNS [--load] [--abreast N] [--minutes N] [-- ARGUMENTS OF CARGO TEST]
       cargo xtask dist [--no-build]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["tidy"] => tell(tidy::run()),
        ["tidy", "--shrink"] => tell(tidy::shrink()),
        ["tidy", "--arrows"] => match tidy::arrows() {
            Ok(lines) => {
                lines.iter().for_each(|line| println!("{line}"));
                ExitCode::SUCCESS
            }
            Err(error) => tell(Err(error)),
        },
        ["steady", arguments @ ..] => match steady::run(arguments) {
            Ok(code) => ExitCode::from(code),
            Err(error) => {
                eprintln!("steady: {error:#}\n{USAGE}");
                ExitCode::FAILURE
            }
        },
        ["dist", arguments @ ..] => match dist::run(arguments) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("dist: {error:#}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("{USAGE}");
            ExitCode::FAILURE
        }
    }
}

/// Prints what breaks a rule.
fn tell(problems: anyhow::Result<Vec<String>>) -> ExitCode {
    match problems {
        Ok(problems) if problems.is_empty() => ExitCode::SUCCESS,
        Ok(problems) => {
            for problem in &problems {
                eprintln!("tidy: {problem}");
            }
            eprintln!("tidy: {} problems", problems.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("tidy: {error:#}");
            ExitCode::FAILURE
        }
    }
}
