//! The nearest valid name, for error messages.

/// Returns the candidate most similar to `name`, if any is similar enough (Jaro-Winkler similarity above 0.7).
///
/// ```
/// assert_eq!(gradus_envs::names::nearest("cartpol", ["cartpole", "bandit"]), Some("cartpole"));
/// assert_eq!(gradus_envs::names::nearest("xyz", ["cartpole", "bandit"]), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(similarity, _)| *similarity > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// Returns the second half of an error message: `did you mean ...?`, or the list of all candidates.
///
/// ```
/// assert_eq!(gradus_envs::names::hint("cartpol", &["cartpole", "bandit"]), "did you mean `cartpole`?");
/// assert_eq!(gradus_envs::names::hint("xyz", &["cartpole", "bandit"]), "expected one of: cartpole, bandit");
/// ```
pub fn hint(name: &str, candidates: &[&str]) -> String {
    match nearest(name, candidates.iter().copied()) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None => format!("expected one of: {}", candidates.join(", ")),
    }
}
