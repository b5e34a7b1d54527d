//! Schedules: what the sessions of a history run, from a seed, whatever comes back.

use mayfly_testkit::Random;

use super::statement::{Alteration, Choice, Emptying, Set, Statement, Verb, Way};
use super::sums::{ACCOUNTS, SUMS, SumStatement};
use super::tables::TABLES;

/// Slots that statements on few rows use: few, so that rows meet each other and joins find them.
const SLOTS: u64 = 32;
/// Slots from here on are filled by hundreds; below lie those that rows are shifted to.
const FILLED: u64 = 256;
/// Rows of the table `numbers`.
pub const NUMBERS: u64 = 800;
/// The tables that multi-table statements join, first and second.
const PAIRS: [[usize; 2]; 6] = [[0, 1], [1, 0], [0, 3], [3, 4], [2, 0], [0, 2]];

/// When a client goes away in the middle of a statement.
#[derive(Clone, Copy, Debug)]
pub enum Cut {
    /// When it has been waited for so often.
    Polls(u32),
    /// After so many milliseconds.
    Millis(u64),
}

/// A statement, and whether its client waits for the answer.
#[derive(Clone, Debug)]
pub struct Step {
    pub statement: Statement,
    pub cut: Option<Cut>,
}

/// What each session does.
pub struct Schedule {
    pub sessions: Vec<Vec<Step>>,
}

impl Schedule {
    /// A schedule of so many statements in all.
    pub fn new(seed: u64, steps: usize) -> Schedule {
        let mut random = Random::new(seed);
        let sessions = 2 + random.below(15) as usize;
        let draw = |session| {
            let mut random = Random::new(seed.wrapping_mul(1000) + session as u64);
            let steps = 0..steps / sessions;
            steps
                .map(|_| step(&mut random, session, sessions))
                .collect()
        };
        Schedule {
            sessions: (0..sessions).map(draw).collect(),
        }
    }
}

fn step(random: &mut Random, session: usize, sessions: usize) -> Step {
    let statement = statement(random, session, sessions);
    let cut = match random.below(60) {
        0 => Some(Cut::Polls(random.below(4) as u32)),
        1 => Some(Cut::Millis(random.below(8))),
        _ => None,
    };
    Step { statement, cut }
}

fn statement(random: &mut Random, session: usize, sessions: usize) -> Statement {
    let table = random.below(TABLES.len() as u64) as usize;
    match random.below(100) {
        0..18 => Statement::Insert {
            table,
            verb: verb(random),
            rows: rows(random),
            filler: random.below(40),
        },
        18..22 => Statement::Load {
            table,
            verb: [Verb::Insert, Verb::Ignore, Verb::Replace][random.below(3) as usize],
            rows: rows(random),
        },
        22..27 => {
            let rows = 1 + random.below(NUMBERS);
            Statement::Fill {
                table,
                verb: verb(random),
                first: FILLED + random.below(3) * 300,
                rows,
                filler: random.below(500),
            }
        }
        27..32 => copy(random),
        32..42 => Statement::Update {
            table,
            choice: choice(random),
            set: set(random),
        },
        // Those that are shifted already are met by others, but never on their way.
        42..44 => {
            let first = random.below(SLOTS);
            Statement::Update {
                table,
                choice: Choice::Slots(first, (first + random.below(20)).min(SLOTS - 1)),
                set: Set::Shift(SLOTS),
            }
        }
        44..49 => Statement::Delete {
            table,
            choice: choice(random),
        },
        49..57 => Statement::UpdateTwo {
            tables: PAIRS[random.below(PAIRS.len() as u64) as usize],
            choice: choice(random),
            set: set(random),
        },
        57..60 => Statement::DeleteTwo {
            tables: PAIRS[random.below(PAIRS.len() as u64) as usize],
            choice: choice(random),
        },
        60..73 => Statement::Read {
            table,
            way: [Way::Ids, Way::Block, Way::Scan][random.below(3) as usize],
        },
        73..75 => Statement::Touch {
            table,
            rest: (random.below(2) == 0).then(|| random.below(7)),
        },
        75..80 => everybodys(random, table),
        80..94 => Statement::Sum(sum(random)),
        94..97 => Statement::Kill {
            session: (session + 1 + random.below(sessions as u64 - 1) as usize) % sessions,
            only_query: random.below(3) > 0,
        },
        97..98 => Statement::Quota([0, 0, 64 << 10, 1 << 20][random.below(4) as usize]),
        _ => Statement::Fault(1 + random.below(30)),
    }
}

fn verb(random: &mut Random) -> Verb {
    [Verb::Insert, Verb::Ignore, Verb::Replace, Verb::OnDuplicate][random.below(4) as usize]
}

/// Slots and values; some rows come twice, which a key refuses.
fn rows(random: &mut Random) -> Vec<(u64, i64)> {
    let first = random.below(SLOTS);
    let rows = [1, 1, 3, 10, SLOTS][random.below(5) as usize];
    let stride = [1, 1, 3, 4][random.below(4) as usize];
    let slot = |row| (first + row * stride) % SLOTS;
    (0..rows)
        .map(|row| (slot(row), random.below(100).cast_signed()))
        .collect()
}

fn choice(random: &mut Random) -> Choice {
    let first = random.below(SLOTS);
    match random.below(8) {
        0..3 => Choice::Slot(first),
        3..6 => Choice::Slots(first, (first + random.below(20)).min(SLOTS - 1)),
        6 => Choice::Remainder(random.below(3).cast_signed()),
        _ => Choice::All,
    }
}

fn set(random: &mut Random) -> Set {
    match random.below(8) {
        0..4 => Set::Add(1 + random.below(5).cast_signed()),
        4 => Set::Add(i64::from(i32::MAX) - 10),
        5 => Set::Code(random.below(4)),
        _ => Set::Filler(random.below(60)),
    }
}

fn copy(random: &mut Random) -> Statement {
    let table = |random: &mut Random| random.below(TABLES.len() as u64) as usize;
    let (from, to) = (table(random), table(random));
    // Rows without a key may have the same id: which of them stays is not told.
    let verb = match TABLES[from].is_keyed {
        true => verb(random),
        false => Verb::Insert,
    };
    let first = random.below(SLOTS);
    Statement::Copy {
        from,
        to,
        verb,
        choice: Choice::Slots(first, first + random.below(SLOTS)),
        shift: [0, SLOTS][random.below(2) as usize],
    }
}

/// What happens to the rows of everybody.
fn everybodys(random: &mut Random, table: usize) -> Statement {
    let kind = &TABLES[table];
    if kind.is_dropped && random.below(2) == 0 {
        let how = Emptying::Drop;
        return Statement::Empty { table, how };
    }
    if kind.is_renamed && random.below(2) == 0 {
        let is_back = random.below(2) == 0;
        return Statement::Rename { table, is_back };
    }
    if kind.is_emptied && random.below(2) == 0 {
        let how = [Emptying::Truncate, Emptying::Delete][random.below(2) as usize];
        return Statement::Empty { table, how };
    }
    use Alteration::{
        AddBlockKey, AddColumn, AddFirstColumn, AddKey, DropBlockKey, DropColumn, DropKey,
    };
    let all = [
        AddColumn,
        AddFirstColumn,
        DropColumn,
        AddKey,
        DropKey,
        AddBlockKey,
        DropBlockKey,
    ];
    Statement::Alter {
        table,
        what: all[random.below(all.len() as u64) as usize],
    }
}

fn sum(random: &mut Random) -> SumStatement {
    let table = random.below(SUMS.len() as u64) as usize;
    let first = random.below(ACCOUNTS);
    let last = (first + random.below(8)).min(ACCOUNTS - 1);
    let amount = 1 + random.below(40).cast_signed();
    match random.below(4) {
        0 => SumStatement::Count {
            table,
            first,
            last,
            amount,
        },
        1 => SumStatement::Upsert {
            table: random.below(2) as usize,
            id: first,
            amount,
        },
        _ => SumStatement::Transfer {
            from: table,
            to: (table + 1 + random.below(2) as usize) % SUMS.len(),
            first,
            last,
            amount,
        },
    }
}
