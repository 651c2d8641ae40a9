//! The texts of mechanisms that semidp writes, read back word by word.
//!
//! A text of any other form is unknown, and its certificate is not valid: a check that passes over what it cannot read could be passed by a
//! space, a capital or a look-alike letter. `custom: NAME` is for mechanisms that other programs account for with this crate.

use crate::local::{LocalMechanism, randomizer_named};
use crate::{CountedEvent, Event, Trust};

/// What a mechanism with a name of its issuer begins with.
const CUSTOM: &str = "custom: ";
/// Bytes of the longest text that is read: twice the longest that semidp writes. Each hyper-parameter reads it again.
const MAX_LENGTH: usize = 300;
/// Algorithms of `semidp train` that release noisy sums of gradients.
const CENTRAL_ALGORITHMS: [&str; 6] =
    ["semi-dp-sgd", "semi-dp-sgd-accelerated", "dp-sgd", "optimal-gain", "pda-md", "pda-first-order"];
/// Algorithms of `semidp train --trust local`.
const LOCAL_ALGORITHMS: [&str; 3] = ["semi-ldp-sgd", "ldp-sgd", "semi-ldp-gain"];
/// Before the law of the noise in the name of an estimator of a mean.
const ESTIMATORS: [&str; 4] = ["", "weighted-", "shift-robust-", "pooled-"];

/// A law of noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Law {
    Gaussian,
    Laplace,
    KNorm,
}

impl Law {
    const ALL: [Self; 3] = [Self::Gaussian, Self::Laplace, Self::KNorm];

    /// In the name of an estimator.
    fn name(self) -> &'static str {
        match self {
            Self::Gaussian => "gaussian",
            Self::Laplace => "laplace",
            Self::KNorm => "k-norm",
        }
    }

    /// As `account` writes it.
    pub(super) fn computed(self) -> &'static str {
        match self {
            Self::Gaussian => "Gaussian noise",
            Self::Laplace => "Laplace noise",
            Self::KNorm => "K-norm noise",
        }
    }

    /// As the kernel writes it.
    fn drawn(self) -> &'static str {
        match self {
            Self::Gaussian => "rounded Gaussian noise",
            Self::Laplace => "rounded Laplace noise",
            Self::KNorm => "K-norm noise",
        }
    }

    fn of_kernel(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|law| law.drawn() == text)
    }

    fn is_of(self, event: &Event) -> bool {
        match event {
            Event::Gaussian { .. }
            | Event::PoissonGaussian { .. }
            | Event::FixedSizeGaussian { .. }
            | Event::OnePassGaussian { .. } => self == Self::Gaussian,
            Event::Laplace { .. } => self == Self::Laplace,
            Event::KNorm { .. } => self == Self::KNorm,
            Event::Pure { .. } | Event::Zcdp { .. } => false,
        }
    }
}

/// Reports that people's devices randomise.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reports {
    pub(super) randomizer: &'static LocalMechanism,
    /// Numbers in a report.
    pub(super) dimension: u64,
    /// Reports of each person.
    times: u64,
    /// Whether the devices drew the noise, and the issuer none.
    pub(super) is_elsewhere: bool,
}

impl Reports {
    /// `local: NAME of a vector of D numbers`, and what may follow.
    fn parse(text: &str) -> Option<Self> {
        let (name, rest) = text.strip_prefix("local: ")?.split_once(" of a vector of ")?;
        let (dimension, rest) = rest.split_once(" numbers")?;
        let (rest, is_elsewhere) = match rest.strip_suffix(", drawn by each person's own device") {
            Some(rest) => (rest, true),
            None => (rest, false),
        };
        let times = match rest {
            "" => 1,
            more => whole(
                more.strip_prefix(", the last of ")?.strip_suffix(" reports of each person")?,
                Grouping::None,
            )?,
        };
        let dimension = whole(dimension, Grouping::None)?;
        Some(Self { randomizer: randomizer_named(name).ok()?, dimension, times, is_elsewhere })
    }

    /// Whether the guarantee holds for the bits of a report.
    pub(super) fn is_exact(&self) -> bool {
        // In one dimension PrivUnit is Duchi's mechanism.
        self.randomizer.is_exact || (self.randomizer.name == "privunit" && self.dimension == 1)
    }
}

/// How rows are picked, in the words of `account`.
#[derive(Debug, Clone, Copy)]
enum Picking {
    Everyone,
    Poisson(f64),
    FixedSize(f64),
    OnePass,
}

impl Picking {
    fn parse(text: &str) -> Option<Self> {
        let rate = |text: &str| text.parse::<f64>().ok();
        match text {
            "" => Some(Self::Everyone),
            ", one for each of as many disjoint blocks" => Some(Self::OnePass),
            _ => match text.strip_prefix(", Poisson sampling at rate ") {
                Some(text) => rate(text).map(Self::Poisson),
                None => rate(text.strip_prefix(", samples of fixed size at rate ")?).map(Self::FixedSize),
            },
        }
    }

    fn is_of(self, event: &Event) -> bool {
        // Rates are written with six digits.
        let agrees = |stated: f64, rate: f64| (stated - rate).abs() <= 1e-5 * rate;
        match (self, event) {
            (Self::Everyone, Event::Gaussian { .. } | Event::Laplace { .. } | Event::KNorm { .. })
            | (Self::OnePass, Event::OnePassGaussian { .. }) => true,
            (Self::Poisson(stated), Event::PoissonGaussian { sample_rate, .. })
            | (Self::FixedSize(stated), Event::FixedSizeGaussian { sample_rate, .. }) => {
                agrees(stated, sample_rate.get())
            }
            _ => false,
        }
    }
}

/// A mechanism, as its text says.
#[derive(Debug, Clone, Copy)]
pub(super) enum Mechanism<'a> {
    /// Noise that `account` or `calibrate` computes with, and nobody draws.
    Computed(Computed),
    /// Events from a file of the user of `account`.
    Listed { releases: u64, kinds: u64 },
    /// A release of the kernel: `name` is the estimator or algorithm, if one is named.
    Release { name: Option<&'a str>, law: Law, is_mean: bool },
    /// Reports of people: `algorithm` is that of the training that asked for them, if there is one.
    Local { algorithm: Option<&'a str>, reports: Reports },
    /// No private row was read.
    PublicOnly { name: &'a str, trust: Trust },
    /// The rows as they are.
    NonPrivate,
    /// A mechanism that its issuer named, and semidp does not know.
    Custom,
}

/// A computed mechanism.
#[derive(Debug, Clone, Copy)]
pub(super) struct Computed {
    law: Law,
    trust: Trust,
    releases: u64,
    picking: Picking,
}

impl Computed {
    fn parse(text: &str) -> Option<Self> {
        let (law, rest) = Law::ALL
            .into_iter()
            .find_map(|law| Some((law, text.strip_prefix(law.computed())?.strip_prefix(" on ")?)))?;
        let (trust, rest) = [
            (Trust::Central, "the sum of clipped contributions, "),
            (Trust::Local, "each person's own clipped contribution, "),
        ]
        .into_iter()
        .find_map(|(trust, words)| Some((trust, rest.strip_prefix(words)?)))?;
        let (releases, rest) = match rest.strip_prefix("1 release") {
            Some(rest) if !rest.starts_with('s') => (1, rest),
            _ => {
                let (releases, rest) = rest.split_once(" releases")?;
                (whole(releases, Grouping::Thousands)?, rest)
            }
        };
        Some(Self { law, trust, releases, picking: Picking::parse(rest)? })
    }
}

impl<'a> Mechanism<'a> {
    /// Reads a text. None if semidp writes no such text.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        if text.len() > MAX_LENGTH {
            return None;
        }
        if let Some(name) = text.strip_prefix(CUSTOM) {
            return is_plain(name).then_some(Self::Custom);
        }
        if let Some(rest) = text.strip_prefix("mean: ") {
            return Self::mean(rest);
        }
        if let Some(rest) = text.strip_prefix("train: ") {
            return Self::training(rest);
        }
        if text == "none: nobody reported, and the public rows answer alone" {
            return Some(Self::PublicOnly { name: "throw-away", trust: Trust::Local });
        }
        if let Some(law) = Law::of_kernel(text) {
            return Some(Self::Release { name: None, law, is_mean: false });
        }
        if let Some(reports) = Reports::parse(text) {
            return Some(Self::Local { algorithm: None, reports });
        }
        if let Some(rest) = text.strip_suffix(" kinds of event, as given by the user") {
            let (releases, kinds) = rest.split_once(" releases by ")?;
            let (releases, kinds) = (whole(releases, Grouping::Thousands)?, whole(kinds, Grouping::None)?);
            return Some(Self::Listed { releases, kinds });
        }
        Computed::parse(text).map(Self::Computed)
    }

    /// `ESTIMATOR, NOISE`.
    fn mean(text: &'a str) -> Option<Self> {
        let (name, noise) = text.split_once(", ")?;
        let law_of_name = Law::ALL
            .into_iter()
            .find(|law| name.strip_suffix(law.name()).is_some_and(|prefix| ESTIMATORS.contains(&prefix)));
        if noise == "no private row was read" {
            let is_known = name == "throw-away" || law_of_name.is_some();
            return is_known.then_some(Self::PublicOnly { name, trust: Trust::Central });
        }
        let law = Law::of_kernel(noise).filter(|law| law_of_name == Some(*law))?;
        Some(Self::Release { name: Some(name), law, is_mean: true })
    }

    /// `ALGORITHM, NOISE`, perhaps chosen by `auto`.
    fn training(text: &'a str) -> Option<Self> {
        let (is_chosen, text) = match text.strip_prefix("auto, ") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (name, noise) = text.split_once(", ")?;
        match name {
            "throw-away" if noise == "no private row was used" => {
                Some(Self::PublicOnly { name, trust: Trust::Central })
            }
            "non-private"
                if !is_chosen && noise == "the rows were used as they are and nothing is promised" =>
            {
                Some(Self::NonPrivate)
            }
            _ if CENTRAL_ALGORITHMS.contains(&name) => {
                let law = Law::of_kernel(noise).filter(|law| *law == Law::Gaussian)?;
                Some(Self::Release { name: Some(name), law, is_mean: false })
            }
            _ if LOCAL_ALGORITHMS.contains(&name) => {
                let reports = Reports::parse(noise)?;
                let is_asked_here = reports.times == 1 && !reports.is_elsewhere;
                is_asked_here.then_some(Self::Local { algorithm: Some(name), reports })
            }
            _ => None,
        }
    }

    /// Who is trusted, where the text says so.
    pub(super) fn trust(&self) -> Option<Trust> {
        match self {
            Self::Computed(computed) => Some(computed.trust),
            Self::Release { .. } | Self::NonPrivate => Some(Trust::Central),
            Self::Local { .. } => Some(Trust::Local),
            Self::PublicOnly { trust, .. } => Some(*trust),
            Self::Listed { .. } | Self::Custom => None,
        }
    }

    /// What the text says that the events do not.
    pub(super) fn contradiction(&self, events: &[CountedEvent], releases: u64) -> Option<String> {
        let all = |is: &dyn Fn(&Event) -> bool| !events.is_empty() && events.iter().all(|one| is(&one.event));
        let law_is = |law: Law| match all(&|event| law.is_of(event)) {
            true => None,
            false => Some(format!("names `{}`, which not every event is", law.computed())),
        };
        let count = |stated: u64, found: u64| {
            (stated != found).then(|| format!("names {stated} releases, the events make {found}"))
        };
        match self {
            Self::Custom => None,
            Self::NonPrivate => Some("promises nothing".into()),
            Self::PublicOnly { .. } => {
                (!events.is_empty()).then(|| "reads no private row, but there are events".into())
            }
            Self::Release { law, .. } => law_is(*law),
            Self::Local { reports, .. } => {
                if all(&|event| matches!(event, Event::Pure { .. })) {
                    count(reports.times, releases)
                } else {
                    Some("names reports of people, which not every event is".into())
                }
            }
            Self::Computed(computed) => law_is(computed.law)
                .or_else(|| {
                    let is_picked = all(&|event| computed.picking.is_of(event));
                    (!is_picked).then(|| "names a sampling that the events have not".into())
                })
                .or_else(|| count(computed.releases, releases)),
            Self::Listed { releases: stated, kinds } => {
                let found = events.len() as u64;
                let differs = *kinds != found || events.is_empty();
                differs
                    .then(|| format!("names {kinds} kinds of event, there are {found}"))
                    .or_else(|| count(*stated, releases))
            }
        }
    }
}

/// Printable ASCII between single spaces.
pub(super) fn is_plain(text: &str) -> bool {
    let is_printable = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    is_printable && !text.is_empty() && text.split(' ').all(|word| !word.is_empty())
}

/// How the digits of a number are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Grouping {
    None,
    /// Commas between groups of three digits.
    Thousands,
}

/// A whole number in the one way that semidp writes it.
fn whole(text: &str, grouping: Grouping) -> Option<u64> {
    let digits = match grouping {
        Grouping::None => text.to_string(),
        Grouping::Thousands => text.replace(',', ""),
    };
    let value: u64 = digits.parse().ok()?;
    let written = match grouping {
        Grouping::None => value.to_string(),
        Grouping::Thousands => grouped(value),
    };
    (written == text).then_some(value)
}

/// A number with commas between groups of three digits.
fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let is_start = |position: usize| position > 0 && (digits.len() - position).is_multiple_of(3);
    let letters = digits.chars().enumerate();
    letters.fold(String::new(), |text, (position, digit)| match is_start(position) {
        true => format!("{text},{digit}"),
        false => format!("{text}{digit}"),
    })
}
