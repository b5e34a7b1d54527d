//! Runs a fuzz target in the ordinary tests, on the stable toolchain.
//!
//! A target is a function over bytes that panics on a finding. It lives in the tests of the crate
//! that it fuzzes; `fuzz/fuzz_targets/` hands the same function to libFuzzer. Here it runs over its
//! seed corpus (`fuzz/seeds/<name>/`), over inputs that it generates, and over mutations of both.
//!
//! By default the number of inputs is fixed and the seed too, so that two runs do the same.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `MAYFLY_RANDOM_SECONDS` | run for so long, whatever the number of inputs |
//! | `MAYFLY_RANDOM_SEED` | begin with another seed |
//! | `MAYFLY_RANDOM_INPUT` | run this file only, such as an artifact of libFuzzer |
//!
//! A panicking input is shrunk and printed as a byte string. An input that does not come back is
//! printed before the process is aborted.
//!
//! **Never** measures coverage: libFuzzer may reach what its generator and its corpus do not.

mod mutate;
mod shrink;
mod watchdog;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::{Random, repository};
use mutate::Mutator;
use watchdog::Watchdog;

/// Inputs of a target that does not say how many.
const INPUTS: u64 = 2000;
/// Longest input that mutations make; what is in the corpus may be longer.
const INPUT_BYTES_MAX: usize = 8 << 10;
/// The usual run ends here on a machine that is much too busy, with fewer inputs than it should.
const USUAL_RUN_MAX: Duration = Duration::from_secs(60);
/// Seed of the usual run.
const SEED: u64 = 20_240_229;

/// Makes an input that means something to the target.
type Generate<'a> = dyn Fn(&mut Random) -> Vec<u8> + 'a;

/// A fuzz target, as the tests of its crate run it.
///
/// ```no_run
/// use mayfly_testkit::FuzzTarget;
///
/// fn parse(input: &[u8]) {
///     let text = String::from_utf8_lossy(input);
///     assert!(text.len() <= 3 * input.len());
/// }
///
/// FuzzTarget::new("parse", &parse).tokens(&[b"SELECT", b"FROM"]).check();
/// ```
pub struct FuzzTarget<'a> {
    name: &'a str,
    run: &'a dyn Fn(&[u8]),
    generate: Option<&'a Generate<'a>>,
    tokens: &'a [&'a [u8]],
    inputs: u64,
}

/// What a run of a target did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FuzzRun {
    /// Inputs of the corpus.
    pub corpus: u64,
    /// All inputs, those of the corpus included.
    pub inputs: u64,
}

impl<'a> FuzzTarget<'a> {
    /// A target with the name of its corpus. `run` panics on a finding and nothing else.
    pub fn new(name: &'a str, run: &'a dyn Fn(&[u8])) -> FuzzTarget<'a> {
        FuzzTarget {
            name,
            run,
            generate: None,
            tokens: &[],
            inputs: INPUTS,
        }
    }

    /// Makes new inputs that mean something to the target.
    pub fn generate(self, generate: &'a Generate<'a>) -> FuzzTarget<'a> {
        FuzzTarget {
            generate: Some(generate),
            ..self
        }
    }

    /// Words that mutations insert: a dictionary.
    pub fn tokens(self, tokens: &'a [&'a [u8]]) -> FuzzTarget<'a> {
        FuzzTarget { tokens, ..self }
    }

    /// How many inputs a usual run has, beside the corpus.
    pub fn inputs(self, inputs: u64) -> FuzzTarget<'a> {
        FuzzTarget { inputs, ..self }
    }

    /// Runs the target.
    ///
    /// # Panics
    /// On a finding, with the shrunk input; and where there is no corpus.
    pub fn check(&self) -> FuzzRun {
        if let Some(path) = std::env::var_os("MAYFLY_RANDOM_INPUT") {
            let input = std::fs::read(&path).expect("MAYFLY_RANDOM_INPUT names a file");
            self.check_input(&input, &Watchdog::start(self.name));
            return FuzzRun {
                corpus: 0,
                inputs: 1,
            };
        }
        let seed = number("MAYFLY_RANDOM_SEED").unwrap_or(SEED);
        println!("{}: MAYFLY_RANDOM_SEED={seed}", self.name);
        let seconds = number("MAYFLY_RANDOM_SECONDS").map(Duration::from_secs);
        self.check_from(&corpus_dir(self.name), seed, seconds)
    }

    fn check_from(&self, corpus_dir: &Path, seed: u64, limit: Option<Duration>) -> FuzzRun {
        let started = Instant::now();
        let watchdog = Watchdog::start(self.name);
        let mut corpus = read_corpus(corpus_dir);
        for input in &corpus {
            self.check_input(input, &watchdog);
        }
        let mut run = FuzzRun {
            corpus: corpus.len() as u64,
            inputs: corpus.len() as u64,
        };
        let mut random = Random::new(seed);
        let mutator = Mutator::new(self.tokens, INPUT_BYTES_MAX);
        let usual_end = run.inputs + self.inputs;
        while match limit {
            Some(limit) => started.elapsed() < limit,
            None => run.inputs < usual_end && started.elapsed() < USUAL_RUN_MAX,
        } {
            let input = match self.generate {
                // Half of what is generated is run as it is.
                Some(generate) if random.chance(0.5) => {
                    let mut input = generate(&mut random);
                    if random.chance(0.5) {
                        mutator.mutate(&mut input, &corpus, &mut random);
                    }
                    input
                }
                _ => {
                    let at = random.below(corpus.len() as u64) as usize;
                    let mut input = corpus[at].clone();
                    mutator.mutate(&mut input, &corpus, &mut random);
                    input
                }
            };
            self.check_input(&input, &watchdog);
            run.inputs += 1;
            // Mutations of mutations go further: some take the place of what was there.
            if random.chance(1.0 / 16.0) {
                match corpus.len() < 4 * run.corpus as usize {
                    true => corpus.push(input),
                    false => {
                        let at = random.below(corpus.len() as u64) as usize;
                        corpus[at] = input;
                    }
                }
            }
        }
        println!("{}: {} inputs", self.name, run.inputs);
        run
    }

    fn check_input(&self, input: &[u8], watchdog: &Watchdog) {
        watchdog.begin(input);
        let ended = catch_unwind(AssertUnwindSafe(|| (self.run)(input)));
        watchdog.end();
        if let Err(panic) = ended {
            let smallest = shrink::shrink(input, self.run);
            println!(
                "{}: an input of {} bytes panics: b\"{}\"\nshrunk to {} bytes: b\"{}\"",
                self.name,
                input.len(),
                input.escape_ascii(),
                smallest.len(),
                smallest.escape_ascii()
            );
            resume_unwind(panic);
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().expect(variable))
}

/// The seed corpus of a target.
fn corpus_dir(name: &str) -> PathBuf {
    repository().join("fuzz/seeds").join(name)
}

/// All files of a corpus in the order of their names, so that each machine mutates the same.
fn read_corpus(dir: &Path) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(dir);
    let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry of the corpus").path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{}: an empty corpus", dir.display());
    let read = |path: &PathBuf| std::fs::read(path).expect("a file of the corpus");
    paths.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// A directory that goes with the test.
    struct Corpus(PathBuf);

    impl Corpus {
        fn new(name: &str, inputs: &[&[u8]]) -> Corpus {
            let id = std::process::id();
            let dir = std::env::temp_dir().join(format!("mayfly-fuzz-{name}-{id}"));
            std::fs::create_dir_all(&dir).expect("a directory");
            for (number, input) in inputs.iter().enumerate() {
                std::fs::write(dir.join(number.to_string()), input).expect("a file");
            }
            Corpus(dir)
        }
    }

    impl Drop for Corpus {
        fn drop(&mut self) {
            let _gone = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn equal_seeds_run_equal_inputs() {
        let corpus = Corpus::new("equal", &[b"one", b"two"]);
        let inputs_of = |seed| {
            let seen = RefCell::new(Vec::new());
            let run = |input: &[u8]| seen.borrow_mut().push(input.to_vec());
            let target = FuzzTarget::new("equal", &run)
                .inputs(300)
                .tokens(&[b"word"]);
            let ran = target.check_from(&corpus.0, seed, None);
            assert_eq!((ran.corpus, ran.inputs), (2, 302));
            seen.into_inner()
        };
        let first = inputs_of(1);
        assert_eq!(first[..2], [b"one".to_vec(), b"two".to_vec()]);
        assert!(
            first
                .iter()
                .any(|input| input.windows(4).any(|at| at == b"word"))
        );
        assert_eq!(first, inputs_of(1));
        assert_ne!(first, inputs_of(2));
    }

    #[test]
    fn a_finding_is_reached_and_reported() {
        let corpus = Corpus::new("finding", &[b"a corpus of letters"]);
        let run = |input: &[u8]| assert!(!input.contains(&b'!'), "found");
        let target = FuzzTarget::new("finding", &run).tokens(&[b"!"]);
        let ended = catch_unwind(AssertUnwindSafe(|| target.check_from(&corpus.0, 7, None)));
        let panic = ended.expect_err("the mark is inserted");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"found"));
    }

    #[test]
    #[should_panic(expected = "an empty corpus")]
    fn a_target_needs_a_corpus() {
        let corpus = Corpus::new("empty", &[]);
        FuzzTarget::new("empty", &|_| {}).check_from(&corpus.0, 1, None);
    }
}
