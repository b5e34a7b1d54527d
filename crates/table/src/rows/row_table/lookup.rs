//! Keys looked up before rows are written, and the groups of those that were found brought up to
//! date.

use std::sync::Arc;

use super::super::Error;
use super::super::direct::Direct;
use super::super::directory::Probe;
use super::super::encode::{GroupInput, KeysView};
use super::super::group_runs::{GroupRuns, RunBuffers};
use super::super::state::StateInput;
use super::super::state_update::update_states;
use super::targets::Targets;
use super::{RowTable, Scratch, WINDOW_ROWS};

/// What looking keys up gives.
#[derive(Default)]
pub(crate) struct Found {
    /// Rows with the references of their groups.
    pub(crate) known: Vec<(u32, u32)>,
    /// Rows whose key is not there.
    pub(crate) unknown: Vec<u32>,
    /// Rows with the same key as the unknown one before them.
    pub(crate) repeats: Vec<u32>,
}

impl Found {
    fn clear(&mut self) {
        self.known.clear();
        self.unknown.clear();
        self.repeats.clear();
    }
}

impl RowTable {
    /// Looks keys up without their hashes, where they are numbers close together or few and short:
    /// appends the rows whose group was found to `known` and the others to `rest`. False where
    /// they are neither.
    pub(crate) fn find_direct(
        &mut self,
        input: &GroupInput<'_>,
        known: &mut Vec<(u32, u32)>,
        rest: &mut Vec<u32>,
    ) -> bool {
        known.clear();
        rest.clear();
        let groups = self.groups();
        if let Some(direct) = self.direct.as_mut().filter(|direct| direct.is_in_use()) {
            direct.find(&input.key[0], known, rest);
            return true;
        }
        let short = self.short.as_mut();
        short.is_some_and(|short| short.find(input.key, groups, known, rest))
    }

    #[cfg(test)]
    pub(crate) fn is_direct(&self) -> bool {
        self.direct.as_ref().is_some_and(Direct::is_in_use)
    }

    #[cfg(test)]
    pub(crate) fn knows_short_keys(&self) -> bool {
        self.short.as_ref().is_some_and(|short| short.is_in_use())
    }

    /// The difference between the least and the greatest key that was found again, where keys are
    /// numbers.
    pub(crate) fn range(&self) -> Option<u64> {
        self.direct.as_ref().and_then(Direct::range)
    }

    /// Takes note of what [`RowTable::find`] found among this many rows, to find it directly.
    pub(crate) fn learn(
        &mut self,
        input: &GroupInput<'_>,
        looked_up: usize,
        known: &[(u32, u32)],
    ) -> Result<(), Error> {
        let groups = self.groups();
        if let Some(direct) = &mut self.direct {
            direct.learn(&input.key[0], looked_up, known, groups)?;
        }
        if let Some(short) = &mut self.short {
            short.learn(input.key, groups, known);
        }
        Ok(())
    }

    /// Looks the keys of some rows up without adding any.
    pub(crate) fn find(
        &self,
        keys: KeysView<'_>,
        rows: &[u32],
        found: &mut Found,
        scratch: &mut Scratch,
    ) {
        match self.by_second {
            false => self.find_by::<false>(keys, rows, found, scratch),
            true => self.find_by::<true>(keys, rows, found, scratch),
        }
    }

    fn find_by<const SECOND: bool>(
        &self,
        keys: KeysView<'_>,
        rows: &[u32],
        found: &mut Found,
        scratch: &mut Scratch,
    ) {
        let key_start = self.shape.layout.key_start();
        found.clear();
        let mut last: Option<(u32, Option<u32>)> = None;
        for window in rows.chunks(WINDOW_ROWS) {
            let hashes = window.iter().map(|row| keys.hashes[*row as usize]);
            self.look_ahead(hashes, &mut scratch.ahead);
            for (at, row) in window.iter().enumerate() {
                if let Some((head, group)) = last
                    && keys.are_equal(head, *row)
                {
                    match group {
                        Some(group) => found.known.push((*row, group)),
                        None => found.repeats.push(*row),
                    }
                    continue;
                }
                let key = keys.key(*row as usize);
                let hash = match SECOND {
                    false => keys.hashes[*row as usize],
                    true => self.shape.hasher.second_hash(key),
                };
                let start = scratch.ahead.start(at);
                match self
                    .directory
                    .probe_from(start, hash, |r| self.same_key(r, key, key_start))
                {
                    Probe::Found(group) => {
                        found.known.push((*row, group));
                        last = Some((*row, Some(group)));
                    }
                    Probe::Vacant(_) => {
                        found.unknown.push(*row);
                        last = Some((*row, None));
                    }
                }
            }
        }
    }

    /// Brings the states of groups up to date with input rows, as `find` paired them. For layouts
    /// whose groups keep the payload that came first.
    pub(crate) fn update(
        &mut self,
        inputs: &[StateInput],
        known: &[(u32, u32)],
        buffers: &mut RunBuffers,
    ) {
        let shape = Arc::clone(&self.shape);
        let states = &shape.layout.states;
        let runs = GroupRuns::of(known, self.groups(), states.len(), buffers);
        let mut targets = Targets {
            shape: &shape,
            segments: &mut self.segments,
        };
        update_states(states, inputs, &runs, &mut targets);
    }
}
