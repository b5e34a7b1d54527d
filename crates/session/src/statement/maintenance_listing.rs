//! The columns of what ANALYZE TABLE and its like answer.

use mayfly_sql::statement::MaintenanceKind;

use crate::listing::Listing;

/// An answer before it has rows.
pub(super) fn answer(kind: MaintenanceKind) -> Listing {
    match kind {
        MaintenanceKind::Checksum { .. } => {
            Listing::new(&["Table", "Checksum"]).with_numbers(&["Checksum"])
        }
        _ => Listing::new(&["Table", "Op", "Msg_type", "Msg_text"]),
    }
}
