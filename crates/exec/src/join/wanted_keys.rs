//! The keys of a left side, told to operators below the right side before those read a row.
//!
//! ```text
//!   left -> LeftKeys -> WantedKeys --(context of the right side)--> SidewaysOperator <- rows
//! ```
//!
//! What is told is a Bloom filter over hashes of keys or, of whole numbers that lie close together,
//! a bit for each (`key_bits`). It travels with the task context in which a join executes its right
//! side, which it does when its left side has ended. So whoever asks for it need not wait, all
//! partitions of one execution find the same, and where the keys were too many, or memory is short,
//! all of them find nothing and let all rows pass.
//!
//! The tasks that read the left side set bits of one filter, without a lock. It is as large from
//! the first row on as the most keys need that may be told, and is folded when their number is
//! known.
//!
//! **Owns** the promise, the keys, and their way. **Never** drops a row: see `sideways`. What is
//! told is none of the values, so it is no matter to the answer whether two keys share a hash.
//!
//! **Cost.** 2 to 4 bytes a key, or at most some times that for bits, reserved before the first row
//! for as many keys as may be told: a 128th of the budget at most. Some 3 ns for a row that is
//! looked up by its hash, 1 by its bit.

use std::hash::{BuildHasher, RandomState as ProcessState};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{DataType, Schema};
use datafusion::common::hash_utils::{RandomState, create_hashes};
use datafusion::common::{Result, internal_err};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExprRef;
use mayfly_space::{Account, Error as SpaceError, Reservation};

use super::bloom::Bloom;
use super::key_bits::{KeyBits, SettingBits};
use crate::context::with_extension;
use crate::error::space_error;
use crate::open_scan::OpenRows;

/// There is at most one key for so many bytes of the budget.
const MEMORY_PER_KEY: u64 = 1 << 10;

/// The upper bit: added to them, it puts signed numbers in the order of unsigned ones.
const SIGN: u64 = 1 << 63;

/// What puts the numbers of a type in the order of unsigned ones, if it is added to them; `None`
/// where it has no whole numbers of at most 64 bits.
fn sign_of(data_type: &DataType) -> Option<u64> {
    match data_type {
        DataType::Int64 | DataType::Int32 | DataType::Int16 | DataType::Date32 => Some(SIGN),
        DataType::UInt64 | DataType::UInt32 | DataType::UInt16 => Some(0),
        _ => None,
    }
}

/// Does something with the numbers of an array in their order, as unsigned ones; `None` where
/// `sign_of` is. What stands where NULL is, is among them.
macro_rules! whole_numbers {
    ($array:expr, $numbers:ident => $use:expr) => {{
        use arrow::datatypes::*;
        macro_rules! of {
            ($type:ty, $sign:ident, $number:ident => $bits:expr) => {{
                let values = $array.as_primitive::<$type>().values().iter();
                let $numbers = values.map(|$number| $bits.wrapping_add($sign));
                Some($use)
            }};
        }
        sign_of($array.data_type()).and_then(|sign| match $array.data_type() {
            DataType::Int64 => of!(Int64Type, sign, n => n.cast_unsigned()),
            DataType::Int32 => of!(Int32Type, sign, n => i64::from(*n).cast_unsigned()),
            DataType::Int16 => of!(Int16Type, sign, n => i64::from(*n).cast_unsigned()),
            DataType::Date32 => of!(Date32Type, sign, n => i64::from(*n).cast_unsigned()),
            DataType::UInt64 => of!(UInt64Type, sign, n => *n),
            DataType::UInt32 => of!(UInt32Type, sign, n => u64::from(*n)),
            DataType::UInt16 => of!(UInt16Type, sign, n => u64::from(*n)),
            _ => None,
        })
    }};
}

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
    /// The same, if they are whole numbers.
    bits: Option<SettingBits>,
    /// How many keys have set a bit: nearly all that are different.
    found: AtomicUsize,
    has_rows: AtomicBool,
    grant: Reservation,
}

impl LeftKeys {
    /// Without keys of a left side of a schema; `None` where memory is short.
    ///
    /// # Errors
    /// What the temp space reports, but for shortage of memory, and DataFusion of a key.
    pub(super) async fn new(
        promise: &Arc<KeysPromise>,
        left: &Schema,
        account: &Account,
    ) -> Result<Option<LeftKeys>> {
        let share = account.space().memory_bytes() / MEMORY_PER_KEY;
        let share = usize::try_from(share).unwrap_or(usize::MAX);
        let keys_max = promise.keys_max.min(share);
        let word_bits = Bloom::word_bits(keys_max);
        let has_bits = match promise.keys.as_slice() {
            [key] => sign_of(&key.data_type(left)?).is_some(),
            _ => false,
        };
        let filters = if has_bits { 2 } else { 1 };
        let grant = match account.reserve(filters * Bloom::bytes(word_bits)) {
            Ok(grant) => grant,
            Err(SpaceError::BudgetExceeded { .. }) => return Ok(None),
            Err(error) => return Err(space_error(error)),
        };
        Ok(Some(LeftKeys {
            promise: Arc::clone(promise),
            keys_max,
            keys: Bloom::new(word_bits).await,
            bits: match has_bits {
                true => Some(SettingBits::new(1 << word_bits).await),
                false => None,
            },
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
        let keys = keys.collect::<Result<Vec<_>>>()?;
        let (hashes, nulls) = hashed(&keys, rows)?;
        if let (Some(bits), [key]) = (&self.bits, keys.as_slice()) {
            whole_numbers!(key, numbers => match nulls.as_ref().filter(|n| n.null_count() > 0) {
                None => bits.insert(numbers),
                Some(nulls) => {
                    let numbers = numbers.zip(nulls).filter(|(_, is_valid)| *is_valid);
                    bits.insert(numbers.map(|(number, _)| number));
                }
            });
        }
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
        let bits = match self.bits.take() {
            Some(bits) => bits.finish(self.keys.own_bytes()).await,
            None => None,
        };
        let (keys, bytes) = match bits {
            Some(bits) => {
                let bytes = bits.own_bytes();
                (Keys::Bits(bits), bytes)
            }
            None => {
                let bytes = self.keys.own_bytes();
                (Keys::Hashes(self.keys), bytes)
            }
        };
        self.grant.shrink(bytes);
        Some(WantedKeys {
            keys,
            is_empty: !*self.has_rows.get_mut(),
            nulls_match: self.promise.nulls_match,
            _grant: self.grant,
        })
    }
}

#[derive(Debug)]
enum Keys {
    /// Any, by their hashes.
    Hashes(Bloom),
    /// Whole numbers.
    Bits(KeyBits),
}

/// Which keys a left side may have. It says yes to all that it has, and to few others.
#[derive(Debug)]
pub(crate) struct WantedKeys {
    keys: Keys,
    is_empty: bool,
    nulls_match: bool,
    _grant: Reservation,
}

impl WantedKeys {
    /// Whether the left side has no row at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Which rows of a page may find a partner, by a column of a type that is their only key;
    /// `None` where its values are best read.
    ///
    /// # Errors
    /// If the page is corrupt.
    pub(crate) fn wanted_of_page(
        &self,
        rows: &OpenRows,
        column: usize,
        data_type: &DataType,
    ) -> Result<Option<BooleanBuffer>> {
        let Some(sign) = sign_of(data_type) else {
            return Ok(None);
        };
        let number = |number: i64| number.cast_unsigned().wrapping_add(sign);
        match &self.keys {
            Keys::Bits(bits) => {
                let test = |value| bits.contains(number(value));
                rows.passing_by_number(column, self.nulls_match, test)
            }
            Keys::Hashes(told) => {
                let seed = *SEED;
                let test = |value| told.contains(mixed(number(value), seed));
                rows.passing_by_number(column, self.nulls_match, test)
            }
        }
    }

    /// Which of some rows with these keys may find a partner. Rows of one key are all told alike.
    ///
    /// # Errors
    /// As DataFusion's hash functions.
    pub(crate) fn wanted(&self, keys: &[ArrayRef], rows: usize) -> Result<BooleanBuffer> {
        let (found, nulls) = match (&self.keys, keys) {
            (Keys::Bits(bits), [key]) => {
                let found = whole_numbers!(key, numbers => contained(bits, numbers));
                let Some(found) = found else {
                    return internal_err!("keys of type {} are told by numbers", key.data_type());
                };
                (found, key.logical_nulls())
            }
            (Keys::Bits(_), _) => return internal_err!("several keys are told by one number"),
            (Keys::Hashes(told), keys) => {
                let (hashes, nulls) = hashed(keys, rows)?;
                let found = BooleanBuffer::collect_bool(rows, |row| told.contains(hashes[row]));
                (found, nulls)
            }
        };
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

/// The seed of hashes. It is one of the process: a client that could choose keys with one hash
/// would have them read in vain.
static SEED: LazyLock<u64> =
    LazyLock::new(|| ProcessState::new().hash_one("the seed of keys that are told"));

/// Hashes of keys that equal keys share, and which rows have a NULL among theirs.
fn hashed(keys: &[ArrayRef], rows: usize) -> Result<(Vec<u64>, Option<NullBuffer>)> {
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

/// Hashes of whole numbers, dates and times, the most frequent keys, in a third of the time; `None`
/// for other types.
fn hashed_numbers(key: &ArrayRef, seed: u64) -> Option<Vec<u64>> {
    whole_numbers!(key, numbers => numbers.map(|number| mixed(number, seed)).collect())
}

/// A bit for each number: whether it is there.
fn contained(bits: &KeyBits, numbers: impl ExactSizeIterator<Item = u64>) -> BooleanBuffer {
    let rows = numbers.len();
    let mut numbers = numbers;
    BooleanBuffer::collect_bool(rows, |_| {
        let number = numbers.next();
        number.is_some_and(|number| bits.contains(number))
    })
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
