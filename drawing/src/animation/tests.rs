use super::*;

fn scene(x: f64) -> Scene {
    let shapes = vec![
        Shape::Line { from: [-2.0, 0.0], to: [2.0, 0.0], width: 0.02, ink: Ink::Ground },
        Shape::Disc { centre: [x, 0.5], radius: 0.3, ink: Ink::Body },
    ];
    Scene { x: [-2.0, 2.0], y: [-0.5, 1.5], shapes }
}

fn moments(count: usize) -> Vec<Frame> {
    (0..count).map(|step| Frame { scene: scene(0.02 * step as f64), step, return_so_far: -0.5 * step as f64 }).collect()
}

fn bytes(frames: &[Frame], frames_per_second: u32) -> Vec<u8> {
    Animation { title: "a ball".into(), chapters: &[], frames, frames_per_second }.encode().expect("an animation")
}

#[test]
fn frames_that_store_only_changes_decode_to_the_whole_pictures() {
    let frames = [moments(12), vec![moments(12)[11].clone()]].concat();
    let file = bytes(&frames, 25);
    let mut decoder = gif::Decoder::new(file.as_slice()).expect("a GIF");
    assert_eq!((decoder.width(), decoder.height(), decoder.repeat()), (480, 240 + CAPTION_HEIGHT as u16, Repeat::Infinite));
    let mut painter = Painter::new(&Animation { title: "a ball".into(), chapters: &[], frames: &frames, frames_per_second: 25 }, 240);
    let mut shown = vec![0; WIDTH * painter.height];
    for (number, expected) in frames.iter().enumerate() {
        let frame = decoder.read_next_frame().expect("readable").expect("as many frames as were given");
        let (left, top, width) = (usize::from(frame.left), usize::from(frame.top), usize::from(frame.width));
        assert_eq!(frame.delay, if number == 12 { 4 + REST } else { 4 });
        assert!(number == 0 || frame.buffer.len() < shown.len() / 2, "only the changed part is stored");
        for (row, line) in frame.buffer.chunks_exact(width).enumerate() {
            for (column, index) in line.iter().enumerate().filter(|(_, index)| **index != TRANSPARENT) {
                shown[(top + row) * WIDTH + left + column] = *index;
            }
        }
        assert!(shown == painter.paint(expected), "frame {number}");
    }
    assert!(decoder.read_next_frame().expect("readable").is_none());
}

#[test]
fn blends_run_from_one_colour_to_the_other() {
    let inks = Inks::new(&[0, 1, 2, 3, 4, 5, 6]);
    assert!(inks.main.len() <= usize::from(TRANSPARENT), "{} colours", inks.main.len());
    let rgb = |index: u8| [0, 1, 2].map(|channel| inks.palette[3 * usize::from(index) + channel]);
    for (to, colour) in PALETTE.iter().enumerate() {
        let mut pixel = PAPER as u8;
        inks.lay(&mut pixel, to, 0.0);
        assert_eq!(rgb(pixel), PALETTE[PAPER]);
        inks.lay(&mut pixel, to, 1.0);
        assert_eq!(rgb(pixel), *colour);
    }
    let mut pixel = PAPER as u8;
    inks.lay(&mut pixel, colour(Ink::Body), 0.5);
    assert_eq!(rgb(pixel), [128, 185, 217], "half white and half blue");
}

#[test]
fn delays_keep_the_rate_on_average() {
    let file = bytes(&moments(31), 30);
    let mut decoder = gif::Decoder::new(file.as_slice()).expect("a GIF");
    let mut delays = Vec::new();
    while let Some(frame) = decoder.next_frame_info().expect("readable") {
        delays.push(frame.delay);
    }
    assert_eq!(delays[..30].iter().sum::<u16>(), 100, "{delays:?}");
    assert!(delays[..30].iter().all(|delay| (3..=4).contains(delay)));
    let slow = bytes(&moments(700), 1);
    let mut decoder = gif::Decoder::new(slow.as_slice()).expect("a GIF");
    while let Some(frame) = decoder.next_frame_info().expect("readable") {
        assert!([100, 100 + REST].contains(&frame.delay), "even if the animation is longer than 2^16 hundredths of a second");
    }
}

#[test]
fn an_animation_is_small_and_reproducible() {
    let file = bytes(&moments(50), 25);
    assert_eq!(file, bytes(&moments(50), 25));
    assert!(file.len() < 100_000, "{} bytes", file.len());
}

#[test]
fn errors_name_what_was_expected() {
    let message = |frames: &[Frame], frames_per_second| {
        Animation { title: String::new(), chapters: &[], frames, frames_per_second }.encode().expect_err("an error").to_string()
    };
    assert_eq!(message(&[], 25), "expected at least one frame, got none");
    assert_eq!(message(&moments(1), 0), "expected 1 to 50 frames per second, got 0");
    let mut frames = moments(2);
    frames[1].scene.x = [1.0, 1.0];
    assert_eq!(message(&frames, 25), "frame 1: expected a scene with a finite rectangle, got x in [1.0, 1.0] and y in [-0.5, 1.5]");
}

#[test]
fn every_environment_title_fits_next_to_a_long_return() {
    let mut frames = moments(2);
    (frames[1].step, frames[1].return_so_far) = (1000, -1234.5);
    let drawable = gradus_envs::registry::all().into_iter().filter(|world| world.env().render().is_some());
    let titles: Vec<String> = drawable.map(|world| world.title()).collect();
    assert!(titles.iter().any(|title| title == "MountainCarContinuous-v0"), "{titles:?}");
    for title in titles {
        let painter = Painter::new(&Animation { title: title.clone(), chapters: &[], frames: &frames, frames_per_second: 25 }, 240);
        let step_start = painter.ends[1] - fonts::width("1000", EM) - fonts::width(STEP, EM);
        assert!(MARGIN + fonts::width(&title, EM) < step_start - MARGIN, "{title}");
        assert_eq!([number(-1234.5, painter.decimals), number(-0.5, painter.decimals)], ["−1234", "0"]);
    }
}
