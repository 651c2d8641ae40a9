//! A schema from a public file.

use crate::cell::{Cells, Guess, MAX_CELL_BYTES, MOST_VALUES, Mean};
use crate::file::{self, FileColumn, FileKind, Role, Show, TableFile};
use crate::schema::{Column, Kind, Schema};
use crate::table;
use crate::{Error, LoadOptions, Result};
use std::collections::HashSet;
use std::path::Path;

/// A schema, and what it leaves out.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Inferred {
    /// The columns that are numbers or categories.
    pub schema: Schema,
    /// The others of the file.
    pub skipped: Vec<Skipped>,
    /// Rows of a file of text that open a quote and do not close it: their cells from there on are missing. Perhaps fields of the
    /// file span lines, and it must be read with [`LoadOptions::multiline`].
    pub unclosed: usize,
}

/// A column that is neither a number nor a category.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// The column.
    pub name: String,
    /// Its type in the file, or what else is the matter with it.
    pub reason: String,
}

impl Schema {
    /// Learns a schema from a **public** file, or from those of its columns that are asked for.
    ///
    /// A column of a file of text is one of numbers if all its present cells are, and a category if none is;
    /// other files say themselves. Numbers are imputed by the mean of the finite ones and have no range.
    /// A category has the values that occur, in order, of which there may be 1000 of up to [`MAX_CELL_BYTES`](crate::MAX_CELL_BYTES)
    /// bytes each.
    ///
    /// A column of an unsupported type, or without a name, is skipped, unless it was asked for.
    pub fn infer(path: impl AsRef<Path>, columns: Option<&[&str]>) -> Result<Inferred> {
        Self::infer_with(path, columns, &LoadOptions::default())
    }

    /// The same from a file that is read by these options.
    pub fn infer_with(
        path: impl AsRef<Path>,
        columns: Option<&[&str]>,
        options: &LoadOptions,
    ) -> Result<Inferred> {
        let path = path.as_ref();
        let file = file::open(path, options.reading(Role::Public), None)?;
        let (wanted, skipped) = match columns {
            Some(columns) => (table::find(path, file.as_ref(), columns)?, Vec::new()),
            None => all_columns(path, file.columns())?,
        };
        if file.bounds().last() == Some(&0) {
            return Err(Error::NoRows { path: path.to_path_buf() });
        }
        let mut learners = Vec::new();
        for &column in &wanted {
            let FileColumn { name, kind } = &file.columns()[column];
            learners.push(match kind {
                FileKind::Untyped => Cells::Guess(Guess { untyped: true, ..Guess::default() }),
                FileKind::Category => Cells::Guess(Guess::default()),
                FileKind::Number => Cells::Numbers(Vec::new()),
                FileKind::Unsupported(found) => {
                    let (path, column) = (path.to_path_buf(), name.clone());
                    return Err(Error::UnsupportedType { path, column, found: found.clone() });
                }
            });
        }
        let means = learn(path, file.as_ref(), &wanted, &mut learners)?;
        let columns = wanted.iter().zip(learners).zip(means).map(|((&column, cells), mean)| {
            let name = file.columns()[column].name.clone();
            let kind = conclude(path, &name, cells, mean)?;
            Ok(Column { name, kind })
        });
        let unclosed = file.unclosed();
        Ok(Inferred { schema: Schema::new(columns.collect::<Result<_>>()?)?, skipped, unclosed })
    }
}

impl Schema {
    /// Takes the columns of a file for numbers that are what they are, whatever its rows: for a person's own file, where there are no
    /// public rows to learn from. A cell that is no number counts as zero.
    ///
    /// Unless columns are asked for, it is all of them but those that the file says are no numbers. Then a file of text must
    /// begin with their names, and a name that is a number is taken for a forgotten header: neither it nor any other name of the file is
    /// told in an error.
    pub fn of_numbers(path: impl AsRef<Path>, columns: Option<&[&str]>) -> Result<Self> {
        Self::of_numbers_with(path, columns, &LoadOptions::default())
    }

    /// The same from a file that is read by these options.
    pub fn of_numbers_with(
        path: impl AsRef<Path>,
        columns: Option<&[&str]>,
        options: &LoadOptions,
    ) -> Result<Self> {
        let path = path.as_ref();
        let names: Vec<String> = match columns {
            Some(columns) => columns.iter().map(|name| name.to_string()).collect(),
            None => {
                // Without names for its columns, a file of text has as many as its rows say.
                let file = file::open(path, options.reading(Role::Private), Some(&[]))?;
                let is_number = |column: &&FileColumn| {
                    matches!(column.kind, FileKind::Number | FileKind::Untyped) && !column.name.is_empty()
                };
                file.columns().iter().filter(is_number).map(|column| column.name.clone()).collect()
            }
        };
        let unnamed = |reason| Err(Error::unreadable(path, reason));
        let mut seen = HashSet::new();
        if columns.is_none() {
            if names.is_empty() {
                return unnamed("it names no column of numbers");
            }
            if names.iter().any(|name| name.trim().parse::<f64>().is_ok_and(f64::is_finite)) {
                return unnamed("its first line must be the names of the columns, not numbers");
            }
            if !names.iter().all(|name| seen.insert(name)) {
                return unnamed("two of its columns have one name");
            }
        }
        let kind = Kind::Number { impute: 0.0, range: None };
        Schema::new(names.into_iter().map(|name| Column { name, kind: kind.clone() }).collect())
    }
}

/// All columns that have a name and a type that means something.
fn all_columns(path: &Path, columns: &[FileColumn]) -> Result<(Vec<usize>, Vec<Skipped>)> {
    let (mut wanted, mut skipped) = (Vec::new(), Vec::new());
    let mut seen = HashSet::new();
    for (place, FileColumn { name, kind }) in columns.iter().enumerate() {
        if name.is_empty() {
            skipped.push(Skipped { name: name.clone(), reason: "has no name".into() });
            continue;
        }
        if !seen.insert(name) {
            return Err(Error::DuplicateColumn { path: path.to_path_buf(), column: name.clone() });
        }
        match kind {
            FileKind::Unsupported(found) => {
                skipped.push(Skipped { name: name.clone(), reason: format!("is of type {found}") });
            }
            _ => wanted.push(place),
        }
    }
    Ok((wanted, skipped))
}

/// Whether one of the learners has seen a cell that is too long, so that nothing is learned from the others.
fn is_too_long(learners: &[Cells]) -> bool {
    learners.iter().any(|cells| matches!(cells, Cells::Guess(guess) if guess.is_too_long))
}

/// Shows all rows to the learners, up to the first cell that is too long, and takes the means of those that are numbers.
fn learn(path: &Path, file: &dyn TableFile, wanted: &[usize], learners: &mut [Cells]) -> Result<Vec<Mean>> {
    let mut means: Vec<Mean> = wanted.iter().map(|_| Mean::default()).collect();
    for block in 0..file.bounds().len() - 1 {
        let mut piece = |cells: &[Cells], _: usize| {
            for (cells, mean) in cells.iter().zip(&mut means) {
                if let Cells::Numbers(numbers) = cells {
                    numbers.iter().for_each(|&number| mean.add(number));
                }
            }
            if is_too_long(cells) { Err("it has a cell that is too long") } else { Ok(()) }
        };
        let mut show = Show { rows_per_piece: table::rows_per_piece(wanted.len()), piece: &mut piece };
        let read = file.read(block, wanted, learners, &mut show);
        if is_too_long(learners) {
            break;
        }
        read.map_err(|reason| Error::unreadable(path, reason))?;
    }
    Ok(means)
}

/// What a column is, after all its cells.
fn conclude(path: &Path, name: &str, cells: Cells, mean: Mean) -> Result<Kind> {
    let (path, column) = (path.to_path_buf(), name.to_string());
    let (mean, guess) = match cells {
        Cells::Guess(guess) if guess.is_too_long => {
            return Err(Error::ValueTooLong { path, column, limit: MAX_CELL_BYTES });
        }
        Cells::Guess(guess) if guess.text && guess.numbers => {
            return Err(Error::MixedColumn { path, column });
        }
        Cells::Guess(guess) if guess.text => (None, Some(guess.values)),
        Cells::Guess(guess) => (guess.mean.get(), None),
        _ => (mean.get(), None),
    };
    match (mean, guess) {
        (_, Some(values)) if values.len() > MOST_VALUES => {
            Err(Error::TooManyValues { path, column, limit: MOST_VALUES })
        }
        (_, Some(values)) => Ok(Kind::Category { values: values.into_iter().collect() }),
        (Some(impute), None) => Ok(Kind::Number { impute, range: None }),
        (None, None) => Err(Error::EmptyColumn { path, column }),
    }
}
