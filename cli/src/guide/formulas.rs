//! Formulas in TeX as a terminal can show them: `$\frac{1}{n} \sum_i R_i$` becomes `1/n Σᵢ Rᵢ`.

use std::iter::Peekable;
use std::str::Chars;

/// Returns a page with its formulas as text: those between `$` in their lines, those between `$$` indented.
pub(super) fn shown(page: &str) -> String {
    let (mut out, mut is_code, mut formula) = (String::new(), false, None::<String>);
    for line in page.split_inclusive('\n') {
        is_code ^= line.trim_start().starts_with("```");
        match (&mut formula, line.trim() == "$$") {
            (None, true) if !is_code => formula = Some(String::new()),
            (Some(tex), true) => {
                out += &format!("    {}\n", text(tex.trim()));
                formula = None;
            }
            (Some(tex), false) => *tex += line,
            _ if is_code || !line.contains('$') => out += line,
            _ => out += &inline(line),
        }
    }
    out + &formula.unwrap_or_default()
}

/// Returns a line with the formulas that begin and end in it as text. A dollar in code, or one beside a space, begins no formula.
fn inline(line: &str) -> String {
    let mut out = String::new();
    for (at, part) in line.split('`').enumerate() {
        if at > 0 {
            out.push('`');
        }
        let mut rest = part;
        while at % 2 == 0
            && let Some((before, after)) = rest.split_once('$')
        {
            let is_formula = |tex: &str| !tex.is_empty() && !tex.starts_with(char::is_whitespace) && !tex.ends_with(char::is_whitespace);
            let Some((tex, after)) = after.split_once('$').filter(|(tex, _)| is_formula(tex)) else { break };
            out += before;
            out += &text(tex);
            rest = after;
        }
        out += rest;
    }
    out
}

/// Returns a formula as text.
fn text(tex: &str) -> String {
    let mut out = String::new();
    let mut letters = tex.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => command(&mut letters, &mut out),
            '^' => out += &raised('^', &argument(&mut letters)),
            '_' => out += &raised('_', &argument(&mut letters)),
            '{' | '}' => {}
            '-' => out.push('−'),
            '\n' => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}

/// Adds the text of a command, whose backslash was read.
fn command(letters: &mut Peekable<Chars<'_>>, out: &mut String) {
    let mut name = String::new();
    while let Some(letter) = letters.next_if(char::is_ascii_alphabetic) {
        name.push(letter);
    }
    if let Some((_, accent)) = ACCENTS.iter().find(|(known, _)| *known == name) {
        *out += &argument(letters);
        out.push(*accent);
        return;
    }
    match name.as_str() {
        "" => out.extend(letters.next()),
        "left" | "right" => {}
        "quad" => *out += "  ",
        "text" | "mathrm" | "mathbb" => *out += &argument(letters),
        "tag" => *out += &format!("    ({})", argument(letters)),
        "sqrt" => *out += &format!("√({})", argument(letters)),
        "frac" => {
            let [above, below] = [argument(letters), argument(letters)].map(factor);
            let space = if above.chars().count().max(below.chars().count()) > 2 { " " } else { "" };
            *out += &format!("{above}{space}/{space}{below}");
        }
        name if FUNCTIONS.contains(&name) => {
            if out.ends_with(char::is_alphanumeric) {
                out.push(' ');
            }
            *out += name;
        }
        name => match SYMBOLS.iter().find(|(known, _)| *known == name) {
            Some((_, symbol)) => *out += symbol,
            None => *out += &format!("\\{name}"),
        },
    }
}

/// Reads the next group, command or letter, and returns it as text.
fn argument(letters: &mut Peekable<Chars<'_>>) -> String {
    while letters.next_if_eq(&' ').is_some() {}
    match letters.next() {
        Some('{') => {
            let (mut tex, mut depth) = (String::new(), 1);
            for letter in letters.by_ref() {
                depth += i32::from(letter == '{') - i32::from(letter == '}');
                if depth == 0 {
                    break;
                }
                tex.push(letter);
            }
            text(&tex)
        }
        Some('\\') => {
            let mut out = String::new();
            command(letters, &mut out);
            out
        }
        letter => letter.map(String::from).unwrap_or_default(),
    }
}

/// Returns a text in parentheses if it has several terms or factors.
fn factor(text: String) -> String {
    if text.contains([' ', '/']) { format!("({text})") } else { text }
}

/// Returns a subscript or a superscript: in small letters where there are such, else after its mark.
fn raised(mark: char, text: &str) -> String {
    let small = if mark == '_' { SUBSCRIPTS } else { SUPERSCRIPTS };
    let of = |letter| small.0.chars().zip(small.1.chars()).find(|(plain, _)| *plain == letter).map(|(_, small)| small);
    match text.chars().map(of).collect::<Option<String>>() {
        Some(small) => small,
        None if text.chars().all(char::is_alphanumeric) || text.chars().count() == 1 => format!("{mark}{text}"),
        None => format!("{mark}{{{text}}}"),
    }
}

const SUBSCRIPTS: (&str, &str) = ("0123456789+−=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ");
const SUPERSCRIPTS: (&str, &str) = ("0123456789+−=()inT", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁱⁿᵀ");
const ACCENTS: [(&str, char); 3] = [("hat", '\u{302}'), ("bar", '\u{304}'), ("tilde", '\u{303}')];
const FUNCTIONS: [&str; 6] = ["arg", "ln", "log", "max", "min", "tanh"];
const SYMBOLS: [(&str, &str); 33] = [
    ("Delta", "Δ"),
    ("epsilon", "ε"),
    ("eta", "η"),
    ("partial", "∂"),
    ("alpha", "α"),
    ("beta", "β"),
    ("gamma", "γ"),
    ("delta", "δ"),
    ("varepsilon", "ε"),
    ("theta", "θ"),
    ("lambda", "λ"),
    ("mu", "μ"),
    ("pi", "π"),
    ("rho", "ρ"),
    ("sigma", "σ"),
    ("tau", "τ"),
    ("sum", "Σ"),
    ("prod", "Π"),
    ("nabla", "∇"),
    ("infty", "∞"),
    ("mid", "|"),
    ("lt", "<"),
    ("gt", ">"),
    ("le", "≤"),
    ("ge", "≥"),
    ("approx", "≈"),
    ("sim", "~"),
    ("succ", "≻"),
    ("cdot", "·"),
    ("times", "×"),
    ("ldots", "…"),
    ("dots", "…"),
    ("leftarrow", "←"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_become_text() {
        for (tex, shown) in [
            (r"Q_{n+1} = Q_n + \frac{1}{n} [ R_n - Q_n ]", "Qₙ₊₁ = Qₙ + 1/n [ Rₙ − Qₙ ]"),
            (r"A_t = \arg\max_a \left[ Q_t(a) + c \sqrt{\frac{\ln t}{N_t(a)}} \right]", "Aₜ = arg maxₐ [ Qₜ(a) + c √((ln t) / Nₜ(a)) ]"),
            (r"\pi(a) = \frac{e^{H(a)}}{\sum_b e^{H(b)}}", "π(a) = e^{H(a)} / (Σ_b e^{H(b)})"),
            (r"q_\pi(s, a) = \sum_{s', r} p(s', r \mid s, a)", "q_π(s, a) = Σ_{s', r} p(s', r | s, a)"),
            (r"L = \mathrm{mean_t} [ -\hat A_t ] \tag{7}", "L = meanₜ [ −Âₜ ]     (7)"),
            (r"\gamma^{n-1} R_{t+n}", "γⁿ⁻¹ Rₜ₊ₙ"),
            (r"G_t^\lambda", "Gₜ^λ"),
            (r"π_{θ_{old}}(\cdot|s_t)", "π_{θ_old}(·|sₜ)"),
            (r"10^{-4}", "10⁻⁴"),
        ] {
            assert_eq!(text(tex), shown.replace("Âₜ", "A\u{302}ₜ"));
        }
    }

    #[test]
    fn code_and_prices_stay() {
        let page = "a $k$ b `$x$` costs $ 5\n\n$$\n\\gamma V\n$$\n\n```sh\necho $HOME $PWD\n```\n";
        assert_eq!(shown(page), "a k b `$x$` costs $ 5\n\n    γ V\n\n```sh\necho $HOME $PWD\n```\n");
    }

    #[test]
    fn no_page_has_a_command_that_is_not_known() {
        for (name, page) in gradus::guide::PAGES {
            let mut is_code = false;
            for line in shown(page).lines() {
                is_code ^= line.trim_start().starts_with("```");
                let prose: String = line.split('`').step_by(2).collect();
                let is_tex = prose.replace("\\|", "").contains('\\') || line.trim() == "$$";
                assert!(is_code || !is_tex, "{name}: {line}");
            }
        }
    }
}
