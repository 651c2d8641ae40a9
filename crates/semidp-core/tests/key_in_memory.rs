//! What a run leaves of its key in the memory of its process. One test, as a process has one memory.

#![cfg(target_os = "linux")]

use semidp_core::*;
use std::fs::{self, File};
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// A needle that is not in memory as such: its bytes are inverted until they are compared.
struct Inverted(Vec<u8>);

impl Inverted {
    fn is_at(&self, bytes: &[u8]) -> bool {
        bytes.len() >= self.0.len() && self.0.iter().zip(bytes).all(|(inverted, byte)| *inverted == !byte)
    }
}

/// How often each needle occurs in what the process can write to. None if the process may not read itself.
fn occurrences(needles: &[Inverted]) -> Option<Vec<usize>> {
    const OVERLAP: usize = 64;
    let memory = File::open("/proc/self/mem").ok()?;
    let mut buffer = vec![0u8; 1 << 20];
    let own = buffer.as_ptr().addr()..buffer.as_ptr().addr() + buffer.len();
    let mut found = vec![0; needles.len()];
    for line in fs::read_to_string("/proc/self/maps").ok()?.lines() {
        let (range, rest) = line.split_once(' ')?;
        if !rest.starts_with("rw") {
            continue;
        }
        let (start, end) = range.split_once('-')?;
        let (mut at, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
        while at < end {
            // What was read is in the buffer, and would be found there again.
            if own.contains(&at) {
                at = own.end;
                continue;
            }
            let mut length = buffer.len().min(end - at);
            if at < own.start {
                length = length.min(own.start - at);
            }
            let Ok(length) = memory.read_at(&mut buffer[..length], at as u64) else { break };
            let bytes = &buffer[..length];
            // A hit in the overlap is counted by the next piece.
            let is_last = at + length >= end || at + length == own.start;
            let starts = if is_last { length } else { length - OVERLAP };
            for (needle, found) in needles.iter().zip(&mut found) {
                let first = !needle.0[0];
                *found += (0..starts).filter(|&i| bytes[i] == first && needle.is_at(&bytes[i..])).count();
            }
            at += starts.max(1);
        }
    }
    Some(found)
}

/// The key as raw bytes, and its halves, as words of SIMD registers hold them; and its digits.
fn needles(path: &Path) -> Vec<Inverted> {
    let mut text = vec![0u8; 1024];
    let length = File::open(path).unwrap().read_at(&mut text, 0).unwrap();
    let start = text[..length - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    let digits: Vec<u8> = text[start..start + 64].iter().map(|byte| !byte).collect();
    let digit = |inverted: u8| match !inverted {
        digit @ b'0'..=b'9' => digit - b'0',
        digit => digit - b'a' + 10,
    };
    let raw: Vec<u8> = digits.chunks(2).map(|pair| !(digit(pair[0]) << 4 | digit(pair[1]))).collect();
    text.fill(0);
    black_box(&mut text);
    let halves = [raw[..16].to_vec(), raw[16..].to_vec()];
    [raw, digits].into_iter().chain(halves).map(Inverted).collect()
}

fn run(key: KeyFile, threads: usize, sampling: Sampling) {
    let values: Vec<f32> = (0..60_000).map(|x| (x * 37 % 101) as f32 / 101.0).collect();
    let rows = Private::new(DenseTable::with_blocks(values, 3, 500).unwrap());
    let session = Session::new(rows, Adjacency::ReplaceOne).unwrap().with_key_file(Arc::new(key));
    let session = session.with_threads(threads);
    let noise = Gaussian::new(NoiseMultiplier::new(2.0).unwrap());
    let program = Program::new(noise, sampling, Steps::new(20).unwrap());
    let prepared = session.prepare(program, Delta::new(1e-6).unwrap()).unwrap();
    prepared.seal("first").unwrap();
    let (run, tickets) = prepared.begin().unwrap();
    let query = ClippedSum::l2(Public(vec![0.5; 3]), 1.0).unwrap();
    for (done, ticket) in (1..).zip(tickets) {
        black_box(run.noise(run.sum(&query, ticket).unwrap()).unwrap().into_inner());
        run.seal(done, "later").unwrap();
    }
}

/// When a run has ended, no copy of its key is left: neither where it was moved, nor on a stack, nor as digits.
#[test]
fn a_run_that_ended_leaves_no_copy_of_its_key() {
    let poisson = Sampling::Poisson { rate: SampleRate::new(0.3).unwrap() };
    let fixed = Sampling::FixedSize { size: 700 };
    for (threads, sampling, is_resumed) in
        [(1, poisson, false), (2, poisson, false), (1, fixed, false), (2, Sampling::Everyone, true)]
    {
        let path = std::env::temp_dir().join(format!("semidp-key-in-memory-{}", std::process::id()));
        let _ = fs::remove_file(&path);
        let mut key = KeyFile::create(&path, Randomness::OperatingSystem).unwrap();
        let needles = needles(&path);
        // The search finds what is there.
        if occurrences(&needles).is_some_and(|found| found[0] == 0) {
            panic!("the key of a run that goes on is not found");
        }
        if is_resumed {
            // What is written is read, too.
            drop(key);
            key = KeyFile::open(&path).unwrap();
            drop(key);
        } else {
            run(key, threads, sampling);
        }
        fs::remove_file(&path).unwrap();
        // A process that may not be read by others cannot read itself unless it is root's.
        let Some(found) = occurrences(&needles) else { continue };
        assert_eq!(found, [0; 4], "{sampling:?}, {threads} threads: raw, digits, first half, second half");
    }
}
