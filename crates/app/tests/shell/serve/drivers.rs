//! Drivers of other languages against the server.

use std::path::Path;
use std::process::Command;

/// `tests/clients/run install` brings them; those that are not there are left out, with the reason.
#[test]
fn drivers_find_what_they_know_from_mysql() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients/run");
    let mut command = Command::new("bash");
    command
        .arg(script)
        .env("MAYFLY", env!("CARGO_BIN_EXE_mayfly"));
    // Its table goes past what the harness hides of tests that pass.
    let status = command.status().expect("bash is everywhere");
    assert!(status.success(), "{status}");
}
