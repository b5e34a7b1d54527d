//! Those who hold memory only because it makes them faster, and who may take it from them.
//!
//! A claim that does not fit asks them before it fails, if it is one of those that cannot do with
//! less (`takes_memory` of an account). Whom it asks is a matter of the tree: its own statement's
//! operators first, then those of its session, then anybody's; among these the one whose side of
//! the tree claims most.
//!
//! ```text
//!            server                     a claim of `scan` asks `groups` (they meet at
//!            /    \                     statement 1), then `join` (they meet at the server)
//!   statement 1   statement 2
//!    /      \          \
//!  scan    groups      join
//! ```
//!
//! A claim for an admission, without which nobody can begin, is given whatever the others have. Any
//! other one only what is held by sides that claim at least [`MORE`] times as much: memory moves
//! from those who have much to those who have little and not to and fro between equals. Nobody
//! gives anything where all that can be given would not do.
//!
//! **Never** asks an operator for what itself or an account below its own needs: operators divide
//! their own memory better.
//!
//! **Cost**: nothing where a claim fits; else a lock and a walk up the tree for each giver, and at
//! most some 15 ms of this thread where what is given up is still in use.

use std::cell::Cell;
use std::cmp::Reverse;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::gives_memory::GivesMemory;
use super::{Giver, Givers, KIB, Node};
use crate::lock;

/// How many times as much the side of a giver claims, unless the claim is for an admission.
const MORE: u64 = 2;
/// How often it is tried again whether what others give up is free, some 15 ms in all ...
const ROUNDS: u32 = 24;
/// ... and after how many of these tries they are asked for more.
const PATIENCE: u32 = 8;
/// The first pause between two tries; each further one is longer by as much.
const PAUSE: Duration = Duration::from_micros(50);

/// For what a claim is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// Pages or reservations.
    More,
    /// What an account cannot begin without.
    Admission,
}

thread_local! {
    /// Whether this thread asks givers already: one that claims while it gives must not ask others.
    static IS_ASKING: Cell<bool> = const { Cell::new(false) };
}

/// Ends the asking of this thread when it is dropped.
struct Asking;

impl Asking {
    fn begin() -> Option<Asking> {
        let is_first = !IS_ASKING.replace(true);
        is_first.then(|| Asking)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        IS_ASKING.set(false);
    }
}

impl Givers {
    pub(super) fn add(&self, node: &Arc<Node>, operator: Weak<dyn GivesMemory>) {
        let mut givers = lock(&self.0);
        givers.retain(|giver| giver.operator.strong_count() > 0);
        givers.push(Giver {
            node: Arc::downgrade(node),
            operator,
        });
    }

    /// Those who may be asked by `node`, in their order.
    fn of(&self, node: &Node, need: Need) -> Vec<Arc<dyn GivesMemory>> {
        let living = |giver: &Giver| Some((giver.node.upgrade()?, giver.operator.upgrade()?));
        // Without the lock from here on: this may drop the last handle of one.
        let living: Vec<_> = lock(&self.0).iter().filter_map(living).collect();
        let asked = living.into_iter().filter_map(|(place, operator)| {
            let (depth, own, others) = sides(node, &place)?;
            let may_ask = need == Need::Admission || others >= own.saturating_mul(MORE);
            may_ask.then_some((Reverse(depth), Reverse(others), operator))
        });
        let mut asked = Vec::from_iter(asked);
        asked.sort_by_key(|(depth, others, _)| (*depth, *others));
        asked.into_iter().map(|(.., operator)| operator).collect()
    }
}

/// Where two accounts meet, counted from the root, and what each one's side below that claims in
/// KiB; `None` if the other one is the same or above.
fn sides(one: &Node, other: &Node) -> Option<(usize, u64, u64)> {
    let (one, other) = (Vec::from_iter(one.chain()), Vec::from_iter(other.chain()));
    let pairs = one.iter().rev().zip(other.iter().rev());
    let depth = { pairs }
        .take_while(|(a, b)| std::ptr::eq(**a, **b))
        .count();
    let side = |chain: &[&Node]| Some(chain.get(chain.len().checked_sub(depth + 1)?)?.claim_kib());
    Some((depth, side(&one).unwrap_or(0), side(&other)?))
}

impl Node {
    /// Asks givers for `bytes` until `claim` says that they fit or nobody has anything to give.
    pub(super) fn claim_of_givers(&self, bytes: u64, need: Need, claim: impl Fn() -> bool) -> bool {
        match Asking::begin() {
            Some(_asking) => self.ask(bytes, need, claim),
            None => false,
        }
    }

    /// Has anybody give about so many bytes up although all that is claimed fits: pages that are
    /// pinned here and there keep what is free in pieces. Returns how many bytes they gave.
    pub(crate) fn take_for_room(&self, bytes: u64) -> u64 {
        let Some(_asking) = Asking::begin() else {
            return 0;
        };
        let operators = self.root().givers.of(self, Need::Admission);
        given_by(operators, bytes)
    }

    fn ask(&self, bytes: u64, need: Need, claim: impl Fn() -> bool) -> bool {
        if bytes > self.limit_bytes() {
            return false;
        }
        let mut claimed_before = u64::MAX;
        for round in 0..ROUNDS {
            // A table may be with somebody who looks at it.
            std::thread::sleep(PAUSE * round);
            let asks = round % PATIENCE == 0;
            let promised = if asks { self.take(bytes, need) } else { 0 };
            if claim() {
                return true;
            }
            if asks {
                // Those who look at it may wait for this thread.
                let claimed = self.root_claim_bytes();
                if promised == 0 || claimed >= claimed_before {
                    return false;
                }
                claimed_before = claimed;
            }
        }
        false
    }

    /// Has givers give up what is missing of `bytes`; returns how many bytes they did.
    fn take(&self, bytes: u64, need: Need) -> u64 {
        let free = self.limit_bytes().saturating_sub(self.root_claim_bytes());
        let missing = bytes.saturating_sub(free).max(KIB);
        let operators = self.root().givers.of(self, need);
        let spare: u64 = { operators.iter() }
            .map(|operator| operator.spare_bytes())
            .sum();
        if spare < missing {
            return 0;
        }
        given_by(operators, missing)
    }
}

/// Asks operators in turn until they have given so many bytes; returns how many they did.
fn given_by(operators: Vec<Arc<dyn GivesMemory>>, bytes: u64) -> u64 {
    let mut given = 0;
    for operator in operators {
        if given < bytes {
            given += operator.give(bytes - given);
        }
    }
    given
}
