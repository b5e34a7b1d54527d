//! cliff: time over memory, from eight times the data to a sixteenth of it, operator by operator.
//!
//! The cliff factor is defined over growing data at fixed memory: C(x) = T(2x) / T(x) / 2. Here
//! the data stays and memory shrinks; as T is proportional to the data at a fixed ratio of data
//! to memory, T(2x, M) = 2 T(x, M/2), so C is the time at half the memory over the time at the
//! memory. The step is taken at 5 % on either side of the data in the same way.
//!
//! Groups have limits in half octaves; the other operators in octaves, with `--full` in halves.

mod operators;

use crate::args::{BenchArgs, Limit, SystemName};
use crate::error::BenchError;
use crate::report::text::print_sheet;
use crate::results::{Results, Sheet};
use crate::runner::{Case, Runner};

use operators::OPERATORS;

const MOST_FACTOR: f64 = 1.3;
const MOST_STEP: f64 = 1.1;

/// A case whose limits have been measured.
struct Drawn {
    case: String,
    data_bytes: u64,
    contenders: Vec<String>,
}

pub(crate) fn run(
    runner: &mut Runner,
    args: &BenchArgs,
    results: &mut Results,
) -> Result<(), BenchError> {
    let mut drawn = Vec::new();
    for operator in &OPERATORS {
        let only = runner.settings.only.as_ref();
        if operator.full && !args.full || only.is_some_and(|only| !operator.name.contains(only)) {
            continue;
        }
        let case = (operator.case)(runner, args.rows)?;
        let case = Case {
            name: format!("cliff {}", operator.name),
            limits: limits(case.data_bytes, args.full || operator.halves),
            check_every_limit: false,
            ..case
        };
        runner.case(&case, results)?;
        drawn.push(Drawn {
            case: case.name,
            data_bytes: case.data_bytes,
            contenders: (case.contenders.into_iter())
                .map(|contender| contender.label)
                .collect(),
        });
    }
    for one in &drawn {
        for contender in &one.contenders {
            for capped in [false, true] {
                figures(results, one, contender, capped);
            }
        }
    }
    let sheet = halvings(results, &drawn);
    print_sheet(&sheet);
    results.sheets.push(sheet);
    Ok(())
}

/// Eight times the data down to a sixteenth, and the two limits around it.
fn limits(data_bytes: u64, halves: bool) -> Vec<Limit> {
    let mut limits: Vec<Limit> = (-6..=8)
        .filter(|half| halves || half % 2 == 0)
        .map(|half| at(data_bytes, factor(half)))
        .collect();
    limits.extend([at(data_bytes, 1.0 / 0.95), at(data_bytes, 1.0 / 1.05)]);
    limits.sort_by(|a, b| b.cmp(a));
    limits.dedup();
    limits
}

/// The memory over the data, so many half octaves below 1.
fn factor(half: i32) -> f64 {
    2_f64.powf(-f64::from(half) / 2.0)
}

fn at(data_bytes: u64, factor: f64) -> Limit {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a size"
    )]
    let mib = (data_bytes as f64 * factor / f64::from(1 << 20)).round() as u64;
    Limit::mib(mib.max(1))
}

/// The time with half the memory beside the time with the memory, where they are furthest apart.
struct Halving {
    less_s: f64,
    more_s: f64,
    /// The smaller of the two limits.
    limit: Limit,
}

impl Halving {
    fn factor(&self) -> f64 {
        self.less_s / self.more_s
    }

    fn worst(results: &Results, one: &Drawn, who: &str, capped: bool) -> Option<Self> {
        let seconds = |limit| results.right_seconds(&one.case, limit, capped, who);
        (-6..=6)
            .filter_map(|half| {
                let limit = at(one.data_bytes, factor(half) / 2.0);
                Some(Self {
                    less_s: seconds(limit)?,
                    more_s: seconds(at(one.data_bytes, factor(half)))?,
                    limit,
                })
            })
            .max_by(|a, b| a.factor().total_cmp(&b.factor()))
    }
}

fn figures(results: &mut Results, one: &Drawn, who: &str, capped: bool) {
    let case = &one.case;
    let seconds = |factor: f64| {
        let cell = results.cell(case, at(one.data_bytes, factor), capped)?;
        cell.seconds(who)
    };
    let step = (seconds(1.0 / 1.05), seconds(1.0 / 0.95));
    let kind = if capped { "capped" } else { "by knob" };
    let ours = who == SystemName::Mayfly.label();
    if let Some(worst) = Halving::worst(results, one, who, capped) {
        results.ratio(
            format!("{case}, cliff factor of {who}, {kind}"),
            Some(worst.less_s),
            Some(worst.more_s),
            ours.then_some(MOST_FACTOR),
        );
    }
    results.ratio(
        format!("{case}, step of {who}, {kind}"),
        step.0,
        step.1,
        ours.then_some(MOST_STEP),
    );
}

/// A table of the worst halving of each operator, with the memory from which on it fails.
fn halvings(results: &Results, drawn: &[Drawn]) -> Sheet {
    let mut contenders: Vec<&str> = Vec::new();
    for who in drawn.iter().flat_map(|one| &one.contenders) {
        if results.contenders().contains(&who.as_str()) && !contenders.contains(&who.as_str()) {
            contenders.push(who);
        }
    }
    let mut columns = vec!["operator", "limit"];
    columns.extend(&contenders);
    let mut sheet = Sheet::new(
        "worst halving of the memory, at the smaller limit",
        &columns,
    );
    for one in drawn {
        for capped in [false, true] {
            let kind = if capped { "capped" } else { "by knob" };
            let operator = one.case.trim_start_matches("cliff ");
            let mut row = vec![operator.to_owned(), kind.to_owned()];
            row.extend(
                contenders
                    .iter()
                    .map(|who| halving(results, one, who, capped)),
            );
            sheet.rows.push(row);
        }
    }
    sheet
}

fn halving(results: &Results, one: &Drawn, who: &str, capped: bool) -> String {
    let cells = results.cells.iter();
    let cells = cells.filter(|cell| cell.case == one.case && cell.capped == capped);
    let fails_from = cells
        .map(|cell| cell.limit)
        .filter(|limit| results.failed(&one.case, *limit, capped, who) == Some(true))
        .max();
    let worst = Halving::worst(results, one, who, capped)
        .map(|worst| format!("{:.2} at {}", worst.factor(), worst.limit));
    let failure = fails_from.map(|limit| format!("fails from {limit}"));
    let parts: Vec<String> = worst.into_iter().chain(failure).collect();
    match parts.is_empty() {
        true => "-".to_owned(),
        false => parts.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Cell, Check, Entry, Measured, Outcome};

    const MIB: u64 = 1 << 20;

    fn cell(mib: u64, outcome: Outcome) -> Cell {
        Cell {
            case: "cliff join".to_owned(),
            limit: Limit::mib(mib),
            limit_bytes: mib * MIB,
            capped: false,
            rows: 1,
            data_bytes: 64 * MIB,
            results: vec![Entry {
                contender: "Mayfly".to_owned(),
                system: SystemName::Mayfly,
                outcome,
            }],
        }
    }

    fn measured(seconds: f64) -> Outcome {
        Outcome::Measured(Measured {
            median_s: seconds,
            runs_s: vec![seconds],
            cold_s: seconds,
            peak_bytes: 0,
            anonymous_bytes: 0,
            cap_peak_bytes: None,
            written_bytes: 0,
            spilled_bytes: None,
            check: Check::NotChecked,
        })
    }

    #[test]
    fn limits_fall_from_eight_times_the_data_to_a_sixteenth() {
        let found = limits(64 * MIB, false);
        let expected = [512, 256, 128, 67, 64, 61, 32, 16, 8, 4].map(Limit::mib);
        assert_eq!(found, expected);
        let halves = limits(64 * MIB, true);
        assert_eq!(halves.len(), 17);
        assert!(halves.contains(&Limit::mib(45)));
    }

    #[test]
    fn the_worst_halving_is_named_with_what_fails() {
        let one = Drawn {
            case: "cliff join".to_owned(),
            data_bytes: 64 * MIB,
            contenders: vec!["Mayfly".to_owned()],
        };
        let mut results = Results {
            cells: vec![
                cell(128, measured(1.0)),
                cell(64, measured(1.1)),
                cell(32, measured(2.2)),
                cell(16, measured(2.0)),
            ],
            ..Results::default()
        };
        assert_eq!(halving(&results, &one, "Mayfly", false), "2.00 at 32 MiB");
        assert_eq!(halving(&results, &one, "Mayfly", true), "-");
        let failed = || Outcome::Failed("ERROR 1038".to_owned());
        results.cells.extend([cell(8, failed()), cell(4, failed())]);
        assert_eq!(
            halving(&results, &one, "Mayfly", false),
            "2.00 at 32 MiB, fails from 8 MiB"
        );
    }
}
