//! Tables in, models out.
//!
//! `public file → columns (features, target) → rows → training → model file → predictions, metrics`
//!
//! * [`Columns`]: which columns are features and how they are scaled, and what the target is. All of it from public
//!   rows, or from a schema.
//! * [`SavedModel`]: weights with everything needed to use them, and the certificate.
//! * [`Predictor`]: a saved model at work on another file.

mod columns;
mod error;
mod labels;
mod predict;
mod saved;
mod target;

pub use columns::Columns;
pub use error::{Error, Result};
pub use predict::Predictor;
pub use saved::SavedModel;
pub use target::{Target, Task};
