//! Which changes of its session a client is told of.

pub(crate) const TRANSACTION: &str = "session_track_transaction_info";

/// What is told of transactions: `session_track_transaction_info`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TransactionInfo {
    #[default]
    Off,
    State,
    Characteristics,
}

/// Which changes are told, as it was at one version of the variables.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tracks {
    pub(crate) schema: bool,
    pub(crate) state: bool,
    pub(crate) transaction: TransactionInfo,
}

impl Tracks {
    pub(crate) fn new(variables: &crate::variables::Variables) -> Tracks {
        Tracks {
            schema: variables.is_on("session_track_schema"),
            state: variables.is_on("session_track_state_change"),
            transaction: match variables.text(TRANSACTION).as_str() {
                "STATE" => TransactionInfo::State,
                "CHARACTERISTICS" => TransactionInfo::Characteristics,
                _ => TransactionInfo::Off,
            },
        }
    }
}
