//! A file as a source of encoded rows.

use crate::cell::Cells;
use crate::direct::Direct;
use crate::encoder::{Buffers, Encoder};
use crate::encoding::Encoding;
use crate::file::{self, FileKind, Reading, Role, Show, TableFile};
use crate::schema::{Kind, Schema};
use crate::{Error, Result};
use semidp_core::{Block, BlockSource, Private, Public};
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Rows in a block of a file that has no blocks of its own.
pub(crate) const ROWS_PER_BLOCK: usize = 8192;

/// Numbers in a piece, about: small enough for the second-level cache.
const PIECE_NUMBERS: usize = 1 << 15;

pub(crate) fn rows_per_piece(columns: usize) -> usize {
    (PIECE_NUMBERS / columns.max(1)).clamp(16, 4096)
}

/// How a file is read.
#[derive(Clone)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Refuses, when the file is opened, cells that would otherwise be replaced: missing or unreadable
    /// ones, numbers out of range, unseen categories. The error names a column only; that there is one
    /// depends on the rows all the same.
    pub strict: bool,
    /// Encodes a number that is missing or unreadable as NaN in place of the imputed one, for a question that counts such cells.
    pub unreadable_as_nan: bool,
    /// Rows in a block of a file of text or an NPY file without compression. It makes no difference to any result.
    pub rows_per_block: usize,
    /// Lets a quoted field of CSV span lines. Then one broken line of a private file can swallow those after it, so that whoever sets
    /// it vouches for the quotes of the file, and says so ([`LoadOptions::MULTILINE_ASSUMPTION`]).
    pub multiline: bool,
    /// Told the number of rows of each piece that was shown, by the thread that was shown it. What it is
    /// told adds up to the number of rows: where that is secret, show a movement but no number.
    pub on_rows: Option<Arc<dyn Fn(u64) + Send + Sync>>,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            strict: false,
            unreadable_as_nan: false,
            rows_per_block: ROWS_PER_BLOCK,
            multiline: false,
            on_rows: None,
        }
    }
}

impl LoadOptions {
    /// Refuses what would be replaced.
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Sets whether unreadable numbers become NaN.
    pub fn unreadable_as_nan(mut self, unreadable_as_nan: bool) -> Self {
        self.unreadable_as_nan = unreadable_as_nan;
        self
    }

    /// Sets the rows of a block; at least 1.
    pub fn rows_per_block(mut self, rows: usize) -> Self {
        self.rows_per_block = rows.max(1);
        self
    }

    /// What a certificate must say where [`LoadOptions::multiline`] is set for a private file.
    pub const MULTILINE_ASSUMPTION: &str = "a quoted field may span lines: no private row holds a quote that changes where another row begins or ends";

    /// Lets quoted fields span lines, or not.
    pub fn multiline(mut self, multiline: bool) -> Self {
        self.multiline = multiline;
        self
    }

    pub(crate) fn reading(&self, role: Role) -> Reading {
        Reading { role, rows_per_block: self.rows_per_block.max(1), multiline: self.multiline }
    }

    /// Reports progress.
    pub fn on_rows(mut self, report: impl Fn(u64) + Send + Sync + 'static) -> Self {
        self.on_rows = Some(Arc::new(report));
        self
    }
}

impl fmt::Debug for LoadOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadOptions")
            .field("strict", &self.strict)
            .field("unreadable_as_nan", &self.unreadable_as_nan)
            .field("rows_per_block", &self.rows_per_block)
            .field("multiline", &self.multiline)
            .finish_non_exhaustive()
    }
}

/// A file of which each row is a unit, encoded while it is read.
///
/// A row's numbers depend on its own cells, the schema and the encoding. They are finite, whatever the
/// cells: a missing or unreadable number is imputed (unless [`LoadOptions::unreadable_as_nan`] asks for NaN), one out of range is moved to the end of the range, an
/// unseen or missing category is [`crate::OTHER`]. Rows are sparse if the encoding has an indicator.
pub struct Table {
    file: Box<dyn TableFile>,
    /// The column of the file for each column that the encoder needs.
    wanted: Vec<usize>,
    encoder: Encoder,
    /// Of numbers in memory.
    direct: Option<Direct>,
    on_rows: Option<Arc<dyn Fn(u64) + Send + Sync>>,
}

/// Opens a file of public rows, of which there must be some.
pub fn open_public(
    path: impl AsRef<Path>,
    schema: &Schema,
    encoding: &Encoding,
    options: LoadOptions,
) -> Result<Public<Table>> {
    let table = Table::open(path.as_ref(), schema, encoding, options, Role::Public)?;
    if table.units() == 0 {
        return Err(Error::NoRows { path: path.as_ref().to_path_buf() });
    }
    Ok(Public(table))
}

/// Opens a file of private rows, of which there may be none. Only the kernel sees them, or how many.
pub fn open_private(
    path: impl AsRef<Path>,
    schema: &Schema,
    encoding: &Encoding,
    options: LoadOptions,
) -> Result<Private<Table>> {
    Table::open(path.as_ref(), schema, encoding, options, Role::Private).map(Private::new)
}

impl Table {
    fn open(
        path: &Path,
        schema: &Schema,
        encoding: &Encoding,
        options: LoadOptions,
        role: Role,
    ) -> Result<Self> {
        encoding.check(schema)?;
        let mut encoder = Encoder::new(schema, encoding);
        let needed: Vec<_> = encoder.needed().iter().map(|&column| &schema.columns()[column]).collect();
        let names: Vec<&str> = needed.iter().map(|column| column.name.as_str()).collect();
        let file = file::open(path, options.reading(role), Some(&names))?;
        let wanted = find(path, file.as_ref(), &names)?;
        for (column, &place) in needed.iter().zip(&wanted) {
            let found = match (&file.columns()[place].kind, &column.kind) {
                (FileKind::Untyped, _) => continue,
                (FileKind::Number, Kind::Number { .. }) => continue,
                (FileKind::Category, Kind::Category { .. }) => continue,
                (FileKind::Number, _) => "number",
                (FileKind::Category, _) => "category",
                (FileKind::Unsupported(found), _) => {
                    return Err(Error::UnsupportedType {
                        path: path.to_path_buf(),
                        column: column.name.clone(),
                        found: found.clone(),
                    });
                }
            };
            let (path, name, expected) = (path.to_path_buf(), column.name.clone(), column.kind.name());
            return Err(Error::WrongKind { path, column: name, expected, found });
        }
        if options.unreadable_as_nan {
            encoder.leave_unreadable();
        }
        let direct = file.in_memory().and_then(|table| Direct::new(table, &wanted, &encoder));
        let table = Self { file, wanted, encoder, direct, on_rows: options.on_rows };
        if options.strict {
            table.object(path, schema)?;
        }
        Ok(table)
    }

    /// The pass of a strict load.
    fn object(&self, path: &Path, schema: &Schema) -> Result<()> {
        for block in 0..self.blocks() {
            let mut objection = None;
            let read = self.read(block, &mut |cells, _| {
                objection = self.encoder.objection(cells);
                // Any reason will do: it only ends the pass.
                if objection.is_some() { Err(file::FAILED) } else { Ok(()) }
            });
            if let Some((column, problem)) = objection {
                let column = schema.columns()[column].name.clone();
                return Err(Error::Strict { path: path.to_path_buf(), column, problem });
            }
            read.map_err(|reason| Error::unreadable(path, reason))?;
        }
        Ok(())
    }

    fn report(&self, rows: u64) {
        if let Some(report) = &self.on_rows {
            report(rows);
        }
    }

    fn read(&self, block: usize, piece: &mut dyn FnMut(&[Cells], usize) -> file::Outcome) -> file::Outcome {
        let mut cells = self.encoder.cells();
        let columns = self.encoder.width().max(self.wanted.len());
        let mut show = Show { rows_per_piece: rows_per_piece(columns), piece };
        self.file.read(block, &self.wanted, &mut cells, &mut show)
    }
}

/// The place of each name among a file's columns. The names are the caller's, so that an error can tell
/// them: those of the file are cells if it has no header after all.
pub(crate) fn find(path: &Path, file: &dyn TableFile, names: &[&str]) -> Result<Vec<usize>> {
    let mut places: HashMap<&str, (usize, bool)> = HashMap::new();
    for (place, column) in file.columns().iter().enumerate() {
        places.entry(&column.name).and_modify(|(_, again)| *again = true).or_insert((place, false));
    }
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for &name in names {
        match places.get(name) {
            Some((_, true)) => {
                return Err(Error::DuplicateColumn { path: path.to_path_buf(), column: name.to_string() });
            }
            Some(&(place, false)) => found.push(place),
            None => missing.push(name.to_string()),
        }
    }
    if !missing.is_empty() {
        let naming = file.naming();
        return Err(Error::MissingColumns { path: path.to_path_buf(), columns: missing, naming });
    }
    Ok(found)
}

impl BlockSource for Table {
    fn width(&self) -> usize {
        self.encoder.width()
    }

    fn units(&self) -> usize {
        *self.file.bounds().last().unwrap_or(&0)
    }

    fn blocks(&self) -> usize {
        self.file.bounds().len() - 1
    }

    fn units_of(&self, block: usize) -> Range<usize> {
        self.file.bounds()[block]..self.file.bounds()[block + 1]
    }

    fn visit(&self, block: usize, visit: &mut dyn FnMut(Block<'_>)) -> semidp_core::Result<()> {
        self.visit_while(block, &mut |piece| {
            visit(piece);
            true
        })
    }

    fn visit_while(&self, block: usize, visit: &mut dyn FnMut(Block<'_>) -> bool) -> semidp_core::Result<()> {
        let mut buffers = Buffers::default();
        let mut is_wanted = true;
        if let (Some(direct), Some(table)) = (&self.direct, self.file.in_memory()) {
            let mut rows = self.units_of(block);
            while is_wanted && !rows.is_empty() {
                let piece = rows.start..rows.end.min(rows.start + rows_per_piece(self.width()));
                rows.start = piece.end;
                let count = piece.len() as u64;
                is_wanted = visit(direct.encode(table, piece, &mut buffers));
                self.report(count);
            }
            return Ok(());
        }
        let read = self.read(block, &mut |cells, rows| {
            is_wanted = visit(self.encoder.encode(cells, rows, &mut buffers));
            self.report(rows as u64);
            // Any reason will do: it only ends the block.
            if is_wanted { Ok(()) } else { Err(file::FAILED) }
        });
        match read {
            Err(reason) if is_wanted => Err(semidp_core::Error::Source { block, reason }),
            _ => Ok(()),
        }
    }

    fn is_resident(&self) -> bool {
        self.file.in_memory().is_some_and(|table| !table.may_be_copied)
    }

    fn visit_some(
        &self,
        block: usize,
        chosen: &[usize],
        visit: &mut dyn FnMut(Block<'_>),
    ) -> semidp_core::Result<()> {
        let reason = "it is no table in memory";
        let table = self.file.in_memory().ok_or(semidp_core::Error::Source { block, reason })?;
        let first = self.units_of(block).start;
        let mut buffers = Buffers::default();
        let mut cells = self.encoder.cells();
        for piece in chosen.chunks(rows_per_piece(self.width())) {
            let rows = piece.iter().map(|place| first + place);
            match &self.direct {
                Some(direct) => visit(direct.encode(table, rows, &mut buffers)),
                None => {
                    cells.iter_mut().for_each(Cells::clear);
                    table.fill(rows, &self.wanted, &mut cells);
                    visit(self.encoder.encode(&cells, piece.len(), &mut buffers));
                }
            }
        }
        Ok(())
    }

    fn bytes_per_unit(&self) -> u64 {
        self.encoder.bytes_per_row()
    }
}

/// Neither rows nor their number.
impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("width", &self.width()).finish_non_exhaustive()
    }
}
