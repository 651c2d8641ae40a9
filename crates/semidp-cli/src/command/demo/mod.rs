//! `semidp demo`: a private mean and a trained model on real data, and a privacy question answered.

mod private_mean;
mod published_noise;
mod training;

use crate::failure::Failure;
use crate::output::Output;
use crate::progress;
use clap::Args;
use semidp::files::Reserved;
use std::path::PathBuf;

const EXAMPLE: &str = "\
EXAMPLE
  semidp demo --plot demo.svg";

const NEXT: &str = "\
What to type next:
  semidp train --private p.csv --public q.csv --target income --epsilon 1 --delta 1e-5 --out model.json
  semidp plan mean --n-private 9000 --n-public 1000 --dim 20 --radius 5 --epsilon 1 --delta 1e-6
  semidp account --noise-multiplier 2.744 --sample-rate 0.0185 --steps 5000 --delta 1e-5
  semidp --help";

/// Estimate a mean and train a model on embedded real data, and show what published noise really costs.
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct Demo {
    /// Draw the accuracy of the trained models against epsilon into this file (SVG)
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

impl Demo {
    /// Answers.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        output.note("private releases, nine models and 36 privacy questions on embedded data; some seconds");
        let plot = self.plot.as_ref().map(|path| Reserved::new("plot", path)).transpose()?;
        let waiting = progress::counter(output, "parts done");
        let mean = private_mean::release()?;
        waiting.inc(1);
        let training = training::train()?;
        waiting.inc(1);
        let rows = published_noise::answer_all()?;
        waiting.finish_and_clear();
        let mut answer = published_noise::as_json(&rows);
        answer["mean"] = mean.as_json();
        answer["training"] = training.as_json();
        if let (Some(place), Some(path)) = (plot, &self.plot) {
            place.fill(&training.chart().svg()?)?;
            output.note(&format!("wrote {}", path.display()));
        }
        output.answer(&answer, || {
            let parts = [mean.as_text(), training.as_text(), published_noise::as_text(&rows)];
            let titles = [
                "1. A MEAN OF PUBLIC AND PRIVATE ROWS",
                "2. A MODEL OF PUBLIC AND PRIVATE ROWS",
                "3. WHAT PUBLISHED NOISE COSTS",
            ];
            let parts = titles.iter().zip(&parts).map(|(title, text)| format!("{title}\n\n{text}\n\n"));
            format!("{}{NEXT}", parts.collect::<String>())
        })?;
        output.note("part 3 is accounting alone, in idealised arithmetic: it holds for real-valued noise");
        Ok(())
    }
}
