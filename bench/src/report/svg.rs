//! A curve of time over memory, as inline SVG.
//!
//! Owns: scales, ticks, lines and labels. Both axes are logarithmic, so a straight line is a
//! power law and a cliff is a step. Colours are classes of the page that holds the drawing.

use std::fmt::Write;

use crate::args::size;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 48.0;

/// One line of the drawing.
pub(crate) struct Series {
    pub(crate) label: String,
    /// Number of the colour, by contender.
    pub(crate) colour: usize,
    pub(crate) dashed: bool,
    /// Memory in bytes and seconds.
    pub(crate) points: Vec<(f64, f64)>,
}

/// Draws series; `data_bytes` is marked on the memory axis, `all_at` is where `all` stands.
pub(crate) fn draw(series: &[Series], data_bytes: f64, all_at: Option<f64>) -> String {
    let points = || series.iter().flat_map(|one| one.points.iter().copied());
    let x_least = points().map(|(x, _)| x).fold(f64::INFINITY, f64::min);
    let x_most = points().map(|(x, _)| x).fold(0.0, f64::max);
    let y_least = points().map(|(_, y)| y).fold(f64::INFINITY, f64::min) / 1.3;
    let y_most = points().map(|(_, y)| y).fold(0.0, f64::max) * 1.3;
    if !(x_least > 0.0 && x_most > x_least && y_least > 0.0) {
        return String::new();
    }
    let x_at =
        |x: f64| LEFT + (x / x_least).ln() / (x_most / x_least).ln() * (WIDTH - LEFT - RIGHT);
    let y_at = |y: f64| {
        HEIGHT - BOTTOM - (y / y_least).ln() / (y_most / y_least).ln() * (HEIGHT - TOP - BOTTOM)
    };

    let mut svg = String::new();
    let mut put = |text: std::fmt::Arguments<'_>| {
        svg.write_fmt(text)
            .expect("writing to a string does not fail");
        svg.push('\n');
    };
    put(format_args!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"seconds over memory\">"
    ));
    let floor = HEIGHT - BOTTOM;
    let end = WIDTH - RIGHT;
    for tick in decades(y_least, y_most) {
        let y = y_at(tick);
        put(format_args!(
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{end}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
        ));
        let x = LEFT - 8.0;
        let y = y + 4.0;
        put(format_args!(
            "<text x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{tick} s</text>"
        ));
    }
    for tick in doublings(x_least, all_at.map_or(x_most, |all| all / 1.9)) {
        let x = x_at(tick);
        put(format_args!(
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{floor}\"/>"
        ));
        let y = floor + 18.0;
        let label = size(tick as u64);
        put(format_args!(
            "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{label}</text>"
        ));
    }
    if let Some(all) = all_at {
        let x = x_at(all);
        let y = floor + 18.0;
        put(format_args!(
            "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">all</text>"
        ));
    }
    if data_bytes > x_least && data_bytes < x_most {
        let x = x_at(data_bytes);
        put(format_args!(
            "<line class=\"data\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{floor}\"/>"
        ));
        let y = floor + 36.0;
        put(format_args!(
            "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">data</text>"
        ));
    }
    let mut label_floor = TOP;
    let mut ordered: Vec<&Series> = series.iter().filter(|one| !one.points.is_empty()).collect();
    ordered.sort_by(|a, b| last(b).1.total_cmp(&last(a).1));
    for one in ordered {
        let colour = one.colour;
        let dash = if one.dashed { " dashed" } else { "" };
        let line: Vec<String> = one
            .points
            .iter()
            .map(|(x, y)| format!("{:.1},{:.1}", x_at(*x), y_at(*y)))
            .collect();
        put(format_args!(
            "<polyline class=\"c{colour}{dash}\" points=\"{}\"/>",
            line.join(" ")
        ));
        for (x, y) in &one.points {
            let (cx, cy) = (x_at(*x), y_at(*y));
            put(format_args!(
                "<circle class=\"c{colour}\" cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"3\">"
            ));
            put(format_args!(
                "<title>{}: {y:.3} s</title></circle>",
                escape(&one.label)
            ));
        }
        // A dashed line ends where its solid one does, which has the label.
        if one.dashed {
            continue;
        }
        // Labels keep a line's height apart, from the slowest down.
        let (x, y) = last(one);
        let y = (y_at(y) + 4.0).max(label_floor);
        label_floor = y + 14.0;
        let x = (x_at(x) + 8.0).max(end + 8.0);
        put(format_args!(
            "<text class=\"t{colour}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
            escape(&one.label)
        ));
    }
    put(format_args!("</svg>"));
    svg
}

/// The point with the most memory.
fn last(series: &Series) -> (f64, f64) {
    series.points.last().copied().unwrap_or((1.0, 1.0))
}

/// 1, 2 and 5 times the powers of ten within a range.
fn decades(least: f64, most: f64) -> Vec<f64> {
    let first = least.log10().floor() as i32;
    let last = most.log10().ceil() as i32;
    let mut ticks = Vec::new();
    for power in first..=last {
        for digit in [1_i32, 2, 5] {
            // Read back from text: 0.2 instead of 0.2000...1.
            let tick: f64 = format!("{digit}e{power}")
                .parse()
                .expect("a number was written");
            if tick >= least && tick <= most {
                ticks.push(tick);
            }
        }
    }
    ticks
}

/// Powers of two within a range, every second one when there are many.
fn doublings(least: f64, most: f64) -> Vec<f64> {
    let first = least.log2().ceil() as i32;
    let last = most.log2().floor() as i32;
    let step = if last - first > 8 { 2 } else { 1 };
    (first..=last)
        .step_by(step)
        .map(|power| 2_f64.powi(power))
        .collect()
}

/// Text inside HTML.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
