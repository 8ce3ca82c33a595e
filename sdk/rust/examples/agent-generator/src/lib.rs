//! Drafts a text, lets two reviewers read it at once, and revises it until both are brief.

use veeksha_plugin::{AgentSession, AsyncAgent, Error, Plugin, Request, synthetic};

#[derive(Clone, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    /// Maximum tokens of a draft.
    draft_tokens: u32,
    /// Maximum number of revisions.
    revisions: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            draft_tokens: 200,
            revisions: 2,
        }
    }
}

struct DraftAndReview;

impl Plugin for DraftAndReview {
    type Config = Config;
    const NAME: &'static str = "draft_and_review";
    const VERSION: &'static str = env!("CARGO_PKG_VERSION");
    const SUMMARY: &'static str = "drafts a text, has it reviewed twice, and revises it";
}

impl AsyncAgent for DraftAndReview {
    async fn run(config: Config, session: AgentSession) -> Result<(), Error> {
        let task = synthetic(
            session.index() + 2,
            session.random().stream("task").between(50, 150),
        );
        let first = Request::default().system(synthetic(1, 300)).user(task);
        let Ok(mut draft) = session
            .request(first.output_at_most(config.draft_tokens))
            .await
        else {
            return Ok(());
        };
        for revision in 1..=config.revisions {
            let reviews = ["Check the facts.", "Check the style."].map(|question| {
                Request::default()
                    .history(draft.node)
                    .user(question)
                    .output_at_most(40)
                    .label("step", "review")
            });
            let reviews = session.parallel(reviews).await;
            // A review that was cut off at its length had much to say.
            if reviews.iter().all(|review| {
                review
                    .as_ref()
                    .is_ok_and(|review| review.finish_reason == "stop")
            }) {
                break;
            }
            veeksha_plugin::debug!("session {}: revision {revision}", session.index());
            let next = Request::default()
                .history(draft.node)
                .user("Revise the draft.")
                .label("step", "revise");
            match session
                .request(next.output_at_most(config.draft_tokens))
                .await
            {
                Ok(revised) => draft = revised,
                Err(_) => break,
            }
        }
        Ok(())
    }
}

veeksha_plugin::export_async_agent!(DraftAndReview);
