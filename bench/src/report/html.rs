//! Results as one self-contained page.
//!
//! Owns: the page. Its only parts are text, tables and inline SVG: no script, no font, no link.

use std::fmt::Write;

use clap::ValueEnum;

use crate::args::{Limit, SystemName};
use crate::report::svg::{self, Series, escape};
use crate::report::text::{cell_text, figure_text};
use crate::results::{Cell, Check, Outcome, Results, Sheet};

const STYLE: &str = include_str!("page.css");

/// The page.
pub(crate) fn page(results: &Results) -> String {
    let mut html = String::new();
    let title = format!("mayfly bench {}", results.benchmark);
    let mut put = |text: &str| {
        html.push_str(text);
        html.push('\n');
    };
    put("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">");
    put("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    put(&format!(
        "<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>"
    ));
    put(&format!("<h1>{title}</h1>"));
    put(&format!("<p><code>{}</code></p>", escape(&results.command)));
    put(&facts(results));
    if !results.figures.is_empty() {
        put("<h2>Figures</h2>\n<ul>");
        for figure in &results.figures {
            let class = match figure.reached() {
                Some(true) => "reached",
                Some(false) => "missed",
                None => "",
            };
            put(&format!(
                "<li class=\"{class}\">{}</li>",
                escape(&figure_text(figure))
            ));
        }
        put("</ul>");
    }
    let contenders = results.contenders();
    for case in results.cases() {
        put(&format!("<section>\n<h2>{}</h2>", escape(case)));
        let cells: Vec<&Cell> = results
            .cells
            .iter()
            .filter(|cell| cell.case == case)
            .collect();
        put(&curves(&cells, &contenders));
        put(&table(&cells, &contenders));
        put("</section>");
    }
    for sheet in &results.sheets {
        put(&format!(
            "<section>
<h2>{}</h2>",
            escape(&sheet.title)
        ));
        put(&plain_table(sheet));
        put("</section>");
    }
    if results.cells.is_empty() {
        put("</main>
</body>
</html>");
        return html;
    }
    put(
        "<p class=\"small\">Median seconds. Solid lines: each system under its own memory limit. \
         Dashed lines, the ones to quote: the whole process, page cache included, in a memory \
         cgroup of limit + 200 MiB. Crosses: it failed there, or its rows were wrong. Peak is the \
         resident size seen from outside the process.</p>",
    );
    put("</main>\n</body>\n</html>");
    html
}

fn facts(results: &Results) -> String {
    let mut html = String::from("<dl>");
    for (name, value) in &results.machine {
        write!(html, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(value))
            .expect("writing to a string does not fail");
    }
    html.push_str("</dl>");
    html
}

/// A system has the same colour on every page; further ways to run it follow.
fn colour(contender: &str, contenders: &[&str]) -> usize {
    let systems = SystemName::value_variants();
    if let Some(index) = systems
        .iter()
        .position(|system| system.label() == contender)
    {
        return index;
    }
    let is_system = |name: &str| systems.iter().any(|system| system.label() == name);
    let further = contenders.iter().filter(|name| !is_system(name));
    systems.len() + further.take_while(|name| **name != contender).count()
}

/// Time over memory.
fn curves(cells: &[&Cell], contenders: &[&str]) -> String {
    let bounded = cells.iter().filter(|cell| cell.limit != Limit::All);
    let most = bounded.map(|cell| cell.limit_bytes).max().unwrap_or(0) as f64;
    let data_bytes = cells.first().map_or(0, |cell| cell.data_bytes) as f64;
    let has_all = cells.iter().any(|cell| cell.limit == Limit::All);
    let all_at = has_all.then_some(most.max(data_bytes) * 2.0);
    let mut series = Vec::new();
    for contender in contenders {
        for capped in [false, true] {
            let label = match capped {
                true => format!("{contender}, capped"),
                false => (*contender).to_owned(),
            };
            let mut one = Series {
                label,
                colour: colour(contender, contenders),
                dashed: capped,
                points: Vec::new(),
                failures: Vec::new(),
            };
            let mut ran = false;
            for cell in cells {
                let x = match (cell.limit, all_at) {
                    (Limit::All, Some(all)) => all,
                    _ => cell.limit_bytes as f64,
                };
                let is_own = cell.capped == capped;
                match (cell.failure(contender), cell.seconds(contender)) {
                    (Some(reason), _) if is_own => one.failures.push((x, reason)),
                    // Without a limit there is nothing to cap: both lines end there.
                    (None, Some(seconds)) if is_own || cell.limit == Limit::All => {
                        one.points.push((x, seconds));
                    }
                    _ => continue,
                }
                ran |= is_own;
            }
            one.points.sort_by(|a, b| a.0.total_cmp(&b.0));
            if ran {
                series.push(one);
            }
        }
    }
    svg::draw(&series, data_bytes, all_at)
}

fn table(cells: &[&Cell], contenders: &[&str]) -> String {
    let present: Vec<&&str> = contenders
        .iter()
        .filter(|name| {
            cells
                .iter()
                .any(|cell| cell.results.iter().any(|e| e.contender == **name))
        })
        .collect();
    let mut html = String::from("<table>\n<thead><tr><th>memory</th>");
    for contender in &present {
        html.push_str(&format!("<th>{}</th>", escape(contender)));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for cell in cells {
        html.push_str(&format!("<tr><td>{}</td>", cell.limit_label()));
        for contender in &present {
            html.push_str(&table_cell(cell, contender));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table>");
    html
}

fn plain_table(sheet: &Sheet) -> String {
    let row = |tag: &str, cells: &[String]| {
        let cells: Vec<String> = cells
            .iter()
            .map(|cell| format!("<{tag}>{}</{tag}>", escape(cell)))
            .collect();
        format!("<tr>{}</tr>", cells.concat())
    };
    let rows: Vec<String> = sheet.rows.iter().map(|cells| row("td", cells)).collect();
    format!(
        "<table>\n<thead>{}</thead>\n<tbody>\n{}\n</tbody>\n</table>",
        row("th", &sheet.columns),
        rows.join("\n")
    )
}

fn table_cell(cell: &Cell, contender: &str) -> String {
    let entry = cell
        .results
        .iter()
        .find(|entry| entry.contender == contender);
    let detail = match entry.map(|entry| &entry.outcome) {
        None => String::new(),
        Some(Outcome::Skipped(reason) | Outcome::Failed(reason)) => escape(reason),
        Some(Outcome::Measured(measured)) => {
            let mut words = Vec::new();
            if measured.peak_bytes > 0 {
                words.push(format!("peak {}", crate::args::size(measured.peak_bytes)));
            }
            if let Some(bytes) = measured.cap_peak_bytes {
                words.push(format!("with page cache {}", crate::args::size(bytes)));
            }
            if measured.written_bytes > 0 {
                words.push(format!(
                    "device {}",
                    crate::args::size(measured.written_bytes)
                ));
            }
            match &measured.check {
                Check::SameAs(peer) => words.push(format!("same rows as {peer}")),
                Check::Different(how) => words.push(format!("different rows: {how}")),
                Check::Unanswered(why) => words.push(format!("not compared: {why}")),
                Check::NotChecked => {}
            }
            escape(&words.join(", "))
        }
    };
    format!(
        "<td>{}<small>{detail}</small></td>",
        cell_text(cell, contender)
    )
}
