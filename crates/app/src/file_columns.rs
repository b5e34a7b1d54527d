//! The names of the columns of files, for completion.
//!
//! **Owns** a session of its own, because the user's is busy with the user. Looks at a file again
//! when it has changed.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use mayfly_session::{Engine, Session};
use tokio::runtime::{Builder, Runtime};

/// Who waits longer for a name types it.
const PATIENCE: Duration = Duration::from_secs(1);
/// Names are found in the first rows of a text file; the types in later ones do not matter.
const FEW_ROWS: &str = "SET mayfly_infer_rows = 100";
/// Files that are remembered.
const REMEMBERED_MAX: usize = 64;

/// What tells a file from what it was before.
type Version = (SystemTime, u64);

/// Reads the names of the columns of files.
pub struct FileColumns {
    engine: Engine,
    /// Opened when the first file is looked at.
    opened: Option<(Runtime, Session)>,
    /// By the files and their options.
    remembered: HashMap<(String, String), (Version, Vec<String>)>,
}

impl FileColumns {
    pub fn new(engine: Engine) -> Self {
        Self {
            engine,
            opened: None,
            remembered: HashMap::new(),
        }
    }

    /// The columns of a file or of a pattern of files with these options; none if it cannot be read
    /// soon.
    pub fn of(&mut self, path: &str, options: &str) -> Vec<String> {
        let version = version(path);
        let file = (path.to_owned(), options.to_owned());
        if let (Some(version), Some((then, names))) = (version, self.remembered.get(&file))
            && version == *then
        {
            return names.clone();
        }
        let names = self.read(path, options).unwrap_or_default();
        if let Some(version) = version.filter(|_| !names.is_empty()) {
            if self.remembered.len() >= REMEMBERED_MAX {
                self.remembered.clear();
            }
            let entry = (version, names.clone());
            self.remembered.insert(file, entry);
        }
        names
    }

    fn read(&mut self, path: &str, options: &str) -> Option<Vec<String>> {
        if self.opened.is_none() {
            let runtime = Builder::new_current_thread().enable_all().build().ok()?;
            let mut session = self.engine.connect();
            runtime.block_on(session.execute(FEW_ROWS)).ok()?;
            self.opened = Some((runtime, session));
        }
        let (runtime, session) = self.opened.as_ref()?;
        let escaped = path.replace('\\', "\\\\").replace('\'', "''");
        let sql = format!("SELECT * FROM '{escaped}' {options}");
        let described = runtime
            .block_on(async { tokio::time::timeout(PATIENCE, session.describe(&sql)).await });
        let columns = described.ok()?.ok()?;
        Some(columns.into_iter().map(|column| column.name).collect())
    }
}

fn version(path: &str) -> Option<Version> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
