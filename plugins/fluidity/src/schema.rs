//! `schema.json` is what the types of the configuration say. Written anew by
//! `UPDATE_SCHEMA=1 cargo test -p veeksha-fluidity schema`.

use crate::config::Config;

#[test]
fn schema_json_is_what_the_types_say() {
    assert_eq!(
        veeksha_plugin::schema::check::<Config>(env!("CARGO_MANIFEST_DIR")),
        Ok(())
    );
}
