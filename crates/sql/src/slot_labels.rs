//! Labels that hold constants which are others in each run of a plan.
//!
//! A column without an alias is called by the text of its expression: `EXISTS(SELECT 1 FROM t WHERE
//! k = 3)`. So that one plan serves all constants, the column gets a name in the plan that no
//! statement can write, and each run puts its label together from its own text.
//!
//! Owns: which columns those are, and their labels. Never: touches a select list but that of the
//! result, as the names of others are told by their queries.

use std::ops::{ControlFlow, Range};

use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, SelectItem, SetExpr, Visitor};

use crate::functions::own::MARK;
use crate::select_list::shown;
use crate::slots::{StandIns, place_of};
use crate::source::Source;
use crate::walk;

/// The label of a column for any constants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotLabel {
    /// What the column is called in the plan.
    name: String,
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// A constant, as it is written in the text of the run.
    Constant(usize),
}

impl SlotLabel {
    /// Whether it is the label of a column of this name.
    pub fn is_of(&self, name: &str) -> bool {
        self.name == name
    }

    /// The label in a text whose constants stand in these places.
    pub fn shown(&self, text: &str, places: &[Range<usize>]) -> String {
        let mut label = String::new();
        for piece in &self.pieces {
            label += match piece {
                Piece::Text(piece) => piece,
                Piece::Constant(constant) => {
                    let place = places.get(*constant).cloned();
                    place.and_then(|place| text.get(place)).unwrap_or_default()
                }
            };
        }
        shown(&label).to_owned()
    }
}

impl StandIns {
    /// Gives the columns of a result names of their own whose labels would hold stand-ins, and
    /// tells their labels; `None` where a label is not known.
    pub fn take_labels(&self, query: &mut Query, source: &Source) -> Option<Vec<SlotLabel>> {
        let SetExpr::Select(select) = query.body.as_mut() else {
            return Some(Vec::new());
        };
        let texts = source.items(place_of(select));
        let is_whole = texts.len() == select.projection.len();
        let mut labels = Vec::new();
        for (place, item) in select.projection.iter_mut().enumerate() {
            let SelectItem::UnnamedExpr(expr) = item else {
                continue;
            };
            if walk::read(expr, &mut Find(self)).is_continue() {
                continue;
            }
            let text = texts.get(place).filter(|_| is_whole)?;
            let name = format!("{MARK}label {place}");
            labels.push(SlotLabel {
                pieces: self.pieces(text)?,
                name: name.clone(),
            });
            *item = SelectItem::ExprWithAlias {
                expr: expr.clone(),
                alias: Ident::with_quote('`', name),
            };
        }
        Some(labels)
    }

    /// The pieces of a text between its stand-ins; `None` where one is in it more than once.
    fn pieces(&self, text: &str) -> Option<Vec<Piece>> {
        let mut found = Vec::new();
        for constant in 0..self.constants.len() {
            let Some(written) = self.written(constant) else {
                continue;
            };
            let mut places = text.match_indices(&written);
            if let Some((start, _)) = places.next() {
                found.push((start..start + written.len(), constant));
            }
            if places.next().is_some() {
                return None;
            }
        }
        found.sort_by_key(|(place, _)| place.start);
        let mut pieces = Vec::with_capacity(2 * found.len() + 1);
        let mut behind = 0;
        for (place, constant) in found {
            pieces.push(Piece::Text(text.get(behind..place.start)?.to_owned()));
            pieces.push(Piece::Constant(constant));
            behind = place.end;
        }
        pieces.push(Piece::Text(text.get(behind..)?.to_owned()));
        Some(pieces)
    }
}

/// Finds a stand-in, in subqueries too.
struct Find<'a>(&'a StandIns);

impl Visitor for Find<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match self.0.is_one(expr) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use crate::statement::Statement;
    use crate::template::Template;

    /// The labels that hold slots of a text, for the constants of another one.
    fn labels(text: &str, other: &str) -> Vec<String> {
        let (template, places) = Template::placed(text).unwrap();
        let all = StandIns::of(&template.constants, |_| true, false).unwrap();
        let read = |text: &str| match parse::parse(text) {
            Ok((Statement::Query(query), source)) => (*query, source),
            _ => panic!("{text} is no query"),
        };
        let slots = all.slots(&read(&all.text(text, &places)).0);
        let is_slot = |place| slots.iter().any(|slot| slot.constant == place);
        let taken = [false, true].map(|falls| {
            let stand_ins = StandIns::of(&template.constants, is_slot, falls).unwrap();
            let (mut query, source) = read(&stand_ins.text(text, &places));
            stand_ins.take_labels(&mut query, &source).unwrap()
        });
        assert_eq!(taken[0], taken[1]);
        let (of_other, places) = Template::placed(other).unwrap();
        assert_eq!(of_other.shape, template.shape);
        let labels = taken[0].iter();
        labels.map(|label| label.shown(other, &places)).collect()
    }

    #[test]
    fn labels_hold_the_constants_of_the_run() {
        assert_eq!(
            labels(
                "SELECT EXISTS (SELECT 1 FROM t WHERE k = 3 AND s <> 'a'), 5 FROM u WHERE id = 4",
                "SELECT EXISTS (SELECT 1 FROM t WHERE k = 12 AND s <> \"it's\"), 5 FROM u WHERE id = 9",
            ),
            [r#"EXISTS (SELECT 1 FROM t WHERE k = 12 AND s <> "it's")"#]
        );
        assert_eq!(
            labels(
                "SELECT (SELECT a FROM t WHERE k > -3) FROM u",
                "SELECT (SELECT a FROM t WHERE k > -45) FROM u",
            ),
            ["(SELECT a FROM t WHERE k > -45)"]
        );
        // A name of its own, and that of a query inside.
        for text in [
            "SELECT EXISTS (SELECT 1 FROM t WHERE k = 3) AS x FROM u WHERE id = 4",
            "SELECT * FROM (SELECT EXISTS (SELECT 1 FROM t WHERE k = 3)) d WHERE 4 = 5",
        ] {
            assert_eq!(labels(text, text), Vec::<String>::new(), "{text}");
        }
    }
}
