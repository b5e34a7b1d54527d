//! The memory that the program's own code takes.
//!
//! **Owns** nothing. The pages of an executable are clean copies of a file: the kernel may drop
//! them and read them again, but on an idle machine it does not. Planning a statement runs through
//! tens of megabytes of code that running it never needs, so a process with a small budget would
//! carry more code than data. Before the budget fills up, the code is given back; what is still
//! needed comes back from the page cache, 64 KiB a fault (about 1 us each).

#![expect(
    unsafe_code,
    reason = "tells the kernel about the mapping of the program's code"
)]

use std::io;

/// A mapping of this process that holds code and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CodeMapping {
    start: usize,
    len: usize,
}

/// Lets the kernel take back the memory of the program's code. Returns the bytes of code that are
/// mapped, in memory or not.
///
/// # Errors
/// Where `/proc/self/maps` cannot be read or the kernel refuses the advice.
pub(crate) fn give_code_back() -> io::Result<usize> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let program = std::env::current_exe()?;
    let program = program.to_string_lossy();
    let mut bytes = 0;
    for mapping in maps.lines().filter_map(|line| code_mapping(line, &program)) {
        drop_pages(mapping)?;
        bytes += mapping.len;
    }
    Ok(bytes)
}

/// The mapping that a line describes, if it is private, executable, not writable, and of the
/// program's file.
fn code_mapping(line: &str, program: &str) -> Option<CodeMapping> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    if fields.next()? != "r-xp" || !line.ends_with(program) {
        return None;
    }
    let start = usize::from_str_radix(start, 16).ok()?;
    let end = usize::from_str_radix(end, 16).ok()?;
    Some(CodeMapping {
        start,
        len: end - start,
    })
}

fn drop_pages(mapping: CodeMapping) -> io::Result<()> {
    use rustix::mm::{Advice, madvise};
    let start = std::ptr::with_exposed_provenance_mut(mapping.start);
    // SAFETY: S7: the mapping is private, of a file and never written, so a page that is dropped
    // reads the same bytes when it is touched again.
    unsafe { madvise(start, mapping.len, Advice::LinuxDontNeed) }?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_the_program_is_recognised() {
        let line = "5581a000-5581c000 r-xp 00001000 fe:00 123   /usr/bin/mayfly";
        let found = code_mapping(line, "/usr/bin/mayfly");
        assert_eq!(found.map(|m| (m.start, m.len)), Some((0x5581_a000, 0x2000)));
        assert_eq!(code_mapping(line, "/usr/bin/other"), None);
        let data = line.replace("r-xp", "rw-p");
        assert_eq!(code_mapping(&data, "/usr/bin/mayfly"), None);
    }

    #[test]
    fn the_program_runs_on_without_its_code() {
        let bytes = give_code_back().expect("Linux takes the advice");
        assert!(bytes > 0, "the test program has code");
        assert_eq!((1..=10).product::<u64>(), 3_628_800);
    }
}
