//! `semidp audit randomizer`: whether a person's randomised report tells more than it may.

use super::options::AuditOptions;
use super::report::Report;
use crate::failure::Failure;
use crate::output::Output;
use crate::{number, progress};
use clap::{Args, ValueEnum};
use semidp::audit::{self, Inputs};
use semidp_accounting::Epsilon;
use semidp_accounting::local::randomizer_named;
use semidp_core::Randomizer;
use serde_json::{Map, json};

const EXAMPLE: &str = "\
EXAMPLE
  semidp audit randomizer --mechanism rank-privunit --dim 100 --epsilon 2 --plot randomizer.svg";

/// Attack the reports of a randomiser: which of two vectors does a person hold?
#[derive(Args)]
#[command(after_help = EXAMPLE)]
pub struct AuditRandomizer {
    /// The randomiser: rank-privunit, duchi, privunit or privunitg
    #[arg(long, value_name = "NAME")]
    mechanism: String,

    /// Which attack
    #[arg(long, value_enum, default_value_t = Attack::Pair)]
    attack: Attack,

    /// The two vectors of the low-bits attack [default: axis]
    #[arg(long, value_enum)]
    inputs: Option<InputsName>,

    /// Numbers of a vector
    #[arg(long, value_name = "D", value_parser = number::whole("dim", 1), allow_hyphen_values = true)]
    dim: u64,

    /// Epsilon of one report: pure, and against everybody, the server included
    #[arg(long, value_name = "E", value_parser = number::parse::<Epsilon>, allow_hyphen_values = true)]
    epsilon: Epsilon,

    /// Reports of each of the two vectors; more of them make the bound tighter
    #[arg(long, value_name = "T", value_parser = number::whole("trials", 1), allow_hyphen_values = true, default_value = "20000")]
    trials: u64,

    #[command(flatten)]
    audit: AuditOptions,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Attack {
    /// Inner products of reports with two opposite vectors
    Pair,
    /// Low-order bits of reports: which floats can a vector have?
    LowBits,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum InputsName {
    /// Two axes, as one-hot categories are
    Axis,
    /// Two vectors of two entries that are not zero
    Sparse,
    /// Two opposite vectors without zeros
    Dense,
}

impl InputsName {
    fn inputs(self) -> Inputs {
        match self {
            Self::Axis => Inputs::Axis,
            Self::Sparse => Inputs::Sparse,
            Self::Dense => Inputs::Dense,
        }
    }
}

impl AuditRandomizer {
    /// Answers.
    pub fn run(self, output: &Output) -> Result<(), Failure> {
        let mechanism = randomizer_named(&self.mechanism).map_err(|_| {
            Failure::input(
                format!(
                    "--mechanism must be rank-privunit, duchi, privunit or privunitg, got `{}`",
                    self.mechanism
                ),
                "`semidp plan local` compares them",
            )
        })?;
        if self.attack == Attack::Pair && self.inputs.is_some() {
            return Err(Failure::input(
                "--inputs must not be given with --attack pair",
                "add --attack low-bits, or leave --inputs out",
            ));
        }
        let dimension = usize::try_from(self.dim).unwrap_or(usize::MAX);
        // Reports of longer vectors are the same but for their unit.
        let randomizer = Randomizer::new(mechanism, dimension, self.epsilon.positive()?, 1.0)?;
        let plot = self.audit.plot()?;
        let spinner = progress::spinner(output, "attacking reports");
        let options = self.audit.options(self.trials);
        let inputs = self.inputs.map_or(Inputs::Axis, InputsName::inputs);
        let audit = match self.attack {
            Attack::Pair => audit::randomizer(&randomizer, &options),
            Attack::LowBits => audit::low_bits(&randomizer, inputs, &options),
        };
        spinner.finish_and_clear();
        let mut fields = Map::new();
        fields.insert("mechanism".into(), json!(mechanism.name));
        fields.insert("dimension".into(), json!(self.dim));
        fields.insert("trust".into(), json!("local"));
        match self.attack {
            Attack::Pair => fields.insert("attack".into(), json!("pair")),
            Attack::LowBits => {
                fields.insert("inputs".into(), json!(inputs.name()));
                fields.insert("attack".into(), json!("low-bits"))
            }
        };
        Report::new(audit?, "reports of each vector", fields).finish(plot, output)
    }
}
