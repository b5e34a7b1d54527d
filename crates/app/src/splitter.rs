//! Cuts what is typed or piped into statements and shell commands, line by line.
//!
//! **Owns** the text of the statement that is not complete yet, and the delimiter.
//! **Never** looks at what a statement means, and never holds more than one statement: a script of
//! any length runs in the memory of its longest statement.
//!
//! The rules are those of the `mysql` client: quotes with backslash escapes, three kinds of
//! comments, `DELIMITER`, `\G`, and commands such as `source` at the start of a line. What another
//! delimiter ends may hold several statements with `;` between them; they are cut apart here.

use crate::commands::{self, Command, Shortcut};

/// What a line completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// One SQL statement without its delimiter.
    Statement {
        sql: String,
        /// Line on which its first word stands, from 1.
        line: u64,
        /// Ended by `\G`: one column per line.
        vertical: bool,
        /// Another statement of the same text follows; it does not run when this one fails.
        leads: bool,
    },
    /// A command of the shell itself.
    Command(Command),
}

/// What the text so far lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    Statement,
    Delimiter,
    Quote(char),
    Comment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Plain,
    Quote(char),
    /// A block comment; whether its text is kept.
    Comment {
        keep: bool,
    },
}

/// Collects lines until a statement is complete.
#[derive(Clone, Debug)]
pub struct Splitter {
    buffer: String,
    state: State,
    delimiter: String,
    line: u64,
    start_line: u64,
}

impl Default for Splitter {
    fn default() -> Self {
        Self::with_delimiter(";")
    }
}

impl Splitter {
    /// A splitter at line 1 whose statements end with `delimiter`.
    pub fn with_delimiter(delimiter: &str) -> Self {
        Self {
            buffer: String::new(),
            state: State::Plain,
            delimiter: delimiter.to_string(),
            line: 0,
            start_line: 1,
        }
    }

    /// The delimiter in force.
    pub fn delimiter(&self) -> &str {
        &self.delimiter
    }

    /// What would complete the text so far.
    pub fn waiting(&self) -> Waiting {
        match self.state {
            State::Quote(quote) => Waiting::Quote(quote),
            State::Comment { .. } => Waiting::Comment,
            State::Plain if self.buffer.trim().is_empty() => Waiting::Statement,
            State::Plain => Waiting::Delimiter,
        }
    }

    /// Adds whole lines and appends what they completed to `items`.
    pub fn push_text(&mut self, text: &str, items: &mut Vec<Item>) {
        for line in text.lines() {
            if let Some(line) = self.begin_line(line, items) {
                self.scan_whole(line, items);
            }
        }
    }

    /// Begins a line, without its line end; gives back what is to be scanned: all of it, unless it
    /// begins with a command.
    pub fn begin_line<'a>(&mut self, line: &'a str, items: &mut Vec<Item>) -> Option<&'a str> {
        self.line += 1;
        let rest = match self.waiting() {
            Waiting::Statement => self.take_command(line, items).unwrap_or(line),
            _ => line,
        };
        // An empty line, too, ends a line of the statement.
        (!rest.is_empty() || line.is_empty()).then_some(rest)
    }

    /// Scans a line up to the next end of a statement, which is appended to `items`; gives the rest
    /// of the line, unless it is at its end. So a line of a million statements is there once.
    pub fn scan<'a>(&mut self, line: &'a str, items: &mut Vec<Item>) -> Option<&'a str> {
        let mut rest = line;
        let before = items.len();
        while !rest.is_empty() && items.len() == before {
            rest = match self.state {
                State::Plain => self.step_plain(rest, items),
                State::Quote(quote) => self.step_quote(rest, quote),
                State::Comment { keep } => self.step_comment(rest, keep),
            };
        }
        if !rest.is_empty() {
            return Some(rest);
        }
        if !self.buffer.is_empty() {
            self.buffer.push('\n');
        }
        None
    }

    fn scan_whole(&mut self, line: &str, items: &mut Vec<Item>) {
        let mut rest = Some(line);
        while let Some(line) = rest {
            rest = self.scan(line, items);
        }
    }

    /// Ends the input: a last statement needs no delimiter.
    pub fn finish(&mut self, items: &mut Vec<Item>) {
        self.complete(false, items);
        self.state = State::Plain;
    }

    /// What follows the command that a line begins with; only asked where a statement would begin.
    fn take_command<'a>(&mut self, line: &'a str, items: &mut Vec<Item>) -> Option<&'a str> {
        let text = line.trim();
        let (word, rest) = match text.split_once(char::is_whitespace) {
            Some((word, rest)) => (word, rest.trim()),
            None => (text, ""),
        };
        if word.eq_ignore_ascii_case("delimiter") {
            if !rest.is_empty() {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                self.delimiter = rest[..end].to_string();
            }
            return Some("");
        }
        if word.eq_ignore_ascii_case("use") && !text.contains(&self.delimiter) {
            // Ends with its line; behind a delimiter or \g it is a statement as any other.
            if text.contains("\\g") || text.contains("\\G") {
                return None;
            }
            self.keep(text);
            self.complete(false, items);
            return Some("");
        }
        // A delimiter may stand right behind the word.
        let end = word.find(self.delimiter.as_str()).unwrap_or(word.len());
        let (word, rest) = text.split_at(end);
        let word = word.trim_end_matches(';').to_ascii_lowercase();
        if word == "clear" {
            return commands::behind_lone(rest, &self.delimiter);
        }
        let (command, rest) = commands::of_word(&word, rest, &self.delimiter)?;
        items.push(Item::Command(command));
        Some(rest)
    }

    fn step_plain<'a>(&mut self, rest: &'a str, items: &mut Vec<Item>) -> &'a str {
        if let Some(after) = rest.strip_prefix(self.delimiter.as_str()) {
            self.complete(false, items);
            return after;
        }
        if is_line_comment(rest) {
            if !self.buffer.trim().is_empty() {
                self.buffer.push_str(rest);
            }
            return "";
        }
        if let Some(after) = rest.strip_prefix("/*") {
            // Hints and version comments are part of the statement that follows them.
            let keep = !self.buffer.trim().is_empty() || after.starts_with(['!', '+']);
            self.state = State::Comment { keep };
            if keep {
                self.keep("/*");
            }
            return after;
        }
        if let Some(after) = rest.strip_prefix('\\') {
            return self.step_backslash(after, items);
        }
        let first = rest.chars().next().expect("the line has text left");
        let after = &rest[first.len_utf8()..];
        if matches!(first, '\'' | '"' | '`') {
            self.state = State::Quote(first);
        }
        if first.is_whitespace() && self.buffer.is_empty() {
            return after;
        }
        let run = match first {
            '\'' | '"' | '`' => first.len_utf8(),
            _ => first.len_utf8() + self.plain_run(after),
        };
        self.keep(&rest[..run]);
        &rest[run..]
    }

    /// How many bytes at the beginning mean nothing here: neither a delimiter, a quote nor a
    /// comment begins with one of them.
    fn plain_run(&self, rest: &str) -> usize {
        let ends = self.delimiter.as_bytes().first();
        let is_plain = |byte: &u8| {
            let means_nothing = byte.is_ascii_alphanumeric() || b" _,().=<>+*".contains(byte);
            means_nothing && Some(byte) != ends
        };
        rest.bytes().take_while(|byte| is_plain(byte)).count()
    }

    fn step_backslash<'a>(&mut self, after: &'a str, items: &mut Vec<Item>) -> &'a str {
        let Some(letter) = after.chars().next() else {
            self.keep("\\");
            return "";
        };
        if let Some((shortcut, taken)) = commands::of_backslash(after, &self.delimiter) {
            match shortcut {
                Shortcut::Command(command) => items.push(Item::Command(command)),
                Shortcut::Sql(sql) => items.push(Item::Statement {
                    sql,
                    line: self.line,
                    vertical: false,
                    leads: false,
                }),
            }
            return &after[taken..];
        }
        match letter {
            'g' => self.complete(false, items),
            'G' => self.complete(true, items),
            'c' => self.buffer.clear(),
            'e' => {
                let text = std::mem::take(&mut self.buffer);
                items.push(Item::Command(Command::Edit(text.trim().to_owned())));
            }
            _ => {
                self.keep("\\");
                self.keep(&after[..letter.len_utf8()]);
            }
        }
        &after[letter.len_utf8()..]
    }

    fn step_quote<'a>(&mut self, rest: &'a str, quote: char) -> &'a str {
        let escapes = quote != '`';
        let mut chars = rest.char_indices();
        while let Some((at, c)) = chars.next() {
            if c == '\\' && escapes {
                chars.next();
            } else if c == quote {
                // A doubled quote opens again at once, which comes to the same.
                let (inside, after) = rest.split_at(at + quote.len_utf8());
                self.keep(inside);
                self.state = State::Plain;
                return after;
            }
        }
        self.keep(rest);
        ""
    }

    fn step_comment<'a>(&mut self, rest: &'a str, keep: bool) -> &'a str {
        let (inside, after) = match rest.find("*/") {
            Some(at) => {
                self.state = State::Plain;
                rest.split_at(at + 2)
            }
            None => (rest, ""),
        };
        if keep {
            self.keep(inside);
        }
        after
    }

    fn keep(&mut self, text: &str) {
        if self.buffer.is_empty() {
            self.start_line = self.line;
        }
        self.buffer.push_str(text);
    }

    fn complete(&mut self, vertical: bool, items: &mut Vec<Item>) {
        let text = std::mem::take(&mut self.buffer);
        let sql = text.trim();
        if self.delimiter != ";" && sql.contains(';') {
            self.cut(sql, vertical, items);
        } else if !sql.is_empty() {
            items.push(Item::Statement {
                sql: sql.to_string(),
                line: self.start_line,
                vertical,
                leads: false,
            });
        }
    }

    /// Cuts a text that another delimiter ended at its semicolons.
    fn cut(&self, text: &str, vertical: bool, items: &mut Vec<Item>) {
        let mut parts = Splitter::with_delimiter(";");
        let mut found = Vec::new();
        for (line, number) in text.lines().zip(self.start_line..) {
            parts.line = number;
            parts.scan_whole(line, &mut found);
        }
        parts.complete(vertical, &mut found);
        let count = found.len();
        for (index, mut item) in found.into_iter().enumerate() {
            if let Item::Statement {
                vertical: on_side,
                leads,
                ..
            } = &mut item
            {
                *on_side = vertical;
                *leads = index + 1 < count;
            }
            items.push(item);
        }
    }
}

/// `#` anywhere, `--` only before white space or at the end of the line.
fn is_line_comment(rest: &str) -> bool {
    rest.starts_with('#')
        || rest
            .strip_prefix("--")
            .is_some_and(|after| after.chars().next().is_none_or(char::is_whitespace))
}
