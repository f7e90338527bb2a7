//! The bundled font, Open Sans: the width of a text and the pixels that it covers.
//!
//! The crate plotters fills the glyphs. Text is laid out here because plotters ignores each glyph's left side bearing and rounds to whole
//! pixels, which is visible at small sizes.

use std::collections::BTreeMap;
use std::sync::Once;

use plotters::style::{FontDesc, FontFamily, FontStyle, register_font};

/// The name under which the font is registered. An SVG viewer reads it as a list and falls back to any sans-serif font.
const FAMILY: &str = "Open Sans, sans-serif";

const FILE: &[u8] = include_bytes!("OpenSans-Regular.ttf");

/// Left side bearing of the box that is drawn instead of a letter that the font lacks, in ems.
const MISSING_BEARING: f64 = 0.2;

/// Subpixels per pixel in each direction, for filling glyphs.
const FINE: i32 = 4;

/// Returns the font's family, and registers the font with plotters at the first call.
pub fn family() -> FontFamily<'static> {
    static REGISTERED: Once = Once::new();
    // cannot fail at run time: the file is part of the program, and a test draws letters from it
    REGISTERED.call_once(|| drop(register_font(FAMILY, FontStyle::Normal, FILE)));
    FontFamily::Name(FAMILY)
}

fn u16_at(table: &[u8], offset: usize) -> usize {
    table.get(offset..offset + 2).map_or(0, |bytes| usize::from(u16::from_be_bytes([bytes[0], bytes[1]])))
}

fn i16_at(table: &[u8], offset: usize) -> f64 {
    f64::from(u16_at(table, offset) as u16 as i16)
}

fn u32_at(table: &[u8], offset: usize) -> usize {
    u16_at(table, offset) << 16 | u16_at(table, offset + 2)
}

fn table(tag: &[u8; 4]) -> &'static [u8] {
    let mut records = (0..u16_at(FILE, 4)).map(|record| 12 + 16 * record);
    let found = records.find(|record| FILE.get(*record..record + 4) == Some(tag));
    found.and_then(|record| FILE.get(u32_at(FILE, record + 8)..)).unwrap_or(&[])
}

/// Returns the bytes of the font file, in the format TrueType.
pub fn file() -> &'static [u8] {
    FILE
}

/// Returns the glyph number of `letter` from the character map (format 4), or 0 if the font lacks the letter.
pub fn glyph_number(letter: char) -> usize {
    let (map, code) = (table(b"cmap"), letter as usize);
    let map = map.get(u32_at(map, 8)..).unwrap_or(&[]);
    let twice_segments = u16_at(map, 6);
    let (ends, starts) = (14, 16 + twice_segments);
    let segment = (0..twice_segments).step_by(2).find(|segment| u16_at(map, ends + segment) >= code);
    let Some(segment) = segment.filter(|segment| u16_at(map, starts + segment) <= code) else { return 0 };
    let (delta, range) = (starts + twice_segments + segment, starts + 2 * twice_segments + segment);
    let number = match u16_at(map, range) {
        0 => code,
        offset => u16_at(map, range + offset + 2 * (code - u16_at(map, starts + segment))),
    };
    (number + u16_at(map, delta)) & 0xffff
}

/// Returns the letters of `text` that the font lacks, each once. Control characters, such as line ends, do not count.
pub fn missing_letters(text: &str) -> String {
    let mut missing = String::new();
    for letter in text.chars().filter(|letter| !letter.is_control() && glyph_number(*letter) == 0) {
        if !missing.contains(letter) {
            missing.push(letter);
        }
    }
    missing
}

/// Returns the advance width and the left side bearing of a letter, in ems. The width of a letter that the font lacks is one em, that of
/// Chinese and Japanese letters in the font with which the viewer of an SVG shows them.
fn horizontal_metrics(letter: char) -> (f64, f64) {
    let (widths, count, glyph) = (table(b"hmtx"), u16_at(table(b"hhea"), 34), glyph_number(letter));
    if glyph == 0 {
        return (1.0, MISSING_BEARING);
    }
    let with_width = glyph.min(count.saturating_sub(1));
    let bearing = if glyph < count { 4 * glyph + 2 } else { 4 * count + 2 * (glyph - count) };
    let em = u16_at(table(b"head"), 18) as f64;
    (u16_at(widths, 4 * with_width) as f64 / em, i16_at(widths, bearing) / em)
}

/// Returns the width of `text` in pixels if the em is `em` pixels.
pub fn width(text: &str, em: f64) -> f64 {
    text.chars().map(|letter| horizontal_metrics(letter).0).sum::<f64>() * em
}

/// Shortens `text` if it is wider than `limit` pixels. The ellipsis is in the middle, because labels of one figure often differ only at
/// their end. If not even the ellipsis fits, the result is empty.
pub fn shorten(text: &str, em: f64, limit: f64) -> String {
    if width(text, em) <= limit {
        return text.to_owned();
    }
    let letters: Vec<char> = text.chars().collect();
    // no letter is narrower than an eighth of the em, so at most this many fit
    let most = (8.0 * limit / em) as usize;
    for kept in (0..letters.len().min(most)).rev() {
        let (head, tail) = (kept - kept / 2, kept / 2);
        let (head, tail): (String, String) = (letters[..head].iter().collect(), letters[letters.len() - tail..].iter().collect());
        let short = format!("{}…{}", head.trim_end(), tail.trim_start());
        if width(&short, em) <= limit {
            return short;
        }
    }
    String::new()
}

/// Returns `text` and the em at which it is at most `limit` pixels wide: `em`, or down to 0.7 of it. If that does not suffice, the text is [shortened](shorten).
pub fn fitted(text: &str, em: f64, limit: f64) -> (String, f64) {
    let smaller = em * (limit / width(text, em).max(1e-9)).clamp(0.7, 1.0);
    (shorten(text, smaller, limit + 1e-6), smaller)
}

struct Glyph {
    advance: f64,
    /// Column, row (downwards from the baseline) and coverage, on the grid of subpixels.
    dots: Vec<(i32, i32, f32)>,
}

/// Letters of one size; each glyph is filled once and cached.
pub(crate) struct Lettering {
    /// Height from the deepest descender to the highest ascender in subpixels, which plotters calls the size.
    size: f64,
    /// Subpixels per em.
    em: f64,
    glyphs: BTreeMap<char, Glyph>,
}

impl Lettering {
    /// Creates letters whose em is `em` pixels.
    pub(crate) fn new(em: f64) -> Self {
        let (lines, units) = (table(b"hhea"), u16_at(table(b"head"), 18) as f64);
        let size_per_em = (i16_at(lines, 4) - i16_at(lines, 6)) / units;
        // plotters draws the baseline half a size below the given point, so an even size keeps the baseline on the grid
        let size = 2.0 * (em * f64::from(FINE) * size_per_em / 2.0).round().max(1.0);
        Self { size, em: size / size_per_em, glyphs: BTreeMap::new() }
    }

    fn glyph(&mut self, letter: char) -> &Glyph {
        self.glyphs.entry(letter).or_insert_with(|| {
            let (advance, bearing) = horizontal_metrics(letter);
            let origin = ((bearing * self.em).floor() as i32, -(self.size / 2.0) as i32);
            let mut dots = Vec::new();
            let font = FontDesc::new(family(), self.size, FontStyle::Normal);
            let _ = font.draw(letter.encode_utf8(&mut [0; 4]), origin, |x, y, coverage| {
                dots.push((x, y, coverage));
                Ok::<(), std::convert::Infallible>(())
            });
            Glyph { advance: advance * self.em, dots }
        })
    }

    /// Calls `dot` with column, row and coverage of every pixel that `text` touches if its baseline begins at `start`.
    pub(crate) fn draw(&mut self, text: &str, start: [f64; 2], mut dot: impl FnMut(i32, i32, f64)) {
        let mut pen = start[0] * f64::from(FINE);
        let baseline = (start[1] * f64::from(FINE)).round() as i32;
        let mut dots = Vec::new();
        for letter in text.chars() {
            let glyph = self.glyph(letter);
            let origin = pen.round() as i32;
            dots.extend(glyph.dots.iter().map(|(x, y, dot)| ((origin + x).div_euclid(FINE), (baseline + y).div_euclid(FINE), *dot)));
            pen += glyph.advance;
        }
        let bounds = |values: &dyn Fn(&(i32, i32, f32)) -> i32| Some((dots.iter().map(values).min()?, dots.iter().map(values).max()?));
        let (Some((left, right)), Some((top, bottom))) = (bounds(&|dot| dot.0), bounds(&|dot| dot.1)) else { return };
        let (width, height) = ((right - left + 1) as usize, (bottom - top + 1) as usize);
        let mut sums = vec![0.0; width * height];
        for (x, y, coverage) in &dots {
            sums[(y - top) as usize * width + (x - left) as usize] += f64::from(*coverage);
        }
        for (row, sums) in (top..).zip(sums.chunks_exact(width)) {
            for (column, sum) in (left..).zip(sums).filter(|(_, sum)| **sum > 0.0) {
                dot(column, row, (sum / f64::from(FINE * FINE)).min(1.0));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metrics_are_those_of_open_sans() {
        // advance and left side bearing from the font's hmtx table, in units of 1/2048 em
        for (letter, advance, bearing) in [('0', 1171, 102), ('i', 518, 162), ('−', 1171, 104), ('W', 1896, 27)] {
            assert_eq!(horizontal_metrics(letter), (f64::from(advance) / 2048.0, f64::from(bearing) / 2048.0), "{letter}");
        }
        assert_eq!((glyph_number('漢'), horizontal_metrics('漢').0), (0, 1.0));
        assert_eq!(missing_letters("a 漢字\nand a 漢"), "漢字");
    }

    #[test]
    fn a_text_that_is_too_wide_is_shortened() {
        assert_eq!(shorten("short", 10.0, 100.0), "short");
        let short = shorten("a label that goes on and on, seed 3", 10.0, 80.0);
        assert!(short.starts_with("a lab") && short.contains('…') && short.ends_with("eed 3"), "{short}");
        assert!(width(&short, 10.0) <= 80.0);
        assert_eq!(shorten("anything", 10.0, 0.0), "");
        let wide = width("a label that goes on", 10.0);
        assert_eq!(fitted("a label that goes on", 10.0, wide), ("a label that goes on".into(), 10.0));
        let (text, em) = fitted("a label that goes on", 10.0, 0.8 * wide);
        assert!(text == "a label that goes on" && (em - 8.0).abs() < 1e-9, "{text} {em}");
        let (text, em) = fitted("a label that goes on", 10.0, 0.5 * wide);
        assert!(text.contains('…') && width(&text, em) <= 0.5 * wide + 1e-6 && em == 7.0, "{text} {em}");
    }

    #[test]
    fn letters_are_drawn_on_the_baseline_at_the_given_position() {
        let mut lettering = Lettering::new(40.0);
        let (mut left, mut right, mut top, mut bottom) = (i32::MAX, i32::MIN, i32::MAX, i32::MIN);
        lettering.draw("H", [100.0, 50.0], |x, y, coverage| {
            if coverage > 0.5 {
                (left, right, top, bottom) = (left.min(x), right.max(x), top.min(y), bottom.max(y));
            }
        });
        // the H of Open Sans: bearing 201, advance 1511, height 1462 units
        assert!((left - 104).abs() <= 1 && (right - 125).abs() <= 1, "{left} {right}");
        assert!(bottom == 49 && (top - 21).abs() <= 1, "{top} {bottom}");
    }
}
