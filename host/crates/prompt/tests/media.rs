//! Media: the URL for each source, and refused sources.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::collections::HashSet;
use std::path::Path;

use base64::Engine;
use veeksha_model::{MediaKind, Message, NodeId, Request, Role, Segment};
use veeksha_prompt::{MAX_MEDIA_BYTES, Materializer, MediaStore, PromptError, Tokenizer};

fn materializer(store: MediaStore) -> Materializer {
    Materializer::new(Tokenizer::embedded().unwrap())
        .unwrap()
        .with_media(store)
}

fn request(kind: MediaKind, source: &str) -> Request {
    Request {
        node: NodeId(3),
        messages: vec![Message::new(
            Role::User,
            vec![
                Segment::Text("look".into()),
                Segment::Media {
                    kind,
                    source: source.into(),
                },
            ],
        )],
        ..Request::default()
    }
}

fn url(materializer: &Materializer, kind: MediaKind, source: &str) -> String {
    materializer.check(&request(kind, source)).unwrap();
    let prepared = materializer.prepare(request(kind, source)).unwrap();
    let [(made, url)] = &prepared.messages[0].media[..] else {
        panic!("one medium expected")
    };
    assert_eq!(*made, kind);
    assert_eq!(
        (&*prepared.messages[0].text, prepared.prompt_tokens),
        ("look", prepared.target_tokens)
    );
    url.to_string()
}

fn refusal(materializer: &Materializer, kind: MediaKind, source: &str) -> String {
    let checked = materializer.check(&request(kind, source)).unwrap_err();
    let error = materializer.prepare(request(kind, source)).unwrap_err();
    assert_eq!(checked.to_string(), error.to_string());
    assert!(
        matches!(error, PromptError::Media { node: NodeId(3), .. }),
        "{error}"
    );
    error.to_string()
}

fn decoded(url: &str, mime: &str) -> Vec<u8> {
    let data = url
        .strip_prefix(&format!("data:{mime};base64,"))
        .unwrap_or_else(|| panic!("{url:.60}"));
    base64::engine::general_purpose::STANDARD.decode(data).unwrap()
}

use MediaKind::{Audio, Image, Video};

#[test]
fn passes_urls_unchanged() {
    let none = materializer(MediaStore::default());
    for source in [
        "https://h/cat.png?x=1",
        "HTTP://h/a",
        "data:image/png;base64,AAAA",
        "data:text/plain,x",
    ] {
        assert_eq!(url(&none, Image, source), source);
        assert_eq!(url(&none, Video, source), source);
    }
}

/// The first bytes of real files of each format.
const FILES: [(&str, MediaKind, &str, &[u8]); 14] = [
    ("a.png", Image, "image/png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
    ("a.jpg", Image, "image/jpeg", b"\xff\xd8\xff\xe0\0\x10JFIF\0"),
    ("a.gif", Image, "image/gif", b"GIF89a\x01\0\x01\0"),
    ("a.webp", Image, "image/webp", b"RIFF\x24\0\0\0WEBPVP8 "),
    ("a.wav", Audio, "audio/wav", b"RIFF\x24\0\0\0WAVEfmt "),
    ("tagged.mp3", Audio, "audio/mpeg", b"ID3\x04\0\0\0\0\0\0"),
    ("bare.mp3", Audio, "audio/mpeg", b"\xff\xfb\x90\x64\0"),
    ("a.flac", Audio, "audio/flac", b"fLaC\0\0\0\x22"),
    ("a.ogg", Audio, "audio/ogg", b"OggS\0\x02\0\0"),
    ("a.m4a", Audio, "audio/mp4", b"\0\0\0\x20ftypM4A \0\0\0\0"),
    ("a.mp4", Video, "video/mp4", b"\0\0\0\x20ftypisom\0\0\x02\0"),
    (
        "a.webm",
        Video,
        "video/webm",
        b"\x1a\x45\xdf\xa3\x9fB\x86\x81\x01",
    ),
    // The contents take precedence over the extension; the extension is used for unknown contents.
    ("wrong.jpg", Image, "image/png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
    ("short.webp", Image, "image/webp", b"RIFF"),
];

#[test]
fn granted_files_become_data_urls() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    for (name, _, _, bytes) in FILES {
        std::fs::write(folder.path().join("sub").join(name), bytes).unwrap();
    }
    let by_folder = materializer(MediaStore::default().with_folder(folder.path().into()).unwrap());
    let granted = FILES.map(|(name, ..)| (name.to_string(), folder.path().join("sub").join(name)));
    let by_name = materializer(MediaStore::default().with_files(granted));
    for (name, kind, mime, bytes) in FILES {
        for _ in 0..3 {
            assert_eq!(
                decoded(&url(&by_folder, kind, &format!("sub/{name}")), mime),
                bytes
            );
            assert_eq!(decoded(&url(&by_name, kind, name), mime), bytes);
        }
    }
    // Containers that may hold sound alone.
    assert!(url(&by_name, Audio, "a.mp4").starts_with("data:audio/mp4;"));
    assert!(url(&by_name, Audio, "a.webm").starts_with("data:audio/webm;"));
}

fn outside_of(folder: &Path) -> Materializer {
    materializer(MediaStore::default().with_folder(folder.into()).unwrap())
}

#[test]
fn names_cannot_escape_the_folder() {
    let all = tempfile::tempdir().unwrap();
    let folder = all.path().join("media");
    std::fs::create_dir(&folder).unwrap();
    let secret = all.path().join("secret.png");
    std::fs::write(&secret, FILES[0].3).unwrap();
    std::fs::write(folder.join("a.png"), FILES[0].3).unwrap();
    let store = outside_of(&folder);
    let absolute = secret.display().to_string();
    for name in [
        "../secret.png",
        "x/../../secret.png",
        "x/../a.png",
        "./../secret.png",
        &absolute,
        "/a.png",
        "",
    ] {
        assert!(
            refusal(&store, Image, name).contains("is outside the media folder"),
            "{name}"
        );
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&secret, folder.join("link.png")).unwrap();
        std::os::unix::fs::symlink(all.path(), folder.join("up")).unwrap();
        std::os::unix::fs::symlink(folder.join("a.png"), folder.join("inner.png")).unwrap();
        for name in ["link.png", "up/secret.png"] {
            assert!(
                refusal(&store, Image, name).contains("links must not leave it"),
                "{name}"
            );
        }
        assert!(url(&store, Image, "inner.png").starts_with("data:image/png;"));
    }
    assert!(refusal(&store, Image, "b.png").contains("`b.png` is not granted"));
    assert!(refusal(&store, Image, "a.png/b").contains("a.png/b"));
    // The folder itself is named if it is not a folder.
    for path in [folder.join("a.png"), folder.join("nowhere")] {
        let error = MediaStore::default().with_folder(path.clone()).unwrap_err();
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
}

#[test]
fn refuses_non_media() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("a.png"), FILES[0].3).unwrap();
    std::fs::write(at("notes.txt"), "hello").unwrap();
    std::fs::write(at("empty"), "").unwrap();
    std::fs::create_dir(at("dir.png")).unwrap();
    std::fs::File::create(at("large.png"))
        .unwrap()
        .set_len(MAX_MEDIA_BYTES + 1)
        .unwrap();
    let store = outside_of(folder.path());
    assert!(refusal(&store, Image, "notes.txt").contains("no known format"));
    assert!(refusal(&store, Image, "empty").contains("no known format"));
    assert!(refusal(&store, Image, "dir.png").contains("is not a file"));
    assert!(refusal(&store, Image, "large.png").contains("67108865 bytes"));
    let wrong = refusal(&store, Audio, "a.png");
    assert!(
        wrong.contains("image/png") && wrong.contains("kind audio"),
        "{wrong}"
    );
    for source in ["file:///etc/passwd", "s3://bucket/a.png", "ftp://h/a.png"] {
        assert!(
            refusal(&store, Image, source).contains("`http(s)://`"),
            "{source}"
        );
    }
    #[cfg(unix)]
    {
        // The reader must not wait for a pipe without a writer.
        let made = std::process::Command::new("mkfifo")
            .arg(at("pipe.png"))
            .status()
            .unwrap();
        assert!(made.success());
        assert!(refusal(&store, Image, "pipe.png").contains("is not a file"));
    }
    let none = materializer(MediaStore::default().with_files([("cat.png".to_string(), at("a.png"))]));
    let message = refusal(&none, Image, "cats.png");
    assert!(
        message.contains("node 3") && message.contains("did you mean `cat.png`?"),
        "{message}"
    );
    assert!(!refusal(&none, Image, "something else.png").contains("did you mean"));
}

#[test]
fn generates_pngs_of_the_requested_size() {
    let store = materializer(MediaStore::default());
    let mut seen = HashSet::new();
    for (parameters, width, height) in [
        ("?width=1&height=1&seed=1", 1, 1),
        ("?width=33&height=5&seed=7&format=png", 33, 5),
        ("?height=100&width=320&seed=7", 320, 100),
        ("?width=320&height=100&seed=8", 320, 100),
        ("", 512, 512),
    ] {
        let source = format!("generated:image{parameters}");
        let url = url(&store, Image, &source);
        let bytes = decoded(&url, "image/png");
        let mut reader = png::Decoder::new(std::io::Cursor::new(&bytes))
            .read_info()
            .unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), (width, height), "{source}");
        assert_eq!(
            (info.color_type, info.bit_depth),
            (png::ColorType::Rgb, png::BitDepth::Eight)
        );
        assert!(seen.insert(pixels), "{source}");
        // Equal on every machine.
        assert_eq!(
            self::url(&materializer(MediaStore::default()), Image, &source),
            url
        );
    }
    // Not a flat area: neighbors differ, and there are many colors.
    let largest = seen.iter().max_by_key(|pixels| pixels.len()).unwrap();
    assert!(largest.chunks(3).collect::<HashSet<_>>().len() > 10_000);
    // A run's salt changes pictures as it changes text.
    let salted = materializer(MediaStore::default()).salted(Some(1));
    let source = "generated:image?width=8&height=8&seed=1";
    assert_ne!(url(&salted, Image, source), url(&store, Image, source));
}

#[test]
fn generates_wavs_of_the_requested_length() {
    let store = materializer(MediaStore::default());
    let make = |source: &str| decoded(&url(&store, Audio, source), "audio/wav");
    let bytes = make("generated:audio?seconds=2.5&rate=16000&seed=7");
    // RIFF WAVE (Microsoft and IBM, 1991): sizes, linear samples, channels, rate, bytes a second,
    // bytes a frame, bits.
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let short = |at: usize| u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap());
    assert_eq!(
        (&bytes[..4], &bytes[8..16], &bytes[36..40]),
        (&b"RIFF"[..], &b"WAVEfmt "[..], &b"data"[..])
    );
    assert_eq!((number(4), number(16), number(40)), (80_036, 16, 80_000));
    assert_eq!(
        (short(20), short(22), number(24), number(28)),
        (1, 1, 16_000, 32_000)
    );
    assert_eq!((short(32), short(34), bytes.len()), (2, 16, 80_044));
    let samples: Vec<i16> = bytes[44..]
        .chunks(2)
        .map(|pair| i16::from_le_bytes([pair[0], pair[1]]))
        .collect();
    let loudness = samples
        .iter()
        .map(|sample| f64::from(*sample).powi(2))
        .sum::<f64>()
        / samples.len() as f64;
    // Three triangles of amplitude a have a mean square of a^2, and the noise adds 1024^2 / 3.
    let expected = 8192f64.powi(2) + 1024f64.powi(2) / 3.0;
    assert!((loudness / expected - 1.0).abs() < 0.1, "{}", loudness / expected);
    assert_ne!(make("generated:audio?seconds=2.5&rate=16000&seed=8"), bytes);
    assert_eq!(make("generated:audio?rate=8000&seconds=0.0001").len(), 46);
    assert_eq!(make("generated:audio").len(), 44 + 32_000);
}

#[test]
fn names_invalid_generated_media() {
    let store = materializer(MediaStore::default());
    for (kind, source, expected) in [
        (Image, "generated:imag", "did you mean `image`?"),
        (Video, "generated:video", "`generated:video` does not exist"),
        (Image, "generated:", "does not exist"),
        (Audio, "generated:image", "kind audio"),
        (Image, "generated:image?widht=3", "did you mean `width`?"),
        (
            Image,
            "generated:image?seconds=3",
            "it has width, height, seed, format",
        ),
        (
            Image,
            "generated:image?width=3&width=4",
            "second parameter `width`",
        ),
        (Image, "generated:image?width=0", "from 1 to 8192"),
        (Image, "generated:image?width=8193", "from 1 to 8192"),
        (Image, "generated:image?width", "from 1 to 8192"),
        (Image, "generated:image?width=8192&height=8192", "at most 2048"),
        (Image, "generated:image?format=jpeg", "`png`, the only format"),
        (Image, "generated:image?seed=-1", "below 2^64"),
        (Audio, "generated:audio?seconds=0", "above 0"),
        (Audio, "generated:audio?seconds=NaN", "above 0"),
        (Audio, "generated:audio?seconds=601", "up to 600"),
        (Audio, "generated:audio?rate=7999", "from 8000"),
        (Audio, "generated:audio?format=mp3", "`wav`, the only format"),
        (
            Audio,
            "generated:audio?seconds=600&rate=96000",
            "at most 349 at this rate",
        ),
    ] {
        let message = refusal(&store, kind, source);
        assert!(message.contains(expected), "{source}: {message}");
    }
}

#[test]
fn check_generates_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.png");
    std::fs::write(&file, FILES[0].3).unwrap();
    std::fs::File::options()
        .write(true)
        .open(&file)
        .unwrap()
        .set_len(MAX_MEDIA_BYTES)
        .unwrap();
    let store = outside_of(folder.path());
    // If they were generated, these would be 640 GB of files and 480 GB of pictures.
    for _ in 0..10_000 {
        store.check(&request(Image, "a.png")).unwrap();
        store
            .check(&request(Image, "generated:image?width=4096&height=4096"))
            .unwrap();
    }
}

#[test]
fn check_matches_prepare() {
    use veeksha_model::{RecordedAnswer, Replay, Seed};
    use veeksha_prompt::MAX_TOKENS;
    let store = materializer(MediaStore::default());
    let synthetic = |tokens| Segment::Synthetic {
        seed: Seed::from(1u64),
        tokens,
    };
    let mut long = request(Image, "https://h/x");
    long.messages[0].content = vec![synthetic(MAX_TOKENS), synthetic(0)];
    store.check(&long).unwrap();
    long.messages[0].content.push(synthetic(1));
    let answered = |content| {
        let mut request = request(Image, "https://h/x");
        request.replay = Some(Box::new(Replay {
            answer: Some(RecordedAnswer {
                content,
                ..RecordedAnswer::default()
            }),
            ..Replay::default()
        }));
        request
    };
    store.check(&answered(vec![synthetic(MAX_TOKENS)])).unwrap();
    let medium = Segment::Media {
        kind: Image,
        source: "https://h/x".into(),
    };
    for (request, expected) in [
        (long, "node 3 asks for a prompt of 16777217 tokens"),
        (
            answered(vec![synthetic(MAX_TOKENS), synthetic(1)]),
            "16777217 tokens",
        ),
        (answered(vec![medium]), "kind image"),
    ] {
        let checked = store.check(&request).unwrap_err().to_string();
        assert_eq!(checked, store.prepare(request).unwrap_err().to_string());
        assert!(checked.contains(expected), "{checked}");
    }
}
