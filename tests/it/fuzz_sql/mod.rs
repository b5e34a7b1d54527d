//! The fuzz target for SQL text: statements are parsed, planned and run over tiny tables.
//!
//! An input is text; a `;` at the end of a line ends a statement. Each input has a session of its
//! own with the same three temporary tables. Whatever the text is, it ends with rows or with an
//! error of MySQL: never with a panic, with error 1105, or with words of the libraries below.
//!
//! What it never runs: files are not written, and nothing waits.

mod scraps;
mod statements;
mod vocabulary;

use std::cell::{Cell, RefCell};

use mayfly_session::{Engine, Session};
use mayfly_testkit::{FuzzTarget, Random};
use mayfly_types::{ErrorCode, MySqlError};
use tokio::runtime::Runtime;

use crate::engine::{open, run};
use crate::queries::Queries;
use scraps::Scraps;
use statements::Statements;

/// Inputs of a usual run, beside the corpus: some seconds.
const INPUTS: u64 = 600;
/// Memory of an engine.
const MEMORY_BYTES: u64 = 32 << 20;
/// Inputs before an engine makes room for a new one, with what they left in it.
const INPUTS_OF_AN_ENGINE: u64 = 200;
/// Statements of an input that are run.
const STATEMENTS_MAX: usize = 24;
/// The seed of the rows.
const TABLES_SEED: u64 = 3;

/// Words of statements that write files or wait, and so are left out.
const LEFT_OUT: [&str; 8] = [
    "outfile",
    "dumpfile",
    "infile",
    "sleep",
    "get_lock",
    "benchmark",
    "shutdown",
    "kill",
];

/// Parts of texts that no user should read: those of the libraries, and of their structures.
const FOREIGN: [&str; 27] = [
    "datafusion",
    "arrow",
    "parquet error",
    "not implemented",
    "error during planning",
    "schema error",
    "internal error",
    "type coercion",
    "optimizer",
    "logical plan",
    "physical plan",
    "logicalplan",
    "projections require",
    "unsupported ast",
    "unsupported sql",
    "sql parser",
    "sqlparser",
    "ident {",
    "span {",
    "some(",
    "ok(",
    "box(",
    " { ",
    "null }",
    "__",
    "utf8view",
    "int64",
];

/// What is kept between inputs.
struct Target {
    runtime: Runtime,
    directory: tempfile::TempDir,
    engine: RefCell<Option<Engine>>,
    inputs: Cell<u64>,
    statements: Cell<u64>,
    answered: Cell<u64>,
    refused: Cell<u64>,
}

impl Target {
    fn new() -> Target {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build();
        Target {
            runtime: runtime.expect("threads can be made"),
            directory: tempfile::tempdir().expect("a temporary directory can be made"),
            engine: RefCell::new(None),
            inputs: Cell::new(0),
            statements: Cell::new(0),
            answered: Cell::new(0),
            refused: Cell::new(0),
        }
    }

    /// Runs one input.
    ///
    /// # Panics
    /// On a finding.
    fn check(&self, input: &[u8]) {
        let text = String::from_utf8_lossy(input);
        let mut engine = self.engine.borrow_mut();
        if self.inputs.get().is_multiple_of(INPUTS_OF_AN_ENGINE) {
            *engine = None;
        }
        self.inputs.set(self.inputs.get() + 1);
        let engine = engine.get_or_insert_with(|| open(MEMORY_BYTES, self.directory.path()));
        self.runtime.block_on(self.converse(engine, &text));
    }

    async fn converse(&self, engine: &Engine, text: &str) {
        let mut session = prepared(engine).await;
        for statement in text.split(";\n").take(STATEMENTS_MAX) {
            let lower = statement.to_lowercase();
            if LEFT_OUT.iter().any(|word| lower.contains(word)) {
                continue;
            }
            self.statements.set(self.statements.get() + 1);
            match run(&mut session, statement).await {
                Ok(_) => self.answered.set(self.answered.get() + 1),
                Err(error) => {
                    self.refused.set(self.refused.get() + 1);
                    check_error(statement, &lower, &error);
                }
            }
        }
    }
}

/// A session with the tables.
async fn prepared(engine: &Engine) -> Session {
    let mut session = engine.connect();
    let mut script = vec![
        "CREATE DATABASE IF NOT EXISTS test".to_owned(),
        "USE test".to_owned(),
    ];
    script.extend(Queries::new(TABLES_SEED).tables());
    for statement in script {
        let done = run(&mut session, &statement).await;
        done.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    session
}

/// An error that MySQL has, in words that it could have.
fn check_error(statement: &str, lower: &str, error: &MySqlError) {
    assert!(!error.is(ErrorCode::Unknown), "{statement}\n{error}");
    // Names and values of the statement itself are repeated.
    let message = error.message.to_lowercase();
    let foreign = { FOREIGN.iter() }.find(|part| message.contains(*part) && !lower.contains(*part));
    assert!(
        foreign.is_none(),
        "{foreign:?} in the error\n{statement}\n{error}"
    );
}

#[test]
fn any_text_ends_with_rows_or_an_error_of_mysql() {
    let target = Target::new();
    let run = |input: &[u8]| target.check(input);
    let scraps = Scraps::of_scripts();
    let generate = |random: &mut Random| match random.below(3) {
        0 => Queries::new(random.next_u64()).query().into_bytes(),
        1 => scraps.some(random).into_bytes(),
        _ => Statements::new(random).script().into_bytes(),
    };
    let ran = FuzzTarget::new("sql", &run)
        .generate(&generate)
        .tokens(&vocabulary::WORDS)
        .inputs(INPUTS)
        .check();
    let (answered, refused) = (target.answered.get(), target.refused.get());
    println!(
        "{} statements: {answered} answered, {refused} refused",
        target.statements.get()
    );
    // A test of syntax errors alone would pass too; one input says nothing of that.
    let expected = ran.inputs / 4;
    assert!(answered >= expected, "{answered} in {} inputs", ran.inputs);
    assert!(
        ran.inputs == 1 || refused >= expected,
        "{refused} in {} inputs",
        ran.inputs
    );
}
