//! Parses and checks `generated:KIND?name=value&...`.

use std::str::FromStr;

use veeksha_model::{MediaKind, Seed};

use super::error::nearest;
use super::limits::MAX_MEDIA_BYTES;
use super::{audio, image};
use crate::media::error::MediaError;
use crate::salt::TextSalt;

/// Maximum width and height of a generated picture in pixels.
const MAX_SIDE_PIXELS: u32 = 8192;
/// Maximum area of a generated picture in pixels: at three bytes each it must stay below the limit
/// of a medium.
const MAX_AREA: u64 = MAX_MEDIA_BYTES / 4;

/// A valid request for a generated medium.
enum MediaSpec {
    Picture { width: u32, height: u32, seed: Seed },
    Sound { samples: u32, rate: u32, seed: Seed },
}

/// Returns the MIME type and the bytes for the text after `generated:`. A run's salt changes the
/// result as it changes text.
pub(super) fn make(
    part: MediaKind,
    wanted: &str,
    salt: TextSalt,
) -> Result<(&'static str, Vec<u8>), MediaError> {
    match read(part, wanted)? {
        MediaSpec::Picture { width, height, seed } => {
            let bytes = image::png(width, height, salt.apply(seed)).map_err(|error| MediaError::Encode {
                kind: "image",
                reason: error.to_string(),
            })?;
            Ok(("image/png", bytes))
        }
        MediaSpec::Sound { samples, rate, seed } => {
            Ok(("audio/wav", audio::wav(samples, rate, salt.apply(seed))))
        }
    }
}

/// Checks that the medium can be generated.
pub(super) fn check(part: MediaKind, wanted: &str) -> Result<(), MediaError> {
    read(part, wanted).map(|_| ())
}

fn read(part: MediaKind, wanted: &str) -> Result<MediaSpec, MediaError> {
    let (kind, parameters) = wanted.split_once('?').unwrap_or((wanted, ""));
    let made = match kind {
        "image" => MediaKind::Image,
        "audio" => MediaKind::Audio,
        _ => {
            return Err(MediaError::CannotGenerate {
                kind: kind.to_string(),
                nearest: nearest(kind, ["image", "audio"]),
            });
        }
    };
    if made != part {
        return Err(MediaError::WrongKind {
            name: format!("generated:{wanted}"),
            found: format!("generated {kind}"),
            expected: part.name(),
        });
    }
    match made {
        MediaKind::Image => picture(parameters),
        _ => sound(parameters),
    }
}

fn picture(parameters: &str) -> Result<MediaSpec, MediaError> {
    let given = MediaParameters::read("image", parameters, &["width", "height", "seed", "format"])?;
    let side = format!("a whole number from 1 to {MAX_SIDE_PIXELS}");
    let fits = |pixels: &u32| (1..=MAX_SIDE_PIXELS).contains(pixels);
    let width = given.value("width", 512, &side, fits)?;
    let height = given.value("height", 512, &side, fits)?;
    let format: String = given.value(
        "format",
        "png".to_string(),
        "`png`, the only format that is generated",
        |format| format == "png",
    )?;
    debug_assert_eq!(format, "png");
    let area = u64::from(width) * u64::from(height);
    if area > MAX_AREA {
        return Err(given.bad_value(
            "height",
            &height.to_string(),
            &format!("at most {} with this width", MAX_AREA / u64::from(width)),
        ));
    }
    let seed = given.seed()?;
    Ok(MediaSpec::Picture { width, height, seed })
}

fn sound(parameters: &str) -> Result<MediaSpec, MediaError> {
    let given = MediaParameters::read("audio", parameters, &["seconds", "rate", "seed", "format"])?;
    let seconds = given.value(
        "seconds",
        1.0,
        "a number above 0 and up to 600",
        |seconds: &f64| *seconds > 0.0 && *seconds <= 600.0,
    )?;
    let rate = given.value(
        "rate",
        16_000,
        "a whole number from 8000 to 96000",
        |rate: &u32| (8_000..=96_000).contains(rate),
    )?;
    let _: String = given.value(
        "format",
        "wav".to_string(),
        "`wav`, the only format that is generated",
        |format| format == "wav",
    )?;
    let samples = (seconds * f64::from(rate)).round().max(1.0) as u32;
    if audio::bytes(samples) > MAX_MEDIA_BYTES {
        let most = (MAX_MEDIA_BYTES - audio::bytes(0)) / 2 / u64::from(rate);
        return Err(given.bad_value(
            "seconds",
            &seconds.to_string(),
            &format!("at most {most} at this rate"),
        ));
    }
    let seed = given.seed()?;
    Ok(MediaSpec::Sound { samples, rate, seed })
}

/// The parameters of one source.
struct MediaParameters<'a> {
    kind: &'static str,
    given: Vec<(&'a str, &'a str)>,
}

impl<'a> MediaParameters<'a> {
    fn read(kind: &'static str, text: &'a str, known: &[&str]) -> Result<Self, MediaError> {
        let mut given: Vec<(&str, &str)> = Vec::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let twice = given.iter().any(|(other, _)| *other == name);
            if twice || !known.contains(&name) {
                return Err(MediaError::UnknownParameter {
                    kind,
                    name: name.to_string(),
                    twice,
                    nearest: nearest(name, known.iter().copied()).filter(|_| !twice),
                    known: known.join(", "),
                });
            }
            given.push((name, value));
        }
        Ok(MediaParameters { kind, given })
    }

    /// Returns a value, or its default; invalid values are refused.
    fn value<T: FromStr>(
        &self,
        name: &'static str,
        default: T,
        expected: &str,
        holds: impl Fn(&T) -> bool,
    ) -> Result<T, MediaError> {
        match self.given.iter().find(|(given, _)| *given == name) {
            None => Ok(default),
            Some((_, text)) => text
                .parse()
                .ok()
                .filter(holds)
                .ok_or_else(|| self.bad_value(name, text, expected)),
        }
    }

    fn seed(&self) -> Result<Seed, MediaError> {
        let seed = self.value("seed", 0u64, "a whole number below 2^64", |_| true)?;
        Ok(Seed::from(seed))
    }

    fn bad_value(&self, name: &'static str, value: &str, expected: &str) -> MediaError {
        MediaError::BadValue {
            kind: self.kind,
            name,
            value: value.to_string(),
            expected: expected.to_string(),
        }
    }
}
