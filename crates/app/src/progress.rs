//! The line that shows what a long statement does, how far it has come, and what it takes.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use mayfly_session::Progress;

use crate::size::display_bytes;

/// A statement that is shorter shows no line.
const PATIENCE: Duration = Duration::from_millis(700);

/// One line on standard error, drawn while a statement runs and then removed. Draws nothing when
/// standard error is not a terminal.
pub struct ProgressLine {
    started: Instant,
    bar: Option<ProgressBar>,
}

impl ProgressLine {
    pub fn new() -> Self {
        Self {
            started: Instant::now(),
            bar: None,
        }
    }

    pub fn draw(&mut self, progress: Progress) {
        if self.started.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| ProgressBar::new(0));
        let takes = format!(
            ", {} in memory, {} on disk",
            display_bytes(progress.memory_bytes),
            display_bytes(progress.disk_bytes)
        );
        let template = match progress.rows_total {
            Some(rows) if rows > 0 => {
                bar.set_length(rows);
                "[{elapsed}] {prefix}: {bar:20} {percent}% of the rows read{msg}"
            }
            _ => "[{elapsed}] {prefix}: {spinner} {human_pos} rows read{msg}",
        };
        let style = ProgressStyle::with_template(template).expect("the templates are valid");
        bar.set_style(style.tick_chars("|/-\\ ").progress_chars("=> "));
        bar.set_prefix(progress.phase);
        bar.set_message(takes);
        bar.set_position(progress.rows_read);
        bar.tick();
    }

    pub fn hide(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
