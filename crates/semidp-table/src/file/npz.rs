//! NPZ: several NPY arrays with the same number of rows, side by side.
//!
//! An array `a` of one dimension is the column `a`, one of two dimensions the columns `a_0`, `a_1`, ...;
//! where the file has but one array of two dimensions, they are `x0`, `x1`, ... as in an NPY file.
//!
//! The table is one block. Each array that is wanted is unpacked as it is read; an array by columns
//! (Fortran order) is in memory while it is.

use super::npy::{Array, number_column};
use super::npy_header::Header;
use super::{CHANGED, FAILED, FileColumn, MAX_COLUMNS, Opened, Outcome, Show, TableFile, one_block};
use crate::cell::Cells;
use crate::{Error, Result};
use std::fs::File;
use std::io::BufReader;
use zip::ZipArchive;

type Archive = ZipArchive<BufReader<File>>;

pub(super) struct NpzFile {
    file: Opened,
    arrays: Vec<Entry>,
    columns: Vec<FileColumn>,
    /// The array of each column, and its place there.
    places: Vec<(usize, usize)>,
    bounds: Vec<usize>,
}

struct Entry {
    /// Its place in the archive.
    index: usize,
    header: Header,
}

impl NpzFile {
    pub(super) fn open(file: Opened) -> Result<Self> {
        let mut archive = archive(&file).map_err(|reason| file.unreadable(reason))?;
        let (mut arrays, mut names) = (Vec::new(), Vec::new());
        for index in 0..archive.len() {
            let mut entry = archive.by_index(index).map_err(|_| file.unreadable(NO_ARCHIVE))?;
            let name = entry.name().map_err(|_| file.unreadable(NO_ARCHIVE))?;
            let Some(name) = name.strip_suffix(".npy").map(str::to_string) else { continue };
            let header = Header::read(&mut entry)
                .and_then(|header| header.check_stream().map(|()| header))
                .map_err(|reason| file.unreadable(format!("array {name}: {reason}")))?;
            if entry.size() < header.length + header.body() {
                return Err(file.unreadable(format!("array {name}: it is shorter than its header says")));
            }
            arrays.push(Entry { index, header });
            names.push(name);
        }
        let Some(first) = arrays.first() else {
            return Err(file.unreadable("it has no arrays"));
        };
        let rows = first.header.rows;
        if arrays.iter().any(|array| array.header.rows != rows) {
            return Err(Error::DifferentLengths { path: file.path, arrays: names });
        }
        if arrays.iter().map(|array| array.header.columns).sum::<usize>() > MAX_COLUMNS {
            return Err(file.unreadable(format!("it has more than {MAX_COLUMNS} columns")));
        }
        let alone = arrays.len() == 1;
        let (mut columns, mut places) = (Vec::new(), Vec::new());
        for (place, (array, name)) in arrays.iter().zip(&names).enumerate() {
            for column in 0..array.header.columns {
                columns.push(number_column(match array.header.flat {
                    true => name.clone(),
                    false if alone => format!("x{column}"),
                    false => format!("{name}_{column}"),
                }));
                places.push((place, column));
            }
        }
        Ok(Self { file, arrays, columns, places, bounds: one_block(rows) })
    }
}

impl TableFile for NpzFile {
    fn columns(&self) -> &[FileColumn] {
        &self.columns
    }

    fn bounds(&self) -> &[usize] {
        &self.bounds
    }

    fn read(&self, _block: usize, wanted: &[usize], cells: &mut [Cells], show: &mut Show<'_>) -> Outcome {
        // What is wanted of each array: columns, and their places among the cells.
        let mut shares: Vec<Vec<(usize, usize)>> = vec![Vec::new(); self.arrays.len()];
        for (place, &column) in wanted.iter().enumerate() {
            let (array, column) = self.places[column];
            shares[array].push((column, place));
        }
        let open: Vec<_> = self.arrays.iter().zip(shares).filter(|(_, share)| !share.is_empty()).collect();
        // An archive gives out one array at a time, so each array has an archive of its own.
        let mut archives: Vec<Archive> =
            open.iter().map(|_| archive(&self.file)).collect::<std::result::Result<_, _>>()?;
        let mut arrays = Vec::new();
        for (archive, (entry, share)) in archives.iter_mut().zip(&open) {
            let mut bytes = archive.by_index(entry.index).map_err(|_| CHANGED)?;
            Header::read(&mut bytes).map_err(|_| CHANGED)?;
            arrays.push((Array::stream(&entry.header, bytes)?, share));
        }
        show.all(self.bounds[1], cells, |cells, rows| {
            arrays.iter_mut().try_for_each(|(array, share)| array.fill(rows, share, cells))
        })
    }
}

const NO_ARCHIVE: &str = "it is not a ZIP archive that can be read";

fn archive(file: &Opened) -> std::result::Result<Archive, &'static str> {
    ZipArchive::new(BufReader::new(file.again()?)).map_err(|error| match error {
        zip::result::ZipError::Io(_) => FAILED,
        _ => NO_ARCHIVE,
    })
}
