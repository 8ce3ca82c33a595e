//! Generated sounds: three tones and noise.

use veeksha_model::Seed;
use veeksha_stats::RandomStream;

/// Size of the header in bytes.
const HEADER: u64 = 44;

/// Returns the size in bytes of a sound with `samples` samples.
pub(super) fn bytes(samples: u32) -> u64 {
    HEADER + 2 * u64::from(samples)
}

/// Returns a WAV with one channel of 16-bit samples, `rate` of them per second. Equal arguments
/// give equal bytes: it is computed with integers only, because sines differ in their last bit
/// between machines.
pub(super) fn wav(samples: u32, rate: u32, seed: Seed) -> Vec<u8> {
    let stream = RandomStream::new(seed.into(), 0, "audio");
    let data = 2 * samples;
    let mut out = Vec::with_capacity(bytes(samples) as usize);
    out.extend_from_slice(b"RIFF");
    out.extend_from_slice(&(data + 36).to_le_bytes());
    out.extend_from_slice(b"WAVEfmt ");
    out.extend_from_slice(&16u32.to_le_bytes());
    // Linear samples, one channel.
    out.extend_from_slice(&1u16.to_le_bytes());
    out.extend_from_slice(&1u16.to_le_bytes());
    out.extend_from_slice(&rate.to_le_bytes());
    out.extend_from_slice(&(2 * rate).to_le_bytes());
    // Bytes of a frame, bits of a sample.
    out.extend_from_slice(&2u16.to_le_bytes());
    out.extend_from_slice(&16u16.to_le_bytes());
    out.extend_from_slice(b"data");
    out.extend_from_slice(&data.to_le_bytes());

    // Three tones from 80 to 1079 Hz; the phase is a full turn in 32 bits.
    let mut pitches = [0u32; 4];
    stream.fill(0, &mut pitches);
    let steps: [u32; 3] = [0, 1, 2].map(|tone| {
        let hertz = u64::from(80 + pitches[tone] % 1000);
        ((hertz << 32) / u64::from(rate)) as u32
    });
    let mut phases = [0u32; 3];
    let mut noise = [0u32; 256];
    for first in (0..samples).step_by(noise.len()) {
        stream.fill(4 + u64::from(first), &mut noise);
        for noise in &noise[..(samples - first).min(256) as usize] {
            let mut sample = (noise % 2048) as i32 - 1024;
            for (phase, step) in phases.iter_mut().zip(steps) {
                *phase = phase.wrapping_add(step);
                // A triangle between -8192 and 8191.
                let ramp = (*phase >> 17) as i32;
                sample += if ramp < 16_384 { ramp } else { 32_767 - ramp } - 8_192;
            }
            out.extend_from_slice(&(sample as i16).to_le_bytes());
        }
    }
    out
}
