//! What a report of the round is, as the server knows it beforehand.

use crate::failure::Failure;
use crate::number;
use clap::Args;
use semidp::local::{Header, REPORT_FORMAT};
use semidp_accounting::Epsilon;

/// The parameters that reports must have. Without them the first report says what they are.
#[derive(Args, Default)]
#[command(next_help_heading = "What reports must say of themselves [default: what the first one says]")]
pub struct Expected {
    /// The name of the round
    #[arg(long, value_name = "NAME")]
    round: Option<String>,

    /// The randomiser
    #[arg(long, value_name = "NAME")]
    mechanism: Option<String>,

    /// Numbers of a report [default: one a column, where columns are known]
    #[arg(long, value_name = "D", value_parser = number::whole("dimension", 1), allow_hyphen_values = true)]
    dimension: Option<u64>,

    /// Epsilon of one report
    #[arg(long, value_name = "E", value_parser = number::parse::<Epsilon>, allow_hyphen_values = true)]
    epsilon: Option<Epsilon>,

    /// What rows were clipped to
    #[arg(long, value_name = "R", value_parser = number::positive("radius"), allow_hyphen_values = true)]
    radius: Option<f64>,
}

impl Expected {
    /// The header of all reports, if it is given. `must` is the option that needs it. `columns` are known columns, `centre` the
    /// fingerprint of what people subtracted.
    pub fn header(
        self,
        must: Option<&str>,
        columns: Option<usize>,
        centre: Option<String>,
    ) -> Result<Option<Header>, Failure> {
        let Self { round, mechanism, dimension, epsilon, radius } = self;
        let is_given = round.is_some()
            || mechanism.is_some()
            || dimension.is_some()
            || epsilon.is_some()
            || radius.is_some();
        if !is_given && must.is_none() {
            return Ok(None);
        }
        let dimension = dimension.map(|dimension| dimension as usize).or(columns);
        if let (Some(round), Some(mechanism), Some(dimension), Some(epsilon), Some(radius)) =
            (&round, &mechanism, dimension, epsilon, radius)
        {
            let (format, round, mechanism) = (REPORT_FORMAT.into(), round.clone(), mechanism.clone());
            return Ok(Some(Header { format, round, mechanism, dimension, epsilon, radius, centre }));
        }
        let all = [
            ("--round", round.is_some()),
            ("--mechanism", mechanism.is_some()),
            ("--dimension", dimension.is_some()),
            ("--epsilon", epsilon.is_some()),
            ("--radius", radius.is_some()),
        ];
        let missing: Vec<&str> =
            all.iter().filter(|(_, is_given)| !is_given).map(|(name, _)| *name).collect();
        let because = match must {
            Some(option) => format!("with {option}: the first line may be the invalid one"),
            None => "too: the parameters of reports are given together".into(),
        };
        Err(Failure::input(
            format!("{} must be given {because}", missing.join(", ")),
            "give what `semidp local randomize` was told, as in --round spring --mechanism duchi --dimension 2 --epsilon 1 --radius 1",
        ))
    }
}
