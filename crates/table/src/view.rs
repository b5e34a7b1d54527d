//! Views: queries under the names of tables.
//!
//! **Owns** what is kept of one: its text, and what gives the text its meaning. **Never** reads the
//! text: that is for who plans it.

use std::fmt;

/// A query that goes by the name of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Its name.
    pub name: String,
    /// What its columns are called.
    pub columns: Vec<String>,
    /// Whether the statement that made it names them.
    pub names_columns: bool,
    /// The query, without `*`. Tables that it names without a database stand in that of the view.
    pub query: String,
    /// Whether `||` in the query puts texts together.
    pub pipes_as_concat: bool,
    /// ALGORITHM.
    pub algorithm: ViewAlgorithm,
    /// DEFINER: a user and a host. It means nothing.
    pub definer: (String, String),
    /// SQL SECURITY. It means nothing.
    pub security: ViewSecurity,
    /// WITH CHECK OPTION.
    pub check: Option<CheckOption>,
    /// The character set in which the client wrote it.
    pub character_set_client: String,
    /// The collation of the connection that made it.
    pub collation_connection: String,
}

/// How a view is to be computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ViewAlgorithm {
    /// As is best.
    #[default]
    Undefined,
    /// As a part of the query that names it.
    Merge,
    /// Before the query that names it.
    TempTable,
}

impl fmt::Display for ViewAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ViewAlgorithm::Undefined => "UNDEFINED",
            ViewAlgorithm::Merge => "MERGE",
            ViewAlgorithm::TempTable => "TEMPTABLE",
        })
    }
}

/// Whose rights a view is read with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ViewSecurity {
    /// Those of who made it.
    #[default]
    Definer,
    /// Those of who reads it.
    Invoker,
}

impl fmt::Display for ViewSecurity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ViewSecurity::Definer => "DEFINER",
            ViewSecurity::Invoker => "INVOKER",
        })
    }
}

/// Whose conditions rows must meet that are written through a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckOption {
    /// Those of the view, and of views below that have the option.
    Local,
    /// Those of all views below.
    Cascaded,
}

impl fmt::Display for CheckOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CheckOption::Local => "LOCAL",
            CheckOption::Cascaded => "CASCADED",
        })
    }
}
