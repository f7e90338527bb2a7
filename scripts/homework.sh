#!/usr/bin/env bash
# Grades 51 submissions of homework 1: right ones in several forms, wrong ones of named kinds, and hostile ones. No mark may be wrong. Then
# runs the autograder's files as Gradescope does. Takes some minutes. PROGRAMS names the folder of what is built [default: a temporary folder].
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
cargo build --quiet
gradus=$root/target/debug/gradus
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export CARGO_TARGET_DIR=${PROGRAMS:-$dir/target}
"$gradus" course new "$dir/class" >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
cd "$dir/class"
answers=$root/course/answers/homework_1.rs
cp "$answers" src/homework_1.rs
"$gradus" course check h1 | grep -q '4 of 4 agree with the examples' || { echo "homework: expected the answers to agree" >&2; exit 1; }
"$gradus" course hint h1.1 2>/dev/null && { echo "homework: expected no hint" >&2; exit 1; }
"$gradus" course solution h1.1 2>/dev/null && { echo "homework: expected no solution" >&2; exit 1; }

mkdir "$dir/all"
: >"$dir/expected"
# submission NAME MARKS FUNCTION BODY: the answers with another body of one function, and the marks that it must get
submission() {
  awk -v name="$3" -v new="$4" '$0 ~ "^pub fn " name "[(]" { print; print "    " new; skip = 1; next } skip && /^}/ { skip = 0 } !skip' "$answers" >"$dir/all/$1.rs"
  echo "$1,$2" >>"$dir/expected"
}
p=gaussian_posterior k=kl_ucb i=policy_iteration t=td_lambda
all=1,1,1,1
# right, in other forms
submission right-p1 $all $p 'let mut m = mean; let mut v = std * std; for r in rewards { let g = v / (v + noise * noise); m += g * (r - m); v *= 1.0 - g; } (m, v.sqrt())'
submission right-p2 $all $p 'let (a, b, n) = (noise * noise, std * std, rewards.len() as f64); let d = a + n * b; ((a * mean + b * rewards.iter().sum::<f64>()) / d, (a * b / d).sqrt())'
submission right-p3 $all $p 'let w: f64 = std.powi(-2) + rewards.len() as f64 * noise.powi(-2); let m = mean + rewards.iter().map(|r| r - mean).sum::<f64>() * noise.powi(-2) / w; (m, w.powf(-0.5))'
submission right-k1 $all $k 'let f = |q: f64| { let h = |p: f64, q: f64| if p > 0.0 { p * (p / q).ln() } else { 0.0 }; h(mean, q) + h(1.0 - mean, 1.0 - q) }; let (mut q, mut s) = (mean, 0.3); while s > 1e-9 { if q + s < 1.0 && f(q + s) * pulls <= level { q += s } else { s *= 0.5 } } q'
submission right-k2 $all $k 'let kl = |q: f64| { let mut sum = 0.0; if mean > 0.0 { sum += mean * (mean.ln() - q.ln()); } if mean < 1.0 { sum += (1.0 - mean) * ((1.0 - mean).ln() - (1.0 - q).ln()); } sum }; let (mut a, mut b) = (mean, 1.0 - 1e-13); for _ in 0..80 { let q = 0.5 * (a + b); if kl(q) > level / pulls { b = q } else { a = q } } a'
submission right-k3 $all $k 'if mean >= 1.0 { return 1.0; } let d = |q: f64| (if mean > 0.0 { mean * (mean / q).ln() } else { 0.0 }) + (1.0 - mean) * ((1.0 - mean) / (1.0 - q)).ln(); let (mut low, mut high) = (mean, 1.0); while high - low > 1e-9 { let middle = (low + high) / 2.0; if pulls * d(middle) <= level { low = middle } else { high = middle } } (low + high) / 2.0'
v='let v = |x: &[f64], s: usize, a: usize| -> f64 { table.outcomes(s, a).iter().map(|o| o.probability * (o.reward + if o.terminated { 0.0 } else { gamma * x[o.next as usize] })).sum() };'
g='let arg = |x: &[f64], s: usize| (1..table.actions()).fold(0, |b, a| if v(x, s, a) > v(x, s, b) { a } else { b });'
submission right-i1 $all $i "$v $g let mut x = vec![0.0; table.states()]; for _ in 0..4000 { x = (0..table.states()).map(|s| v(&x, s, arg(&x, s))).collect(); } (0..table.states()).map(|s| arg(&x, s)).collect()"
submission right-i2 $all $i "$v $g let mut policy = vec![0; table.states()]; for _ in 0..100 { let mut x = vec![0.0; table.states()]; for _ in 0..500 { for s in 0..x.len() { x[s] = v(&x, s, policy[s]); } } policy = (0..x.len()).map(|s| arg(&x, s)).collect(); } policy"
submission right-i3 $all $i "$v $g let (n, m) = (table.states(), table.actions()); let (mut x, mut p) = (vec![0.0; n], vec![m - 1; n]); for _ in 0..60 { for _ in 0..1500 { x = (0..n).map(|s| v(&x, s, p[s])).collect(); } p = (0..n).map(|s| arg(&x, s)).collect(); } p"
submission right-t3 $all $t 'let mut e = std::collections::BTreeMap::new(); for s in steps { let d = s.reward + if s.end == End::Terminated { 0.0 } else { gamma * values[s.next] } - values[s.state]; for x in e.values_mut() { *x *= gamma * lambda; } *e.entry(s.state).or_insert(0.0) += 1.0; for (i, x) in &e { values[*i] += alpha * d * x; } }'
submission right-t1 $all $t 'let mut e = vec![0.0; values.len()]; for s in steps { let n = if s.end == End::Terminated { 0.0 } else { gamma * values[s.next] }; let d = s.reward + n - values[s.state]; for (i, x) in e.iter_mut().enumerate() { *x = *x * gamma * lambda + if i == s.state { 1.0 } else { 0.0 }; values[i] += alpha * d * *x; } }'
submission right-t2 $all $t 'for now in 0..steps.len() { let s = &steps[now]; let d = s.reward + match s.end { End::Terminated => 0.0, _ => gamma * values[s.next] } - values[s.state]; for then in 0..=now { values[steps[then].state] += alpha * d * (gamma * lambda).powi((now - then) as i32); } }'
# wrong
submission wrong-p1 0,1,1,1 $p 'let w = std.powi(-2) + rewards.len() as f64 * noise.powi(-2); ((mean * std.powi(-2) + rewards.iter().sum::<f64>() * noise.powi(-2)) / w, 1.0 / w)'
submission wrong-p2 0,1,1,1 $p 'let w: f64 = std.powi(-2) + rewards.len() as f64; ((mean * std.powi(-2) + rewards.iter().sum::<f64>()) / w, w.powf(-0.5))'
submission wrong-p3 0,1,1,1 $p 'let n = rewards.len() as f64; (rewards.iter().sum::<f64>() / n, noise / n.sqrt())'
submission wrong-p4 0,1,1,1 $p '(mean, std)'
submission wrong-p5 0,1,1,1 $p 'let n = rewards.len() as f64; let w = 1.0 / std + n / noise; ((mean / std + rewards.iter().sum::<f64>() / noise) / w, (1.0 / w).sqrt())'
submission wrong-k1 1,0,1,1 $k '(mean + (level / (2.0 * pulls)).sqrt()).min(1.0)'
submission wrong-k2 1,0,1,1 $k '(mean + (2.0 * level / pulls).sqrt()).min(1.0)'
submission wrong-k3 1,0,1,1 $k 'let f = |q: f64| { let h = |p: f64, q: f64| if p > 0.0 { p * (p / q).ln() } else { 0.0 }; h(mean, q) + h(1.0 - mean, 1.0 - q) }; let mut q = mean; while q < 0.999 && pulls * f(q + 0.001) <= level { q += 0.001; } q'
submission wrong-k4 1,0,1,1 $k 'let f = |q: f64| mean * (mean / q).ln() + (1.0 - mean) * ((1.0 - mean) / (1.0 - q)).ln(); let (mut a, mut b) = (mean, 1.0); for _ in 0..60 { let q = (a + b) / 2.0; if pulls * f(q) <= level { a = q } else { b = q } } a'
submission wrong-k5 1,0,1,1 $k 'mean'
submission wrong-i1 1,1,0,1 $i "$v $g let x = vec![0.0; table.states()]; (0..table.states()).map(|s| arg(&x, s)).collect()"
submission wrong-i2 1,1,0,1 $i 'vec![0; table.states()]'
submission wrong-i3 1,1,0,1 $i "let v = |x: &[f64], s: usize, a: usize| -> f64 { table.outcomes(s, a).iter().map(|o| o.probability * (o.reward + gamma * x[o.next as usize])).sum() }; $g let mut x = vec![0.0; table.states()]; for _ in 0..3000 { x = (0..table.states()).map(|s| v(&x, s, arg(&x, s))).collect(); } (0..table.states()).map(|s| arg(&x, s)).collect()"
# all policies of a world of thirty states take too long
submission wrong-i9 1,1,0,1 $i "$v let n = table.states(); let m = table.actions(); let mut best = (f64::MIN, vec![]); for code in 0..m.pow(n as u32) { let p: Vec<usize> = (0..n).map(|s| code / m.pow(s as u32) % m).collect(); let mut x = vec![0.0; n]; for _ in 0..300 { x = (0..n).map(|s| v(&x, s, p[s])).collect(); } let sum: f64 = x.iter().sum(); if sum > best.0 + 1e-9 { best = (sum, p); } } best.1"
submission wrong-i4 1,1,0,1 $i "$v $g let mut x = vec![0.0; table.states()]; x = (0..table.states()).map(|s| v(&x, s, arg(&x, s))).collect(); (0..table.states()).map(|s| arg(&x, s)).collect()"
submission wrong-i5 1,1,0,1 $i 'vec![]'
submission wrong-t1 1,1,1,0 $t 'for s in steps { let n = if s.end == End::Terminated { 0.0 } else { values[s.next] }; let d = s.reward + gamma * n - values[s.state]; values[s.state] += alpha * d; } let _ = lambda;'
submission wrong-t2 1,1,1,0 $t 'let mut e = vec![0.0; values.len()]; for s in steps { let n = if s.end == End::Terminated { 0.0 } else { values[s.next] }; let d = s.reward + gamma * n - values[s.state]; e.iter_mut().for_each(|x| *x *= gamma * lambda); e[s.state] = 1.0; for (v, x) in values.iter_mut().zip(&e) { *v += alpha * d * x; } }'
submission wrong-t3 1,1,1,0 $t 'let mut e = vec![0.0; values.len()]; for s in steps { let d = s.reward + gamma * values[s.next] - values[s.state]; e.iter_mut().for_each(|x| *x *= gamma * lambda); e[s.state] += 1.0; for (v, x) in values.iter_mut().zip(&e) { *v += alpha * d * x; } }'
submission wrong-t4 1,1,1,0 $t 'let mut e = vec![0.0; values.len()]; for s in steps { let n = if s.end == End::Running { values[s.next] } else { 0.0 }; let d = s.reward + gamma * n - values[s.state]; e.iter_mut().for_each(|x| *x *= gamma * lambda); e[s.state] += 1.0; for (v, x) in values.iter_mut().zip(&e) { *v += alpha * d * x; } }'
submission wrong-t5 1,1,1,0 $t 'let mut e = vec![0.0; values.len()]; for s in steps { let n = if s.end == End::Terminated { 0.0 } else { values[s.next] }; let d = s.reward + gamma * n - values[s.state]; e.iter_mut().for_each(|x| *x *= lambda); e[s.state] += 1.0; for (v, x) in values.iter_mut().zip(&e) { *v += alpha * d * x; } }'
submission open-t 1,1,1,0 $t 'todo!()'
# hostile
submission loops 0,1,1,1 $p 'loop {}'
submission panics 1,0,1,1 $k 'panic!("no idea")'
submission allocates 1,1,0,1 $i 'vec![1; table.states() + 10_000_000_000]'
submission recurses 1,1,1,0 $t 'let mut copy = values.to_vec(); td_lambda(&mut copy, steps, alpha, gamma, lambda); values.copy_from_slice(&copy);'
submission exits 0,1,1,1 $p 'std::process::exit(10)'
submission aborts 1,0,1,1 $k 'std::process::abort()'
submission prints 1,1,0,1 $i 'loop { println!("right") }'
submission nan 1,1,1,0 $t 'values.fill(f64::NAN)'
submission threads 0,1,1,1 $p 'std::thread::spawn(|| loop {}); loop { std::hint::spin_loop() }'
submission reads 1,0,1,1 $k "if std::fs::read_to_string(\"$answers\").is_ok() { 0.0 } else { 1.0 }"
submission includes 0,0,0,0 $p 'let _ = include_str!("../Cargo.toml"); (0.0, 0.0)'
submission asks 0,0,0,0 $p 'let _ = gradus_course::homework_1::lesson; (0.0, 0.0)'
submission no-compile 0,0,0,0 $p '"text"'
# files
cp "$root/course/exercises/homework_1.rs" "$dir/all/template.rs" && echo 'template,0,0,0,0' >>"$dir/expected"
cp "$answers" "$dir/all/right.rs" && echo 'right,1,1,1,1' >>"$dir/expected"
mkdir "$dir/all/nothing" && echo 'nothing,0,0,0,0' >>"$dir/expected"
printf '\xff\xfe' >"$dir/all/bytes.rs" && echo 'bytes,0,0,0,0' >>"$dir/expected"
count=$(wc -l <"$dir/expected")
[ "$count" = 51 ] || { echo "homework: expected 51 submissions, got $count" >&2; exit 1; }

began=$SECONDS
"$gradus" course grade h1 "$dir/all" --csv "$dir/grades.csv" --seed 7 >"$dir/log" || { cat "$dir/log"; exit 1; }
seconds=$((SECONDS - began))
LC_ALL=C sort "$dir/expected" >"$dir/sorted"
tail -n +2 "$dir/grades.csv" | cut -d, -f1,3-6 | LC_ALL=C sort | diff "$dir/sorted" - || { echo "homework: expected other marks" >&2; exit 1; }
echo "homework: 51 submissions graded in $seconds s, no mark wrong"

# the autograder's files, as Gradescope uses them; the source is this folder
mkdir -p "$dir/autograder/submission"
"$gradus" course bundle h1 "$dir/bundle" --repository "$root" --commit "$(git -C "$root" rev-parse HEAD)" --seed 7 >/dev/null
cp "$dir/all/wrong-k1.rs" "$dir/autograder/submission/homework_1.rs"
cat >"$dir/autograder/submission_metadata.json" <<'END'
{ "id": 5, "assignment": { "id": 6 }, "users": [ { "email": "eve@example.org",
    "id": 4711, "name": "Eve" } ] }
END
if [ "${1:-}" = --autograder ]; then
  AUTOGRADER=$dir/autograder bash "$dir/bundle/setup.sh" >"$dir/log" 2>&1 || { tail -5 "$dir/log"; exit 1; }
  AUTOGRADER=$dir/autograder bash "$dir/bundle/run_autograder" >"$dir/log" 2>&1 || { tail -5 "$dir/log"; exit 1; }
  [ -d "$dir/autograder/course/graded/student-4711" ] || { echo "homework: expected the student's number" >&2; exit 1; }
  python3 - "$dir/autograder/results/results.json" <<'END'
import json, sys
tests = json.load(open(sys.argv[1]))["tests"]
assert [test["score"] for test in tests] == [15, 0, 15, 15], tests
assert "one gets" not in str(tests), tests
END
  echo "homework: the autograder's files give the points 15, 0, 15, 15"
fi
