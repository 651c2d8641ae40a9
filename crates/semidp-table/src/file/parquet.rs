//! Parquet: a row group is a block. The readers of the wanted columns stand side by side, so that a piece
//! needs a page of each in memory and no more; columns that are not wanted are not read.

use super::parquet_pages::unpacked_bytes;
use super::{CHANGED, FAILED, FileColumn, FileKind, Opened, Outcome, Show, TableFile};
use crate::Result;
use crate::cell::Cells;
use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type,
};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::{SchemaDescriptor, Type};
use std::io::{BufReader, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

pub(super) struct ParquetFile {
    file: Opened,
    metadata: ParquetMetaData,
    columns: Vec<FileColumn>,
    /// The leaf of the schema that holds each column; of an unsupported one, any.
    leaves: Vec<usize>,
    bounds: Vec<usize>,
}

const NO_PARQUET: &str = "it is not a Parquet file that can be read";

/// Most memory that the pages of a row group may take at a time, one of each column and its dictionary: 512 MiB, or
/// `MAX_UNPACKING` times the file. Chosen, not measured: writers make pages of 1 MB, some of 100 MB.
const MAX_UNPACKED: u64 = 512 << 20;
const MAX_UNPACKING: u64 = 8;
const TOO_LARGE: &str =
    "it has pages that unpack to more than 512 MiB: write it with pages of 1 MB, the default of most writers";

impl ParquetFile {
    pub(super) fn open(file: Opened) -> Result<Self> {
        let opened = file.again().map_err(|reason| file.unreadable(reason))?;
        let broken = || file.unreadable(NO_PARQUET);
        // What the library says about broken bytes may quote them.
        let metadata =
            guarded(|| ParquetMetaDataReader::new().parse_and_finish(&opened)).map_err(|_| broken())?;
        let schema = metadata.file_metadata().schema_descr();
        let fields = schema.root_schema().get_fields();
        let mut leaves = vec![0; fields.len()];
        for leaf in (0..schema.num_columns()).rev() {
            leaves[schema.get_column_root_idx(leaf)] = leaf;
        }
        let column = |(field, &leaf): (&Arc<Type>, &usize)| FileColumn {
            name: field.name().trim().to_string(),
            kind: kind(&metadata, schema, field, leaf),
        };
        let columns = fields.iter().zip(&leaves).map(column).collect();
        let mut bounds = vec![0usize];
        for group in metadata.row_groups() {
            let rows = usize::try_from(group.num_rows()).map_err(|_| broken())?;
            let end = bounds[bounds.len() - 1].checked_add(rows).ok_or_else(broken)?;
            bounds.push(end);
        }
        Ok(Self { file, metadata, columns, leaves, bounds })
    }
}

/// What a field at the root of the schema is here.
fn kind(metadata: &ParquetMetaData, schema: &SchemaDescriptor, field: &Type, leaf: usize) -> FileKind {
    if !field.is_primitive() {
        return FileKind::Unsupported("group, with columns inside".into());
    }
    if field.get_basic_info().has_repetition() && field.get_basic_info().repetition() == Repetition::REPEATED
    {
        return FileKind::Unsupported("list".into());
    }
    let leaf_type = schema.column(leaf);
    let (logical, converted) = (leaf_type.logical_type_ref(), leaf_type.converted_type());
    let plain = logical.is_none() && converted == ConvertedType::NONE;
    let integer = match logical {
        Some(logical) => matches!(logical, LogicalType::Integer(_)),
        None => is_signed(converted).is_some(),
    };
    let text = match logical {
        Some(logical) => matches!(logical, LogicalType::String | LogicalType::Enum),
        None => matches!(converted, ConvertedType::UTF8 | ConvertedType::ENUM),
    };
    let physical = leaf_type.physical_type();
    let kind = match physical {
        Physical::BOOLEAN | Physical::FLOAT | Physical::DOUBLE if plain => FileKind::Number,
        Physical::INT32 | Physical::INT64 if plain || integer => FileKind::Number,
        Physical::BYTE_ARRAY if text => FileKind::Category,
        _ => {
            let annotation = match logical {
                Some(logical) => format!(" {}", logical_name(logical)),
                None if converted != ConvertedType::NONE => format!(" {converted}"),
                None => String::new(),
            };
            return FileKind::Unsupported(format!("{physical}{annotation}"));
        }
    };
    for group in metadata.row_groups() {
        let codec = match group.column(leaf).compression() {
            Compression::BROTLI(_) => "BROTLI",
            Compression::LZO => "LZO",
            _ => continue,
        };
        return FileKind::Unsupported(format!("{physical} compressed by {codec}"));
    }
    kind
}

/// The name without the parameters.
fn logical_name(logical: &LogicalType) -> String {
    let name = format!("{logical:?}");
    name.chars().take_while(|letter| letter.is_alphanumeric()).collect()
}

/// Whether integers are signed, if that is what the annotation says of them.
fn is_signed(converted: ConvertedType) -> Option<bool> {
    use ConvertedType::{INT_8, INT_16, INT_32, INT_64, UINT_8, UINT_16, UINT_32, UINT_64};
    match converted {
        INT_8 | INT_16 | INT_32 | INT_64 => Some(true),
        UINT_8 | UINT_16 | UINT_32 | UINT_64 => Some(false),
        _ => None,
    }
}

impl TableFile for ParquetFile {
    fn columns(&self) -> &[FileColumn] {
        &self.columns
    }

    fn bounds(&self) -> &[usize] {
        &self.bounds
    }

    fn read(&self, block: usize, wanted: &[usize], cells: &mut [Cells], show: &mut Show<'_>) -> Outcome {
        // A file of its own: the library's readers share and move the position of one.
        let file = Arc::new(self.file.again()?);
        let rows = self.bounds[block + 1] - self.bounds[block];
        let group = self.metadata.row_group(block);
        let schema = self.metadata.file_metadata().schema_descr();
        let mut unpacked = 0u64;
        for &column in wanted {
            let (start, length) = guarded(|| Ok(group.column(self.leaves[column]).byte_range()))?;
            let mut bytes = BufReader::with_capacity(1 << 10, &*file);
            bytes.seek(SeekFrom::Start(start)).map_err(|_| FAILED)?;
            let chunk = unpacked_bytes(bytes, length).map_err(|_| NO_PARQUET)?;
            unpacked = unpacked.saturating_add(chunk);
        }
        if unpacked > MAX_UNPACKED.max(self.file.length.saturating_mul(MAX_UNPACKING)) {
            return Err(TOO_LARGE);
        }
        let mut readers = Vec::new();
        for &column in wanted {
            let leaf = self.leaves[column];
            let description = schema.column(leaf);
            let signed = match description.logical_type_ref() {
                Some(LogicalType::Integer(integer)) => integer.is_signed,
                _ => is_signed(description.converted_type()).unwrap_or(true),
            };
            let reader = guarded(|| {
                let pages = SerializedPageReader::new(file.clone(), group.column(leaf), rows, None)?;
                Ok(get_column_reader(description, Box::new(pages)))
            })?;
            readers.push(Values::new(reader, signed));
        }
        show.all(rows, cells, |cells, rows| {
            readers.iter_mut().zip(cells).try_for_each(|(values, cells)| values.fill(rows, cells))
        })
    }
}

/// Calls the library, which panics on some broken files where it should fail. Only what is dropped
/// afterwards is touched by `work`, and nobody else's code runs inside it.
fn guarded<T>(work: impl FnOnce() -> parquet::errors::Result<T>) -> std::result::Result<T, &'static str> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| NO_PARQUET)?.map_err(|_| NO_PARQUET)
}

/// A column's reader, with room for the values of a piece.
enum Values {
    Bool(Typed<BoolType>),
    Int32(Typed<Int32Type>),
    Unsigned32(Typed<Int32Type>),
    Int64(Typed<Int64Type>),
    Unsigned64(Typed<Int64Type>),
    Float(Typed<FloatType>),
    Double(Typed<DoubleType>),
    Text(Typed<ByteArrayType>),
    Unsupported,
}

impl Values {
    fn new(reader: ColumnReader, signed: bool) -> Self {
        match reader {
            ColumnReader::BoolColumnReader(reader) => Self::Bool(Typed::new(reader)),
            ColumnReader::Int32ColumnReader(reader) if signed => Self::Int32(Typed::new(reader)),
            ColumnReader::Int32ColumnReader(reader) => Self::Unsigned32(Typed::new(reader)),
            ColumnReader::Int64ColumnReader(reader) if signed => Self::Int64(Typed::new(reader)),
            ColumnReader::Int64ColumnReader(reader) => Self::Unsigned64(Typed::new(reader)),
            ColumnReader::FloatColumnReader(reader) => Self::Float(Typed::new(reader)),
            ColumnReader::DoubleColumnReader(reader) => Self::Double(Typed::new(reader)),
            ColumnReader::ByteArrayColumnReader(reader) => Self::Text(Typed::new(reader)),
            _ => Self::Unsupported,
        }
    }

    /// Reads the next rows.
    fn fill(&mut self, rows: usize, cells: &mut Cells) -> Outcome {
        match self {
            Self::Bool(values) => values.numbers(rows, cells, |&value| f64::from(u8::from(value))),
            Self::Int32(values) => values.numbers(rows, cells, |&value| f64::from(value)),
            Self::Unsigned32(values) => values.numbers(rows, cells, |&value| f64::from(value as u32)),
            Self::Int64(values) => values.numbers(rows, cells, |&value| value as f64),
            Self::Unsigned64(values) => values.numbers(rows, cells, |&value| value as u64 as f64),
            Self::Float(values) => values.numbers(rows, cells, |&value| f64::from(value)),
            Self::Double(values) => values.numbers(rows, cells, |&value| value),
            Self::Text(values) => {
                values.next(rows)?;
                let mut texts = values.values.iter().map(ByteArray::data);
                if values.values.len() == rows {
                    texts.for_each(|text| cells.push_text(Some(text)));
                } else {
                    for &level in &values.levels {
                        cells.push_text(if level > 0 { texts.next() } else { None });
                    }
                }
                Ok(())
            }
            Self::Unsupported => Err(NO_PARQUET),
        }
    }
}

struct Typed<T: DataType> {
    reader: ColumnReaderImpl<T>,
    /// Those that are not null.
    values: Vec<T::T>,
    /// Whether each is: 1, or 0 where it is null. Empty where the column has no nulls.
    levels: Vec<i16>,
}

impl<T: DataType> Typed<T> {
    fn new(reader: ColumnReaderImpl<T>) -> Self {
        Self { reader, values: Vec::new(), levels: Vec::new() }
    }

    /// Reads exactly so many rows.
    fn next(&mut self, rows: usize) -> Outcome {
        self.values.clear();
        self.levels.clear();
        let Self { reader, values, levels } = self;
        let (records, present, _) = guarded(|| reader.read_records(rows, Some(levels), None, values))?;
        let marked = self.levels.iter().filter(|&&level| level > 0).count();
        let whole = match self.levels.is_empty() {
            true => present == rows,
            false => self.levels.len() == rows && present == marked,
        };
        if records != rows || self.values.len() != present || !whole {
            return Err(CHANGED);
        }
        Ok(())
    }

    fn numbers(&mut self, rows: usize, cells: &mut Cells, number: impl Fn(&T::T) -> f64) -> Outcome {
        self.next(rows)?;
        let Some(numbers) = cells.numbers() else { return Ok(()) };
        if self.values.len() == rows {
            numbers.extend(self.values.iter().map(number));
        } else {
            let mut values = self.values.iter().map(number);
            let nullable = self.levels.iter();
            numbers.extend(
                nullable.map(|&level| if level > 0 { values.next() } else { None }.unwrap_or(f64::NAN)),
            );
        }
        Ok(())
    }
}
