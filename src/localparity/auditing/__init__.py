"""An audit of a model's scores: findings, how sure each is, and a verdict in words."""

from localparity.auditing._audit import Audit, audit
from localparity.auditing._classes import ClassAudits, audit_classes
from localparity.auditing._findings import Finding, GroupSummary, LeftOut, PairSummary
from localparity.auditing._missing import MissingRows
from localparity.auditing._paired_models import PairedModels
from localparity.auditing._provenance import Provenance, SourceFile
from localparity.auditing._wording import Verdict

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
