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
/// The fewest and the most sessions.
const SESSIONS: [usize; 2] = [2, 16];
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
        let drawn = SESSIONS[0] + random.below((SESSIONS[1] - SESSIONS[0] + 1) as u64) as usize;
        // Of four seeds that follow each other one has the fewest sessions, and one the most.
        let sessions = match seed % 4 {
            0 => SESSIONS[0],
            1 => SESSIONS[1],
            _ => drawn,
        };
        let mix = Mix::new(&mut random, seed);
        let draw = |session| {
            let mut draw = Draw {
                random: Random::new(seed.wrapping_mul(1000) + session as u64),
                mix: mix.clone(),
                session,
                sessions,
            };
            let steps = 0..steps / sessions;
            steps.map(|_| draw.step()).collect()
        };
        Schedule {
            sessions: (0..sessions).map(draw).collect(),
        }
    }
}

/// Makes a statement of a kind.
type Maker = fn(&mut Draw) -> Statement;

/// How often statements of a kind come, before the mix of a schedule makes them more or fewer.
const KINDS: [(u64, Maker); 16] = [
    (18, Draw::insert),
    (4, Draw::load),
    (5, Draw::fill),
    (5, Draw::copy),
    (10, Draw::update),
    (2, Draw::shift),
    (5, Draw::delete),
    (8, Draw::update_two),
    (3, Draw::delete_two),
    (13, Draw::read),
    (2, Draw::touch),
    (5, Draw::everybodys),
    (14, Draw::sum),
    (3, Draw::kill),
    (1, Draw::quota),
    (2, Draw::fault),
];

/// What a schedule is made of. Each leaves some kinds of statements and some tables out and has
/// more of others, which meets more than the same mixture each time (Groce et al., "Swarm
/// Testing", 2012).
#[derive(Clone)]
struct Mix {
    tables: Vec<usize>,
    weights: Vec<u64>,
}

impl Mix {
    /// Four seeds that follow each other leave out no table but the first by themselves, and no
    /// kind of statements.
    fn new(random: &mut Random, seed: u64) -> Mix {
        let mut tables: Vec<usize> = (0..TABLES.len()).collect();
        let stays = 1 + (seed % 4) as usize;
        while tables.len() > 2 && random.below(3) > 0 {
            let place = random.below(tables.len() as u64) as usize;
            if tables[place] != stays {
                tables.remove(place);
            }
        }
        let mut weights: Vec<u64> = { KINDS.iter().zip(seed..) }
            .map(|((weight, _), number)| {
                let factor = [0, 1, 1, 4][random.below(4) as usize];
                // One seed leaves out every other kind at most, the next one none of those.
                weight * factor.max(number % 2)
            })
            .collect();
        // Without rows there is nothing to look at.
        weights[0] += KINDS[0].0;
        Mix { tables, weights }
    }
}

/// Draws the statements of one session.
struct Draw {
    random: Random,
    mix: Mix,
    session: usize,
    sessions: usize,
}

impl Draw {
    fn step(&mut self) -> Step {
        let statement = self.statement();
        let cut = match self.random.below(60) {
            0 => Some(Cut::Polls(self.random.below(4) as u32)),
            1 => Some(Cut::Millis(self.random.below(8))),
            _ => None,
        };
        Step { statement, cut }
    }

    fn statement(&mut self) -> Statement {
        let mut place = self.random.below(self.mix.weights.iter().sum());
        for ((_, kind), weight) in KINDS.iter().zip(&self.mix.weights) {
            match place.checked_sub(*weight) {
                None => return kind(self),
                Some(rest) => place = rest,
            }
        }
        unreachable!("the place is below the sum of all weights")
    }

    fn table(&mut self) -> usize {
        *one_of(&mut self.random, &self.mix.tables)
    }

    /// Two tables, of the mix if it has a pair.
    fn pair(&mut self) -> [usize; 2] {
        let has = |table| self.mix.tables.contains(table);
        let of_mix: Vec<_> = PAIRS.iter().filter(|pair| pair.iter().all(has)).collect();
        match of_mix.as_slice() {
            [] => *one_of(&mut self.random, &PAIRS),
            pairs => **one_of(&mut self.random, pairs),
        }
    }

    fn insert(&mut self) -> Statement {
        Statement::Insert {
            table: self.table(),
            verb: verb(&mut self.random),
            rows: rows(&mut self.random),
            filler: self.random.below(40),
        }
    }

    fn load(&mut self) -> Statement {
        Statement::Load {
            table: self.table(),
            verb: *one_of(
                &mut self.random,
                &[Verb::Insert, Verb::Ignore, Verb::Replace],
            ),
            rows: rows(&mut self.random),
        }
    }

    fn fill(&mut self) -> Statement {
        Statement::Fill {
            table: self.table(),
            verb: verb(&mut self.random),
            first: FILLED + self.random.below(3) * 300,
            rows: 1 + self.random.below(NUMBERS),
            filler: self.random.below(500),
        }
    }

    fn copy(&mut self) -> Statement {
        let (from, to) = (self.table(), self.table());
        // Rows without a key may have the same id: which of them stays is not told.
        let verb = match TABLES[from].is_keyed {
            true => verb(&mut self.random),
            false => Verb::Insert,
        };
        let first = self.random.below(SLOTS);
        Statement::Copy {
            from,
            to,
            verb,
            choice: Choice::Slots(first, first + self.random.below(SLOTS)),
            shift: *one_of(&mut self.random, &[0, SLOTS]),
        }
    }

    fn update(&mut self) -> Statement {
        Statement::Update {
            table: self.table(),
            choice: choice(&mut self.random),
            set: set(&mut self.random),
        }
    }

    /// Rows that are shifted already are met by others, but never on their way.
    fn shift(&mut self) -> Statement {
        let first = self.random.below(SLOTS);
        Statement::Update {
            table: self.table(),
            choice: Choice::Slots(first, (first + self.random.below(20)).min(SLOTS - 1)),
            set: Set::Shift(SLOTS),
        }
    }

    fn delete(&mut self) -> Statement {
        Statement::Delete {
            table: self.table(),
            choice: choice(&mut self.random),
        }
    }

    fn update_two(&mut self) -> Statement {
        Statement::UpdateTwo {
            tables: self.pair(),
            choice: choice(&mut self.random),
            set: set(&mut self.random),
        }
    }

    fn delete_two(&mut self) -> Statement {
        Statement::DeleteTwo {
            tables: self.pair(),
            choice: choice(&mut self.random),
        }
    }

    fn read(&mut self) -> Statement {
        Statement::Read {
            table: self.table(),
            way: *one_of(&mut self.random, &[Way::Ids, Way::Block, Way::Scan]),
        }
    }

    fn touch(&mut self) -> Statement {
        Statement::Touch {
            table: self.table(),
            rest: (self.random.below(2) == 0).then(|| self.random.below(7)),
        }
    }

    /// What happens to the rows of everybody.
    fn everybodys(&mut self) -> Statement {
        let table = self.table();
        let kind = &TABLES[table];
        let random = &mut self.random;
        if kind.is_dropped && random.below(2) == 0 {
            let how = Emptying::Drop;
            return Statement::Empty { table, how };
        }
        if kind.is_renamed && random.below(2) == 0 {
            let is_back = random.below(2) == 0;
            return Statement::Rename { table, is_back };
        }
        if kind.is_emptied && random.below(2) == 0 {
            let how = *one_of(random, &[Emptying::Truncate, Emptying::Delete]);
            return Statement::Empty { table, how };
        }
        Statement::Alter {
            table,
            what: *one_of(random, &Alteration::ALL),
        }
    }

    fn sum(&mut self) -> Statement {
        Statement::Sum(sum(&mut self.random))
    }

    /// Another session.
    fn kill(&mut self) -> Statement {
        let others = self.sessions as u64 - 1;
        let next = 1 + self.random.below(others) as usize;
        Statement::Kill {
            session: (self.session + next) % self.sessions,
            only_query: self.random.below(3) > 0,
        }
    }

    fn quota(&mut self) -> Statement {
        Statement::Quota(*one_of(&mut self.random, &[0, 0, 64 << 10, 1 << 20]))
    }

    fn fault(&mut self) -> Statement {
        Statement::Fault(1 + self.random.below(30))
    }
}

fn one_of<'a, T>(random: &mut Random, all: &'a [T]) -> &'a T {
    &all[random.below(all.len() as u64) as usize]
}

fn verb(random: &mut Random) -> Verb {
    let all = [Verb::Insert, Verb::Ignore, Verb::Replace, Verb::OnDuplicate];
    *one_of(random, &all)
}

/// Slots and values; some rows come twice, which a key refuses.
fn rows(random: &mut Random) -> Vec<(u64, i64)> {
    let first = random.below(SLOTS);
    let rows = *one_of(random, &[1, 1, 3, 10, SLOTS]);
    let stride = *one_of(random, &[1, 1, 3, 4]);
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
