//! Failures as a person and a program see them: one `error:` line, a `hint:` line, an exit code.

use crate::printable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use semidp::wording::Terms;
use semidp_accounting::Error;
use std::error::Error as _;
use std::io::Write;
use std::process::ExitCode;

/// Something went wrong that is not the user's doing, or a certificate does not hold.
pub const OTHER: u8 = 1;
/// Bad usage or bad input.
pub const BAD_INPUT: u8 = 2;
/// The privacy budget does not cover what was asked.
pub const BUDGET_REFUSED: u8 = 3;

/// The name of the variant that an error is.
fn variant(error: &impl std::fmt::Debug) -> String {
    format!("{error:?}").chars().take_while(|letter| letter.is_ascii_alphanumeric()).collect()
}

/// Why the command ends without an answer.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    /// The name of the variant of a library's error, if it was one.
    variant: Option<String>,
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// The user asked for something that cannot be, and can change it.
    pub fn input(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(BAD_INPUT, message.into(), Some(hint.into()))
    }

    /// It would cost more privacy than was allowed.
    pub fn budget(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(BUDGET_REFUSED, message.into(), Some(hint.into()))
    }

    /// Anything else.
    pub fn other(message: impl Into<String>) -> Self {
        Self::new(OTHER, message.into(), None)
    }

    /// Line breaks in what an error of a library says become spaces; whatever else a terminal would obey is escaped.
    fn new(code: u8, message: String, hint: Option<String>) -> Self {
        let safe = |text: String| printable::line(&text.replace(['\n', '\r'], " ")).into_owned();
        Self { code, variant: None, message: safe(message), hint: hint.map(safe) }
    }

    /// What happened.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// How to put it right, if anybody knows.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        self.code
    }

    /// What kind of failure it is, in one word: the name of a variant of an error of the libraries, or `Input`, `BudgetRefused` or `Other`
    /// for what this crate says itself.
    pub fn variant(&self) -> &str {
        self.variant.as_deref().unwrap_or(match self.code {
            BAD_INPUT => "Input",
            BUDGET_REFUSED => "BudgetRefused",
            _ => "Other",
        })
    }

    /// Says which variant of an error it was.
    fn named(mut self, variant: String) -> Self {
        self.variant.get_or_insert(variant);
        self
    }

    /// Names the option or file that the failure is about.
    pub fn about(mut self, subject: &str) -> Self {
        self.message = format!("{}: {}", printable::line(subject), self.message);
        self
    }

    /// The same with another hint.
    pub fn hinted(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// It came after something was spent: says what, and how to get the answer.
    pub fn after(mut self, spent: &str, hint: impl Into<String>) -> Self {
        (self.code, self.hint) = (OTHER, Some(hint.into()));
        self.message = format!("{}; {spent}", self.message);
        self
    }

    /// What clap refuses, in the form of every other failure.
    pub fn from_usage(error: &clap::Error) -> Self {
        let option = match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::String(name)) => name.split(' ').next().unwrap_or_default(),
            _ => "",
        };
        // Our own parsers of numbers already say what the number must be.
        if let (ErrorKind::ValueValidation, Some(source)) = (error.kind(), error.source()) {
            return Self::input(source.to_string(), hint_for(option.trim_start_matches('-')))
                .named(variant(&source));
        }
        if let ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand =
            error.kind()
        {
            return Self::input(
                "a command must be given, such as plan, mean, account or demo",
                "`semidp --help` lists the commands; `semidp demo` shows what it is about",
            );
        }
        let rendered = error.render().to_string();
        let lines = rendered.lines().map(str::trim);
        let lines = lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
        let (tips, message): (Vec<&str>, Vec<&str>) =
            lines.filter(|line| !line.is_empty()).partition(|line| line.starts_with("tip:"));
        let message = message.join(" ");
        let hint = match tips.first() {
            Some(tip) => tip.trim_start_matches("tip:").trim().to_string(),
            None => hint_for(option.trim_start_matches('-')),
        };
        Self::input(message.trim_start_matches("error:").trim(), hint)
    }

    /// Tells the user, and turns into the exit code.
    pub fn report(&self) -> ExitCode {
        // Nothing is left to be done if stderr is gone too.
        let mut stderr = std::io::stderr().lock();
        let _ = writeln!(stderr, "error: {}", self.message);
        if let Some(hint) = &self.hint {
            let _ = writeln!(stderr, "hint: {hint}");
        }
        ExitCode::from(self.code)
    }
}

impl From<semidp_core::Error> for Failure {
    fn from(error: semidp_core::Error) -> Self {
        let (message, name) = (error.to_string(), variant(&error));
        let failure: Self = match error {
            semidp_core::Error::Accounting(error) => error.into(),
            semidp_core::Error::InvalidParameter { name, .. } => Self::input(message, hint_for(name)),
            semidp_core::Error::BudgetRefused { .. } => {
                let hint =
                    "raise the budget, or ask for less; `semidp ledger show` tells what a ledger has left";
                Self::budget(message, hint)
            }
            semidp_core::Error::Source { .. } => {
                Self::input(message, "the file may be damaged, or have changed while it was read")
            }
            semidp_core::Error::AnotherRun { .. } => Self::input(
                message,
                "give every option and file as they were when the run began; or start anew without --resume, at a new price",
            ),
            semidp_core::Error::Tampered => Self::input(
                message,
                "a run goes on from what it wrote itself; or start anew without --resume, at a new price",
            ),
            semidp_core::Error::Record { ref path, .. } => Self::input(
                message,
                format!(
                    "the command that began the run, with all options and files as they were, gives its answer; removing {path} and \
                     {path}.key gives it up, and what it spent with it"
                ),
            ),
            semidp_core::Error::EndedElsewhere { .. } => Self::input(
                message,
                "nothing was spent here: what that process was answered is where its --out said, or on its standard output; the same \
                 command now begins another run",
            ),
            semidp_core::Error::RunEnded { .. } => Self::input(
                message,
                "its result is where --out said; the same command now begins another run",
            ),
            semidp_core::Error::KeyFile { .. } | semidp_core::Error::KeyInUse { .. } => Self::input(
                message,
                "the key lies beside the checkpoint as FILE.key while a run lasts, for its owner alone",
            ),
            _ => Self::other(message),
        };
        failure.named(name)
    }
}

/// How the command line calls things.
struct Options;

impl Terms for Options {
    /// A positional argument is written in capitals and has no dashes.
    fn parameter(&self, name: &str) -> String {
        if name.starts_with(|letter: char| letter.is_ascii_uppercase()) {
            name.into()
        } else {
            format!("--{name}")
        }
    }

    fn setting(&self, name: &str, value: &str) -> String {
        format!("{} {value}", self.parameter(name))
    }

    fn command(&self, name: &str) -> String {
        format!("`semidp {name}`")
    }
}

impl From<semidp::Error> for Failure {
    fn from(error: semidp::Error) -> Self {
        let (message, name) = (error.to_string(), variant(&error));
        let failure: Self = match error {
            semidp::Error::Accounting(error) => error.into(),
            semidp::Error::Kernel(error) => error.into(),
            semidp::Error::InvalidParameter { name, .. } => Self::input(message, hint_for(name)),
            semidp::Error::Usage { problem, hint, .. } => {
                Self::input(problem.in_terms(&Options), hint.in_terms(&Options))
            }
            semidp::Error::Checkpoint { path, .. } => Self::input(
                message,
                format!(
                    "--resume {path} goes on with a run; removing {path} and {path}.key gives it up, and what it spent with it"
                ),
            ),
            semidp::Error::Ended { .. } => Self::input(
                message,
                "nothing is left to go on with: the model is where --out of the run said; leave out --resume to begin another run",
            ),
            semidp::Error::Stopped => {
                Self::new(OTHER, message, Some("the same command begins the run".into()))
            }
            semidp::Error::Interrupted { checkpoint, .. } => {
                let hint =
                    format!("the same command with --resume {checkpoint} goes on; the budget is spent once");
                Self::new(OTHER, message, Some(hint))
            }
            semidp::Error::WeakNoise { .. } => Self::input(
                message,
                "take a --delta far below one over the number of private rows, or a smaller --epsilon; --allow-weak-noise accepts \
                 such noise",
            ),
            semidp::Error::Unsuitable { .. } => Self::input(
                message,
                "`--estimator auto` takes the best that fits; `semidp plan mean` compares all of them",
            ),
            semidp::Error::TooFewPublicRows { .. } => Self::input(
                message,
                "give --radius: the distance from the centre within which rows lie, as in --radius 10",
            ),
            semidp::Error::Table(error) => error.into(),
            semidp::Error::Ledger(error) => error.into(),
            semidp::Error::Target { .. } => {
                Self::input(message, "--target names the column to predict, --task says what it is")
            }
            semidp::Error::NoFeatures { .. } => {
                Self::input(message, "the files need another column that varies in the public rows")
            }
            semidp::Error::NoLabels { .. } => {
                Self::input(message, "the target must be there, with values that the public rows know")
            }
            semidp::Error::UnknownModelFormat { .. } => Self::input(
                message,
                "it was written by another version of semidp: train again, or use that one",
            ),
            semidp::Error::MalformedModel { .. } => {
                Self::input(message, "give the file that `semidp train --out` wrote")
            }
            _ => Self::other(message),
        };
        failure.named(name)
    }
}

impl From<semidp_ledger::Error> for Failure {
    fn from(error: semidp_ledger::Error) -> Self {
        use semidp_ledger::Error as Ledger;
        let (message, name) = (error.to_string(), variant(&error));
        let hint = match error {
            Ledger::Accounting(error) => return error.into(),
            Ledger::Refused { .. } => return semidp_core::Error::from(error).into(),
            Ledger::InvalidParameter { name, .. } => return Self::input(message, hint_for(name)),
            Ledger::NotALedger { .. } => {
                "--ledger names a file that `semidp ledger init` made; to make one, name a file that does not exist"
            }
            Ledger::UnknownFormat { .. } | Ledger::UnknownEntry { .. } => {
                "use the version of semidp that wrote it"
            }
            Ledger::Changed { .. } => {
                "nothing is granted until the ledger is as semidp left it: restore it, and find out what was spent since"
            }
            Ledger::UnknownDataset { .. } => {
                "`semidp ledger init --ledger FILE --dataset ID` with a budget adds it; `semidp ledger show` lists those there are"
            }
            Ledger::AlreadySet { .. } => {
                "a budget is a promise and cannot be raised: `semidp ledger show` tells what is left of it"
            }
            _ => "--ledger is a file on a local disk that you may write to; `semidp ledger init` makes it",
        };
        Self::input(message, hint).named(name)
    }
}

impl From<semidp_table::Error> for Failure {
    fn from(error: semidp_table::Error) -> Self {
        use semidp_table::Error as Table;
        let (message, name) = (error.to_string(), variant(&error));
        let hint = match error {
            Table::UnknownFormat { .. } => {
                "CSV, Parquet, NPY, NPZ and UCI .data files are read; CSV, NPY and .data as .gz too"
            }
            Table::MalformedNames { .. } => {
                "correct the .names file, or rename it to have the columns x0, x1, ..."
            }
            Table::Unreadable { ref reason, .. } if reason.contains("no header line") => {
                "a CSV file begins with a line that names its columns, as in a,b,y, even where it has no rows"
            }
            Table::Unreadable { ref reason, .. } if reason.contains("carriage return alone") => {
                "convert its line ends: tr '\\r' '\\n' < OLD.csv > NEW.csv"
            }
            Table::Unreadable { .. } => "give the path of a readable file",
            Table::NoRows { .. } => {
                "without public rows give --schema: then it is plain differential privacy; --help says what else"
            }
            Table::MissingColumns { .. } | Table::WrongKind { .. } => {
                "every file must have the columns of the public file, the schema or the model, with values of the same kind"
            }
            Table::UnknownColumn { .. } => {
                "--columns takes names of columns of the public file or the schema"
            }
            Table::DuplicateColumn { .. } => "give each column a name of its own",
            Table::MixedColumn { .. }
            | Table::EmptyColumn { .. }
            | Table::TooManyValues { .. }
            | Table::ValueTooLong { .. } => {
                "clean the column, leave it out with --columns, or describe it in a --schema"
            }
            Table::UnsupportedType { .. } => "leave the column out with --columns, or store it as a number",
            Table::DifferentLengths { .. } => {
                "the arrays of an NPZ file are columns and must be of one length"
            }
            Table::Strict { .. } => "without --strict such cells are replaced by what the schema says",
            Table::UnknownSchemaFormat { .. }
            | Table::MalformedSchema { .. }
            | Table::InvalidColumn { .. } => "`semidp schema --public FILE` writes a schema to start from",
            _ => "every command explains itself: `semidp mean --help`",
        };
        Self::input(message, hint).named(name)
    }
}

#[cfg(feature = "experiments")]
impl From<semidp_paper::Error> for Failure {
    fn from(error: semidp_paper::Error) -> Self {
        match error {
            semidp_paper::Error::Algorithm(error) => error.into(),
            semidp_paper::Error::Data(message) => {
                Self::input(message, "--data DIR names the folder of the files that the experiment needs")
            }
            other => Self::other(other.to_string()),
        }
    }
}

impl From<semidp_plot::Error> for Failure {
    fn from(error: semidp_plot::Error) -> Self {
        Self::other(error.to_string())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let (message, name) = (error.to_string(), variant(&error));
        let failure: Self = match error {
            Error::InvalidParameter { name, .. } => Self::input(message, hint_for(name)),
            Error::UnknownEvent { accountant: "pure", .. } => {
                Self::input(message, "pure epsilon (delta 0) needs Laplace or K-norm noise; give --delta")
            }
            Error::UnknownEvent { .. } => {
                Self::input(message, "no accountant covers all of these events together")
            }
            Error::NoGuarantee { .. } => {
                Self::input(message, "use --adjacency replace-one, or --sampling poisson")
            }
            // These come from commands with different options: the hints name quantities, not options.
            Error::OutOfRange { .. } => Self::input(
                message,
                "such a guarantee protects nobody: take an epsilon between 0.1 and 10, with more noise, fewer releases or a larger delta",
            ),
            Error::Unreachable { .. } => Self::input(
                message,
                "allow a larger epsilon or delta, fewer releases, or more noise where you fix it",
            ),
            Error::TooManyEvents { .. } => Self::input(
                message,
                "write equal events once with a `count`, and round noise multipliers down and sample rates up to few values",
            ),
            Error::MalformedEvent { .. } => Self::input(
                message,
                "a file of events is a JSON list such as \
                 [{\"event\":\"poisson-gaussian\",\"noise_multiplier\":1,\"sample_rate\":0.01,\"count\":100}]",
            ),
            Error::MalformedCertificate { .. } => Self::input(
                message,
                "give the file that --certificate wrote, or the --json output of account or calibrate",
            ),
            _ => Self::other(message),
        };
        failure.named(name)
    }
}

/// What a parameter usually looks like, by its name without dashes.
fn hint_for(name: &str) -> String {
    match name {
        "epsilon" => "epsilon is usually between 0.1 and 10, as in --epsilon 2",
        "delta" => "delta is usually below one over the number of private rows, as in --delta 1e-5",
        "rho" => "rho is usually between 0.01 and 1, as in --rho 0.5",
        "sample-rate" => {
            "the sample rate is the expected batch over the number of private rows, as in --sample-rate 0.01"
        }
        "noise-multiplier" => {
            "it is the noise std on the sum of clipped contributions over the clip norm, \
             as in --noise-multiplier 1.1"
        }
        "steps" => "steps counts the noisy releases, as in --steps 1000",
        "dimension" => "the number of coordinates that get noise, as in --dimension 10",
        "radius" => {
            "no row may lie further than this from the centre; rows that do are clipped, as in --radius 10"
        }
        "std" => "the root of the total variance of a row over all columns, as in --std 2",
        "n-private" => "the number of private rows, as in --n-private 9000",
        "n-public" => "the number of public rows, as in --n-public 1000",
        "dim" => "the number of columns, as in --dim 100",
        "adjacency" => "use --adjacency replace-one; under add-remove the number of private rows is secret",
        "private-weight" => "the weight r of each private row; leave it out to use the best one",
        "expected-batch" => "private rows in a batch on average, as in --expected-batch 500",
        "clip-norm" => {
            "gradients of rows longer than this are clipped, as in --clip-norm 1; a target in very large or small units must be rescaled"
        }
        "start" => "numbers of the public rows are too large to compute with: give them in larger units",
        "public-gradient" => "clip is the usual one, as in --public-gradient clip",
        "learning-rate" => "the length of a step, as in --learning-rate 0.1",
        "alpha" => "the weight of the private gradient; leave it out to use the best one",
        "loss" => "leave it out to use the usual one, or take --loss huber for robust regression",
        "schedule" => "weighted is best where nothing is known; with --l2 leave it out",
        "trust" => {
            "give --trust local, where everybody randomises their own gradient, or choose another --algorithm"
        }
        "domain" => "the set that models are kept in, as in --domain ball:10",
        "algorithm" => "leave it out to use the best one",
        "sampling" => "poisson is the usual one; one-pass uses each private row once",
        "public-batch" => "public rows in a batch, as in --public-batch 200",
        "memory" => "memory for the private rows, as in --memory 4GB; --memory 0 streams them",
        "l2" => "leave it out, or take a small number as in --l2 0.001",
        "dataset" => "any name that you give the private rows, as in --dataset patients-2024",
        "round" => "people report once in each round, as in --round spring-2024",
        "expect-reports" => "the number of people who reported, as in --expect-reports 1000",
        "trials" => "runs of the mechanism under attack, as in --trials 10000",
        "confidence" => "how sure a bound is, as in --confidence 0.95",
        "grid-scale" => "0.5 halves the step of the grid, as in --grid-scale 0.5",
        _ => "every command explains itself: `semidp --help`, `semidp account --help`",
    }
    .into()
}
