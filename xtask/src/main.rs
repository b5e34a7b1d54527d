//! Chores of this repository: `cargo xtask tidy`.

#![forbid(unsafe_code)]

mod tidy;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask tidy";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["tidy"] => match tidy::run() {
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
        },
        _ => {
            eprintln!("{USAGE}");
            ExitCode::FAILURE
        }
    }
}
