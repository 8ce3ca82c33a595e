//! Validation of a column's pages before they are decoded.
//!
//! The decoder takes for granted what its own writer guarantees (a dictionary comes before what
//! refers to it, counts are not absurd). A file can come from anywhere, so that is checked here.

use bytes::Bytes;
use parquet::{
    basic::Encoding,
    column::page::{Page, PageMetadata, PageReader},
    errors::{ParquetError, Result},
};

/// The most cells of a column of one row group: beyond what one answer can hold, and small enough
/// that the memory for them is. A page of some bytes can repeat a value so often.
const MOST_CELLS: u32 = 1 << 22;

/// Hands on the pages of a column that are as `Recorder` writes them.
pub(crate) struct CheckedPages<P> {
    pages: P,
    dictionary: bool,
    /// Cells that the column may still have.
    cells: u32,
}

impl<P: PageReader> CheckedPages<P> {
    /// Before the first page.
    pub(crate) fn new(pages: P) -> Self {
        CheckedPages {
            pages,
            dictionary: false,
            cells: MOST_CELLS,
        }
    }

    fn check(&mut self, page: &Page) -> Result<()> {
        let left = self.cells.checked_sub(page.num_values());
        self.cells = left.ok_or_else(|| {
            refused(format!(
                "a page of {} cells, when a column has {MOST_CELLS} at the most,",
                page.num_values()
            ))
        })?;
        match page {
            Page::DictionaryPage {
                buf,
                num_values,
                encoding,
                ..
            } => {
                let known = matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY);
                // A value of a dictionary takes a byte at the least.
                if !known || self.dictionary || *num_values as usize > buf.len() {
                    return Err(refused(format!(
                        "a dictionary of {num_values} values in {} bytes",
                        buf.len()
                    )));
                }
                self.dictionary = true;
                Ok(())
            }
            Page::DataPage {
                buf,
                num_values,
                encoding,
                def_level_encoding,
                rep_level_encoding,
                ..
            } => {
                let decodable = match encoding {
                    Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => {
                        self.dictionary && !empty_indices(buf)
                    }
                    Encoding::PLAIN | Encoding::DELTA_BINARY_PACKED => true,
                    _ => false,
                };
                let levels = [def_level_encoding, rep_level_encoding];
                if *num_values == 0 || !decodable || levels.iter().any(|&&encoding| encoding != Encoding::RLE)
                {
                    return Err(refused(format!(
                        "a page of {num_values} cells encoded as {encoding}"
                    )));
                }
                Ok(())
            }
            Page::DataPageV2 { .. } => Err(refused("a page of the second version".into())),
        }
    }
}

/// Returns true if a page of dictionary references lacks even their bit width.
fn empty_indices(page: &Bytes) -> bool {
    page.is_empty()
}

fn refused(what: String) -> ParquetError {
    ParquetError::General(format!("{what} is not what a recorder writes"))
}

impl<P: PageReader> PageReader for CheckedPages<P> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            self.check(page)?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        Err(ParquetError::NYI("pages are read in order".into()))
    }

    fn skip_next_page(&mut self) -> Result<()> {
        Err(ParquetError::NYI("pages are read in order".into()))
    }

    /// The writer never cuts a row between two pages.
    fn at_record_boundary(&mut self) -> Result<bool> {
        Ok(true)
    }
}

impl<P: PageReader> Iterator for CheckedPages<P> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages from nowhere.
    struct Made(Vec<Page>);

    impl Iterator for Made {
        type Item = Result<Page>;

        fn next(&mut self) -> Option<Self::Item> {
            self.get_next_page().transpose()
        }
    }

    impl PageReader for Made {
        fn get_next_page(&mut self) -> Result<Option<Page>> {
            Ok((!self.0.is_empty()).then(|| self.0.remove(0)))
        }

        fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
            Ok(None)
        }

        fn skip_next_page(&mut self) -> Result<()> {
            Ok(())
        }
    }

    fn dictionary(num_values: u32) -> Page {
        Page::DictionaryPage {
            buf: Bytes::from_static(&[0; 16]),
            num_values,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        }
    }

    fn data(num_values: u32, encoding: Encoding, bytes: &'static [u8]) -> Page {
        Page::DataPage {
            buf: Bytes::from_static(bytes),
            num_values,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        }
    }

    #[test]
    fn accepts_pages_of_a_recorder() {
        let pages = vec![
            dictionary(2),
            data(9, Encoding::RLE_DICTIONARY, &[1, 2]),
            data(9, Encoding::PLAIN, &[1; 72]),
            data(1, Encoding::DELTA_BINARY_PACKED, &[1]),
        ];
        let mut checked = CheckedPages::new(Made(pages));
        for _ in 0..4 {
            assert!(checked.get_next_page().unwrap().is_some());
        }
        assert!(checked.get_next_page().unwrap().is_none());
    }

    #[test]
    fn rejects_pages_that_break_the_decoder() {
        let second_version = Page::DataPageV2 {
            buf: Bytes::new(),
            num_values: 1,
            encoding: Encoding::PLAIN,
            num_nulls: 0,
            num_rows: 1,
            def_levels_byte_len: u32::MAX,
            rep_levels_byte_len: 1,
            is_compressed: false,
            statistics: None,
        };
        let cases = [
            (vec![data(1, Encoding::RLE_DICTIONARY, &[1])], "RLE_DICTIONARY"),
            (
                vec![dictionary(2), data(1, Encoding::RLE_DICTIONARY, &[])],
                "RLE_DICTIONARY",
            ),
            (vec![dictionary(17)], "17 values in 16 bytes"),
            (vec![dictionary(1), dictionary(1)], "a dictionary"),
            (vec![data(MOST_CELLS + 1, Encoding::PLAIN, &[1])], "4194305 cells"),
            (
                vec![
                    data(MOST_CELLS, Encoding::PLAIN, &[1]),
                    data(1, Encoding::PLAIN, &[1]),
                ],
                "1 cells",
            ),
            (vec![data(0, Encoding::PLAIN, &[])], "0 cells"),
            (
                vec![data(1, Encoding::BYTE_STREAM_SPLIT, &[1])],
                "BYTE_STREAM_SPLIT",
            ),
            (vec![second_version], "second version"),
        ];
        for (pages, words) in cases {
            let mut checked = CheckedPages::new(Made(pages));
            let refusal = std::iter::from_fn(|| checked.next())
                .find_map(Result::err)
                .unwrap();
            assert!(refusal.to_string().contains(words), "{refusal}");
        }
    }
}
