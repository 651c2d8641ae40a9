//! What the people of a data file have reported so far: the reports themselves, by round.
//!
//! A file of lines: its format, and for every time that people were asked an entry, its reports, and an end. Lines are added at the end
//! and never changed. An entry without its end was never released, because reports leave this file only after their end is on the
//! disk; the next run drops it. While a run has the file it is locked, so that two runs cannot both be the first.

use crate::failure::Failure;
use crate::file::{cannot_write, sync_folder};
use crate::output::Output;
use semidp::local::Header;
use semidp_accounting::{Arithmetic, RandomSource};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const FORMAT: &str = "{\"format\":\"semidp-memory/1\"}\n";
const END: &[u8] = b"{\"end\":";
/// In errors.
const OPTION: &str = "--memory";

/// Once that people were asked.
pub struct Entry {
    pub header: Header,
    pub arithmetic: Arithmetic,
    pub random_source: RandomSource,
    /// What the numbers of a vector were, by name.
    pub columns: Vec<String>,
    /// How many people.
    pub reports: u64,
    start: u64,
    bytes: u64,
}

/// What people are asked.
#[derive(Clone, Copy)]
pub struct Question<'q> {
    pub header: &'q Header,
    pub columns: &'q [String],
    pub arithmetic: Arithmetic,
    pub random_source: RandomSource,
}

/// The file, locked.
pub struct Memory {
    path: PathBuf,
    file: File,
    entries: Vec<Entry>,
    /// Where the last whole entry ends.
    end: u64,
    /// Whether a run ended before it could release what it had begun to note.
    pub is_cut: bool,
}

impl Memory {
    /// Beside the data.
    pub fn default_path(data: &Path) -> PathBuf {
        let mut name = data.file_name().unwrap_or_default().to_os_string();
        name.push(".memory");
        data.with_file_name(name)
    }

    /// Opens the file, or makes it, and waits for other runs that have it.
    pub fn open(path: &Path, output: &Output) -> Result<Self, Failure> {
        let failed = |error: io::Error| {
            Failure::input(
                format!("{OPTION}: cannot use {}: {error}", path.display()),
                "what people reported is remembered beside the data; --memory FILE names another place",
            )
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(failed(io::Error::other("it is not a regular file")));
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                output.note(&format!("waiting for another run that uses {}", path.display()));
                file.lock().map_err(failed)?;
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let mut memory = Self { path: path.into(), file, entries: Vec::new(), end: 0, is_cut: false };
        memory.read().map_err(|reason| memory.damaged(&reason))?;
        Ok(memory)
    }

    /// Every time that people were asked, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The last time in a round.
    pub fn last_of(&self, round: &str) -> Option<&Entry> {
        self.entries.iter().rev().find(|entry| entry.header.round == round)
    }

    /// Notes reports, which `make` writes and counts. When this returns they are on the disk, and may be released.
    pub fn record(
        &mut self,
        question: Question<'_>,
        make: impl FnOnce(&mut dyn Write) -> Result<u64, Failure>,
    ) -> Result<&Entry, Failure> {
        let (path, before) = (self.path.clone(), self.end);
        let failed = |error| cannot_write(OPTION, &path, error);
        let written = self.append(question, make, &failed);
        if written.is_err() {
            // Nothing was released. Should this fail too, the next run does it.
            let _ = self.file.set_len(before);
        }
        let entry = written?;
        self.end = entry.0;
        self.entries.push(entry.1);
        self.entries.last().ok_or_else(|| Failure::other("internal error: nothing was noted"))
    }

    fn append(
        &mut self,
        question: Question<'_>,
        make: impl FnOnce(&mut dyn Write) -> Result<u64, Failure>,
        failed: &dyn Fn(io::Error) -> Failure,
    ) -> Result<(u64, Entry), Failure> {
        let file = &mut self.file;
        file.set_len(self.end).and_then(|()| file.seek(SeekFrom::Start(self.end))).map_err(failed)?;
        let mut writer = BufWriter::with_capacity(1 << 20, &mut *file);
        if self.end == 0 {
            writer.write_all(FORMAT.as_bytes()).map_err(failed)?;
        }
        let Question { header, columns, arithmetic, random_source } = question;
        let entry = json!({ "entry": header, "columns": columns, "arithmetic": arithmetic, "random_source": random_source });
        writeln!(writer, "{entry}").map_err(failed)?;
        let start = writer.stream_position().map_err(failed)?;
        let reports = make(&mut writer)?;
        let bytes = writer.stream_position().map_err(failed)? - start;
        writer.flush().map_err(failed)?;
        drop(writer);
        // First the reports, then their end: an end never stands behind reports that are not there.
        file.sync_all().map_err(failed)?;
        writeln!(file, "{}", json!({ "end": { "reports": reports, "bytes": bytes } })).map_err(failed)?;
        file.sync_all().and_then(|()| sync_folder(&self.path)).map_err(failed)?;
        let end = file.stream_position().map_err(failed)?;
        let (header, columns) = (header.clone(), columns.to_vec());
        Ok((end, Entry { header, columns, arithmetic, random_source, reports, start, bytes }))
    }

    /// Writes the reports of an entry as they were noted.
    pub fn copy(&self, entry: &Entry, to: &mut dyn Write) -> io::Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(entry.start))?;
        let copied = io::copy(&mut BufReader::with_capacity(1 << 20, file).take(entry.bytes), to)?;
        if copied == entry.bytes { Ok(()) } else { Err(io::Error::other("what was remembered is gone")) }
    }

    /// Finds the entries.
    fn read(&mut self) -> Result<(), String> {
        let failed = |error: io::Error| error.to_string();
        let mut first = Vec::new();
        let mut reader = BufReader::with_capacity(1 << 20, &self.file);
        reader.by_ref().take(FORMAT.len() as u64).read_to_end(&mut first).map_err(failed)?;
        if first != FORMAT.as_bytes() {
            // Not even the first line was finished.
            self.is_cut = !first.is_empty();
            return match FORMAT.as_bytes().starts_with(&first) {
                true => Ok(()),
                false => Err("it is no memory of reports, or one of another version".into()),
            };
        }
        let mut at = first.len() as u64;
        (self.end, self.is_cut) = (at, false);
        let mut line = Vec::new();
        // The entry that is being read, and how many reports it has.
        let mut open: Option<(Entry, u64)> = None;
        loop {
            line.clear();
            let length = reader.read_until(b'\n', &mut line).map_err(failed)? as u64;
            if line.last() != Some(&b'\n') {
                self.is_cut = length > 0 || open.is_some();
                return Ok(());
            }
            at += length;
            match &mut open {
                None => open = Some((begun(&line, at)?, 0)),
                Some((_, count)) if !line.starts_with(END) => *count += 1,
                Some((entry, count)) => {
                    entry.bytes = at - length - entry.start;
                    entry.reports = *count;
                    let end: Value = serde_json::from_slice(&line).map_err(|_| DAMAGED)?;
                    let is_whole = end["end"] == json!({ "reports": entry.reports, "bytes": entry.bytes });
                    if !is_whole {
                        return Err(DAMAGED.into());
                    }
                    self.end = at;
                    self.entries.extend(open.take().map(|(entry, _)| entry));
                }
            }
        }
    }

    fn damaged(&self, reason: &str) -> Failure {
        Failure::input(
            format!("{OPTION}: {} cannot be used: {reason}", self.path.display()),
            "nothing is reported until what was reported before is known: restore the file, or take --memory FILE for people \
             who never reported",
        )
    }
}

const DAMAGED: &str = "what it remembers is damaged";

/// The line that an entry begins with; its reports start at `start`.
fn begun(line: &[u8], start: u64) -> Result<Entry, String> {
    let mut value: Value = serde_json::from_slice(line).map_err(|_| DAMAGED)?;
    let mut field = |name: &str| value.get_mut(name).map(Value::take).ok_or(DAMAGED);
    let (header, columns) = (field("entry")?, field("columns")?);
    let (arithmetic, source) = (field("arithmetic")?, field("random_source")?);
    Ok(Entry {
        header: serde_json::from_value(header).map_err(|_| DAMAGED)?,
        columns: serde_json::from_value(columns).map_err(|_| DAMAGED)?,
        arithmetic: serde_json::from_value(arithmetic).map_err(|_| DAMAGED)?,
        random_source: serde_json::from_value(source).map_err(|_| DAMAGED)?,
        reports: 0,
        start,
        bytes: 0,
    })
}
