//! soak: mixed statements and random kills for a long time, after which nothing may have grown.
//!
//! Owns: the samples, the kills, and the figures to be reached.
//!
//! Clients run random statements from a seed, most of them beyond the memory; another client kills
//! statements and connections at random. Resident size, descriptors, memory of the budget and bytes
//! of the temp files are looked at all the time: in the mean of all looks the second half of the
//! run must not have more than the second quarter. The most of each part is told as well; it swings
//! by a third with the statements that happen to meet, and so says little about growth. Then the
//! tables go, all clients leave, and after half a minute of rest the space must have given back
//! what it took.

mod work;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::args::BenchArgs;
use crate::data::SplitMix64;
use crate::error::BenchError;
use crate::report::text::print_sheet;
use crate::results::{Figure, Results, Sheet};
use crate::scripts::wire::Client;
use crate::systems::server::{DATABASE, Serve, Server};
use crate::systems::usage::Usage;
use work::Worker;

/// Clients that run statements.
const WORKERS: u64 = 8;
const MEMORY_BYTES: u64 = 128 << 20;
/// How long they do, in seconds.
const SECONDS: u64 = 20 * 60;
/// Parts of that time; of each the most that was seen is told.
const PARTS: u32 = 24;
/// How often the server is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// How long the server rests before it must have given back what it took.
const REST: Duration = Duration::from_secs(30);
/// The budget that a single statement does not fill.
const LARGE_MEMORY_BYTES: u64 = 1 << 30;
/// How often somebody is killed.
const KILL_INTERVAL: Duration = Duration::from_millis(100);

/// What the second half of a run may have above the first one: heaps of threads and caches are
/// filled for a while.
const GROWTH_MAX: f64 = 1.05;
/// The part of the budget and of the temp files that may be kept.
const KEPT_MAX: f64 = 0.1;
/// What the process itself may take beside its budget, in MiB; at rest it takes nothing else.
const PROCESS_MIB_MAX: f64 = 96.0;
/// Descriptors of the temp file and of what reads and writes it, which a fresh server has not
/// opened.
const DESCRIPTORS_MORE_MAX: f64 = 4.0;

pub(crate) fn run(
    args: &BenchArgs,
    temp_dir: &Path,
    results: &mut Results,
) -> Result<(), BenchError> {
    let serve = Serve {
        memory_bytes: MEMORY_BYTES,
        threads: args.threads,
        temp_io: None,
        temp_dir,
        files: None,
    };
    let duration = Duration::from_secs(args.seconds.unwrap_or(SECONDS));
    measure(&serve, duration, results).map_err(BenchError::Setup)?;
    let serve = Serve {
        memory_bytes: LARGE_MEMORY_BYTES,
        ..serve
    };
    measure_large(&serve, results).map_err(BenchError::Setup)
}

fn measure(serve: &Serve<'_>, duration: Duration, results: &mut Results) -> Result<(), String> {
    let mut server = Server::serve(serve)?;
    let mut watching = Client::connect(&server.socket, DATABASE)?;
    let fresh = Usage::of(&server, &mut watching)?;
    work::prepare(&mut watching)?;
    let mut samples = Vec::new();
    let mut done = (0, 0);
    let is_over = AtomicBool::new(false);
    let failure = Mutex::new(None);
    thread::scope(|scope| -> Result<(), String> {
        let worker = |seed| {
            let (server, is_over) = (&server, &is_over);
            scope.spawn(move || Worker::new(seed).run(server, is_over))
        };
        let workers: Vec<_> = (1..=WORKERS).map(worker).collect();
        let killer = scope.spawn(|| kill(&server, &is_over));
        let begin = Instant::now();
        for part in 1..=PARTS {
            let watched = watch(&server, &mut watching, begin + duration * part / PARTS);
            let watched = watched.and_then(|seen| {
                if part == PARTS / 2 {
                    work::keep_something(&mut watching)?;
                }
                Ok(seen)
            });
            match watched {
                Ok(seen) => samples.push(seen),
                Err(error) => {
                    *failure.lock().expect("nobody panics with it") = Some(error);
                    break;
                }
            }
        }
        is_over.store(true, Ordering::Relaxed);
        for worker in workers {
            let (statements, errors) = worker.join().map_err(|_| "a client panicked")??;
            done = (done.0 + statements, done.1 + errors);
        }
        killer.join().map_err(|_| "the killer panicked")?
    })?;
    if let Some(ended) = server.ended() {
        return Err(ended);
    }
    if let Some(error) = failure.into_inner().expect("nobody panics with it") {
        return Err(error);
    }
    work::tidy_up(&mut watching)?;
    Usage::when_alone(&server, &mut watching)?;
    thread::sleep(REST);
    let rested = Usage::of(&server, &mut watching)?;
    show(results, fresh, &samples, rested, done);
    figures(results, fresh, &samples, rested);
    Ok(())
}

/// What was seen of a server for some time.
#[derive(Clone, Copy)]
struct Seen {
    /// The most of each at one moment.
    most: Usage,
    /// The sum of each over all moments.
    sum: Usage,
    moments: u64,
}

impl Seen {
    fn new(usage: Usage) -> Seen {
        Seen {
            most: usage,
            sum: usage,
            moments: 1,
        }
    }

    fn add(&mut self, usage: &Usage) {
        self.most = self.most.or_more(usage);
        self.sum = self.sum.plus(usage);
        self.moments += 1;
    }
}

/// Looks at a server until a moment.
fn watch(server: &Server, watching: &mut Client, until: Instant) -> Result<Seen, String> {
    let mut seen = Seen::new(Usage::of(server, watching)?);
    loop {
        let rest = until.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return Ok(seen);
        }
        thread::sleep(rest.min(LOOK_INTERVAL));
        seen.add(&Usage::of(server, watching)?);
    }
}

/// Fills much of a budget once, without a file, and looks what is left of it at rest.
fn measure_large(serve: &Serve<'_>, results: &mut Results) -> Result<(), String> {
    let server = Server::serve(serve)?;
    let mut watching = Client::connect(&server.socket, DATABASE)?;
    let fresh = Usage::of(&server, &mut watching)?;
    work::prepare(&mut watching)?;
    let is_over = AtomicBool::new(false);
    let most = thread::scope(|scope| -> Result<Usage, String> {
        let worker = scope.spawn(|| {
            let mut client = Client::connect(&server.socket, DATABASE)?;
            let ended = client.query(work::LARGE);
            is_over.store(true, Ordering::Relaxed);
            ended.map(|_| ())
        });
        let mut most = Usage::of(&server, &mut watching)?;
        while !is_over.load(Ordering::Relaxed) && !worker.is_finished() {
            thread::sleep(LOOK_INTERVAL / 10);
            most = most.or_more(&Usage::of(&server, &mut watching)?);
        }
        worker.join().map_err(|_| "a client panicked")??;
        Ok(most)
    })?;
    work::tidy_up(&mut watching)?;
    Usage::when_alone(&server, &mut watching)?;
    thread::sleep(REST);
    let rested = Usage::of(&server, &mut watching)?;
    results.figures.push(Figure::at_most(
        "arena of a GiB: part of what one statement took that is kept at rest",
        kept(fresh.arena_bytes, most.arena_bytes, rested.arena_bytes),
        Some(KEPT_MAX),
    ));
    Ok(())
}

/// The part of what was taken at most that is still there.
fn kept(fresh: u64, most: u64, rested: u64) -> f64 {
    let taken = most.saturating_sub(fresh).max(1);
    rested.saturating_sub(fresh) as f64 / taken as f64
}

/// One of the figures of a sample.
type Bytes = fn(&Usage) -> u64;

/// Kills statements, and now and then connections, of the others.
fn kill(server: &Server, is_over: &AtomicBool) -> Result<(), String> {
    let mut client = Client::connect(&server.socket, DATABASE)?;
    let mut random = SplitMix64::new(0);
    while !is_over.load(Ordering::Relaxed) {
        thread::sleep(KILL_INTERVAL);
        let ids = "SELECT id FROM information_schema.PROCESSLIST \
                   WHERE id <> CONNECTION_ID() AND info LIKE '%/* soak */%'";
        let ids = match client.query(ids) {
            Ok(ids) => ids,
            // Without the table, the whole list.
            Err(_) => processes(&mut client)?,
        };
        let count = ids.len() as u64;
        if count == 0 {
            continue;
        }
        let place = random.next() % count;
        let id = usize::try_from(place).ok().and_then(|place| ids.get(place));
        let id = id.expect("below their number");
        let query = match random.next() % 4 {
            0 => "",
            _ => "QUERY ",
        };
        // It may have gone meanwhile.
        let _killed = client.query(&format!("KILL {query}{id}")).is_ok();
    }
    Ok(())
}

/// The connections that run a statement of a worker.
fn processes(client: &mut Client) -> Result<Vec<String>, String> {
    let rows = client.query("SHOW PROCESSLIST")?;
    let cells = rows.iter().map(|row| row.split('\t').collect::<Vec<_>>());
    let working = cells.filter(|cells| {
        let info = cells.get(7).copied().unwrap_or("NULL");
        info != "NULL" && info.contains(work::MARK)
    });
    Ok(working.map(|cells| cells[0].to_owned()).collect())
}

fn show(
    results: &mut Results,
    fresh: Usage,
    samples: &[Seen],
    rested: Usage,
    (statements, errors): (u64, u64),
) {
    let columns = [
        "when",
        "resident MiB",
        "arena MiB",
        "descriptors",
        "budget MiB",
        "temp files in use MiB",
        "allocated MiB",
    ];
    let title =
        format!("soak: {statements} statements of {WORKERS} clients, {errors} killed or failed");
    let mut sheet = Sheet::new(&title, &columns);
    let mut add = |when: String, usage: &Usage| {
        let mib = |bytes: u64| (bytes >> 20).to_string();
        sheet.rows.push(vec![
            when,
            mib(usage.memory_bytes),
            mib(usage.arena_bytes),
            usage.descriptors.to_string(),
            mib(usage.budget_bytes),
            mib(usage.space_bytes),
            mib(usage.file_bytes),
        ]);
    };
    add("fresh".to_owned(), &fresh);
    for (number, sample) in samples.iter().enumerate() {
        add(format!("{} of {PARTS}", number + 1), &sample.most);
    }
    add("at rest".to_owned(), &rested);
    print_sheet(&sheet);
    results.sheets.push(sheet);
}

fn figures(results: &mut Results, fresh: Usage, samples: &[Seen], rested: Usage) {
    let mean = |samples: &[Seen], of: Bytes| {
        let sum: u64 = samples.iter().map(|seen| of(&seen.sum)).sum();
        let moments: u64 = samples.iter().map(|seen| seen.moments).sum();
        sum as f64 / moments.max(1) as f64
    };
    let most = |of: Bytes| {
        let most = samples.iter().map(|seen| of(&seen.most)).max();
        most.unwrap_or_default()
    };
    // What the first quarter fills is there to stay.
    let (first, second) = samples.split_at(samples.len() / 2);
    let first = &first[first.len() / 2..];
    let kinds: [(&str, Bytes); 5] = [
        ("resident size", |usage| usage.memory_bytes),
        ("descriptors", |usage| usage.descriptors),
        ("arena", |usage| usage.arena_bytes),
        ("memory of the budget", |usage| usage.budget_bytes),
        ("bytes of temp files", |usage| usage.file_bytes),
    ];
    for (what, of) in kinds {
        results.figures.push(Figure::at_most(
            format!("mean {what} in the second half over the second quarter"),
            mean(second, of) / mean(first, of).max(1.0),
            Some(GROWTH_MAX),
        ));
    }
    for (what, of) in &kinds[2..] {
        results.figures.push(Figure::at_most(
            format!("{what}: part of what was taken that is kept at rest"),
            kept(of(&fresh), most(*of), of(&rested)),
            Some(KEPT_MAX),
        ));
    }
    results.figures.push(Figure::at_most(
        "MiB resident at rest",
        (rested.memory_bytes >> 20) as f64,
        Some(PROCESS_MIB_MAX),
    ));
    results.figures.push(Figure::at_most(
        "more descriptors at rest than in a fresh server",
        rested.descriptors.saturating_sub(fresh.descriptors) as f64,
        Some(DESCRIPTORS_MORE_MAX),
    ));
}
