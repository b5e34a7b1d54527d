//! Clients that have connected and not logged in.
//!
//! Whoever can reach the port can open connections and say nothing. Such clients must not take the
//! places of those that have a password, nor of each other for long: there is room for some, and
//! where it is full, the next one makes the oldest go, of the host that has most of them. A login
//! takes milliseconds, so who means it is through before its turn to go has come; and who comes
//! from another host is not displaced by a flood from one.
//!
//! **Source**: `MaxStartups` of OpenSSH for the idea of a room of its own.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::login::Peer;

/// The clients in the handshake.
pub(crate) struct PendingLogins {
    max: usize,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// The oldest first.
    clients: Vec<Client>,
    next_number: u64,
}

struct Client {
    number: u64,
    host: Host,
    told_to_go: Arc<Notify>,
}

/// Where clients come from, as far as one is told from another.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Host {
    Address(IpAddr),
    /// A user of this machine.
    User(u32),
}

/// A client's place in the room; dropping it frees the place.
pub(crate) struct Pending<'a> {
    room: &'a PendingLogins,
    number: u64,
    told_to_go: Arc<Notify>,
}

impl PendingLogins {
    /// Room for so many, at least for one.
    pub(crate) fn new(max: usize) -> PendingLogins {
        PendingLogins {
            max: max.max(1),
            waiting: Mutex::default(),
        }
    }

    /// Takes a place, perhaps of another one.
    pub(crate) fn enter(&self, peer: &Peer) -> Pending<'_> {
        let host = match peer {
            Peer::Tcp(address) => Host::Address(address.ip().to_canonical()),
            Peer::Unix { user_id } => Host::User(*user_id),
        };
        let told_to_go = Arc::new(Notify::new());
        let mut waiting = self.lock();
        if waiting.clients.len() >= self.max
            && let Some(place) = waiting.to_go()
        {
            waiting.clients.remove(place).told_to_go.notify_one();
        }
        let number = waiting.next_number;
        waiting.next_number = number.wrapping_add(1);
        waiting.clients.push(Client {
            number,
            host,
            told_to_go: Arc::clone(&told_to_go),
        });
        Pending {
            room: self,
            number,
            told_to_go,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// The place of the oldest client of the host that has most.
    fn to_go(&self) -> Option<usize> {
        let mut counts: HashMap<Host, usize> = HashMap::new();
        for client in &self.clients {
            let count = counts.entry(client.host).or_default();
            *count = count.saturating_add(1);
        }
        let most = counts.values().copied().max()?;
        let of_most = |client: &Client| counts.get(&client.host) == Some(&most);
        self.clients.iter().position(of_most)
    }
}

impl Pending<'_> {
    /// Completes when the client has to go.
    pub(crate) async fn told_to_go(&self) {
        self.told_to_go.notified().await;
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let mut waiting = self.room.lock();
        waiting
            .clients
            .retain(|client| client.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn host(last: u8) -> Peer {
        Peer::Tcp(([10, 0, 0, last], 1).into())
    }

    fn has_to_go(client: &Pending<'_>) -> bool {
        let told = pin!(client.told_to_go());
        told.poll(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    }

    #[test]
    fn the_oldest_of_the_host_with_most_goes() {
        let room = PendingLogins::new(4);
        let quiet = room.enter(&host(1));
        let flood: Vec<Pending<'_>> = (0..3).map(|_| room.enter(&host(2))).collect();
        let next = room.enter(&host(3));
        assert!(has_to_go(&flood[0]));
        assert!(!has_to_go(&flood[1]) && !has_to_go(&flood[2]));
        let more: Vec<Pending<'_>> = (0..10).map(|_| room.enter(&host(2))).collect();
        assert!(!has_to_go(&quiet) && !has_to_go(&next));
        // Two of the flood are left beside them, those that came last.
        let left = more.iter().filter(|client| !has_to_go(client)).count();
        assert_eq!(left, 2);
    }

    #[test]
    fn who_is_through_leaves_its_place() {
        let room = PendingLogins::new(2);
        let first = room.enter(&host(1));
        drop(room.enter(&host(1)));
        let second = room.enter(&host(1));
        assert!(!has_to_go(&first) && !has_to_go(&second));
        let socket = Peer::Unix { user_id: 0 };
        let _third = room.enter(&socket);
        assert!(has_to_go(&first) && !has_to_go(&second));
    }
}
