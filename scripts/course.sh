#!/usr/bin/env bash
# Checks the course as a student and a lecturer use it: `gradus course new`, templates, answers, hints, and the grades of submissions that are
# right, wrong, or try what they must not. PROGRAMS names the folder of what is built [default: a temporary folder].
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
cargo build --quiet
gradus=$root/target/debug/gradus

fail() {
  echo "course: $*" >&2
  exit 1
}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export CARGO_TARGET_DIR=${PROGRAMS:-$dir/target}
"$gradus" course new "$dir/ada" >"$dir/log" 2>&1 || { cat "$dir/log"; fail "expected a folder that builds"; }
"$gradus" course new "$dir/ada" 2>/dev/null && fail "expected a folder that exists to be refused"
cd "$dir/ada"

# every template is open, every answer is right, and an answer is shown only then
all=$(cat src/lesson_*.rs | grep -c '^pub fn')
"$gradus" course list | grep -q "^0 of $all right\.$" || fail "expected no template to be right"
"$gradus" course solution 1.1 2>/dev/null && fail "expected no answer to an open exercise"
for lesson in $(ls src/lesson_*.rs | tr -dc '0-9\n'); do
  cp "$root/course/answers/lesson_$lesson.rs" src/
  began=$(date +%s%N)
  "$gradus" course check "$lesson" >/dev/null || fail "expected the answers of lesson $lesson to be right"
  echo "lesson $lesson: built and checked in $((($(date +%s%N) - began) / 1000000)) ms"
done
"$gradus" course list | grep -q "^$all of $all right\.$" || fail "expected all answers to be right"
"$gradus" course solution 1.1 | grep -q 'reward - q' || fail "expected the answer"
"$gradus" course reset 1.1 >/dev/null
said=$("$gradus" course check 1.1 || true)
grep -q 'not written yet' <<<"$said" || fail "expected the template again"
"$gradus" course reset 1.4 >/dev/null
said=$("$gradus" course check 1.5 || true)
grep -q 'waits for softmax (1.4)' <<<"$said" || fail "expected an exercise that waits for another one"
for count in 1 2 3; do "$gradus" course hint 1.2 | grep -q "^$count\." || fail "expected hint $count"; done
"$gradus" course check 1.99 2>/dev/null && fail "expected an unknown exercise to be refused"

# submissions: the answers, with one function replaced
mkdir "$dir/submissions" "$dir/none"
replaced() {
  awk -v name="$2" -v new="$3" '$0 ~ "^pub fn " name "[(]" { print; print "    " new; skip = 1; next } skip && /^}/ { skip = 0 } !skip' \
    "$root/course/answers/lesson_1.rs" >"$dir/submissions/$1.rs"
}
cp "$root/course/answers/lesson_1.rs" "$dir/submissions/right.rs"
cp "$root/course/exercises/lesson_1.rs" "$dir/submissions/open.rs"
mkdir "$dir/submissions/manifest" "$dir/submissions/nothing"
cp "$root/course/answers/lesson_1.rs" "$dir/submissions/manifest/"
printf '[dependencies]\nserde = "1"\n' >"$dir/submissions/manifest/Cargo.toml"
printf '\xff\xfe' >"$dir/submissions/bytes.rs"
replaced no-compile regret '"text"'
replaced loops regret 'loop {}'
replaced panics regret 'panic!("no idea")'
replaced allocates regret 'vec![0.5; arms.len() + 10_000_000_000]'
replaced prints regret 'loop { println!("a megabyte") }'
replaced exits regret 'std::process::exit(0)'
replaced recurses regret 'let mut all = regret(values, arms); all.push(0.0); all'
replaced includes regret 'let _ = include_str!("../Cargo.toml"); vec![]'
replaced asks regret 'let _ = gradus_course::lesson_1::lesson; vec![]'
replaced reads regret "vec![std::fs::read_to_string(\"$root/course/answers/lesson_1.rs\").map_or(0.0, |_| 1.0)]"
replaced writes regret "let _ = std::fs::write(\"$dir/written\", \"\"); vec![]"
replaced named regret 'arms.iter().map(|arm| values.iter().copied().fold(f64::MIN, f64::max) - values[*arm]).collect()'
grades() { "$gradus" course grade 1 "$dir/submissions" --json "$dir/$1.json" --csv "$dir/$1.csv" --gradescope "$dir/$1" >"$dir/$1.txt"; }
grades first
cat >"$dir/expected" <<END
student,right,1.1,1.2,1.3,1.4,1.5,1.6,problem
allocates,5,1,1,1,1,1,0,
asks,0,0,0,0,0,0,0,"line 50: expected the functions of the template, got gradus_course, of which only Table, Outcome, End and Step are allowed"
bytes,0,0,0,0,0,0,0,"expected text in UTF-8, got other bytes"
exits,5,1,1,1,1,1,0,
includes,0,0,0,0,0,0,0,"line 50: expected the functions of the template, got include_str!, which reads another file"
loops,5,1,1,1,1,1,0,
manifest,6,1,1,1,1,1,1,
named,5,1,1,1,1,1,0,
no-compile,0,0,0,0,0,0,0,does not compile: error[E0308]: mismatched types (lesson_1.rs:50:5)
nothing,0,0,0,0,0,0,0,"expected the file lesson_1.rs, got none"
open,0,0,0,0,0,0,0,
panics,5,1,1,1,1,1,0,
prints,5,1,1,1,1,1,0,
reads,5,1,1,1,1,1,0,
recurses,5,1,1,1,1,1,0,
right,6,1,1,1,1,1,1,
writes,5,1,1,1,1,1,0,
END
diff "$dir/expected" "$dir/first.csv" || fail "expected other grades"
grep -q 'each number is the cost of one step' "$dir/first.txt" || fail "expected the mistake to be named"
if grep -q '^not isolated' "$dir/first.txt"; then
  echo "course: this kernel has no Landlock: submissions were not isolated"
else
  grep -A 2 '^reads: ' "$dir/first.txt" | grep -q 'got \[0\]' || fail "expected that the answers cannot be read"
  [ ! -e "$dir/written" ] || fail "expected that nothing can be written"
fi
python3 -c 'import json, sys; assert len(json.load(open(sys.argv[1]))["tests"]) == 6' "$dir/first/right/results.json"

# the same bytes without the vector instructions that the C library chooses
GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-AVX512F,-FMA,-AVX_Fast_Unaligned_Load grades second
for file in json csv txt; do cmp "$dir/first.$file" "$dir/second.$file" || fail "expected the same $file"; done
said=$("$gradus" course grade 1 "$dir/none" 2>&1 || true)
grep -q 'expected submissions, NAME.rs or NAME/lesson_1.rs, got none' <<<"$said" || fail "expected one line"
echo "course: templates, answers, hints and 17 submissions as expected"
