//! What all clients share, and the places among `max_connections`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::Result;
use mayfly_session::Engine;
use mayfly_types::MySqlError;
use mayfly_wire::{Peer, too_many_connections};

use super::accounts::ServerAccounts;

/// What all clients share.
pub(super) struct Shared {
    pub(super) engine: Engine,
    pub(super) users: Arc<ServerAccounts>,
    /// The addresses of TCP.
    pub(super) listening: Vec<SocketAddr>,
    pub(super) connections: AtomicU64,
    /// Whether somebody has let go of memory that the program's heaps keep.
    pub(super) has_let_go: AtomicBool,
}

/// A place among `max_connections`: that of a client that has logged in.
pub(super) struct Place(pub(super) Arc<Shared>);

impl Place {
    /// The next place; one more for who can look why there are so many.
    pub(super) fn take(shared: &Arc<Shared>, peer: &Peer) -> Result<Place, MySqlError> {
        let before = shared.connections.fetch_add(1, Ordering::Relaxed);
        let place = Place(Arc::clone(shared));
        match before < shared.places(peer) {
            true => Ok(place),
            false => Err(shared.refuse()),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
        self.0.has_let_go.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    /// The places for clients that come from there.
    pub(super) fn places(&self, peer: &Peer) -> u64 {
        let extra = u64::from(self.users.now().is_own(peer));
        self.engine.max_connections().saturating_add(extra)
    }

    /// Takes note of a client for whom there is no place.
    pub(super) fn refuse(&self) -> MySqlError {
        self.engine.clients().refused_for_number();
        too_many_connections()
    }
}
