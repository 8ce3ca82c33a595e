//! Bytes of an answer that wait to be decoded, with the reads that returned them.

use veeksha_endpoint::ReadStamp;
use veeksha_model::Nanos;

/// Bytes of an answer that wait to be decoded, with the reads that returned them.
#[derive(Debug, Default)]
pub(crate) struct UndecodedBytes {
    bytes: Vec<u8>,
    marks: Vec<ReadMark>,
}

/// End of the bytes of one read, with its stamp: 24 bytes for each read.
#[derive(Clone, Copy, Debug)]
struct ReadMark {
    at: Nanos,
    read: u64,
    lag: u32,
    end: u32,
}

impl ReadMark {
    fn stamp(self) -> ReadStamp {
        ReadStamp {
            at: self.at,
            lag: self.lag,
            read: self.read,
        }
    }
}

impl UndecodedBytes {
    /// Reserves `room` bytes at once: growing by doubling would copy the bytes repeatedly.
    pub(crate) fn reserve(&mut self, room: usize) {
        self.bytes.reserve(room);
        self.marks.reserve(room / 256);
    }

    /// Appends bytes. The limit that the owner enforces is far below the 4 GiB that a mark can
    /// represent.
    pub(crate) fn push(&mut self, stamp: ReadStamp, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let end = self.bytes.len() as u32;
        match self.marks.last_mut() {
            Some(mark) if mark.read == stamp.read => mark.end = end,
            _ => self.marks.push(ReadMark {
                at: stamp.at,
                read: stamp.read,
                lag: stamp.lag,
                end,
            }),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the bytes of each read, in order.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (ReadStamp, &[u8])> {
        let mut from = 0;
        self.marks.iter().map(move |mark| {
            let end = mark.end as usize;
            let piece = &self.bytes[from..end];
            from = end;
            (mark.stamp(), piece)
        })
    }

    /// Drops all bytes. Keeps a capacity of at most `room` bytes.
    pub(crate) fn clear(&mut self, room: usize) {
        self.bytes.clear();
        self.marks.clear();
        if self.bytes.capacity() > 2 * room {
            self.bytes.shrink_to(room);
        }
        self.marks.shrink_to(room / 128);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_with_their_reads() {
        let stamp = |read| ReadStamp {
            at: 10 * read,
            lag: read as u32,
            read,
        };
        let mut raw = UndecodedBytes::default();
        raw.push(stamp(3), b"ab");
        raw.push(stamp(3), b"c");
        raw.push(stamp(5), b"d");
        let pieces: Vec<_> = raw.pieces().collect();
        assert_eq!(pieces, [(stamp(3), &b"abc"[..]), (stamp(5), b"d")]);
        raw.clear(0);
        assert!(raw.is_empty() && raw.pieces().count() == 0);
    }
}
