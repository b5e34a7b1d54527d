//! The keys of a left side, told to operators below the right side before those read a row.
//!
//! ```text
//!   left -> LeftKeys -> WantedKeys --(context of the right side)--> SidewaysOperator <- rows
//! ```
//!
//! What is told is a Bloom filter over hashes of keys. It travels with the task context in which a
//! join executes its right side, which it does when its left side has ended. So whoever asks for it
//! need not wait, all partitions of one execution find the same, and where the keys were too many,
//! or memory is short, all of them find nothing and let all rows pass.
//!
//! The tasks that read the left side set bits of one filter, without a lock. It is as large from
//! the first row on as the most keys need that may be told, and is folded when their number is
//! known.
//!
//! **Owns** the promise, the keys, and their way. **Never** drops a row: see `sideways`. What is
//! told is none of the values, so it is no matter to the answer whether two keys share a hash.
//!
//! **Cost.** 2 to 4 bytes a key, reserved before the first row for as many keys as may be told: a
//! 256th of the budget at most. Some 3 ns for a row that is looked up.

use std::hash::{BuildHasher, RandomState as ProcessState};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, RecordBatch};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{DataType, Date32Type, Int32Type, Int64Type, UInt32Type, UInt64Type};
use datafusion::common::Result;
use datafusion::common::hash_utils::{RandomState, create_hashes};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExprRef;
use mayfly_space::{Account, Error as SpaceError, Reservation};

use crate::context::with_extension;
use crate::error::space_error;
use crate::time_slice::TimeSlice;

/// There is at most one key for so many bytes of the budget.
const MEMORY_PER_KEY: u64 = 1 << 10;
/// Each key sets three bits of a word. With at most so many keys a word, one of a hundred others
/// passes.
const KEYS_PER_WORD: usize = 4;
const WORD_BITS_MIN: u32 = 3;
/// Words that are written or read between two looks at the clock.
const WORDS_PER_STEP: usize = 64 << 10;

/// What a join promises to an operator below its right side: which keys its left side has.
#[derive(Debug)]
pub(crate) struct KeysPromise {
    id: u64,
    /// Expressions over the left side, which may be computed twice.
    keys: Vec<PhysicalExprRef>,
    /// With more keys than this nothing is told: they would have little to drop.
    keys_max: usize,
    /// Whether a NULL finds a NULL.
    nulls_match: bool,
}

impl KeysPromise {
    /// A promise of at most `keys_max` keys.
    pub(crate) fn new(keys: Vec<PhysicalExprRef>, keys_max: usize, nulls_match: bool) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        KeysPromise {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            keys,
            keys_max,
            nulls_match,
        }
    }

    /// By which those who were promised something find it.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The keys, over the left side.
    pub(super) fn keys(&self) -> &[PhysicalExprRef] {
        &self.keys
    }
}

/// The keys of a left side, as long as they are few enough to be told.
pub(super) struct LeftKeys {
    promise: Arc<KeysPromise>,
    keys_max: usize,
    keys: Bloom,
    /// How many keys have set a bit: nearly all that are different.
    found: AtomicUsize,
    has_rows: AtomicBool,
    grant: Reservation,
}

impl LeftKeys {
    /// Without keys; `None` where memory is short.
    ///
    /// # Errors
    /// What the temp space reports, but for shortage of memory.
    pub(super) async fn new(
        promise: &Arc<KeysPromise>,
        account: &Account,
    ) -> Result<Option<LeftKeys>> {
        let share = account.space().memory_bytes() / MEMORY_PER_KEY;
        let share = usize::try_from(share).unwrap_or(usize::MAX);
        let keys_max = promise.keys_max.min(share);
        let word_bits = Bloom::word_bits(keys_max);
        let grant = match account.reserve(Bloom::bytes(word_bits)) {
            Ok(grant) => grant,
            Err(SpaceError::BudgetExceeded { .. }) => return Ok(None),
            Err(error) => return Err(space_error(error)),
        };
        Ok(Some(LeftKeys {
            promise: Arc::clone(promise),
            keys_max,
            keys: Bloom::new(word_bits).await,
            found: AtomicUsize::new(0),
            has_rows: AtomicBool::new(false),
            grant,
        }))
    }

    /// Takes the keys of some rows in. Any number of tasks may do so at a time.
    ///
    /// # Errors
    /// What DataFusion says of an expression.
    pub(super) fn add(&self, batch: &RecordBatch) -> Result<()> {
        let rows = batch.num_rows();
        if rows == 0 || self.found.load(Ordering::Relaxed) > self.keys_max {
            return Ok(());
        }
        self.has_rows.store(true, Ordering::Relaxed);
        let keys = self.promise.keys.iter();
        let keys = keys.map(|key| key.evaluate(batch)?.into_array(rows));
        let (hashes, nulls) = hashed(&keys.collect::<Result<Vec<_>>>()?, rows)?;
        let mut found = 0;
        for (row, hash) in hashes.into_iter().enumerate() {
            // NULLs need no bits: all of them pass, or none.
            if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) {
                found += usize::from(self.keys.insert(hash));
            }
        }
        self.found.fetch_add(found, Ordering::Relaxed);
        Ok(())
    }

    /// What can be told when all rows were seen: nothing where there are too many keys.
    pub(super) async fn finish(mut self) -> Option<WantedKeys> {
        let found = *self.found.get_mut();
        if found > self.keys_max {
            return None;
        }
        self.keys.fold(Bloom::word_bits(found)).await;
        self.grant.shrink(Bloom::bytes(self.keys.word_bits));
        Some(WantedKeys {
            keys: self.keys,
            is_empty: !*self.has_rows.get_mut(),
            nulls_match: self.promise.nulls_match,
            _grant: self.grant,
        })
    }
}

/// A Bloom filter over hashes, each of which has its bits in one word.
///
/// Words are independent of each other, and the tasks that set bits have ended before others look
/// for them: `Relaxed` is enough.
#[derive(Debug)]
struct Bloom {
    words: Vec<AtomicU64>,
    word_bits: u32,
}

impl Bloom {
    /// The binary logarithm of how many words so many keys need.
    fn word_bits(keys: usize) -> u32 {
        let words = keys.div_ceil(KEYS_PER_WORD).next_power_of_two();
        words.ilog2().max(WORD_BITS_MIN)
    }

    /// What so many words take.
    fn bytes(word_bits: u32) -> u64 {
        (size_of::<AtomicU64>() as u64) << word_bits
    }

    async fn new(word_bits: u32) -> Bloom {
        let count = 1 << word_bits;
        let mut words = Vec::with_capacity(count);
        let mut slice = TimeSlice::begin();
        while words.len() < count {
            let step = count.min(words.len() + WORDS_PER_STEP);
            words.resize_with(step, AtomicU64::default);
            slice.share().await;
        }
        Bloom { words, word_bits }
    }

    /// The word of a hash and its bits there.
    #[inline]
    fn place(&self, hash: u64) -> (&AtomicU64, u64) {
        let word = (hash >> (u64::BITS - self.word_bits)) as usize;
        let bits = 1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63);
        (&self.words[word], bits)
    }

    /// Whether a hash was not there: of tasks that insert the same at a time, one is told so.
    #[inline]
    fn insert(&self, hash: u64) -> bool {
        let (word, bits) = self.place(hash);
        // Most bits are there already where a key has many rows. To read is cheaper.
        word.load(Ordering::Relaxed) & bits != bits
            && word.fetch_or(bits, Ordering::Relaxed) & bits != bits
    }

    #[inline]
    fn contains(&self, hash: u64) -> bool {
        let (word, bits) = self.place(hash);
        word.load(Ordering::Relaxed) & bits == bits
    }

    /// Makes it as small as that. The first bits of a hash are its word, so words that become one
    /// are neighbours.
    async fn fold(&mut self, word_bits: u32) {
        if word_bits >= self.word_bits {
            return;
        }
        let (count, merged) = (1 << word_bits, 1 << (self.word_bits - word_bits));
        let mut slice = TimeSlice::begin();
        let mut read = 0;
        for place in 0..count {
            let first = place * merged;
            let neighbours = self.words[first..first + merged].iter_mut();
            let bits = neighbours.fold(0, |bits, word| bits | *word.get_mut());
            *self.words[place].get_mut() = bits;
            read += merged;
            if read >= WORDS_PER_STEP {
                read = 0;
                slice.share().await;
            }
        }
        self.words.truncate(count);
        self.words.shrink_to_fit();
        self.word_bits = word_bits;
    }
}

/// Which keys a left side may have. It says yes to all that it has, and to few others.
#[derive(Debug)]
pub(crate) struct WantedKeys {
    keys: Bloom,
    is_empty: bool,
    nulls_match: bool,
    _grant: Reservation,
}

impl WantedKeys {
    /// Whether the left side has no row at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Which of some rows with these keys may find a partner. Rows of one key are all told alike.
    ///
    /// # Errors
    /// As DataFusion's hash functions.
    pub(crate) fn wanted(&self, keys: &[ArrayRef], rows: usize) -> Result<BooleanBuffer> {
        let (hashes, nulls) = hashed(keys, rows)?;
        let found = BooleanBuffer::collect_bool(rows, |row| self.keys.contains(hashes[row]));
        Ok(match nulls {
            None => found,
            Some(nulls) if self.nulls_match => &found | &!nulls.inner(),
            Some(nulls) => &found & nulls.inner(),
        })
    }
}

/// Whether values of a type are equal exactly if their hashes are made of the same bytes. Minus
/// zero is zero, and what is nested may have such numbers in it.
pub(crate) fn is_hashed_by_value(data_type: &DataType) -> bool {
    use DataType::*;
    matches!(
        data_type,
        Boolean
            | Int8
            | Int16
            | Int32
            | Int64
            | UInt8
            | UInt16
            | UInt32
            | UInt64
            | Date32
            | Date64
            | Time32(_)
            | Time64(_)
            | Timestamp(..)
            | Decimal128(..)
            | Utf8
            | LargeUtf8
            | Utf8View
            | Binary
            | LargeBinary
            | BinaryView
    )
}

/// Hashes of keys that equal keys share, and which rows have a NULL among theirs. The seed is one
/// of the process: a client that could choose keys with one hash would have them read in vain.
fn hashed(keys: &[ArrayRef], rows: usize) -> Result<(Vec<u64>, Option<NullBuffer>)> {
    static SEED: LazyLock<u64> =
        LazyLock::new(|| ProcessState::new().hash_one("the seed of keys that are told"));
    let hashes = match keys {
        [key] => hashed_numbers(key, *SEED),
        _ => None,
    };
    let hashes = match hashes {
        Some(hashes) => hashes,
        None => {
            let mut hashes = vec![0; rows];
            create_hashes(keys, &RandomState::with_seed(*SEED), &mut hashes)?;
            hashes
        }
    };
    let nulls = keys.iter().fold(None, |nulls: Option<NullBuffer>, key| {
        NullBuffer::union(nulls.as_ref(), key.logical_nulls().as_ref())
    });
    Ok((hashes, nulls))
}

/// Hashes of whole numbers and days, the most frequent keys, in a third of the time; `None` for
/// other types.
fn hashed_numbers(key: &ArrayRef, seed: u64) -> Option<Vec<u64>> {
    fn all<T: ArrowPrimitiveType>(
        key: &ArrayRef,
        seed: u64,
        bits: impl Fn(T::Native) -> u64,
    ) -> Option<Vec<u64>> {
        let numbers = key.as_primitive_opt::<T>()?.values().iter();
        Some(numbers.map(|number| mixed(bits(*number), seed)).collect())
    }
    match key.data_type() {
        DataType::Int64 => all::<Int64Type>(key, seed, |number| number.cast_unsigned()),
        DataType::UInt64 => all::<UInt64Type>(key, seed, |number| number),
        DataType::Int32 => all::<Int32Type>(key, seed, |number| u64::from(number.cast_unsigned())),
        DataType::UInt32 => all::<UInt32Type>(key, seed, u64::from),
        DataType::Date32 => {
            all::<Date32Type>(key, seed, |number| u64::from(number.cast_unsigned()))
        }
        _ => None,
    }
}

/// An odd number whose bits look random: that of the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// A number whose bits all depend on those of another one: the halves of a product, as in wyhash.
#[inline]
fn mixed(number: u64, seed: u64) -> u64 {
    let product = u128::from(number ^ seed) * u128::from(MULTIPLIER);
    product as u64 ^ (product >> 64) as u64
}

/// What joins above have told: an extension of the task context of their right sides.
#[derive(Clone, Default)]
struct Told(Vec<(u64, Arc<WantedKeys>)>);

/// The context of a right side that is told the keys of a left one.
pub(super) fn telling(
    context: &Arc<TaskContext>,
    promise: &KeysPromise,
    keys: WantedKeys,
) -> Arc<TaskContext> {
    let told = context.session_config().get_extension::<Told>();
    let mut told = told.map_or_else(Told::default, |told| Told::clone(&told));
    told.0.push((promise.id, Arc::new(keys)));
    with_extension(context, Arc::new(told))
}

/// The keys that were promised by that name, if they were told in this context: the newest, by the
/// join that is nearest.
pub(crate) fn told(context: &TaskContext, id: u64) -> Option<Arc<WantedKeys>> {
    let told = context.session_config().get_extension::<Told>()?;
    let mut told = told.0.iter();
    let (_, keys) = told.rfind(|(promise, _)| *promise == id)?;
    Some(Arc::clone(keys))
}

#[cfg(test)]
mod tests;
