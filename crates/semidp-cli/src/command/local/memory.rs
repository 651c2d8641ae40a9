//! What the people of a data file have reported so far: the reports themselves, by round.
//!
//! A file of lines: its format, and for every time that people were asked an entry, its reports, and an end. Lines are added at the end
//! and never changed. The end of an entry carries an HMAC of everything before it, and the key file beside the memory says how many
//! entries there are and where the last one ends: so edits, removals and truncation are noticed, and nothing is reported then.
//!
//! Order of writes: the key, the entry and its reports, their end, the new head in the key file; then reports may be released. So what
//! stands behind the last head and is not whole was never released, and the next run drops it; a whole entry there carries its
//! seal, and counts. The head lists the entries whose reports were not delivered yet: a run that was to ask people once more delivers
//! those first. An older copy of both files put back together is not noticed.
//!
//! While a run has the file it is locked, so that two runs cannot both be the first.

use super::seal::{Head, Key, NO_SEAL, Running};
use crate::failure::Failure;
use crate::output::Output;
use semidp::files::{cannot_write, hard_links, is_same};
use semidp::local::Header;
use semidp_accounting::{Arithmetic, RandomSource};
use semidp_core::files::{self, Draft};
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const FORMAT: &str = "{\"format\":\"semidp-memory/2\"}\n";
/// Without seals: of versions before this one. As long as the other.
const UNSEALED: &str = "{\"format\":\"semidp-memory/1\"}\n";
const END: &[u8] = b"{\"end\":";
/// Far more than a report of a million numbers.
const MAX_LINE: u64 = 256 << 20;
/// In errors.
const OPTION: &str = "memory";

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
    /// Where it ends, and its seal.
    head: (u64, String),
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
    /// `None` as long as nothing was noted.
    key: Option<Key>,
    /// Whether the entry that is being noted is whole and sealed: then it stays, whatever fails.
    is_noted: bool,
    /// Whether the key file may know of it.
    is_head_begun: bool,
    /// Entries whose reports were not delivered yet, counted from 0.
    waiting: Vec<u64>,
    /// Of everything up to the end.
    running: Option<Running>,
    /// Whether a run ended before it could release what it had begun to note.
    pub is_cut: bool,
}

impl Memory {
    /// Where the reports of these data are remembered unless `--memory` says otherwise: beside the data. For a symbolic link that is
    /// beside the file that it leads to, so that people are remembered under every name of it, but where a memory lies beside the link
    /// already.
    pub fn default_path(data: &Path) -> PathBuf {
        let places = default_places(data);
        let found = places.iter().find(|place| is_there(place));
        found.or(places.last()).cloned().unwrap_or_default()
    }

    /// Refuses a memory that would let these people report a second time as if it were the first, as far as that can be known: where
    /// another memory lies beside the data, and where the data have hard links, beside one of which another memory may lie.
    pub fn refuse_second(data: &Path, named: Option<&Path>, path: &Path) -> Result<(), Failure> {
        let places = default_places(data);
        let found: Vec<&PathBuf> = places.iter().filter(|place| is_there(place)).collect();
        if let Some(other) = found.iter().find(|other| !is_same(other, path)) {
            return Err(Failure::input(
                format!(
                    "--{OPTION}: what these people reported is remembered in {}, and {} is another memory",
                    other.display(),
                    path.display()
                ),
                format!(
                    "--memory {} uses it; or move it and its key: to another place that --memory names, or away if it is of other \
                     people",
                    other.display()
                ),
            ));
        }
        let links = hard_links(data);
        if named.is_none() && found.is_empty() && links > 1 {
            return Err(Failure::input(
                format!(
                    "--data: {} has {links} hard links, and what its rows reported may be remembered beside another one",
                    data.display()
                ),
                "--memory FILE names the memory, the same one under every name of the data; it lies beside the name that reported first",
            ));
        }
        Ok(())
    }

    /// Opens the file, or makes it, and waits for other runs that have it. A memory without seals is refused, or sealed as it is if it is
    /// to be adopted.
    pub fn open(path: &Path, is_adopted: bool, output: &Output) -> Result<Self, Failure> {
        let failed = |error: io::Error| {
            Failure::input(
                format!("--{OPTION}: cannot use {}: {error}", path.display()),
                "what people reported is remembered beside the data; --memory FILE names another place",
            )
        };
        let key = Key::read(path)?;
        let is_missing =
            fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        if is_missing && key.as_ref().is_some_and(|key| key.head().entries > 0) {
            return Err(without(path, "is missing, but"));
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = files::open_own(path, &mut options).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                output.note(&format!("waiting for another run that uses {}", path.display()));
                file.lock().map_err(failed)?;
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        if !files::is_at(&file, path) {
            // It was adopted, or removed, before it was locked.
            drop(file);
            return Self::open(path, is_adopted, output);
        }
        // As it is now that nobody else writes it.
        let key = Key::read(path)?;
        let running = key.as_ref().map(Key::running);
        let mut memory = Self {
            path: path.into(),
            file,
            entries: Vec::new(),
            end: 0,
            key,
            is_noted: false,
            is_head_begun: false,
            waiting: Vec::new(),
            running,
            is_cut: false,
        };
        let is_sealed = memory.read().map_err(|reason| memory.damaged(&reason))?;
        match (is_sealed, is_adopted) {
            (true, _) => memory.check_head().map(|()| memory),
            (false, true) => {
                memory.adopt()?;
                drop(memory);
                Self::open(path, false, output)
            }
            (false, false) => Err(Failure::input(
                format!(
                    "--{OPTION}: {} is of an older version, without seals: whether it is whole cannot be known",
                    path.display()
                ),
                "if nobody changed it since, --adopt-memory seals it as it is",
            )),
        }
    }

    /// Compares what was found with the head in the key file.
    fn check_head(&mut self) -> Result<(), Failure> {
        let Some(key) = &self.key else {
            return match self.entries.is_empty() && !self.is_cut {
                true => Ok(()),
                false => Err(Failure::input(
                    format!(
                        "--{OPTION}: {} is there, but its key {} is missing",
                        self.path.display(),
                        Key::path(&self.path).display()
                    ),
                    "nothing is reported until what was reported before is known: restore the key file, or both files",
                )),
            };
        };
        let head = key.head().clone();
        let last = head.entries.checked_sub(1).map(|last| self.entries.get(last as usize));
        let is_whole = match last {
            None => head.length == 0,
            Some(Some(entry)) => entry.head == (head.length, head.seal.clone()),
            Some(None) => false,
        };
        if !is_whole {
            return match self.file.metadata().is_ok_and(|found| found.len() == 0) {
                true => Err(without(&self.path, "is empty, but")),
                false => Err(self.damaged(DAMAGED)),
            };
        }
        self.waiting.clone_from(&head.waiting);
        // Whole and sealed, but its run was killed before the head: it counts from now on, and was not delivered.
        let found = self.entries.len() as u64;
        if found > head.entries {
            self.waiting.extend(head.entries..found);
            let head = self.head();
            let path = self.path.clone();
            let key = self.key.as_mut().ok_or_else(|| self::lost(&path))?;
            key.advance(&path, head).map_err(|error| cannot_write(OPTION, &Key::path(&path), error))?;
        }
        Ok(())
    }

    /// Of the entries.
    fn head(&self) -> Head {
        let (length, seal) = self.entries.last().map_or((0, NO_SEAL.into()), |entry| entry.head.clone());
        Head { entries: self.entries.len() as u64, length, seal, waiting: self.waiting.clone() }
    }

    /// Seals a memory of an older version, whole as it is.
    fn adopt(&mut self) -> Result<(), Failure> {
        if self.is_cut {
            return Err(
                self.damaged("its last entry is not whole, and whether that was released cannot be known")
            );
        }
        let path = self.path.clone();
        let failed = |error| Failure::from(cannot_write(OPTION, &path, error));
        let draft = Draft::beside(&path, 0o600).map_err(failed)?;
        let mut key = Key::new(&path)?;
        let mut writer =
            Sealing { to: BufWriter::with_capacity(1 << 20, draft), running: key.running(), written: 0 };
        let mut head = Head::empty();
        writer.write_all(FORMAT.as_bytes()).map_err(failed)?;
        for entry in &self.entries {
            let question = Question {
                header: &entry.header,
                columns: &entry.columns,
                arithmetic: entry.arithmetic,
                random_source: entry.random_source,
            };
            writeln!(writer, "{}", question.line()).map_err(failed)?;
            self.copy(entry, &mut writer).map_err(failed)?;
            let seal = writer.running.seal(entry.reports, entry.bytes);
            writer.write_all(end_line(entry.reports, entry.bytes, &seal).as_bytes()).map_err(failed)?;
            head = Head { entries: head.entries + 1, length: writer.written, seal, ..Head::empty() };
        }
        // A key beside an unsealed memory is of an adoption that was interrupted: it is begun anew.
        key.advance(&path, head).map_err(failed)?;
        let draft = writer.to.into_inner().map_err(io::IntoInnerError::into_error).map_err(failed)?;
        draft.publish().map_err(failed)
    }

    /// Every time that people were asked, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The last time in a round.
    pub fn last_of(&self, round: &str) -> Option<&Entry> {
        self.entries.iter().rev().find(|entry| entry.header.round == round)
    }

    /// Whether the last reports of a round were drawn and not delivered.
    pub fn is_waiting(&self, round: &str) -> bool {
        let last = self.entries.iter().rposition(|entry| entry.header.round == round);
        last.is_some_and(|last| self.waiting.contains(&(last as u64)))
    }

    /// Notes that the last reports of a round were delivered.
    pub fn delivered(&mut self, round: &str) -> Result<(), Failure> {
        if !self.is_waiting(round) {
            return Ok(());
        }
        let entries = &self.entries;
        let is_of =
            |entry: &u64| entries.get(*entry as usize).is_some_and(|entry| entry.header.round == round);
        self.waiting.retain(|entry| !is_of(entry));
        let (head, path) = (self.head(), self.path.clone());
        let key = self.key.as_mut().ok_or_else(|| lost(&path))?;
        Ok(key.advance(&path, head).map_err(|error| cannot_write(OPTION, &Key::path(&path), error))?)
    }

    /// Whether [`Memory::record`] noted the reports, even if it failed afterwards.
    pub fn is_noted(&self) -> bool {
        self.is_noted
    }

    /// Notes reports, which `make` writes and counts. When this returns they are on the disk, and may be released.
    pub fn record(
        &mut self,
        question: Question<'_>,
        make: impl FnOnce(&mut dyn Write) -> Result<u64, Failure>,
    ) -> Result<&Entry, Failure> {
        let (path, before) = (self.path.clone(), self.end);
        let failed = |error| Failure::from(cannot_write(OPTION, &path, error));
        let written = self.append(question, make, &failed);
        if written.is_err() && !self.is_head_begun {
            // Nothing was released. Should this fail too, the next run drops what is not whole, and counts what is.
            self.is_noted &= self.file.set_len(before).is_err();
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
        let key = match &mut self.key {
            Some(key) => key,
            none => {
                let mut key = Key::new(&self.path)?;
                key.advance(&self.path, Head::empty()).map_err(failed)?;
                self.running = Some(key.running());
                none.insert(key)
            }
        };
        let running = self.running.clone().ok_or_else(|| lost(&self.path))?;
        let file = &mut self.file;
        file.set_len(self.end).and_then(|()| file.seek(SeekFrom::Start(self.end))).map_err(failed)?;
        let (mut running, start, reports, written) = {
            let to = BufWriter::with_capacity(1 << 20, &mut *file);
            let mut writer = Sealing { to, running, written: self.end };
            if self.end == 0 {
                writer.write_all(FORMAT.as_bytes()).map_err(failed)?;
            }
            writeln!(writer, "{}", question.line()).map_err(failed)?;
            let start = writer.written;
            let reports = make(&mut writer)?;
            writer.flush().map_err(failed)?;
            (writer.running.clone(), start, reports, writer.written)
        };
        let bytes = written - start;
        // First the reports, then their end: an end never stands behind reports that are not there.
        file.sync_all().map_err(failed)?;
        let seal = running.seal(reports, bytes);
        let line = end_line(reports, bytes, &seal);
        file.write_all(line.as_bytes()).map_err(failed)?;
        self.is_noted = true;
        file.sync_all().and_then(|()| files::sync_folder(&self.path)).map_err(failed)?;
        running.update(line.as_bytes());
        let end = written + line.len() as u64;
        // The new head may reach the disk even if writing it fails: from here on the entry counts.
        self.is_head_begun = true;
        let number = self.entries.len() as u64;
        self.waiting.push(number);
        let waiting = self.waiting.clone();
        let head = Head { entries: number + 1, length: end, seal: seal.clone(), waiting };
        key.advance(&self.path, head).map_err(failed)?;
        self.running = Some(running);
        let Question { header, columns, arithmetic, random_source } = question;
        let (header, columns) = (header.clone(), columns.to_vec());
        let head = (end, seal);
        Ok((end, Entry { header, columns, arithmetic, random_source, reports, start, bytes, head }))
    }

    /// Writes the reports of an entry as they were noted.
    pub fn copy(&self, entry: &Entry, to: &mut dyn Write) -> io::Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(entry.start))?;
        let copied = io::copy(&mut BufReader::with_capacity(1 << 20, file).take(entry.bytes), to)?;
        if copied == entry.bytes { Ok(()) } else { Err(io::Error::other("what was remembered is gone")) }
    }

    /// Finds the entries; whether they are sealed.
    fn read(&mut self) -> Result<bool, String> {
        let failed = |error: io::Error| error.to_string();
        let mut first = Vec::new();
        let mut reader = BufReader::with_capacity(1 << 20, &self.file);
        reader.by_ref().take(FORMAT.len() as u64).read_to_end(&mut first).map_err(failed)?;
        let is_sealed = first != UNSEALED.as_bytes();
        if is_sealed && first != FORMAT.as_bytes() {
            // Not even the first line was finished.
            self.is_cut = !first.is_empty();
            return match FORMAT.as_bytes().starts_with(&first) {
                true => Ok(true),
                false => Err("it is no memory of reports, or one of another version".into()),
            };
        }
        let mut running = match (&self.running, is_sealed) {
            (Some(running), true) => Some(running.clone()),
            // Without its key nothing of it counts.
            (None, true) => {
                self.is_cut = true;
                return Ok(true);
            }
            (_, false) => None,
        };
        let update = |running: &mut Option<Running>, bytes: &[u8]| {
            running.iter_mut().for_each(|running| running.update(bytes));
        };
        update(&mut running, &first);
        let mut at = first.len() as u64;
        (self.end, self.is_cut) = (0, true);
        let mut line = Vec::new();
        // The entry that is being read, and how many reports it has.
        let mut open: Option<(Entry, u64)> = None;
        loop {
            line.clear();
            let length = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line).map_err(failed)? as u64;
            if line.last() != Some(&b'\n') {
                if length == MAX_LINE {
                    return Err(DAMAGED.into());
                }
                self.is_cut = length > 0 || open.is_some() || self.entries.is_empty();
                return Ok(is_sealed);
            }
            at += length;
            match &mut open {
                None => open = Some((begun(&line, at)?, 0)),
                Some((_, count)) if !line.starts_with(END) => *count += 1,
                Some((entry, count)) => {
                    entry.bytes = at - length - entry.start;
                    entry.reports = *count;
                    let seal = running.as_ref().map(|running| running.seal(entry.reports, entry.bytes));
                    let expected = match &seal {
                        Some(seal) => end_line(entry.reports, entry.bytes, seal),
                        None => format!(
                            "{}\n",
                            json!({ "end": { "reports": entry.reports, "bytes": entry.bytes } })
                        ),
                    };
                    if line != expected.as_bytes() {
                        return Err(DAMAGED.into());
                    }
                    entry.head = (at, seal.unwrap_or_default());
                    self.end = at;
                    self.entries.extend(open.take().map(|(entry, _)| entry));
                }
            }
            update(&mut running, &line);
            if open.is_none() {
                self.running.clone_from(&running);
            }
        }
    }

    fn damaged(&self, reason: &str) -> Failure {
        Failure::input(
            format!(
                "--{OPTION}: {} cannot be used with its key {}: {reason}",
                self.path.display(),
                Key::path(&self.path).display()
            ),
            "nothing is reported until what was reported before is known: restore both files, or take --memory FILE for people \
             who never reported",
        )
    }
}

/// Where a memory of these data lies by default: beside the name, and beside the file if the name is a symbolic link.
fn default_places(data: &Path) -> Vec<PathBuf> {
    let beside = |data: &Path| {
        let mut name = data.file_name().unwrap_or_default().to_os_string();
        name.push(".memory");
        data.with_file_name(name)
    };
    let real = fs::canonicalize(data).ok().filter(|_| data.is_symlink());
    [Some(beside(data)), real.map(|real| beside(&real))].into_iter().flatten().collect()
}

/// Whether a memory, or its key, is at this place.
fn is_there(memory: &Path) -> bool {
    [memory, &Key::path(memory)].iter().any(|path| fs::symlink_metadata(path).is_ok())
}

/// The key says that people reported, and the memory does not.
fn without(path: &Path, what: &str) -> Failure {
    Failure::input(
        format!(
            "--{OPTION}: {} {what} its key {} says that people reported",
            path.display(),
            Key::path(path).display()
        ),
        "nothing is reported until what was reported before is known: restore the memory, or both files",
    )
}

fn lost(path: &Path) -> Failure {
    Failure::other(format!("internal error: the key of {} is not there; please report this", path.display()))
}

const DAMAGED: &str = "what it remembers is damaged, or was shortened";

/// Digests what it passes on.
struct Sealing<W> {
    to: W,
    running: Running,
    /// Bytes in the file.
    written: u64,
}

impl<W: Write> Write for Sealing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.running.update(&bytes[..written]);
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

impl Question<'_> {
    /// The line that an entry begins with.
    fn line(&self) -> Value {
        let Self { header, columns, arithmetic, random_source } = self;
        json!({ "entry": header, "columns": columns, "arithmetic": arithmetic, "random_source": random_source })
    }
}

fn end_line(reports: u64, bytes: u64, seal: &str) -> String {
    format!("{}\n", json!({ "end": { "reports": reports, "bytes": bytes, "seal": seal } }))
}

/// Reads that line; its reports start at `start`.
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
        head: (0, String::new()),
    })
}
