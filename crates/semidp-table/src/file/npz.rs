//! NPZ: several NPY arrays with the same number of rows, side by side.
//!
//! An array `a` of one dimension is the column `a`, one of two dimensions the columns `a_0`, `a_1`, ...;
//! where the file has but one array of two dimensions, they are `x0`, `x1`, ... as in an NPY file.
//!
//! The table is one block. Each array that is wanted is unpacked as it is read; an array by columns
//! (Fortran order) is in memory while it is. However many arrays there are, the list of them is read once and the file is
//! open once.

use super::npy::{Array, number_column};
use super::npy_header::{Header, check_streams};
use super::{CHANGED, FAILED, FileColumn, MAX_COLUMNS, Opened, Outcome, Show, TableFile, one_block};
use crate::cell::Cells;
use crate::{Error, Result};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};
use zip::ZipArchive;

/// Most arrays in a file. Each that is wanted takes up to 0.1 MB for the state of its decompression and its buffers.
const MAX_ARRAYS: usize = 8192;

/// Clones share what was read of the list of arrays, and the open file.
type Archive = ZipArchive<Buffered>;

/// A buffer over the shared file. A clone has a buffer of its own, and stands anywhere: an archive seeks before it reads.
struct Buffered(BufReader<Shared>);

impl Clone for Buffered {
    fn clone(&self) -> Self {
        Self(BufReader::new(self.0.get_ref().clone()))
    }
}

impl Read for Buffered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Seek for Buffered {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

/// A file that several read, each from a place of its own.
#[derive(Clone)]
struct Shared {
    file: Arc<Mutex<File>>,
    length: u64,
    position: u64,
}

impl Read for Shared {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.position))?;
        let read = file.read(buffer)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl Seek for Shared {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (from, by) = match to {
            SeekFrom::Start(position) => (position, 0),
            SeekFrom::Current(by) => (self.position, by),
            SeekFrom::End(by) => (self.length, by),
        };
        self.position = from.checked_add_signed(by).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

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
        if archive.len() > MAX_ARRAYS {
            return Err(file.unreadable(format!("it has more than {MAX_ARRAYS} arrays")));
        }
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
        check_streams(arrays.iter().map(|array| &array.header)).map_err(|reason| file.unreadable(reason))?;
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
        // An archive gives out one array at a time, so each array has a clone of its own.
        let mut archives = vec![archive(&self.file)?; open.len()];
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
    let shared = Shared { file: Arc::new(Mutex::new(file.again()?)), length: file.length, position: 0 };
    ZipArchive::new(Buffered(BufReader::new(shared))).map_err(|error| match error {
        zip::result::ZipError::Io(_) => FAILED,
        _ => NO_ARCHIVE,
    })
}
