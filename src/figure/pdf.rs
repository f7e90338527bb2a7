//! The backend for PDF: one page of vectors, with the bundled font embedded, so that letters look the same everywhere and can be searched.
//!
//! The figure needs nine objects of fixed form (ISO 32000-1:2008; the numbers of sections are of this standard) and few operators, so no
//! library writes them: the first build of a new user would compile it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Write};

use gradus_drawing::fonts;
use miniz_oxide::deflate::compress_to_vec_zlib;
use plotters::prelude::RGBColor;
use plotters::style::text_anchor::HPos;

use super::brush::{Brush, Text};

/// Points, the unit of PDF, per pixel: a figure of 1280 pixels is as wide as in a browser, 13.3 inches.
const POINTS: f64 = 0.75;

/// Effort of the compression, from 0 to 10.
const EFFORT: u8 = 6;

/// Returns a PDF of one page of `size` pixels on which `draw` draws.
pub(super) fn pdf(size: [u32; 2], draw: impl FnOnce(&mut PdfBrush) -> Result<(), String>) -> Result<Vec<u8>, String> {
    let [width, height] = size.map(|side| f64::from(side) * POINTS);
    let mut brush = PdfBrush { content: String::new(), letters: BTreeMap::new(), opacities: BTreeSet::new() };
    // the origin of a page is its lower left corner; lines have round ends and corners
    brush.op(&[POINTS, 0.0, 0.0, -POINTS, 0.0, height], "cm\n1 J 1 j");
    draw(&mut brush)?;
    let PdfBrush { content, letters, opacities } = brush;

    let states: String = opacities.iter().map(|percent| format!("/A{percent} <</ca {}>> ", f64::from(*percent) / 100.0)).collect();
    let widths: String = letters.iter().map(|(glyph, letter)| format!("{glyph} [{}] ", Fine(1000.0 * advance(*letter)))).collect();
    let mut pdf = Pdf { bytes: b"%PDF-1.7\n%\x80\x80\x80\x80\n".into(), offsets: Vec::new() };
    pdf.object("<</Type /Catalog /Pages 2 0 R>>");
    pdf.object("<</Type /Pages /Kids [3 0 R] /Count 1>>");
    let resources = format!("<</Font <</F 5 0 R>> /ExtGState <<{states}>>>>");
    pdf.object(&format!("<</Type /Page /Parent 2 0 R /MediaBox [0 0 {width} {height}] /Contents 4 0 R /Resources {resources}>>"));
    pdf.stream("", content.as_bytes());
    // 9.7: with `Identity`, the code of a letter is the number of its glyph
    pdf.object("<</Type /Font /Subtype /Type0 /BaseFont /OpenSans /Encoding /Identity-H /DescendantFonts [6 0 R] /ToUnicode 9 0 R>>");
    let system = "/CIDSystemInfo <</Registry (Adobe) /Ordering (Identity) /Supplement 0>>";
    pdf.object(&format!(
        "<</Type /Font /Subtype /CIDFontType2 /BaseFont /OpenSans {system} /FontDescriptor 7 0 R /CIDToGIDMap /Identity /DW 1000 /W [{widths}]>>"
    ));
    // 9.8: the metrics of Open Sans, in thousandths of an em; flag 32: letters of Latin alphabets
    let metrics = "/FontBBox [-550 -271 1204 1048] /ItalicAngle 0 /Ascent 1069 /Descent -293 /CapHeight 714 /StemV 88";
    pdf.object(&format!("<</Type /FontDescriptor /FontName /OpenSans /Flags 32 {metrics} /FontFile2 8 0 R>>"));
    pdf.stream(&format!("/Length1 {}", fonts::file().len()), fonts::file());
    pdf.stream("", to_unicode(&letters).as_bytes());
    Ok(pdf.finish())
}

/// Returns the width of a letter in ems.
fn advance(letter: char) -> f64 {
    fonts::width(letter.encode_utf8(&mut [0; 4]), 1.0)
}

/// Returns the map from glyphs to letters, with which viewers search and copy text (9.10.3).
fn to_unicode(letters: &BTreeMap<usize, char>) -> String {
    let mut map = String::from(
        "/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n/CMapName /Letters def\n/CMapType 2 def\n1 begincodespacerange\n<0000> <FFFF>\n\
         endcodespacerange\n",
    );
    // glyph 0 is the box that stands for every letter that the font lacks
    let known: Vec<_> = letters.range(1..).collect();
    for part in known.chunks(100) {
        let pairs = part.iter().map(|(glyph, letter)| format!("<{glyph:04X}> <{:04X}>\n", u32::from(**letter)));
        map += &format!("{} beginbfchar\n{}endbfchar\n", part.len(), pairs.collect::<String>());
    }
    map + "endcmap\nend\nend\n"
}

/// A file: objects, then a table of their offsets (7.5).
struct Pdf {
    bytes: Vec<u8>,
    offsets: Vec<usize>,
}

impl Pdf {
    fn begin(&mut self) {
        self.offsets.push(self.bytes.len());
        self.bytes.extend(format!("{} 0 obj\n", self.offsets.len()).into_bytes());
    }

    fn object(&mut self, text: &str) {
        self.begin();
        self.bytes.extend(text.as_bytes());
        self.bytes.extend(b"\nendobj\n");
    }

    fn stream(&mut self, entries: &str, bytes: &[u8]) {
        let compressed = compress_to_vec_zlib(bytes, EFFORT);
        self.begin();
        self.bytes.extend(format!("<</Length {} /Filter /FlateDecode {entries}>>\nstream\n", compressed.len()).into_bytes());
        self.bytes.extend(compressed);
        self.bytes.extend(b"\nendstream\nendobj\n");
    }

    fn finish(mut self) -> Vec<u8> {
        let (table, count) = (self.bytes.len(), self.offsets.len() + 1);
        // every entry has 20 bytes
        let entries: String = self.offsets.iter().map(|offset| format!("{offset:010} 00000 n \n")).collect();
        let text =
            format!("xref\n0 {count}\n0000000000 65535 f \n{entries}trailer\n<</Size {count} /Root 1 0 R>>\nstartxref\n{table}\n%%EOF\n");
        self.bytes.extend(text.into_bytes());
        self.bytes
    }
}

/// A number with at most two digits after the point; PDF has no exponents.
struct Fine(f64);

impl Display for Fine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rounded = (self.0 * 100.0).round() / 100.0;
        write!(f, "{}", if rounded == 0.0 { 0.0 } else { rounded })
    }
}

pub(super) struct PdfBrush {
    content: String,
    /// The letter of every glyph in the figure.
    letters: BTreeMap<usize, char>,
    /// The opacities in the figure, in percent.
    opacities: BTreeSet<u8>,
}

impl PdfBrush {
    /// Adds an operator after its operands.
    fn op(&mut self, operands: &[f64], operator: &str) {
        operands.iter().for_each(|number| write!(self.content, "{} ", Fine(*number)).expect("writing to a string does not fail"));
        self.content.push_str(operator);
        self.content.push('\n');
    }

    fn path(&mut self, points: &[[f64; 2]], paint: &str) {
        for (number, point) in points.iter().enumerate() {
            self.op(point, if number == 0 { "m" } else { "l" });
        }
        self.op(&[], paint);
    }

    /// Sets the colour and the opacity of areas and letters.
    fn ink(&mut self, colour: RGBColor, opacity: f64) {
        let percent = (100.0 * opacity).round() as u8;
        self.opacities.insert(percent);
        self.op(&[], &format!("/A{percent} gs"));
        self.op(&parts(colour), "rg");
    }
}

fn parts(RGBColor(red, green, blue): RGBColor) -> [f64; 3] {
    [red, green, blue].map(|part| f64::from(part) / 255.0)
}

impl Brush for PdfBrush {
    fn line(&mut self, points: &[[f64; 2]], width: f64, colour: RGBColor) -> Result<(), String> {
        self.op(&[width], "w");
        self.op(&parts(colour), "RG");
        self.path(points, "S");
        Ok(())
    }

    fn area(&mut self, corners: &[[f64; 2]], colour: RGBColor, opacity: f64) -> Result<(), String> {
        self.ink(colour, opacity);
        self.path(corners, "f");
        Ok(())
    }

    /// Draws a circle of four Bézier curves, which differs from a true one by less than 0.03 % of the radius.
    fn dot(&mut self, [x, y]: [f64; 2], radius: f64, colour: RGBColor, opacity: f64) -> Result<(), String> {
        self.ink(colour, opacity);
        let handle = 0.552_284_75 * radius;
        self.op(&[x + radius, y], "m");
        for (cos, sin) in [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)] {
            // the point at `along` on the axis at this angle, and at `across` from the axis
            let at = |along: f64, across: f64| [x + along * cos - across * sin, y + along * sin + across * cos];
            self.op([at(radius, handle), at(handle, radius), at(0.0, radius)].as_flattened(), "c");
        }
        self.op(&[], "f");
        Ok(())
    }

    fn text(&mut self, text: &Text) -> Result<(), String> {
        let before = match text.anchor {
            HPos::Left => 0.0,
            HPos::Center => fonts::width(&text.text, text.em) / 2.0,
            HPos::Right => fonts::width(&text.text, text.em),
        };
        let [x, y] = text.at;
        self.ink(text.colour, 1.0);
        self.op(&[], &format!("BT\n/F {} Tf", Fine(text.em)));
        // turns the letters up again, because the y axis points downwards
        let matrix = if text.upwards { [0.0, -1.0, -1.0, 0.0, x, y + before] } else { [1.0, 0.0, 0.0, -1.0, x - before, y] };
        self.op(&matrix, "Tm");
        let mut codes = String::new();
        for letter in text.text.chars() {
            let glyph = fonts::glyph_number(letter);
            self.letters.entry(glyph).or_insert(letter);
            write!(codes, "{glyph:04X}").expect("writing to a string does not fail");
        }
        self.op(&[], &format!("<{codes}> Tj"));
        self.op(&[], "ET");
        Ok(())
    }
}
