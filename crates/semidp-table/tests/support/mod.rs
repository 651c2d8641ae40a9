//! Writes small tables in each format, and reads sources back.

#![allow(dead_code, reason = "each test file uses its share")]

use flate2::Compression;
use flate2::write::GzEncoder;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type, Int96,
    Int96Type,
};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use semidp_core::{Adjacency, Block, BlockSource, Private, Session};
use semidp_table::{Column, Encoding, Kind, LoadOptions, Schema, Table, open_private, open_public};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A path of its own for each name.
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

pub fn write(name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    std::fs::write(path(name), content).unwrap();
    path(name)
}

pub fn gzip(content: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content.as_ref()).unwrap();
    encoder.finish().unwrap()
}

/// An array with a header of the given version.
pub fn npy(version: u8, kind: &str, fortran: bool, shape: &str, body: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let header = format!("{{'descr': '{kind}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let mut bytes = vec![0x93, b'N', b'U', b'M', b'P', b'Y', version, 0];
    match version {
        1 => bytes.extend((header.len() as u16).to_le_bytes()),
        _ => bytes.extend((header.len() as u32).to_le_bytes()),
    }
    bytes.extend(header.as_bytes());
    bytes.extend(body);
    bytes
}

pub fn doubles(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

pub fn npz(name: &str, arrays: &[(&str, Vec<u8>)]) -> PathBuf {
    use zip::CompressionMethod::{Deflated, Stored};
    let mut archive = zip::ZipWriter::new(std::fs::File::create(path(name)).unwrap());
    for (place, (array, bytes)) in arrays.iter().enumerate() {
        let method = if place % 2 == 0 { Deflated } else { Stored };
        let options = zip::write::SimpleFileOptions::default().compression_method(method);
        archive.start_file(format!("{array}.npy"), options).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap();
    path(name)
}

/// The values of a column of a row group.
#[derive(Clone)]
pub enum Values {
    Bool(Vec<Option<bool>>),
    Int32(Vec<Option<i32>>),
    Int64(Vec<Option<i64>>),
    Int96(usize),
    Float(Vec<Option<f32>>),
    Double(Vec<Option<f64>>),
    Text(Vec<Option<&'static str>>),
}

fn add<T: DataType>(group: &mut SerializedRowGroupWriter<'_, std::fs::File>, cells: &[Option<T::T>]) {
    let mut column = group.next_column().unwrap().unwrap();
    let present: Vec<T::T> = cells.iter().flatten().cloned().collect();
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    column.typed::<T>().write_batch(&present, Some(&levels), None).unwrap();
    column.close().unwrap();
}

/// A Parquet file of row groups.
pub fn parquet(name: &str, message: &str, groups: &[Vec<Values>], properties: WriterProperties) -> PathBuf {
    let message = Arc::new(parse_message_type(&format!("message table {{ {message} }}")).unwrap());
    let file = std::fs::File::create(path(name)).unwrap();
    let mut writer = SerializedFileWriter::new(file, message, Arc::new(properties)).unwrap();
    for columns in groups {
        let mut group = writer.next_row_group().unwrap();
        for values in columns {
            match values {
                Values::Bool(cells) => add::<BoolType>(&mut group, cells),
                Values::Int32(cells) => add::<Int32Type>(&mut group, cells),
                Values::Int64(cells) => add::<Int64Type>(&mut group, cells),
                Values::Int96(rows) => add::<Int96Type>(&mut group, &vec![Some(Int96::new()); *rows]),
                Values::Float(cells) => add::<FloatType>(&mut group, cells),
                Values::Double(cells) => add::<DoubleType>(&mut group, cells),
                Values::Text(cells) => {
                    let cells: Vec<_> = cells.iter().map(|cell| cell.map(ByteArray::from)).collect();
                    add::<ByteArrayType>(&mut group, &cells);
                }
            }
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
    path(name)
}

pub fn number(name: &str, impute: f64, range: Option<(f64, f64)>) -> Column {
    Column { name: name.into(), kind: Kind::Number { impute, range } }
}

pub fn category(name: &str, values: &[&str]) -> Column {
    let values = values.iter().map(|value| value.to_string()).collect();
    Column { name: name.into(), kind: Kind::Category { values } }
}

/// All rows, without zeros left out. Checks on the way that blocks hold what they promise.
pub fn rows(source: &impl BlockSource) -> Vec<Vec<f32>> {
    let mut rows: Vec<Vec<f32>> = Vec::new();
    for block in 0..source.blocks() {
        assert_eq!(source.units_of(block).start, rows.len());
        source.visit(block, &mut |piece| add_rows(&mut rows, piece, source.width())).unwrap();
        assert_eq!(source.units_of(block).end, rows.len());
    }
    assert_eq!(rows.len(), source.units());
    assert!(rows.iter().flatten().all(|number| number.is_finite()));
    rows
}

fn add_rows(rows: &mut Vec<Vec<f32>>, piece: Block<'_>, width: usize) {
    match piece {
        Block::DenseF32(block) => {
            assert_eq!(block.width(), width);
            rows.extend(block.values().chunks(width).map(<[f32]>::to_vec));
        }
        Block::CsrF32(block) => {
            for ends in block.offsets.windows(2) {
                let (columns, values) = (&block.columns[ends[0]..ends[1]], &block.values[ends[0]..ends[1]]);
                assert!(columns.windows(2).all(|pair| pair[0] < pair[1]));
                let mut row = vec![0.0; width];
                columns.iter().zip(values).for_each(|(&column, &value)| row[column as usize] = value);
                rows.push(row);
            }
        }
        _ => panic!("rows are in single precision"),
    }
}

/// A private table, opened for a test.
pub fn declassified(table: Private<Table>) -> Table {
    Session::new(table, Adjacency::ReplaceOne).unwrap().into_declassified("a test")
}

/// The rows of a private file, as they are encoded by default.
pub fn private_rows(path: &Path, schema: &Schema) -> Vec<Vec<f32>> {
    let encoding = Encoding::identity(schema).unwrap();
    rows(&declassified(open_private(path, schema, &encoding, LoadOptions::default()).unwrap()))
}

/// The rows of a public file, as they are encoded by default.
pub fn public_rows(path: &Path, schema: &Schema) -> Vec<Vec<f32>> {
    let encoding = Encoding::identity(schema).unwrap();
    rows(&*open_public(path, schema, &encoding, LoadOptions::default()).unwrap())
}
