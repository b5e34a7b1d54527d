//! Queries: their clauses, select lists, tables and joins.
//!
//! Each function takes one node; the walk goes to the queries, selects, tables and expressions
//! inside by itself.

use datafusion::sql::sqlparser::ast::{
    Cte, Distinct, GroupByExpr, GroupByWithModifier, Join, JoinConstraint, JoinOperator,
    LimitClause, LockClause, LockType, NamedWindowDefinition, NamedWindowExpr, NonBlock,
    ObjectName, ObjectNamePart, Offset, OffsetRows, OptimizerHint, OrderBy, OrderByExpr,
    OrderByKind, OrderByOptions, Query, Select, SelectFlavor, SelectItem,
    SelectItemQualifiedWildcardKind, SelectModifiers, SetExpr, SetOperator, SetQuantifier, Spanned,
    TableAlias, TableFactor, TableIndexHintForClause, TableIndexHintType, TableIndexHints,
    TableIndexType, TableWithJoins, Values, WildcardAdditionalOptions, With,
};

use super::{Begins, Grammar};

impl Grammar {
    /// The table of what a query has beside its body.
    pub(super) fn query(&mut self, query: &Query) {
        let Query {
            with,
            body,
            order_by,
            limit_clause,
            fetch,
            locks,
            for_clause,
            settings,
            format_clause,
            pipe_operators,
        } = query;
        let body = body.as_ref();
        if let Some(With {
            with_token: _,
            recursive: _,
            cte_tables,
        }) = with
        {
            for Cte {
                alias,
                query: _,
                from,
                materialized,
                closing_paren_token: _,
            } in cte_tables
            {
                self.table_alias(alias);
                if from.is_some() {
                    self.refuse(alias.name.span.end, Begins::With("FROM"));
                }
                if materialized.is_some() {
                    self.refuse(alias.name.span.end, Begins::With("MATERIALIZED"));
                }
            }
        }
        self.body(body);
        if let Some(OrderBy { kind, interpolate }) = order_by {
            match kind {
                OrderByKind::Expressions(keys) => self.order_keys(keys),
                OrderByKind::All(_) => self.refuse_behind(body, "ALL"),
            }
            if interpolate.is_some() {
                self.refuse_behind(body, "INTERPOLATE");
            }
        }
        if let Some(limit) = limit_clause {
            self.limit(limit);
        }
        if fetch.is_some() {
            self.refuse_behind(body, "FETCH");
        }
        for LockClause {
            lock_type,
            of,
            nonblock,
        } in locks
        {
            match lock_type {
                LockType::Share | LockType::Update => {}
            }
            match nonblock {
                None | Some(NonBlock::Nowait | NonBlock::SkipLocked) => {}
            }
            if let Some(table) = of {
                self.table_name(table);
            }
        }
        if for_clause.is_some() {
            self.refuse_behind(body, "FOR");
        }
        if settings.is_some() {
            self.refuse_behind(body, "SETTINGS");
        }
        if format_clause.is_some() {
            self.refuse_behind(body, "FORMAT");
        }
        if !pipe_operators.is_empty() {
            self.refuse_behind(body, "|>");
        }
    }

    fn body(&mut self, body: &SetExpr) {
        match body {
            SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::Table(_) => {}
            SetExpr::Values(Values {
                explicit_row: _,
                value_keyword,
                rows,
            }) => {
                if *value_keyword {
                    self.refuse_word("VALUE");
                }
                for row in rows {
                    if row.content.is_empty() {
                        self.refuse(row.closing_token.0.span.start, Begins::Here);
                    }
                }
            }
            SetExpr::SetOperation {
                left,
                op,
                set_quantifier,
                right,
            } => {
                match op {
                    SetOperator::Union | SetOperator::Except | SetOperator::Intersect => {}
                    SetOperator::Minus => self.refuse_behind(left.as_ref(), "MINUS"),
                }
                match set_quantifier {
                    SetQuantifier::All | SetQuantifier::Distinct | SetQuantifier::None => {}
                    SetQuantifier::ByName
                    | SetQuantifier::AllByName
                    | SetQuantifier::DistinctByName => self.refuse_behind(left.as_ref(), "BY"),
                }
                self.body(left);
                self.body(right);
            }
            SetExpr::Insert(_) => self.refuse_word("INSERT"),
            SetExpr::Update(_) => self.refuse_word("UPDATE"),
            SetExpr::Delete(_) => self.refuse_word("DELETE"),
            SetExpr::Merge(_) => self.refuse_word("MERGE"),
        }
    }

    /// The keys of ORDER BY.
    pub(super) fn order_keys(&mut self, keys: &[OrderByExpr]) {
        for OrderByExpr {
            expr,
            options:
                OrderByOptions {
                    asc: _,
                    nulls_first,
                },
            with_fill,
        } in keys
        {
            if nulls_first.is_some() {
                self.refuse_behind(expr, "NULLS");
            }
            if with_fill.is_some() {
                self.refuse_behind(expr, "WITH");
            }
        }
    }

    fn limit(&mut self, limit: &LimitClause) {
        match limit {
            LimitClause::OffsetCommaLimit {
                offset: _,
                limit: _,
            } => {}
            LimitClause::LimitOffset {
                limit,
                offset,
                limit_by,
            } => {
                if let Some(by) = limit_by.first() {
                    self.refuse_node(by);
                }
                let Some(Offset { value, rows }) = offset else {
                    return;
                };
                let offset = value.span();
                let is_behind = limit.as_ref().is_some_and(|limit| limit.span() < offset);
                if !is_behind {
                    // OFFSET without LIMIT, or in front of it.
                    self.refuse(offset.start, Begins::Here);
                }
                match rows {
                    OffsetRows::None => {}
                    OffsetRows::Row | OffsetRows::Rows => self.refuse(offset.end, Begins::Here),
                }
            }
        }
    }

    /// The table of what a select has.
    pub(super) fn select(&mut self, select: &Select) {
        let Select {
            select_token,
            optimizer_hints,
            distinct,
            select_modifiers,
            top,
            top_before_distinct: _,
            projection,
            exclude,
            into,
            from,
            lateral_views,
            prewhere,
            selection: _,
            connect_by,
            group_by,
            cluster_by,
            distribute_by,
            sort_by,
            having: _,
            named_window,
            qualify,
            window_before_qualify: _,
            value_table_mode,
            flavor,
        } = select;
        self.around = select_token.0.span.start;
        for OptimizerHint {
            prefix: _,
            text: _,
            style: _,
        } in optimizer_hints
        {}
        if let Some(SelectModifiers {
            high_priority: _,
            straight_join: _,
            sql_small_result: _,
            sql_big_result: _,
            sql_buffer_result: _,
            sql_no_cache: _,
            sql_calc_found_rows: _,
        }) = select_modifiers
        {}
        match distinct {
            None | Some(Distinct::All | Distinct::Distinct) => {}
            Some(Distinct::On(_)) => self.refuse_word("ON"),
        }
        for item in projection {
            self.item(item);
        }
        // `*` stands at the beginning of a list only; `t.*` may stand anywhere.
        for item in projection.iter().skip(1) {
            if let SelectItem::Wildcard(star) = item {
                self.refuse(star.wildcard_token.0.span.start, Begins::Here);
            }
        }
        // The one place of INTO was cut out before: this would make a table.
        if let Some(into) = into {
            self.refuse_node(&into.name);
        }
        self.from(from);
        match group_by {
            GroupByExpr::Expressions(_, modifiers) => {
                for modifier in modifiers {
                    match modifier {
                        GroupByWithModifier::Rollup => {}
                        GroupByWithModifier::Cube => self.refuse_word("CUBE"),
                        GroupByWithModifier::Totals => self.refuse_word("TOTALS"),
                        GroupByWithModifier::GroupingSets(_) => self.refuse_word("GROUPING"),
                    }
                }
            }
            GroupByExpr::All(_) => match from.last() {
                Some(table) => self.refuse_behind(table, "ALL"),
                None => self.refuse_word("ALL"),
            },
        }
        for NamedWindowDefinition(name, window) in named_window {
            self.name(name);
            match window {
                NamedWindowExpr::WindowSpec(window) => self.window(window),
                // MySQL has parentheses around it.
                NamedWindowExpr::NamedWindow(other) => self.refuse(other.span.start, Begins::Here),
            }
        }
        for (is_there, word) in [
            (top.is_some(), "TOP"),
            (exclude.is_some(), "EXCLUDE"),
            (!lateral_views.is_empty(), "VIEW"),
            (prewhere.is_some(), "PREWHERE"),
            (!connect_by.is_empty(), "CONNECT"),
            (!cluster_by.is_empty(), "CLUSTER"),
            (!distribute_by.is_empty(), "DISTRIBUTE"),
            (!sort_by.is_empty(), "SORT"),
            (qualify.is_some(), "QUALIFY"),
            (value_table_mode.is_some(), "AS"),
        ] {
            if is_there {
                self.refuse_word(word);
            }
        }
        match flavor {
            SelectFlavor::Standard => {}
            SelectFlavor::FromFirst | SelectFlavor::FromFirstNoSelect => self.refuse_word("FROM"),
        }
    }

    fn item(&mut self, item: &SelectItem) {
        match item {
            SelectItem::UnnamedExpr(_) => {}
            SelectItem::ExprWithAlias { expr: _, alias } => self.name(alias),
            SelectItem::ExprWithAliases { expr, .. } => self.refuse(expr.span().end, Begins::Here),
            SelectItem::Wildcard(options) => self.star(options),
            SelectItem::QualifiedWildcard(kind, options) => {
                match kind {
                    SelectItemQualifiedWildcardKind::ObjectName(name) => self.table_name(name),
                    SelectItemQualifiedWildcardKind::Expr(expr) => {
                        self.refuse(expr.span().end, Begins::Here);
                    }
                }
                self.star(options);
            }
        }
    }

    fn star(&mut self, options: &WildcardAdditionalOptions) {
        let WildcardAdditionalOptions {
            wildcard_token,
            opt_ilike,
            opt_exclude,
            opt_except,
            opt_replace,
            opt_rename,
            opt_alias,
        } = options;
        let is_plain = opt_ilike.is_none()
            && opt_exclude.is_none()
            && opt_except.is_none()
            && opt_replace.is_none()
            && opt_rename.is_none()
            && opt_alias.is_none();
        if !is_plain {
            self.refuse(wildcard_token.0.span.end, Begins::Here);
        }
    }

    /// A FROM clause, and that of UPDATE and DELETE.
    pub(super) fn from(&mut self, from: &[TableWithJoins]) {
        for table in from {
            self.joins(table);
        }
    }

    fn joins(&mut self, table: &TableWithJoins) {
        let TableWithJoins { relation: _, joins } = table;
        for Join {
            relation,
            global,
            join_operator,
        } in joins
        {
            if *global {
                self.refuse_node(relation);
            }
            self.join(relation, join_operator);
        }
    }

    /// The table of all joins.
    fn join(&mut self, relation: &TableFactor, operator: &JoinOperator) {
        match operator {
            JoinOperator::Join(constraint)
            | JoinOperator::Inner(constraint)
            | JoinOperator::CrossJoin(constraint)
            | JoinOperator::StraightJoin(constraint) => self.constraint(constraint),
            JoinOperator::Left(constraint)
            | JoinOperator::LeftOuter(constraint)
            | JoinOperator::Right(constraint)
            | JoinOperator::RightOuter(constraint) => {
                self.constraint(constraint);
                if *constraint == JoinConstraint::None {
                    // An outer join needs a condition.
                    self.refuse(relation.span().end, Begins::Here);
                }
            }
            JoinOperator::FullOuter(_)
            | JoinOperator::Semi(_)
            | JoinOperator::LeftSemi(_)
            | JoinOperator::RightSemi(_)
            | JoinOperator::Anti(_)
            | JoinOperator::LeftAnti(_)
            | JoinOperator::RightAnti(_)
            | JoinOperator::CrossApply
            | JoinOperator::OuterApply
            | JoinOperator::AsOf { .. }
            | JoinOperator::ArrayJoin
            | JoinOperator::LeftArrayJoin
            | JoinOperator::InnerArrayJoin => self.refuse_node(relation),
        }
    }

    fn constraint(&mut self, constraint: &JoinConstraint) {
        match constraint {
            JoinConstraint::On(_) | JoinConstraint::Natural | JoinConstraint::None => {}
            JoinConstraint::Using(columns) => {
                for ObjectName(parts) in columns {
                    match parts.as_slice() {
                        [ObjectNamePart::Identifier(column)] => self.name(column),
                        [_, second, ..] => self.refuse_node(second),
                        [] | [ObjectNamePart::Function(_)] => self.refuse_word("USING"),
                    }
                }
            }
        }
    }

    /// The table of all that can stand in the place of a table.
    pub(super) fn table_factor(&mut self, factor: &TableFactor) {
        match factor {
            TableFactor::Table {
                name,
                alias,
                args,
                with_hints,
                version,
                with_ordinality,
                partitions: _,
                json_path,
                sample,
                index_hints,
            } => {
                self.table_name(name);
                if let Some(alias) = alias {
                    self.table_alias(alias);
                    if !alias.columns.is_empty() {
                        // Only derived tables name their columns.
                        self.refuse(alias.name.span.end, Begins::With("("));
                    }
                }
                for (is_there, begins) in [
                    (args.is_some(), "("),
                    (!with_hints.is_empty(), "WITH"),
                    (version.is_some(), "FOR"),
                    (*with_ordinality, "WITH"),
                    (json_path.is_some(), "["),
                    (sample.is_some(), "TABLESAMPLE"),
                ] {
                    if is_there {
                        self.refuse_behind(name, begins);
                    }
                }
                for hint in index_hints {
                    self.index_hint(hint);
                }
            }
            TableFactor::Derived {
                lateral: _,
                subquery,
                alias,
                sample,
            } => {
                if let Some(alias) = alias {
                    self.table_alias(alias);
                }
                if sample.is_some() {
                    self.refuse_behind(subquery.as_ref(), "TABLESAMPLE");
                }
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias,
            } => {
                self.joins(table_with_joins);
                if let Some(alias) = alias {
                    self.refuse(table_with_joins.span().end, Begins::Behind(")"));
                    self.table_alias(alias);
                }
            }
            TableFactor::JsonTable {
                json_expr: _,
                json_path: _,
                columns: _,
                alias: _,
            } => self.unsupported("JSON_TABLE"),
            // Functions in the place of tables, of which MySQL has no other.
            TableFactor::Function { name, .. } => self.refuse_behind(name, "("),
            TableFactor::TableFunction { .. }
            | TableFactor::UNNEST { .. }
            | TableFactor::OpenJsonTable { .. }
            | TableFactor::Pivot { .. }
            | TableFactor::Unpivot { .. }
            | TableFactor::MatchRecognize { .. }
            | TableFactor::XmlTable { .. }
            | TableFactor::SemanticView { .. } => self.refuse_node(factor),
        }
    }

    /// `t` or `d.t`.
    fn table_name(&mut self, name: &ObjectName) {
        let ObjectName(parts) = name;
        for part in parts {
            match part {
                ObjectNamePart::Identifier(name) => self.name(name),
                ObjectNamePart::Function(part) => self.refuse(part.name.span.start, Begins::Here),
            }
        }
        if let [_, database, _, ..] = parts.as_slice() {
            self.refuse(database.span().end, Begins::Here);
        }
    }

    fn table_alias(&mut self, alias: &TableAlias) {
        let TableAlias {
            explicit: _,
            name,
            columns,
            at,
        } = alias;
        self.name(name);
        for column in columns {
            self.name(&column.name);
            if column.data_type.is_some() {
                self.refuse(column.name.span.end, Begins::Here);
            }
        }
        if at.is_some() {
            self.refuse(name.span.end, Begins::With("AT"));
        }
    }

    fn index_hint(&mut self, hint: &TableIndexHints) {
        let TableIndexHints {
            hint_type,
            index_type,
            for_clause,
            index_names: _,
        } = hint;
        match hint_type {
            TableIndexHintType::Use | TableIndexHintType::Ignore | TableIndexHintType::Force => {}
        }
        match index_type {
            TableIndexType::Index | TableIndexType::Key => {}
        }
        match for_clause {
            None
            | Some(
                TableIndexHintForClause::Join
                | TableIndexHintForClause::OrderBy
                | TableIndexHintForClause::GroupBy,
            ) => {}
        }
    }
}
