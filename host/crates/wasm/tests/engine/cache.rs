//! The compile cache: used if it is valid, ignored and rewritten if it is not, optional if it is
//! unavailable.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use veeksha_wasm::{EngineOptions, PluginComponent, PluginEngine};

use crate::support::{fixture, grants, planned};

fn engine(cache: &Path) -> PluginEngine {
    PluginEngine::new(EngineOptions {
        cache_dir: Some(cache.into()),
        ..EngineOptions::default()
    })
    .unwrap()
}

/// Loads the fixture with a new engine, like another process, and checks that it works.
fn load(cache: &Path) -> PluginComponent {
    let plugin = engine(cache).load("planned", &fixture("planned")).unwrap();
    assert_eq!(planned(&plugin, "{}", grants()).sessions(0, 2).unwrap().len(), 2);
    plugin
}

fn files(cache: &Path, extension: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(cache.join("components"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    all.filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect()
}

fn compiled(cache: &Path) -> PathBuf {
    let found = files(cache, "cwasm");
    assert_eq!(found.len(), 1);
    found[0].clone()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_second_process_does_not_compile() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("not/yet/there");
    let first = load(&cache);
    assert!(!first.compiled_from_cache());
    let second = load(&cache);
    assert!(second.compiled_from_cache());
    assert_eq!(first.describe().unwrap(), second.describe().unwrap());
    let name = compiled(&cache).file_name().unwrap().to_str().unwrap().to_owned();
    assert!(name.starts_with(first.digest()), "{name}");
}

#[test]
fn everything_in_it_is_for_its_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    load(folder.path());
    let components = folder.path().join("components");
    assert_eq!(mode(&components), 0o700);
    let entries: Vec<PathBuf> = fs::read_dir(&components)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(
        entries.len(),
        3,
        "the key, the machine code and the descriptor: {entries:?}"
    );
    for path in entries {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

/// Each kind of damage: the file is not used, the plugin works, and the next process has a valid
/// file again.
#[test]
fn a_file_that_is_not_ours_is_compiled_over() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path();
    load(cache);
    let good = fs::read(compiled(cache)).unwrap();
    let altered = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        bytes
    };
    let damages: [(&str, Vec<u8>); 7] = [
        ("altered seal", altered(0)),
        ("altered content", altered(good.len() / 2)),
        ("cut short", good[..good.len() - 1].to_vec()),
        ("cut within the seal", good[..16].to_vec()),
        ("empty", Vec::new()),
        ("longer", [&good[..], b"x"].concat()),
        ("no seal, as another program would write it", good[32..].to_vec()),
    ];
    for (what, bytes) in damages {
        fs::write(compiled(cache), bytes).unwrap();
        assert!(!load(cache).compiled_from_cache(), "{what}");
        assert_eq!(fs::read(compiled(cache)).unwrap(), good, "{what}: written again");
        assert!(load(cache).compiled_from_cache(), "{what}");
    }
}

#[test]
fn a_file_under_another_name_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path();
    let engine = engine(cache);
    engine.load("agent", &fixture("agent")).unwrap();
    let foreign = fs::read(compiled(cache)).unwrap();
    load(cache);
    for path in files(cache, "cwasm") {
        fs::write(path, &foreign).unwrap();
    }
    let plugin = load(cache);
    assert!(!plugin.compiled_from_cache());
    assert!(plugin.kinds().session_generator);
}

#[test]
fn a_file_that_others_can_write_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    load(folder.path());
    fs::set_permissions(compiled(folder.path()), Permissions::from_mode(0o666)).unwrap();
    assert!(!load(folder.path()).compiled_from_cache());
    assert_eq!(mode(&compiled(folder.path())), 0o600);
    assert!(load(folder.path()).compiled_from_cache());
}

#[test]
fn a_link_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    load(folder.path());
    let file = compiled(folder.path());
    let elsewhere = folder.path().join("elsewhere");
    fs::rename(&file, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    assert!(!load(folder.path()).compiled_from_cache());
}

#[test]
fn another_key_opens_nothing() {
    let folder = tempfile::tempdir().unwrap();
    load(folder.path());
    let key = folder.path().join("components/key");
    assert_eq!(fs::metadata(&key).unwrap().len(), 32);
    fs::remove_file(&key).unwrap();
    assert!(!load(folder.path()).compiled_from_cache());
    assert!(load(folder.path()).compiled_from_cache());
}

#[test]
fn two_caches_have_two_keys() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    load(one.path());
    load(other.path());
    let key = |folder: &tempfile::TempDir| fs::read(folder.path().join("components/key")).unwrap();
    assert_ne!(key(&one), key(&other));
}

/// Cases without a cache: the plugin works, and the reason is reported once.
#[test]
fn a_folder_that_cannot_be_trusted_is_done_without() {
    let open_to_all = tempfile::tempdir().unwrap();
    fs::create_dir(open_to_all.path().join("components")).unwrap();
    fs::set_permissions(
        open_to_all.path().join("components"),
        Permissions::from_mode(0o755),
    )
    .unwrap();

    let a_file = tempfile::tempdir().unwrap();
    fs::write(a_file.path().join("components"), "").unwrap();

    let bad_key = tempfile::tempdir().unwrap();
    load(bad_key.path());
    fs::write(bad_key.path().join("components/key"), "short").unwrap();

    let open_key = tempfile::tempdir().unwrap();
    load(open_key.path());
    fs::set_permissions(
        open_key.path().join("components/key"),
        Permissions::from_mode(0o644),
    )
    .unwrap();

    let cases = [
        (
            &open_to_all,
            "can be opened by other users (mode 755); make it private with `chmod 700`",
        ),
        (&a_file, "cannot make or open the folder"),
        (&bad_key, "cannot be used; remove it to have a new one made"),
        (&open_key, "cannot be used; remove it to have a new one made"),
    ];
    for (folder, note) in cases {
        let engine = engine(folder.path());
        let said = engine.cache_note().expect(note).to_owned();
        assert!(said.starts_with("compiled plugins are not cached: "), "{said}");
        assert!(said.contains(note), "{said}");
        let plugin = engine.load("planned", &fixture("planned")).unwrap();
        assert!(!plugin.compiled_from_cache());
        assert_eq!(plugin.describe().unwrap().name, "planned");
        assert_eq!(engine.cache_note(), Some(said.as_str()));
    }
}

#[test]
fn a_good_cache_has_no_note_and_no_cache_has_none_either() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(folder.path());
    engine
        .load("planned", &fixture("planned"))
        .unwrap()
        .describe()
        .unwrap();
    assert_eq!(engine.cache_note(), None);
    let without = PluginEngine::new(EngineOptions::default()).unwrap();
    assert_eq!(without.cache_note(), None);
}

#[test]
fn a_poisoned_description_is_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let before = load(folder.path()).describe().unwrap();
    let kept = files(folder.path(), "describe");
    assert_eq!(kept.len(), 1);
    let good = fs::read(&kept[0]).unwrap();
    let text = String::from_utf8_lossy(&good[32..]).replace("chains", "chairs");
    fs::write(&kept[0], [&good[..32], text.as_bytes()].concat()).unwrap();
    let plugin = load(folder.path());
    assert!(plugin.compiled_from_cache());
    assert_eq!(plugin.describe().unwrap(), before);
    assert_eq!(fs::read(&kept[0]).unwrap(), good);
}

/// Many processes may start concurrently: each sees a complete key and complete files at any time.
#[test]
fn a_race_for_the_key_has_one_winner() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let engine = engine(folder.path());
                assert_eq!(engine.cache_note(), None);
                engine.load("kindless", &fixture("kindless")).err().unwrap();
                engine
                    .load("agent", &fixture("agent"))
                    .unwrap()
                    .describe()
                    .unwrap();
            });
        }
    });
    let engine = engine(folder.path());
    assert!(
        engine
            .load("agent", &fixture("agent"))
            .unwrap()
            .compiled_from_cache()
    );
    assert!(files(folder.path(), "tmp").is_empty());
}
