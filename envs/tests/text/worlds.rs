//! Groups share prompts; worlds accept prompts, splits, options and wrappers; errors are one line.

use std::sync::{Arc, Mutex};

use gradus_base::random::episode_seed;
use gradus_envs::text::{Split, TextOptions};
use gradus_envs::wrappers::ClipReward;
use gradus_envs::{Action, Actions, Autoreset, Ending, Env, EnvSpec, Starts, VecEnv, registry};

use super::{decode, encode, eos, text_of, world};

#[test]
fn a_group_shares_its_prompt_and_a_finished_environment_takes_the_next_one() {
    let world = world("addition");
    let starts = Starts { seed: 5, group: 3 };
    let mut envs = world.vec_env_with(0..6, starts, Autoreset::SameStep).unwrap();
    let prompt_of = |group, episode| {
        let mut env = world.env();
        let mut row = vec![0.0; envs.observation_space().width()];
        env.reset(episode_seed(5, group, episode), &mut row);
        decode(&world, &row)
    };
    let expected: Vec<Vec<String>> = (0..2).map(|group| (0..3).map(|episode| prompt_of(group, episode)).collect()).collect();
    let texts =
        |envs: &VecEnv| -> Vec<String> { envs.observations().outer_iter().map(|row| decode(&world, row.as_slice().unwrap())).collect() };
    let at_start = texts(&envs);
    assert!(at_start[..3].iter().all(|text| *text == expected[0][0]) && at_start[3..].iter().all(|text| *text == expected[1][0]));
    assert_ne!(expected[0][0], expected[1][0]);
    // environment 1 generates EOS twice, and environment 5 generates one digit and EOS; both take their group's next prompt at once
    let end = eos(&world);
    let ended = envs.step(Actions::Discrete(&[1, end, 2, 3, 4, 5])).unwrap();
    assert_eq!(ended.finished.len(), 1);
    assert_eq!((ended.finished[0].env, ended.finished[0].length, ended.finished[0].ending), (1, 1, Ending::Terminated));
    assert_eq!(ended.finished[0].scores, [0.0, 0.0]);
    assert_eq!(texts(&envs)[1], expected[0][1]);
    envs.step(Actions::Discrete(&[1, end, 2, 3, 4, end])).unwrap();
    let texts = texts(&envs);
    assert_eq!((&texts[1], &texts[5]), (&expected[0][2], &expected[1][1]));
    assert_eq!(texts[0], format!("{}11", expected[0][0]));
    assert_eq!(envs.score_names(), ["exact", "finish/length"]);
}

#[test]
fn worlds_can_be_given_a_prompt_and_another_split() {
    let world = world("addition");
    let test = world.clone().on_split(Split::Test);
    let mut rows = vec![vec![0.0; 11]; 2];
    for seed in 0..50 {
        for (world, row) in [&world, &test].into_iter().zip(&mut rows) {
            world.env().reset(seed, row);
        }
        assert_ne!(rows[0], rows[1]);
        test.clone().with_prompt(&encode(&world, "1+2=")).unwrap().env().reset(seed, &mut rows[0]);
        assert_eq!(decode(&world, &rows[0]), "1+2=");
    }
    assert_eq!((test.name.as_str(), test.text.as_ref().unwrap().split), ("addition", Split::Test));
    let cartpole = registry::find("cartpole").unwrap();
    assert_eq!(cartpole.clone().on_split(Split::Test).name, "cartpole");
    assert_eq!(text_of(cartpole.clone().with_prompt(&[1])), "text: prompt: expected a text environment, got `cartpole`");
    assert_eq!(text_of(cartpole.with_text_options(TextOptions::default())), "text: options: expected a text environment, got `cartpole`");
}

/// The wrappers of a world are also applied in worlds that are derived from it: each once, and in the same order.
#[test]
fn worlds_keep_their_wrappers() {
    let made = Arc::new(Mutex::new(Vec::new()));
    let wrap = |world: EnvSpec, name: &'static str, (low, high)| {
        let made = made.clone();
        world.wrapped(move |env| {
            made.lock().unwrap().push(name);
            ClipReward::new(env, low, high)
        })
    };
    let wrapped = wrap(wrap(world("addition"), "inside", (0.5, 1.0)), "outside", (0.0, 0.25));
    let prompt = encode(&wrapped, "1+2=");
    let options = TextOptions { missing_eos_penalty: 1.0, ..TextOptions::default() };
    for world in [
        wrapped.clone(),
        wrapped.clone().on_split(Split::Validation).on_split(Split::Test),
        wrapped.clone().with_text_options(options.clone()).unwrap(),
        wrapped.on_split(Split::Test).with_prompt(&prompt).unwrap().with_text_options(options).unwrap(),
    ] {
        made.lock().unwrap().clear();
        let mut env = world.env();
        assert_eq!(*made.lock().unwrap(), ["inside", "outside"]);
        let mut row = vec![0.0; env.observation_space().width()];
        env.reset(1, &mut row);
        // an empty answer has reward 0; the inner wrapper raises it to a half, the outer one lowers it to a quarter
        assert_eq!(env.step(Action::Discrete(eos(&world)), &mut row).reward, 0.25);
    }
}

#[test]
fn a_prompt_that_does_not_fit_is_a_one_line_error() {
    let addition = || world("addition");
    let ask = |prompt: &str| text_of(addition().with_prompt(&encode(&addition(), prompt)));
    assert_eq!(ask("137+245="), "text: prompt `137+245=`: expected at most 6 tokens, got 8");
    assert_eq!(ask(""), "text: prompt: expected 1 to 6 tokens, got none");
    assert_eq!(ask("37+4"), "text: prompt `37+4`, completion ``: expected a prompt such as `37+45=`, got `37+4`");
    assert_eq!(text_of(addition().with_prompt(&[3, 13])), "text: expected tokens of 0 to 12, got 13");
    let vocabulary = addition().text.unwrap();
    let error = text_of(vocabulary.task.vocabulary().encode("37-45="));
    assert_eq!(error, "text: character `-` of `37-45=`: expected one of the symbols 0 1 2 3 4 5 6 7 8 9 + =");
    let options = |options| text_of(addition().with_text_options(options));
    assert_eq!(
        options(TextOptions { max_new_tokens: Some(0), ..TextOptions::default() }),
        "text: `addition`: max_new_tokens: expected 1 to 65536, got 0"
    );
    assert_eq!(
        options(TextOptions { length_penalty: f64::NAN, ..TextOptions::default() }),
        "text: `addition`: length_penalty: expected a finite number of at least 0, got NaN"
    );
    assert_eq!(
        options(TextOptions { missing_eos_penalty: -1.0, ..TextOptions::default() }),
        "text: `addition`: missing_eos_penalty: expected a finite number of at least 0, got -1"
    );
}

#[test]
fn levels_have_names() {
    assert_eq!(world("addition-3").name, "addition-3");
    let space = |name| world(name).env().observation_space();
    assert!(space("addition") == space("addition-2") && space("addition") != space("addition-3"));
    assert_eq!(text_of(registry::find("addition-7")), "unknown environment `addition-7`; levels go from `addition-1` to `addition-4`");
    assert_eq!(text_of(registry::find("chain-sums")), "unknown environment `chain-sums`; did you mean `chain-sum`?");
    assert!(registry::all().iter().filter(|world| world.text.is_some()).all(|world| world.about.contains("-1 to -")));
}
