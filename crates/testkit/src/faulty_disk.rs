//! A disk that moves less than it is asked to, returns other bytes than were written, or is full by
//! turns.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use mayfly_space::{Faults, Operation};

use crate::Random;

/// What a device moves at least.
const SECTOR: u64 = 4096;

/// A disk that behaves well until it is told otherwise. What it does follows from a seed.
#[derive(Debug)]
pub struct FaultyDisk {
    random: Mutex<Random>,
    is_short: AtomicBool,
    shortened: AtomicU64,
    flips_bits: AtomicBool,
    flipped: AtomicU64,
    /// Extensions and writes that pass, and then as many that do not; zero for none that fail.
    turn: AtomicU64,
    turned: AtomicU64,
    refused: AtomicU64,
}

impl FaultyDisk {
    /// A disk without faults.
    pub fn new(seed: u64) -> Arc<FaultyDisk> {
        Arc::new(FaultyDisk {
            random: Mutex::new(Random::new(seed)),
            is_short: AtomicBool::new(false),
            shortened: AtomicU64::new(0),
            flips_bits: AtomicBool::new(false),
            flipped: AtomicU64::new(0),
            turn: AtomicU64::new(0),
            turned: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        })
    }

    /// Makes transfers short, of one to four sectors.
    pub fn shorten(&self, is_short: bool) {
        self.is_short.store(is_short, Relaxed);
    }

    /// How many transfers were told to be short.
    pub fn shortened(&self) -> u64 {
        self.shortened.load(Relaxed)
    }

    /// Flips a bit of each page that is read.
    pub fn flip_bits(&self, flips_bits: bool) {
        self.flips_bits.store(flips_bits, Relaxed);
    }

    /// How many bits were flipped.
    pub fn flipped(&self) -> u64 {
        self.flipped.load(Relaxed)
    }

    /// Lets so many extensions and writes pass, says to as many that the disk is full, and so on;
    /// zero lets all of them pass.
    pub fn fill_by_turns(&self, turn: u64) {
        self.turn.store(turn, Relaxed);
    }

    /// How many extensions and writes were refused.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    fn below(&self, bound: u64) -> u64 {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        random.below(bound)
    }
}

impl Faults for FaultyDisk {
    fn before(&self, operation: Operation) -> io::Result<()> {
        let turn = self.turn.load(Relaxed);
        if turn == 0 || !matches!(operation, Operation::Extend | Operation::Write) {
            return Ok(());
        }
        let turns_over = self.turned.fetch_add(1, Relaxed) / turn;
        if turns_over.is_multiple_of(2) {
            return Ok(());
        }
        self.refused.fetch_add(1, Relaxed);
        Err(io::ErrorKind::StorageFull.into())
    }

    fn bytes_moved_max(&self, _operation: Operation) -> usize {
        if !self.is_short.load(Relaxed) {
            return usize::MAX;
        }
        self.shortened.fetch_add(1, Relaxed);
        usize::try_from(SECTOR * (1 + self.below(4))).expect("a few sectors")
    }

    fn after_read(&self, bytes: &mut [u8]) {
        if self.flips_bits.load(Relaxed) && !bytes.is_empty() {
            self.flipped.fetch_add(1, Relaxed);
            let bit = self.below(8 * bytes.len() as u64);
            bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_as_asked_for() {
        let disk = FaultyDisk::new(1);
        let extend = || disk.before(Operation::Extend).is_ok();
        assert!(extend() && extend());
        disk.fill_by_turns(2);
        let turns: Vec<bool> = (0..6).map(|_| extend()).collect();
        assert_eq!(turns, [true, true, false, false, true, true]);
        assert_eq!(disk.bytes_moved_max(Operation::Read), usize::MAX);
        disk.shorten(true);
        assert_eq!(disk.bytes_moved_max(Operation::Read) % 4096, 0);
        let mut bytes = [0; 64];
        disk.after_read(&mut bytes);
        assert_eq!(bytes, [0; 64]);
        disk.flip_bits(true);
        disk.after_read(&mut bytes);
        let ones: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
        assert_eq!((ones, disk.flipped()), (1, 1));
    }
}
