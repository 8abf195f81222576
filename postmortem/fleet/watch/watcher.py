"""The loop: find runs, look at each, judge what is over, keep the reports true."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from postmortem.faults import noted
from postmortem.fleet.find import Passed, find
from postmortem.fleet.watch import look
from postmortem.fleet.watch.entry import Entry
from postmortem.fleet.watch.events import Event
from postmortem.fleet.watch.files import Write
from postmortem.fleet.watch.hook import Hooks
from postmortem.fleet.watch.keeper import Keeper, Render
from postmortem.fleet.watch.memory import Memory
from postmortem.fleet.watch.state import Change, Move, Pace, Process
from postmortem.intake import IntakeError
from postmortem.report.texts import Texts
from postmortem.scan import Lexicon

WALK_SHARE = 20
"""The tree is walked again after so many times what walking it took."""
POLL_SHARE = 4
LONGEST_S = 60.0
"""Likewise a poll of all logs: a slow volume is asked less often, but at least once in so long."""
OLD_S = 600.0
OLD_EVERY = 8
BUDGET_S = 1.0
"""What a poll may spend on such runs, so that one that dies now does not wait for thousands that died long ago."""
MANY = 500
"""Of so many runs, those that were settled so long ago are looked at in turns, an eighth of them each poll."""
SAVE_S = 5.0
SMALLEST_TXT = 2048
"""A loose `.txt` below that is a caption or a note: the head of a log alone is longer."""
MAX_MOVES = 4
MAX_UNREAD = 20
"""Folders that cannot be read and are named."""
MAX_PARENTS = 20
"""Folders that hold runs and are listed at every poll."""


class Setup(msgspec.Struct, frozen=True):
    """What to watch, and how."""

    root: Path
    pace: Pace
    lang: str = "en"
    database: Path | None = None
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    since: float | None = None
    suffixes: Sequence[str] = (".md",)


class World(msgspec.Struct, frozen=True):
    """What the watcher cannot do by itself: clocks (`now` never jumps, `wall` is that of file times), output, files."""

    now: Callable[[], float]
    wall: Callable[[], float]
    sleep: Callable[[float], None]
    stopped: Callable[[], bool]
    emit: Callable[[Event], None]
    tell: Callable[[str, str, str], None]
    """What (a key of `watch.tell`), on which path, why."""
    write: Write
    render: Render


class Watcher:
    """Everything that is known of the runs below one folder."""

    def __init__(self, setup: Setup, world: World, lexicon: Lexicon, memory: Memory, hooks: Hooks) -> None:
        self._setup = setup
        self._world = world
        self._lexicon = lexicon
        self._memory = memory
        self._hooks = hooks
        self._jobs = look.Jobs(setup.database, setup.pace.settle_s)
        texts = Texts(lexicon.knowledge, setup.lang)
        self._keeper = Keeper(lexicon, texts, self._jobs, memory, hooks, world.emit, world.tell, world.render)
        self._entries: dict[str, Entry] = {}
        self._walk_at = 0.0
        self._save_at = 0.0
        self._known: frozenset[str] = frozenset()
        self._parents: list[Path] = [setup.root]
        self._tried: set[str] = set()
        self._turn = 0
        self._links = 0
        self._unread: set[str] = set()
        self._looking_s = self._working_s = 0.0
        self._behind = False
        self._waiting = False
        self._once = False

    def run(self, *, once: bool = False) -> None:
        """Watch until told to stop; `once`: until nothing more is to be expected soon."""
        self._once = once
        pace = self._setup.pace
        began = self._world.now()
        self._walk_at = began
        try:
            while not self._world.stopped():
                now = self._world.now()
                self.poll(now)
                if once and not self._expects(now, began):
                    break
                if not self._behind:
                    self._world.sleep(max(pace.interval_s, min(POLL_SHARE * self._looking_s, LONGEST_S)))
        finally:
            self._memory.save()
            self._hooks.close()

    def _expects(self, now: float, began: float) -> bool:
        """Whether a single pass has a reason to stay: a decision that falls soon, or a command that still runs."""
        pace = self._setup.pace
        late = now - began > pace.doubt_s + 2 * pace.settle_s
        return (
            self._behind
            or self._hooks.busy
            or (not late and any(one.run.soon(now, pace) for one in self._entries.values()))
        )

    def poll(self, now: float) -> None:
        """One look at everything that is due."""
        if now >= self._walk_at or self._newcomer():
            self._walk()
            spent = self._world.now() - now
            self._walk_at = now + max(self._setup.pace.interval_s, WALK_SHARE * spent)
        self._turn = (self._turn + 1) % OLD_EVERY
        self._looking_s = self._working_s = 0.0
        self._behind = False
        for index, entry in enumerate(list(self._entries.values())):
            if self._world.stopped():
                break
            run = entry.run
            settled = run.log is not None and run.settled == run.log.mark
            old = settled and now - run.still_since > OLD_S and len(self._entries) > MANY
            if not old or index % OLD_EVERY == self._turn or run.retry_at is not None:
                self._looked(entry)
        self._hooks.poll(self._world.now())
        if now >= self._save_at:
            self._memory.save()
            self._save_at = now + SAVE_S

    def _newcomer(self) -> bool:
        """Whether a folder with a log has come beside those that are known, so that the whole tree need not wait."""
        found = [path for path in look.newcomers(self._parents, self._known) if path not in self._tried]
        self._tried.update(found)
        return bool(found)

    def _walk(self) -> None:
        """Take in runs that are new. A folder that is not there (yet, or any more) is waited for."""
        setup = self._setup
        passed = Passed()
        try:
            for target in find([setup.root], setup.include, setup.exclude, setup.since, passed):
                if self._world.stopped():
                    return
                small = not target.sure and target.bytes < SMALLEST_TXT
                path = Path(target.path)
                if str(path) not in self._entries and target.kind != "archive" and not small:
                    entry = Entry.of(path, setup.suffixes, self._world.write, folder=target.kind == "folder")
                    self._entries[str(path)] = entry
            self._waiting = False
        except IntakeError:
            if not self._waiting:
                self._waiting = True
                self._world.tell("waiting", str(setup.root), "")
        except OSError as error:
            self._world.tell("unreadable", str(setup.root), _reason(error))
        self._tell_passed(passed)
        self._memory.prune(self._entries.keys())
        self._known = frozenset(self._entries)
        self._parents = [setup.root]
        for entry in self._entries.values():
            if entry.folder and entry.path.parent not in self._parents[:MAX_PARENTS]:
                self._parents.append(entry.path.parent)
        del self._parents[MAX_PARENTS:]
        self._tried -= self._known

    def _tell_passed(self, passed: Passed) -> None:
        """Say what of the folder is not looked into: once, and again where that becomes more."""
        if passed.links > self._links:
            self._links = passed.links
            self._world.tell("links", str(self._setup.root), str(passed.links))
        for name, why in passed.unread.items():
            if name not in self._unread and len(self._unread) < MAX_UNREAD:
                self._unread.add(name)
                self._world.tell("unreadable", str(self._setup.root / name), why)

    def _looked(self, entry: Entry) -> None:
        try:
            self._look(entry, self._world.now())
        except BrokenPipeError:  # nobody reads our events any more
            raise
        except Exception as error:  # one bad run must not stop the others
            self._keeper.trouble(entry, "internal", f"{type(error).__name__}, {noted(error, 'watch').code}")
            entry.run.settle()

    def _look(self, entry: Entry, now: float) -> None:
        run = entry.run
        before, settled = run.log, run.settled
        try:
            log = look.log_of(entry.path, folder=entry.folder)
            self._looking_s += self._world.now() - now
            if log is None and not entry.path.exists():
                self._entries.pop(str(entry.path), None)
                return
        except OSError as error:
            self._keeper.trouble(entry, "unreadable", _reason(error))
            return
        age = self._world.wall() - log.mtime_ns / 1e9 if log is not None else 0.0
        change = run.see(log, now, age)
        if change is Change.FIRST and log is not None:
            if self._memory.settled(str(entry.path), log.mark):
                run.settle()
            else:
                self._keeper.meet(entry)
        elif change is Change.REPLACED and before is not None:
            self._keeper.replaced(entry, before, unsettled=settled != before.mark)
        elif change is Change.GREW:
            self._keeper.grew(entry)
            if self._once:
                run.settled = run.log.mark if run.log is not None else None
        if now - run.still_since > OLD_S and self._working_s > BUDGET_S:
            self._behind = self._behind or run.move(now, self._setup.pace) is not Move.WAIT
            return
        self._follow(entry, now)
        self._working_s += self._world.now() - now

    def _follow(self, entry: Entry, now: float) -> None:
        """Find out, step by step, as much as the state asks for."""
        run = entry.run
        for _ in range(MAX_MOVES):
            move = run.move(now, self._setup.pace)
            if move is Move.WAIT or run.log is None:
                return
            if move is Move.TAIL:
                try:
                    run.hint = look.hint(Path(run.log.path), self._lexicon)
                except OSError as error:
                    self._keeper.trouble(entry, "unreadable", _reason(error))
                    return
            elif move is Move.ASK:
                folder = entry.folder
                process = look.process_of(entry.path) if folder else Process.UNKNOWN
                run.answer(process, self._jobs.status(entry.path, now) if folder else None, now)
            else:
                self._keeper.judge(entry, now)
                self._hooks.poll(now)

    @property
    def entries(self) -> Iterable[Entry]:
        """The runs that are followed."""
        return self._entries.values()


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
