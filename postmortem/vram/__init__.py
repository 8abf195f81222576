"""The card's memory as a ledger: `ledger` is the room's door."""

from postmortem.vram.ledger import Ledger, card_class_gib, ledger

__all__ = ["Ledger", "card_class_gib", "ledger"]
