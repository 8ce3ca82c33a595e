//! The pages of a column, looked at before they are decoded.
//!
//! The decoder takes for granted what its own writer guarantees (a dictionary comes before what refers to it, counts are not
//! absurd). A file can come from anywhere, so that is checked here.

use bytes::Bytes;
use parquet::{
    basic::Encoding,
    column::page::{Page, PageMetadata, PageReader},
    errors::{ParquetError, Result},
};

/// The most cells of one page: beyond what one answer can hold, and small enough that the memory for them is.
const MOST_CELLS: u32 = 1 << 24;

/// Hands on the pages of a column that are as `Recorder` writes them.
pub(crate) struct CheckedPages<P> {
    pages: P,
    dictionary: bool,
}

impl<P: PageReader> CheckedPages<P> {
    /// Before the first page.
    pub(crate) fn new(pages: P) -> Self {
        CheckedPages {
            pages,
            dictionary: false,
        }
    }

    fn check(&mut self, page: &Page) -> Result<()> {
        if page.num_values() > MOST_CELLS {
            return Err(refused(format!("a page of {} cells", page.num_values())));
        }
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

/// Whether a page of references into the dictionary has not even their width.
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
