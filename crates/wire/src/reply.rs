//! The answer to a command, written while it is computed.
//!
//! ```text
//!   done:  OK
//!   rows:  count, columns, [EOF], row, row, ..., EOF     EOF is an OK with the header 0xFE for
//!   error: ERR, in the middle of rows too                clients that deprecate EOF
//! ```
//!
//! Packets gather in one buffer; it goes to the socket when it holds [`FLUSH_BYTES`] or the
//! command is over, so that a small answer is one system call. Whoever writes rows waits while the
//! client does not read: that is the back-pressure of a large result.
//!
//! **Source**: "Text Resultset", "Binary Protocol Resultset", "OK_Packet", "EOF_Packet",
//! WL#7766 (EOF deprecated), WL#4797 (session tracking).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mayfly_types::MySqlError;

use crate::column::ColumnDefinition;
use crate::encoding::TextEncoding;
use crate::error::{Failure, internal};
use crate::flags::{Capabilities, ServerStatus};
use crate::packets;
use crate::receiver::{self, SharedReceiver, lock};
use crate::sender::Sender;
use crate::settings::Settings;
use crate::summary::{Format, Summary};

/// Bytes of packets that are worth a system call: a quarter of what a socket takes at once.
pub(crate) const FLUSH_BYTES: usize = 32 << 10;

/// How far an answer has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A result must follow.
    Open,
    /// Rows are being written.
    Rows,
    /// The last result ended.
    Over,
}

/// The answer to one command. Lives as long as the connection.
pub struct Reply {
    // fixed
    capabilities: Capabilities,
    pub(crate) max_packet_bytes: usize,
    pub(crate) read_timeout: Duration,
    // state
    pub(crate) format: Format,
    pub(crate) multi_statements: bool,
    pub(crate) encoding: TextEncoding,
    pub(crate) file_is_open: bool,
    state: State,
    // resources
    pub(crate) sender: Sender,
    pub(crate) receiver: SharedReceiver,
}

impl Reply {
    pub(crate) fn new(
        capabilities: Capabilities,
        settings: &Settings,
        sender: Sender,
        receiver: SharedReceiver,
    ) -> Reply {
        Reply {
            capabilities,
            max_packet_bytes: settings.max_packet_bytes,
            read_timeout: settings.read_timeout,
            format: Format::Text,
            multi_statements: capabilities.contains(Capabilities::MULTI_STATEMENTS),
            encoding: TextEncoding::default(),
            file_is_open: false,
            state: State::Open,
            sender,
            receiver,
        }
    }

    /// Whether the text of a command may hold several statements. If not, what follows the first
    /// is a syntax error.
    pub fn allows_multi_statements(&self) -> bool {
        self.multi_statements
    }

    /// Whether the client understands several results of one command: CALL needs it.
    pub fn allows_multi_results(&self) -> bool {
        let needed = match self.format {
            Format::Text => Capabilities::MULTI_RESULTS,
            Format::Binary => Capabilities::PS_MULTI_RESULTS,
        };
        self.capabilities.contains(needed)
    }

    /// Bytes of answers of this connection so far: what was sent, compressed if it was, and what
    /// waits in the buffer.
    pub fn bytes_sent(&self) -> u64 {
        self.sender.total_bytes()
    }

    /// Whether what is told of the session goes to the client: with an answer without rows, and
    /// with the end of rows where that is an OK packet. What is not told can wait for the next.
    pub fn tells_changes(&self, has_rows: bool) -> bool {
        self.capabilities.contains(Capabilities::SESSION_TRACK)
            && (!has_rows || self.deprecates_eof())
    }

    /// Bytes of commands, and of files, of this connection so far.
    pub fn bytes_received(&self) -> u64 {
        lock(&self.receiver).total_bytes()
    }

    /// Whether the client may be asked for a file.
    pub fn allows_local_infile(&self) -> bool {
        self.capabilities.contains(Capabilities::LOCAL_FILES)
    }

    /// Sets how texts are written from the next result on: `character_set_results`. A statement
    /// that may have changed it says so before its result; after a login, a reset and a change of
    /// the user [`Connection::text_encoding`](crate::Connection::text_encoding) is asked.
    pub fn set_text_encoding(&mut self, encoding: TextEncoding) {
        self.encoding = encoding;
    }

    /// Sets how long commands and rows may be.
    pub(crate) fn set_max_packet_bytes(&mut self, bytes: usize) {
        self.max_packet_bytes = bytes;
        lock(&self.receiver).set_max_packet_bytes(bytes);
    }

    /// Answers with no rows.
    ///
    /// # Errors
    /// [`Failure::Transport`] when the client is gone.
    pub async fn done(&mut self, summary: &Summary) -> Result<(), Failure> {
        self.finish_file().await?;
        self.begin_result()?;
        self.end_result(summary, packets::OK);
        self.relieve().await
    }

    /// Tells the client of the columns of a result.
    pub(crate) async fn begin_rows(
        &mut self,
        columns: &[ColumnDefinition],
        status: ServerStatus,
    ) -> Result<(), Failure> {
        self.finish_file().await?;
        self.begin_result()?;
        self.state = State::Rows;
        self.write_columns(columns, 0, status).await
    }

    /// Makes ready for the answer to a command.
    pub(crate) fn begin_command(&mut self, format: Format) {
        self.format = format;
        self.state = State::Open;
    }

    /// Ends a command whose implementation came back well.
    pub(crate) fn check_ended(&self) -> Result<(), MySqlError> {
        match self.state {
            State::Over => Ok(()),
            State::Open => Err(internal("the statement ended without a result")),
            State::Rows => Err(internal("the statement ended amid its rows")),
        }
    }

    fn begin_result(&self) -> Result<(), MySqlError> {
        match self.state {
            State::Open => Ok(()),
            State::Rows => Err(internal("a result amid the rows of another")),
            State::Over => Err(internal("a result that was not announced")),
        }
    }

    /// Writes the packet that ends a result.
    pub(crate) fn end_result(&mut self, summary: &Summary, header: u8) {
        self.state = match summary.status.contains(ServerStatus::MORE_RESULTS_EXISTS) {
            true => State::Open,
            false => State::Over,
        };
        let tracks = self.capabilities.contains(Capabilities::SESSION_TRACK);
        if header == packets::EOF && !self.deprecates_eof() {
            self.write_eof(summary.warnings, summary.status);
        } else {
            self.sender
                .packet(|out| packets::write_ok(out, header, summary, tracks));
        }
    }

    pub(crate) fn write_error(&mut self, error: &MySqlError) {
        let encoding = self.encoding;
        self.sender
            .packet(|out| packets::write_error(out, error, encoding));
    }

    pub(crate) fn write_eof(&mut self, warnings: u16, status: ServerStatus) {
        self.sender
            .packet(|out| packets::write_eof(out, warnings, status));
    }

    /// The metadata of a result: how many columns, each, and an EOF for clients that expect it.
    ///
    /// # Errors
    /// As for [`write_bare_definitions`](Reply::write_bare_definitions).
    pub(crate) async fn write_columns(
        &mut self,
        columns: &[ColumnDefinition],
        warnings: u16,
        status: ServerStatus,
    ) -> Result<(), Failure> {
        self.sender
            .packet(|out| crate::bytes_out::put_length(out, columns.len() as u64));
        self.write_definitions(columns, warnings, status).await
    }

    /// Definitions and the EOF behind them, without their count.
    ///
    /// # Errors
    /// As for [`write_bare_definitions`](Reply::write_bare_definitions).
    pub(crate) async fn write_definitions(
        &mut self,
        columns: &[ColumnDefinition],
        warnings: u16,
        status: ServerStatus,
    ) -> Result<(), Failure> {
        self.write_bare_definitions(columns).await?;
        self.end_definitions(warnings, status).await
    }

    /// The definitions of so many parameters, and the EOF behind them.
    ///
    /// # Errors
    /// As for [`write_bare_definitions`](Reply::write_bare_definitions).
    pub(crate) async fn write_parameters(
        &mut self,
        count: u16,
        status: ServerStatus,
    ) -> Result<(), Failure> {
        let parameter = ColumnDefinition::parameter();
        for _ in 0..count {
            self.write_definition(&parameter).await?;
        }
        self.end_definitions(0, status).await
    }

    async fn end_definitions(
        &mut self,
        warnings: u16,
        status: ServerStatus,
    ) -> Result<(), Failure> {
        if !self.deprecates_eof() {
            self.write_eof(warnings, status);
        }
        self.relieve().await
    }

    /// Definitions that something else than an EOF follows.
    ///
    /// # Errors
    /// [`Failure::Transport`] when the client is gone, [`Failure::Statement`] when there is no
    /// memory for a name; an error packet may stand where a definition would.
    pub(crate) async fn write_bare_definitions(
        &mut self,
        columns: &[ColumnDefinition],
    ) -> Result<(), Failure> {
        for column in columns {
            self.write_definition(column).await?;
        }
        Ok(())
    }

    /// One definition. A result may have thousands of columns with long names, so what has gathered
    /// goes out between two of them.
    async fn write_definition(&mut self, column: &ColumnDefinition) -> Result<(), Failure> {
        let encoding = self.encoding;
        self.sender.make_room(column.text_bytes())?;
        self.sender.packet(|out| column.write(out, encoding));
        self.relieve().await
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    pub(crate) fn has(&self, capability: Capabilities) -> bool {
        self.capabilities.contains(capability)
    }

    pub(crate) fn deprecates_eof(&self) -> bool {
        self.capabilities.contains(Capabilities::DEPRECATE_EOF)
    }

    /// Whether enough has gathered to be sent.
    pub(crate) fn is_full(&self) -> bool {
        self.sender.waiting_bytes() >= FLUSH_BYTES
    }

    /// Sends what has gathered if that is worth it.
    pub(crate) async fn relieve(&mut self) -> Result<(), Failure> {
        if self.is_full() {
            self.sender.flush().await?;
        }
        Ok(())
    }

    pub(crate) fn receiver(&self) -> SharedReceiver {
        Arc::clone(&self.receiver)
    }

    /// Sends what has gathered and waits for the client's next packet, as in the handshake.
    pub(crate) async fn ask(&mut self) -> Result<Bytes, Failure> {
        self.sender.flush().await?;
        self.take_turn_to_read();
        let packet = self.next_packet().await?;
        self.take_turn_to_write();
        Ok(packet)
    }

    /// The next packet of a client that has one to send.
    pub(crate) async fn next_packet(&mut self) -> Result<Bytes, Failure> {
        let packet = receiver::rest_of_packet(&self.receiver, self.read_timeout).await?;
        Ok(packet
            .ok_or(io::ErrorKind::UnexpectedEof)
            .map_err(io::Error::from)?)
    }

    /// The client's packets continue the numbers of ours.
    pub(crate) fn take_turn_to_read(&mut self) {
        let mut receiver = lock(&self.receiver);
        receiver.set_sequence(self.sender.sequence());
        receiver.set_compressed_sequence(self.sender.compressed_sequence());
    }

    /// Our packets continue the numbers of the client's.
    pub(crate) fn take_turn_to_write(&mut self) {
        let receiver = lock(&self.receiver);
        self.sender.set_sequence(receiver.sequence());
        self.sender
            .set_compressed_sequence(receiver.compressed_sequence());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use mayfly_types::ColumnType;
    use tokio::io::AsyncReadExt;

    use super::*;
    use crate::bytes_in::Reader;
    use crate::receiver::Receiver;

    #[tokio::test]
    async fn definitions_wait_for_a_client_that_does_not_read() {
        const NAME_BYTES: usize = 1000;
        const COLUMNS: usize = 4096;
        let (mut client, ours) = tokio::io::duplex(64 << 10);
        let (read, write) = tokio::io::split(ours);
        let receiver = Receiver::new(Box::new(read), 1 << 20);
        let share = receiver.share().another();
        let mut reply = Reply::new(
            Capabilities::PROTOCOL_41,
            &Settings::new("8.4.0"),
            Sender::new(Box::new(write), Duration::MAX, share),
            Arc::new(Mutex::new(receiver)),
        );
        let bigint = ColumnType::BigInt { unsigned: false };
        let column = ColumnDefinition::new("n".repeat(NAME_BYTES), bigint, true);
        let columns = vec![column; COLUMNS];
        let status = ServerStatus::AUTOCOMMIT;
        tokio::select! {
            biased;
            _ = reply.write_columns(&columns, 0, status) => panic!("nobody reads"),
            () = std::future::ready(()) => {}
        }
        assert!(reply.sender.waiting_bytes() < FLUSH_BYTES + 2 * NAME_BYTES);
        // What was begun stays whole when it is dropped, and more may follow.
        let reading = tokio::spawn(async move {
            let mut all = Vec::new();
            client.read_to_end(&mut all).await.expect("an end");
            all
        });
        let written = reply.write_columns(&columns, 0, status).await;
        written.expect("it is read");
        reply.sender.flush().await.expect("it is read");
        drop(reply);
        let all = reading.await.expect("no panic");
        let mut packets = Reader::new(&all);
        let (mut sequence, mut definitions, mut last) = (0_u8, 0, &all[..0]);
        while !packets.is_empty() {
            let len = packets.u24().expect("a header");
            assert_eq!(packets.u8(), Ok(sequence));
            last = packets.bytes(len).expect("a payload");
            definitions += usize::from(len > NAME_BYTES);
            sequence = sequence.wrapping_add(1);
        }
        assert_eq!(last[0], packets::EOF);
        assert!(definitions > COLUMNS && definitions < COLUMNS + 200);
    }
}
