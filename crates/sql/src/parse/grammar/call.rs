//! Calls: their arguments, and what stands in and behind their parentheses.

use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArgumentList, FunctionArguments, Ident, NullTreatment, ObjectName, ObjectNamePart,
    Spanned, WindowType,
};

use super::{Begins, Grammar, is_one_of};
use crate::declared::is_aggregate;
use crate::functions::own::MARK;
use crate::rewrite::WINDOW_ONLY;

/// Aggregates that may leave out what is there twice.
const WITH_DISTINCT: [&str; 7] = [
    "avg",
    "count",
    "group_concat",
    "json_arrayagg",
    "max",
    "min",
    "sum",
];

/// Aggregates that may be told not to.
const WITH_ALL: [&str; 15] = [
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "count",
    "max",
    "min",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "sum",
    "var_pop",
    "var_samp",
    "variance",
];

/// Window functions that answer the value of one row, and so may be told what to do about NULL.
const OF_ONE_ROW: [&str; 5] = ["first_value", "lag", "last_value", "lead", "nth_value"];

impl Grammar {
    pub(super) fn function(&mut self, function: &Function) {
        let Function {
            name,
            uses_odbc_syntax: _,
            parameters,
            args,
            filter,
            null_treatment,
            over,
            within_group,
        } = function;
        self.function_name(name);
        match parameters {
            FunctionArguments::None => {}
            FunctionArguments::List(_) | FunctionArguments::Subquery(_) => self.refuse_node(name),
        }
        match args {
            FunctionArguments::None => {}
            FunctionArguments::List(list) if list.args.is_empty() && is_aggregate(name) => {
                self.refuse_behind(name, ")");
            }
            FunctionArguments::List(list) => self.arguments(name, list),
            FunctionArguments::Subquery(query) => self.refuse_node(query.as_ref()),
        }
        if filter.is_some() {
            self.refuse_behind(name, "FILTER");
        }
        if !within_group.is_empty() {
            self.refuse_behind(name, "WITHIN");
        }
        match null_treatment {
            None => {}
            Some(NullTreatment::IgnoreNulls) if is_one_of(name, &OF_ONE_ROW) => {
                self.unsupported("IGNORE NULLS");
            }
            Some(NullTreatment::IgnoreNulls) => self.refuse_behind(name, "IGNORE"),
            Some(NullTreatment::RespectNulls) if is_one_of(name, &OF_ONE_ROW) => {}
            // The word in front of it is an alias.
            Some(NullTreatment::RespectNulls) => self.refuse_behind(name, "NULLS"),
        }
        match over {
            None => {}
            Some(_) if !has_window(name) => self.refuse_behind(name, "OVER"),
            Some(WindowType::NamedWindow(name)) => self.name(name),
            Some(WindowType::WindowSpec(window)) => self.window(window),
        }
    }

    fn function_name(&mut self, name: &ObjectName) {
        let ObjectName(parts) = name;
        for part in parts {
            match part {
                ObjectNamePart::Identifier(part) => {
                    if parts.len() == 1 && !is_function(part) {
                        self.refuse(part.span.start, Begins::Here);
                    }
                }
                ObjectNamePart::Function(part) => self.refuse(part.name.span.start, Begins::Here),
            }
        }
    }

    fn arguments(&mut self, name: &ObjectName, list: &FunctionArgumentList) {
        let FunctionArgumentList {
            duplicate_treatment,
            args,
            clauses,
        } = list;
        match duplicate_treatment {
            None => {}
            Some(DuplicateTreatment::Distinct) if is_one_of(name, &WITH_DISTINCT) => {}
            Some(DuplicateTreatment::Distinct) => self.refuse_behind(name, "DISTINCT"),
            Some(DuplicateTreatment::All) if is_one_of(name, &WITH_ALL) => {}
            Some(DuplicateTreatment::All) => self.refuse_behind(name, "ALL"),
        }
        for argument in args {
            match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(_) | FunctionArgExpr::Wildcard) => {}
                FunctionArg::Unnamed(
                    FunctionArgExpr::QualifiedWildcard(_) | FunctionArgExpr::WildcardWithOptions(_),
                ) => self.refuse_behind(name, "*"),
                FunctionArg::Named { name, .. } => {
                    self.refuse(name.span.end, Begins::Here);
                }
                FunctionArg::ExprNamed { name, .. } => {
                    self.refuse(name.span().end, Begins::Here);
                }
            }
        }
        let is_concat = name.to_string().eq_ignore_ascii_case("group_concat");
        for clause in clauses {
            match clause {
                FunctionArgumentClause::OrderBy(keys) if is_concat => self.order_keys(keys),
                FunctionArgumentClause::Separator(separator) if is_concat => self.value(separator),
                FunctionArgumentClause::Limit(_) if is_concat => {
                    self.unsupported("LIMIT in GROUP_CONCAT");
                }
                FunctionArgumentClause::OrderBy(_) => self.refuse_behind(name, "ORDER"),
                FunctionArgumentClause::Separator(_) => self.refuse_behind(name, "SEPARATOR"),
                FunctionArgumentClause::Limit(_) => self.refuse_behind(name, "LIMIT"),
                FunctionArgumentClause::IgnoreOrRespectNulls(_) => {
                    self.refuse_behind(name, "NULLS");
                }
                FunctionArgumentClause::OnOverflow(_) => self.refuse_behind(name, "ON"),
                FunctionArgumentClause::Having(_) => self.refuse_behind(name, "HAVING"),
                FunctionArgumentClause::JsonNullClause(_) => self.refuse_behind(name, "ON"),
                FunctionArgumentClause::JsonReturningClause(_) => {
                    self.refuse_behind(name, "RETURNING");
                }
            }
        }
    }
}

/// Whether OVER may stand behind a call.
fn has_window(name: &ObjectName) -> bool {
    is_one_of(name, &WINDOW_ONLY) || is_aggregate(name)
}

/// Whether a name can be that of a function: some constructs look like one, and have a syntax of
/// their own.
fn is_function(name: &Ident) -> bool {
    let is_construct = ["extract", "like", "position"]
        .iter()
        .any(|construct| name.value.eq_ignore_ascii_case(construct));
    !(name.value.starts_with(MARK) || is_construct && name.quote_style.is_none())
}
