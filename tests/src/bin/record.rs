//! Records the expected answers of the SQL logic tests from a private MariaDB.
//!
//! `cargo run --release --bin record` writes the answers into the files, `-- --check` only
//! compares; further arguments pick files by a part of their name. Records under `skipif mariadb`
//! are left as they are: a comment `# differs:` above them says why MySQL and MariaDB answer
//! differently, or what MariaDB does not have.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use mayfly_tests::mariadb::Server;
use mayfly_tests::scripts;
use sqllogictest::{Runner, default_column_validator, default_normalizer, default_validator};

fn main() -> ExitCode {
    let (options, wanted): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|argument| argument.starts_with("--"));
    let check = match options.as_slice() {
        [] => false,
        [option] if option == "--check" => true,
        _ => {
            eprintln!("usage: record [--check] [PART OF A FILE NAME]...");
            return ExitCode::from(2);
        }
    };
    if !Server::is_installed() {
        eprintln!("mariadbd is not installed");
        return ExitCode::FAILURE;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime without threads can be built");
    let server = &Server::start();
    let mut failed = 0;
    for path in scripts::all() {
        let name = path.display().to_string();
        if !wanted.is_empty() && !wanted.iter().any(|part| name.contains(part.as_str())) {
            continue;
        }
        server.clear();
        let mut runner = Runner::new(|| async { Ok(server.connect()) });
        runner.set_var("__REPOSITORY__".to_owned(), scripts::repository());
        let outcome = if check {
            runtime
                .block_on(runner.run_file_async(&path))
                .map_err(|error| error.to_string())
        } else {
            runtime
                .block_on(runner.update_test_file(
                    &path,
                    " ",
                    default_validator,
                    default_normalizer,
                    default_column_validator,
                ))
                .map_err(|error| error.to_string())
        };
        match outcome {
            Ok(()) => println!("{name}: {}", if check { "as recorded" } else { "recorded" }),
            Err(error) => {
                failed += 1;
                println!("{name}: {error}");
            }
        }
    }
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
