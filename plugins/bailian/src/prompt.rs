//! The text of a prompt: its hash blocks, or, without any, unique text.

use veeksha_plugin::flavor::Row;
use veeksha_plugin::{Error, LastBlock, Segment, blocks, seed_of};

/// The whole prompt of a row. Block ids mean the same in the whole file, and something else in the
/// next pass over it.
pub(crate) fn segments<R>(
    row: &Row<R>,
    ids: &[u64],
    block_size: u32,
    tokens: u32,
    epoch: u64,
) -> Result<Vec<Segment>, Error> {
    if tokens == 0 {
        return Err(row.error("`input_length` is 0: there is nothing to send"));
    }
    let block = |id| seed_of("bailian block", &[epoch, id]);
    let own = seed_of("bailian row", &[epoch, row.number]);
    blocks(ids, block_size, tokens, LastBlock::Partial, block, own)
        .map_err(|why| row.error(format!("`hash_ids` do not fit `input_length`: {why}")))
}
