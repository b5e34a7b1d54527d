//! ROW_NUMBER, RANK, DENSE_RANK, PERCENT_RANK, CUME_DIST and NTILE: where a row stands in its
//! partition. They read flags of peers, and no values.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, UInt64Array};
use datafusion::common::Result;

use super::frame::{Order, Partition, Peers, View};
use super::function::{Function, Ready, Span};
use super::spec::Ranking;

pub(super) struct RankFunction {
    kind: Ranking,
    order: Order,
    peers: Peers,
    /// Peers of the partition so far.
    peers_seen: u64,
}

impl RankFunction {
    pub(super) fn new(kind: Ranking, order: Order, first_flag: usize) -> Self {
        Self {
            kind,
            order,
            peers: Peers::new(order, first_flag),
            peers_seen: 0,
        }
    }

    /// One more than the rows before the peers of a row.
    fn rank(&mut self, view: View<'_>, partition: &Partition, position: u64) -> u64 {
        self.peers.begin(view, partition, position) - partition.start + 1
    }

    fn dense_rank(&mut self, view: View<'_>, partition: &Partition, position: u64) -> u64 {
        if position == partition.start {
            self.peers_seen = 0;
        }
        if position == partition.start || view.is_first_peer(&self.order, position) {
            self.peers_seen += 1;
        }
        self.peers_seen
    }

    fn whole_numbers(spans: &[Span], mut number: impl FnMut(&Partition, u64) -> u64) -> ArrayRef {
        let rows = spans.iter().flat_map(|span| {
            let partition = span.partition;
            span.rows.clone().map(move |row| (partition, row))
        });
        let numbers = rows.map(|(partition, row)| number(&partition, row));
        Arc::new(UInt64Array::from(numbers.collect::<Vec<_>>()))
    }

    fn fractions(
        spans: &[Span],
        mut fraction: impl FnMut(&Partition, u64) -> Result<f64>,
    ) -> Result<ArrayRef> {
        let mut fractions = Vec::new();
        for span in spans {
            for row in span.rows.clone() {
                fractions.push(fraction(&span.partition, row)?);
            }
        }
        Ok(Arc::new(Float64Array::from(fractions)))
    }
}

impl Function for RankFunction {
    fn ready(&mut self, _view: View<'_>, span: &Span) -> Result<Ready> {
        let is_causal = matches!(
            self.kind,
            Ranking::RowNumber | Ranking::Rank | Ranking::DenseRank
        );
        Ok(Ready::To(match is_causal || span.partition.end.is_some() {
            true => span.rows.end,
            false => span.rows.start,
        }))
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "PERCENT_RANK and CUME_DIST are DOUBLE"
    )]
    fn evaluate(&mut self, view: View<'_>, spans: &[Span]) -> Result<ArrayRef> {
        let rows_of = |partition: &Partition| view.end_of(partition) - partition.start;
        let results = match self.kind {
            Ranking::RowNumber => {
                Self::whole_numbers(spans, |partition, row| row - partition.start + 1)
            }
            Ranking::Rank => {
                Self::whole_numbers(spans, |partition, row| self.rank(view, partition, row))
            }
            Ranking::DenseRank => Self::whole_numbers(spans, |partition, row| {
                self.dense_rank(view, partition, row)
            }),
            Ranking::Ntile(parts) => Self::whole_numbers(spans, |partition, row| {
                part_of(row - partition.start, rows_of(partition), parts)
            }),
            Ranking::PercentRank => Self::fractions(spans, |partition, row| {
                let before = self.rank(view, partition, row) - 1;
                let others = rows_of(partition) - 1;
                Ok(before as f64 / (others as f64).max(1.0))
            })?,
            Ranking::CumeDist => Self::fractions(spans, |partition, row| {
                let end = self.peers.end(view.rows, row, view.end_of(partition))?;
                Ok((end - partition.start) as f64 / rows_of(partition) as f64)
            })?,
        };
        self.peers.rest();
        Ok(results)
    }
}

/// The part of a row when rows are dealt out to so many parts, of which the first are longer by one
/// where they cannot all be equal.
fn part_of(row: u64, rows: u64, parts: u64) -> u64 {
    let (short, long_parts) = (rows / parts, rows % parts);
    let in_long_parts = long_parts * (short + 1);
    match row < in_long_parts {
        true => row / (short + 1) + 1,
        false => long_parts + (row - in_long_parts) / short + 1,
    }
}
