//! Wall-clock time. Nothing is measured with it: it dates a run and relates the kernel's receive
//! times to the run's clock.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since 1970-01-01T00:00:00Z.
pub fn wall_nanos() -> u64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// `DD_MM_YYYY-HH_MM_SS` in UTC: the stamp in the name of a run's folder.
pub fn utc_stamp(wall_nanos: u64) -> String {
    let seconds = wall_nanos / 1_000_000_000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days as i64);
    format!(
        "{day:02}_{month:02}_{year:04}-{:02}_{:02}_{:02}",
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}

/// Days since 1970-01-01 to a date of the Gregorian calendar (Howard Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms", `civil_from_days`).
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_match_the_calendar() {
        // From `date -u -d @N +%d_%m_%Y-%H_%M_%S`.
        let cases = [
            (0, "01_01_1970-00_00_00"),
            (951_782_400, "29_02_2000-00_00_00"),
            (1_709_251_199, "29_02_2024-23_59_59"),
            (1_795_132_800, "20_11_2026-00_00_00"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(utc_stamp(seconds * 1_000_000_000), expected);
        }
    }
}
