//! Images and audio: descriptions of what the host makes, with seeds from the session's own
//! streams.

use serde::de::DeserializeOwned;
use serde_json::Value;
use veeksha_plugin::{Draws, Error, Media, MediaKind, Random, Segment, config};

use crate::config::{Amount, ImageFormat, Length, Seconds, Span};
use crate::draw::Draw;
use crate::length::LengthSampler;

/// The longest piece of audio, in seconds: an hour.
const LONGEST: f64 = 3600.0;

/// An image channel whose parameters are possible.
#[derive(Debug)]
pub(crate) struct ImagePlan {
    count: LengthSampler,
    width: LengthSampler,
    height: LengthSampler,
    format: ImageFormat,
}

/// An audio channel whose parameters are possible.
#[derive(Debug)]
pub(crate) struct AudioPlan {
    count: LengthSampler,
    shortest: f64,
    longest: f64,
    rate: u32,
}

/// The draws of one session.
pub(crate) struct MediaDraws<'a> {
    images: Draw<'a>,
    widths: Draw<'a>,
    heights: Draw<'a>,
    image_seeds: Draws,
    audios: Draw<'a>,
    seconds: Draws,
    audio_seeds: Draws,
}

impl<'a> MediaDraws<'a> {
    /// The draws of a session whose first request is at `step`.
    pub(crate) fn new(random: &'a Random, step: u64) -> Self {
        MediaDraws {
            images: Draw::new(random, "num_images", step),
            widths: Draw::new(random, "image_width", step),
            heights: Draw::new(random, "image_height", step),
            image_seeds: random.stream("image_seed"),
            audios: Draw::new(random, "num_audios", step),
            seconds: random.stream("audio_seconds"),
            audio_seeds: random.stream("audio_seed"),
        }
    }
}

impl ImagePlan {
    /// Checks the parameters; `path` is where they stand.
    pub(crate) fn new(
        count: Amount,
        width: Amount,
        height: Amount,
        format: ImageFormat,
        path: &str,
    ) -> Result<Self, Error> {
        Ok(ImagePlan {
            count: amount(count, &format!("{path}/num_images"))?,
            width: amount(width, &format!("{path}/width"))?,
            height: amount(height, &format!("{path}/height"))?,
            format,
        })
    }

    /// Adds the images of the next request.
    pub(crate) fn add(&self, content: &mut Vec<Segment>, draws: &mut MediaDraws<'_>) {
        let format = match self.format {
            ImageFormat::Png => "png",
        };
        for _ in 0..self.count.sample(&mut draws.images) {
            let width = self.width.sample(&mut draws.widths);
            let height = self.height.sample(&mut draws.heights);
            let seed = seed(&mut draws.image_seeds);
            content.push(Segment::Media(Media {
                kind: MediaKind::Image,
                source: format!("generated:image?width={width}&height={height}&seed={seed}&format={format}"),
            }));
        }
    }
}

impl AudioPlan {
    /// Checks the parameters; `path` is where they stand.
    pub(crate) fn new(count: Amount, seconds: Span, rate: u32, path: &str) -> Result<Self, Error> {
        if rate == 0 {
            return Err(Error::config(format!("{path}/rate"), "must be 1 or more"));
        }
        let place = format!("{path}/seconds");
        let (shortest, longest) = match seconds.0 {
            Value::Number(number) => {
                let value = length(number.as_f64().unwrap_or(f64::NAN), &place)?;
                (value, value)
            }
            Value::Object(_) => match read(seconds.0, &place)? {
                Seconds::Fixed { value } => {
                    let value = length(value, &format!("{place}/value"))?;
                    (value, value)
                }
                Seconds::Uniform { min, max } => (
                    length(min, &format!("{place}/min"))?,
                    length(max, &format!("{place}/max"))?,
                ),
            },
            other => return Err(neither(&other, &place)),
        };
        if shortest > longest {
            let why = format!("the shortest time, {shortest}, is above the longest, {longest}");
            return Err(Error::config(format!("{place}/min"), why));
        }
        Ok(AudioPlan {
            count: amount(count, &format!("{path}/num_audios"))?,
            shortest,
            longest,
            rate,
        })
    }

    /// Adds the audio of the next request.
    pub(crate) fn add(&self, content: &mut Vec<Segment>, draws: &mut MediaDraws<'_>) {
        for _ in 0..self.count.sample(&mut draws.audios) {
            let seconds = self.shortest + (self.longest - self.shortest) * draws.seconds.unit();
            // In between, whole milliseconds; never outside of the range.
            let seconds = ((seconds * 1e3).round() / 1e3).clamp(self.shortest, self.longest);
            let (rate, seed) = (self.rate, seed(&mut draws.audio_seeds));
            content.push(Segment::Media(Media {
                kind: MediaKind::Audio,
                source: format!("generated:audio?seconds={seconds}&rate={rate}&seed={seed}"),
            }));
        }
    }
}

/// 53 bits: a number that every language can carry.
fn seed(draws: &mut Draws) -> u64 {
    draws.long_word() >> 11
}

fn amount(value: Amount, path: &str) -> Result<LengthSampler, Error> {
    match value.0 {
        Value::Number(number) => {
            let whole = number.as_u64().and_then(|whole| u32::try_from(whole).ok());
            match whole.filter(|whole| *whole > 0) {
                Some(value) => LengthSampler::new(Length::Fixed { value }, path),
                None => Err(Error::config(
                    path,
                    format!("must be a whole number, 1 or more, and is {number}"),
                )),
            }
        }
        Value::Object(_) => LengthSampler::new(read(value.0, path)?, path),
        other => Err(neither(&other, path)),
    }
}

fn neither(value: &Value, path: &str) -> Error {
    Error::config(
        path,
        format!("expected a number or a distribution, found `{value}`"),
    )
}

/// Reads a value of the configuration; errors name its path.
fn read<T: DeserializeOwned>(value: Value, path: &str) -> Result<T, Error> {
    config::from_json(&value.to_string()).map_err(|error| Error {
        path: Some(format!("{path}{}", error.path.unwrap_or_default())),
        ..error
    })
}

fn length(value: f64, path: &str) -> Result<f64, Error> {
    if value > 0.0 && value <= LONGEST {
        return Ok(value);
    }
    Err(Error::config(
        path,
        format!("must be above 0 and at most {LONGEST}, and is {value}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Channel;
    use crate::testing::random;

    fn images(json: &str) -> Result<ImagePlan, Error> {
        match config::from_json(json)? {
            Channel::Image {
                num_images,
                width,
                height,
                format,
            } => ImagePlan::new(num_images, width, height, format, ""),
            other => unreachable!("{other:?}"),
        }
    }

    fn audio(json: &str) -> Result<AudioPlan, Error> {
        match config::from_json(json)? {
            Channel::Audio {
                num_audios,
                seconds,
                rate,
            } => AudioPlan::new(num_audios, seconds, rate, ""),
            other => unreachable!("{other:?}"),
        }
    }

    /// The media that successive requests of a session add: the sources, split at their separators.
    fn added(
        requests: usize,
        session: u64,
        add: impl Fn(&mut Vec<Segment>, &mut MediaDraws<'_>),
    ) -> Vec<Vec<Vec<String>>> {
        let random = random(42, session);
        let mut draws = MediaDraws::new(&random, 0);
        let mut request = || {
            let mut content = Vec::new();
            add(&mut content, &mut draws);
            let sources = content.into_iter().map(|segment| match segment {
                Segment::Media(media) => media.source.split(['?', '&', '=']).map(str::to_owned).collect(),
                other => unreachable!("{other:?}"),
            });
            sources.collect()
        };
        (0..requests).map(|_| request()).collect()
    }

    #[test]
    fn an_image_is_described_and_every_one_is_another() {
        let plan = images(r#"{"type": "image", "num_images": 2, "width": 640, "height": {"type": "fixed_stair", "values": [32, 64]}}"#)
            .unwrap();
        let made = added(2, 0, |content, draws| plan.add(content, draws));
        let shown: Vec<&Vec<String>> = made.iter().flatten().collect();
        for (image, height) in shown.iter().zip(["32", "64", "32", "64"]) {
            let expected = [
                "generated:image",
                "width",
                "640",
                "height",
                height,
                "seed",
                &image[6],
                "format",
                "png",
            ];
            assert_eq!(**image, expected);
            assert!(image[6].parse::<u64>().unwrap() < 1 << 53);
        }
        let mut seeds: Vec<_> = shown.iter().map(|image| image[6].clone()).collect();
        seeds.extend(
            added(1, 1, |content, draws| plan.add(content, draws))[0]
                .iter()
                .map(|image| image[6].clone()),
        );
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 6, "other images in other sessions too");
        assert_eq!(
            made,
            added(2, 0, |content, draws| plan.add(content, draws)),
            "and the same in the same"
        );
    }

    /// The defaults: one image of 512 by 512, one piece of 2.5 s at 16 kHz.
    #[test]
    fn the_defaults_are_one_of_each() {
        let image = images(r#"{"type": "image"}"#).unwrap();
        let made = added(1, 0, |content, draws| image.add(content, draws)).remove(0);
        assert_eq!(
            (made.len(), made[0][2].as_str(), made[0][4].as_str()),
            (1, "512", "512")
        );
        let sound = audio(r#"{"type": "audio"}"#).unwrap();
        let made = added(1, 0, |content, draws| sound.add(content, draws)).remove(0);
        assert_eq!(made.len(), 1);
        assert_eq!(
            made[0][..6],
            ["generated:audio", "seconds", "2.5", "rate", "16000", "seed"]
        );
    }

    #[test]
    fn lengths_of_audio_are_uniform_between_their_ends() {
        let plan = audio(r#"{"type": "audio", "num_audios": 500, "rate": 8000, "seconds": {"type": "uniform", "min": 1, "max": 3}}"#)
            .unwrap();
        let made = added(1, 0, |content, draws| plan.add(content, draws)).remove(0);
        let seconds: Vec<f64> = made.iter().map(|audio| audio[2].parse().unwrap()).collect();
        assert!(seconds.iter().all(|seconds| (1.0..=3.0).contains(seconds)));
        // Mean 2, standard deviation 2 / sqrt(12) = 0.577; of 500, 0.0258.
        let mean = seconds.iter().sum::<f64>() / 500.0;
        assert!((mean - 2.0).abs() < 0.13, "{mean}");
        assert!(
            made.iter().all(|audio| audio[2].len() <= 5 && audio[4] == "8000"),
            "whole milliseconds"
        );
    }

    #[test]
    fn refuses_invalid_values_with_their_path() {
        let image = |json: &str| images(json).unwrap_err().path.unwrap();
        assert_eq!(image(r#"{"type": "image", "num_images": 0}"#), "/num_images");
        assert_eq!(
            image(r#"{"type": "image", "height": {"type": "uniform", "min": 0}}"#),
            "/height/min"
        );
        assert_eq!(
            image(r#"{"type": "image", "width": {"type": "fixed", "vlaue": 3}}"#),
            "/width/vlaue"
        );
        assert_eq!(image(r#"{"type": "image", "width": 2.5}"#), "/width");
        assert_eq!(image(r#"{"type": "image", "format": "gif"}"#), "/format");
        let sound = |json: &str| audio(json).unwrap_err().path.unwrap();
        assert_eq!(sound(r#"{"type": "audio", "seconds": 0}"#), "/seconds");
        assert_eq!(sound(r#"{"type": "audio", "seconds": 3601}"#), "/seconds");
        assert_eq!(
            sound(r#"{"type": "audio", "seconds": {"type": "uniform", "min": 3, "max": 2}}"#),
            "/seconds/min"
        );
        assert_eq!(sound(r#"{"type": "audio", "seconds": "long"}"#), "/seconds");
        assert_eq!(sound(r#"{"type": "audio", "rate": 0}"#), "/rate");
        assert_eq!(sound(r#"{"type": "audio", "num_audios": -1}"#), "/num_audios");
    }
}
