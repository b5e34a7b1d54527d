//! One connection from its first byte to its last.
//!
//! ```text
//!   admit -> greeting -> [TLS] -> response -> authenticate -> connect -> OK -> commands -> end
//! ```

use std::io;
use std::sync::{Arc, Mutex};

use bytes::BytesMut;
use mayfly_types::CharacterSet;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::watch;

use crate::auth::{Method, Nonce, random_without_zeros};
use crate::bytes_in::Reader;
use crate::clock::within;
use crate::compression::{self, Compressor, Decompressor};
use crate::encoding::TextEncoding;
use crate::error::{
    ConnectionError, Failure, bad_handshake, internal, packets_out_of_order,
    secure_transport_required,
};
use crate::flags::Capabilities;
use crate::handshake::{
    Attempt, ChangeUser, Gate, PACKET_BYTES_MAX, Response, is_ssl_request, offered, write_greeting,
};
use crate::login::{Account, Login, Peer};
use crate::packets;
use crate::pending::PendingLogins;
use crate::receiver::{Receiver, lock};
use crate::reply::Reply;
use crate::sender::{HEADER_BYTES, Sender};
use crate::server::Server;
use crate::settings::Settings;
use crate::summary::Summary;

/// A server that speaks the protocol. Cheap to share: one for all connections of a program.
pub struct Endpoint<S> {
    // fixed
    pub(crate) server: S,
    pub(crate) settings: Settings,
    // state
    gate: Gate,
    pending: PendingLogins,
    stopping: watch::Sender<Stopping>,
}

/// What a server that stops asks of its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stopping {
    #[default]
    No,
    /// To end after the statement.
    Soon,
    /// To end amid the statement.
    Now,
}

/// A client that has logged in.
pub(crate) struct Opened<C> {
    pub(crate) connection: C,
    pub(crate) login: Login,
    pub(crate) reply: Reply,
}

/// Bytes from and to a client.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl<S: Server> Endpoint<S> {
    /// Makes a server speak.
    pub fn new(server: S, settings: Settings) -> Endpoint<S> {
        Endpoint {
            pending: PendingLogins::new(settings.max_pending_logins),
            server,
            settings,
            gate: Gate::default(),
            stopping: watch::Sender::new(Stopping::No),
        }
    }

    /// The server behind it.
    pub fn server(&self) -> &S {
        &self.server
    }

    /// Tells all connections to end: idle ones at once, others after their statement. Those that
    /// come later are refused by [`Server::admit`].
    pub fn stop(&self) {
        self.stopping.send_replace(Stopping::Soon);
    }

    /// Tells all connections to end amid their statements, whose clients get error 1053.
    pub fn stop_now(&self) {
        self.stopping.send_replace(Stopping::Now);
    }

    pub(crate) fn stopping(&self) -> watch::Receiver<Stopping> {
        self.stopping.subscribe()
    }

    /// Lets a client log in, within the time and the places that there are for it; `None` if it
    /// left before it said anything.
    pub(crate) async fn let_in<T>(
        &self,
        stream: T,
        peer: &Peer,
    ) -> Result<Option<Opened<S::Connection>>, ConnectionError>
    where
        T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let limit = self.settings.connect_timeout;
        let pending = self.pending.enter(peer);
        tokio::select! {
            biased;
            opened = within(limit, Box::pin(self.open(stream, peer.clone()))) => {
                opened.unwrap_or(Err(ConnectionError::HandshakeTimeout))
            }
            () = pending.told_to_go() => Err(ConnectionError::Displaced),
        }
    }

    /// The handshake; `None` if the client left it before it said anything.
    async fn open<T>(
        &self,
        stream: T,
        peer: Peer,
    ) -> Result<Option<Opened<S::Connection>>, ConnectionError>
    where
        T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let mut stream: Box<dyn Stream> = Box::new(stream);
        let (connection_id, place) = match self.server.admit(&peer) {
            Ok(admitted) => admitted,
            Err(error) => {
                let (_, mut sender) = self.halves(stream, 0);
                sender.packet(|out| packets::write_error_before_greeting(out, &error));
                sender.flush().await?;
                sender.close().await;
                return Err(error.into());
            }
        };
        let nonce: Nonce = random_without_zeros().map_err(|error| internal(&error.to_string()))?;
        let mut greeting = BytesMut::new();
        write_greeting(&mut greeting, &self.settings, connection_id, &nonce);
        write_first(&mut stream, &greeting).await?;
        let Some(mut packet) = read_first(&mut stream, 1).await? else {
            return Ok(None);
        };
        let mut tls = None;
        if let Some(upgrade) = &self.settings.tls
            && is_ssl_request(&packet)
        {
            let (encrypted, info) = upgrade.upgrade(stream).await?;
            stream = Box::new(encrypted);
            tls = Some(info);
            let again = read_first(&mut stream, 2).await?;
            packet = again
                .ok_or(io::ErrorKind::UnexpectedEof)
                .map_err(io::Error::from)?;
        }
        let sequence = if tls.is_some() { 3 } else { 2 };
        let (receiver, mut sender) = self.halves(stream, sequence);
        let offered = offered(&self.settings);
        let Ok(response) = Response::parse(&packet, offered) else {
            let error = bad_handshake();
            sender.packet(|out| packets::write_error(out, &error, TextEncoding::default()));
            sender.flush().await?;
            sender.close().await;
            return Err(error.into());
        };
        let receiver = Arc::new(Mutex::new(receiver));
        let mut reply = Reply::new(response.capabilities, &self.settings, sender, receiver);
        let capabilities = response.capabilities;
        let method = method_of(response.method_name, capabilities);
        let mut login = Login {
            connection_id,
            user: text_of(response.user, u16::from(response.collation_id)),
            peer,
            database: response.database.map(<[u8]>::to_vec),
            collation_id: u16::from(response.collation_id),
            attributes: response.attributes,
            interactive: capabilities.contains(Capabilities::INTERACTIVE),
            found_rows: capabilities.contains(Capabilities::FOUND_ROWS),
            ignore_space: capabilities.contains(Capabilities::IGNORE_SPACE),
            tls,
        };
        let answered = (method, response.answer, Some(nonce));
        let opened = match self.authenticate(&mut reply, &login, answered).await {
            Ok(()) => self
                .server
                .connect(place, &login)
                .await
                .map_err(Failure::Protocol),
            Err(failure) => Err(failure),
        };
        let mut connection = match opened {
            Ok(connection) => connection,
            Err(failure) => return Err(end(&mut reply, failure).await),
        };
        let compression = compression_of(capabilities, response.zstd_level);
        self.welcome(&mut reply, &mut connection, compression)
            .await?;
        login.attributes.shrink_to_fit();
        Ok(Some(Opened {
            connection,
            login,
            reply,
        }))
    }

    /// Tells a client that it is logged in, and goes on as both sides agreed.
    async fn welcome(
        &self,
        reply: &mut Reply,
        connection: &mut S::Connection,
        compression: Option<compression::Method>,
    ) -> Result<(), ConnectionError> {
        reply.set_text_encoding(crate::server::Connection::text_encoding(connection));
        let summary = Summary {
            changes: crate::server::Connection::changes(connection),
            ..Summary::new(crate::server::Connection::status(connection))
        };
        reply.end_result(&summary, packets::OK);
        reply.sender.flush().await?;
        if let Some(memory) = crate::server::Connection::memory(connection) {
            reply.sender.share().pay_by(memory);
        }
        let max = crate::server::Connection::max_packet_bytes(connection);
        reply.set_max_packet_bytes(max.unwrap_or(self.settings.max_packet_bytes));
        if let Some(method) = compression {
            reply.sender.compress(Compressor::new(method)?);
            lock(&reply.receiver).decompress(Decompressor::new(method)?);
        }
        Ok(())
    }

    /// Splits a stream; the client's next packet and ours have that number.
    fn halves(&self, stream: Box<dyn Stream>, sequence: u8) -> (Receiver, Sender) {
        let (read, write) = tokio::io::split(stream);
        let receiver = Receiver::new(Box::new(read), PACKET_BYTES_MAX);
        let share = receiver.share().another();
        let mut sender = Sender::new(Box::new(write), self.settings.write_timeout, share);
        sender.set_sequence(sequence);
        (receiver, sender)
    }

    /// Finds out whether a client is who it says.
    async fn authenticate(
        &self,
        reply: &mut Reply,
        login: &Login,
        (method, answer, nonce): (Option<Method>, &[u8], Option<Nonce>),
    ) -> Result<(), Failure> {
        let is_private = login.tls.is_some() || login.peer.is_private();
        if self.settings.require_secure_transport && !is_private {
            return Err(Failure::Protocol(secure_transport_required()));
        }
        let account: Option<Account> = self.server.account(&login.user, &login.peer).await;
        let attempt = Attempt {
            user: &login.user,
            peer: &login.peer,
            is_private,
            default_method: self.settings.default_method,
            method,
            answer,
            nonce,
        };
        let checked = self.gate.check(reply, account.as_ref(), &attempt).await;
        if let Err(Failure::Protocol(error)) = &checked
            && error.is(mayfly_types::ErrorCode::AccessDenied)
        {
            let wait = self.gate.throttle.failed(&login.peer);
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
        }
        checked
    }

    /// Authenticates the user of a COM_CHANGE_USER; gives its login.
    pub(crate) async fn change_user(
        &self,
        reply: &mut Reply,
        packet: &[u8],
        before: &Login,
    ) -> Result<Login, Failure> {
        let capabilities = reply.capabilities();
        let asked = ChangeUser::parse(packet, capabilities)
            .map_err(|malformed| Failure::Protocol(malformed.into()))?;
        let collation_id = asked.collation_id.unwrap_or(before.collation_id);
        let login = Login {
            user: text_of(asked.user, collation_id),
            database: asked.database.map(<[u8]>::to_vec),
            collation_id,
            attributes: asked.attributes,
            ..before.clone()
        };
        let method = method_of(asked.method_name, capabilities);
        // The answer may be to the nonce of the greeting or to one since: none counts, the client
        // is asked again.
        let answered = (method, asked.answer, None);
        // What it is asked is as short as in the handshake.
        lock(&reply.receiver).set_max_packet_bytes(PACKET_BYTES_MAX);
        let authenticated = within(
            self.settings.connect_timeout,
            self.authenticate(reply, &login, answered),
        );
        let authenticated = authenticated.await;
        lock(&reply.receiver).set_max_packet_bytes(reply.max_packet_bytes);
        match authenticated {
            Some(Ok(())) => Ok(login),
            Some(Err(failure)) => Err(failure),
            None => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
        }
    }
}

/// Tells a client why it is refused.
pub(crate) async fn end(reply: &mut Reply, failure: Failure) -> ConnectionError {
    if let Failure::Statement(error) | Failure::Protocol(error) = &failure {
        reply.write_error(error);
        if let Err(error) = reply.sender.flush().await {
            return error.into();
        }
        reply.sender.close().await;
    }
    failure.into()
}

/// A name of the handshake, in the character set that the client speaks.
fn text_of(name: &[u8], collation_id: u16) -> String {
    let named = CharacterSet::of_collation_id(collation_id).ok().flatten();
    let (set, _) = named.unwrap_or_default();
    match set.decode(name) {
        Ok(name) => name.into_owned(),
        // No user has such a name.
        Err(_) => String::from_utf8_lossy(name).into_owned(),
    }
}

fn method_of(name: Option<&[u8]>, capabilities: Capabilities) -> Option<Method> {
    match capabilities.contains(Capabilities::PLUGIN_AUTH) {
        true => Method::parse(name?),
        false => Some(Method::Native),
    }
}

fn compression_of(capabilities: Capabilities, zstd_level: u8) -> Option<compression::Method> {
    if capabilities.contains(Capabilities::COMPRESS) {
        Some(compression::Method::Zlib)
    } else if capabilities.contains(Capabilities::ZSTD_COMPRESSION_ALGORITHM) {
        Some(compression::Method::Zstd(zstd_level))
    } else {
        None
    }
}

/// Writes the greeting.
async fn write_first(stream: &mut Box<dyn Stream>, payload: &[u8]) -> io::Result<()> {
    use tokio::io::AsyncWriteExt;
    let mut packet = crate::sender::header(payload.len(), 0).to_vec();
    packet.extend_from_slice(payload);
    stream.write_all(&packet).await?;
    stream.flush().await
}

/// Reads one packet and not a byte more: what follows may be TLS, and what came before it in
/// plain must not count as said under it. `None` if the client is gone.
async fn read_first(
    stream: &mut Box<dyn Stream>,
    sequence: u8,
) -> Result<Option<Vec<u8>>, ConnectionError> {
    let mut header = [0; HEADER_BYTES];
    match stream.read_exact(&mut header).await {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let mut reader = Reader::new(&header);
    let (len, number) = match (reader.u24(), reader.u8()) {
        (Ok(len), Ok(number)) => (len, number),
        _ => return Err(bad_handshake().into()),
    };
    if number != sequence {
        return Err(packets_out_of_order().into());
    }
    if len > PACKET_BYTES_MAX {
        return Err(bad_handshake().into());
    }
    // Grows with what comes, not with what is promised.
    let mut packet = Vec::new();
    stream.take(len as u64).read_to_end(&mut packet).await?;
    match packet.len() == len {
        true => Ok(Some(packet)),
        false => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
    }
}
