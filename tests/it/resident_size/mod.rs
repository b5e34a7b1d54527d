//! The resident size of the program, as the kernel sees it: no statement takes more than the budget
//! and what the program itself needs.
//!
//! One process for each budget runs all statements one after the other; between two of them the
//! kernel's peak is set back to what the process holds now. Each statement must give the same rows
//! at every budget.
//!
//! **Owns**: the lists of statements that do not keep to that yet. One that does fails the suite
//! until it is taken off its list.

mod data;
mod statements;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, PipeReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin};

use crate::process::{MIB, SLACK, mayfly};

/// The budgets, in MiB.
const BUDGETS: [u64; 3] = [16, 64, 256];
const OUT_OF_SORT_MEMORY: &str = "ERROR 1038 ";
/// Code and constants that `SLACK` has room for. The kernel maps more of them where a build is not
/// optimised, and as many as it likes of those that lie in its cache: what is more does not count.
const CODE: u64 = 48 * MIB;
/// What a process writes to `clear_refs` of another to set its peak back.
const RESET_PEAK: &str = "5";

/// The program, which reads statements from a pipe.
struct Program {
    process: Child,
    input: ChildStdin,
    output: BufReader<PipeReader>,
    statements: u64,
}

/// What a statement did.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answer {
    /// The first line of an error.
    error: Option<String>,
    rows: u64,
    /// A sum over the lines, which come in any order.
    sum: u64,
}

impl Program {
    fn start(memory: u64, temp: &Path) -> Program {
        let (reader, writer) = std::io::pipe().unwrap();
        let mut command = mayfly(&format!("{memory}M"));
        // Errors go where the rows go, so that they stay in order.
        command.args(["--force", "--skip-column-names", "--format", "tsv"]);
        command.arg("--temp-dir").arg(temp);
        command.stdin(std::process::Stdio::piped());
        command.stdout(writer.try_clone().unwrap()).stderr(writer);
        let mut process = command.spawn().unwrap();
        Program {
            input: process.stdin.take().unwrap(),
            output: BufReader::new(reader),
            process,
            statements: 0,
        }
    }

    fn run(&mut self, sql: &str) -> Answer {
        self.statements += 1;
        let end = format!("end of statement {}", self.statements);
        write!(self.input, "{sql};\nSELECT '{end}';\n").unwrap();
        self.input.flush().unwrap();
        let mut answer = Answer {
            error: None,
            rows: 0,
            sum: 0,
        };
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = self.output.read_until(b'\n', &mut line).unwrap();
            assert!(read > 0, "the program ended at: {sql}");
            let text = line.trim_ascii_end();
            if text == end.as_bytes() {
                return answer;
            }
            if text.starts_with(b"ERROR ") {
                answer.error = Some(String::from_utf8_lossy(text).into_owned());
            } else {
                let mut hasher = DefaultHasher::new();
                text.hash(&mut hasher);
                answer.rows += 1;
                answer.sum = answer.sum.wrapping_add(hasher.finish());
            }
        }
    }

    fn status(&self, name: &str) -> u64 {
        let path = format!("/proc/{}/status", self.process.id());
        let text = std::fs::read_to_string(path).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|rest| rest.trim_end_matches("kB").trim().parse::<u64>().ok());
        kib.unwrap_or_else(|| panic!("{name} in {text}")) << 10
    }

    /// The most that was resident since the last call.
    fn take_peak(&self) -> u64 {
        let peak = self.status("VmHWM:");
        let path = format!("/proc/{}/clear_refs", self.process.id());
        std::fs::write(path, RESET_PEAK).unwrap();
        peak
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What is wrong with how a statement went at a budget with its limit.
fn complaints(
    name: &str,
    (memory, limit): (u64, u64),
    answer: &Answer,
    peak: u64,
) -> Option<String> {
    let is_it = |listed: &(&str, u64)| listed.0 == name && listed.1 == memory;
    let may_fail = statements::OUT_OF_MEMORY.iter().any(is_it);
    match &answer.error {
        Some(error) if may_fail && error.starts_with(OUT_OF_SORT_MEMORY) => {}
        Some(error) => return Some(error.clone()),
        None if may_fail => return Some("has room: take it off OUT_OF_MEMORY".to_owned()),
        None => {}
    }
    let mut excesses = statements::EXCESSES.iter();
    let excess = excesses.find(|(listed, at, ..)| *listed == name && *at == memory);
    let allowed = limit + excess.map_or(0, |(_, _, mib, _)| mib * MIB);
    if peak > allowed {
        return Some(format!("more than {} MiB", allowed / MIB));
    }
    excess
        .filter(|_| peak <= limit)
        .map(|_| "keeps to the budget: take it off EXCESSES".to_owned())
}

/// Runs all statements at a budget; tells how they went, and what is wrong.
fn run_all(memory: u64, files: &Path, answers: &mut HashMap<&str, Answer>) -> (String, String) {
    let temp = tempfile::tempdir().unwrap();
    let mut program = Program::start(memory, temp.path());
    let (mut report, mut wrong) = (String::new(), String::new());
    let is_largest = BUDGETS.iter().all(|budget| *budget <= memory);
    let large = statements::LARGE.iter().filter(|_| is_largest);
    let answer = program.run("SET cte_max_recursion_depth = 1000000");
    assert_eq!(answer.error, None);
    for (name, sql) in statements::STATEMENTS.iter().chain(large) {
        let sql = sql.replace("{dir}", &files.display().to_string());
        let sql = sql.replace("{memory}", &memory.to_string());
        program.take_peak();
        let code_before = program.status("RssFile:");
        let answer = program.run(&sql);
        let peak = program.take_peak();
        let code = program
            .status("RssFile:")
            .max(code_before)
            .saturating_sub(CODE);
        let _ = writeln!(report, "{memory:4} MiB: {:4} MiB: {name}", peak / MIB);
        let limit = memory * MIB + SLACK + code;
        if let Some(complaint) = complaints(name, (memory, limit), &answer, peak) {
            let _ = writeln!(
                wrong,
                "{memory} MiB: {name}: {complaint} ({} MiB)",
                peak / MIB
            );
        }
        if answer.error.is_none() {
            let known = answers.entry(name).or_insert_with(|| answer.clone());
            if *known != answer {
                let _ = writeln!(wrong, "{memory} MiB: {name}: {known:?}, now {answer:?}");
            }
        }
    }
    (report, wrong)
}

#[test]
fn no_statement_exceeds_the_budget_and_the_program() {
    let files = tempfile::tempdir().unwrap();
    data::write(files.path());
    let mut answers = HashMap::new();
    let mut wrongs = String::new();
    for memory in BUDGETS {
        let (report, wrong) = run_all(memory, files.path(), &mut answers);
        print!("{report}");
        wrongs += &wrong;
    }
    assert!(wrongs.is_empty(), "\n{wrongs}");
}
