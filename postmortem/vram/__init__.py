"""What a job needs on the card, and what the card held: `forecast` and `ledger` are the room's doors."""

from postmortem.vram.estimate import Rules
from postmortem.vram.forecast import Card, Forecast, anchored, forecast, surely_enough_mib, verdict
from postmortem.vram.job import Refusal
from postmortem.vram.ledger import Ledger, card_class_gib, ledger, next_card_gib
from postmortem.vram.outlook import Estimate, card_of, outlook

__all__ = [
    "Card",
    "Estimate",
    "Forecast",
    "Ledger",
    "Refusal",
    "Rules",
    "anchored",
    "card_class_gib",
    "card_of",
    "forecast",
    "ledger",
    "next_card_gib",
    "outlook",
    "surely_enough_mib",
    "verdict",
]
