//! The schema of the configuration, generated from its types. Regenerate it with
//! `UPDATE_SCHEMA=1 cargo test -p veeksha-timed-synthetic-session schema`.

use crate::config::Config;

#[test]
fn schema_json_matches_the_types() {
    assert_eq!(
        veeksha_plugin::schema::check::<Config>(env!("CARGO_MANIFEST_DIR")),
        Ok(())
    );
}
