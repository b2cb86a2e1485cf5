//! Answers: JSON that is written into a buffer piece by piece.

use std::fmt;

use trefoil::{EventId, Timestamp};

/// Appends `text` as a JSON string.
pub(crate) fn put_string(out: &mut Vec<u8>, text: &str) {
    // Writing into a buffer in memory does not fail.
    let _ = serde_json::to_writer(out, text);
}

/// Appends a whole number.
pub(crate) fn put_number(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends something that writes itself as text without quotes or control characters.
pub(crate) fn put_display(out: &mut Vec<u8>, value: impl fmt::Display) {
    use std::io::Write as _;
    out.push(b'"');
    // Writing into a buffer in memory does not fail.
    let _ = write!(out, "{value}");
    out.push(b'"');
}

/// Appends JSON on one line: a line break outside of strings is as good as a space, and inside
/// of strings there is none.
pub(crate) fn put_on_one_line(out: &mut Vec<u8>, json: &[u8]) {
    let start = out.len();
    out.extend_from_slice(json);
    for byte in &mut out[start..] {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

/// Appends an event's id as a JSON string.
pub(crate) fn put_id(out: &mut Vec<u8>, id: EventId) {
    let mut digits = [0; 36];
    out.push(b'"');
    out.extend_from_slice(id.as_hyphenated().encode_lower(&mut digits).as_bytes());
    out.push(b'"');
}

/// Appends a time as a JSON string, as [`Timestamp`] writes itself. Every row has one, and this takes
/// three fifths of the time that the calendar library takes, which makes the same text of any
/// calendar's parts.
pub(crate) fn put_time(out: &mut Vec<u8>, time: Timestamp) {
    const NANOS: i64 = 1_000_000_000;
    const DAY: i64 = 86_400;
    let (seconds, nanos) = (time.0.div_euclid(NANOS), time.0.rem_euclid(NANOS));
    let (days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let (year, month, day) = date(days);
    let mut text = *b"\"0000-00-00T00:00:00.000000000";
    for (end, digits, value) in [
        (5, 4, year),
        (8, 2, month),
        (11, 2, day),
        (14, 2, second / 3600),
        (17, 2, second / 60 % 60),
        (20, 2, second % 60),
        (30, 9, nanos),
    ] {
        put_digits(&mut text[end - digits..end], value);
    }
    let zeros = text.iter().rev().take_while(|byte| **byte == b'0').count();
    let length = if nanos == 0 { 20 } else { text.len() - zeros };
    out.extend_from_slice(&text[..length]);
    out.extend_from_slice(b"Z\"");
}

fn put_digits(place: &mut [u8], mut value: i64) {
    for digit in place.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// Year, month and day of a day counted from 1970-01-01. Years are taken to begin in March, so that
/// a leap day is the last day of its year; 400 of them always have as many days.
fn date(days_since_1970: i64) -> (i64, i64, i64) {
    const ERA: i64 = 146_097;
    let days = days_since_1970 + 719_468;
    let (era, day_of_era) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / (ERA - 1);
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_as_json_wants_it() {
        for text in [
            "",
            "plain",
            "a\"b\\c\n\r\t\u{1}\u{1f}",
            "世界 é 🎉",
            "\u{7f}</script>",
        ] {
            let mut out = Vec::new();
            put_string(&mut out, text);
            assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }
    }

    #[test]
    fn numbers_are_written_in_full() {
        let cases = [
            (0, "0"),
            (-1, "-1"),
            (i128::from(u64::MAX), "18446744073709551615"),
        ];
        for (number, expected) in cases {
            let mut out = Vec::new();
            put_number(&mut out, number);
            assert_eq!(out, expected.as_bytes());
        }
    }

    #[test]
    fn times_are_written_as_they_write_themselves() {
        let day = 86_400_000_000_000_i64;
        let mut times = vec![
            0,
            1,
            -1,
            i64::MIN,
            i64::MAX,
            123_456_000,
            1_000_000_000,
            100,
        ];
        // Every 29th of February, end of year and beginning of century from 1678 to 2262 is near
        // one of these.
        times.extend(
            (-106_751..106_751)
                .step_by(7)
                .map(|days| days * day + 86_399_999_999_999),
        );
        times.extend(
            (-106_751..106_751)
                .step_by(11)
                .map(|days| days * day + 43_200_500_000_000),
        );
        for nanos in times {
            let mut out = Vec::new();
            put_time(&mut out, Timestamp(nanos));
            let expected = format!("\"{}\"", Timestamp(nanos));
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{nanos}");
        }
    }

    #[test]
    fn ids_are_written_as_they_write_themselves() {
        let id = EventId::from_u128(0x0123_4567_89ab_cdef_fedc_ba98_7654_3210);
        let mut out = Vec::new();
        put_id(&mut out, id);
        assert_eq!(String::from_utf8(out).unwrap(), format!("\"{id}\""));
    }
}
