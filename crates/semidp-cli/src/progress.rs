//! Progress bars on stderr, where somebody is watching.

use crate::output::Output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// A bar over `total` pieces of work, such as rows or trials. Nothing is drawn with `--quiet`, or if stderr is no
/// terminal.
pub fn bar(output: &Output, what: &'static str, total: u64) -> ProgressBar {
    let target = if output.quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(total), target);
    let template = "{msg} {wide_bar} {human_pos}/{human_len} ({per_sec}, {eta} left)";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.with_message(what)
}

/// A count of something whose total is not known.
pub fn counter(output: &Output, what: &'static str) -> ProgressBar {
    let target = if output.quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(None, target);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {human_pos} {msg} ({per_sec})") {
        bar.set_style(style);
    }
    bar.with_message(what)
}

/// For work that says nothing until it is done.
pub fn spinner(output: &Output, what: &'static str) -> ProgressBar {
    let target = if output.quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(None, target);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar.with_message(what)
}
