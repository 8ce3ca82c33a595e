//! The effect of late reads on chunk times.

use super::*;

/// Chunks 2, 3 and 4 of 5 came from one read, 7 ms after the last of them.
fn overslept(number: u64) -> RequestRecord {
    let mut record = request(number, QUIET);
    let at = record.chunks[3].at;
    for place in 1..4 {
        record.chunks[place].at = at;
        record.chunks[place].lag = 7_000_000;
        record.chunks[place].merged = place > 1;
    }
    record
}

#[test]
fn late_reads_falsify_gaps() {
    // Four gaps of 10 ms each: observed as 30, 0, 0, 10. A pace of 10 ms, of which 1 ms in 10 is
    // undetected: 11.111 each in the two gaps within, 22.222 in the one before, in one request of
    // 40.
    let mut events = requests(39, QUIET);
    events.push(finished(overslept(39)));
    let certificate = judge(events);
    let bound = certificate.bound(Metric::Tbc).unwrap();
    let expected = (2.0 * 11_111.111 + 22_222.222) / 160.0 + 2.0;
    assert!((bound.mean_error * 1e6 - expected).abs() < 0.001, "{bound:?}");
    // 277 + 2 µs of 10 ms.
    let finding = about(&certificate, Metric::Tbc);
    assert_eq!(finding.verdict, Verdict::Degraded);
    assert!(
        finding
            .what
            .ends_with("due to reads so late that arrival times were lost"),
        "{}",
        finding.what
    );
    assert_eq!(about(&certificate, Metric::Ttfc).verdict, Verdict::Valid);
    // Two of 200 are flagged.
    close(certificate.host.merged_chunk_share, 0.01);
    close(certificate.host.late_merged_chunk_share, 0.01);
    with_text(
        &certificate,
        "1 % of the chunks were merged by late reads of the client",
    );
}

#[test]
fn what_the_server_sent_together_is_no_error() {
    let together = |number| {
        let mut record = overslept(number);
        record.chunks.iter_mut().for_each(|chunk| chunk.lag = 30_000);
        record
    };
    let certificate = judge((0..40).map(|number| finished(together(number))).collect());
    close(certificate.host.merged_chunk_share, 0.4);
    close(certificate.host.late_merged_chunk_share, 0.0);
    // Gaps of 30, 0, 0 and 10 ms: half of them are 0, the P50 is 5 ms.
    assert_eq!(
        about(&certificate, Metric::Tbc).what,
        "TBC: error 0.04 % of its P50 (2 µs of 5 ms)"
    );
}

#[test]
fn a_late_read_of_the_first_chunk_falsifies_the_time_to_it() {
    let first = |number| {
        let mut record = request(number, QUIET);
        // The first two came from one read, 4 ms after the second.
        record.chunks[0].at = record.chunks[1].at;
        for chunk in &mut record.chunks[..2] {
            chunk.lag = 4_000_000;
        }
        record.chunks[1].merged = true;
        record
    };
    let certificate = judge((0..40).map(|number| finished(first(number))).collect());
    // A pace of 30 / 3 = 10 ms, of which 1 ms is undetected: the first may have arrived 10 * 10 / 9
    // = 11.111 ms earlier.
    let bound = certificate.bound(Metric::Ttfc).unwrap();
    assert!(
        (bound.mean_error * 1e6 - (58.0 + 11_111.111)).abs() < 0.001,
        "{bound:?}"
    );
    assert_eq!(certificate.host.errors[1].main, ErrorPart::LateReads);
    // The last chunk was read in time.
    errors(&certificate, Metric::EndToEnd, 58.0, 73.0);
}

#[test]
fn bursts_are_set_against_the_mean_gap() {
    let bursts = |number| {
        let mut record = request(number, QUIET);
        let at = record.chunks[0].at;
        // 10 µs within a burst of four, then 40 ms.
        for (chunk, after) in record.chunks.iter_mut().zip([0, 10, 20, 30, 40_030]) {
            chunk.at = at + after * US;
        }
        record
    };
    let certificate = judge((0..40).map(|number| finished(bursts(number))).collect());
    // 2 µs of 10 µs would be a fifth; relative to the mean, 40030 / 4, they are negligible.
    let tbc = about(&certificate, Metric::Tbc);
    assert_eq!(tbc.verdict, Verdict::Valid);
    assert_eq!(
        tbc.what,
        "TBC: error 0.02 % of its mean, because chunks come in bursts (2 µs of 10 ms)"
    );
}

#[test]
fn reads_of_unknown_lateness_are_not_certified() {
    let read = Way {
        stamps: StampSource::Read,
        ..QUIET
    };
    let certificate = judge(requests(40, read));
    assert_eq!(certificate.verdict, Verdict::Degraded);
    let ttfc = about(&certificate, Metric::Ttfc);
    assert_eq!(
        ttfc.what,
        "TTFC: error 0.29 % of its P50 (58 µs of 20 ms); 40 of 40 have arrival times of reads, and how late these were is not known"
    );
    assert_eq!(ttfc.remedy.as_deref(), Some("measure it with --self-test"));
    assert_eq!(
        (certificate.host.client_lag, certificate.host.read_stamped),
        (None, 40)
    );
    assert_eq!(certificate.host.late_merged_chunk_share, None);
    // A self-test provides the missing information.
    let test = self_test(60.0, 100.0);
    let tested = certify(
        &run(requests(40, read)),
        &Thresholds::default(),
        &RunConditions::default(),
        Some(&test),
    );
    assert_eq!(tested.verdict, Verdict::Valid, "{:#?}", tested.findings);
}

#[test]
fn lags_that_were_observed_speak_for_those_that_were_not() {
    // 30 kernel-stamped answers lagged by 250 µs; 10 more fell back to read times.
    let mut events = requests(30, Way { lag: 250, ..QUIET });
    events.extend((30..40).map(|number| {
        finished(request(
            number,
            Way {
                stamps: StampSource::Read,
                ..QUIET
            },
        ))
    }));
    events.push(Event::ClockStepped {
        at: 1,
        by: -1_500_000_000,
    });
    let certificate = judge(events);
    // A quarter of the samples has another 250 µs.
    errors(&certificate, Metric::Ttfc, 58.0 + 62.5, 323.0);
    assert_eq!(
        with_text(&certificate, "clock").what,
        "the wall clock was set 1 time (by 1.5 s at the most): kernel timestamps that this made wrong were discarded, and 10 of 40 answers have the times of reads"
    );
    close(certificate.host.largest_clock_step, -1.5);
}
