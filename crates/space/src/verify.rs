//! Checks the parts of a space against each other.
//!
//! **Owns** nothing. Used by tests after every step, and by nobody else.

use std::collections::HashMap;

use crate::core::Core;
use crate::lock;
use crate::table::{
    self, ABSENT, EXCLUSIVE, FREE, GATHERED, LISTED, ORPHAN, PINS, RESIDENT, STORED, WRITING,
};

/// Panics if an invariant does not hold. Nothing may be under way.
pub(crate) fn verify(core: &Core) {
    let reading = core.arena.check();
    core.order.check(&core.arena, &core.table);
    let owned: HashMap<_, _> = reading.owned.iter().copied().collect();
    let (mut resident, mut stored_bytes, mut resident_bytes) = (0, 0, 0);
    for id in core.table.ids() {
        let entry = core.table.entry(id);
        let word = entry.load();
        let beside = lock(&entry.beside);
        let state = table::state(word);
        assert!(
            [FREE, RESIDENT, ABSENT].contains(&state),
            "page {id} is in a transient state"
        );
        assert_eq!(
            word & (WRITING | GATHERED | ORPHAN),
            0,
            "page {id} is being written"
        );
        assert_eq!(
            word & STORED != 0,
            beside.slot.is_some(),
            "page {id} and its slot"
        );
        assert_eq!(
            state != FREE,
            beside.account.is_some(),
            "page {id} and its account"
        );
        if let Some(slot) = beside.slot {
            stored_bytes += u64::from(slot.stored_bytes);
        }
        match state {
            RESIDENT => {
                resident += 1;
                resident_bytes += core.arena.len_of(entry.size()) as u64;
                assert_eq!(
                    owned.get(&table::frame(word)),
                    Some(&id),
                    "page {id} and its frame"
                );
                assert!(
                    word & EXCLUSIVE == 0 || word & PINS == 1,
                    "page {id} has one writer"
                );
                assert!(word & (PINS | LISTED) != 0, "page {id} can be found again");
            }
            ABSENT => assert_eq!(word & (PINS | EXCLUSIVE | LISTED), 0, "page {id} is absent"),
            _ => assert_eq!(word, FREE, "page {id} is free"),
        }
    }
    assert_eq!(resident, owned.len(), "frames and resident pages");
    assert_eq!(
        stored_bytes,
        core.files.used_bytes(),
        "slots and used file space"
    );
    assert_eq!(
        stored_bytes,
        core.root.disk_bytes(),
        "slots and the disk quota"
    );
    let held = resident_bytes + reading.outside_bytes;
    assert_eq!(core.root.held_bytes(), held, "accounts and memory");
    assert_eq!(core.arena.held_bytes(), held, "the arena and memory");
    let most = core.options.memory_bytes + core.arena.slack_bytes();
    assert!(
        reading.backed_bytes + reading.outside_bytes <= most,
        "backed memory and the budget"
    );
    assert!(
        core.root.check() * 1024 <= core.options.memory_bytes,
        "claims and the budget"
    );
}
