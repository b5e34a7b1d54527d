//! What a program holds for a client outside of statements: bytes of the budget.
//!
//! **Owns** the account of all clients and how much of the budget it may claim. **Never** knows
//! what the bytes are for: the program that speaks with clients asks before it takes them.
//!
//! Long commands, long data of prepared statements and long rows are no pages: they cannot leave
//! memory. So all clients together get at most half of the budget for them, and one client three
//! quarters of that, which leaves the rest to statements whatever clients send.

use mayfly_space::{Account, AccountOptions, Error, Reservation, Space};
use mayfly_types::{ErrorCode, MySqlError};

use crate::errors::from_space;

/// All clients together may claim one part in this many of the budget.
const CLIENTS_SHARE: u64 = 2;
/// One client may claim so much of that: a value that is sent and sent back is there three times.
const CLIENT_SHARE: (u64, u64) = (3, 4);

/// The account of all clients.
pub(crate) fn account_of_clients(space: &Space) -> Account {
    let limit_bytes = space.memory_bytes() / CLIENTS_SHARE;
    space.root().child("clients", limited_to(limit_bytes))
}

/// The account of one of them.
pub(crate) fn account_of_client(clients: &Account) -> Account {
    clients.child("client", limited_to(limit_bytes(clients)))
}

/// What one client may claim.
fn limit_bytes(clients: &Account) -> u64 {
    all_bytes(clients) / CLIENT_SHARE.1 * CLIENT_SHARE.0
}

/// What all of them may claim.
fn all_bytes(clients: &Account) -> u64 {
    clients.space().memory_bytes() / CLIENTS_SHARE
}

fn limited_to(bytes: u64) -> AccountOptions {
    AccountOptions {
        claim_max_bytes: Some(bytes),
        ..AccountOptions::default()
    }
}

/// Bytes that are held for one client; given back when it is dropped.
#[derive(Debug)]
pub struct ClientMemory(Reservation);

impl ClientMemory {
    /// Some bytes of a client's account.
    ///
    /// # Errors
    /// 1041 where there is no room.
    pub(crate) fn of(client: &Account, bytes: u64) -> Result<ClientMemory, MySqlError> {
        let reserved = client.reserve(bytes);
        let reserved = reserved.map_err(|error| refused(client, bytes, &error))?;
        Ok(ClientMemory(reserved))
    }

    /// Makes the held bytes `bytes`; to hold less never fails.
    ///
    /// # Errors
    /// 1041 where the budget, or the clients' part of it, has no room; nothing changes then.
    pub fn resize(&mut self, bytes: u64) -> Result<(), MySqlError> {
        let resized = self.0.try_resize(bytes);
        resized.map_err(|error| refused(self.0.account(), bytes, &error))
    }
}

fn refused(client: &Account, bytes: u64, error: &Error) -> MySqlError {
    let Error::BudgetExceeded { .. } = error else {
        return from_space(error);
    };
    let message = format!(
        "Out of memory: what the client sent or reads takes {} KiB; one client may hold {} KiB, \
         all of them {} KiB; send less at once or raise --memory",
        bytes.div_ceil(1024),
        limit_bytes(client) / 1024,
        all_bytes(client) / 1024
    );
    MySqlError::with_message(ErrorCode::OutOfResources, message)
}
