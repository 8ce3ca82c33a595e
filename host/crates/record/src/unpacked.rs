//! Uncompressed sizes of pages, checked before memory is allocated for them.
//!
//! A few bytes can be compressed from gigabytes. The decoder allocates what a page's header claims,
//! so the claims of all pages of a row group are added up first.

use std::sync::atomic::{AtomicU64, Ordering};

use parquet::errors::{ParquetError, Result};

/// The most bytes that the pages of a row group may become. A recorder fills a row group with tens
/// of megabytes.
const MOST_BYTES: u64 = 1 << 30;

/// Remaining uncompressed bytes for the pages of a row group.
pub(crate) struct Allowance(AtomicU64);

impl Default for Allowance {
    fn default() -> Self {
        Allowance(AtomicU64::new(MOST_BYTES))
    }
}

impl Allowance {
    /// Takes the page whose header begins here.
    ///
    /// # Errors
    ///
    /// If it is not a header, or if the page would exceed the allowance.
    pub(crate) fn take(&self, header: &[u8]) -> Result<()> {
        let promised = promised(header).ok_or_else(|| {
            ParquetError::General("a page begins otherwise than a recorder writes it".into())
        })?;
        let take = |left: u64| left.checked_sub(promised);
        match self.0.try_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Ok(()),
            Err(_) => Err(ParquetError::General(format!(
                "a page of {promised} bytes, more than its row group may still have"
            ))),
        }
    }
}

/// The second field of a page's header in Thrift's compact form: both begin with the byte of "the
/// next field, a 32-bit integer", then a number of seven bits a byte, the lowest first, with its
/// sign in the lowest bit. The first field is the page's kind.
fn promised(header: &[u8]) -> Option<u64> {
    let (_kind, header) = integer(header)?;
    let (bytes, _) = integer(header)?;
    u64::try_from(bytes).ok()
}

/// A field of that form, and what follows it.
fn integer(bytes: &[u8]) -> Option<(i64, &[u8])> {
    const NEXT_FIELD_I32: u8 = 0x15;
    let mut rest = bytes.strip_prefix(&[NEXT_FIELD_I32])?;
    let mut number = 0_u64;
    for place in 0..5 {
        let (byte, after) = rest.split_first()?;
        rest = after;
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            let (half, negative) = ((number >> 1) as i64, number & 1 == 1);
            return Some((if negative { -half - 1 } else { half }, rest));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the Thrift specification: zigzag 0 is 0, -1 is 1, 1 is 2; 300 is 600 = 0b100_1011000, so
    /// 0xd8 0x04.
    #[test]
    fn the_second_field_is_what_a_page_becomes() {
        assert_eq!(promised(&[0x15, 0x00, 0x15, 0xd8, 0x04, 0x15]), Some(300));
        assert_eq!(promised(&[0x15, 0x04, 0x15, 0x02]), Some(1));
        assert_eq!(promised(&[0x15, 0x04, 0x15, 0x01]), None, "-1 bytes");
        assert_eq!(promised(&[0x15, 0x04, 0x15, 0xff]), None, "cut");
        assert_eq!(promised(&[0x25, 0x04, 0x15, 0x02]), None, "another field");
        assert_eq!(
            promised(&[0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x15, 0x02]),
            None
        );
    }

    #[test]
    fn a_row_group_becomes_no_more_than_it_may() {
        let allowance = Allowance::default();
        // 2^29 bytes: zigzag 2^30, whose 31st bit is the third of the fifth byte.
        let half = [0x15, 0x00, 0x15, 0x80, 0x80, 0x80, 0x80, 0x04];
        allowance.take(&half).unwrap();
        allowance.take(&half).unwrap();
        let error = allowance.take(&[0x15, 0x00, 0x15, 0x02]).unwrap_err();
        assert!(error.to_string().contains("a page of 1 bytes"), "{error}");
    }
}
