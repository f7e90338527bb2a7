use super::*;
use std::fs;

fn run(label: &str, episodes: usize, level: f64) -> Curve {
    let noise = |number: usize| ((number * 7919) % 101) as f64 / 101.0 - 0.5;
    let value = |number: usize| level * (1.0 - 1.0 / (1.0 + number as f64 / 50.0)) + 40.0 * noise(number);
    Curve::new(label, (0..episodes).map(|number| (200.0 * (number + 1) as f64, value(number))).collect())
}

fn bytes(figure: &Figure, name: &str) -> Vec<u8> {
    let folder = gradus_testing::tempdir().expect("a temporary folder");
    let path = folder.path().join(name);
    write(figure, &path).expect("a figure");
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 1, "no other file is left");
    fs::read(path).expect("the figure's file")
}

#[test]
fn smoothing_is_the_trailing_mean() {
    let table = smooth(&[(5.0, 4.0), (9.0, 0.0), (20.0, 5.0), (21.0, -1.0)]);
    assert_eq!(table, [(5.0, 4.0), (9.0, 2.0), (20.0, 3.0), (21.0, 2.0)]);
    // 0, 1, ..., 149: from the hundredth on, the mean of 100 numbers ending at n is n - 49.5.
    let counted = smooth(&(0..150).map(|number| (f64::from(number), f64::from(number))).collect::<Vec<_>>());
    // the line begins at the tenth
    assert_eq!(counted[0], (9.0, 4.5));
    assert_eq!((counted[89].1, counted[90].1, counted[91].1, counted[140].1), (49.0, 49.5, 50.5, 99.5));
    assert!(smooth(&[]).is_empty());
}

#[test]
fn long_runs_are_smoothed_at_a_thousand_points() {
    let episodes: Vec<_> = (0..12_345).map(|number| (f64::from(number).powi(2), 3.0)).collect();
    let smoothed = smooth(&episodes);
    assert!((900..=1000).contains(&smoothed.len()), "{}", smoothed.len());
    assert_eq!((smoothed[0], smoothed[smoothed.len() - 1]), (episodes[9], episodes[12_344]));
    let widest = smoothed.windows(2).map(|pair| pair[1].0 - pair[0].0).fold(0.0, f64::max);
    assert!(widest < 3.0 * episodes[12_344].0 / 1000.0, "expected points at about even distances, got a distance of {widest} steps");
    assert!(smooth(&vec![(7.0, 1.0); 2000]).len() <= 1000, "episodes that all end at the same step");
}

#[test]
fn a_png_has_its_size_and_its_colours() {
    let curves = [run("ppo", 300, 500.0)];
    let file = bytes(&LearningCurves { title: "CartPole-v1".into(), curves: &curves, threshold: Some(475.0) }.figure(), "curve.png");
    let mut reader = png::Decoder::new(io::Cursor::new(file)).read_info().expect("a PNG");
    let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
    let info = reader.next_frame(&mut pixels).expect("a picture");
    assert_eq!((info.width, info.height, info.color_type), (1280, 800, png::ColorType::Rgb));
    let count = |colour: [u8; 3]| pixels.chunks_exact(3).filter(|pixel| **pixel == colour).count();
    assert!(count([255, 255, 255]) > 500_000, "the background is white");
    assert!(count([0, 114, 178]) > 1000, "the curve is blue");
}

#[test]
fn an_svg_contains_its_labels_and_stays_small() {
    let curves = [run("a & b", 40_000, 500.0), run("<b>", 40_000, 300.0)];
    let figure = LearningCurves { title: "two \"runs\"".into(), curves: &curves, threshold: None }.figure();
    let text = String::from_utf8(bytes(&figure, "curve.svg")).expect("UTF-8");
    assert!(text.starts_with("<svg width=\"1280\" height=\"800\" viewBox=\"0 0 5120 3200\"") && text.trim_end().ends_with("</svg>"));
    for part in ["a &amp; b", "&lt;b&gt;", "two &quot;runs&quot;", "environment steps", "\n8M\n", "Open Sans, sans-serif"] {
        assert!(text.contains(part), "{part}");
    }
    assert!(text.len() < 300_000, "{} bytes", text.len());
}

/// The letters' glyphs are those of the font file's character map, which a test of the crate `gradus-drawing` checks.
#[test]
fn a_pdf_is_well_formed_and_embeds_its_letters() {
    let curves = [run("a漢", 300, 500.0)];
    let file = bytes(&LearningCurves { title: "CartPole-v1".into(), curves: &curves, threshold: None }.figure(), "curve.pdf");
    let at = |what: &[u8], from: usize| from + file[from..].windows(what.len()).position(|part| part == what).expect("the text");
    let end = String::from_utf8_lossy(&file[at(b"startxref", 0)..]).into_owned();
    let table: usize = end.lines().nth(1).and_then(|line| line.parse().ok()).expect("the position of the table");
    let table = String::from_utf8_lossy(&file[table..]).into_owned();
    let offsets: Vec<&str> = table.lines().skip(3).take_while(|line| line.trim_end().ends_with('n')).collect();
    assert_eq!(offsets.len(), 9);
    for (number, line) in (1..).zip(offsets) {
        let offset: usize = line[..10].parse().expect("a number");
        assert!(file[offset..].starts_with(format!("{number} 0 obj").as_bytes()), "{line}");
    }
    let whole = String::from_utf8_lossy(&file);
    assert!(whole.starts_with("%PDF-1.7") && whole.contains("/MediaBox [0 0 960 600]"), "three quarters of 1280 x 800");
    let stream = |object: &[u8]| {
        let from = at(b"stream\n", at(object, 0)) + 7;
        miniz_oxide::inflate::decompress_to_vec_zlib(&file[from..at(b"\nendstream", from)]).expect("a compressed stream")
    };
    let content = String::from_utf8_lossy(&stream(b"4 0 obj")).into_owned();
    assert!(content.starts_with("0.75 0 0 -0.75 0 600 cm\n") && content.contains("\n0 0.45 0.7 RG\n"), "a blue line");
    assert_eq!(stream(b"8 0 obj"), gradus_drawing::fonts::file());
    // the title's first letter, and no letter for the box that stands for 漢
    let letters = String::from_utf8_lossy(&stream(b"9 0 obj")).into_owned();
    let letters = &letters[letters.find("beginbfchar").expect("the letters")..];
    let glyph = gradus_drawing::fonts::glyph_number('C');
    assert!(letters.contains(&format!("<{glyph:04X}> <0043>")) && !letters.contains("<0000>"));
}

#[test]
fn the_same_figure_has_the_same_bytes() {
    let curves = [run("a", 500, 500.0), run("b", 400, 200.0), run("c", 300, -200.0)];
    let figure = LearningCurves { title: "three".into(), curves: &curves, threshold: Some(475.0) }.figure();
    for name in ["curve.svg", "curve.png", "curve.pdf"] {
        assert_eq!(bytes(&figure, name), bytes(&figure, name), "{name}");
    }
}

#[test]
fn unusual_curves_are_drawn() {
    let one = Curve::new("one", vec![(17.0, 17.0)]);
    let constant = Curve::new("constant", (1..500).map(|number| (f64::from(number), -1.0)).collect());
    let long = Curve::new("a label that is much longer than any legend could show in one line, ".repeat(4), vec![(1.0, 1e9), (2.0, -1e-9)]);
    let many: Vec<_> = (0..12).map(|level| run(&format!("run {level}"), 50, 40.0 * f64::from(level))).collect();
    let sets = [vec![], vec![Curve::new("empty", vec![])], vec![one.clone()], vec![constant.clone()], vec![one, constant, long], many];
    for (curves, threshold) in sets.iter().zip([None, Some(475.0), None, Some(-1.0), None, Some(-0.5)]) {
        let figure = LearningCurves { title: String::new(), curves, threshold }.figure();
        assert!(bytes(&figure, "a.svg").len() > 500 && bytes(&figure, "a.PNG").len() > 500);
    }
}

fn lines(series: Vec<Series>) -> Lines {
    Lines { x_label: "environment steps".into(), y_label: "return".into(), series, ..Lines::default() }
}

fn panels(charts: Vec<Chart>) -> Vec<Panel> {
    charts.into_iter().enumerate().map(|(number, chart)| Panel { title: format!("panel {number}"), chart }).collect()
}

#[test]
fn a_legend_names_every_series_once_and_looks_follow_the_name() {
    let straight = |label: &str, level: f64| Series::new(label, vec![(0.0, level), (10.0, level)]);
    let first = lines(vec![straight("A2C", 1.0), straight("PPO", 2.0)]);
    // the second panel has another order and one more series
    let second = lines(vec![straight("PPO", 1.0), straight("TRPO", 3.0), straight("A2C", 2.0)]);
    let figure = Figure { columns: 2, panels: panels(vec![Chart::Lines(first), Chart::Lines(second)]), ..Figure::default() };
    let text = String::from_utf8(bytes(&figure, "a.svg")).unwrap();
    for name in ["A2C", "PPO", "TRPO", "panel 0", "panel 1"] {
        assert_eq!(text.matches(&format!("\n{name}\n")).count(), 1, "{name}");
    }
    assert_eq!(text.matches("\nreturn\n").count(), 1, "an axis that a row shares is labelled once");
    // A2C's solid line in both panels and in the legend, in the first colour of the palette
    assert_eq!(text.matches("stroke=\"#0072B2\"").count(), 3);
}

#[test]
fn every_name_is_written_at_the_end_of_its_line() {
    let series: Vec<_> = (0..8).map(|number| Series::new(format!("agent {number}"), vec![(0.0, 0.0), (10.0, 500.0)])).collect();
    let text = String::from_utf8(bytes(&Figure::of(Chart::Lines(Lines { direct: true, ..lines(series) })), "a.svg")).unwrap();
    assert!((0..8).all(|number| text.matches(&format!("\nagent {number}\n")).count() == 1));
}

#[test]
fn every_kind_of_chart_is_drawn_with_the_same_bytes_each_time() {
    let band = vec![(1.0, 0.0, 1.0), (2.0, 0.5, 1.5), (4.0, 1.0, 1.0)];
    let study = Lines {
        x_scale: Scale::Log2,
        y_range: Some((0.4, 1.1)),
        series: vec![Series { band, ..Series::new("a", vec![(1.0, 0.5), (2.0, 1.2), (4.0, 1.0)]) }],
        ..Lines::default()
    };
    let row = |label: &str| Interval { label: label.into(), point: 0.4, low: 0.2, high: 0.5, dots: vec![0.3, 0.45] };
    let intervals = Intervals { rows: vec![row("a"), row("b")], reference: Some(0.5), ..Intervals::default() };
    let violins = Violins { violins: vec![Violin::normal("1", 0.3, 1.0, 3.0)], reference: Some(0.0), ..Violins::default() };
    let field = |value: Option<f64>| Cell { value, text: "x".into(), arrows: vec![Arrow::Up, Arrow::Left], ..Cell::default() };
    let grid =
        Grid { columns: 2, cells: vec![field(Some(1.0)), field(None), field(Some(3.0))], value_label: "value".into(), ..Grid::default() };
    let shapes = vec![gradus_envs::Shape::Disc { centre: [0.0, 0.0], radius: 3.0, ink: gradus_envs::Ink::Body }];
    let scene = gradus_envs::Scene { x: [-2.0, 2.0], y: [-1.0, 1.0], shapes };
    let frames = vec![gradus_drawing::Frame { scene, step: 0, return_so_far: 0.0 }; 3];
    let rows = vec![Episode { label: "a".into(), frames, ..Episode::default() }, Episode { text: "1+1=2".into(), ..Episode::default() }];
    let episodes = Chart::Episodes(Episodes { rows });
    let names = |names: [&str; 2]| names.map(String::from).to_vec();
    let noted = |value: Option<f64>| Cell { value, text: "0.7".into(), note: "0.6 to 0.8".into(), ..Cell::default() };
    let matrix = Chart::Grid(Grid {
        columns: 2,
        cells: vec![noted(Some(0.7)), noted(Some(0.5)), noted(None), noted(Some(0.1))],
        range: Some((0.0, 1.0)),
        row_names: names(["a", "b"]),
        column_names: names(["c", "a name that is wider than its column"]),
        around: true,
        ..Grid::default()
    });
    let charts = vec![Chart::Lines(study), Chart::Intervals(intervals), Chart::Violins(violins), Chart::Grid(grid), matrix, episodes];
    let empty = vec![
        Chart::Lines(Lines::default()),
        Chart::Intervals(Intervals::default()),
        Chart::Violins(Violins::default()),
        Chart::Grid(Grid::default()),
        Chart::Episodes(Episodes::default()),
    ];
    for columns in [0, 1, 3, 9] {
        for charts in [&charts, &empty] {
            let figure = Figure { title: "all".into(), note: "note".into(), columns, panels: panels(charts.clone()) };
            for name in ["a.svg", "a.png", "a.pdf"] {
                assert_eq!(bytes(&figure, name), bytes(&figure, name), "{name}");
            }
        }
    }
}

/// A NaN divides a line into two, and is not part of the axes.
#[test]
fn a_nan_is_a_gap_in_a_line() {
    let lines = |points: Vec<(f64, f64)>| {
        let range = Some((0.0, 4.0));
        let lines = Lines { series: vec![Series::new("ppo", points)], x_range: range, y_range: range, ..Lines::default() };
        let svg = Figure::of(Chart::Lines(lines)).svg(Path::new("a.svg")).expect("an SVG");
        assert!(!svg.contains("NaN"));
        svg.matches("<polyline").count()
    };
    let whole = lines(vec![(0.0, 1.0), (1.0, 2.0), (3.0, 2.0), (4.0, 3.0)]);
    assert_eq!(lines(vec![(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 2.0), (4.0, 3.0)]), whole + 1, "two lines");
    assert_eq!(lines(vec![(f64::NAN, f64::NAN), (0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, f64::NAN)]), whole);
    lines(vec![(0.0, f64::NAN)]);
}

#[test]
fn errors_are_one_line_that_names_the_file() {
    let folder = gradus_testing::tempdir().expect("a temporary folder");
    let message = |curves: &[Curve], threshold, name: &str| {
        let figure = LearningCurves { title: "t".into(), curves, threshold }.figure();
        let error = write(&figure, &folder.path().join(name)).expect_err("an error").to_string();
        error.replace(&format!("{}/", folder.path().display()), "")
    };
    assert_eq!(message(&[], None, "curve.eps"), "curve.eps: expected a name ending in .svg, .png or .pdf, got .eps");
    assert_eq!(message(&[], None, "curve"), "curve: expected a name ending in .svg, .png or .pdf, got no extension");
    let broken = [Curve::new("ppo", vec![(1.0, 1.0), (2.0, f64::INFINITY)])];
    assert_eq!(message(&broken, None, "a.svg"), "a.svg: \"ppo, mean of the last 100 episodes\": expected finite numbers, got inf at 2");
    assert_eq!(message(&[], Some(f64::INFINITY), "a.svg"), "a.svg: expected a finite threshold, got inf");
    let study = Lines { x_scale: Scale::Log10, series: vec![Series::new("ucb", vec![(0.0, 1.0)])], ..Lines::default() };
    let error = Figure::of(Chart::Lines(study)).svg(Path::new("a.svg")).unwrap_err().to_string();
    assert_eq!(error, "a.svg: \"ucb\": expected numbers above 0 on a logarithmic axis, got 0");
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0, "nothing was written");
    fs::write(folder.path().join("file"), "").expect("a file");
    assert_eq!(message(&[], None, "file/a.svg"), "file/a.svg: cannot write: file is not a folder");
    write(&LearningCurves { title: "t".into(), curves: &[], threshold: None }.figure(), &folder.path().join("new/folder/a.svg"))
        .expect("folders are created");
}
