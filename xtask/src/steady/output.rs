//! What `cargo test` prints, as far as it says which tests failed.

/// Reads the output line by line.
#[derive(Default)]
pub struct Reader {
    /// The test binary that runs, as cargo names it.
    binary: String,
    /// Whether the lines are those of the list after `failures:`.
    is_in_list: bool,
    /// Tests of the list so far: there are two lists, and the first has their output.
    list: Vec<String>,
    /// Tests that have run for a minute and were not heard of since.
    slow: Vec<String>,
    failed: Vec<String>,
}

impl Reader {
    /// Reads the next line.
    pub fn read(&mut self, line: &str) {
        let trimmed = line.trim_start();
        if let Some(binary) = binary(trimmed) {
            self.binary = binary;
            self.slow.clear();
        } else if line == "failures:" {
            self.is_in_list = true;
            self.list.clear();
        } else if line.starts_with("test result: ") {
            let failed = self.list.drain(..).map(|test| named(&self.binary, &test));
            self.failed.extend(failed);
            self.is_in_list = false;
        } else if let Some(test) = slow(line) {
            self.slow.push(test.to_owned());
        } else if let Some(test) = ended(line) {
            self.slow.retain(|slow| slow != test);
        } else if trimmed.starts_with("process didn't exit successfully") {
            // One whose tests failed has been read already.
            let is_known = self
                .failed
                .iter()
                .any(|failed| failed.starts_with(&self.binary));
            if !is_known || line.contains("(signal:") {
                self.failed.push(named(&self.binary, "the whole binary"));
            }
        } else if self.is_in_list {
            match line.strip_prefix("    ") {
                Some(test) if !test.starts_with(' ') => self.list.push(test.to_owned()),
                _ if line.is_empty() => {}
                // The output of a failed test.
                _ => self.list.clear(),
            }
        }
    }

    /// The tests that failed.
    pub fn failed(&self) -> &[String] {
        &self.failed
    }

    /// The tests that seem to hang, if the run is stopped now.
    pub fn hanging(&self) -> Vec<String> {
        let slow = self.slow.iter();
        slow.map(|test| named(&self.binary, &format!("{test} (does not end)")))
            .collect()
    }
}

fn named(binary: &str, test: &str) -> String {
    format!("{binary}: {test}")
}

/// `Running unittests src/lib.rs (target/release/deps/mayfly_exec-0f..)`, `Doc-tests mayfly_exec`.
fn binary(line: &str) -> Option<String> {
    if let Some(crate_name) = line.strip_prefix("Doc-tests ") {
        return Some(format!("doc-tests of {crate_name}"));
    }
    let running = line.strip_prefix("Running ")?;
    let (source, path) = running.split_once(" (")?;
    let file = path.trim_end_matches(')').rsplit('/').next()?;
    let (name, _hash) = file.rsplit_once('-')?;
    Some(format!(
        "{name} ({})",
        source.trim_start_matches("unittests ")
    ))
}

/// `test a::b has been running for over 60 seconds`.
fn slow(line: &str) -> Option<&str> {
    let test = line.strip_prefix("test ")?;
    let (test, _) = test.split_once(" has been running for over ")?;
    Some(test)
}

/// `test a::b ... ok`.
fn ended(line: &str) -> Option<&str> {
    let test = line.strip_prefix("test ")?;
    let (test, _) = test.split_once(" ... ")?;
    Some(test)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Reader {
        let mut reader = Reader::default();
        text.lines().for_each(|line| reader.read(line));
        reader
    }

    const FAILED: &str = "
     Running it/main.rs (target/release/deps/it-00ff)

running 3 tests
test a::one ... ok
test a::two ... FAILED
test b::three ... FAILED

failures:

---- a::two stdout ----
thread 'a::two' panicked at it/a.rs:3:4:
    an indented line of its own
failures:
    not a test
error: something

---- b::three stdout ----
no

failures:
    a::two
    b::three

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s

error: test failed, to rerun pass `-p mayfly-tests --test it`
     Running unittests src/lib.rs (target/release/deps/mayfly_exec-01)

running 1 test
test c::four ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s
";

    #[test]
    fn failed_tests_are_named_with_their_binary() {
        let reader = read(FAILED);
        let it = "it (it/main.rs)";
        assert_eq!(
            reader.failed(),
            [format!("{it}: a::two"), format!("{it}: b::three")]
        );
        assert!(reader.hanging().is_empty());
    }

    #[test]
    fn a_binary_that_dies_is_named() {
        let reader = read(
            "     Running tests/miri.rs (target/release/deps/miri-00ff)\n\
             test x ... error: test failed, to rerun pass `-p mayfly-space --test miri`\n\n\
             Caused by:\n  process didn't exit successfully: `/miri-00ff` (signal: 6, SIGABRT)",
        );
        assert_eq!(reader.failed(), ["miri (tests/miri.rs): the whole binary"]);
    }

    #[test]
    fn tests_that_do_not_end_are_named() {
        let reader = read(
            "     Running it/main.rs (target/release/deps/it-00ff)\n\
             test x has been running for over 60 seconds\n\
             test y has been running for over 60 seconds\n\
             test x ... ok",
        );
        assert_eq!(reader.hanging(), ["it (it/main.rs): y (does not end)"]);
        let reader = read("   Doc-tests mayfly_exec\ntest z has been running for over 60 seconds");
        assert_eq!(
            reader.hanging(),
            ["doc-tests of mayfly_exec: z (does not end)"]
        );
    }
}
