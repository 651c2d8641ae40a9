//! `semidp demo`: a private release of real data, and a privacy question answered.

mod private_mean;
mod published_noise;

use crate::failure::Failure;
use crate::output::Output;
use clap::Args;

const EXAMPLE: &str = "\
EXAMPLE
  semidp demo";

const NEXT: &str = "\
What to type next:
  semidp plan mean --n-private 9000 --n-public 1000 --dim 20 --radius 5 --epsilon 1 --delta 1e-6
  semidp account --noise-multiplier 2.744 --sample-rate 0.0185 --steps 5000 --delta 1e-5
  semidp calibrate --epsilon 2 --delta 1e-5 --sample-rate 0.0185 --steps 5000
  semidp --help";

/// Estimate a mean of embedded real data three ways, and show what published noise really costs.
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct Demo {}

impl Demo {
    /// Answers.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        output.note("two private releases and 36 privacy questions on embedded data; a few seconds");
        let mean = private_mean::release()?;
        let rows = published_noise::answer_all()?;
        let mut answer = published_noise::as_json(&rows);
        answer["mean"] = mean.as_json();
        output.answer(&answer, || {
            let parts = [&mean.as_text(), &published_noise::as_text(&rows), NEXT];
            format!(
                "1. A MEAN OF PUBLIC AND PRIVATE ROWS\n\n{}\n\n2. WHAT PUBLISHED NOISE COSTS\n\n{}\n\n{}",
                parts[0], parts[1], parts[2]
            )
        })?;
        output.note("part 2 is accounting alone, in idealised arithmetic: it holds for real-valued noise");
        Ok(())
    }
}
