use super::*;
use std::fs;

fn run(label: &str, episodes: usize, level: f64) -> Curve {
    let noise = |number: usize| ((number * 7919) % 101) as f64 / 101.0 - 0.5;
    let value = |number: usize| level * (1.0 - 1.0 / (1.0 + number as f64 / 50.0)) + 40.0 * noise(number);
    Curve::new(label, (0..episodes).map(|number| (200.0 * (number + 1) as f64, value(number))).collect())
}

fn bytes(figure: &LearningCurves, name: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join(name);
    write(figure, &path).expect("a figure");
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 1, "nothing is left beside the figure");
    fs::read(path).expect("the figure's file")
}

#[test]
fn smoothing_is_the_trailing_mean() {
    let table = smooth(&[(5.0, 4.0), (9.0, 0.0), (20.0, 5.0), (21.0, -1.0)]);
    assert_eq!(table, [(5.0, 4.0), (9.0, 2.0), (20.0, 3.0), (21.0, 2.0)]);
    // 0, 1, ..., 149: from the hundredth on, the mean of 100 numbers ending at n is n - 49.5.
    let counted = smooth(&(0..150).map(|number| (f64::from(number), f64::from(number))).collect::<Vec<_>>());
    assert_eq!((counted[98].1, counted[99].1, counted[100].1, counted[149].1), (49.0, 49.5, 50.5, 99.5));
    assert!(smooth(&[]).is_empty());
}

#[test]
fn long_runs_are_smoothed_at_a_thousand_points() {
    let episodes: Vec<_> = (0..12_345).map(|number| (f64::from(number).powi(2), 3.0)).collect();
    let smoothed = smooth(&episodes);
    assert!((900..=1000).contains(&smoothed.len()), "{}", smoothed.len());
    assert_eq!((smoothed[0], smoothed[smoothed.len() - 1]), (episodes[0], episodes[12_344]));
    let widest = smoothed.windows(2).map(|pair| pair[1].0 - pair[0].0).fold(0.0, f64::max);
    assert!(widest < 3.0 * episodes[12_344].0 / 1000.0, "about even in steps: {widest}");
    assert!(smooth(&vec![(7.0, 1.0); 2000]).len() <= 1000, "steps that never advance");
}

#[test]
fn a_png_has_its_size_and_its_colours() {
    let curves = [run("ppo", 300, 500.0)];
    let file = bytes(&LearningCurves { title: "CartPole-v1".into(), curves: &curves, threshold: Some(475.0) }, "curve.png");
    let mut reader = png::Decoder::new(io::Cursor::new(file)).read_info().expect("a PNG");
    let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
    let info = reader.next_frame(&mut pixels).expect("a picture");
    assert_eq!((info.width, info.height, info.color_type), (1280, 800, png::ColorType::Rgb));
    let count = |colour: [u8; 3]| pixels.chunks_exact(3).filter(|pixel| **pixel == colour).count();
    assert!(count([255, 255, 255]) > 500_000, "the background is white");
    assert!(count([0, 114, 178]) > 1000, "the curve is blue");
}

#[test]
fn an_svg_says_what_it_shows_and_stays_small() {
    let curves = [run("a & b", 40_000, 500.0), run("<b>", 40_000, 300.0)];
    let figure = LearningCurves { title: "two \"runs\"".into(), curves: &curves, threshold: None };
    let text = String::from_utf8(bytes(&figure, "curve.svg")).expect("UTF-8");
    assert!(text.starts_with("<svg width=\"1280\" height=\"800\" viewBox=\"0 0 5120 3200\"") && text.trim_end().ends_with("</svg>"));
    for part in ["a &amp; b", "&lt;b&gt;", "two &quot;runs&quot;", "environment steps", "\n8M\n", "Open Sans, sans-serif"] {
        assert!(text.contains(part), "{part}");
    }
    assert!(text.len() < 300_000, "{} bytes", text.len());
}

#[test]
fn the_same_figure_has_the_same_bytes() {
    let curves = [run("a", 500, 500.0), run("b", 400, 200.0), run("c", 300, -200.0)];
    let figure = LearningCurves { title: "three".into(), curves: &curves, threshold: Some(475.0) };
    for name in ["curve.svg", "curve.png"] {
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
        let figure = LearningCurves { title: String::new(), curves, threshold };
        assert!(bytes(&figure, "a.svg").len() > 500 && bytes(&figure, "a.PNG").len() > 500);
    }
}

#[test]
fn bad_input_is_one_line_that_names_the_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let message = |curves: &[Curve], threshold, name: &str| {
        let figure = LearningCurves { title: "t".into(), curves, threshold };
        let error = write(&figure, &folder.path().join(name)).expect_err("an error").to_string();
        error.replace(&format!("{}/", folder.path().display()), "")
    };
    assert_eq!(message(&[], None, "curve.pdf"), "curve.pdf: expected a name ending in .svg or .png, got .pdf");
    assert_eq!(message(&[], None, "curve"), "curve: expected a name ending in .svg or .png, got no extension");
    let broken = [Curve::new("ppo", vec![(1.0, 1.0), (2.0, f64::NAN)])];
    assert_eq!(message(&broken, None, "a.svg"), "a.svg: curve \"ppo\": expected finite numbers, got return NaN at step 2");
    assert_eq!(message(&[], Some(f64::INFINITY), "a.svg"), "a.svg: expected a finite threshold, got inf");
    assert!(message(&[], None, "missing/a.svg").starts_with("missing/a.svg: cannot write: "));
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0, "nothing was written");
}
