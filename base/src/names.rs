//! The nearest valid name, for error messages.

/// Returns the candidate most similar to `name`, if any is similar enough (Jaro-Winkler similarity above 0.75).
///
/// ```
/// assert_eq!(gradus_base::names::nearest("cartpol", ["cartpole", "bandit"]), Some("cartpole"));
/// assert_eq!(gradus_base::names::nearest("xyz", ["cartpole", "bandit"]), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(similarity, _)| *similarity > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// Returns the candidate whose last part is most similar to the last part of `name` (Jaro-Winkler similarity above 0.85). Parts end at `separator`. Of
/// equally similar candidates, the first that begins like `name` is meant.
///
/// ```
/// use gradus_base::names::nearest_key;
/// assert_eq!(nearest_key("ppo.clib", ["a2c.gamma", "ppo.clip"], '.'), Some("ppo.clip"));
/// assert_eq!(nearest_key("ppo.nothing", ["a2c.gamma", "ppo.clip"], '.'), None);
/// ```
pub fn nearest_key<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>, separator: char) -> Option<&'a str> {
    fn parts(key: &str, separator: char) -> (&str, &str) {
        key.rsplit_once(separator).unwrap_or(("", key))
    }
    let (place, last) = parts(name, separator);
    let last = last.to_lowercase();
    let mut best = (0.85, false, None);
    for candidate in candidates {
        let (other, end) = parts(candidate, separator);
        let (similarity, is_here) = (strsim::jaro_winkler(&last, &end.to_lowercase()), place == other);
        if similarity > best.0 || (similarity == best.0 && is_here && !best.1) {
            best = (similarity, is_here, Some(candidate));
        }
    }
    best.2
}

/// Returns a name as names are compared that people type: without case, hyphens, underscores and blanks.
///
/// ```
/// assert_eq!(gradus_base::names::spelled("Q_Learning"), gradus_base::names::spelled("q-learning"));
/// ```
pub fn spelled(name: &str) -> String {
    name.chars().filter(|letter| !matches!(letter, '-' | '_' | ' ')).flat_map(char::to_lowercase).collect()
}

/// Returns a Gymnasium name without its namespace and version, as [`spelled`]: `cartpole` of `CartPole-v1`, `pong` of `ALE/Pong-v5`.
///
/// ```
/// assert_eq!(gradus_base::names::without_version("ALE/Pong-v5"), "pong");
/// assert_eq!(gradus_base::names::without_version("Taxi"), "taxi");
/// ```
pub fn without_version(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or(name);
    let is_version = |end: &str| !end.is_empty() && end.chars().all(|letter| letter.is_ascii_digit());
    spelled(name.rsplit_once("-v").filter(|(_, end)| is_version(end)).map_or(name, |(name, _)| name))
}

/// Returns the second half of an error message: `did you mean ...?`, or the list of all candidates; of more than 16, the first three.
///
/// ```
/// assert_eq!(gradus_base::names::hint("cartpol", &["cartpole", "bandit"]), "did you mean `cartpole`?");
/// assert_eq!(gradus_base::names::hint("xyz", &["cartpole", "bandit"]), "expected one of: cartpole, bandit");
/// ```
pub fn hint(name: &str, candidates: &[&str]) -> String {
    match nearest(name, candidates.iter().copied()) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None if candidates.len() > 16 => {
            let some = candidates[..3].join(", ");
            format!("expected one of {} names, such as {some}; the command `list` shows all", candidates.len())
        }
        None => format!("expected one of: {}", candidates.join(", ")),
    }
}
