//! Finds out whether a client is who it says.
//!
//! Every way to fail ends in the same error after the same packets: a user that does not exist is
//! asked for its password by the default method, and what it sends is compared with a decoy.

use std::sync::Arc;

use crate::aside::aside;
use crate::auth::caching_sha2::{self, Cache};
use crate::auth::crypt::PASSWORD_BYTES_MAX;
use crate::auth::rsa::{CIPHERTEXT_BYTES, RsaKey};
use crate::auth::throttle::Throttle;
use crate::auth::{Method, NONCE_BYTES, Nonce, Secret, ShaCryptHash, native, random_without_zeros};
use crate::bytes_out::{put_terminated, put_u8};
use crate::error::{Failure, access_denied, internal, old_protocol};
use crate::flags::Capabilities;
use crate::login::{Account, Peer};
use crate::packets;
use crate::reply::Reply;

/// First byte of a packet with more data of a method.
const MORE_DATA: u8 = 0x01;
/// `caching_sha2_password`: the answer was right.
const FAST_AUTH_SUCCESS: u8 = 0x03;
/// `caching_sha2_password`: send the password.
const PERFORM_FULL_AUTH: u8 = 0x04;
/// `caching_sha2_password`: the client asks for the RSA key.
const REQUEST_PUBLIC_KEY: u8 = 0x02;

/// What all logins of a server share.
#[derive(Default)]
pub(crate) struct Gate {
    cache: Cache,
    rsa: Arc<RsaKey>,
    pub(crate) throttle: Throttle,
}

/// A client that says who it is.
pub(crate) struct Attempt<'a> {
    pub(crate) user: &'a str,
    pub(crate) peer: &'a Peer,
    /// Whether nobody can read along: TLS or a Unix socket.
    pub(crate) is_private: bool,
    pub(crate) default_method: Method,
    /// The method that the client answered by.
    pub(crate) method: Option<Method>,
    pub(crate) answer: &'a [u8],
    /// What it answered; `None` if that must not count.
    pub(crate) nonce: Option<Nonce>,
}

impl Gate {
    /// Lets a client in, or gives 1045.
    pub(crate) async fn check(
        &self,
        reply: &mut Reply,
        account: Option<&Account>,
        attempt: &Attempt<'_>,
    ) -> Result<(), Failure> {
        if let (Some(account), Peer::Unix { user_id }) = (account, attempt.peer)
            && account.socket_user_id == Some(*user_id)
            // A password that can be compared is.
            && (is_empty(attempt.answer) || matches!(account.secret, Secret::Locked))
        {
            // A client that cannot load what it would use calls itself by another name, and does
            // not understand an OK before it was asked for something that it knows.
            if attempt.method.is_none() && reply.has(Capabilities::PLUGIN_AUTH) {
                let nonce = random_without_zeros()
                    .map_err(|error| Failure::Protocol(internal(&error.to_string())))?;
                switch(reply, Method::Native, &nonce).await?;
                return Ok(());
            }
            // A client of this method waits for a word before the OK.
            if attempt.method == Some(Method::CachingSha2) && !is_empty(attempt.answer) {
                more_data(reply, &[FAST_AUTH_SUCCESS]);
            }
            return Ok(());
        }
        let secret = account.map(|account| &account.secret);
        let wanted = match secret {
            Some(secret) => secret.method(),
            None => Some(attempt.default_method),
        };
        let method = wanted.or(attempt.method).unwrap_or(attempt.default_method);
        let mut answer = attempt.answer.to_vec();
        let nonce = match attempt.nonce {
            Some(nonce) if attempt.method == Some(method) => nonce,
            _ => {
                let nonce = random_without_zeros()
                    .map_err(|error| Failure::Protocol(internal(&error.to_string())))?;
                answer = switch(reply, method, &nonce).await?;
                nonce
            }
        };
        let is_right = match method {
            Method::Native => match secret {
                Some(Secret::Empty) => is_empty(&answer),
                Some(Secret::Native(hash)) => native::verify(&answer, &nonce, hash),
                // What costs the same.
                _ => native::verify(&answer, &nonce, &[0; 20]) & false,
            },
            Method::CachingSha2 => {
                self.check_sha2(reply, secret, &answer, &nonce, attempt)
                    .await?
            }
        };
        match is_right {
            true => Ok(()),
            false => Err(Failure::Protocol(access_denied(
                attempt.user,
                &attempt.peer.host(),
                !is_empty(&answer),
            ))),
        }
    }

    async fn check_sha2(
        &self,
        reply: &mut Reply,
        secret: Option<&Secret>,
        answer: &[u8],
        nonce: &Nonce,
        attempt: &Attempt<'_>,
    ) -> Result<bool, Failure> {
        if is_empty(answer) {
            return Ok(matches!(secret, Some(Secret::Empty)));
        }
        let stored = match secret {
            Some(Secret::CachingSha2(hash)) => Some(hash),
            _ => None,
        };
        if let Some(cached) = stored.and_then(|hash| self.cache.get(hash))
            && caching_sha2::verify(answer, nonce, &cached)
        {
            more_data(reply, &[FAST_AUTH_SUCCESS]);
            return Ok(true);
        }
        more_data(reply, &[PERFORM_FULL_AUTH]);
        let Some(password) = self.ask_password(reply, nonce, attempt).await? else {
            return Ok(false);
        };
        if password.len() > PASSWORD_BYTES_MAX {
            return Ok(false);
        }
        let hash = stored.cloned().unwrap_or_else(ShaCryptHash::decoy);
        let exists = stored.is_some();
        let checked = aside(move || {
            let is_right = hash.verify(&password) & exists;
            (is_right, hash, password)
        });
        let (is_right, hash, password) = checked.await.map_err(Failure::Protocol)?;
        if is_right {
            self.cache.put(&hash, &password);
        }
        Ok(is_right)
    }

    /// The password itself, over a way that nobody reads or under the server's key.
    async fn ask_password(
        &self,
        reply: &mut Reply,
        nonce: &Nonce,
        attempt: &Attempt<'_>,
    ) -> Result<Option<Vec<u8>>, Failure> {
        let mut packet = reply.ask().await?;
        let is_plain = |packet: &[u8]| packet.len() != CIPHERTEXT_BYTES && packet.len() > 1;
        // MariaDB's clients take a loopback address for a private way; their password has come
        // already, to refuse it would protect nothing.
        if attempt.is_private || (attempt.peer.is_loopback() && is_plain(&packet)) {
            return Ok(packet.strip_suffix(&[0]).map(<[u8]>::to_vec));
        }
        let rsa = Arc::clone(&self.rsa);
        let made = aside(move || rsa.pair()).await;
        let Some(pair) = made.map_err(Failure::Protocol)? else {
            return Ok(None);
        };
        if *packet == [REQUEST_PUBLIC_KEY] {
            more_data(reply, &pair.public_pem);
            packet = reply.ask().await?;
        }
        let nonce = *nonce;
        let decrypted = aside(move || pair.decrypt(&packet, &nonce)).await;
        decrypted.map_err(Failure::Protocol)
    }
}

/// Clients without a password send nothing, or a zero.
fn is_empty(answer: &[u8]) -> bool {
    matches!(answer, [] | [0])
}

fn more_data(reply: &mut Reply, data: &[u8]) {
    reply.sender.packet(|out| {
        put_u8(out, MORE_DATA);
        out.extend_from_slice(data);
    });
}

/// `Protocol::AuthSwitchRequest`.
async fn switch(
    reply: &mut Reply,
    method: Method,
    nonce: &[u8; NONCE_BYTES],
) -> Result<Vec<u8>, Failure> {
    if !reply.has(Capabilities::PLUGIN_AUTH) {
        return Err(Failure::Protocol(old_protocol()));
    }
    reply.sender.packet(|out| {
        put_u8(out, packets::EOF);
        put_terminated(out, method.name().as_bytes());
        put_terminated(out, nonce);
    });
    Ok(reply.ask().await?.to_vec())
}
