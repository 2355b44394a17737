"""Fixtures of tests that judge and take datasets."""

from support.judge_fixtures import chain, judge, node

__all__ = ["chain", "judge", "node"]
