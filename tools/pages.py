"""What the pages share that are written from recorded results: no number on them is typed."""

import json
import sys
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|---" + "|---:" * (len(header) - 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def main(page, source, target):
    """Writes page(what the source holds); with --check only says whether that is the target."""
    text = page(json.loads(source.read_text(encoding="utf-8")))
    if "--check" in sys.argv[1:]:
        return 0 if target.read_text(encoding="utf-8") == text else 1
    target.write_text(text, encoding="utf-8")
    return 0
