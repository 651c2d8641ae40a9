//! Feeds arbitrary lines to the reader of reports, and what it accepts to an aggregate. A report that was read is written as the
//! same report, and a mean of accepted reports is finite.
#![no_main]

use libfuzzer_sys::fuzz_target;
use semidp::local::{Aggregate, LongestLine, ReportLine};

/// Vectors of more numbers are valid, but slow.
const MAX_DIMENSION: usize = 1000;

fuzz_target!(|bytes: &[u8]| {
    let mut all: Option<Aggregate> = None;
    for line in bytes.split(|&byte| byte == b'\n') {
        let _ = LongestLine::by_beginning(line);
        let Ok(report) = ReportLine::read(line) else { continue };
        let mut again = Vec::new();
        ReportLine::write(&report.report(), &mut again).unwrap();
        assert_eq!(ReportLine::read(&again).as_ref(), Ok(&report));
        if report.header.dimension > MAX_DIMENSION {
            continue;
        }
        if all.is_none() {
            all = Aggregate::new(report.header.clone()).ok();
        }
        if let Some(all) = &mut all {
            let before = all.len();
            let added = all.add(&report.report()).is_ok();
            assert_eq!(all.len(), before + u64::from(added));
        }
    }
    if let Some(mean) = all.as_ref().and_then(Aggregate::mean) {
        assert!(mean.iter().all(|x| x.is_finite()));
    }
});
