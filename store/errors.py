"""What can go wrong in the store. The command line alone turns these into messages.

StoreError
├── StoreMissing
├── StoreLocked
├── StoreTooNew
├── StoreInvalid
├── RunNotFound
├── MessageNotFound
├── BundleInvalid
├── ConfigurationInvalid
└── GitError
    ├── NoRepository
    └── UnknownRevision
"""

from __future__ import annotations


class StoreError(Exception):
    """Something about the store, a bundle or the git history is not as it should be."""


class StoreMissing(StoreError):  # noqa: N818 - named by what is wrong, as the others
    """There is no store at this place yet."""


class StoreLocked(StoreError):  # noqa: N818 - named by what is wrong, as the others
    """Another process or thread had the store open for longer than one was ready to wait."""


class StoreTooNew(StoreError):  # noqa: N818 - named by what is wrong, as the others
    """The store was written by a newer kernelwatch or a newer DuckDB than this one."""


class StoreInvalid(StoreError):  # noqa: N818 - named by what is wrong, as the others
    """What was found in the store, or was to be put into it, contradicts itself."""


class RunNotFound(StoreError):  # noqa: N818 - named by what is wrong, as the others
    """No run, or more than one, has this id."""


class MessageNotFound(StoreError):  # noqa: N818 - named by what is wrong, as the others
    """No message in the outbox, or more than one, has this key."""


class BundleInvalid(StoreError):  # noqa: N818 - named by what is wrong, as the others
    """A file is not a run bundle that this version can read."""


class ConfigurationInvalid(StoreError):  # noqa: N818 - named by what is wrong, as the others
    """The configuration file cannot be read, or holds something that means nothing."""


class GitError(StoreError):
    """Git could not answer; the message holds its own words."""


class NoRepository(GitError):  # noqa: N818 - named by what is wrong, as the others
    """The folder lies in no git repository."""


class UnknownRevision(GitError):  # noqa: N818 - named by what is wrong, as the others
    """The repository knows no commit by this name."""
