//! Complete prompts of a session's requests: the new messages after the conversation that they
//! continue.

use std::collections::HashMap;

use veeksha_model::{HistoryMode, NodeId, RecordedAnswer, Request, Session};
use veeksha_prefix::{PrefixCensus, PrefixPiece, PromptPath, answer_pieces, pieces_of, tool_pieces};

/// The requests of a session as turns, each after the turn that it continues.
pub(crate) struct SessionTurns<'a> {
    pub(crate) turns: Vec<ConversationTurn<'a>>,
}

/// A request and its contribution to a conversation.
pub(crate) struct ConversationTurn<'a> {
    pub(crate) request: &'a Request,
    /// Index of the turn whose conversation it continues; `None` if it sends no history.
    pub(crate) continues: Option<usize>,
    /// The answers of the conversation that it sends.
    sends: SentAnswers,
    /// The turn whose functions the model may call, if it may call any.
    tools_of: Option<usize>,
    /// The functions that it states.
    tools: Vec<PrefixPiece>,
    /// Its new messages.
    pub(crate) new: Vec<PrefixPiece>,
    /// Placeholder for its live answer, which equals no other text.
    live_answer: PrefixPiece,
    /// Its recorded answer, if a later turn may send it: without its reasoning, and with it.
    recorded_answer: Option<[Vec<PrefixPiece>; 2]>,
}

/// The form in which a turn sends the answers before it.
#[derive(Clone, Copy, PartialEq)]
struct SentAnswers {
    mode: HistoryMode,
    keeps_reasoning: bool,
}

impl<'a> SessionTurns<'a> {
    /// Builds the turns of a session. `answers` counts the live answers of the whole trace; `count`
    /// tokenizes a text.
    pub(crate) fn of(session: &'a Session, answers: &mut u64, count: &dyn Fn(&str) -> u32) -> Self {
        let recorded = session
            .requests
            .iter()
            .any(|request| request.history_mode() == HistoryMode::Recorded);
        let mut places: HashMap<NodeId, usize> = HashMap::with_capacity(session.requests.len());
        let mut turns: Vec<ConversationTurn<'a>> = Vec::with_capacity(session.requests.len());
        for request in in_order(session) {
            let mode = request.history_mode();
            let continues = request.history_parent.filter(|_| mode != HistoryMode::Fresh);
            let answer = request.replay.as_ref().filter(|_| recorded);
            let answer = answer.and_then(|replay| replay.answer.as_ref());
            let pieces = |answer: &RecordedAnswer| {
                [false, true].map(|keeps_reasoning| answer_pieces(answer, keeps_reasoning, count))
            };
            let continues = continues.and_then(|parent| places.get(&parent).copied());
            let inherited = continues.and_then(|parent| turns[parent].tools_of);
            let tools = request.tools.as_ref();
            places.insert(request.node, turns.len());
            turns.push(ConversationTurn {
                request,
                continues,
                sends: SentAnswers {
                    mode,
                    keeps_reasoning: request.keep_reasoning,
                },
                tools_of: tools.map(|_| turns.len()).or(inherited),
                tools: tools.map_or(Vec::new(), |tools| tool_pieces(tools, count)),
                new: pieces_of(&request.messages, count),
                live_answer: unknown(output_tokens(request, count).unwrap_or(0), answers),
                recorded_answer: answer.map(pieces),
            });
        }
        SessionTurns { turns }
    }

    /// Returns the pieces of the whole prompt of a turn.
    pub(crate) fn prompt(&self, place: usize) -> Vec<PrefixPiece> {
        let sends = self.turns[place].sends;
        let mut line = vec![place];
        while let Some(before) = self.turns[line[line.len() - 1]].continues {
            line.push(before);
        }
        let mut prompt = self.tools(place).to_vec();
        for (number, place) in line.iter().rev().enumerate() {
            let turn = &self.turns[*place];
            prompt.extend(&turn.new);
            if number + 1 < line.len() {
                prompt.extend(turn.answer(sends));
            }
        }
        prompt
    }

    /// Returns the functions that the model may call in the answer to a turn.
    fn tools(&self, place: usize) -> &[PrefixPiece] {
        let stated = self.turns[place].tools_of;
        stated.map_or(&[], |place| &self.turns[place].tools)
    }

    /// Returns the whole prompt of a turn as text unique to the session: a piece for each turn of
    /// the conversation and each answer.
    pub(crate) fn prompt_of_its_own(&self, place: usize, session: u64) -> Vec<PrefixPiece> {
        let (first, sends) = (place, self.turns[place].sends);
        let mut prompt = Vec::new();
        let own = |place: usize, tokens, part| PrefixPiece {
            identity: spread(
                session
                    .wrapping_mul(1 << 20)
                    .wrapping_add(2 * place as u64 + part),
            ),
            tokens,
        };
        let mut next = Some(place);
        while let Some(place) = next {
            let turn = &self.turns[place];
            if !prompt.is_empty() {
                prompt.push(own(place, tokens(turn.answer(sends)), 1));
            }
            prompt.push(own(place, tokens(&turn.new), 0));
            next = turn.continues;
        }
        if let Some(stated) = self.turns[first].tools_of {
            prompt.push(own(self.turns.len() + stated, tokens(self.tools(first)), 0));
        }
        prompt.reverse();
        prompt
    }

    /// Counts the tokens of every turn's whole prompt by its pieces, and adds the prompts to a
    /// census.
    pub(crate) fn count_prompts(&self, census: &mut PrefixCensus) -> Vec<u64> {
        let mut seen: Vec<CountedPrompt> = Vec::with_capacity(self.turns.len());
        for (place, turn) in self.turns.iter().enumerate() {
            let before = turn.continues.map(|place| (place, seen[place]));
            let now = match before {
                // Nearly always all of a conversation is sent in one form, and only the new part
                // has to be added.
                Some((parent, before))
                    if before.sends.is_none_or(|sends| sends == turn.sends) && turn.tools.is_empty() =>
                {
                    before.then(self.turns[parent].answer(turn.sends), turn, census)
                }
                _ => {
                    let prompt = self.prompt(place);
                    CountedPrompt {
                        tokens: length(&prompt),
                        path: census.extend(PromptPath::START, &prompt),
                        sends: turn.continues.map(|_| turn.sends),
                    }
                }
            };
            seen.push(now);
        }
        seen.into_iter().map(|seen| seen.tokens).collect()
    }
}

/// A prompt that was added to the census.
#[derive(Clone, Copy)]
struct CountedPrompt {
    tokens: u64,
    path: PromptPath,
    /// The form of its answers; `None` if it contains none.
    sends: Option<SentAnswers>,
}

impl CountedPrompt {
    fn then(
        self,
        answer: &[PrefixPiece],
        turn: &ConversationTurn<'_>,
        census: &mut PrefixCensus,
    ) -> CountedPrompt {
        let path = census.extend(self.path, answer);
        CountedPrompt {
            tokens: self.tokens + length(answer) + length(&turn.new),
            path: census.extend(path, &turn.new),
            sends: Some(turn.sends),
        }
    }
}

impl ConversationTurn<'_> {
    fn answer(&self, sends: SentAnswers) -> &[PrefixPiece] {
        match &self.recorded_answer {
            Some(recorded) if sends.mode == HistoryMode::Recorded => {
                &recorded[usize::from(sends.keeps_reasoning)]
            }
            _ => std::slice::from_ref(&self.live_answer),
        }
    }
}

/// Counts the tokens of pieces.
pub(crate) fn length(pieces: &[PrefixPiece]) -> u64 {
    pieces.iter().map(|piece| u64::from(piece.tokens)).sum()
}

/// Returns the tokens of a request's answer as far as they are known: as recorded, as requested, or
/// counted in the recorded text.
pub(crate) fn output_tokens(request: &Request, count: &dyn Fn(&str) -> u32) -> Option<u32> {
    let replay = request.replay.as_deref();
    let answered = || {
        let answer = replay?.answer.as_ref()?;
        u32::try_from(length(&answer_pieces(answer, true, count))).ok()
    };
    replay
        .and_then(|replay| replay.recorded.output_tokens)
        .or(request.output.target_tokens)
        .or_else(answered)
}

/// Counts the tokens of pieces that form one.
fn tokens(pieces: &[PrefixPiece]) -> u32 {
    u32::try_from(length(pieces)).unwrap_or(u32::MAX)
}

fn unknown(tokens: u32, answers: &mut u64) -> PrefixPiece {
    *answers += 1;
    PrefixPiece {
        identity: spread(*answers),
        tokens,
    }
}

/// Spreads a number over all bits, so that it equals the identity of a text only by chance.
fn spread(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bf0_3635_0c1f_72d9
}

/// Sorts requests after their history parents, otherwise in the order of the session. (The graph is
/// known to be acyclic; requests on a cycle would be left out.)
fn in_order(session: &Session) -> Vec<&Request> {
    let requests = &session.requests;
    let position: HashMap<NodeId, usize> = requests.iter().map(|request| request.node).zip(0..).collect();
    let parent = |place: usize| {
        requests[place]
            .history_parent
            .and_then(|parent| position.get(&parent).copied())
    };
    if (0..requests.len()).all(|place| parent(place).is_none_or(|parent| parent < place)) {
        return requests.iter().collect();
    }
    let mut order = Vec::with_capacity(requests.len());
    let mut done = vec![false; requests.len()];
    for begin in 0..requests.len() {
        let mut line = Vec::new();
        let mut next = Some(begin).filter(|place| !done[*place]);
        while let Some(place) = next
            && line.len() <= requests.len()
        {
            line.push(place);
            next = parent(place).filter(|place| !done[*place]);
        }
        if line.len() <= requests.len() {
            for place in line.into_iter().rev() {
                done[place] = true;
                order.push(&requests[place]);
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use veeksha_model::Seed;
    use veeksha_prefix::PrefixLedger;

    use super::*;
    use crate::fixture::{recorded_answer, request, session, synthetic, user};

    fn text_formats(text: &str) -> u32 {
        text.split_whitespace().count() as u32
    }

    #[test]
    fn prompt_is_history_and_new_messages() {
        // 0 (100 tokens, answer 10) <- 1 (20, answer 5) <- 2 (7); the nodes are in another order.
        let mut nodes = vec![
            request(2, Some(1), 7),
            request(0, None, 100),
            request(1, Some(0), 20),
        ];
        nodes[1].output.target_tokens = Some(10);
        nodes[2].output.target_tokens = Some(5);
        let session = session(nodes);
        let conversation = SessionTurns::of(&session, &mut 0, &text_formats);
        let mut census = PrefixCensus::new(1000);
        assert_eq!(conversation.count_prompts(&mut census), [100, 130, 142]);
        assert_eq!(length(&conversation.prompt(2)), 142);
        // Everything but the first prompt and the additions is a hit: 100 + 30 + 12 new tokens.
        assert_eq!(census.new_tokens(), 142);
    }

    #[test]
    fn each_request_selects_its_history_mode() {
        // Recorded answers of 3 tokens where 10 were generated: 0 <- 1 live, 1 <- 2 recorded, 1 <-
        // 3 fresh, 3 <- 4 recorded.
        let mut nodes: Vec<_> = [None, Some(0), Some(1), Some(1), Some(3)]
            .into_iter()
            .zip(0..)
            .map(|(parent, node)| recorded_answer(request(node, parent, 100), "so it is", 10))
            .collect();
        let modes = [
            HistoryMode::Live,
            HistoryMode::Live,
            HistoryMode::Recorded,
            HistoryMode::Fresh,
            HistoryMode::Recorded,
        ];
        for (node, mode) in nodes.iter_mut().zip(modes) {
            node.replay.as_mut().unwrap().history = mode;
        }
        let session = session(nodes);
        let conversation = SessionTurns::of(&session, &mut 0, &text_formats);
        let tokens = conversation.count_prompts(&mut PrefixCensus::new(1000));
        assert_eq!(tokens, [100, 210, 306, 100, 203]);
        for (place, tokens) in tokens.into_iter().enumerate() {
            assert_eq!(length(&conversation.prompt(place)), tokens);
        }
    }

    #[test]
    fn only_recorded_answers_are_equal_text() {
        let new_tokens = |mode| {
            let mut census = PrefixCensus::new(1000);
            let mut answers = 0;
            for _ in 0..2 {
                let mut nodes = vec![
                    recorded_answer(request(0, None, 100), "so it is", 3),
                    recorded_answer(request(1, Some(0), 50), "so it is", 3),
                ];
                nodes[1].replay.as_mut().unwrap().history = mode;
                SessionTurns::of(&session(nodes), &mut answers, &text_formats).count_prompts(&mut census);
            }
            census.new_tokens()
        };
        assert_eq!(new_tokens(HistoryMode::Recorded), 153);
        assert_eq!(new_tokens(HistoryMode::Live), 100 + 2 * 53);
        assert_eq!(new_tokens(HistoryMode::Fresh), 150);
        // The requests of `fixture` have the seed of their node.
        assert_ne!(Seed::from(0), Seed::from(1));
    }

    #[test]
    fn output_tokens_use_the_best_source() {
        let plain = request(0, None, 1);
        assert_eq!(output_tokens(&plain, &text_formats), None);
        let mut asked = plain;
        asked.output.target_tokens = Some(9);
        assert_eq!(output_tokens(&asked, &text_formats), Some(9));
        let mut answered = recorded_answer(asked, "so it is", 12);
        assert_eq!(output_tokens(&answered, &text_formats), Some(12));
        answered.output.target_tokens = None;
        answered.replay.as_mut().unwrap().recorded.output_tokens = None;
        assert_eq!(output_tokens(&answered, &text_formats), Some(3));
    }

    /// Computes the prompt of a node by the definition of the history modes, node by node.
    fn naive(session: &Session, node: usize, mode: HistoryMode) -> Vec<(String, u64)> {
        let request = &session.requests[node];
        let mut message = Vec::new();
        if let Some(NodeId(parent)) = request
            .history_parent
            .filter(|_| request.history_mode() != HistoryMode::Fresh)
        {
            let parent = parent as usize;
            message = naive(session, parent, mode);
            let answer = session.requests[parent]
                .replay
                .as_ref()
                .and_then(|replay| replay.answer.as_ref());
            message.push(match answer {
                Some(_) if mode == HistoryMode::Recorded => ("recorded".into(), 3),
                _ => (format!("answer of {parent}"), 10),
            });
        }
        message.push((format!("messages of {}", node % 3), 20 + node as u64 % 3));
        message
    }

    proptest! {
        /// Random trees with random modes: prompt lengths follow the definition, and common
        /// prefixes are the equal beginnings.
        #[test]
        fn prompts_follow_the_history_modes(
            nodes in prop::collection::vec((0usize..8, 0u8..4, any::<bool>()), 1..8),
        ) {
            let requests = nodes.iter().enumerate().map(|(place, (parent, mode, answered))| {
                let parent = (place > 0 && *mode < 3).then(|| (parent % place.max(1)) as u32);
                let mut one = request(place as u32, parent, 1);
                one.messages = vec![user(vec![synthetic(place as u64 % 3, 20 + place as u32 % 3)])];
                one.output.target_tokens = Some(10);
                if *answered {
                    one = recorded_answer(one, "so it is", 10);
                }
                one.replay.get_or_insert_default().history =
                    [HistoryMode::Live, HistoryMode::Recorded, HistoryMode::Fresh, HistoryMode::Live][*mode as usize];
                one
            });
            let session = session(requests.collect());
            let conversation = SessionTurns::of(&session, &mut 0, &text_formats);
            let mut census = PrefixCensus::new(100_000);
            let length_formats = conversation.count_prompts(&mut census);
            let mut ledger = PrefixLedger::new();
            let mut message: Vec<Vec<(String, u64)>> = Vec::new();
            let (mut hits, mut all) = (0, 0);
            for (place, tokens) in length_formats.into_iter().enumerate() {
                let naive = naive(&session, place, session.requests[place].history_mode());
                prop_assert_eq!(tokens, naive.iter().map(|(_, tokens)| tokens).sum::<u64>());
                let prompt = conversation.prompt(place);
                prop_assert_eq!(length(&prompt), tokens);
                let common = |other: &Vec<(String, u64)>| -> u64 {
                    other.iter().zip(&naive).take_while(|(a, b)| a == b).map(|(part, _)| part.1).sum()
                };
                let expected = message.iter().map(common).max().unwrap_or(0);
                prop_assert_eq!(ledger.see(&prompt), expected);
                hits += expected;
                all += tokens;
                message.push(naive);
            }
            prop_assert_eq!(all - census.new_tokens(), hits);
        }
    }
}
