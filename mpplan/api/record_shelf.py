"""The records at hand for one answer: of the file or folder that the user names, else of the store and the package.

Whatever lies in the store, an answer is given: what cannot be used is set aside and said once.
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
"""Which of some records is used for a GPU."""

SHOWN_ASIDE = 3
"""Records that the warning names."""


class RecordShelf:
    """The records that an answer may rest on: listed once, and each read at most once."""

    def __init__(self, named: str | None, *, ships: bool = True, gpus: Collection[str] | None = None) -> None:
        """List them.

        Args:
            named: the file or folder that the user named; None: the store and the package.
            ships: False leaves out what came with the package.
            gpus: whose records of the package are wanted; None: all.

        Raises:
            UsageError: a file was named and cannot be read, or a folder and it cannot be listed.
        """
        self.named, self._gpus = named, gpus if ships else ()
        self._read: dict[Path, StoredRecord] = {}
        self._unread: dict[Path, str] = {}
        """What could not be read when it was wanted, with the reason."""
        self._unlisted: str | None = None
        self.listed = self._list()

    def _list(self) -> tuple[RecordSummary, ...]:
        if self.named is None:
            try:
                return list_records(shipped_of=self._gpus)
            except UsageError as error:  # what the user did not ask for does not stop an answer
                self._unlisted = str(error)
                return ()
        path = record_path(self.named)
        if path.is_dir():
            return tuple(record for record in list_records(path) if not record.shipped)
        if not path.is_file():
            return ()
        self._read[path] = open_record(path, shipped=of_package(path))
        return (summarise(self._read[path]),)

    def named_file(self) -> StoredRecord:
        """The record in the file that was named.

        Raises:
            UsageError: it is missing or unreadable.
        """
        path = record_path(str(self.named))
        return self._read[path] if path in self._read else open_record(path)

    def read(self, summary: RecordSummary) -> StoredRecord:
        """A record in full.

        Raises:
            UsageError: it cannot be read any more.
        """
        if summary.path not in self._read:
            self._read[summary.path] = open_record(summary.path, shipped=summary.shipped)
        return self._read[summary.path]

    def newest(self, gpu: str) -> StoredRecord | None:
        """The newest trustworthy record of a GPU as its file says now, whatever the list said; None: there is none.

        Of the machine's own CPU one of this very CPU, where nothing was named and there is any: records of other
        machines may lie in the store.
        """
        if gpu == CPU_LOCAL and self.named is None:
            here = [record for record in self.listed if record.facts.device_name == cpu_name()]
            if (record := self._newest(gpu, newest_record, here)) is not None:
                return record
        return self._newest(gpu, newest_record)

    def newer_part(self, gpu: str) -> RecordSummary | None:
        """The newest record of a GPU, where an older one is used instead because it measured more."""
        return newer_part(gpu, (record for record in self.listed if record.path not in self._unread))

    def before(self, record: StoredRecord) -> StoredRecord | None:
        """The user's record of such a device before the one that is used; None where there is none that can be read."""
        used = next((own for own in self.listed if own.path == record.path and not own.shipped), None)
        earlier = None if used is None else record_before(used, self.listed)
        try:
            return None if earlier is None else self.read(earlier)
        except UsageError:
            return None

    def ahead(self, gpus: Iterable[str]) -> tuple[RecordSummary, ...]:
        """The user's trustworthy records of some GPUs that are dated after today."""
        own = (record for record in self.listed if record.gpu in set(gpus) and not record.shipped)
        return tuple(record for record in own if record.facts.ahead and record.facts.trustworthy)

    def newest_network(self, gpu: str) -> StoredRecord | None:
        """The same of collectives between such GPUs."""
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
        """Whether all that is listed, and something is, tells of training in precisions and of no device's rates."""
        return bool(self.listed) and all(record.facts.numerics_only for record in self.listed)

    @property
    def notices(self) -> tuple[Message, ...]:
        """One warning of all that was set aside, where nothing was named: a record of the store that cannot be used."""
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
