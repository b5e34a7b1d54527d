//! A batch of one side against the tables of the other.
//!
//! Rows come out in the order of the batch, as far as the kind of join leaves it: those without a
//! partner stand where they stood. A row with more partners than a batch of results has room for is
//! left in its midst, and gone on with at the next call.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch};
use datafusion::common::Result;
use mayfly_table::rows::{JoinTables, Looked, MatchCursor, Matches, RowRef};

use super::kinds::{Emit, Roles};
use super::spec::{ResultRows, Spec};
use crate::error::rows_error;

/// What is known of a row that streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It has no partner so far.
    Alone,
    /// It has one.
    Partnered,
    /// It has one, and was returned when it was found.
    Returned,
    /// Its partners are not in memory: it is looked up later.
    Deferred,
}

/// How a step ended.
pub(super) enum Progress {
    /// With results.
    Results(RecordBatch),
    /// Without, and there is more to do.
    None,
    /// The batch was dealt with.
    Done,
}

/// The rows of a batch, as far as they were not dealt with.
struct Probed {
    columns: Vec<ArrayRef>,
    fates: Vec<Fate>,
    cursor: MatchCursor,
    /// Rows before this one were dealt with, as far as they are returned for themselves.
    finished: usize,
    is_done: bool,
}

/// Deals with one batch after the other.
pub(super) struct Prober {
    spec: Arc<Spec>,
    pub(super) roles: Roles,
    /// The most rows of a result, and the most bytes of rows of the table in it.
    limits: (usize, usize),
    /// Whether no other table can have a partner for a row.
    pub(super) is_last: bool,
    pub(super) looked: Looked,
    matches: Matches,
    probed: Option<Probed>,
    /// Rows of the table that found their first partner, and how many of them were returned.
    marked: (Vec<RowRef>, usize),
}

impl Prober {
    pub(super) fn new(spec: &Arc<Spec>, roles: Roles, limits: (usize, usize)) -> Prober {
        Prober {
            spec: Arc::clone(spec),
            roles,
            limits,
            is_last: true,
            looked: Looked::default(),
            matches: Matches::default(),
            probed: None,
            marked: (Vec::new(), 0),
        }
    }

    /// Begins a batch whose rows were looked up in `self.looked`; of some it may be known that they
    /// found a partner elsewhere.
    pub(super) fn begin(&mut self, columns: Vec<ArrayRef>, was_partnered: impl Fn(usize) -> bool) {
        let fate = |row| match was_partnered(row) {
            true if self.roles.of_stream == Emit::Matched => Fate::Returned,
            true => Fate::Partnered,
            false => Fate::Alone,
        };
        let mut fates: Vec<Fate> = (0..self.looked.heads.len()).map(fate).collect();
        for row in &self.looked.absent {
            fates[*row as usize] = Fate::Deferred;
        }
        self.probed = Some(Probed {
            columns,
            is_done: fates.is_empty(),
            fates,
            cursor: MatchCursor::default(),
            finished: 0,
        });
    }

    /// The rows of the batch that have found a partner by now.
    pub(super) fn partnered_rows(&self) -> Vec<usize> {
        let fates = self.probed.as_ref().map_or(&[][..], |probed| &probed.fates);
        let has_partner = |row: &usize| matches!(fates[*row], Fate::Partnered | Fate::Returned);
        (0..fates.len()).filter(has_partner).collect()
    }

    /// Takes the next step with the batch.
    pub(super) fn next(&mut self, tables: &JoinTables) -> Result<Progress> {
        if let Some(results) = self.next_marked(tables)? {
            return Ok(Progress::Results(results));
        }
        // What is known of its rows stays at hand when a batch was dealt with.
        let Some(mut probed) = self.probed.take_if(|probed| !probed.is_done) else {
            return Ok(Progress::Done);
        };
        let results = match self.roles.has_pairs || self.spec.residual.is_some() {
            true => self.step(&mut probed, tables),
            false => self.look_at_heads(&mut probed, tables),
        };
        self.probed = Some(probed);
        Ok(match results? {
            Some(results) if results.num_rows() > 0 => Progress::Results(results),
            _ => Progress::None,
        })
    }

    /// Rows of the table that found their first partner, where those are what is returned.
    fn next_marked(&mut self, tables: &JoinTables) -> Result<Option<RecordBatch>> {
        let (rows, returned) = &mut self.marked;
        if *returned == rows.len() {
            rows.clear();
            *returned = 0;
            return Ok(None);
        }
        let (rows_max, bytes_max) = self.limits;
        let mut end = *returned;
        let mut bytes = 0;
        while end < rows.len() && end - *returned < rows_max && bytes < bytes_max {
            bytes += tables.row_bytes(rows[end]);
            end += 1;
        }
        let picked = &rows[*returned..end];
        *returned = end;
        let results = self.spec.result(ResultRows {
            count: picked.len(),
            table: (self.roles.table, Some((tables, picked))),
            stream: None,
            marks: None,
        });
        results.map(Some)
    }

    /// Deals with all rows at once, where nothing depends on who the partners are.
    fn look_at_heads(
        &mut self,
        probed: &mut Probed,
        tables: &JoinTables,
    ) -> Result<Option<RecordBatch>> {
        for (fate, head) in probed.fates.iter_mut().zip(&self.looked.heads) {
            if head.is_some() && *fate == Fate::Alone {
                *fate = Fate::Partnered;
            }
        }
        if self.roles.marks_table() {
            let heads = self.looked.heads.iter().filter(|head| head.is_some());
            heads.for_each(|head| tables.mark_all(*head, &mut self.marked.0));
            if self.roles.of_table != Emit::Matched {
                self.marked.0.clear();
            }
        }
        probed.is_done = true;
        let end = probed.fates.len();
        self.stream_rows(probed, end)
    }

    /// Deals with some pairs, and with the rows that no further pair can have.
    fn step(&mut self, probed: &mut Probed, tables: &JoinTables) -> Result<Option<RecordBatch>> {
        let heads = &self.looked.heads;
        tables
            .matches(heads, &mut probed.cursor, self.limits, &mut self.matches)
            .map_err(rows_error)?;
        let end = probed.cursor.row();
        probed.is_done = end == heads.len();
        self.keep_pairs(probed, tables)?;
        if self.roles.marks_table() {
            for row in &self.matches.found {
                if tables.mark(*row) && self.roles.of_table == Emit::Matched {
                    self.marked.0.push(*row);
                }
            }
        }
        for row in &self.matches.rows {
            let fate = &mut probed.fates[*row as usize];
            if *fate == Fate::Alone {
                *fate = Fate::Partnered;
            }
        }
        if !self.roles.has_pairs {
            return self.stream_rows(probed, end);
        }
        if self.roles.of_stream == Emit::Padded && self.is_last {
            self.pad(probed, end);
        }
        let Matches { rows, found } = &self.matches;
        let results = self.spec.result(ResultRows {
            count: rows.len(),
            table: (self.roles.table, Some((tables, found))),
            stream: Some((&probed.columns, rows)),
            marks: None,
        });
        results.map(Some)
    }

    /// Drops the pairs that the condition beside the keys does not keep.
    fn keep_pairs(&mut self, probed: &Probed, tables: &JoinTables) -> Result<()> {
        let Some(residual) = self.spec.residual.as_ref() else {
            return Ok(());
        };
        let Matches { rows, found } = &mut self.matches;
        if rows.is_empty() {
            return Ok(());
        }
        let kept = self.spec.kept_pairs(
            residual,
            ResultRows {
                count: rows.len(),
                table: (self.roles.table, Some((tables, found))),
                stream: Some((&probed.columns, rows)),
                marks: None,
            },
        )?;
        let mut count = 0;
        for at in 0..rows.len() {
            (rows[count], found[count]) = (rows[at], found[at]);
            count += usize::from(kept.value(at));
        }
        rows.truncate(count);
        found.truncate(count);
        Ok(())
    }

    /// Puts rows without a partner, up to `end`, among the pairs.
    fn pad(&mut self, probed: &mut Probed, end: usize) {
        let is_alone = |row: usize| probed.fates[row] == Fate::Alone;
        if (probed.finished..end).any(is_alone) {
            let pairs = std::mem::take(&mut self.matches);
            let mut pairs = pairs.rows.into_iter().zip(pairs.found).peekable();
            let Matches { rows, found } = &mut self.matches;
            let mut push = |row: u32, partner: RowRef| {
                rows.push(row);
                found.push(partner);
            };
            for row in probed.finished..end {
                while let Some((_, partner)) = pairs.next_if(|(of, _)| *of as usize == row) {
                    push(row as u32, partner);
                }
                if is_alone(row) {
                    push(row as u32, RowRef::NONE);
                }
            }
            pairs.for_each(|(row, partner)| push(row, partner));
        }
        probed.finished = end;
    }

    /// The rows of the batch up to `end` that are returned for themselves.
    fn stream_rows(&self, probed: &mut Probed, end: usize) -> Result<Option<RecordBatch>> {
        let emit = self.roles.of_stream;
        if emit == Emit::Nothing || (emit.is_late() && !self.is_last) {
            return Ok(None);
        }
        let from = std::mem::replace(&mut probed.finished, end);
        let is_returned = |row: &usize| match (emit, probed.fates[*row]) {
            (Emit::Matched, fate) => fate == Fate::Partnered,
            (Emit::Unmatched, fate) => fate == Fate::Alone,
            (_, fate) => fate != Fate::Deferred,
        };
        let rows: Vec<u32> = (from..end)
            .filter(is_returned)
            .map(|row| row as u32)
            .collect();
        let is_partnered = |row: &u32| Some(probed.fates[*row as usize] == Fate::Partnered);
        let marks: BooleanArray = rows.iter().map(is_partnered).collect();
        let results = self.spec.result(ResultRows {
            count: rows.len(),
            table: (self.roles.table, None),
            stream: Some((&probed.columns, &rows)),
            marks: Some(marks),
        })?;
        for row in &rows {
            if emit == Emit::Matched {
                probed.fates[*row as usize] = Fate::Returned;
            }
        }
        Ok(Some(results))
    }
}
