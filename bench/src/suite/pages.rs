//! pages: the page size of the temp space, on the data of seed0 and seed1.

use crate::args::{Limit, SystemName};
use crate::error::BenchError;
use crate::results::Results;
use crate::runner::{Case, Contender, Runner};
use crate::suite::{seed0, seed1};

const SIZES: [&str; 4] = ["4K", "16K", "64K", "256K"];

pub(crate) fn run(
    runner: &mut Runner,
    full: bool,
    results: &mut Results,
) -> Result<(), BenchError> {
    let tight = vec![Limit::All, Limit::mib(64)];
    let rows = if full {
        vec![1_000_000, 4_000_000]
    } else {
        vec![4_000_000]
    };
    let mut cases = Vec::new();
    for rows in rows {
        cases.push(seed0::case(runner, rows, tight.clone())?);
    }
    let queries = if full {
        vec![0, 1, 2, 3, 4, 5]
    } else {
        vec![1, 5]
    };
    for query in queries {
        cases.push(seed1::case(runner, query, tight.clone())?);
    }
    for case in cases {
        runner.case(&by_page_size(case), results)?;
    }
    Ok(())
}

/// The same case with Mayfly at each page size, and DuckDB to compare answers with.
fn by_page_size(case: Case) -> Case {
    let mut contenders = Vec::new();
    for contender in &case.contenders {
        match contender.system {
            SystemName::Mayfly => contenders.extend(SIZES.map(|size| Contender {
                label: contender.label.replace("Mayfly", size),
                mayfly_options: vec!["--page-size".to_owned(), size.to_owned()],
                ..contender.clone()
            })),
            SystemName::Duckdb if contender.setup.is_empty() => contenders.push(contender.clone()),
            _ => {}
        }
    }
    Case {
        name: case.name.replacen("seed", "pages seed", 1),
        contenders,
        ..case
    }
}
