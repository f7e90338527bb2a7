"""Draws the diagrams of the documentation: python3 scripts/diagrams.py

Every `docs/images/NAME.txt` becomes `docs/images/NAME.svg`, which follows the reader's light or dark theme. `--check` draws nothing and fails
if a diagram differs from its text. Needs Python 3.9 and no packages.

A line of a text file is one of

    size WIDTH HEIGHT
    title WORDS                                     for screen readers
    box NAME X Y WIDTH HEIGHT KIND [top] | HEADING | LINE | ...
    arrow NAME.SIDE[:SHIFT] [X,Y ...] NAME.SIDE[:SHIFT] [above|below|left|right] | LINE | ...
    text X Y start|middle|end [bold] | LINE | ...

SIDE is n, e, s or w. SHIFT moves the end of an arrow along the side, in pixels. X,Y are the corners of an arrow. The label of an arrow is placed
at the middle of the arrow's longest segment. KIND selects the colours of a box: `envs`, `nets` and `agents` for the crates of these names, `src` for
other code, and `room` for a box within another box. `top` places the text at the upper edge of a box. `#` begins a comment.
"""

import pathlib
import sys
from xml.sax.saxutils import escape

HEADING, LINE = 14, 12.5  # sizes of type, in pixels
LEADING = 16

LIGHT = {
    "paper": "#ffffff", "edge": "#d0d7de", "ink": "#1f2328", "quiet": "#57606a", "line": "#57606a",
    "envs": ("#dff3e4", "#2f8f4e"), "nets": ("#fdeeda", "#c2741a"), "agents": ("#dfeafc", "#2f6fd0"), "src": ("#ececf1", "#6e7681"),
}
DARK = {
    "paper": "#0d1117", "edge": "#30363d", "ink": "#e6edf3", "quiet": "#9da7b3", "line": "#9da7b3",
    "envs": ("#12301c", "#4fb56f"), "nets": ("#3a2710", "#e0953f"), "agents": ("#132a4d", "#6ca4f8"), "src": ("#21262d", "#8b949e"),
}


def style(colours):
    """Returns the CSS rules of one theme. Every selector applies only to the figure, because the SVG may be embedded in a page."""
    rules = [
        f".g-paper{{fill:{colours['paper']};stroke:{colours['edge']}}}",
        f".g-h{{fill:{colours['ink']};font-weight:600;font-size:{HEADING}px}}",
        f".g-r{{fill:{colours['ink']};font-size:{LINE}px}}",
        f".g-l{{fill:{colours['quiet']};font-size:{LINE}px}}",
        f".g-a{{fill:none;stroke:{colours['line']};stroke-width:1.6}}",
        f".g-t{{fill:{colours['line']}}}",
        f".g-room{{fill:{colours['paper']};stroke:{colours['edge']}}}",
    ]
    rules += [f".g-{kind}{{fill:{colours[kind][0]};stroke:{colours[kind][1]};stroke-width:1.4}}" for kind in ("envs", "nets", "agents", "src")]
    return "".join(".gradus-figure " + rule for rule in rules)


class Figure:
    """The drawing of a text file."""

    def __init__(self, name, text):
        self.name, self.boxes, self.shapes, self.labels = name, {}, [], []
        self.width = self.height = None
        self.title = name
        for number, line in enumerate(text.splitlines(), 1):
            line = line.split("#", 1)[0].strip()
            if line:
                try:
                    head, *lines = [part.strip() for part in line.split("|")]
                    command, *words = head.split()
                    getattr(self, "draw_" + command)(words, lines)
                except (AttributeError, KeyError, ValueError, TypeError) as error:
                    sys.exit(f"{name}.txt, line {number}: {error!r} in `{line}`")

    def draw_size(self, words, _):
        self.width, self.height = map(int, words)

    def draw_title(self, words, _):
        self.title = " ".join(words)

    def write(self, x, y, lines, anchor, first="l"):
        """Writes lines below each other. `y` is the height of the middle of the first line."""
        for i, line in enumerate(lines):
            kind = first if i == 0 else "l"
            self.labels.append(f'<text class="g-{kind}" x="{x:g}" y="{y + i * LEADING + 4.5:g}" text-anchor="{anchor}">{escape(line)}</text>')

    def draw_box(self, words, lines):
        name, x, y, width, height, kind = words[0], *map(float, words[1:5]), words[5]
        self.boxes[name] = (x, y, width, height)
        self.shapes.append(f'<rect class="g-{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6"/>')
        top = y + 14 if "top" in words[6:] else y + height / 2 - (len(lines) - 1) * LEADING / 2
        self.write(x + width / 2, top, lines, "middle", "r" if kind == "room" else "h")

    def draw_text(self, words, lines):
        x, y, anchor = float(words[0]), float(words[1]), words[2]
        self.write(x, y, lines, anchor, "h" if "bold" in words else "l")

    def anchor(self, place):
        name, side = place.split(".")
        side, _, shift = side.partition(":")
        x, y, width, height = self.boxes[name]
        shift = float(shift or 0)
        return {
            "n": (x + width / 2 + shift, y), "s": (x + width / 2 + shift, y + height),
            "w": (x, y + height / 2 + shift), "e": (x + width, y + height / 2 + shift),
        }[side]

    def draw_arrow(self, words, lines):
        where = words.pop() if words[-1] in ("above", "below", "left", "right") else None
        points = [tuple(map(float, word.split(","))) if word[0].isdigit() else self.anchor(word) for word in words]
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self.shapes.append(f'<polyline class="g-a" points="{path}" marker-end="url(#{self.name}-tip)"/>')
        if lines:
            (x1, y1), (x2, y2) = max(zip(points, points[1:]), key=lambda part: abs(part[0][0] - part[1][0]) + abs(part[0][1] - part[1][1]))
            x, y = (x1 + x2) / 2, (y1 + y2) / 2
            where = where or ("above" if y1 == y2 else "right")
            middle = (len(lines) - 1) * LEADING
            x, y, anchor = {
                "above": (x, y - 10 - middle, "middle"), "below": (x, y + 12, "middle"),
                "left": (x - 8, y - middle / 2, "end"), "right": (x + 8, y - middle / 2, "start"),
            }[where]
            self.write(x, y, lines, anchor)

    def svg(self):
        tip = f'<marker id="{self.name}-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        lines = [
            f'<svg class="gradus-figure" id="gradus-{self.name}" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'role="img" aria-label="{escape(self.title)}" font-family="system-ui,-apple-system,Segoe UI,Helvetica,Arial,sans-serif">',
            f"<title>{escape(self.title)}</title>",
            f"<style>.gradus-figure{{max-width:100%;height:auto}}{style(LIGHT)}@media (prefers-color-scheme:dark){{{style(DARK)}}}</style>",
            f'<defs>{tip}<path class="g-t" d="M0,0 L8,4 L0,8 z"/></marker></defs>',
            f'<rect class="g-paper" x="0.5" y="0.5" width="{self.width - 1}" height="{self.height - 1}" rx="8"/>',
        ]
        return "\n".join(lines + self.shapes + self.labels + ["</svg>"]) + "\n"


def main():
    folder = pathlib.Path(__file__).resolve().parent.parent / "docs" / "images"
    stale = []
    for source in sorted(folder.glob("*.txt")):
        svg, target = Figure(source.stem, source.read_text(encoding="utf-8")).svg(), source.with_suffix(".svg")
        if "--check" in sys.argv[1:]:
            if not target.exists() or target.read_bytes() != svg.encode():
                stale.append(target.name)
        else:
            target.write_bytes(svg.encode())
    if stale:
        sys.exit(f"{', '.join(stale)}: expected the output of scripts/diagrams.py, got another drawing; run the script")


if __name__ == "__main__":
    main()
