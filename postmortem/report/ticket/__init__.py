"""Reports as tickets: neutral blocks, a writer for each tracker's markup, and a size budget.

What a ticket says is built once, as sections of blocks (`blocks`); `written` turns them into the markup of a flavour
and gives up the least important details where the text would be too long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from postmortem.report.texts import Texts
from postmortem.report.ticket import budget
from postmortem.report.ticket.blocks import Block, Paragraph, Section
from postmortem.text import LogText, Words

FLOOR = 1200
"""The least budget: the verdict, its proof, the table and the first fix surely fit it."""

MANY = 8
"""So many parts left out are not listed."""


@dataclass(frozen=True, slots=True)
class Flavor:
    """A tracker's markup, and how many characters one of its texts safely takes (of GitHub's 65,536 and so on)."""

    writer: str
    most: int


FLAVORS = {
    "github": Flavor("github", 60_000),
    "discord": Flavor("discord", 2_000),
    "jira": Flavor("jira", 30_000),
    "plain": Flavor("plain", 60_000),
}


def written(sections: Sequence[Section], texts: Texts, flavor: str = "github", most: int | None = None) -> str:
    """The sections in the markup of `flavor`, in at most `most` characters (None: what its tracker takes; 0: all)."""
    limit = FLAVORS[flavor].most if most is None else most
    if limit and limit < FLOOR:
        raise ValueError(f"a ticket needs at least {FLOOR} characters")

    def left_out(names: list[str]) -> Block:
        listed = texts("ticket.most") if len(names) > MANY else ", ".join(names)
        said = texts("ticket.left_out", {"names": listed, "most": f"{limit:,}"})
        return Paragraph((Words(said, " ", LogText("--max-chars 0")),))

    return budget.fitted([section for section in sections if section.forms[0]], _writer(flavor), limit, left_out)


def _writer(flavor: str) -> Callable[[Sequence[Block]], str]:
    name = FLAVORS[flavor].writer
    if name == "jira":
        from postmortem.report.ticket import jira

        return jira.write
    if name == "plain":
        from postmortem.report.ticket import plain

        return plain.write
    from postmortem.report.ticket import github

    return github.write_discord if name == "discord" else github.write
