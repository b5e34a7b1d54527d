//! How long clients waited: readers for their rows, newcomers for their first answers.
//!
//! Owns: the clock of each wait, and what is told of many of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::data::SplitMix64;
use crate::scripts::wire::Client;
use crate::systems::server::{DATABASE, Server};

/// The part of the waits that may be longer: one in a thousand.
const MOST: f64 = 0.999;
/// Between two clients that come.
const PAUSE: Duration = Duration::from_millis(20);

/// The waits of some clients, in microseconds.
#[derive(Default)]
pub(super) struct Waits {
    all: Vec<u32>,
    /// The most of the 99.9th percentiles of single clients: one that starves has few waits, which
    /// are not seen among those of all.
    worst_of_one_ms: f64,
    seconds: f64,
    /// Waits that ended with an error, and one of these.
    pub(super) errors: u64,
    pub(super) error: Option<String>,
}

impl Waits {
    /// Adds those of another client.
    pub(super) fn add(&mut self, mut other: Waits) {
        other.all.sort_unstable();
        let of_one = other.percentile_ms(MOST);
        self.worst_of_one_ms = self.worst_of_one_ms.max(of_one);
        self.all.append(&mut other.all);
        self.all.sort_unstable();
        self.seconds = self.seconds.max(other.seconds);
        self.errors += other.errors;
        self.error = self.error.take().or(other.error);
    }

    /// The 99.9th percentile of the client that had the longest one.
    pub(super) fn worst_ms(&self) -> f64 {
        self.worst_of_one_ms
    }

    /// Waits of all clients in a second.
    pub(super) fn per_second(&self) -> f64 {
        self.all.len() as f64 / self.seconds.max(f64::MIN_POSITIVE)
    }

    /// The wait that so large a part of them did not exceed; 1 for the longest.
    pub(super) fn percentile_ms(&self, part: f64) -> f64 {
        let last = self.all.len().saturating_sub(1);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a part of a length"
        )]
        let place = (self.all.len() as f64 * part) as usize;
        let wait = self.all.get(place.min(last)).copied().unwrap_or_default();
        f64::from(wait) / 1e3
    }
}

/// Reads single rows until it is over.
pub(super) fn read(
    server: &Server,
    seed: u64,
    rows: u64,
    is_over: &AtomicBool,
) -> Result<Waits, String> {
    come_soon();
    let mut client = Client::connect(&server.socket, DATABASE)?;
    let mut random = SplitMix64::new(seed);
    let mut waits = Waits::default();
    let begin = Instant::now();
    while !is_over.load(Ordering::Relaxed) {
        let id = random.next() % rows + 1;
        let asked = Instant::now();
        let found = client.query(&format!("SELECT k FROM points WHERE id = {id}"));
        waits.all.push(micros(asked.elapsed()));
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                waits.errors += 1;
                waits.error = Some(error);
                continue;
            }
        };
        if found != [format!("{}", id % 1000)] {
            return Err(format!("row {id} is {found:?}"));
        }
    }
    waits.seconds = begin.elapsed().as_secs_f64();
    Ok(waits)
}

/// Connects, asks two things and leaves, again and again until it is over: a client that comes must
/// be let in, and see who is there, whatever the others do.
pub(super) fn arrive(server: &Server, is_over: &AtomicBool) -> Waits {
    come_soon();
    let mut waits = Waits::default();
    let begin = Instant::now();
    while !is_over.load(Ordering::Relaxed) {
        let came = Instant::now();
        let answered = Client::connect(&server.socket, DATABASE).and_then(|mut client| {
            client.query("SHOW PROCESSLIST")?;
            client.query("SELECT 1")
        });
        waits.all.push(micros(came.elapsed()));
        if let Err(error) = answered {
            waits.errors += 1;
            waits.error = Some(error);
        }
        thread::sleep(PAUSE);
    }
    waits.all.sort_unstable();
    waits.seconds = begin.elapsed().as_secs_f64();
    waits
}

/// Clients have machines of their own. Here they share that of the server: how long they wait for a
/// processor to see an answer that is there should be as little as can be.
fn come_soon() {
    // Where the kernel refuses that, they wait longer.
    let _refused = mayfly_space::shorten_slices();
}

fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}
