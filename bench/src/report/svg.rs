//! A curve of time over memory, as inline SVG.
//!
//! Owns: scales, ticks, lines and labels. Both axes are logarithmic, so a straight line is a
//! power law and a cliff is a step. Colours are classes of the page that holds the drawing.

use std::fmt::Write;

use crate::args::size;

const WIDTH: f64 = 740.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 150.0;
/// Crosses of what failed stand above the lines, in rows.
const TOP: f64 = 44.0;
const BOTTOM: f64 = 64.0;
const FAILURE_ROWS: usize = 3;
const FAILURE_ROW: f64 = 13.0;

/// One line of the drawing.
pub(crate) struct Series {
    pub(crate) label: String,
    /// Number of the colour, by contender.
    pub(crate) colour: usize,
    pub(crate) dashed: bool,
    /// Memory in bytes and seconds.
    pub(crate) points: Vec<(f64, f64)>,
    /// Memory in bytes at which there was no right answer, and why.
    pub(crate) failures: Vec<(f64, String)>,
}

/// Draws series; `data_bytes` is marked on the memory axis, `all_at` is where `all` stands.
pub(crate) fn draw(series: &[Series], data_bytes: f64, all_at: Option<f64>) -> String {
    let points = || series.iter().flat_map(|one| one.points.iter().copied());
    let failures = || series.iter().flat_map(|one| &one.failures);
    let memory = || points().chain(failures().map(|(x, _)| (*x, 0.0)));
    let mut x_least = memory().map(|(x, _)| x).fold(f64::INFINITY, f64::min);
    let mut x_most = memory().map(|(x, _)| x).fold(0.0, f64::max);
    // All at one limit: they stand above each other in the middle.
    if x_least == x_most {
        x_least /= 2.0;
        x_most *= 2.0;
    }
    let y_least = points().map(|(_, y)| y).fold(f64::INFINITY, f64::min) / 1.3;
    let y_most = points().map(|(_, y)| y).fold(0.0, f64::max) * 1.3;
    // Without a single time there is nothing to measure the axis by; the table says why.
    if !(x_least > 0.0 && x_most > x_least && y_least > 0.0 && y_least < y_most) {
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
    let (across, down) = ((LEFT + end) / 2.0, (TOP + floor) / 2.0);
    put(format_args!(
        "<text class=\"axis\" x=\"{across}\" y=\"{}\" text-anchor=\"middle\">memory limit</text>",
        HEIGHT - 6.0
    ));
    put(format_args!(
        "<text class=\"axis\" transform=\"rotate(-90)\" x=\"-{down}\" y=\"16\" \
         text-anchor=\"middle\">median, seconds</text>"
    ));
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
    if failures().next().is_some() {
        let x = LEFT - 8.0;
        put(format_args!(
            "<text x=\"{x}\" y=\"{FAILURE_ROW}\" text-anchor=\"end\">failed</text>"
        ));
    }
    let failing = series.iter().filter(|one| !one.failures.is_empty());
    for (row, one) in failing.enumerate() {
        let (colour, label) = (one.colour, escape(&one.label));
        let y = FAILURE_ROW * (1 + row % FAILURE_ROWS) as f64;
        for (x, reason) in &one.failures {
            let (x, reason) = (x_at(*x), escape(reason));
            put(format_args!(
                "<text class=\"mark t{colour}\" x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">\
                 &#215;<title>{label} failed: {reason}</title></text>"
            ));
        }
    }
    let mut label_floor = TOP;
    // Who has no time at all is named above the others.
    let timeless = series.iter().filter(|one| one.points.is_empty());
    for one in timeless.filter(|one| !one.dashed) {
        let (colour, x) = (one.colour, end + 8.0);
        put(format_args!(
            "<text class=\"t{colour}\" x=\"{x}\" y=\"{label_floor}\">{}: failed</text>",
            escape(&one.label)
        ));
        label_floor += 14.0;
    }
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

#[cfg(test)]
mod tests {
    use super::{Series, draw};

    fn series(points: &[(f64, f64)], failures: &[(f64, &str)]) -> Series {
        let failures = failures.iter();
        Series {
            label: "A & B".to_owned(),
            colour: 3,
            dashed: false,
            points: points.to_vec(),
            failures: failures
                .map(|(x, reason)| (*x, (*reason).to_owned()))
                .collect(),
        }
    }

    #[test]
    fn one_point_is_shown_with_its_name_and_axes() {
        let drawn = draw(&[series(&[(1e6, 0.5)], &[])], 0.0, None);
        assert_eq!(drawn.matches("<circle").count(), 1);
        assert!(drawn.contains(">A &amp; B</text>"), "{drawn}");
        assert!(drawn.contains(">memory limit</text>"), "{drawn}");
        assert!(drawn.contains(">median, seconds</text>"), "{drawn}");
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
        assert!(!drawn.contains("failed"), "{drawn}");
    }

    #[test]
    fn failures_are_marked_where_they_were() {
        let both = [
            series(&[(1e6, 0.5), (2e6, 0.4)], &[]),
            series(&[], &[(1e6, "out of < memory")]),
        ];
        let drawn = draw(&both, 0.0, None);
        assert_eq!(drawn.matches("&#215;").count(), 1);
        assert!(drawn.contains("A &amp; B failed: out of &lt; memory"));
        assert!(drawn.contains(">A &amp; B: failed</text>"), "{drawn}");
    }

    #[test]
    fn nothing_is_drawn_without_a_time() {
        assert_eq!(draw(&[series(&[], &[(1e6, "no")])], 0.0, None), "");
        assert_eq!(draw(&[], 0.0, None), "");
    }
}
