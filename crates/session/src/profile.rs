//! SHOW PROFILE: how long a statement was in which of its stages, and what that took.
//!
//! Owns the names of the stages, the stages that a statement has been in so far, and the profiles
//! that a connection keeps. A statement is always in a stage, which SHOW PROCESSLIST shows; only
//! where `profiling` is on is anything measured.
//!
//! **Source**: MariaDB 11.8, `sql_profile.cc`. As there, processor time and page faults are those
//! of the whole process. What the kernel does not tell without a call of its own is NULL.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use mayfly_space::Counters;

/// Longest text of a statement that is kept, in bytes.
const TEXT_BYTES_MAX: usize = 300;

/// What a block is: the unit of `ru_inblock`.
const BLOCK_BYTES: u64 = 512;

/// Ticks of `/proc/self/stat` in a second: a constant of the kernel's interface.
const TICKS_PER_SECOND: u64 = 100;

/// What a statement does, in the words of MariaDB's profiles where they have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub(crate) enum Stage {
    /// Its text is read.
    #[default]
    Starting,
    /// The names in it are looked up.
    OpeningTables,
    /// It waits for others to write a table.
    WaitingForTable,
    /// It waits for others to give back memory.
    WaitingForMemory,
    /// Its plan is made better.
    Optimizing,
    /// Operators are chosen.
    Preparing,
    /// It runs; no row has been sent.
    Executing,
    /// Rows are computed and sent.
    SendingData,
    /// Its operators are dropped, with their temporary tables.
    RemovingTmpTable,
    /// All that is left.
    QueryEnd,
}

impl Stage {
    const ALL: [Stage; 10] = [
        Stage::Starting,
        Stage::OpeningTables,
        Stage::WaitingForTable,
        Stage::WaitingForMemory,
        Stage::Optimizing,
        Stage::Preparing,
        Stage::Executing,
        Stage::SendingData,
        Stage::RemovingTmpTable,
        Stage::QueryEnd,
    ];

    /// The stage with this number.
    pub(crate) fn of(number: u8) -> Stage {
        let found = Self::ALL.get(usize::from(number)).copied();
        found.unwrap_or_default()
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Stage::Starting => "Starting",
            Stage::OpeningTables => "Opening tables",
            Stage::WaitingForTable => "Waiting for table level lock",
            Stage::WaitingForMemory => "Waiting for memory",
            Stage::Optimizing => "Optimizing",
            Stage::Preparing => "Preparing",
            Stage::Executing => "Executing",
            Stage::SendingData => "Sending data",
            Stage::RemovingTmpTable => "Removing tmp table",
            Stage::QueryEnd => "Query end",
        }
    }
}

/// What the process has used so far.
#[derive(Debug, Clone, Copy, Default)]
struct Usage {
    user_ticks: u64,
    system_ticks: u64,
    minor_faults: u64,
    major_faults: u64,
}

impl Usage {
    fn now() -> Usage {
        let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        // The name of the program, in parentheses, may hold anything.
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // proc_pid_stat(5) counts from 1; the third field is the first here.
        let field = |number: usize| {
            let text = fields.get(number - 3);
            text.and_then(|text| text.parse().ok()).unwrap_or(0)
        };
        Usage {
            minor_faults: field(10),
            major_faults: field(12),
            user_ticks: field(14),
            system_ticks: field(15),
        }
    }
}

/// The beginning of a stage.
#[derive(Debug, Clone, Copy)]
struct Mark {
    stage: Stage,
    at: Instant,
    usage: Usage,
    /// Blocks that the statement had read and written.
    blocks: (u64, u64),
}

impl Mark {
    fn new(stage: Stage, counters: &Counters) -> Mark {
        Mark {
            stage,
            at: Instant::now(),
            usage: Usage::now(),
            blocks: (
                counters.bytes_read / BLOCK_BYTES,
                counters.bytes_written / BLOCK_BYTES,
            ),
        }
    }
}

/// The stages that a statement has been in.
#[derive(Debug, Default)]
pub(crate) struct Marks(Vec<Mark>);

impl Marks {
    /// It is in another stage from now on.
    pub(crate) fn enter(&mut self, stage: Stage, counters: &Counters) {
        if self.0.last().is_none_or(|last| last.stage != stage) {
            self.0.push(Mark::new(stage, counters));
        }
    }

    /// What each stage took, up to now.
    pub(crate) fn costs(&self, counters: &Counters) -> Vec<Cost> {
        let end = Mark::new(Stage::QueryEnd, counters);
        let ends = self.0.iter().skip(1).chain([&end]);
        let stages = self.0.iter().zip(ends);
        stages
            .map(|(begin, end)| Cost::between(begin, end))
            .collect()
    }
}

/// What a stage took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) stage: Stage,
    pub(crate) duration: Duration,
    /// `None` where the statement was too short to ask.
    pub(crate) resources: Option<Resources>,
}

/// What the process used meanwhile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resources {
    pub(crate) user: Duration,
    pub(crate) system: Duration,
    /// Of the statement alone.
    pub(crate) blocks_in: u64,
    pub(crate) blocks_out: u64,
    pub(crate) major_faults: u64,
    pub(crate) minor_faults: u64,
}

impl Cost {
    /// A stage of which only its time is known.
    pub(crate) fn of_time(stage: Stage, duration: Duration) -> Cost {
        Cost {
            stage,
            duration,
            resources: None,
        }
    }

    fn between(begin: &Mark, end: &Mark) -> Cost {
        let ticks = |from: u64, to: u64| {
            Duration::from_millis(to.saturating_sub(from) * 1000 / TICKS_PER_SECOND)
        };
        let (from, to) = (&begin.usage, &end.usage);
        Cost {
            stage: begin.stage,
            duration: end.at.duration_since(begin.at),
            resources: Some(Resources {
                user: ticks(from.user_ticks, to.user_ticks),
                system: ticks(from.system_ticks, to.system_ticks),
                blocks_in: end.blocks.0.saturating_sub(begin.blocks.0),
                blocks_out: end.blocks.1.saturating_sub(begin.blocks.1),
                major_faults: to.major_faults.saturating_sub(from.major_faults),
                minor_faults: to.minor_faults.saturating_sub(from.minor_faults),
            }),
        }
    }
}

/// One statement that has ended.
#[derive(Debug, Clone)]
pub(crate) struct Profile {
    pub(crate) id: u64,
    pub(crate) text: String,
    pub(crate) duration: Duration,
    pub(crate) costs: Vec<Cost>,
}

/// The profiles of a connection, the oldest one first.
#[derive(Debug, Default)]
pub(crate) struct Profiles {
    kept: VecDeque<Profile>,
    last_id: u64,
}

impl Profiles {
    /// Adds a statement, and forgets the oldest ones beyond `kept_max`.
    pub(crate) fn add(&mut self, text: &str, duration: Duration, costs: Vec<Cost>, kept_max: u64) {
        self.last_id += 1;
        let end = text.floor_char_boundary(TEXT_BYTES_MAX);
        self.kept.push_back(Profile {
            id: self.last_id,
            text: text[..end].to_owned(),
            duration,
            costs,
        });
        self.keep(kept_max);
    }

    fn keep(&mut self, kept_max: u64) {
        while self.kept.len() as u64 > kept_max {
            self.kept.pop_front();
        }
    }

    /// The last `kept_max` of them.
    pub(crate) fn kept(&mut self, kept_max: u64) -> &VecDeque<Profile> {
        self.keep(kept_max);
        &self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_have_their_numbers() {
        for (number, stage) in (0..).zip(Stage::ALL) {
            assert_eq!(stage as u8, number);
            assert_eq!(Stage::of(number), stage);
        }
        assert_eq!(Stage::of(200), Stage::Starting);
    }

    #[test]
    fn the_process_has_used_something() {
        let pages = vec![1_u8; 8 << 20];
        assert!(pages.iter().all(|byte| *byte == 1));
        assert!(Usage::now().minor_faults > 0);
    }

    #[test]
    fn profiles_are_kept_up_to_a_number() {
        let mut profiles = Profiles::default();
        for number in 0..5 {
            let text = format!("SELECT {number}");
            profiles.add(&text, Duration::ZERO, Vec::new(), 3);
        }
        let ids: Vec<u64> = profiles.kept(2).iter().map(|profile| profile.id).collect();
        assert_eq!(ids, [4, 5]);
        profiles.add(&"\u{e9}".repeat(200), Duration::ZERO, Vec::new(), 1);
        assert_eq!(profiles.kept(1)[0].text.chars().count(), 150);
    }
}
