//! The account of every row: which contents the answers of a connection allow.
//!
//! A connection's own statements come one after the other. Those that empty a table for everybody
//! overlap with them, and took effect at some moment between their beginning and their end. So
//! there is a set of possible states; each answer adds the orders that it allows and takes away
//! the states that it contradicts. No state left is an error: a row was lost, came back, or was
//! never anybody's. (Wing and Gong's check of linearizability, made small by giving each
//! connection ids of its own.)

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use super::statement::{Model, Statement};
use super::tables::{DUPLICATE, OUT_OF_RANGE, Rows, TABLES};

/// The moment after everything.
pub const END: u64 = u64::MAX;
/// States that one connection may be in; more are a schedule that asks for too much.
const STATES_MAX: usize = 2_000;
/// Events that are shown before the one that contradicts.
const SHOWN_EVENTS: usize = 40;

/// What came back.
#[derive(Clone, Debug)]
pub enum Answer {
    Done {
        affected: u64,
    },
    Rows(Rows),
    Failed {
        code: u16,
        text: String,
    },
    /// The client went away before.
    Nothing,
}

/// A statement with its answer, and the moments between which it took effect, if it did.
#[derive(Clone, Debug)]
pub struct Event {
    pub statement: Statement,
    pub sql: String,
    pub origin: u64,
    pub begin: u64,
    pub end: u64,
    pub answer: Answer,
}

/// All that a connection did.
#[derive(Clone, Debug)]
pub struct ConnectionLog {
    pub session: usize,
    pub block: u64,
    pub events: Vec<Event>,
}

/// A statement that emptied a table.
#[derive(Clone, Debug)]
pub struct Emptied {
    table: usize,
    begin: u64,
    end: u64,
    /// Whether it has; without an answer it may have.
    is_sure: bool,
}

/// What emptied tables, of all connections.
pub fn emptied(logs: &[ConnectionLog]) -> Vec<Emptied> {
    let mut all = Vec::new();
    for event in logs.iter().flat_map(|log| &log.events) {
        let Statement::Empty { table, .. } = event.statement else {
            continue;
        };
        let is_sure = match event.answer {
            Answer::Failed { .. } => continue,
            Answer::Nothing => false,
            Answer::Done { .. } | Answer::Rows(_) => true,
        };
        all.push(Emptied {
            table,
            begin: event.begin,
            end: if is_sure { event.end } else { END },
            is_sure,
        });
    }
    all
}

/// What a connection's rows may be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    rows: Model,
    /// Which emptied which of the tables have taken effect.
    emptied: BTreeSet<usize>,
}

impl State {
    fn empty(&self, number: usize, emptied: &Emptied) -> State {
        let mut state = self.clone();
        state.rows[emptied.table] = Arc::default();
        state.emptied.insert(number);
        state
    }
}

/// Follows a connection from answer to answer, and compares with its rows at the end.
///
/// # Errors
/// The answer that no order of the statements explains, with what was before it.
pub fn check(log: &ConnectionLog, emptied: &[Emptied], found: &Model) -> Result<(), String> {
    let first = log.events.first().map_or(END, |event| event.begin);
    // What ended before the connection began has not met its rows.
    let emptied: Vec<_> = emptied.iter().filter(|one| one.end > first).collect();
    let mut states = vec![State::default()];
    for (number, event) in log.events.iter().enumerate() {
        let tables = event.statement.tables();
        let before = in_order(states, &emptied, event.begin, event.end, &tables);
        states = without_repeats(before.iter().flat_map(|state| answered(state, event)));
        if states.is_empty() {
            return Err(contradiction(log, number, &emptied, &before));
        }
        assert!(states.len() <= STATES_MAX, "too many states to tell apart");
    }
    let all: Vec<_> = (0..TABLES.len()).collect();
    let states = in_order(states, &emptied, END, END, &all);
    match states.iter().any(|state| state.rows == *found) {
        true => Ok(()),
        false => {
            let mut text = contradiction(log, log.events.len(), &emptied, &states);
            text.push_str("at the end:\n");
            let state = states.first().expect("there is always one");
            describe_differences(&mut text, log.block, &state.rows, found);
            Err(text)
        }
    }
}

/// The states at some moment between `begin` and `end`, as far as the named tables go: what ended
/// before has happened, what overlaps may have.
fn in_order(
    states: Vec<State>,
    emptied: &[&Emptied],
    begin: u64,
    end: u64,
    tables: &[usize],
) -> Vec<State> {
    let mut states = without_repeats({ states.into_iter() }.map(|mut state| {
        for (number, one) in emptied.iter().enumerate() {
            if one.is_sure && one.end < begin && !state.emptied.contains(&number) {
                state = state.empty(number, one);
            }
        }
        state
    }));
    for table in tables {
        let mut open: Vec<_> = { emptied.iter().enumerate() }
            .filter(|(_, one)| one.table == *table && one.begin < end)
            .collect();
        open.sort_by_key(|(_, one)| one.end);
        let chosen = states
            .iter()
            .flat_map(|state| choices(state, &open, end == END));
        states = without_repeats(chosen);
    }
    states
}

/// The states after some of what may have emptied a table. It does not matter how many did, but
/// which still may: the longer they take the more is possible, so those come first that end first.
fn choices(state: &State, open: &[(usize, &&Emptied)], is_end: bool) -> Vec<State> {
    let open = open
        .iter()
        .filter(|(number, _)| !state.emptied.contains(number));
    let mut choices = vec![state.clone()];
    let mut last = state.clone();
    for (number, one) in open {
        if one.is_sure || last.emptied == state.emptied {
            last = last.empty(*number, one);
            choices.push(last.clone());
        }
    }
    // At the end what was only begun is done as well: it is all or none of them.
    if is_end && choices.len() > 2 {
        choices.drain(1..choices.len() - 1);
    }
    choices
}

/// States, each of them once: there are few at a time.
fn without_repeats(states: impl Iterator<Item = State>) -> Vec<State> {
    let mut different: Vec<State> = Vec::new();
    for state in states {
        if !different.contains(&state) {
            different.push(state);
        }
    }
    different
}

/// The states after an answer.
fn answered(state: &State, event: &Event) -> Vec<State> {
    let mut after = state.clone();
    let must = event.statement.apply(&mut after.rows, event.origin);
    match &event.answer {
        Answer::Done { affected } => {
            let counts = event.statement.counts_rows();
            let is_so = must.is_ok_and(|must| !counts || must == *affected);
            is_so.then_some(after).into_iter().collect()
        }
        Answer::Rows(rows) => {
            let Statement::Read { table, .. } = event.statement else {
                return vec![after];
            };
            let is_so = *state.rows[table] == *rows;
            is_so.then_some(after).into_iter().collect()
        }
        Answer::Failed { code, .. } => {
            // Any other error may come at any time, and leaves nothing.
            let is_so = !matches!(*code, DUPLICATE | OUT_OF_RANGE) || must == Err(*code);
            is_so.then(|| state.clone()).into_iter().collect()
        }
        Answer::Nothing => {
            let has = must.is_ok().then_some(after);
            [Some(state.clone()), has].into_iter().flatten().collect()
        }
    }
}

/// Shows how a connection came to an answer that cannot be.
fn contradiction(
    log: &ConnectionLog,
    number: usize,
    emptied: &[&Emptied],
    states: &[State],
) -> String {
    let mut text = format!("session {}, block {}:\n", log.session, log.block);
    let last = log.events.len().min(number + 1);
    for event in &log.events[last.saturating_sub(SHOWN_EVENTS)..last] {
        let sql: String = event.sql.chars().take(260).collect();
        let answer = match &event.answer {
            Answer::Done { affected } => format!("{affected} rows affected"),
            Answer::Rows(rows) => format!("{} rows", rows.len()),
            Answer::Failed { code, text } => format!("error {code}: {text}"),
            Answer::Nothing => "no answer".to_owned(),
        };
        writeln!(text, "  {}..{} {sql}\n    {answer}", event.begin, event.end)
            .expect("a text takes everything");
    }
    for one in emptied {
        let name = TABLES[one.table].name;
        let sure = if one.is_sure { "" } else { ", perhaps" };
        writeln!(
            text,
            "  {name} was emptied at {}..{}{sure}",
            one.begin, one.end
        )
        .expect("a text takes everything");
    }
    let Some(event) = log.events.get(number) else {
        return text;
    };
    writeln!(
        text,
        "the last answer cannot be, in none of {} states",
        states.len()
    )
    .expect("a text takes everything");
    let state = states.first().expect("there is always one");
    match &event.answer {
        Answer::Rows(rows) => {
            let Statement::Read { table, .. } = event.statement else {
                return text;
            };
            let mut found = state.rows.clone();
            found[table] = Arc::new(rows.clone());
            describe_differences(&mut text, log.block, &state.rows, &found);
        }
        _ => {
            let must = event.statement.apply(&mut state.rows.clone(), event.origin);
            writeln!(text, "it must be {must:?}").expect("a text takes everything");
        }
    }
    text
}

fn describe_differences(text: &mut String, block: u64, expected: &Model, found: &Model) {
    for (table, (expected, found)) in TABLES.iter().zip(expected.iter().zip(found)) {
        let name = table.name;
        let mut counts: BTreeMap<_, i64> = BTreeMap::new();
        for row in expected.iter() {
            *counts.entry(row).or_default() -= 1;
        }
        for row in found.iter() {
            *counts.entry(row).or_default() += 1;
        }
        let differing = counts.iter().filter(|(_, count)| **count != 0);
        for (row, count) in differing.take(20) {
            let what = if *count < 0 {
                "lost"
            } else {
                "should not be there"
            };
            writeln!(text, "  {name}, block {block}: {what}: {row:?}")
                .expect("a text takes everything");
        }
        if expected != found {
            let (expected, found) = (expected.len(), found.len());
            writeln!(text, "  {name}: {found} rows instead of {expected}")
                .expect("a text takes everything");
        }
    }
}
