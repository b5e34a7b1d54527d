//! The prepared statements of one connection, as its client knows them: by number.

use std::collections::{BTreeMap, HashMap};

use bytes::BytesMut;
use mayfly_types::MySqlError;

use crate::column::ColumnDefinition;
use crate::error::{too_many_statements, unknown_statement};
use crate::parameters::ParameterType;

/// Numbered statements.
pub(crate) struct Statements<S, C> {
    max: usize,
    last_id: u32,
    by_id: HashMap<u32, Statement<S, C>>,
}

/// One statement, and what its client has said about it.
pub(crate) struct Statement<S, C> {
    pub(crate) prepared: S,
    pub(crate) parameter_count: u16,
    /// Types of the last execution, which the next may leave out.
    pub(crate) types: Vec<ParameterType>,
    /// COM_STMT_SEND_LONG_DATA, by parameter, until the next execution.
    pub(crate) long_data: BTreeMap<u16, BytesMut>,
    pub(crate) long_data_is_too_long: bool,
    /// It was for a parameter that there is not.
    pub(crate) long_data_is_misplaced: bool,
    pub(crate) cursor: Option<Fetching<C>>,
}

/// A cursor and the columns of its rows.
pub(crate) struct Fetching<C> {
    pub(crate) columns: Vec<ColumnDefinition>,
    pub(crate) cursor: C,
}

impl<S, C> Statements<S, C> {
    pub(crate) fn new(max: usize) -> Statements<S, C> {
        Statements {
            max,
            last_id: 0,
            by_id: HashMap::new(),
        }
    }

    /// # Errors
    /// 1461 if one more would be too many.
    pub(crate) fn check_room(&self) -> Result<(), MySqlError> {
        match self.by_id.len() < self.max {
            true => Ok(()),
            false => Err(too_many_statements(self.max)),
        }
    }

    /// Gives a statement its number.
    pub(crate) fn add(&mut self, prepared: S, parameter_count: u16) -> u32 {
        loop {
            self.last_id = self.last_id.wrapping_add(1);
            if self.last_id != 0 && !self.by_id.contains_key(&self.last_id) {
                break;
            }
        }
        let statement = Statement {
            prepared,
            parameter_count,
            types: Vec::new(),
            long_data: BTreeMap::new(),
            long_data_is_too_long: false,
            long_data_is_misplaced: false,
            cursor: None,
        };
        self.by_id.insert(self.last_id, statement);
        self.last_id
    }

    /// # Errors
    /// 1243 if there is no statement of that number; `of` says who asks.
    pub(crate) fn get(&mut self, id: u32, of: &str) -> Result<&mut Statement<S, C>, MySqlError> {
        self.by_id
            .get_mut(&id)
            .ok_or_else(|| unknown_statement(id, of))
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<Statement<S, C>> {
        self.by_id.remove(&id)
    }

    /// Takes all of them out.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Statement<S, C>> {
        std::mem::take(&mut self.by_id).into_values()
    }

    /// Adds a piece of a parameter. There is no answer to this: a mistake shows at the next
    /// execution.
    pub(crate) fn add_long_data(&mut self, id: u32, parameter: u16, data: &[u8], bytes_max: usize) {
        let Some(statement) = self.by_id.get_mut(&id) else {
            return;
        };
        if parameter >= statement.parameter_count {
            statement.long_data_is_misplaced = true;
            return;
        }
        let held: usize = statement.long_data.values().map(BytesMut::len).sum();
        if held + data.len() > bytes_max {
            statement.long_data_is_too_long = true;
            return;
        }
        let so_far = statement.long_data.entry(parameter).or_default();
        so_far.extend_from_slice(data);
    }
}

impl<S, C> Statement<S, C> {
    /// COM_STMT_RESET, and the end of an execution: forgets what was sent ahead.
    pub(crate) fn forget_long_data(&mut self) {
        self.long_data.clear();
        self.long_data_is_too_long = false;
        self.long_data_is_misplaced = false;
    }
}
