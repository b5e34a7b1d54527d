//! Operators that hold memory which they can do without.

/// An operator that holds memory only because that is quicker.
pub trait GivesMemory: Send + Sync {
    /// The most that it could give at this moment.
    fn spare_bytes(&self) -> u64;

    /// Gives about so many bytes up; returns how many of what it claims it did, be they free now or
    /// as soon as those who look at them have seen enough. Who calls may hold locks under which
    /// this or another operator claims memory: what is locked by them is left alone.
    fn give(&self, bytes: u64) -> u64;
}
