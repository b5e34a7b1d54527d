//! Finished cells, kept so that a benchmark can be taken up again.
//!
//! Owns: one file of JSON lines per benchmark: a header with the options that matter, then a
//! line per finished cell (or turn of a script). A line cut short by a crash is ignored.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{BenchError, Context};
use crate::results::Cell;

#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    options: String,
}

pub(crate) struct State<T = Cell> {
    file: File,
    finished: Vec<T>,
}

impl<T: Clone + Serialize + DeserializeOwned> State<T> {
    /// Opens the file, keeping its cells when `resume` is asked and the options are the same.
    pub(crate) fn open(path: &Path, options: &str, resume: bool) -> Result<Self, BenchError> {
        let header = Header {
            options: options.to_owned(),
        };
        let doing = || format!("using {}", path.display());
        let mut finished = Vec::new();
        if resume && path.exists() {
            let text = fs::read_to_string(path).context(doing)?;
            let mut lines = text.lines();
            let found: Option<Header> = lines
                .next()
                .and_then(|line| serde_json::from_str(line).ok());
            match found {
                Some(found) if found == header => {
                    finished = lines
                        .filter_map(|line| serde_json::from_str(line).ok())
                        .collect();
                }
                Some(found) => {
                    return Err(BenchError::Setup(format!(
                        "{} holds a run with other options ({}): repeat them or leave out --resume",
                        path.display(),
                        found.options
                    )));
                }
                None => {}
            }
        }
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir).context(doing)?;
        }
        let mut file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .open(path)
            .context(doing)?;
        write_line(&mut file, &header).context(doing)?;
        for cell in &finished {
            write_line(&mut file, cell).context(doing)?;
        }
        Ok(Self { file, finished })
    }

    /// A finished cell with this identity.
    pub(crate) fn find(&self, wanted: impl Fn(&T) -> bool) -> Option<T> {
        self.finished.iter().find(|cell| wanted(cell)).cloned()
    }

    /// Keeps a cell.
    pub(crate) fn keep(&mut self, cell: &T) -> Result<(), BenchError> {
        write_line(&mut self.file, cell).context(|| "writing the state file".to_owned())
    }
}

fn write_line(file: &mut File, value: &impl Serialize) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    file.write_all(&line)
}
