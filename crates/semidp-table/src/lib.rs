//! Tables in files as sources of units: CSV, the files of the UCI archive, Parquet, NPY and NPZ.
//!
//! `public file → schema → encoding → source`. What columns mean is learned from public rows or written
//! by hand; a private file is then read by that meaning and by nothing of its own, whatever its cells are.
//! Files are streamed: memory does not grow with the number of rows.
//!
//! ```
//! use semidp_core::{Adjacency, Session};
//! use semidp_table::{Encoding, LoadOptions, Schema, open_private};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = std::env::temp_dir().join(format!("semidp-table-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let (public, private) = (folder.join("public.csv"), folder.join("private.csv"));
//! std::fs::write(&public, "age,sex\n30,Female\n50,Male\n")?;
//! std::fs::write(&private, "sex,age\nMale,41\nunknown,?\n")?;
//!
//! let schema = Schema::infer(&public, None)?.schema;
//! let encoding = Encoding::with_shift_and_scale(&schema, |_| (40.0, 10.0))?;
//! assert_eq!(encoding.names(), ["age", "sex=Female", "sex=Male", "sex=other"]);
//! let rows = open_private(&private, &schema, &encoding, LoadOptions::default())?;
//! let session = Session::new(rows, Adjacency::ReplaceOne)?;
//! assert_eq!(session.units(), Some(2));
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Formats
//!
//! A file's name says what it is.
//!
//! | ending | columns | blocks |
//! |---|---|---|
//! | `.csv`, `.tsv` | named by the header line | of 8192 rows |
//! | `.csv.gz`, `.tsv.gz` | the same | one |
//! | `.data`, `.test` | named by the `.names` file beside it, or `x0`, `x1`, ... | of 8192 rows |
//! | `.data.gz`, `.test.gz` | the same | one |
//! | `.parquet` | flat ones: booleans, integers, floats, text | row groups |
//! | `.npy` | `x0`, `x1`, ... | of 8192 rows |
//! | `.npy.gz` | the same | one |
//! | `.npz` | by the arrays' names | one |
//!
//! Columns are matched by name, in any order; those that the encoding does not use are not looked at. In
//! CSV and in text columns of Parquet, spaces around a cell do not count, bytes that are not UTF-8 are
//! replaced, and [`MISSING`] lists what stands for a missing cell. A category may end in a
//! full stop that the schema does not know, as [`MISSING`] says.
//!
//! # Lines and units
//!
//! In a private file of text **every line after the header is one unit**, whatever its bytes are. A quoted field ends with its line;
//! a blank line, a comment of C4.5, a line that is ragged, that does not close a quote, or that is longer than 64 MiB is a unit with
//! missing cells. `\n` ends a line, with or without a `\r` before it, and a break
//! at the end of the file ends the last line. A private file whose header line ends with a `\r` alone is refused. So one person's line cannot hide or split those of others. Two things are taken for
//! granted: that a person's text holds no `\n`, and that the header line, which is no unit, tells nothing private. The
//! last line, if it lacks its break, must not be empty: it would be no line.
//!
//! With [`LoadOptions::multiline`] a quoted field may span lines. Then a stray quote can hide the lines after it, and a
//! certificate must say that this was ruled out by other means ([`LoadOptions::MULTILINE_ASSUMPTION`]).
//!
//! In a public file `\n`, `\r` and `\r\n` end a line, blank lines are no rows (but in CSV of one column), nor are comments of
//! C4.5, and a line longer than 64 MiB is an error.
//!
//! `.data` and `.test` files are those of the UCI archive, in the convention of C4.5: rows without a header
//! line, cells with commas between them, no quotes. Lines that begin with `|` are comments, and neither
//! they nor blank lines are rows of a public file. A full stop at the end of a row is dropped. For `adult.data` and
//! `adult.test`, gzip or not, columns are named by `adult.names`, or else `adult.names.gz`, in the same folder:
//! it lists the classes, then a line `name: values.` for each column but the last, which is called `class`.
//! Names are all that is taken from it. It is metadata and taken to be public, also beside private
//! rows. Without it the columns are `x0`, `x1`, ...; a schema may then name any of them, and those for
//! which a row has no cell are missing.
//!
//! # Memory
//!
//! Arrays that lie in memory are attached ([`Attached`]) under a name that is used like the path of a file, and are read where
//! they lie: a source of them can show single rows, so that the kernel need not copy them.
//!
//! # What is told about private rows
//!
//! Errors name files, columns and types. Whether a file can be opened depends on its rows only in a strict
//! load, which is why it is not the default. The number of rows is in the source, where the kernel alone
//! sees it.

mod cell;
mod direct;
mod encoder;
mod encoding;
mod error;
mod file;
mod infer;
mod schema;
mod table;

pub use cell::{MAX_CELL_BYTES, MISSING};
pub use encoding::{Encoding, Feature};
pub use error::{Error, Problem, Result};
pub use file::memory::{Attached, Grid, MemoryTable, Numbers, View, is_attached, is_sparse, shares_memory};
pub use infer::{Inferred, Skipped};
pub use schema::{Column, Kind, OTHER, Schema};
pub use table::{LoadOptions, Table, open_private, open_public};
