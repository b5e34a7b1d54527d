//! Calls of functions, as they are written.

use datafusion::sql::sqlparser::ast::{
    Function, FunctionArgumentList, FunctionArguments, ObjectName, ObjectNamePart,
};

/// The name that a call has, in lower case; `None` if it is one of several parts.
pub fn name_of(name: &ObjectName) -> Option<String> {
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] => Some(name.value.to_ascii_lowercase()),
        _ => None,
    }
}

/// The list of the arguments of a call that has nothing else: no OVER, no ORDER BY, no FILTER.
/// DISTINCT may stand in it.
pub fn plain_list(function: &Function) -> Option<&FunctionArgumentList> {
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let is_plain = function.parameters == FunctionArguments::None
        && !function.uses_odbc_syntax
        && function.filter.is_none()
        && function.null_treatment.is_none()
        && function.over.is_none()
        && function.within_group.is_empty()
        && list.clauses.is_empty();
    is_plain.then_some(list)
}
