"""Audits: certificates proven again, by other code and other arithmetic, from the model alone (docs/trust.md)."""

from derand.auditing._audit import Audit, audit, audit_rows, choose_rows
from derand.auditing._machine import MachineCheck, check_machine, find_failed

__all__ = ["Audit", "MachineCheck", "audit", "audit_rows", "check_machine", "choose_rows", "find_failed"]
