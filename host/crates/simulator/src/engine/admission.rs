//! From a request to a sequence: limits, length, faults.

use veeksha_stats::RandomStream;

use super::Engine;
use super::faults::{ArrivalFault, FaultDraws, status_message};
use super::kv::Holding;
use super::messages::{EngineRequest, FinishReason};
use super::sequence::{Sequence, StepWork};

/// Shape of the gamma distribution of drawn lengths: right-skewed, as answer lengths are, with a
/// coefficient of variation of 0.71.
const LENGTH_SHAPE: f64 = 2.0;

impl Engine {
    /// Creates the sequence of a request; `None` if the connection is refused; a status and a
    /// message if the request is rejected.
    pub(super) fn accept(
        &self,
        ordinal: u64,
        request: EngineRequest,
    ) -> Result<Option<Sequence>, (u16, String)> {
        let fate = FaultDraws::of(self.seed, ordinal);
        match fate.on_arrival(&self.profile.faults) {
            ArrivalFault::Open => {}
            ArrivalFault::Refuse => return Ok(None),
            ArrivalFault::Status(status) => return Err((status, status_message(status).into())),
        }
        let (length, reason) = self.length(ordinal, &request).map_err(|message| (400, message))?;
        let prompt = request.prompt_tokens;
        let mut blocks = request.blocks;
        blocks.truncate((prompt / self.profile.block_size.max(1)) as usize);
        Ok(Some(Sequence {
            id: request.id,
            prompt,
            blocks,
            length,
            reason,
            generated: 0,
            computed: 0,
            target: prompt,
            cached: None,
            holding: Holding::default(),
            published: 0,
            fault: fate.inside(&self.profile.faults, length),
            stalled_until: 0,
            work: StepWork::Nothing,
        }))
    }

    /// Returns the number of tokens of the answer, and its finish reason.
    fn length(&self, ordinal: u64, request: &EngineRequest) -> Result<(u32, FinishReason), String> {
        let (context, prompt) = (self.profile.max_context, request.prompt_tokens);
        if prompt == 0 {
            return Err("the prompt is empty: it needs at least one token".into());
        }
        let room = context.checked_sub(prompt).filter(|room| *room > 0).ok_or_else(|| {
            format!(
                "the model's maximum context length is {context} tokens, but the prompt has {prompt} and at least one is \
                 to be generated: shorten the prompt"
            )
        })?;
        let limit = match request.max_tokens {
            None => room,
            Some(0) => return Err("max_tokens must be at least 1".into()),
            Some(max) if max > room => {
                return Err(format!(
                    "the model's maximum context length is {context} tokens, but the prompt has {prompt} and {max} are to \
                     be generated: shorten the prompt or lower max_tokens"
                ));
            }
            Some(max) => max,
        };
        if request.exact || self.profile.full_length {
            return Ok((limit, FinishReason::Length));
        }
        let mut draws = RandomStream::new(self.seed, ordinal, "simulator length").draws();
        let drawn = (self.profile.mean_output_tokens * draws.gamma(LENGTH_SHAPE) / LENGTH_SHAPE)
            .ceil()
            .max(1.0) as u32;
        // At the limit the model has not ended by itself.
        Ok(if drawn < limit {
            (drawn, FinishReason::Stop)
        } else {
            (limit, FinishReason::Length)
        })
    }
}
