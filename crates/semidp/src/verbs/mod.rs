//! What a user asks for, as values: one options type and one outcome type per verb.
//!
//! Options are built fluently or deserialised, hold plain numbers, and are checked in one place when the verb runs. Interfaces translate:
//! arguments to options, outcomes to text, JSON or objects, errors to their own words ([`crate::wording`]).

mod account;
mod calibrate;
mod mechanism;
mod outcome;

pub use account::Account;
pub use calibrate::Calibrate;
pub use mechanism::{Law, Mechanism, Sampling};
pub use outcome::{AccountOutcome, ByAccountant, OtherAdjacency, Question};
