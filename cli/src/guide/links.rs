//! Links, pictures and code of a page as a terminal can show them.

/// Returns a page whose links say where `gradus guide` has their targets, whose pictures are their descriptions, and whose code has no lines
/// that only the tests of the documentation see.
pub(super) fn shown(page: &str, is_page: &dyn Fn(&str) -> bool) -> String {
    let (mut out, mut is_code) = (String::new(), false);
    for line in page.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        if is_fence {
            out += &line.replace("```rust,ignore", "```rust");
        } else if !is_code {
            out += &prose(line, is_page);
        } else if !line.starts_with("# Ok::<") {
            out += line;
        }
        is_code ^= is_fence;
    }
    out
}

fn prose(line: &str, is_page: &dyn Fn(&str) -> bool) -> String {
    let (mut out, mut rest) = (String::new(), line);
    // the text of a link has no brackets, except in code
    while let Some(middle) = rest.find("](") {
        let (before, after) = (&rest[..middle], &rest[middle + 2..]);
        let (Some(start), Some(end)) = (before.rfind('['), after.find(')')) else { break };
        let (text, target) = (&before[start + 1..], &after[..end]);
        let is_picture = before[..start].ends_with('!');
        out += before[..start].trim_end_matches('!');
        if is_picture {
            out += &format!("Figure: {text}");
        } else {
            out += text;
            out += &place(target, is_page);
        }
        rest = &after[end + 1..];
    }
    out + rest
}

/// Returns where the target of a link is, in parentheses; nothing for a section of the same page.
fn place(target: &str, is_page: &dyn Fn(&str) -> bool) -> String {
    let (file, section) = target.split_once('#').map_or((target, String::new()), |(file, section)| (file, format!("#{section}")));
    let name = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".md");
    match () {
        () if file.is_empty() => String::new(),
        () if file.ends_with(".md") && !file.contains("results/") && is_page(name) => format!(" (guide {name}{section})"),
        () => format!(" ({})", file.trim_start_matches("../")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_say_where_they_lead() {
        let is_page = |name: &str| name == "ppo";
        for (line, expected) in [
            ("see [the page](agents/ppo.md#the-clip), and\n", "see the page (guide ppo#the-clip), and\n"),
            ("| [a](#b) | [c.rs](../../agents/src/c.rs) |\n", "| a | c.rs (agents/src/c.rs) |\n"),
            ("![A curve](x.svg)\n", "Figure: A curve\n"),
            ("[r](../results/README.md)\n", "r (results/README.md)\n"),
            ("x[a][b] y\n", "x[a][b] y\n"),
        ] {
            assert_eq!(shown(line, &is_page), expected);
        }
        let code = "```rust,ignore\nlet a = [1](2);\n# Ok::<(), Error>(())\n```\n[a](#b)\n";
        assert_eq!(shown(code, &is_page), "```rust\nlet a = [1](2);\n```\na\n");
    }
}
