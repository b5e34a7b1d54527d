//! The commands of the shell: their names, their shortcuts, and what `help` says of them.
//!
//! **Never** runs one. A shortcut that asks the engine something is nothing but the statement that
//! it stands for, so it works in files and pipes as it does at the prompt.

/// What `help` prints.
pub const HELP: &str = "\
Statements end with ; and may span lines. Files are tables: SELECT * FROM 'file.parquet';

  \\G               run the statement, one column per line    \\g    same as ;
  \\all             run the last query again and show all its rows
  \\c               discard the statement                     clear
  delimiter STR    end statements with STR

  \\dt [PATTERN]    list tables; with \\dt+ their types too
  \\d TABLE         columns of a table or a 'file'; with \\d+ their collations and comments too
  \\l [PATTERN]     list databases
  \\u DATABASE      change the current database               use DATABASE
  \\s               show version and connection               status

  \\T FORMAT        table, tsv, csv or json                   tableformat FORMAT
  \\P [COMMAND]     show results in a pager                   pager [COMMAND]
  \\n               show results on the terminal              nopager

  \\. FILE          run the statements of a file              source FILE
  \\e               edit the statement in $EDITOR             edit
  \\! COMMAND       run a command of the system               system COMMAND
  \\#               read names for completion again           rehash
  \\h               show this                                 help, \\?
  \\q               leave                                     quit, exit, Ctrl-D

  Tab completes names, columns of tables and files, and file names inside quotes.
  'pager COMMAND' shows all results with the command; 'pager' alone shows with $PAGER, or else
  less, what does not fit the terminal. Ctrl-R searches the history. Ctrl-C cancels the statement
  that runs; twice at an empty prompt it leaves.";

/// Words that begin a line and are commands, for completion.
pub const WORDS: [&str; 11] = [
    "delimiter",
    "edit",
    "help",
    "nopager",
    "pager",
    "quit",
    "rehash",
    "source",
    "status",
    "system",
    "tableformat",
];

/// A command of the shell, never sent to the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Run the last query again and show all its rows.
    AllRows,
    /// Show the columns of a file, which is named with its quotes.
    DescribeFile(String),
    /// Edit this text, or the last statement where it is empty.
    Edit(String),
    /// Show results in another format.
    Format(String),
    Help,
    NoPager,
    /// Show results in a pager; which one is left open if the text is empty.
    Pager(String),
    Quit,
    Rehash,
    Source(String),
    Status,
    /// Run a command of the operating system.
    System(String),
}

/// What a shortcut stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shortcut {
    Command(Command),
    /// A statement.
    Sql(String),
}

/// A line that is a command from its first word on, and what follows the command; `word` is in
/// lower case.
pub fn of_word<'a>(word: &str, rest: &'a str, delimiter: &str) -> Option<(Command, &'a str)> {
    let takes_line = matches!(word, "source" | "system" | "pager");
    let (argument, after) = argument(rest, delimiter, takes_line);
    let alone = argument.is_empty();
    let command = match word {
        "source" if !alone => Command::Source(argument),
        "system" if !alone => Command::System(argument),
        "pager" => Command::Pager(argument),
        "tableformat" => Command::Format(argument),
        "help" | "?" => Command::Help,
        "exit" | "quit" if alone => Command::Quit,
        "status" if alone => Command::Status,
        "nopager" if alone => Command::NoPager,
        "rehash" if alone => Command::Rehash,
        "edit" if alone => Command::Edit(String::new()),
        _ => return None,
    };
    Some((command, after))
}

/// What follows a word that has no argument; `None` where it has one.
pub fn behind_lone<'a>(rest: &'a str, delimiter: &str) -> Option<&'a str> {
    let (argument, after) = argument(rest, delimiter, false);
    argument.is_empty().then_some(after)
}

/// The shortcut at the beginning of what follows a backslash, and how many bytes it takes.
pub fn of_backslash(after: &str, delimiter: &str) -> Option<(Shortcut, usize)> {
    let letters = after.bytes().take_while(u8::is_ascii_alphabetic).count();
    let plus = after[letters..].starts_with('+');
    let name = &after[..letters + usize::from(plus)];
    let behind = &after[name.len()..];
    let ends =
        behind.is_empty() || behind.starts_with([' ', '\t', ';']) || behind.starts_with(delimiter);
    let (text, rest) = argument(behind, delimiter, name == "P");
    if ends && let Some(meaning) = of_name(name, &text) {
        return Some((meaning, after.len() - rest.len()));
    }
    let first = after.chars().next()?;
    let behind = &after[first.len_utf8()..];
    let (text, rest) = argument(behind, delimiter, true);
    let (command, rest) = match first {
        'q' => (Command::Quit, behind),
        'h' | '?' => (Command::Help, behind),
        's' => (Command::Status, behind),
        'n' => (Command::NoPager, behind),
        '#' => (Command::Rehash, behind),
        '.' => (Command::Source(text), rest),
        '!' => (Command::System(text), rest),
        _ => return None,
    };
    Some((Shortcut::Command(command), after.len() - rest.len()))
}

/// A shortcut that is a word of its own.
fn of_name(name: &str, argument: &str) -> Option<Shortcut> {
    let command = match (name, argument) {
        ("all", _) => Command::AllRows,
        ("T", _) => Command::Format(argument.to_owned()),
        ("P", _) => Command::Pager(argument.to_owned()),
        ("d" | "d+", file) if file.starts_with(['\'', '"']) => {
            Command::DescribeFile(file.to_owned())
        }
        _ => return of_question(name, argument).map(Shortcut::Sql),
    };
    Some(Shortcut::Command(command))
}

/// The statement of a shortcut that asks the engine.
fn of_question(name: &str, argument: &str) -> Option<String> {
    Some(match (name, argument) {
        ("dt" | "d", "") => "SHOW TABLES".to_owned(),
        ("dt+" | "d+", "") => "SHOW FULL TABLES".to_owned(),
        ("dt", pattern) => format!("SHOW TABLES LIKE {}", like(pattern)),
        ("dt+", pattern) => format!("SHOW FULL TABLES LIKE {}", like(pattern)),
        ("d", table) => format!("SHOW COLUMNS FROM {table}"),
        ("d+", table) => format!("SHOW FULL COLUMNS FROM {table}"),
        ("l", "") => "SHOW DATABASES".to_owned(),
        ("l", pattern) => format!("SHOW DATABASES LIKE {}", like(pattern)),
        ("u", database) if !database.is_empty() => format!("USE {database}"),
        _ => return None,
    })
}

/// A pattern of LIKE; `*` may stand for `%`.
fn like(pattern: &str) -> String {
    let bare = pattern.trim_matches(['\'', '"']);
    let escaped = bare.replace('*', "%").replace('\'', "''");
    format!("'{escaped}'")
}

/// The argument of a command, without a delimiter, and what follows it on its line. Names of files
/// and commands of the system take the whole line, as in the `mysql` client: they may hold
/// delimiters.
fn argument<'a>(rest: &'a str, delimiter: &str, takes_line: bool) -> (String, &'a str) {
    let end = match takes_line && !rest.trim_start().starts_with(delimiter) {
        true => rest.len(),
        false => end_of_argument(rest, delimiter),
    };
    let (text, after) = rest.split_at(end);
    let text = text.trim();
    let text = text.strip_suffix(delimiter).unwrap_or(text);
    let text = text.trim_end_matches(';').trim();
    let after = after.strip_prefix(delimiter).unwrap_or(after);
    (text.to_owned(), after)
}

/// Where the first delimiter outside of quotes stands, or the text ends.
fn end_of_argument(text: &str, delimiter: &str) -> usize {
    let mut quote = None;
    let mut chars = text.char_indices();
    while let Some((at, character)) = chars.next() {
        match quote {
            Some('\'' | '"') if character == '\\' => {
                chars.next();
            }
            Some(open) if character == open => quote = None,
            Some(_) => {}
            None if text[at..].starts_with(delimiter) => return at,
            None if matches!(character, '\'' | '"' | '`') => quote = Some(character),
            None => {}
        }
    }
    text.len()
}
