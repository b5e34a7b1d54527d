//! Slows down those who guess.
//!
//! The answer to a failed login waits, longer each time; a right password never waits. Who guesses
//! on many connections at once holds many places of `max_connections` while it waits.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::login::Peer;

/// Failures that do not wait: people mistype.
const FREE_FAILURES: u32 = 3;
/// The first wait; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// Failures older than this are forgotten.
const MEMORY: Duration = Duration::from_secs(300);
/// Hosts that are remembered; beyond it the oldest is forgotten.
const HOSTS_MAX: usize = 4096;

/// Counts failures by host.
#[derive(Default)]
pub(crate) struct Throttle {
    failures: Mutex<HashMap<String, Failures>>,
}

struct Failures {
    count: u32,
    last: Instant,
}

impl Throttle {
    /// Counts a failure; gives the time that its answer must wait.
    pub(crate) fn failed(&self, peer: &Peer) -> Duration {
        let now = Instant::now();
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let key = match peer {
            Peer::Unix { user_id } => format!("uid {user_id}"),
            Peer::Tcp(address) => address.ip().to_string(),
        };
        if failures.len() >= HOSTS_MAX && !failures.contains_key(&key) {
            failures.retain(|_, of| now.duration_since(of.last) < MEMORY);
            let oldest = failures.iter().min_by_key(|(_, of)| of.last);
            if let Some(oldest) = oldest.map(|(host, _)| host.clone())
                && failures.len() >= HOSTS_MAX
            {
                failures.remove(&oldest);
            }
        }
        let of = failures.entry(key).or_insert(Failures {
            count: 0,
            last: now,
        });
        if now.duration_since(of.last) >= MEMORY {
            of.count = 0;
        }
        of.count = of.count.saturating_add(1);
        of.last = now;
        wait(of.count)
    }
}

fn wait(count: u32) -> Duration {
    match count.checked_sub(FREE_FAILURES + 1) {
        None => Duration::ZERO,
        Some(doublings) => FIRST_WAIT
            .saturating_mul(2_u32.saturating_pow(doublings))
            .min(LONGEST_WAIT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fourth_failure_waits_and_so_on() {
        let throttle = Throttle::default();
        let peer = Peer::Unix { user_id: 7 };
        let waits: Vec<u128> = (0..12)
            .map(|_| throttle.failed(&peer).as_millis())
            .collect();
        assert_eq!(
            waits,
            [0, 0, 0, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000]
        );
        assert_eq!(throttle.failed(&Peer::Unix { user_id: 8 }), Duration::ZERO);
    }

    #[test]
    fn memory_is_bounded() {
        let throttle = Throttle::default();
        for user_id in 0..HOSTS_MAX as u32 + 10 {
            throttle.failed(&Peer::Unix { user_id });
        }
        let failures = throttle.failures.lock().expect("no panic held it");
        assert_eq!(failures.len(), HOSTS_MAX);
    }
}
