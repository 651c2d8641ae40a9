#![doc = include_str!("../README.md")]
#![deny(missing_docs)]

pub mod accountant;
mod adjacency;
mod budget;
mod calibrate;
mod certificate;
mod closed_form;
pub mod convert;
mod error;
mod event;
mod filter;
mod guarantee;
pub mod json;
pub mod local;
mod math;

pub use accountant::{Accountant, Answer, LARGEST_EPSILON, MOST_DISTINCT_EVENTS, delta, epsilon};
pub use adjacency::Adjacency;
pub use budget::{Delta, Epsilon, Mu, NoiseMultiplier, Order, Rho, SampleRate, Sensitivity, Steps};
pub use calibrate::{Calibrated, calibrate_noise, calibrate_steps};
pub use certificate::{Accountants, Arithmetic, Certificate, Provenance, RandomSource, Signature, Verdict};
pub use closed_form::{PrivacyBudget, closed_form_noise, gaussian_noise};
pub use error::{Error, Result};
pub use event::{CountedEvent, Event, parse_events};
pub use filter::{FilterCharge, GaussianFilter};
pub use guarantee::{Guarantee, Protects, Trust};
pub use math::decimal::{Decimal, NotADecimal};
