"""The words that every room shares: what a scan finds, what a run was, what it died of, what helps.

Frozen values, handed from room to room in one direction. Sizes are MiB as floats (`_mib`), steps are
AI Toolkit's own 0-based ``step_num``, lines are 1-based and count line feeds.
"""

from postmortem.model.beside import Checkpoint, DatasetSizes, FolderWitness, JobConfig, JobDatabase, JobRow, Kept, Value
from postmortem.model.findings import (
    BucketOdds,
    Clue,
    ConfigChange,
    Dated,
    Diagnosis,
    Evidence,
    FactorFound,
    NotHelping,
    Range,
    RegressionFound,
    Rung,
    Skips,
    Suggestion,
)
from postmortem.model.run import Attempt, Bucket, End, Oom, Pace, Stage, StepTimes, Stretch
from postmortem.model.scanned import (
    BarSpan,
    ConfigDump,
    Event,
    Frame,
    Item,
    Notice,
    Place,
    ScanResult,
    Stamp,
    Traceback,
)

__all__ = [
    "Attempt",
    "BarSpan",
    "Bucket",
    "BucketOdds",
    "Checkpoint",
    "Clue",
    "ConfigChange",
    "ConfigDump",
    "DatasetSizes",
    "Dated",
    "Diagnosis",
    "End",
    "Event",
    "Evidence",
    "FactorFound",
    "FolderWitness",
    "Frame",
    "Item",
    "JobConfig",
    "JobDatabase",
    "JobRow",
    "Kept",
    "NotHelping",
    "Notice",
    "Oom",
    "Pace",
    "Place",
    "Range",
    "RegressionFound",
    "Rung",
    "ScanResult",
    "Skips",
    "Stage",
    "Stamp",
    "StepTimes",
    "Stretch",
    "Suggestion",
    "Traceback",
    "Value",
]
