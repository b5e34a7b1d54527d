//! The prepared statements of one connection, as its client knows them: by number.

use std::collections::{BTreeMap, HashMap};

use bytes::BytesMut;
use mayfly_types::MySqlError;

use crate::column::ColumnDefinition;
use crate::error::{long_data_too_long, too_many_statements, unknown_statement, wrong_arguments};
use crate::memory::Share;
use crate::parameters::{Parameter, ParameterType};

/// What names the execution of a statement in errors.
pub(crate) const EXECUTE: &str = "mysqld_stmt_execute";

/// What a parameter's place among the long data takes beside its bytes.
const ENTRY_BYTES: usize = 128;

/// Values of an execution that are not counted: most have a few.
const FEW_VALUES_BYTES: usize = 4 << 10;

/// Numbered statements.
pub(crate) struct Statements<S, C> {
    max: usize,
    share: Share,
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
    /// The sum of their lengths: there may be 65,535 of them, and a piece comes for each.
    long_data_bytes: usize,
    /// What was wrong with it first. There is no answer to that command, so the next execution
    /// tells.
    long_data_error: Option<MySqlError>,
    pub(crate) cursor: Option<Fetching<C>>,
    /// What it holds of the connection's memory: types, values and long data.
    share: Share,
}

/// A cursor and the columns of its rows.
pub(crate) struct Fetching<C> {
    pub(crate) columns: Vec<ColumnDefinition>,
    pub(crate) cursor: C,
}

impl<S, C> Statements<S, C> {
    pub(crate) fn new(max: usize, share: Share) -> Statements<S, C> {
        Statements {
            max,
            share,
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
    ///
    /// # Errors
    /// Where the connection's memory has no room for the types of so many parameters.
    pub(crate) fn add(&mut self, prepared: S, parameter_count: u16) -> Result<u32, MySqlError> {
        let mut share = self.share.another();
        share.resize(types_bytes(parameter_count))?;
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
            long_data_bytes: 0,
            long_data_error: None,
            cursor: None,
            share,
        };
        self.by_id.insert(self.last_id, statement);
        Ok(self.last_id)
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

    /// Adds a piece of a parameter.
    pub(crate) fn add_long_data(&mut self, id: u32, parameter: u16, data: &[u8], bytes_max: usize) {
        let Some(statement) = self.by_id.get_mut(&id) else {
            return;
        };
        if parameter >= statement.parameter_count {
            statement.refuse_long_data(wrong_arguments(EXECUTE));
        } else if statement.long_data_error.is_none()
            && let Err(error) = statement.hold_long_data(parameter, data, bytes_max)
        {
            statement.refuse_long_data(error);
        }
    }

    /// Takes note that a piece of a parameter has been lost.
    pub(crate) fn refuse_long_data(&mut self, id: u32, error: MySqlError) {
        if let Some(statement) = self.by_id.get_mut(&id) {
            statement.refuse_long_data(error);
        }
    }
}

impl<S, C> Statement<S, C> {
    fn hold_long_data(
        &mut self,
        parameter: u16,
        data: &[u8],
        bytes_max: usize,
    ) -> Result<(), MySqlError> {
        let held = self.long_data_bytes.saturating_add(data.len());
        if held > bytes_max {
            return Err(long_data_too_long());
        }
        let so_far = self.long_data.get(&parameter);
        let (len, capacity) = so_far.map_or((0, 0), |data| (data.len(), data.capacity()));
        let needed = len.saturating_add(data.len());
        if so_far.is_some() && needed <= capacity {
            if let Some(so_far) = self.long_data.get_mut(&parameter) {
                so_far.extend_from_slice(data);
            }
            self.long_data_bytes = held;
            return Ok(());
        }
        // Twice as much, so that each byte is copied once, but no more than may come.
        let wanted = capacity.saturating_mul(2).min(bytes_max).max(needed);
        let before = self.share.bytes();
        let more = wanted.saturating_add(ENTRY_BYTES);
        self.share.resize(before.saturating_add(more))?;
        let mut grown = BytesMut::with_capacity(wanted);
        grown.extend_from_slice(so_far.map_or(&[], |so_far| so_far));
        grown.extend_from_slice(data);
        self.long_data_bytes = held;
        if self.long_data.insert(parameter, grown).is_some() {
            let less = capacity.saturating_add(ENTRY_BYTES);
            self.share.shrink(self.share.bytes().saturating_sub(less));
        }
        Ok(())
    }

    fn refuse_long_data(&mut self, error: MySqlError) {
        let first = self.long_data_error.take();
        self.forget_long_data();
        self.long_data_error = Some(first.unwrap_or(error));
    }

    /// Makes room for the values of an execution, until what was sent ahead is forgotten.
    ///
    /// # Errors
    /// Where the connection's memory has none; what was sent ahead is forgotten then.
    pub(crate) fn hold_parameters(&mut self) -> Result<(), MySqlError> {
        let values = size_of::<Parameter<'_>>().saturating_mul(usize::from(self.parameter_count));
        if values <= FEW_VALUES_BYTES {
            return Ok(());
        }
        let held = self.share.bytes().saturating_add(values);
        self.share
            .resize(held)
            .inspect_err(|_| self.forget_long_data())
    }

    /// Whether what was sent ahead has come whole.
    ///
    /// # Errors
    /// What was wrong with it; that is forgotten then.
    pub(crate) fn check_long_data(&mut self) -> Result<(), MySqlError> {
        self.long_data_error.take().map_or(Ok(()), Err)
    }

    /// COM_STMT_RESET, and the end of an execution: forgets its values and what was sent ahead.
    pub(crate) fn forget_long_data(&mut self) {
        self.long_data.clear();
        self.long_data_bytes = 0;
        self.long_data_error = None;
        self.share.shrink(types_bytes(self.parameter_count));
    }
}

/// What the types of the parameters of an execution take.
fn types_bytes(parameter_count: u16) -> usize {
    size_of::<ParameterType>().saturating_mul(usize::from(parameter_count))
}
