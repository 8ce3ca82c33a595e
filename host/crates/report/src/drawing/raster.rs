//! Coverage of pixels by shapes: smooth edges of lines at any angle.

/// Calls `put` with each pixel that a line with round ends covers at least in part, and the covered
/// share. Pixel (x, y) extends to (x + 1, y + 1).
pub(super) fn stroke(from: (f64, f64), to: (f64, f64), width: f64, mut put: impl FnMut(i32, i32, f64)) {
    let half = width / 2.0;
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let square = dx * dx + dy * dy;
    let reach = half + 1.0;
    let (left, right) = (from.0.min(to.0) - reach, from.0.max(to.0) + reach);
    let (top, bottom) = (from.1.min(to.1) - reach, from.1.max(to.1) + reach);
    for y in (top.floor() as i32)..=(bottom.ceil() as i32) {
        let middle = f64::from(y) + 0.5;
        // Of a long slanted line, only the part near this row.
        let (mut first, mut last) = (left, right);
        if dy.abs() > 1e-9 {
            let at = from.0 + (middle - from.1) * dx / dy;
            let around = reach * square.sqrt() / dy.abs();
            first = first.max(at - around);
            last = last.min(at + around);
        }
        for x in (first.floor() as i32)..=(last.ceil() as i32) {
            let (px, py) = (f64::from(x) + 0.5 - from.0, middle - from.1);
            let along = if square > 0.0 {
                ((px * dx + py * dy) / square).clamp(0.0, 1.0)
            } else {
                0.0
            };
            let distance = (px - along * dx).hypot(py - along * dy);
            let part = (half + 0.5 - distance).min(1.0);
            if part > 0.0 {
                put(x, y, part);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covered(from: (f64, f64), to: (f64, f64), width: f64) -> Vec<(i32, i32, f64)> {
        let mut pixels = Vec::new();
        stroke(from, to, width, |x, y, part| pixels.push((x, y, part)));
        pixels
    }

    #[test]
    fn horizontal_line_covers_its_rows() {
        // From x = 10 to 20 along y = 5, two high: rows 4 and 5 completely, nothing above and
        // below.
        let pixels = covered((10.0, 5.0), (20.0, 5.0), 2.0);
        let inner: Vec<_> = pixels.iter().filter(|(x, _, _)| (10..20).contains(x)).collect();
        assert_eq!(inner.len(), 20);
        assert!(
            inner
                .iter()
                .all(|(_, y, part)| (*y == 4 || *y == 5) && *part == 1.0)
        );
    }

    #[test]
    fn slanted_line_has_the_expected_area() {
        let (from, to, width) = ((0.3, 0.7), (90.2, 41.5), 3.0);
        let area: f64 = covered(from, to, width).iter().map(|(_, _, part)| part).sum();
        let length = (89.9f64).hypot(40.8);
        // And a half disc at either end.
        let expected = length * width + std::f64::consts::PI * (width / 2.0).powi(2);
        assert!((area / expected - 1.0).abs() < 0.02, "{area} {expected}");
    }

    #[test]
    fn zero_length_line_is_a_disc() {
        let area: f64 = covered((5.0, 5.0), (5.0, 5.0), 8.0)
            .iter()
            .map(|(_, _, part)| part)
            .sum();
        let expected = std::f64::consts::PI * 16.0;
        assert!((area / expected - 1.0).abs() < 0.03, "{area} {expected}");
    }
}
