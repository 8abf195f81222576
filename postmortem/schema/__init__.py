"""The published JSON Schemas of every JSON document."""

from postmortem.schema.build import DOCUMENTS, schema

__all__ = ["DOCUMENTS", "schema"]
