//! Where clients come in: TCP and Unix sockets.
//!
//! Accepting is apart from serving, so that a program decides on which thread a client is served.

use std::io;

use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use crate::endpoint::Endpoint;
use crate::error::ConnectionError;
use crate::login::Peer;
use crate::server::Server;

/// A socket that clients connect to.
#[derive(Debug)]
pub enum Listener {
    /// TCP.
    Tcp(TcpListener),
    /// A Unix socket.
    Unix(UnixListener),
}

/// A client that has connected and not been greeted.
#[derive(Debug)]
pub struct Incoming {
    socket: Socket,
    peer: Peer,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Listener {
    /// Waits for the next client. May be dropped without losing one.
    ///
    /// # Errors
    /// Those of the system. Most concern one client that is gone again; without descriptors or
    /// memory the next call fails as well, so wait a little before it.
    pub async fn accept(&self) -> io::Result<Incoming> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                // Answers are written whole: there is nothing to gather.
                stream.set_nodelay(true)?;
                // A client whose machine is gone is found by the kernel, as MySQL does.
                SockRef::from(&stream).set_keepalive(true)?;
                Ok(Incoming {
                    socket: Socket::Tcp(stream),
                    peer: Peer::Tcp(address),
                })
            }
            Listener::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let user_id = stream.peer_cred()?.uid();
                Ok(Incoming {
                    socket: Socket::Unix(stream),
                    peer: Peer::Unix { user_id },
                })
            }
        }
    }
}

impl Incoming {
    /// Where the client comes from.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }
}

impl<S: Server> Endpoint<S> {
    /// Speaks with a client until it goes, as [`serve`](Endpoint::serve).
    ///
    /// # Errors
    /// As [`serve`](Endpoint::serve).
    pub async fn serve_incoming(&self, incoming: Incoming) -> Result<(), ConnectionError> {
        match incoming.socket {
            Socket::Tcp(stream) => self.serve(stream, incoming.peer).await,
            Socket::Unix(stream) => self.serve(stream, incoming.peer).await,
        }
    }
}
