//! Where the rows of one result go at a prompt: to the terminal, or to a pager.
//!
//! **Owns** the pager's process while the rows of one result are written. **Never** holds more than
//! a screen of text: what is longer goes on to the pager as it comes.

use std::io::{self, BufWriter, Stdout, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use crate::terminal::{self, Size};

/// What is run where neither the user nor `PAGER` names a pager.
const DEFAULT: &str = "less";
/// What `less` does unless `LESS` says otherwise: keep colours, leave the screen as it is at its
/// end, and cut lines instead of wrapping them, so that the columns of boxes stay below each other.
const LESS: &str = "RXS";
/// Rows of the terminal that results leave free: their figures, an empty line and the prompt.
const FREE_ROWS: usize = 3;

/// A program that shows results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pager {
    command: String,
    shows: Shows,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shows {
    /// All results: the user named the program, which may count or search.
    Everything,
    /// Results that the terminal does not hold.
    WhatDoesNotFit,
}

impl Pager {
    /// The pager of this command; where it is empty, what `PAGER` says, or else `less`.
    pub fn named(command: &str) -> Self {
        if command.is_empty() {
            return Self::of_environment().unwrap_or_else(|| Self {
                command: DEFAULT.to_owned(),
                shows: Shows::WhatDoesNotFit,
            });
        }
        Self {
            command: command.to_owned(),
            shows: Shows::Everything,
        }
    }

    /// The pager that `PAGER` names.
    pub fn of_environment() -> Option<Self> {
        let command = std::env::var("PAGER").ok()?;
        let command = command.trim();
        (!command.is_empty()).then(|| Self {
            command: command.to_owned(),
            shows: Shows::WhatDoesNotFit,
        })
    }

    /// The command, as the user wrote it.
    pub fn command(&self) -> &str {
        &self.command
    }

    fn start(&self) -> io::Result<Child> {
        let mut command = Command::new("/bin/sh");
        // Ctrl-C is for the pager: the shell around it waits on, or `sort | less` would be left
        // behind with the terminal.
        let waits_on = format!("trap : INT\n{}", self.command);
        command.arg("-c").arg(waits_on).stdin(Stdio::piped());
        if self.shows == Shows::WhatDoesNotFit && std::env::var_os("LESS").is_none() {
            command.env("LESS", LESS);
        }
        command.spawn()
    }
}

/// The text of one result on its way to whoever reads it.
pub struct Sheet<'a> {
    terminal: &'a mut BufWriter<Stdout>,
    state: State<'a>,
    /// Time that the pager had the user read.
    paused: Duration,
}

enum State<'a> {
    /// It goes to the terminal as it comes.
    Terminal,
    /// It fits the screen so far, and is held until it is known whether all of it does; what does
    /// not is for the pager.
    Held(Screen, &'a Pager),
    /// It goes to a pager.
    Paged {
        child: Child,
        input: BufWriter<ChildStdin>,
    },
}

/// What has been written, as long as a screen holds it.
struct Screen {
    size: Size,
    text: Vec<u8>,
    /// Where its last line begins.
    line: usize,
    lines: usize,
}

impl Screen {
    /// Adds some text; whether a screen still holds all of it.
    fn holds(&mut self, added: &[u8]) -> bool {
        self.text.extend_from_slice(added);
        while let Some(len) = self.text[self.line..]
            .iter()
            .position(|byte| *byte == b'\n')
        {
            let line = &self.text[self.line..self.line + len];
            if terminal::width(line) > self.size.columns {
                return false;
            }
            self.line += len + 1;
            self.lines += 1;
        }
        // A character has up to four bytes.
        self.lines + FREE_ROWS <= self.size.rows
            && self.text.len() - self.line <= self.size.columns * 4
    }
}

impl<'a> Sheet<'a> {
    pub fn new(terminal: &'a mut BufWriter<Stdout>, pager: Option<&'a Pager>) -> Self {
        let state = pager.map_or(State::Terminal, |pager| {
            let size = match pager.shows {
                Shows::WhatDoesNotFit => Size::of(io::stdout()),
                Shows::Everything => None,
            };
            let screen = Screen {
                // Nothing fits a screen without a row: the first text starts the pager.
                size: size.unwrap_or(Size {
                    columns: 0,
                    rows: 0,
                }),
                text: Vec::new(),
                line: 0,
                lines: 0,
            };
            State::Held(screen, pager)
        });
        Self {
            terminal,
            state,
            paused: Duration::ZERO,
        }
    }

    /// Whether a pager has the terminal.
    pub fn is_paged(&self) -> bool {
        matches!(self.state, State::Paged { .. })
    }

    /// Whether an error of writing says only that whoever reads the pager has seen enough and ended
    /// it.
    pub fn was_ended(&self, error: &io::Error) -> bool {
        self.is_paged() && error.kind() == io::ErrorKind::BrokenPipe
    }

    /// Gives what is held to whoever reads it, and waits until the pager has ended; tells how long
    /// it had the user read.
    pub fn finish(mut self) -> io::Result<Duration> {
        let started = Instant::now();
        match std::mem::replace(&mut self.state, State::Terminal) {
            State::Terminal => self.terminal.flush()?,
            State::Held(screen, _) => {
                self.terminal.write_all(&screen.text)?;
                self.terminal.flush()?;
            }
            State::Paged { mut child, input } => {
                // A pager that has ended has read what it wanted.
                let _ = { input }.flush();
                child.wait()?;
                self.paused += started.elapsed();
            }
        }
        Ok(self.paused)
    }

    /// Hands the terminal to the pager; without one that starts, the text goes to the terminal.
    fn start(&mut self, pager: &Pager) {
        self.state = match pager.start() {
            Ok(mut child) => match child.stdin.take() {
                Some(input) => State::Paged {
                    child,
                    input: BufWriter::new(input),
                },
                None => State::Terminal,
            },
            Err(error) => {
                eprintln!("mayfly: the pager '{}': {error}", pager.command);
                State::Terminal
            }
        };
    }
}

impl Write for Sheet<'_> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        match &mut self.state {
            State::Terminal => return self.terminal.write(text),
            State::Paged { input, .. } => {
                // What the buffer takes is quick; what the pager takes may wait for the user.
                let started = Instant::now();
                let written = input.write(text);
                self.paused += started.elapsed();
                return written;
            }
            State::Held(screen, _) => {
                if screen.holds(text) {
                    return Ok(text.len());
                }
            }
        }
        let held = std::mem::replace(&mut self.state, State::Terminal);
        if let State::Held(screen, pager) = held {
            self.start(pager);
            // It has the new text too.
            self.write_all(&screen.text)?;
        }
        Ok(text.len())
    }

    /// Writers of rows call this for each cell.
    fn write_all(&mut self, mut text: &[u8]) -> io::Result<()> {
        if let State::Terminal = self.state {
            return self.terminal.write_all(text);
        }
        while !text.is_empty() {
            match self.write(text)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => text = &text[written..],
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.state {
            State::Terminal => self.terminal.flush(),
            State::Held(..) => Ok(()),
            State::Paged { input, .. } => input.flush(),
        }
    }
}
