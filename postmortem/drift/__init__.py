"""What an AI Toolkit checkout says that the knowledge base does not know, and the other way round."""

from postmortem.drift.checkout import Checkout, CheckoutError, read
from postmortem.drift.compare import Drift, compare

__all__ = ["Checkout", "CheckoutError", "Drift", "compare", "read"]
