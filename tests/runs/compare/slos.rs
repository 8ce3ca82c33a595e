//! Runs whose SLOs are missing or unknown: the comparison states that it leaves them out.

use super::compared;
use crate::simulated::{labelled, simulated};

#[test]
fn slos_that_one_side_lacks_are_reported_as_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = r#"{ type = "performance", slos = { "p99(ttfc) < 1h" } }"#;
    let run = |name: &str, asked: &str| {
        let within = folder.path().join(name);
        std::fs::create_dir_all(&within).expect("a folder");
        simulated(&within, "s.lua", &labelled(20, asked, ""), &[])
    };
    let (with, without) = (run("with", asked), run("without", ""));
    let remark = |sides: [&std::path::Path; 2]| {
        let candidate = compared(&sides, &[], 0)["candidates"][0].clone();
        let kinds = candidate["remark_kinds"].as_array().expect("kinds").iter();
        let place = kinds.into_iter().position(|kind| kind == "slos_left_out");
        place.map(|place| candidate["remarks"][place].as_str().expect("a text").to_owned())
    };
    assert_eq!(remark([&with, &with]), None);
    assert_eq!(remark([&without, &without]), None);
    let lacking = remark([&with, &without]).expect("a remark");
    assert!(lacking.contains("its scenario has no SLO"), "{lacking}");
    std::fs::write(without.join("config.yml"), "seed: [1,").expect("a damaged scenario");
    let damaged = remark([&without, &with]).expect("a remark");
    assert!(
        damaged.contains("config.yml is not a scenario of this version"),
        "{damaged}"
    );
    assert_eq!(damaged.lines().count(), 1, "{damaged}");
}
