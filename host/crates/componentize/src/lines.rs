//! The line tables that a trap report needs, and no others.
//!
//! An optimised component carries far more about its source than code: for each inlined call of the
//! standard library, where it was inlined from. A report shows only the frames of the plugin's own
//! source, so only these are kept: at each address, the functions of the author's files that are
//! active there, from the outermost to the innermost, each with its line. What they inlined of the
//! standard library and of dependencies is counted to the line that called it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use gimli::read::{self, EndianSlice, Reader};
use gimli::write::{
    Address, AttributeValue, DwarfUnit, EndianVec, FileId, LineProgram, LineString, Sections, UnitEntryId,
};
use gimli::{Encoding, Format, LineEncoding, LittleEndian, SectionId};

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Parts of the paths of what is not the author's: the standard library, as `cargo xtask` and as
/// rustup name it, and crates of a registry.
const FOREIGN: [&str; 6] = [
    "/rustc/",
    "/rust/deps/",
    "library/std/src",
    "library/core/src",
    "library/alloc/src",
    "/registry/src/",
];
/// As `cargo xtask` names the crates of a registry.
const CRATES: &str = "/crates/";

fn is_authors(file: &str) -> bool {
    !file.starts_with(CRATES) && !FOREIGN.iter().any(|part| file.contains(part))
}

/// Line tables that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineTableError {
    #[error("the module's line tables cannot be read: {0}")]
    Read(#[from] gimli::Error),
    #[error("the shortened line tables cannot be written: {0}")]
    Write(#[from] gimli::write::Error),
}

/// A function that is active at an address.
#[derive(Clone, PartialEq, Eq)]
struct Spot {
    function: Option<String>,
    file: String,
    line: u32,
}

/// Shortens a module's DWARF: takes and gives the contents of sections by their names
/// (`.debug_line`). Empty where nothing of the author's source is named.
///
/// # Errors
/// If the line tables cannot be read.
pub(crate) fn shorten<'a>(
    section: impl Fn(&str) -> &'a [u8],
) -> Result<Vec<(&'static str, Vec<u8>)>, LineTableError> {
    let load = |id: SectionId| -> Result<Slice<'a>, gimli::Error> {
        Ok(EndianSlice::new(section(id.name()), LittleEndian))
    };
    let dwarf = read::Dwarf::load(load)?;
    let borders = borders(&dwarf)?;
    let frames = addr2line::Context::from_dwarf(dwarf)?;
    let mut writer = Writer::new();
    for address in borders {
        writer.change(address, active(&frames, address)?);
    }
    writer.finish()
}

/// Every address at which what is active may change.
fn borders(dwarf: &read::Dwarf<Slice<'_>>) -> Result<BTreeSet<u64>, gimli::Error> {
    let mut borders = BTreeSet::new();
    // The linker marks what it has left out with the highest addresses.
    let mut note = |address: u64| {
        if address < u64::from(u32::MAX) - 1 {
            borders.insert(address);
        }
    };
    let mut units = dwarf.units();
    while let Some(header) = units.next()? {
        let unit = dwarf.unit(header)?;
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            let mut ranges = dwarf.die_ranges(&unit, entry)?;
            while let Some(range) = ranges.next()? {
                note(range.begin);
                note(range.end);
            }
        }
        if let Some(program) = unit.line_program.clone() {
            let mut rows = program.rows();
            while let Some((_, row)) = rows.next_row()? {
                note(row.address());
            }
        }
    }
    Ok(borders)
}

/// The author's functions that are active at an address, from the outermost to the innermost.
fn active<R: Reader>(frames: &addr2line::Context<R>, address: u64) -> Result<Vec<Spot>, gimli::Error> {
    let mut found = frames.find_frames(address).skip_all_loads()?;
    let mut spots = Vec::new();
    while let Some(frame) = found.next()? {
        let Some((file, line)) = frame
            .location
            .and_then(|location| Some((location.file?, location.line?)))
        else {
            continue;
        };
        if is_authors(file) {
            let function = frame.function.as_ref().map(|function| function.raw_name());
            spots.push(Spot {
                function: function.transpose()?.map(Cow::into_owned),
                file: file.to_owned(),
                line,
            });
        }
    }
    spots.reverse();
    Ok(spots)
}

/// New DWARF, written address by address.
struct Writer {
    dwarf: DwarfUnit,
    lines: LineProgram,
    /// The functions that are open: what is active, and where each began.
    open: Vec<(Spot, u64, UnitEntryId)>,
    /// Where the sequence of line rows began.
    sequence: Option<u64>,
    last: Option<(FileId, u32)>,
    origins: std::collections::HashMap<String, UnitEntryId>,
    bounds: Option<(u64, u64)>,
}

impl Writer {
    fn new() -> Self {
        let encoding = Encoding {
            format: Format::Dwarf32,
            version: 4,
            address_size: 4,
        };
        let text = |text: &str| LineString::String(text.as_bytes().to_vec());
        Writer {
            dwarf: DwarfUnit::new(encoding),
            lines: LineProgram::new(
                encoding,
                LineEncoding::default(),
                text(""),
                None,
                text("plugin"),
                None,
            ),
            open: Vec::new(),
            sequence: None,
            last: None,
            origins: std::collections::HashMap::new(),
            bounds: None,
        }
    }

    fn file(&mut self, file: &str) -> FileId {
        let directory = self.lines.default_directory();
        self.lines
            .add_file(LineString::String(file.as_bytes().to_vec()), directory, None)
    }

    /// From `address` on, other functions are active.
    fn change(&mut self, address: u64, active: Vec<Spot>) {
        // A function goes on if it is the same one, called from the same line of the same function.
        let goes_on = |depth: usize, now: &Spot, known: &Spot| {
            let called = |spots: &dyn Fn(usize) -> (String, u32)| depth.checked_sub(1).map(spots);
            let before = called(&|caller| (self.open[caller].0.file.clone(), self.open[caller].0.line));
            let after = called(&|caller| (active[caller].file.clone(), active[caller].line));
            now.function == known.function && before == after
        };
        let same = active
            .iter()
            .zip(&self.open)
            .enumerate()
            .take_while(|(depth, (now, (known, ..)))| goes_on(*depth, now, known))
            .count();
        self.close(same, address);
        for (spot, (known, ..)) in active.iter().zip(&mut self.open) {
            *known = spot.clone();
        }
        for depth in same..active.len() {
            self.begin(depth, address, &active);
        }
        self.row(address, active.last());
    }

    fn begin(&mut self, depth: usize, address: u64, active: &[Spot]) {
        let spot = &active[depth];
        let parent = self
            .open
            .last()
            .map_or_else(|| self.dwarf.unit.root(), |(.., entry)| *entry);
        let caller = depth.checked_sub(1).map(|caller| &active[caller]);
        let call_file = caller.map(|caller| self.file(&caller.file));
        let origin = spot
            .function
            .as_ref()
            .filter(|_| caller.is_some())
            .map(|name| self.origin(name));
        let name = spot
            .function
            .as_ref()
            .map(|name| self.dwarf.strings.add(name.as_str()));
        let unit = &mut self.dwarf.unit;
        let tag = match caller {
            Some(_) => gimli::DW_TAG_inlined_subroutine,
            None => gimli::DW_TAG_subprogram,
        };
        let entry = unit.add(parent, tag);
        let die = unit.get_mut(entry);
        die.set(
            gimli::DW_AT_low_pc,
            AttributeValue::Address(Address::Constant(address)),
        );
        match (caller, call_file) {
            (Some(caller), Some(file)) => {
                if let Some(origin) = origin {
                    die.set(gimli::DW_AT_abstract_origin, AttributeValue::UnitRef(origin));
                }
                die.set(gimli::DW_AT_call_file, AttributeValue::FileIndex(Some(file)));
                die.set(gimli::DW_AT_call_line, AttributeValue::Udata(caller.line.into()));
            }
            _ => {
                if let Some(name) = name {
                    die.set(gimli::DW_AT_name, AttributeValue::StringRef(name));
                }
            }
        }
        self.open.push((spot.clone(), address, entry));
    }

    /// The entry that the inlined calls of a function refer to.
    fn origin(&mut self, name: &str) -> UnitEntryId {
        if let Some(known) = self.origins.get(name) {
            return *known;
        }
        let text = self.dwarf.strings.add(name);
        let unit = &mut self.dwarf.unit;
        let entry = unit.add(unit.root(), gimli::DW_TAG_subprogram);
        let die = unit.get_mut(entry);
        die.set(gimli::DW_AT_name, AttributeValue::StringRef(text));
        die.set(gimli::DW_AT_inline, AttributeValue::Inline(gimli::DW_INL_inlined));
        self.origins.insert(name.to_owned(), entry);
        entry
    }

    /// Closes the functions that are deeper than `depth`.
    fn close(&mut self, depth: usize, address: u64) {
        for (_, begun, entry) in self.open.drain(depth..) {
            let length = AttributeValue::Udata(address - begun);
            self.dwarf.unit.get_mut(entry).set(gimli::DW_AT_high_pc, length);
        }
    }

    fn row(&mut self, address: u64, innermost: Option<&Spot>) {
        let Some(spot) = innermost else {
            if let Some(begun) = self.sequence.take() {
                self.lines.end_sequence(address - begun);
                self.last = None;
                self.bounds = self.bounds.map(|(first, _)| (first, address));
            }
            return;
        };
        let file = self.file(&spot.file);
        let begun = match self.sequence {
            Some(begun) => begun,
            None => {
                self.lines.begin_sequence(Some(Address::Constant(address)));
                self.bounds.get_or_insert((address, address));
                *self.sequence.insert(address)
            }
        };
        if self.last != Some((file, spot.line)) {
            let row = self.lines.row();
            (row.address_offset, row.file, row.line) = (address - begun, file, spot.line.into());
            self.lines.generate_row();
            self.last = Some((file, spot.line));
        }
    }

    fn finish(mut self) -> Result<Vec<(&'static str, Vec<u8>)>, LineTableError> {
        let Some((first, end)) = self.bounds else {
            return Ok(Vec::new());
        };
        let root = self.dwarf.unit.root();
        self.dwarf.unit.line_program = self.lines;
        let die = self.dwarf.unit.get_mut(root);
        die.set(gimli::DW_AT_stmt_list, AttributeValue::LineProgramRef);
        die.set(
            gimli::DW_AT_low_pc,
            AttributeValue::Address(Address::Constant(first)),
        );
        die.set(gimli::DW_AT_high_pc, AttributeValue::Udata(end - first));
        let mut sections = Sections::new(EndianVec::new(LittleEndian));
        self.dwarf.write(&mut sections)?;
        let mut written = Vec::new();
        sections.for_each(|id, section| {
            if !section.slice().is_empty() {
                written.push((id.name(), section.slice().to_vec()));
            }
            Ok::<(), gimli::Error>(())
        })?;
        Ok(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot(function: &str, file: &str, line: u32) -> Spot {
        Spot {
            function: Some(function.into()),
            file: file.into(),
            line,
        }
    }

    /// What [`active`] finds in sections that were written here.
    struct Written(Vec<(&'static str, Vec<u8>)>);

    impl Written {
        fn section(&self, name: &str) -> &[u8] {
            let found = self.0.iter().find(|(known, _)| *known == name);
            found.map_or(&[][..], |(_, bytes)| bytes.as_slice())
        }

        fn at(&self, address: u64) -> Vec<Spot> {
            let load = |id: SectionId| -> Result<Slice<'_>, gimli::Error> {
                Ok(EndianSlice::new(self.section(id.name()), LittleEndian))
            };
            let context = addr2line::Context::from_dwarf(read::Dwarf::load(load).unwrap()).unwrap();
            active(&context, address).unwrap()
        }
    }

    /// What is active from each address on: calls inside calls, from changing lines, gaps, and a
    /// function that ends in the middle of another.
    fn example() -> Vec<(u64, Vec<Spot>)> {
        let main = |line| spot("main", "/plugin/src/lib.rs", line);
        let plan = |line| spot("plan", "/plugin/src/plan.rs", line);
        let next = |line| spot("next", "src/plan.rs", line);
        vec![
            (0x10, vec![main(3)]),
            (0x14, vec![main(4), plan(70)]),
            (0x18, vec![main(4), plan(71), next(9)]),
            (0x1a, vec![main(4), plan(72), next(9)]),
            (0x1c, vec![main(5), plan(70)]),
            (0x20, vec![]),
            (0x30, vec![main(8)]),
            (0x31, vec![plan(1)]),
            (0x9000, vec![plan(1), plan(2)]),
            (0x9001, vec![]),
        ]
    }

    fn write(spots: &[(u64, Vec<Spot>)]) -> Written {
        let mut writer = Writer::new();
        for (address, active) in spots {
            writer.change(*address, active.clone());
        }
        Written(writer.finish().unwrap())
    }

    #[test]
    fn what_is_written_is_what_a_report_reads() {
        let spots = example();
        let written = write(&spots);
        for pair in spots.windows(2) {
            let ((from, active), (to, _)) = (&pair[0], &pair[1]);
            for address in [*from, *to - 1] {
                assert!(written.at(address) == *active, "at {address:#x}");
            }
        }
        for outside in [0, 0xf, 0x9001, 0x10_0000] {
            assert!(written.at(outside).is_empty(), "at {outside:#x}");
        }
    }

    /// Shortened again, nothing is left to leave out, and nothing is lost.
    #[test]
    fn shortening_twice_is_shortening_once() {
        let spots = example();
        let once = write(&spots);
        let twice = Written(shorten(|name| once.section(name)).unwrap());
        for (address, active) in &spots {
            assert!(twice.at(*address) == *active, "at {address:#x}");
        }
        let bytes = |written: &Written| written.0.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        assert!(
            bytes(&twice) <= bytes(&once),
            "{} bytes, then {}",
            bytes(&once),
            bytes(&twice)
        );
    }

    #[test]
    fn a_module_without_line_tables_has_none_afterwards() {
        assert!(shorten(|_| &[]).unwrap().is_empty());
    }

    #[test]
    fn distinguishes_authors_from_library_and_crates() {
        for own in [
            "/veeksha-host/sdk/rust/src/agent.rs",
            "src/lib.rs",
            "/home/me/rustc-plan/lib.rs",
        ] {
            assert!(is_authors(own), "{own}");
        }
        for foreign in [
            "/rustc/library/core/src/slice/index.rs",
            "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/std/src/panicking.rs",
            "/crates/serde_json-1.0.154/src/de.rs",
            "/home/me/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/serde-1.0.0/src/de.rs",
        ] {
            assert!(!is_authors(foreign), "{foreign}");
        }
    }
}
