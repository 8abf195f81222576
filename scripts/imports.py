"""Import every module of the package; with `python -W error`, a warning at import is a failure."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import postmortem

OPTIONAL = {"distributed": "postmortem.fleet.engines"}
"""What is there with an extra only, and where it is imported at the top."""

count = 0
for module in pkgutil.walk_packages(postmortem.__path__, "postmortem."):
    if module.name == "postmortem.__main__":
        continue  # it runs the command
    try:
        importlib.import_module(module.name)
    except ImportError as error:
        if not module.name.startswith(OPTIONAL.get(error.name or "", "-")):
            raise
    count += 1
print(f"{count} modules imported")
