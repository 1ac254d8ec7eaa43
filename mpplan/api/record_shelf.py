"""The records available to one answer: those of the named file or folder, else those of the store and the package.

A bad record in the store never prevents an answer: unusable records are set aside and reported once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from planner.errors import Message, UsageError
from planner.records.home import CPU_LOCAL, of_package, record_path
from planner.records.store import (
    StoredRecord,
    list_records,
    newer_part,
    newest_network,
    newest_record,
    open_record,
    record_before,
    summarise,
)
from planner.records.summary import RecordSummary
from probes.device.device import cpu_name

Choose = Callable[[str, Iterable[RecordSummary]], RecordSummary | None]
"""Chooses, for a GPU, one of several records."""

SHOWN_ASIDE = 3
"""Maximum number of records that the warning names."""


class RecordShelf:
    """The records that an answer may rest on, listed once and each read at most once."""

    def __init__(
        self, named: str | None, *, gpus: Collection[str] | None = None, not_shipped_of: Collection[str] = ()
    ) -> None:
        """List the records.

        Args:
            named: the file or folder that the user named; None: use the store and the package.
            gpus: GPUs whose records of the package are wanted; None: all.
            not_shipped_of: GPUs whose records of the package are left out.

        Raises:
            UsageError: the named file cannot be read, or the named folder cannot be listed.
        """
        self.named, self._gpus, self._not_shipped_of = named, gpus, frozenset(not_shipped_of)
        self._read: dict[Path, StoredRecord] = {}
        self._unread: dict[Path, str] = {}
        """Records that could not be read when they were needed, with the reason."""
        self._unlisted: str | None = None
        self.listed = self._list()

    def _list(self) -> tuple[RecordSummary, ...]:
        if self.named is None:
            try:
                listed = list_records(shipped_of=self._gpus)
            except UsageError as error:  # a record that the user did not ask for does not stop an answer
                self._unlisted = str(error)
                return ()
            return tuple(record for record in listed if not (record.shipped and record.gpu in self._not_shipped_of))
        path = record_path(self.named)
        if path.is_dir():
            return tuple(record for record in list_records(path) if not record.shipped)
        if not path.is_file():
            return ()
        self._read[path] = open_record(path, shipped=of_package(path))
        return (summarise(self._read[path]),)

    def named_file(self) -> StoredRecord:
        """Return the record in the named file.

        Raises:
            UsageError: the file is missing or unreadable.
        """
        path = record_path(str(self.named))
        return self._read[path] if path in self._read else open_record(path)

    def read(self, summary: RecordSummary) -> StoredRecord:
        """Return a record in full.

        Raises:
            UsageError: the record can no longer be read.
        """
        if summary.path not in self._read:
            self._read[summary.path] = open_record(summary.path, shipped=summary.shipped)
        return self._read[summary.path]

    def newest(self, gpu: str) -> StoredRecord | None:
        """Return the newest trustworthy record of a GPU, judged by its file and not by the list; None if there is none.

        For the machine's own CPU, a record of the same CPU model is preferred if the user named no records, because the
        store may hold records of other machines.
        """
        if gpu == CPU_LOCAL and self.named is None:
            of_this_cpu = [record for record in self.listed if record.facts.device_name == cpu_name()]
            if (record := self._newest(gpu, newest_record, of_this_cpu)) is not None:
                return record
        return self._newest(gpu, newest_record)

    def newer_part(self, gpu: str) -> RecordSummary | None:
        """Return the newest record of a GPU if an older one is used instead because it measured more."""
        return newer_part(gpu, (record for record in self.listed if record.path not in self._unread))

    def before(self, record: StoredRecord) -> StoredRecord | None:
        """Return the user's previous record of the same device; None if there is none or it cannot be read."""
        used = next((own for own in self.listed if own.path == record.path and not own.shipped), None)
        earlier = None if used is None else record_before(used, self.listed)
        try:
            return None if earlier is None else self.read(earlier)
        except UsageError:
            return None

    def ahead(self, gpus: Iterable[str]) -> tuple[RecordSummary, ...]:
        """Return the user's trustworthy records of these GPUs that are dated after today."""
        own = (record for record in self.listed if record.gpu in set(gpus) and not record.shipped)
        return tuple(record for record in own if record.facts.ahead and record.facts.trustworthy)

    def newest_network(self, gpu: str) -> StoredRecord | None:
        """Return the newest trustworthy record of collectives between GPUs of this kind."""
        return self._newest(gpu, newest_network)

    def _newest(self, gpu: str, choose: Choose, listed: Sequence[RecordSummary] | None = None) -> StoredRecord | None:
        candidates = list(self.listed if listed is None else listed)
        while (summary := choose(gpu, candidates)) is not None:
            candidates.remove(summary)
            try:
                record = self.read(summary)
            except UsageError as error:
                self._unread[summary.path] = str(error)
                continue
            if choose(gpu, [summarise(record)]) is not None:
                return record
        return None

    @property
    def of_training_alone(self) -> bool:
        """Whether records are listed and all of them cover only training in precisions, without rates of a device."""
        return bool(self.listed) and all(record.facts.numerics_only for record in self.listed)

    @property
    def notices(self) -> tuple[Message, ...]:
        """One warning about all stored records that were set aside as unusable; none if the user named records."""
        if self.named is not None:
            return ()
        aside = [
            (record.path.name, self._unread.get(record.path) or record.facts.problem)
            for record in self.listed
            if record.facts.problem or record.path in self._unread
        ]
        whole = [] if self._unlisted is None else [Message.of("warning.store_unlisted", why=self._unlisted)]
        if not aside:
            return tuple(whole)
        shown = tuple(Message.of("record.aside", record=name, why=str(why)) for name, why in aside[:SHOWN_ASIDE])
        more = len(aside) - len(shown)
        key = "warning.records_aside_more" if more else "warning.records_aside"
        values = {"more": more} if more else {}
        return (*whole, Message.of(key, records=shown, **values))
