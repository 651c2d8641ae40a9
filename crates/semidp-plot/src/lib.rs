//! Line charts as SVG: some series over two axes, either of which may be logarithmic, with marked places.
//!
//! A chart of ours is a few hundred elements of SVG; writing them takes fewer lines than teaching a drawing
//! library our axes, and keeps broken lines, text and tooltips native.

mod svg;
mod ticks;

/// How numbers lie along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By their logarithms; numbers must be positive.
    Logarithmic,
}

/// An axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What it shows.
    pub label: String,
    /// How.
    pub scale: Scale,
}

impl Axis {
    /// An even axis.
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Linear }
    }

    /// A logarithmic axis.
    pub fn logarithmic(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Logarithmic }
    }
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A line.
    Line,
    /// A broken line.
    Dashes,
    /// Points without a line, such as measurements beside a predicted line.
    Points,
    /// Hollow diamonds without a line, such as figures that somebody else printed.
    Diamonds,
    /// Vertical bars, such as standard errors: each from a point to the next, so that there is an even number of points.
    Bars,
}

/// Points that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend; empty for none.
    pub name: String,
    /// Where.
    pub points: Vec<(f64, f64)>,
    /// How.
    pub style: Style,
    /// Series of the same number share a colour.
    pub colour: usize,
}

/// A place on the horizontal axis worth a word.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// Where.
    pub at: f64,
    /// The word.
    pub label: String,
}

/// A chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Above it.
    pub title: String,
    /// Horizontally.
    pub x: Axis,
    /// Vertically.
    pub y: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
    /// Marked places.
    pub marks: Vec<Mark>,
}

/// Why there is no chart.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing to draw: no point is finite (and positive, on a logarithmic axis).
    #[error("the chart `{title}` has no point to draw")]
    Empty {
        /// The chart.
        title: String,
    },
}

impl Chart {
    /// The chart as a self-contained SVG document. Points that cannot be shown are left out.
    ///
    /// ```
    /// use semidp_plot::*;
    /// let chart = Chart {
    ///     title: "error against the public share".into(),
    ///     x: Axis::linear("public share"),
    ///     y: Axis::logarithmic("mean squared error"),
    ///     series: vec![Series {
    ///         name: "throw-away".into(),
    ///         points: (1..10).map(|i| (f64::from(i) / 10.0, 1.0 / f64::from(i))).collect(),
    ///         style: Style::Line,
    ///         colour: 0,
    ///     }],
    ///     marks: vec![Mark { at: 0.5, label: "half".into() }],
    /// };
    /// assert!(chart.svg()?.starts_with("<svg"));
    /// # Ok::<(), semidp_plot::Error>(())
    /// ```
    pub fn svg(&self) -> Result<String, Error> {
        svg::render(self)
    }
}
