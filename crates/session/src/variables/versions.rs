//! Numbers for sets of values, so that sets are compared without looking at their values.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

/// Sets whose number is remembered. What is forgotten gets a new number when it comes again, and
/// is then taken for another set, which costs plans and nothing else.
const KNOWN_MAX: usize = 256;
/// The bytes of the values of a set that is remembered.
const VALUE_BYTES_MAX: usize = 4 << 10;

/// Numbers of sets of values: one number never means two sets.
#[derive(Debug, Default)]
pub(super) struct Versions(Mutex<Numbers>);

#[derive(Debug, Default)]
struct Numbers {
    last: u64,
    known: HashMap<BTreeMap<&'static str, String>, u64>,
}

impl Versions {
    /// The number of a set.
    pub(super) fn of(&self, values: &BTreeMap<&'static str, String>) -> u64 {
        let mut numbers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = numbers.known.get(values) {
            return *number;
        }
        numbers.last += 1;
        let number = numbers.last;
        if values.values().map(String::len).sum::<usize>() > VALUE_BYTES_MAX {
            return number;
        }
        if numbers.known.len() >= KNOWN_MAX {
            numbers.known.clear();
        }
        numbers.known.insert(values.clone(), number);
        number
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_number_means_one_set_whatever_was_forgotten() {
        let versions = Versions::default();
        let set = |value: usize| BTreeMap::from([("timestamp", value.to_string())]);
        let first = versions.of(&set(0));
        assert_eq!(versions.of(&set(0)), first);
        let long = BTreeMap::from([("sql_mode", "x".repeat(VALUE_BYTES_MAX + 1))]);
        let sets = (0..2 * KNOWN_MAX).map(set);
        let mut numbers: HashSet<u64> = sets.map(|set| versions.of(&set)).collect();
        assert!(numbers.contains(&first));
        for not_remembered in [set(0), long.clone(), long] {
            assert!(numbers.insert(versions.of(&not_remembered)));
        }
        assert_eq!(numbers.len(), 2 * KNOWN_MAX + 3);
    }
}
