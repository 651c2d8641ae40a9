//! Data on either side of the wall, and how units are drawn from it.

mod memory;
mod piece;
mod private;
mod public;
mod sampling;
mod selection;
mod source;
mod streamed;

pub use memory::InMemory;
pub(crate) use piece::{ANOTHER_SHAPE, TOO_FEW, fits};
pub use private::Private;
pub use public::Public;
pub use sampling::Sampling;
pub(crate) use sampling::{Assignment, Draw};
pub(crate) use selection::Selection;
pub use source::{Block, BlockSource, CsrBlock, CsrTable, DenseBlock, DenseTable, Joined, Number};
pub use streamed::Streamed;
