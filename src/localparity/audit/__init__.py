"""An audit of a model's scores: findings, how sure each is, and a verdict in words."""

from localparity.audit._audit import Audit, audit

__all__ = ["Audit", "audit"]
