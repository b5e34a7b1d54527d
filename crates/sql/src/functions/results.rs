//! Results of any length: the texts and bytes that a function makes for the rows of a batch.
//!
//! **Owns** what limits them. A value longer than `max_allowed_packet` is NULL with warning 1301.
//! What the values of a batch take beyond its first MiB is reserved from the memory of the
//! statement for as long as the array lives. A batch cannot be cut here: one of up to 4 MiB is made
//! even where all memory is in use. Between rows the function looks whether its statement was
//! stopped, so that KILL need not wait for the end of a batch of long texts.
//!
//! A function that knows the length of a value says so before it makes it ([`Value::expect`]); the
//! length of any other is looked at afterwards.
//!
//! ```text
//!   write(row, value) --> up to 64 KiB: copied into a buffer of the batch
//!                     --> longer:       a buffer of its own, not copied
//!   one byte more, which owns the reservation
//! ```
//!
//! **Cost** where values are short: two comparisons a value.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::builder::GenericByteViewBuilder;
use arrow::array::types::{BinaryViewType, ByteViewType, StringViewType};
use arrow::array::{ArrayRef, StringViewBuilder};
use arrow::buffer::Buffer;
use bytes::Bytes;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use mayfly_types::{ErrorCode, MySqlError};

use super::call::Call;
use super::raise::raise;
use crate::long_values::{self, LONG_BYTES};

/// Values up to this length fit into any `max_allowed_packet`: MySQL takes no smaller one.
pub(crate) const SHORT_BYTES: usize = 1 << 10;
/// What the values of a batch take without a reservation, and by how much one grows.
const STEP_BYTES: usize = 1 << 20;
/// What they take at most where the memory is short and nothing more is reserved.
const UNPAID_BYTES_MAX: usize = 4 << 20;
/// Rows between two looks at the flag: where a short result takes long, a few of them are enough.
const ROWS_PER_LOOK: usize = 64;
/// `max_allowed_packet` of a function that runs outside a session.
const PACKET_BYTES_MAX: u64 = 64 << 20;

/// What a value is written into.
pub(crate) trait ValueBuffer: Default {
    /// The type of the array that values become.
    type View: ByteViewType;
    /// Whether it holds characters.
    const HAS_CHARACTERS: bool;

    fn native(&self) -> &<Self::View as ByteViewType>::Native;
    fn into_bytes(self) -> Vec<u8>;
    fn len(&self) -> usize;
    fn character_count(&self) -> usize;
    fn clear(&mut self);
    fn reserve_exact(&mut self, bytes: usize);
}

impl ValueBuffer for String {
    type View = StringViewType;
    const HAS_CHARACTERS: bool = true;

    fn native(&self) -> &str {
        self
    }

    fn into_bytes(self) -> Vec<u8> {
        self.into_bytes()
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn character_count(&self) -> usize {
        self.chars().count()
    }

    fn clear(&mut self) {
        self.clear();
    }

    fn reserve_exact(&mut self, bytes: usize) {
        self.reserve_exact(bytes);
    }
}

impl ValueBuffer for Vec<u8> {
    type View = BinaryViewType;
    const HAS_CHARACTERS: bool = false;

    fn native(&self) -> &[u8] {
        self
    }

    fn into_bytes(self) -> Vec<u8> {
        self
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn character_count(&self) -> usize {
        self.len()
    }

    fn clear(&mut self) {
        self.clear();
    }

    fn reserve_exact(&mut self, bytes: usize) {
        self.reserve_exact(bytes);
    }
}

/// The value of one row while a function writes it.
pub(crate) struct Value<'c, B> {
    buffer: B,
    limits: Limits<'c>,
}

impl<B> Deref for Value<'_, B> {
    type Target = B;

    fn deref(&self) -> &B {
        &self.buffer
    }
}

impl<B> DerefMut for Value<'_, B> {
    fn deref_mut(&mut self) -> &mut B {
        &mut self.buffer
    }
}

impl<B: ValueBuffer> Value<'_, B> {
    /// Whether the value may have so many bytes; otherwise warns, and it is to be NULL.
    pub(crate) fn fits(&mut self, bytes: usize) -> Result<bool> {
        if bytes <= SHORT_BYTES {
            return Ok(true);
        }
        self.limits.allow(bytes)
    }

    /// The same, and makes room for them.
    ///
    /// # Errors
    /// Where the budget has no room, or the statement was stopped.
    pub(crate) fn expect(&mut self, bytes: usize) -> Result<bool> {
        if bytes <= SHORT_BYTES {
            return Ok(true);
        }
        if !self.limits.allow(bytes)? {
            return Ok(false);
        }
        self.limits.hold(self.limits.made_bytes + bytes)?;
        if bytes > LONG_BYTES {
            let more = bytes.saturating_sub(self.buffer.len());
            self.buffer.reserve_exact(more);
        }
        Ok(true)
    }

    /// Whether what was written may be the result.
    fn is_allowed(&mut self) -> Result<bool> {
        let bytes = self.buffer.len();
        if bytes <= SHORT_BYTES {
            return Ok(true);
        }
        if !self.limits.allow(bytes)? {
            return Ok(false);
        }
        match self.limits.of_octets && bytes > self.limits.known().max_bytes {
            true => Ok(self.limits.compare(self.buffer.character_count())),
            false => Ok(true),
        }
    }

    fn move_to(&mut self, builder: &mut GenericByteViewBuilder<B::View>) -> Result<()> {
        let bytes = self.buffer.len();
        self.limits.count(bytes)?;
        if bytes <= LONG_BYTES {
            builder.append_value(self.buffer.native());
            return Ok(());
        }
        let mut value = std::mem::take(&mut self.buffer).into_bytes();
        value.shrink_to_fit();
        let length = u32::try_from(bytes).expect("max_allowed_packet is at most 1 GiB");
        let block = builder.append_block(Buffer::from_vec(value));
        Ok(builder.try_append_view(block, 0, length)?)
    }
}

/// What the session says about the values of one call.
struct Known {
    max_bytes: usize,
    stop: Option<Arc<AtomicBool>>,
    memory: Option<Arc<dyn MemoryPool>>,
}

/// The limits of the values of one call.
struct Limits<'c> {
    call: &'c Call<'c>,
    /// Whether each character that is written stands for a byte.
    of_octets: bool,
    /// Asked for once, and only where values are long or rows many.
    known: Option<Known>,
    /// The values of the batch so far.
    made_bytes: usize,
    /// What they may take before more is reserved.
    held_bytes: usize,
    reservation: Option<MemoryReservation>,
}

impl<'c> Limits<'c> {
    fn new(call: &'c Call<'c>, has_characters: bool) -> Limits<'c> {
        Limits {
            call,
            of_octets: call.is_of_octets && has_characters,
            known: None,
            made_bytes: 0,
            held_bytes: STEP_BYTES,
            reservation: None,
        }
    }

    fn known(&mut self) -> &Known {
        let call = self.call;
        self.known.get_or_insert_with(|| {
            let Some(session) = call.session else {
                return Known {
                    max_bytes: usize::try_from(PACKET_BYTES_MAX).unwrap_or(usize::MAX),
                    stop: None,
                    memory: None,
                };
            };
            let values = session.lock();
            Known {
                max_bytes: usize::try_from(values.max_packet_bytes).unwrap_or(usize::MAX),
                stop: Some(Arc::clone(&values.stop)),
                memory: values.memory(),
            }
        })
    }

    /// Whether a value that is written with so many bytes may be within the limit.
    fn allow(&mut self, bytes: usize) -> Result<bool> {
        long_values::check(bytes)?;
        // The characters of bytes take one or two.
        let least = if self.of_octets { bytes / 2 } else { bytes };
        Ok(self.compare(least))
    }

    /// Whether a value of so many bytes is within the limit; otherwise warns.
    fn compare(&mut self, bytes: usize) -> bool {
        let max_bytes = self.known().max_bytes;
        let fits = bytes <= max_bytes;
        if !fits {
            let name = self.call.shown_name();
            self.call
                .warn(ErrorCode::ResultTooLarge, &[&name, &max_bytes]);
        }
        fits
    }

    /// Adds a value to those of the batch.
    fn count(&mut self, bytes: usize) -> Result<()> {
        self.made_bytes += bytes;
        match self.made_bytes > self.held_bytes {
            true => self.hold(self.made_bytes),
            false => Ok(()),
        }
    }

    /// Reserves memory for values of so many bytes together.
    #[cold]
    fn hold(&mut self, bytes: usize) -> Result<()> {
        if bytes <= self.held_bytes {
            return Ok(());
        }
        self.look()?;
        let wanted = bytes.next_multiple_of(STEP_BYTES);
        let name = self.call.shown_name();
        if let Some(memory) = self.known().memory.clone() {
            let reservation = self.reservation.get_or_insert_with(|| {
                let consumer = MemoryConsumer::new(format!("the results of {name}()"));
                consumer.register(&memory)
            });
            let paid = reservation.try_resize(wanted);
            if bytes > UNPAID_BYTES_MAX {
                paid?;
            }
        }
        self.held_bytes = wanted;
        Ok(())
    }

    /// Looks before one row in many.
    fn look_at(&mut self, row: usize) -> Result<()> {
        match row > 0 && row.is_multiple_of(ROWS_PER_LOOK) {
            true => self.look(),
            false => Ok(()),
        }
    }

    /// Ends the call where the statement was stopped.
    fn look(&mut self) -> Result<()> {
        let stop = self.known().stop.as_ref();
        match stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            true => Err(raise(MySqlError::new(ErrorCode::QueryInterrupted, &[]))),
            false => Ok(()),
        }
    }

    /// The array, which holds what was reserved for it.
    fn finish<V: ByteViewType>(
        mut self,
        mut builder: GenericByteViewBuilder<V>,
    ) -> Result<ArrayRef> {
        if let Some(reservation) = self.reservation.take() {
            // A value that is NULL in the end may have been paid.
            reservation.try_resize(self.made_bytes.min(reservation.size()))?;
            let owner = Bytes::from_owner(Paid {
                byte: [0],
                _reservation: reservation,
            });
            builder.append_block(Buffer::from(owner));
        }
        Ok(Arc::new(builder.finish()))
    }
}

/// A buffer that no value lies in, and that goes when the last array with the values does.
struct Paid {
    byte: [u8; 1],
    _reservation: MemoryReservation,
}

impl AsRef<[u8]> for Paid {
    fn as_ref(&self) -> &[u8] {
        &self.byte
    }
}

/// A value for each row: `write` appends it to what is empty, or returns `false` for NULL.
pub(crate) fn make<B: ValueBuffer>(
    call: &Call<'_>,
    mut write: impl FnMut(usize, &mut Value<'_, B>) -> Result<bool>,
) -> Result<ArrayRef> {
    let mut builder = GenericByteViewBuilder::<B::View>::with_capacity(call.rows);
    let mut value = Value {
        buffer: B::default(),
        limits: Limits::new(call, B::HAS_CHARACTERS),
    };
    for row in 0..call.rows {
        value.limits.look_at(row)?;
        value.buffer.clear();
        if write(row, &mut value)? && value.is_allowed()? {
            value.move_to(&mut builder)?;
        } else {
            builder.append_null();
        }
    }
    value.limits.finish(builder)
}

/// A text for each row that is a part of an argument, so that its length is allowed.
pub(crate) fn make_parts<'t>(
    call: &Call<'_>,
    mut part: impl FnMut(usize) -> Option<&'t str>,
) -> Result<ArrayRef> {
    let mut builder = StringViewBuilder::with_capacity(call.rows);
    let mut limits = Limits::new(call, true);
    for row in 0..call.rows {
        limits.look_at(row)?;
        let part = part(row);
        limits.count(part.map_or(0, str::len))?;
        builder.append_option(part);
    }
    limits.finish(builder)
}
