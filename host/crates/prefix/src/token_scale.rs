//! The position of a token of the host's tokenizer among those of a server.

/// The relation of positions in a prompt by the host's tokenizer to those by the server's, which
/// also counts its chat template. It is known at the ends of prompts that the server counted, and
/// proportional between them. Positions are rounded down, so that parts add up to the whole.
#[derive(Clone, Debug)]
pub(crate) struct TokenScale {
    /// (position by the host, position by the server), both ascending; the last is the end.
    fixed: Vec<(u64, u32)>,
}

impl TokenScale {
    /// Relates the length of a prompt by the host to the one by the server.
    pub(crate) fn new(host: u64, server: u32) -> Self {
        TokenScale {
            fixed: vec![(host, server)],
        }
    }

    /// Returns true if both count the same tokens.
    pub(crate) fn is_equal(&self) -> bool {
        self.fixed
            .iter()
            .all(|(host, server)| *host == u64::from(*server))
    }

    /// Adds a known position, behind those that were added before. One that contradicts another is
    /// left out.
    pub(crate) fn fix(&mut self, host: u64, server: u32) {
        let last = self.fixed.len() - 1;
        let before = last.checked_sub(1).map_or((0, 0), |place| self.fixed[place]);
        let end = self.fixed[last];
        if (before.0..end.0).contains(&host) && (before.1..=end.1).contains(&server) {
            self.fixed.insert(last, (host, server));
        }
    }

    /// Returns the server's position of a position by the host.
    pub(crate) fn tokens_at(&self, host: u64) -> u32 {
        let mut from = (0, 0);
        for &(end, tokens) in &self.fixed {
            if host < end {
                let part = u128::from(host - from.0) * u128::from(tokens - from.1);
                // A part of a number of 32 bits.
                return from.1 + (part / u128::from(end - from.0)) as u32;
            }
            from = (end, tokens);
        }
        from.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_between_known_ones_are_proportional() {
        let mut scale = TokenScale::new(200, 260);
        assert_eq!(scale.tokens_at(100), 130);
        scale.fix(100, 110);
        assert_eq!(
            [0, 50, 100, 150, 200].map(|at| scale.tokens_at(at)),
            [0, 55, 110, 185, 260]
        );
        // Neither before a known position nor behind the end.
        scale.fix(50, 20);
        scale.fix(150, 261);
        assert_eq!(scale.tokens_at(100), 110);
        assert_eq!(scale.tokens_at(199), 258);
    }

    #[test]
    fn prompt_without_text_has_its_tokens_at_the_end() {
        let scale = TokenScale::new(0, 7);
        assert_eq!(scale.tokens_at(0), 7);
        assert!(!scale.is_equal());
    }
}
