//! The backend for PDF: one page of vectors, with the bundled font embedded, so that letters look the same everywhere and can be searched.

use std::collections::{BTreeMap, BTreeSet};

use gradus_drawing::fonts;
use miniz_oxide::deflate::compress_to_vec_zlib;
use pdf_writer::types::{CidFontType, FontFlags, LineCapStyle, LineJoinStyle, SystemInfo, UnicodeCmap};
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, Str};
use plotters::prelude::RGBColor;
use plotters::style::text_anchor::HPos;

use super::brush::{Brush, Text};

/// Points, the unit of PDF, per pixel: a figure of 1280 pixels is as wide as in a browser, 13.3 inches.
const POINTS: f32 = 0.75;

/// Effort of the compression, from 0 to 10.
const EFFORT: u8 = 6;

const FONT: Name = Name(b"F");
const FONT_NAME: Name = Name(b"OpenSans");
const SYSTEM: SystemInfo = SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };

/// Returns a PDF of one page of `size` pixels on which `draw` draws.
pub(super) fn pdf(size: [u32; 2], draw: impl FnOnce(&mut PdfBrush) -> Result<(), String>) -> Result<Vec<u8>, String> {
    let mut brush = PdfBrush { content: Content::new(), letters: BTreeMap::new(), opacities: BTreeSet::new() };
    let [width, height] = size.map(|side| side as f32 * POINTS);
    // PDF's y axis points upwards
    brush.content.transform([POINTS, 0.0, 0.0, -POINTS, 0.0, height]);
    brush.content.set_line_cap(LineCapStyle::RoundCap).set_line_join(LineJoinStyle::RoundJoin);
    draw(&mut brush)?;

    let [catalog, pages, page, content, font, glyphs, descriptor, file, unicode] =
        std::array::from_fn(|number| Ref::new(number as i32 + 1));
    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(pages);
    pdf.pages(pages).kids([page]).count(1);
    let mut leaf = pdf.page(page);
    leaf.parent(pages).media_box(Rect::new(0.0, 0.0, width, height)).contents(content);
    let mut resources = leaf.resources();
    resources.fonts().pair(FONT, font);
    let mut states = resources.ext_g_states();
    for opacity in &brush.opacities {
        states
            .insert(Name(state(*opacity).as_bytes()))
            .start::<pdf_writer::writers::ExtGraphicsState>()
            .non_stroking_alpha(f32::from(*opacity) / 100.0);
    }
    states.finish();
    resources.finish();
    leaf.finish();
    pdf.stream(content, &compress_to_vec_zlib(&brush.content.finish(), EFFORT)).filter(Filter::FlateDecode);

    // "Identity" means that a letter's code is its glyph number
    pdf.type0_font(font).base_font(FONT_NAME).encoding_predefined(Name(b"Identity-H")).descendant_font(glyphs).to_unicode(unicode);
    let mut embedded = pdf.cid_font(glyphs);
    embedded.subtype(CidFontType::Type2).base_font(FONT_NAME).system_info(SYSTEM).font_descriptor(descriptor);
    embedded.default_width(1000.0).cid_to_gid_map_predefined(Name(b"Identity"));
    let mut widths = embedded.widths();
    for (glyph, letter) in &brush.letters {
        widths.consecutive(*glyph, [1000.0 * fonts::width(letter.encode_utf8(&mut [0; 4]), 1.0) as f32]);
    }
    widths.finish();
    embedded.finish();
    // the metrics of Open Sans, in thousandths of an em
    pdf.font_descriptor(descriptor)
        .name(FONT_NAME)
        .flags(FontFlags::NON_SYMBOLIC)
        .bbox(Rect::new(-550.0, -271.0, 1204.0, 1048.0))
        .italic_angle(0.0)
        .ascent(1069.0)
        .descent(-293.0)
        .cap_height(714.0)
        .stem_v(88.0)
        .font_file2(file);
    let bytes = fonts::file();
    let compressed = compress_to_vec_zlib(bytes, EFFORT);
    pdf.stream(file, &compressed).filter(Filter::FlateDecode).pair(Name(b"Length1"), bytes.len() as i32);
    let mut map = UnicodeCmap::new(Name(b"Letters"), SYSTEM);
    // glyph 0 is the box that stands for every letter that the font lacks
    brush.letters.range(1..).for_each(|(glyph, letter)| map.pair(*glyph, *letter));
    pdf.cmap(unicode, &map.finish());
    Ok(pdf.finish())
}

/// Returns the name of the graphics state with this opacity.
fn state(percent: u8) -> String {
    format!("A{percent}")
}

pub(super) struct PdfBrush {
    content: Content,
    /// The letter of every glyph in the figure.
    letters: BTreeMap<u16, char>,
    /// The opacities in the figure, in percent.
    opacities: BTreeSet<u8>,
}

/// Hundredths of a pixel are fine enough.
fn fine(place: f64) -> f32 {
    ((place * 100.0).round() / 100.0) as f32
}

impl PdfBrush {
    fn path(&mut self, points: &[[f64; 2]]) {
        for (number, [x, y]) in points.iter().enumerate() {
            match number {
                0 => self.content.move_to(fine(*x), fine(*y)),
                _ => self.content.line_to(fine(*x), fine(*y)),
            };
        }
    }

    fn ink(&mut self, RGBColor(red, green, blue): RGBColor, opacity: f64) {
        let percent = (100.0 * opacity).round() as u8;
        self.opacities.insert(percent);
        self.content.set_parameters(Name(state(percent).as_bytes()));
        let [red, green, blue] = [red, green, blue].map(|part| fine(f64::from(part) / 255.0));
        self.content.set_fill_rgb(red, green, blue);
    }
}

impl Brush for PdfBrush {
    fn line(&mut self, points: &[[f64; 2]], width: f64, RGBColor(red, green, blue): RGBColor) -> Result<(), String> {
        let [red, green, blue] = [red, green, blue].map(|part| fine(f64::from(part) / 255.0));
        self.content.set_line_width(fine(width)).set_stroke_rgb(red, green, blue);
        self.path(points);
        self.content.stroke();
        Ok(())
    }

    fn area(&mut self, corners: &[[f64; 2]], colour: RGBColor, opacity: f64) -> Result<(), String> {
        self.ink(colour, opacity);
        self.path(corners);
        self.content.fill_nonzero();
        Ok(())
    }

    /// Draws a circle of four Bézier curves, which differs from a true one by less than 0.03 % of the radius.
    fn dot(&mut self, [x, y]: [f64; 2], radius: f64, colour: RGBColor, opacity: f64) -> Result<(), String> {
        self.ink(colour, opacity);
        let handle = 0.552_284_75 * radius;
        self.content.move_to(fine(x + radius), fine(y));
        for (cos, sin) in [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)] {
            // the point at `along` on the axis at this angle, and at `across` from the axis
            let at = |along: f64, across: f64| (fine(x + along * cos - across * sin), fine(y + along * sin + across * cos));
            let ((x1, y1), (x2, y2), (x3, y3)) = (at(radius, handle), at(handle, radius), at(0.0, radius));
            self.content.cubic_to(x1, y1, x2, y2, x3, y3);
        }
        self.content.fill_nonzero();
        Ok(())
    }

    fn text(&mut self, text: &Text) -> Result<(), String> {
        let mut codes = Vec::new();
        for letter in text.text.chars() {
            let glyph = fonts::glyph_number(letter) as u16;
            self.letters.entry(glyph).or_insert(letter);
            codes.extend(glyph.to_be_bytes());
        }
        let before = match text.anchor {
            HPos::Left => 0.0,
            HPos::Center => fonts::width(&text.text, text.em) / 2.0,
            HPos::Right => fonts::width(&text.text, text.em),
        };
        let [x, y] = text.at;
        let place =
            if text.upwards { [0.0, -1.0, -1.0, 0.0, fine(x), fine(y + before)] } else { [1.0, 0.0, 0.0, -1.0, fine(x - before), fine(y)] };
        self.ink(text.colour, 1.0);
        self.content.begin_text().set_font(FONT, fine(text.em)).set_text_matrix(place).show(Str(&codes)).end_text();
        Ok(())
    }
}
