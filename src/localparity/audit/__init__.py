"""An audit of a model's scores: findings, how sure each is, and a verdict in words."""

from localparity.audit._audit import Audit
from localparity.audit._auditing import audit
from localparity.audit._classes import ClassAudits, audit_classes
from localparity.audit._findings import Finding, GroupSummary, LeftOut, PairSummary
from localparity.audit._missing import MissingRows
from localparity.audit._provenance import Provenance, SourceFile
from localparity.audit._same_people import PairedModels
from localparity.audit._wording import Verdict

__all__ = [
    "Audit",
    "ClassAudits",
    "Finding",
    "GroupSummary",
    "LeftOut",
    "MissingRows",
    "PairSummary",
    "PairedModels",
    "Provenance",
    "SourceFile",
    "Verdict",
    "audit",
    "audit_classes",
]
