//! The rows of a batch by their groups: one by one as they come or, where groups are few, all rows
//! of a group behind each other.
//!
//! **Cost.** Ordering takes two passes over the batch, once for all states; each state then has its
//! value in registers for as long as a run lasts.
//!
//! **Source**: counting sort (Knuth, volume 3, 5.2), by the place in order of appearance.

/// Groups up to which rows are put in the order of their groups: numbers of so many stay in the
/// first-level cache.
const GROUPS_MAX: usize = 256;

/// Rows a group of a batch from which on that pays.
const ROWS_A_GROUP: usize = 16;

/// States from which on that pays.
const STATES_MIN: usize = 3;

/// Slots of the map from references to numbers: four for each group.
const SLOT_BITS: u32 = GROUPS_MAX.ilog2() + 2;

/// Buffers that are kept between batches.
#[derive(Default)]
pub(crate) struct RunBuffers {
    /// A reference plus one, and the number of its group; zero is vacant.
    slots: Vec<(u32, u16)>,
    /// The number of the group of each row.
    numbers: Vec<u16>,
    /// The group of each run and where its rows end.
    runs: Vec<(u32, u32)>,
    rows: Vec<u32>,
}

/// Rows of a batch with the references of their groups.
pub(crate) enum GroupRuns<'a> {
    /// Each row with its group.
    Single(&'a [(u32, u32)]),
    /// The group of each run and where its rows end.
    Ordered {
        runs: &'a [(u32, u32)],
        rows: &'a [u32],
    },
}

impl GroupRuns<'_> {
    /// The rows of `pairs`, in the order of their groups if those are few; there are at most
    /// `groups` of them, and as many `states` will look at the rows.
    pub(crate) fn of<'a>(
        pairs: &'a [(u32, u32)],
        groups: usize,
        states: usize,
        buffers: &'a mut RunBuffers,
    ) -> GroupRuns<'a> {
        let few = groups <= GROUPS_MAX && pairs.len() >= ROWS_A_GROUP * groups;
        if !few || states < STATES_MIN {
            return GroupRuns::Single(pairs);
        }
        buffers.order(pairs);
        GroupRuns::Ordered {
            runs: &buffers.runs,
            rows: &buffers.rows,
        }
    }

    /// Calls `each` with the reference of a group and rows of it, until all rows were there; those
    /// of one group come in their order.
    #[inline]
    pub(crate) fn for_each(&self, mut each: impl FnMut(u32, &[u32])) {
        match self {
            GroupRuns::Single(pairs) => {
                for (row, group) in *pairs {
                    each(*group, std::slice::from_ref(row));
                }
            }
            GroupRuns::Ordered { runs, rows } => {
                let mut start = 0;
                for (group, end) in *runs {
                    let end = *end as usize;
                    each(*group, &rows[start..end]);
                    start = end;
                }
            }
        }
    }
}

impl RunBuffers {
    fn order(&mut self, pairs: &[(u32, u32)]) {
        self.slots.clear();
        self.slots.resize(1 << SLOT_BITS, (0, 0));
        self.numbers.clear();
        self.runs.clear();
        // First the rows of each group are counted.
        for (_, group) in pairs {
            let number = self.number_of(*group);
            self.numbers.push(number);
            self.runs[usize::from(number)].1 += 1;
        }
        // Then counts become starts, and the starts become ends while rows go in.
        let mut start = 0;
        for (_, count) in &mut self.runs {
            start += std::mem::replace(count, start);
        }
        self.rows.clear();
        self.rows.resize(pairs.len(), 0);
        for ((row, _), number) in pairs.iter().zip(&self.numbers) {
            let next = &mut self.runs[usize::from(*number)].1;
            self.rows[*next as usize] = *row;
            *next += 1;
        }
    }

    /// The number of a group, in the order in which groups appear.
    #[inline]
    fn number_of(&mut self, group: u32) -> u16 {
        // Multiplicative hashing (Knuth, volume 3, 6.4) by the golden ratio.
        let mut slot = (group.wrapping_mul(0x9E37_79B9) >> (32 - SLOT_BITS)) as usize;
        loop {
            let (found, number) = self.slots[slot];
            if found == group + 1 {
                return number;
            }
            if found == 0 {
                let number = u16::try_from(self.runs.len()).expect("groups are few");
                self.slots[slot] = (group + 1, number);
                self.runs.push((group, 0));
                return number;
            }
            slot = (slot + 1) & ((1 << SLOT_BITS) - 1);
        }
    }
}
