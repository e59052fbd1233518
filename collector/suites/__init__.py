"""Suites that come with the collector. They are loaded as files, like every suite."""
