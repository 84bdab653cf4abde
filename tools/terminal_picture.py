#!/usr/bin/env python3
"""Draws what a command printed as an SVG picture of a terminal: terminal_picture.py < output.txt > picture.svg

Lines that begin with "$ " are drawn as commands, lines of ours ("hotlap:") in colour. No fonts are embedded: any
monospaced one will do, since each line's length is fixed.
"""
import html
import sys

CHARACTER_WIDTH = 7.6
LINE_HEIGHT = 17
MARGIN = 14
COLOURS = {"command": "#e6e6e6", "ours": "#7fd1b9", "job": "#9aa5b1", "other": "#c8ccd2"}


def kind(line: str) -> str:
    if line.startswith("$ "):
        return "command"
    if line.startswith("hotlap:"):
        return "ours"
    if line.startswith("epoch "):
        return "job"
    return "other"


def main() -> None:
    lines = sys.stdin.read().rstrip("\n").split("\n")
    columns = max(len(line) for line in lines)
    width = round(columns * CHARACTER_WIDTH + 2 * MARGIN)
    height = len(lines) * LINE_HEIGHT + 2 * MARGIN
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">')
    print(f'<rect width="{width}" height="{height}" rx="8" fill="#1b1f27"/>')
    print('<g font-family="ui-monospace, DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="12.5">')
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        y = MARGIN + (number + 0.75) * LINE_HEIGHT
        length = round(len(line) * CHARACTER_WIDTH, 1)
        print(
            f'<text x="{MARGIN}" y="{y:.1f}" fill="{COLOURS[kind(line)]}" xml:space="preserve" '
            f'textLength="{length}" lengthAdjust="spacing">{html.escape(line)}</text>'
        )
    print("</g>\n</svg>")


if __name__ == "__main__":
    main()
