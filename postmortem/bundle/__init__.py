"""A ticket: everything that a supporter needs of one failed run, in one zip, with a manifest of checksums."""

from postmortem.bundle.archive import BadBundle, pack, unpack
from postmortem.bundle.manifest import Manifest

__all__ = ["BadBundle", "Manifest", "pack", "unpack"]
