//! Pieces of the SQL logic tests: some statements of a file behind those that make its tables.

use mayfly_testkit::Random;
use mayfly_tests::scripts;

/// Statements of an input that make and fill tables.
const PREPARING_MAX: usize = 16;

/// The statements of a file.
struct File {
    /// Those that make and fill tables.
    preparing: Vec<String>,
    others: Vec<String>,
}

/// The statements of all files.
pub(super) struct Scraps(Vec<File>);

impl Scraps {
    pub(super) fn of_scripts() -> Scraps {
        let mut files = Vec::new();
        for path in scripts::all() {
            let text = std::fs::read_to_string(&path).expect("a file of the tests");
            let (preparing, others) = statements(&text).into_iter().partition(|statement| {
                statement.starts_with("CREATE") || statement.starts_with("INSERT")
            });
            files.push(File { preparing, others });
        }
        files.retain(|file| !file.others.is_empty());
        assert!(files.len() > 20, "the files of the tests");
        Scraps(files)
    }

    /// One or two statements of a file, behind its tables.
    pub(super) fn some(&self, random: &mut Random) -> String {
        let file = &self.0[random.below(self.0.len() as u64) as usize];
        let mut chosen: Vec<&str> = { file.preparing.iter() }
            .take(PREPARING_MAX)
            .map(String::as_str)
            .collect();
        for _ in 0..=random.below(2) {
            chosen.push(&file.others[random.below(file.others.len() as u64) as usize]);
        }
        chosen.join(";\n")
    }
}

/// The statements of a SQL logic test: what stands behind `statement` and `query` up to an empty
/// line or the rows.
fn statements(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if !(line.starts_with("statement") || line.starts_with("query")) {
            continue;
        }
        let statement: Vec<&str> = { lines.by_ref() }
            .take_while(|line| !line.is_empty() && *line != "----")
            .collect();
        found.push(statement.join("\n"));
    }
    found
}
