//! Tables and figures of a benchmark.

use serde::Serialize;

/// A plain table.
#[derive(Debug, Serialize)]
pub(crate) struct Sheet {
    pub(crate) title: String,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Sheet {
    pub(crate) fn new(title: &str, columns: &[&str]) -> Self {
        Self {
            title: title.to_owned(),
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
            rows: Vec::new(),
        }
    }
}

/// A figure to reach and what was found.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) what: String,
    pub(crate) found: f64,
    /// The most that is allowed; none for a figure that is only reported.
    pub(crate) at_most: Option<f64>,
    /// The least that is asked, where more is better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) at_least: Option<f64>,
}

impl Figure {
    /// A figure that is better the smaller it is.
    pub(crate) fn at_most(what: impl Into<String>, found: f64, most: Option<f64>) -> Self {
        Self {
            what: what.into(),
            found,
            at_most: most,
            at_least: None,
        }
    }

    /// A figure that is better the larger it is.
    pub(crate) fn at_least(what: impl Into<String>, found: f64, least: f64) -> Self {
        Self {
            what: what.into(),
            found,
            at_most: None,
            at_least: Some(least),
        }
    }

    pub(crate) fn reached(&self) -> Option<bool> {
        let below = self.at_most.map(|most| self.found <= most);
        below.or(self.at_least.map(|least| self.found >= least))
    }
}

/// The middle value; the mean of the two middle ones of an even count.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}
