"""Links the first use of every term on a main page to the glossary, when the site is built; the pages stay plain text."""

import re
from typing import Any

# What a reader meets, and where it is explained. The anchors are the headings of glossary.md, which a test compares.
TERMS = {
    "alter-ego": r"alter egos?",
    "audit": r"audits?",
    "broken-twin": r"broken twins?",
    "budget": r"budgets?",
    "candidate": r"candidates?",
    "catalogue": r"catalogues?",
    "charge": r"charges?|charged",
    "coordinator": r"coordinators?",
    "curator": r"curators?",
    "delta": r"delta",
    "device": r"devices?",
    "entity": r"entity|entities",
    "epsilon": r"epsilons?",
    "eta": r"eta",
    "features": r"features",
    "guarantee": r"guarantees?",
    "impression": r"impressions?",
    "item": r"items?",
    "ledger": r"ledgers?",
    "local-model": r"local models?",
    "look-alike": r"look-alikes?",
    "mechanism": r"mechanisms?",
    "memo": r"memos?",
    "neighbours": r"neighbours",
    "noise": r"noise",
    "offer": r"offers?",
    "pick": r"picks?",
    "profile": r"profiles?",
    "prototype": r"prototypes?",
    "published-mode": r"published mode|mode `published`",
    "regret": r"regret",
    "release": r"releases?|released",
    "replacement": r"replacements?",
    "secure-sum": r"secure sums?|secure aggregation",
    "server": r"servers?",
    "shuffler": r"shufflers?",
    "signal": r"signals?",
    "slate": r"slates?",
    "slot": r"slots?",
    "source-and-target": r"source and (?:the )?target",
    "store": r"stores?",
    "subject": r"subjects?",
    "user": r"users?",
    "utility": r"utility|utilities",
}
MAIN = re.compile(
    r"(index|tutorial|choosing|multi-selection|private-selection|private-slates|federated-prototypes|cross-domain|concepts/[\w-]+)\.md"
)
# What is no prose: code, links, tags, and pictures.
APART = re.compile(r"`[^`]*`|!?\[[^\]]*\]\([^)]*\)|<[^>]*>")


def linked(text: str, glossary: str) -> str:
    """``text`` with the first use of each term in running prose turned into a link; headings, tables and code stay as they are."""
    open_terms = {
        anchor: re.compile(rf"(?<![\w/^=-])({forms})(?![\w/^=-])", re.IGNORECASE) for anchor, forms in TERMS.items()
    }
    rows, fenced = [], False
    for row in text.split("\n"):
        if row.lstrip().startswith("```"):
            fenced = not fenced
        plain = fenced or row.lstrip().startswith(("```", "#", "|", "    ", "<", "![", ":::"))
        rows.append(row if plain else _row(row, open_terms, glossary))
    return "\n".join(rows)


def _row(row: str, open_terms: dict[str, re.Pattern[str]], glossary: str) -> str:
    for anchor in sorted(
        open_terms, key=lambda name: -len(TERMS[name])
    ):  # "local model" before "model", "broken twin" first
        apart = [found.span() for found in APART.finditer(row)]
        for found in open_terms[anchor].finditer(row):
            if not any(low <= found.start() < high for low, high in apart):
                row = f"{row[: found.start()]}[{found[0]}]({glossary}#{anchor}){{.term}}{row[found.end() :]}"
                del open_terms[anchor]
                break
    return row


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The hook that mkdocs calls for every page."""
    name = page.file.src_uri
    return linked(markdown, "../" * name.count("/") + "glossary.md") if MAIN.fullmatch(name) else markdown
