"""Optimisers, schedules and what watches a run."""
