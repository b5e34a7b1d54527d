//! The bit sets of the protocol.
//!
//! **Source**: MySQL's `include/mysql_com.h`, "Group Capability Flags", `SERVER_STATUS_flags_enum`,
//! "COM_REFRESH Flags" and "Column Definition Flags".

macro_rules! flags {
    ($(#[$doc:meta])* $name:ident: $bits:ty {
        $($(#[$flag_doc:meta])* $flag:ident = $value:expr;)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name($bits);

        impl $name {
            $($(#[$flag_doc])* pub const $flag: $name = $name($value);)*

            /// No flag.
            pub const fn empty() -> $name {
                $name(0)
            }

            /// The flags of a number from a packet; unknown ones are kept.
            pub const fn from_bits(bits: $bits) -> $name {
                $name(bits)
            }

            /// The number that goes into a packet.
            pub const fn bits(self) -> $bits {
                self.0
            }

            /// Whether all of `other` are set.
            pub const fn contains(self, other: $name) -> bool {
                self.0 & other.0 == other.0
            }

            /// These and those of `other`.
            pub const fn with(self, other: $name) -> $name {
                $name(self.0 | other.0)
            }

            /// These but those of `other`.
            pub const fn without(self, other: $name) -> $name {
                $name(self.0 & !other.0)
            }

            /// Only those that `other` has too.
            pub const fn and(self, other: $name) -> $name {
                $name(self.0 & other.0)
            }
        }

        impl std::ops::BitOr for $name {
            type Output = $name;

            fn bitor(self, other: $name) -> $name {
                self.with(other)
            }
        }
    };
}

flags! {
    /// What client and server agree on in the handshake.
    Capabilities: u32 {
        /// Passwords of 4.1. A server without it is a MariaDB to MariaDB's clients.
        LONG_PASSWORD = 1 << 0;
        /// Counts rows found, not rows changed, as affected by UPDATE.
        FOUND_ROWS = 1 << 1;
        /// Flags of columns take two bytes; every client since 3.21.
        LONG_FLAG = 1 << 2;
        /// The handshake may name a database.
        CONNECT_WITH_DB = 1 << 3;
        /// Packets travel compressed by zlib after the handshake.
        COMPRESS = 1 << 5;
        /// An old driver asks; nothing follows from it.
        ODBC = 1 << 6;
        /// The client may be asked for a file.
        LOCAL_FILES = 1 << 7;
        /// Spaces may stand before the parenthesis of a function.
        IGNORE_SPACE = 1 << 8;
        /// The protocol of 4.1, the only one that is spoken here.
        PROTOCOL_41 = 1 << 9;
        /// A person waits: `interactive_timeout` holds.
        INTERACTIVE = 1 << 10;
        /// The client goes on under TLS.
        SSL = 1 << 11;
        /// Status flags tell of transactions.
        TRANSACTIONS = 1 << 13;
        /// Passwords are answered with a scramble of 20 bytes.
        SECURE_CONNECTION = 1 << 15;
        /// One command may hold several statements.
        MULTI_STATEMENTS = 1 << 16;
        /// A statement may have several results.
        MULTI_RESULTS = 1 << 17;
        /// So may a prepared one.
        PS_MULTI_RESULTS = 1 << 18;
        /// The handshake names the authentication method.
        PLUGIN_AUTH = 1 << 19;
        /// The client tells about itself.
        CONNECT_ATTRS = 1 << 20;
        /// The authentication data has a length of up to eight bytes.
        PLUGIN_AUTH_LENENC_CLIENT_DATA = 1 << 21;
        /// OK packets tell which variables and databases changed.
        SESSION_TRACK = 1 << 23;
        /// An OK packet stands where an EOF packet stood.
        DEPRECATE_EOF = 1 << 24;
        /// Packets travel compressed by zstd after the handshake.
        ZSTD_COMPRESSION_ALGORITHM = 1 << 26;
    }
}

flags! {
    /// The state of a connection as OK and EOF packets tell it.
    ServerStatus: u16 {
        /// A transaction is open.
        IN_TRANS = 0x0001;
        /// Statements commit by themselves.
        AUTOCOMMIT = 0x0002;
        /// Another result of the same command follows.
        MORE_RESULTS_EXISTS = 0x0008;
        /// The statement scanned an index that is not good for it.
        NO_GOOD_INDEX_USED = 0x0010;
        /// The statement used no index.
        NO_INDEX_USED = 0x0020;
        /// The rows are to be fetched from a cursor.
        CURSOR_EXISTS = 0x0040;
        /// The last row of a cursor was sent.
        LAST_ROW_SENT = 0x0080;
        /// A database was dropped.
        DB_DROPPED = 0x0100;
        /// A backslash is a character as any other in texts.
        NO_BACKSLASH_ESCAPES = 0x0200;
        /// The columns of a prepared statement are no longer what they were.
        METADATA_CHANGED = 0x0400;
        /// The statement took longer than `long_query_time`.
        QUERY_WAS_SLOW = 0x0800;
        /// The result is that of a procedure's parameters.
        PS_OUT_PARAMS = 0x1000;
        /// The open transaction changes nothing.
        IN_TRANS_READONLY = 0x2000;
        /// The OK packet tells of changes to the session.
        SESSION_STATE_CHANGED = 0x4000;
        /// Double quotes enclose names: MariaDB's.
        ANSI_QUOTES = 0x8000;
    }
}

flags! {
    /// What COM_REFRESH names. [`BINARY_LOGS`](Refresh::BINARY_LOGS) and
    /// [`REPLICA`](Refresh::REPLICA) are those of RESET, the others those of FLUSH.
    Refresh: u8 {
        /// The accounts: FLUSH PRIVILEGES.
        PRIVILEGES = 0x01;
        /// All logs: FLUSH LOGS.
        LOGS = 0x02;
        /// The tables that are open: FLUSH TABLES.
        TABLES = 0x04;
        /// What is known of hosts: FLUSH HOSTS.
        HOSTS = 0x08;
        /// The counters of the session: FLUSH STATUS.
        STATUS = 0x10;
        /// Threads that wait for clients: FLUSH THREADS.
        THREADS = 0x20;
        /// What a replica knows of its source: RESET REPLICA.
        REPLICA = 0x40;
        /// The binary logs: RESET MASTER.
        BINARY_LOGS = 0x80;
    }
}

flags! {
    /// What the metadata of a column say beside its type.
    ColumnFlags: u16 {
        /// NULL cannot occur.
        NOT_NULL = 0x0001;
        /// Part of the primary key.
        PRI_KEY = 0x0002;
        /// Part of a unique key.
        UNIQUE_KEY = 0x0004;
        /// Part of a key that allows the same value twice.
        MULTIPLE_KEY = 0x0008;
        /// One of the types BLOB and TEXT.
        BLOB = 0x0010;
        /// A number without a sign.
        UNSIGNED = 0x0020;
        /// Shown with leading zeros.
        ZEROFILL = 0x0040;
        /// Bytes, or text compared by its bytes.
        BINARY = 0x0080;
        /// ENUM.
        ENUM = 0x0100;
        /// AUTO_INCREMENT.
        AUTO_INCREMENT = 0x0200;
        /// TIMESTAMP that sets itself.
        TIMESTAMP = 0x0400;
        /// SET.
        SET = 0x0800;
        /// INSERT must give a value.
        NO_DEFAULT_VALUE = 0x1000;
        /// An UPDATE sets it to the time of the change.
        ON_UPDATE_NOW = 0x2000;
        /// Part of any key.
        PART_KEY = 0x4000;
        /// A number, for clients of old.
        NUM = 0x8000;
    }
}
