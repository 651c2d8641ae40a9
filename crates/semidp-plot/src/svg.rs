//! The chart as a document.

use crate::ticks::{Range, label};
use crate::{Axis, Chart, Error, Scale, Series, Style};
use std::fmt::Write;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 520.0;
/// Where the axes are: left, top, right, bottom.
const FRAME: (f64, f64, f64, f64) = (84.0, 44.0, 640.0, 456.0);
/// The legend stands to the right of the frame, so that it never hides a line.
const LEGEND: (f64, f64) = (FRAME.2 + 16.0, FRAME.1 + 10.0);
const LEGEND_CHARACTERS: usize = 22;
/// Characters of a title that fit over the whole width.
const TITLE_CHARACTERS: usize = 96;
/// About the width of a letter of a title.
const LETTER: f64 = 8.6;

/// Colours that people with any colour vision can tell apart (Okabe and Ito).
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#3c3c3c"];

/// A chart with its ranges: from numbers to places.
struct Canvas<'a> {
    chart: &'a Chart,
    x: Range,
    y: Range,
    text: String,
}

pub fn render(chart: &Chart) -> Result<String, Error> {
    // Bars are cut where the frame ends: one long error should not flatten all lines.
    let drawn = || chart.series.iter().filter(|series| series.style != Style::Bars);
    let all = || drawn().flat_map(|series| visible(chart, series));
    let empty = || Error::Empty { title: chart.title.clone() };
    let x = Range::around(all().map(|(x, _)| x), chart.x.scale).ok_or_else(empty)?;
    let y = Range::around(all().map(|(_, y)| y), chart.y.scale).ok_or_else(empty)?;
    let mut canvas = Canvas { chart, x, y, text: String::new() };
    // Writing to a string cannot fail.
    let _ = canvas.draw();
    Ok(canvas.text)
}

/// The finite points that the axes can show.
fn visible<'a>(chart: &'a Chart, series: &'a Series) -> impl Iterator<Item = (f64, f64)> + 'a {
    let fits = |value: f64, axis: &Axis| value.is_finite() && (axis.scale == Scale::Linear || value > 0.0);
    series.points.iter().copied().filter(move |(x, y)| fits(*x, &chart.x) && fits(*y, &chart.y))
}

impl Canvas<'_> {
    fn across(&self, x: f64) -> f64 {
        FRAME.0 + self.x.share(x) * (FRAME.2 - FRAME.0)
    }

    fn down(&self, y: f64) -> f64 {
        FRAME.3 - self.y.share(y) * (FRAME.3 - FRAME.1)
    }

    fn draw(&mut self) -> std::fmt::Result {
        let title = escape(&self.chart.title);
        writeln!(
            self.text,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" \
             height=\"{HEIGHT}\" role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"13\">\n\
             <title>{title}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>",
        )?;
        self.draw_title()?;
        self.draw_axes()?;
        self.draw_marks()?;
        let chart = self.chart;
        for series in &chart.series {
            self.draw_series(series)?;
        }
        self.draw_legend()?;
        writeln!(self.text, "</svg>")
    }

    /// Over the frame if it fits there, else over everything; one that is longer still gets smaller letters.
    fn draw_title(&mut self) -> std::fmt::Result {
        let length = self.chart.title.chars().count();
        let over_frame = length as f64 * LETTER <= FRAME.2 - FRAME.0;
        let middle = if over_frame { (FRAME.0 + FRAME.2) / 2.0 } else { WIDTH / 2.0 };
        let size = 16.0 * (TITLE_CHARACTERS as f64 / length as f64).min(1.0);
        let title = escape(&self.chart.title);
        writeln!(
            self.text,
            "<text x=\"{middle}\" y=\"26\" text-anchor=\"middle\" font-size=\"{size:.1}\">{title}</text>"
        )
    }

    fn draw_axes(&mut self) -> std::fmt::Result {
        let (left, top, right, bottom) = FRAME;
        for tick in self.x.ticks() {
            let at = self.across(tick);
            writeln!(
                self.text,
                "<path d=\"M{at:.1} {top}V{bottom}\" stroke=\"#e4e4e4\"/>\
                 <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                bottom + 19.0,
                label(tick)
            )?;
        }
        for tick in self.y.ticks() {
            let at = self.down(tick);
            writeln!(
                self.text,
                "<path d=\"M{left} {at:.1}H{right}\" stroke=\"#e4e4e4\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left - 8.0,
                at + 4.5,
                label(tick)
            )?;
        }
        writeln!(
            self.text,
            "<path d=\"M{left} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"#333\"/>\n\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"14\">{}</text>\n\
             <text transform=\"translate(20 {}) rotate(-90)\" text-anchor=\"middle\" font-size=\"14\">{}</text>",
            (left + right) / 2.0,
            bottom + 44.0,
            escape(&self.chart.x.label),
            (top + bottom) / 2.0,
            escape(&self.chart.y.label)
        )
    }

    /// Vertical lines; the words of several lie one below the other, on the side that has room.
    fn draw_marks(&mut self) -> std::fmt::Result {
        let (left, top, right, bottom) = FRAME;
        let chart = self.chart;
        for (i, mark) in chart.marks.iter().filter(|mark| self.x.contains(mark.at)).enumerate() {
            let at = self.across(mark.at);
            let (anchor, gap) = if at < (left + right) / 2.0 { ("start", 5.0) } else { ("end", -5.0) };
            writeln!(
                self.text,
                "<path d=\"M{at:.1} {top}V{bottom}\" stroke=\"#777\" stroke-dasharray=\"3 4\"/>\
                 <text x=\"{:.1}\" y=\"{}\" text-anchor=\"{anchor}\" fill=\"#555\">{}</text>",
                at + gap,
                top + 14.0 + 17.0 * i as f64,
                escape(&mark.label)
            )?;
        }
        Ok(())
    }

    fn draw_series(&mut self, series: &Series) -> std::fmt::Result {
        let colour = COLOURS[series.colour % COLOURS.len()];
        let chart = self.chart;
        let places: Vec<(f64, f64)> =
            visible(chart, series).map(|(x, y)| (self.across(x), self.down(y))).collect();
        match series.style {
            Style::Line | Style::Dashes => {}
            Style::Points => {
                for (x, y) in places {
                    writeln!(self.text, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.2\" fill=\"{colour}\"/>")?;
                }
                return Ok(());
            }
            Style::Diamonds => {
                for place in places {
                    self.draw_diamond(place, colour)?;
                }
                return Ok(());
            }
            Style::Bars => return self.draw_bars(series, colour),
        }
        let line: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let dashes = if series.style == Style::Dashes { " stroke-dasharray=\"7 5\"" } else { "" };
        writeln!(
            self.text,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}>\
             <title>{}</title></polyline>",
            line.join(" "),
            escape(&series.name)
        )
    }

    fn draw_diamond(&mut self, (x, y): (f64, f64), colour: &str) -> std::fmt::Result {
        writeln!(
            self.text,
            "<path d=\"M{:.1} {y:.1}l5 -5l5 5l-5 5z\" fill=\"white\" fill-opacity=\"0.7\" stroke=\"{colour}\" \
             stroke-width=\"1.6\"/>",
            x - 5.0
        )
    }

    /// Bars with short ends. One whose lower end a logarithmic axis cannot show goes down to the frame; one whose upper end
    /// cannot be shown is left out.
    fn draw_bars(&mut self, series: &Series, colour: &str) -> std::fmt::Result {
        for bar in series.points.chunks_exact(2) {
            let (low, high) = (bar[0].1.min(bar[1].1), bar[0].1.max(bar[1].1));
            let is_shown = |y: f64| self.chart.y.scale == Scale::Linear || y > 0.0;
            let are_numbers = bar.iter().all(|(_, y)| y.is_finite());
            if !are_numbers || !is_shown(high) || !self.x.contains(bar[0].0) {
                continue;
            }
            let bottom = if is_shown(low) { self.down(low).min(FRAME.3) } else { FRAME.3 };
            let (x, top) = (self.across(bar[0].0), self.down(high).max(FRAME.1));
            writeln!(
                self.text,
                "<path d=\"M{:.1} {bottom:.1}h8m-4 0V{top:.1}m-4 0h8\" fill=\"none\" stroke=\"{colour}\"/>",
                x - 4.0
            )?;
        }
        Ok(())
    }

    fn draw_legend(&mut self) -> std::fmt::Result {
        let chart = self.chart;
        let mut y = LEGEND.1;
        for series in chart.series.iter().filter(|series| !series.name.is_empty()) {
            let colour = COLOURS[series.colour % COLOURS.len()];
            let (x, end) = (LEGEND.0, LEGEND.0 + 22.0);
            match series.style {
                Style::Points => {
                    writeln!(
                        self.text,
                        "<circle cx=\"{}\" cy=\"{y}\" r=\"3.2\" fill=\"{colour}\"/>",
                        x + 11.0
                    )?;
                }
                Style::Diamonds => self.draw_diamond((x + 11.0, y), colour)?,
                Style::Bars => {
                    writeln!(self.text, "<path d=\"M{} {}v12\" stroke=\"{colour}\"/>", x + 11.0, y - 6.0)?;
                }
                Style::Line => {
                    writeln!(
                        self.text,
                        "<path d=\"M{x} {y}H{end}\" stroke=\"{colour}\" stroke-width=\"2\"/>"
                    )?;
                }
                Style::Dashes => writeln!(
                    self.text,
                    "<path d=\"M{x} {y}H{end}\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"7 5\"/>"
                )?,
            }
            for line in wrapped(&series.name) {
                writeln!(self.text, "<text x=\"{}\" y=\"{}\">{}</text>", end + 7.0, y + 4.5, escape(&line))?;
                y += 17.0;
            }
            y += 4.0;
        }
        Ok(())
    }
}

/// Lines that fit beside the frame.
fn wrapped(name: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in name.split_whitespace() {
        let last = lines.len() - 1;
        if !lines[last].is_empty()
            && lines[last].chars().count() + 1 + word.chars().count() > LEGEND_CHARACTERS
        {
            lines.push(word.into());
        } else {
            if !lines[last].is_empty() {
                lines[last].push(' ');
            }
            lines[last].push_str(word);
        }
    }
    lines
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mark;

    fn chart(points: Vec<(f64, f64)>) -> Chart {
        Chart {
            title: "a < b & \"c\"".into(),
            x: Axis::linear("x"),
            y: Axis::logarithmic("y"),
            series: vec![
                Series { name: "line".into(), points: points.clone(), style: Style::Line, colour: 0 },
                Series { name: "points".into(), points, style: Style::Points, colour: 9 },
            ],
            marks: vec![Mark { at: 0.5, label: "here".into() }, Mark { at: 99.0, label: "nowhere".into() }],
        }
    }

    #[test]
    fn points_that_cannot_be_shown_are_left_out() {
        let drawn = chart(vec![(0.0, 1.0), (1.0, 10.0), (f64::NAN, 2.0), (0.3, -1.0), (0.3, f64::INFINITY)]);
        let text = render(&drawn).unwrap();
        assert_eq!(text.matches("<circle").count(), 2 + 1, "two points and a legend");
        assert!(
            text.contains("a &lt; b &amp; &quot;c&quot;") && !text.contains("NaN") && !text.contains("inf")
        );
        assert!(text.contains("here") && !text.contains("nowhere"));
    }

    #[test]
    fn places_follow_the_scales() {
        let text = render(&chart(vec![(0.0, 1.0), (0.5, 10.0), (1.0, 100.0)])).unwrap();
        let line = text.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
        let y: Vec<f64> = line.split(' ').map(|p| p.split(',').nth(1).unwrap().parse().unwrap()).collect();
        // A decade is as high as the next, and larger numbers are further up.
        assert!((y[0] - y[1] - (y[1] - y[2])).abs() < 0.25 && y[0] > y[1]);
    }

    /// Bars and diamonds have shapes of their own; a bar that begins below a logarithmic axis ends at the frame.
    #[test]
    fn bars_and_diamonds_are_drawn() {
        let mut drawn = chart(vec![(0.0, 1.0), (1.0, 10.0)]);
        let bars = vec![(0.0, 0.5), (0.0, 2.0), (1.0, -3.0), (1.0, 12.0), (1.0, f64::NAN), (1.0, 1.0)];
        drawn.series = vec![
            Series { name: String::new(), points: bars, style: Style::Bars, colour: 0 },
            Series {
                name: "paper".into(),
                points: vec![(0.0, 1.0), (1.0, 9.0)],
                style: Style::Diamonds,
                colour: 1,
            },
        ];
        let text = render(&drawn).unwrap();
        assert_eq!(text.matches("h8m-4 0V").count(), 2, "the third has an end that is no number");
        assert!(text.contains(" 456.0h8m-4 0V"), "{text}");
        assert_eq!(text.matches("l5 -5l5 5l-5 5z").count(), 2 + 1, "two and a legend");
        assert!(!text.contains("NaN"));
    }

    /// A long title begins within the picture.
    #[test]
    fn long_titles_get_smaller_letters() {
        let mut drawn = chart(vec![(0.0, 1.0), (1.0, 10.0)]);
        let size = |drawn: &Chart| -> f64 {
            let text = render(drawn).unwrap();
            let title = text.split("y=\"26\"").nth(1).unwrap();
            title.split("font-size=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        assert_eq!(size(&drawn), 16.0);
        drawn.title = "m".repeat(2 * TITLE_CHARACTERS);
        assert_eq!(size(&drawn), 8.0);
    }

    #[test]
    fn nothing_to_draw_is_an_error() {
        assert!(matches!(render(&chart(vec![(0.0, 0.0)])), Err(Error::Empty { .. })));
    }
}
