//! The custom section of a component that carries the text of its manifest.
//!
//! A component is a header of eight bytes and a list of sections, each with a number, its length
//! and its content. Nested modules and components are sections as well, so that only the outermost
//! list is read.

/// The name of the section.
pub const SECTION_NAME: &str = "veeksha:manifest";

/// The maximum length of a manifest, in bytes.
pub const LONGEST: usize = 64 << 10;

/// The number of a custom section.
const CUSTOM: u8 = 0;
const HEADER: usize = 8;
const MAGIC: &[u8] = b"\0asm";

/// A manifest that cannot be taken out of a component, or put into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SectionError {
    /// The bytes are not WebAssembly.
    #[error("the file is not WebAssembly")]
    NotWasm,
    /// A section is longer than the file.
    #[error("the file is damaged or cut short at byte {at}")]
    Damaged {
        /// The position of the section.
        at: usize,
    },
    /// There are several sections of the name.
    #[error("the component has several sections `{SECTION_NAME}`: build it again")]
    Repeated,
    /// The section is not UTF-8.
    #[error("the section `{SECTION_NAME}` is not UTF-8: build the component again")]
    NotText,
    /// The manifest is too long.
    #[error("the manifest has {length} bytes, at most {LONGEST} are allowed")]
    TooLong {
        /// The length of the text, in bytes.
        length: usize,
    },
}

/// Returns the text of the manifest that a component carries, if there is one.
///
/// # Errors
/// If the bytes are damaged, or the section is not one text of at most [`LONGEST`] bytes.
pub fn read(component: &[u8]) -> Result<Option<&str>, SectionError> {
    let mut found = None;
    for section in Sections::new(component)? {
        let section = section?;
        let Some(content) = section.manifest() else {
            continue;
        };
        if found.replace(content).is_some() {
            return Err(SectionError::Repeated);
        }
    }
    let Some(content) = found else { return Ok(None) };
    if content.len() > LONGEST {
        return Err(SectionError::TooLong {
            length: content.len(),
        });
    }
    std::str::from_utf8(content)
        .map(Some)
        .map_err(|_| SectionError::NotText)
}

/// Returns the component with this manifest, in place of the one that it had.
///
/// # Errors
/// If the bytes are damaged, or the text is longer than [`LONGEST`].
pub fn write(component: &[u8], manifest: &str) -> Result<Vec<u8>, SectionError> {
    if manifest.len() > LONGEST {
        return Err(SectionError::TooLong {
            length: manifest.len(),
        });
    }
    let mut written = component.get(..HEADER).ok_or(SectionError::NotWasm)?.to_vec();
    for section in Sections::new(component)? {
        let section = section?;
        if section.manifest().is_none() {
            written.extend_from_slice(section.whole);
        }
    }
    let mut content = Vec::with_capacity(manifest.len() + SECTION_NAME.len() + 1);
    push_length(&mut content, SECTION_NAME.len());
    content.extend_from_slice(SECTION_NAME.as_bytes());
    content.extend_from_slice(manifest.as_bytes());
    written.push(CUSTOM);
    push_length(&mut written, content.len());
    written.extend_from_slice(&content);
    Ok(written)
}

/// The outermost sections of a component.
struct Sections<'a> {
    bytes: &'a [u8],
    at: usize,
}

struct WasmSection<'a> {
    number: u8,
    content: &'a [u8],
    /// Number, length and content.
    whole: &'a [u8],
}

impl<'a> Sections<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self, SectionError> {
        if !bytes.starts_with(MAGIC) || bytes.len() < HEADER {
            return Err(SectionError::NotWasm);
        }
        Ok(Sections { bytes, at: HEADER })
    }

    fn section(&self) -> Option<WasmSection<'a>> {
        let rest = self.bytes.get(self.at..)?;
        let (number, after) = rest.split_first()?;
        let (length, after) = take_length(after)?;
        let content = after.get(..length)?;
        Some(WasmSection {
            number: *number,
            content,
            whole: rest.get(..rest.len() - after.len() + length)?,
        })
    }
}

impl<'a> Iterator for Sections<'a> {
    type Item = Result<WasmSection<'a>, SectionError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let Some(section) = self.section() else {
            let damaged = SectionError::Damaged { at: self.at };
            self.at = self.bytes.len();
            return Some(Err(damaged));
        };
        self.at += section.whole.len();
        Some(Ok(section))
    }
}

impl<'a> WasmSection<'a> {
    /// The content after the name, if this is the section of the manifest.
    fn manifest(&self) -> Option<&'a [u8]> {
        if self.number != CUSTOM {
            return None;
        }
        let (length, after) = take_length(self.content)?;
        let name = after.get(..length)?;
        (name == SECTION_NAME.as_bytes()).then(|| &after[length..])
    }
}

/// Reads an unsigned LEB128 number of 32 bits.
fn take_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0_u64;
    for (position, byte) in bytes.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * position);
        if byte & 0x80 == 0 {
            let value = u32::try_from(value).ok()?;
            return Some((usize::try_from(value).ok()?, &bytes[position + 1..]));
        }
    }
    None
}

fn push_length(bytes: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A component without sections: magic, version 13, layer 1.
    const EMPTY: [u8; 8] = [0, b'a', b's', b'm', 13, 0, 1, 0];

    #[test]
    fn a_manifest_comes_out_as_it_was_put_in() {
        assert_eq!(read(&EMPTY), Ok(None));
        let long = "é".repeat(1000);
        for text in ["", "[plugin]\n", &long] {
            let component = write(&EMPTY, text).unwrap();
            assert_eq!(read(&component), Ok(Some(text)));
        }
    }

    #[test]
    fn a_second_manifest_replaces_the_first_and_keeps_other_sections() {
        let other = [&EMPTY[..], &[CUSTOM, 4, 2, b'h', b'i', 7]].concat();
        let first = write(&other, "first").unwrap();
        let second = write(&first, "second").unwrap();
        assert_eq!(read(&second), Ok(Some("second")));
        assert!(second.starts_with(&other));
        assert_eq!(second.len(), first.len() + 1);
    }

    #[test]
    fn a_manifest_of_a_nested_component_is_not_that_of_the_outermost() {
        let inner = write(&EMPTY, "inner").unwrap();
        let mut outer = EMPTY.to_vec();
        outer.push(4);
        push_length(&mut outer, inner.len());
        outer.extend_from_slice(&inner);
        assert_eq!(read(&outer), Ok(None));
    }

    #[test]
    fn damaged_bytes_are_refused() {
        assert_eq!(read(b"hello world"), Err(SectionError::NotWasm));
        assert_eq!(read(b"\0asm"), Err(SectionError::NotWasm));
        let whole = write(&EMPTY, "text").unwrap();
        let cut = &whole[..whole.len() - 1];
        assert_eq!(read(cut), Err(SectionError::Damaged { at: 8 }));
        let twice = [&whole[..], &whole[8..]].concat();
        assert_eq!(read(&twice), Err(SectionError::Repeated));
        let mut bad = whole;
        *bad.last_mut().unwrap() = 0xff;
        assert_eq!(read(&bad), Err(SectionError::NotText));
    }

    #[test]
    fn a_manifest_has_a_maximum_length() {
        let text = "#".repeat(LONGEST + 1);
        assert_eq!(
            write(&EMPTY, &text),
            Err(SectionError::TooLong { length: LONGEST + 1 })
        );
    }

    proptest::proptest! {
        /// Bytes behind a valid header are read or refused; what is accepted can be written again.
        #[test]
        fn no_bytes_panic(tail in proptest::collection::vec(proptest::num::u8::ANY, 0..64)) {
            let bytes = [&EMPTY[..], &tail].concat();
            let read_bytes = read(&bytes).is_ok();
            if let Ok(written) = write(&bytes, "x") {
                assert_eq!(read(&written), Ok(Some("x")));
            } else {
                assert!(!read_bytes);
            }
        }
    }
}
