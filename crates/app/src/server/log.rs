//! What a server says of itself on standard error: events of `tracing`, one line each.
//!
//! **Owns** which events are written and how. **Never** writes a statement's text or a password.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use mayfly_session::Engine;
use mayfly_wire::{ConnectionError, Login, Peer};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber, debug, warn};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{LogLevel, ServeArguments, StatsFormat};

/// The crates of this program.
const OURS: &str = "mayfly";

/// Begins to write events. `--log-level` goes before `RUST_LOG`.
pub fn start(arguments: &ServeArguments) {
    let asked = arguments.log_level.map(|level| match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    });
    let said = std::env::var("RUST_LOG").ok();
    let targets = match (asked, said.and_then(|said| said.parse::<Targets>().ok())) {
        (None, Some(targets)) => targets,
        (asked, _) => {
            let level = asked.unwrap_or(LevelFilter::WARN);
            Targets::new().with_target(OURS, level)
        }
    };
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false);
    let layer = match arguments.log_format {
        StatsFormat::Text => layer.boxed(),
        StatsFormat::Json => layer.event_format(Json).boxed(),
    };
    // Fails only where events are written already.
    let _started = tracing_subscriber::registry()
        .with(layer.with_filter(targets))
        .try_init();
}

/// An object a line.
struct Json;

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let mut line = Fields(serde_json::Map::new());
        line.put("timestamp", time);
        line.put("level", event.metadata().level().as_str());
        line.put("target", event.metadata().target());
        event.record(&mut line);
        writeln!(writer, "{}", serde_json::Value::Object(line.0))
    }
}

/// The fields of an event.
struct Fields(serde_json::Map<String, serde_json::Value>);

impl Fields {
    fn put(&mut self, name: &str, value: impl Into<serde_json::Value>) {
        self.0.insert(name.to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.put(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), value);
    }
}

/// How often clients can have the state written.
const STATE_EVERY: Duration = Duration::from_secs(1);

/// Whether enough time went by since the last time; `now` is the last time then.
fn is_due(last: &Mutex<Option<Instant>>, now: Instant) -> bool {
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    let is_due = last.is_none_or(|last| now.saturating_duration_since(last) >= STATE_EVERY);
    if is_due {
        *last = Some(now);
    }
    is_due
}

/// What the server is doing, for a client that asks to have it written: COM_DEBUG. Any client can
/// ask, so requests that come too soon are left out.
pub fn state(engine: &Engine) {
    static LAST: Mutex<Option<Instant>> = Mutex::new(None);
    if !is_due(&LAST, Instant::now()) {
        return;
    }
    let counters = engine.status();
    let moved = counters.iter().filter(|(_, value)| *value > 0);
    let moved: Vec<String> = moved
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    warn!(
        statistics = engine.statistics(),
        counters = moved.join(" "),
        "state of the server"
    );
}

/// A client came in.
pub fn connected(login: &Login) {
    debug!(
        connection = login.connection_id,
        user = login.user,
        host = login.peer.host(),
        "connected"
    );
}

/// A connection ended that its client did not end in order.
pub fn ended(peer: &Peer, login: Option<&Login>, error: &ConnectionError) {
    let host = peer.host();
    match (login, error) {
        (Some(login), _) => warn!(
            connection = login.connection_id,
            user = login.user,
            host,
            reason = %error,
            "aborted connection"
        ),
        (None, ConnectionError::Refused(refused)) => warn!(
            host,
            code = refused.code,
            reason = refused.message,
            "refused connection"
        ),
        (None, _) => warn!(host, reason = %error, "connection without login"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_due_once_in_a_while() {
        let last = Mutex::new(None);
        let now = Instant::now();
        assert!(is_due(&last, now));
        assert!(!is_due(&last, now));
        assert!(!is_due(&last, now + STATE_EVERY / 2));
        assert!(is_due(&last, now + STATE_EVERY));
    }
}
