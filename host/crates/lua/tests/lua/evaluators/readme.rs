//! Examples of the crate's README.

use super::*;

/// Returns the code block of the README that contains `words`.
fn of_the_readme(words: &str) -> String {
    let readme = include_str!("../../../../../../sdk/lua/README.md");
    let block = readme
        .split("```")
        .find(|block| block.starts_with("lua\n") && block.contains(words));
    block.unwrap().trim_start_matches("lua\n").to_owned()
}

#[test]
fn the_evaluator_of_the_readme_works() {
    let evaluators = of_the_readme("name = \"tiers\"");
    let folder = Folder::new(&format!(
        "return {{ session_generator = {{ type = 'lua', agent = function(session) end }},\n{evaluators} }}"
    ));
    let loaded = folder.load().unwrap();
    let document = loaded.documents.clone().single().unwrap();
    document.check(&Default::default()).unwrap();
    let tiers = loaded.evaluator("evaluators.0", None, folder.grants(1)).unwrap();
    // Chunks at 200, 250 and 450 ms, the first 100 ms after the dispatch.
    let made = open(&tiers).collector.observe(&[&request(1)]).unwrap();
    assert_eq!(made.len(), 1);
    assert!((made[0].value - 0.2).abs() < 1e-9);
    let late = |dispatched: Nanos, tier: &str| RequestRecord {
        dispatched_at: dispatched * MS,
        chunks: request(1).chunks[1..].to_vec(),
        labels: vec![("tier".to_owned(), tier.to_owned())],
        intended: 0,
        ..request(2)
    };
    // Up to 190 ms is always good; 500 ms is not good for gold. (The first chunk comes at 200 ms.)
    let slow = |tier: &str| RequestRecord {
        chunks: late(0, tier)
            .chunks
            .iter()
            .map(|chunk| Chunk {
                at: chunk.at + 300 * MS,
                ..*chunk
            })
            .collect(),
        ..late(0, tier)
    };
    let judged = tiers.request_check.unwrap().open().unwrap().judge(&[
        &late(10, "gold"),
        &slow("gold"),
        &slow("silver"),
    ]);
    assert_eq!(judged, Ok(vec![true, false, true]));
    let verdict = &tiers.slo_check.unwrap().check(Arc::new(Asked)).unwrap()[0];
    assert_eq!(
        (verdict.name.as_str(), verdict.met, verdict.threshold),
        ("gold never stalls", true, 0.2)
    );
}

#[test]
fn the_sweep_of_the_readme_is_one() {
    let folder = Folder::new(&of_the_readme("local cells = {}"));
    let cells = folder.load().unwrap().documents.cells().unwrap();
    assert_eq!(cells.len(), 6);
    for cell in cells {
        cell.document.check(&Default::default()).unwrap();
        assert_eq!(cell.settings.len(), 1);
    }
}
