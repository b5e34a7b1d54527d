//! What COM_REFRESH names, as the statements that do it.

use mayfly_wire::Refresh;

/// The words of FLUSH for what may stand in one list.
const FLUSHED: [(Refresh, &str); 5] = [
    (Refresh::PRIVILEGES, "PRIVILEGES"),
    (Refresh::LOGS, "LOGS"),
    (Refresh::HOSTS, "HOSTS"),
    (Refresh::STATUS, "STATUS"),
    (Refresh::THREADS, "THREADS"),
];

/// The statements for these flags, in the order in which servers go through them.
pub fn statements(what: Refresh) -> Vec<String> {
    let named = FLUSHED.iter().filter(|(flag, _)| what.contains(*flag));
    let words: Vec<&str> = named.map(|(_, word)| *word).collect();
    let mut statements = Vec::new();
    if !words.is_empty() {
        statements.push(format!("FLUSH {}", words.join(", ")));
    }
    let alone = [
        (Refresh::TABLES, "FLUSH TABLES"),
        (Refresh::REPLICA, "RESET REPLICA"),
        (Refresh::BINARY_LOGS, "RESET MASTER"),
    ];
    let alone = alone.iter().filter(|(flag, _)| what.contains(*flag));
    statements.extend(alone.map(|(_, statement)| (*statement).to_owned()));
    if statements.is_empty() {
        // Whatever it names, the command ends a transaction.
        statements.push("COMMIT AND NO CHAIN NO RELEASE".to_owned());
    }
    statements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_statements() {
        for (bits, expected) in [
            (0x00, &["COMMIT AND NO CHAIN NO RELEASE"][..]),
            (0x01, &["FLUSH PRIVILEGES"]),
            (0x04, &["FLUSH TABLES"]),
            (0x12, &["FLUSH LOGS, STATUS"]),
            // `mysqladmin refresh`.
            (0x2E, &["FLUSH LOGS, HOSTS, THREADS", "FLUSH TABLES"]),
            (0xC0, &["RESET REPLICA", "RESET MASTER"]),
        ] {
            assert_eq!(statements(Refresh::from_bits(bits)), expected, "{bits:#x}");
        }
    }
}
