//! SHOW of what there is none of: replication, the binary log, stored programs, topics of HELP.
//!
//! **Source**: the columns of MySQL 8.4, and of MariaDB where only it has the statement.

use mayfly_sql::statement::{Nothing, Terms};

use crate::listing::Listing;

/// The columns of SHOW REPLICA STATUS and of SHOW SLAVE STATUS, which differ in two words.
macro_rules! replica_status {
    ($source:literal, $replica:literal, $get_key:literal) => {
        &[
            concat!($replica, "_IO_State"),
            concat!($source, "_Host"),
            concat!($source, "_User"),
            concat!($source, "_Port"),
            "Connect_Retry",
            concat!($source, "_Log_File"),
            concat!("Read_", $source, "_Log_Pos"),
            "Relay_Log_File",
            "Relay_Log_Pos",
            concat!("Relay_", $source, "_Log_File"),
            concat!($replica, "_IO_Running"),
            concat!($replica, "_SQL_Running"),
            "Replicate_Do_DB",
            "Replicate_Ignore_DB",
            "Replicate_Do_Table",
            "Replicate_Ignore_Table",
            "Replicate_Wild_Do_Table",
            "Replicate_Wild_Ignore_Table",
            "Last_Errno",
            "Last_Error",
            "Skip_Counter",
            concat!("Exec_", $source, "_Log_Pos"),
            "Relay_Log_Space",
            "Until_Condition",
            "Until_Log_File",
            "Until_Log_Pos",
            concat!($source, "_SSL_Allowed"),
            concat!($source, "_SSL_CA_File"),
            concat!($source, "_SSL_CA_Path"),
            concat!($source, "_SSL_Cert"),
            concat!($source, "_SSL_Cipher"),
            concat!($source, "_SSL_Key"),
            concat!("Seconds_Behind_", $source),
            concat!($source, "_SSL_Verify_Server_Cert"),
            "Last_IO_Errno",
            "Last_IO_Error",
            "Last_SQL_Errno",
            "Last_SQL_Error",
            "Replicate_Ignore_Server_Ids",
            concat!($source, "_Server_Id"),
            concat!($source, "_UUID"),
            concat!($source, "_Info_File"),
            "SQL_Delay",
            "SQL_Remaining_Delay",
            concat!($replica, "_SQL_Running_State"),
            concat!($source, "_Retry_Count"),
            concat!($source, "_Bind"),
            "Last_IO_Error_Timestamp",
            "Last_SQL_Error_Timestamp",
            concat!($source, "_SSL_Crl"),
            concat!($source, "_SSL_Crlpath"),
            "Retrieved_Gtid_Set",
            "Executed_Gtid_Set",
            "Auto_Position",
            "Replicate_Rewrite_DB",
            "Channel_Name",
            concat!($source, "_TLS_Version"),
            concat!($source, "_public_key_path"),
            $get_key,
            "Network_Namespace",
        ]
    };
}

const OLD_STATUS: &[&str] = replica_status!("Master", "Slave", "Get_master_public_key");
const NEW_STATUS: &[&str] = replica_status!("Source", "Replica", "Get_Source_public_key");

/// What MariaDB puts around the columns of one replica where it lists all of them.
const ALL_BEFORE: &[&str] = &["Connection_name", "Slave_SQL_State"];
const ALL_BEHIND: &[&str] = &[
    "Retried_transactions",
    "Max_relay_log_size",
    "Executed_log_entries",
    "Slave_received_heartbeats",
    "Slave_heartbeat_period",
    "Gtid_Slave_Pos",
];

/// The character sets of stored programs.
const SETS: &[&str] = &[
    "character_set_client",
    "collation_connection",
    "Database Collation",
];

/// The columns of SHOW EVENTS in front of those of character sets.
const EVENTS: &[&str] = &[
    "Db",
    "Name",
    "Definer",
    "Time zone",
    "Type",
    "Execute at",
    "Interval value",
    "Interval field",
    "Starts",
    "Ends",
    "Status",
    "Originator",
];

/// What there is none of, as a listing without rows.
pub(super) fn nothing(what: Nothing) -> Listing {
    let parts: &[&[&'static str]] = match what {
        Nothing::AllReplicasStatus => &[ALL_BEFORE, OLD_STATUS, ALL_BEHIND],
        Nothing::BinaryLogStatus => &[&[
            "File",
            "Position",
            "Binlog_Do_DB",
            "Binlog_Ignore_DB",
            "Executed_Gtid_Set",
        ]],
        Nothing::Events => &[EVENTS, SETS],
        Nothing::HelpTopics => &[&["name", "is_it_category"]],
        Nothing::LogEvents => &[&[
            "Log_name",
            "Pos",
            "Event_type",
            "Server_id",
            "End_log_pos",
            "Info",
        ]],
        Nothing::OpenTables => &[&["Database", "Table", "In_use", "Name_locked"]],
        Nothing::Replicas(Terms::Old) => {
            &[&["Server_Id", "Host", "Port", "Master_Id", "Slave_UUID"]]
        }
        Nothing::Replicas(Terms::New) => {
            &[&["Server_Id", "Host", "Port", "Source_Id", "Replica_UUID"]]
        }
        Nothing::ReplicaStatus(Terms::Old) => &[OLD_STATUS],
        Nothing::ReplicaStatus(Terms::New) => &[NEW_STATUS],
        Nothing::Routines => &[
            &[
                "Db",
                "Name",
                "Type",
                "Definer",
                "Modified",
                "Created",
                "Security_type",
                "Comment",
            ],
            SETS,
        ],
        Nothing::Triggers => &[
            &[
                "Trigger",
                "Event",
                "Table",
                "Statement",
                "Timing",
                "Created",
                "sql_mode",
                "Definer",
            ],
            SETS,
        ],
    };
    let numbers = [
        "Position",
        "Pos",
        "Server_id",
        "End_log_pos",
        "In_use",
        "Name_locked",
        "Server_Id",
        "Port",
        "Master_Id",
        "Source_Id",
    ];
    Listing::new(&parts.concat()).with_numbers(&numbers)
}
