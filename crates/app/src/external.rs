//! Programs that the shell runs for the user: an editor, and commands of the system.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Lets the user edit a text in `$EDITOR`, `$VISUAL` or `vi`; the text, unless the editor failed.
pub fn edit(text: &str) -> io::Result<Option<String>> {
    let file = Draft::create(text)?;
    let named = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let editor = named("EDITOR").or_else(|| named("VISUAL"));
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    // An editor may come with arguments, so a shell reads it; the file is the shell's $1.
    let status = Command::new("/bin/sh")
        .args(["-c", &format!("{editor} \"$1\""), "mayfly"])
        .arg(&file.0)
        .status()?;
    if !status.success() {
        return Ok(None);
    }
    let mut edited = String::new();
    File::open(&file.0)?.read_to_string(&mut edited)?;
    Ok(Some(edited.trim_end().to_owned()))
}

/// Runs a command of the system.
pub fn run(command: &str) -> io::Result<()> {
    let status = Command::new("/bin/sh").arg("-c").arg(command).status()?;
    if let Some(code) = status.code().filter(|code| *code != 0) {
        eprintln!("mayfly: '{command}' ended with code {code}");
    }
    Ok(())
}

/// A file that nobody else reads, for as long as it is edited.
struct Draft(PathBuf);

impl Draft {
    fn create(text: &str) -> io::Result<Self> {
        let dir = std::env::temp_dir();
        let mut number = 0;
        loop {
            let path = dir.join(format!("mayfly-{}-{number}.sql", std::process::id()));
            match Self::write(&path, text) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn write(path: &Path, text: &str) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        writeln!(file, "{text}")
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Without the file there is nothing left to remove.
        let _ = std::fs::remove_file(&self.0);
    }
}
