//! `docs/contract.md` is generated from the comments and types of `wit/0.2.0`.

mod page;
mod types;

use std::path::Path;

use wit_parser::Resolve;

const CONTRACT: &str = "wit/0.2.0";
const PAGE: &str = "docs/contract.md";

#[test]
fn page_is_generated_from_the_contract() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(root.join(CONTRACT)).expect(CONTRACT);
    let generated = page::render(&resolve, package);
    let path = root.join(PAGE);
    if std::env::var_os("UPDATE_CONTRACT_PAGE").is_some() {
        std::fs::write(&path, &generated).expect(PAGE);
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "{PAGE} is stale; run `cargo xtask codegen`"
    );
}
