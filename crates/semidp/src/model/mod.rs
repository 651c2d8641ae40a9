//! Models of tables: from columns to a saved model, its predictions and its metrics.
//!
//! * [`Columns`]: the features with their scales, and the target. All of it comes from public rows or a schema.
//! * [`SavedModel`]: weights with everything needed to use them, and the certificate.
//! * [`Predictor`]: a saved model applied to another table.

mod columns;
mod labels;
mod predict;
mod saved;
mod target;

pub use columns::Columns;
pub use predict::Predictor;
pub use saved::SavedModel;
pub use target::{Target, Task};
