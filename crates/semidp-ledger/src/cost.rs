//! What a run is charged, and what is left.
//!
//! * ρ and pure ε add, in decimal numbers, exactly. Sums of them are valid filters: a run may be chosen from what earlier
//!   runs released (Rogers, Roth, Ullman, Vadhan 2016; Feldman, Zrnic 2021).
//! * Under (ε, δ) pure runs add too, as long as no other run was granted: E together. The first other run fixes E,
//!   and from then on every run is charged by the [`GaussianFilter`] of (ε − E, δ).
//! * The first charge of an account may take the whole budget: nothing was released that it could depend on, so the tight
//!   composition of its events is all there is to compare. Nothing else is granted then.

use semidp_accounting::accountant::{Accountant, PureAccountant, ZcdpAccountant};
use semidp_accounting::{
    Adjacency, CountedEvent, Decimal, Delta, Epsilon, Event, FilterCharge, GaussianFilter, PrivacyBudget,
    Result, Rho, Steps, epsilon, gaussian_noise,
};
use semidp_core::calibration_delta;

/// The rule by which a run was charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Its ε or ρ was added to that of the others.
    Sum,
    /// By the Gaussian filter.
    Filter,
    /// It took the whole budget, by tight composition of its events.
    Whole,
    /// It drew on a plan, which was charged when it was declared.
    Plan,
    /// An older version granted it by tight composition with the runs before; charged when the ledger was brought up to date.
    Migrated,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 5] = [Self::Sum, Self::Filter, Self::Whole, Self::Plan, Self::Migrated];

    /// As it is recorded.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Filter => "filter",
            Self::Whole => "whole",
            Self::Plan => "plan",
            Self::Migrated => "migrated",
        }
    }
}

/// What an entry of the ledger takes from its account.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cost {
    /// ε or ρ that adds.
    Sum(Decimal),
    /// In the currency of the filter.
    Filter(FilterCharge),
    /// Everything.
    Whole,
    /// Nothing: a plan paid.
    Nothing,
}

/// What was spent of a budget, and what is left.
#[derive(Debug, Clone, Copy)]
pub struct State {
    budget: PrivacyBudget,
    adjacency: Adjacency,
    /// ε or ρ that adds.
    pub sum: Decimal,
    /// What the filter granted, once it granted anything.
    pub filtered: Option<FilterCharge>,
    /// An entry took the whole budget.
    pub is_closed: bool,
    /// Entries that were charged.
    pub charges: usize,
}

impl State {
    pub fn new(budget: PrivacyBudget, adjacency: Adjacency) -> Self {
        Self { budget, adjacency, sum: Decimal::ZERO, filtered: None, is_closed: false, charges: 0 }
    }

    /// Takes a recorded cost away.
    pub fn take(&mut self, cost: Cost) {
        match cost {
            Cost::Sum(cost) => self.sum = self.sum.plus(cost),
            Cost::Filter(charge) => {
                self.filtered = Some(self.filtered.unwrap_or_default().plus(charge));
            }
            Cost::Whole => self.is_closed = true,
            Cost::Nothing => return,
        }
        self.charges += 1;
    }

    /// The budget as a decimal number.
    fn limit(&self) -> Decimal {
        Decimal::limit(amount(self.budget))
    }

    /// The filter of what pure runs left; `None` if they left nothing.
    pub fn filter(&self) -> Result<Option<GaussianFilter>> {
        let PrivacyBudget::Approximate { delta, .. } = self.budget else { return Ok(None) };
        let left = self.limit().minus(self.sum).round_down();
        if left == 0.0 {
            return Ok(None);
        }
        GaussianFilter::new(Epsilon::new(left)?, calibration_delta(delta)).map(Some)
    }

    /// What events would cost now, or why they are refused.
    pub fn price(&self, events: &[CountedEvent]) -> std::result::Result<(Rule, Cost), Refusal> {
        if self.is_closed {
            return Err(Refusal::Closed);
        }
        match self.budget {
            PrivacyBudget::Pure { .. } => self.add(pure(events, self.adjacency)?),
            PrivacyBudget::Zcdp { .. } => self.add(rho(events, self.adjacency)?),
            PrivacyBudget::Approximate { .. } => self.price_approximate(events),
        }
    }

    fn add(&self, cost: Decimal) -> std::result::Result<(Rule, Cost), Refusal> {
        match self.sum.plus(cost) {
            total if total <= self.limit() => Ok((Rule::Sum, Cost::Sum(cost))),
            total => Err(Refusal::TooMuch(Some(total.round_up()))),
        }
    }

    fn price_approximate(&self, events: &[CountedEvent]) -> std::result::Result<(Rule, Cost), Refusal> {
        let PrivacyBudget::Approximate { epsilon: limit, delta } = self.budget else { unreachable!() };
        if self.filtered.is_none()
            && let Ok(cost) = pure(events, self.adjacency)
            && let Ok(priced) = self.add(cost)
        {
            return Ok(priced);
        }
        let mut total = None;
        if let Some(filter) = self.filter()?
            && let Some(charge) = filter.charge(events, self.adjacency)?
        {
            let both = self.filtered.unwrap_or_default().plus(charge);
            if filter.covers(both) {
                return Ok((Rule::Filter, Cost::Filter(charge)));
            }
            total = self.epsilon_of(both).ok();
        }
        if self.charges == 0 {
            // Nothing was released yet.
            let alone = epsilon(events, self.adjacency, calibration_delta(delta))?.value;
            if alone <= limit {
                return Ok((Rule::Whole, Cost::Whole));
            }
            total = Some(alone.get());
        }
        Err(Refusal::TooMuch(total.filter(|total| *total > limit.get())))
    }

    /// ε, at the budget's δ, of pure runs and this charge together.
    fn epsilon_of(&self, charge: FilterCharge) -> Result<f64> {
        let gaussian = charge.epsilon(calibration_delta(self.budget.delta()))?.get();
        Ok(self.sum.plus(Decimal::of(gaussian)).round_up())
    }

    /// What everything together cost, in the currency of the budget. At most the budget, unless an older version
    /// granted more than this one would.
    pub fn spent(&self) -> Result<PrivacyBudget> {
        let limit = amount(self.budget);
        Ok(match self.budget {
            PrivacyBudget::Pure { .. } => PrivacyBudget::Pure { epsilon: Epsilon::new(self.sum.round_up())? },
            PrivacyBudget::Zcdp { stated_at, .. } => {
                PrivacyBudget::Zcdp { rho: Rho::new(self.sum.round_up())?, stated_at }
            }
            PrivacyBudget::Approximate { delta, .. } => {
                let charge = self.filtered.unwrap_or_default();
                let is_covered =
                    self.filter()?.map_or(self.filtered.is_none(), |filter| filter.covers(charge));
                let epsilon = match self.epsilon_of(charge) {
                    _ if self.is_closed => limit,
                    // What the filter covers is within the budget, whatever the last digits of another formula say.
                    Ok(epsilon) if is_covered => epsilon.min(limit),
                    Ok(epsilon) => epsilon.max(limit),
                    Err(_) => limit,
                };
                PrivacyBudget::Approximate { epsilon: Epsilon::new(epsilon)?, delta }
            }
        })
    }

    /// What one more release may cost by itself, in the currency of the budget.
    pub fn remaining(&self) -> Result<PrivacyBudget> {
        let left = if self.is_closed { 0.0 } else { self.limit().minus(self.sum).round_down() };
        Ok(match self.budget {
            PrivacyBudget::Pure { .. } => PrivacyBudget::Pure { epsilon: Epsilon::new(left)? },
            PrivacyBudget::Zcdp { stated_at, .. } => PrivacyBudget::Zcdp { rho: Rho::new(left)?, stated_at },
            PrivacyBudget::Approximate { delta, .. } => {
                let epsilon = match self.charges {
                    _ if self.is_closed => 0.0,
                    0 => left,
                    _ => self.one_gaussian(calibration_delta(delta))?,
                };
                PrivacyBudget::Approximate { epsilon: Epsilon::new(epsilon)?, delta }
            }
        })
    }

    /// The ε of the largest single Gaussian release that still fits, as calibration for that ε would make it.
    fn one_gaussian(&self, delta: Delta) -> Result<f64> {
        let Some(filter) = self.filter()? else { return Ok(0.0) };
        let spent = self.filtered.unwrap_or_default();
        let left = filter.budget().variance - spent.variance;
        if left <= 0.0 || spent.slack > filter.budget().slack {
            return Ok(0.0);
        }
        let alone = FilterCharge { variance: left, slack: 0.0 }.epsilon(delta)?.get();
        // That ε is an upper bound, so calibrating for it may give a little less noise: what is stated was tried.
        for margin in [0.0, 1e-12, 1e-9, 1e-7, 1e-5, 1e-3] {
            let epsilon = Epsilon::new(alone * (1.0 - margin))?;
            let Ok(noise) = gaussian_noise(PrivacyBudget::Approximate { epsilon, delta }, self.adjacency)
            else {
                return Ok(0.0);
            };
            let one = CountedEvent::new(Event::Gaussian { noise_multiplier: noise }, Steps::ONE);
            if filter.charge(&[one], self.adjacency)?.is_some_and(|charge| filter.covers(spent.plus(charge)))
            {
                return Ok(epsilon.get());
            }
        }
        Ok(0.0)
    }

    /// The cost of a run that an older version granted, whether or not it would be granted now.
    pub fn price_granted(&self, events: &[CountedEvent]) -> Cost {
        let summed = match self.budget {
            PrivacyBudget::Pure { .. } => pure(events, self.adjacency),
            PrivacyBudget::Zcdp { .. } => rho(events, self.adjacency),
            PrivacyBudget::Approximate { .. } => match pure(events, self.adjacency) {
                Ok(cost) if self.filtered.is_none() && self.sum.plus(cost) <= self.limit() => Ok(cost),
                _ => {
                    let charge = self.filter().and_then(|filter| match filter {
                        Some(filter) => filter.charge(events, self.adjacency),
                        None => Ok(None),
                    });
                    return charge.ok().flatten().map_or(Cost::Whole, Cost::Filter);
                }
            },
        };
        summed.map_or(Cost::Whole, Cost::Sum)
    }
}

/// Why a run is not granted.
#[derive(Debug)]
pub enum Refusal {
    /// An earlier entry took everything.
    Closed,
    /// Everything together would cost this, if a number can be given.
    TooMuch(Option<f64>),
    /// The events have no cost in this currency.
    Unknown(semidp_accounting::Error),
}

impl From<semidp_accounting::Error> for Refusal {
    fn from(error: semidp_accounting::Error) -> Self {
        Self::Unknown(error)
    }
}

fn pure(events: &[CountedEvent], adjacency: Adjacency) -> Result<Decimal> {
    let mut accountant = PureAccountant::new(adjacency);
    accountant.compose_all(events)?;
    Ok(accountant.total())
}

fn rho(events: &[CountedEvent], adjacency: Adjacency) -> Result<Decimal> {
    let mut accountant = ZcdpAccountant::new(adjacency);
    accountant.compose_all(events)?;
    Ok(accountant.total())
}

/// The ρ of one run, if it has one.
pub fn rho_of(events: &[CountedEvent], adjacency: Adjacency) -> Option<f64> {
    rho(events, adjacency).ok().map(Decimal::round_up).filter(|rho| rho.is_finite())
}

/// The number that is spent: ε or ρ.
pub fn amount(budget: PrivacyBudget) -> f64 {
    match budget {
        PrivacyBudget::Approximate { epsilon, .. } | PrivacyBudget::Pure { epsilon } => epsilon.get(),
        PrivacyBudget::Zcdp { rho, .. } => rho.get(),
    }
}

/// In words.
pub fn words(cost: PrivacyBudget) -> String {
    match cost {
        PrivacyBudget::Approximate { epsilon, delta } => format!("epsilon {epsilon} at delta {delta}"),
        PrivacyBudget::Pure { epsilon } => format!("pure epsilon {epsilon}"),
        PrivacyBudget::Zcdp { rho, .. } => format!("rho {rho}"),
    }
}

/// The same currency with another amount, in words.
pub fn words_of(budget: PrivacyBudget, amount: f64) -> String {
    match budget {
        PrivacyBudget::Approximate { delta, .. } => format!("epsilon {amount} at delta {delta}"),
        PrivacyBudget::Pure { .. } => format!("pure epsilon {amount}"),
        PrivacyBudget::Zcdp { .. } => format!("rho {amount}"),
    }
}

/// Whether what is done is covered by what was declared: the same events in the same order, each with at least as much
/// noise, at most the sample rate and at most the count.
pub fn is_within(done: &[CountedEvent], declared: &[CountedEvent]) -> bool {
    let covered = |(done, declared): (&CountedEvent, &CountedEvent)| {
        done.count <= declared.count
            && match (&done.event, &declared.event) {
                (Event::Gaussian { noise_multiplier: a }, Event::Gaussian { noise_multiplier: b }) => a >= b,
                (
                    Event::Laplace { noise_multiplier: a, dimension: m },
                    Event::Laplace { noise_multiplier: b, dimension: n },
                )
                | (
                    Event::KNorm { noise_multiplier: a, dimension: m },
                    Event::KNorm { noise_multiplier: b, dimension: n },
                ) => a >= b && m == n,
                (
                    Event::PoissonGaussian { noise_multiplier: a, sample_rate: p },
                    Event::PoissonGaussian { noise_multiplier: b, sample_rate: q },
                )
                | (
                    Event::FixedSizeGaussian { noise_multiplier: a, sample_rate: p },
                    Event::FixedSizeGaussian { noise_multiplier: b, sample_rate: q },
                ) => a >= b && p <= q,
                (
                    Event::OnePassGaussian { noise_multiplier: a, blocks: m },
                    Event::OnePassGaussian { noise_multiplier: b, blocks: n },
                ) => a >= b && m == n,
                (Event::Pure { epsilon: a }, Event::Pure { epsilon: b }) => a <= b,
                (Event::Zcdp { rho: a }, Event::Zcdp { rho: b }) => a <= b,
                _ => false,
            }
    };
    done.len() == declared.len() && done.iter().zip(declared).all(covered)
}
