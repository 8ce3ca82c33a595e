//! Gates on the candidate's values.

use super::*;

/// A gate that can never fail is rejected, like such an objective.
#[test]
fn rejects_gates_that_can_never_hold() {
    let runs = runs();
    let sides: [&Path; 2] = [&runs.first, &runs.slower];
    for (gate, said) in [
        ("error_rate > 5", "did you mean `error_rate > 5%`?"),
        ("mean(cached_token_share) > 1", "is a share, from 0 to 1"),
        ("p99(ttfc) < 0", "`p99(ttfc)` is never below 0"),
    ] {
        let output = compare(&sides, &["--fail-if", gate]);
        assert_code(&output, 2);
        assert!(stderr(&output).contains(said), "{gate}: {}", stderr(&output));
    }
}

/// The rest of a damaged record decides nothing, on either side of a bound.
#[test]
fn bound_on_a_damaged_run_is_not_met() {
    let runs = runs();
    let folder = tempfile::tempdir().expect("a folder");
    let damaged = damaged(folder.path());
    for gate in [
        "error_rate > 1%",
        "p99(ttfc) > 100s",
        "requests_per_second < 0.001",
        "not (p99(ttfc) < 100s)",
    ] {
        let output = compare(&[&runs.first, &damaged], &["--fail-if", gate]);
        assert_code(&output, 3);
        assert!(
            stderr(&output).contains("which is not reliable: damaged is INVALID"),
            "{gate}: {}",
            stderr(&output)
        );
        // The bound does not apply to the baseline, and `--allow-invalid` accepts the remaining
        // record.
        assert_code(&compare(&[&damaged, &runs.slower], &["--fail-if", gate]), 0);
        let trusted = compare(&[&runs.first, &damaged], &["--allow-invalid", "--fail-if", gate]);
        assert_code(&trusted, 0);
    }
}
