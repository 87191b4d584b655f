"""Environments of uploaded tools: one row for each set of needs, built by a worker while people watch."""

import logging
import queue
import threading
import time
from pathlib import Path
from typing import ClassVar, TypeAlias

from celery import shared_task
from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from engine.tools import environment as places
from engine.tools.environment import BuildError, BuildLog, Needs, StoppedError, Told
from engine.tools.environments.needs import python_version
from studio.models import ToolEnvironment, ToolInstance, ToolTemplateVersion
from studio.operations.instance_versions import settle
from studio.operations.templates import package_of

log = logging.getLogger(__name__)

NOTED_EVERY = 1.0  # seconds
TRIED_AGAIN_AFTER = 60.0  # seconds, on this machine, where it failed while another one has it


def root() -> Path:
    """The folder of this machine's environments."""
    folder: Path = settings.STUDIO_VAR / "tools" / "environments"
    return folder


def environment_for(needs: Needs) -> ToolEnvironment:
    """The row of these needs, made where it is new; see `request_build`.

    Within a transaction it stays until that is over: nobody removes it as unused meanwhile.
    """
    with transaction.atomic():
        ToolEnvironment.objects.get_or_create(
            key=needs.key,
            defaults={
                "requirements": needs.public,
                "python": python_version(),
                "state": ToolEnvironment.State.STOPPED,  # nobody has asked for it yet
            },
        )
        row: ToolEnvironment = ToolEnvironment.objects.select_for_update().get(key=needs.key)
    return row


def request_build(environment: ToolEnvironment, *, by: str) -> None:
    """Have it built, or built again where it failed; nothing to do where it is ready or under way."""
    _queue(environment.pk, started_by=by, error="")
    environment.refresh_from_db()


def python_for(environment: ToolEnvironment) -> Path | None:
    """Its interpreter on this machine; None where it is not built, or not here."""
    return places.python_in(root(), environment.key) if environment.is_ready else None


def ensure_here(environment: ToolEnvironment) -> Path | None:
    """As `python_for`; where it was built on another machine, or is lost, building it here begins, too."""
    python = python_for(environment)
    if python is None and environment.is_ready:
        _Here.begin(environment)
    return python


def remove_unused() -> int:
    """Remove the environments that no instance needs any more, rows and folders; how many those were."""
    upgraded = ToolInstance.objects.exclude(next_environment=None).values("next_environment")
    unused = ToolEnvironment.objects.filter(instances=None).exclude(pk__in=upgraded)
    for row in unused.unfinished():
        row.request_stop()
    removed = [key for pk in list(unused.values_list("pk", flat=True)) if (key := _remove(pk))]
    transaction.on_commit(lambda: _remove_folders(removed))
    return len(removed)


@transaction.atomic
def _remove(pk: int) -> str:
    row = ToolEnvironment.objects.select_for_update().filter(pk=pk).first()
    needed = Q(environment=pk) | Q(next_environment=pk)
    if row is None or not row.is_over or ToolInstance.objects.filter(needed).exists():
        return ""
    key: str = row.key
    row.delete()
    return key


def _remove_folders(keys: list[str]) -> None:
    asked_again = set(ToolEnvironment.objects.filter(key__in=keys).values_list("key", flat=True))
    for key in keys:
        if key not in asked_again:
            places.remove(root(), key)


def clean_up() -> None:
    """For a worker that starts: what is of another Python is renewed, and folders that nothing needs are removed."""
    _renew()
    remove_unused()
    places.sweep(root())
    left = places.keys_in(root())
    known = set(ToolEnvironment.objects.filter(key__in=left).values_list("key", flat=True))
    for key in left - known:
        places.remove(root(), key)


def _renew() -> None:
    """An environment serves one version of Python alone: after another is installed, instances get theirs anew."""
    for name, version in (("environment", "version"), ("next_environment", "next_version")):
        of_another = ToolInstance.objects.exclude(**{name: None}).exclude(
            **{f"{name}__python": python_version()}
        )
        for instance in of_another.select_related(name, f"{version}__template"):
            _replace(instance, name, getattr(instance, version))


@transaction.atomic
def _replace(instance: ToolInstance, name: str, version: ToolTemplateVersion) -> None:
    old: ToolEnvironment = getattr(instance, name)
    new = environment_for(Needs.of(package_of(version)))
    # Unless somebody changed it meanwhile.
    ToolInstance.objects.filter(pk=instance.pk, **{name: old}).update(**{name: new})
    request_build(new, by=old.started_by)


def sweep_builds() -> int:
    """Have built again what lost its worker, once, and give up what no worker took; how many those were."""
    now = timezone.now()
    lost = ToolEnvironment.objects.filter(
        state=ToolEnvironment.State.RUNNING, heartbeat_at__lt=now - ToolEnvironment.LOST_AFTER
    )
    again = list(lost.filter(error="", stop_requested=False).values_list("pk", flat=True))
    for pk in again:
        log.warning("The build %s lost its worker; it begins anew.", pk)
        _queue(pk, error=_("The worker that built it was stopped in the middle; it begins anew."))
    return len(again) + ToolEnvironment.objects.give_up_lost()


def _queue(pk: int, **changes: str) -> bool:
    """Into the queue, unless it is there or built, or a living worker has it."""
    now = timezone.now()
    state = ToolEnvironment.State
    lives = Q(state=state.RUNNING, heartbeat_at__gte=now - ToolEnvironment.LOST_AFTER)
    idle = (
        ToolEnvironment.objects.filter(pk=pk)
        .exclude(lives)
        .exclude(state__in=[state.QUEUED, state.FINISHED])
    )
    queued = idle.update(
        state=state.QUEUED,
        queued_at=now,
        started_at=None,
        heartbeat_at=None,
        finished_at=None,
        stop_requested=False,
        stage="",
        log="",
        **changes,
    )
    if queued:
        transaction.on_commit(lambda: run_build.delay(pk))
    return queued == 1


@shared_task
def run_build(pk: int) -> None:
    """Claim the row and build it to its end; does nothing where it is taken or over."""
    if not ToolEnvironment.objects.claim(pk):
        return
    row = ToolEnvironment.objects.get(pk=pk)
    try:
        needs = needs_of(row)
        if needs is None:
            row.end(row.State.FAILED, error=_("No tool asks for it any more."))
        else:
            _watch(row, _Building(needs))
    except Exception:
        log.exception("The environment %s could not be built.", pk)
        row.end(row.State.FAILED, error=_("It went wrong here; the log says how."))
    remove_unused()  # this one, where it was stopped because nobody needs it any more


def needs_of(environment: ToolEnvironment) -> Needs | None:
    """What it was made for, from a version that needs it: the row has no files, and no password of an address."""
    versions = ToolTemplateVersion.objects.filter(
        Q(pk__in=ToolInstance.objects.filter(environment=environment).values("version"))
        | Q(pk__in=ToolInstance.objects.filter(next_environment=environment).values("next_version"))
    )
    for version in versions.select_related("template").iterator():
        if (needs := Needs.of(package_of(version))).key == environment.key:
            return needs
    needs = Needs(requirements=environment.requirements)
    return needs if needs.key == environment.key else None


class _Over:
    """The build is through, with the error that ended it, if any."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


_Item: TypeAlias = Told | _Over


class _Building:
    """Builds in a thread of its own; what it tells is taken from `items` by the task's thread, which writes."""

    def __init__(self, needs: Needs) -> None:
        self._needs = needs
        self.stop = threading.Event()
        self.items: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._build, name="build", daemon=True)
        self._thread.start()

    def _build(self) -> None:
        over = _Over()
        try:
            places.build(
                self._needs,
                root(),
                deadline=settings.STUDIO_TOOL_BUILD_TIMEOUT,
                stop=self.stop,
                told=self.items.put,
            )
        except BaseException as error:  # noqa: BLE001 - the task says what it means
            over = _Over(error)
        self.items.put(over)

    def next(self) -> _Item | None:
        try:
            return self.items.get(timeout=NOTED_EVERY)
        except queue.Empty:
            return None

    def end(self) -> None:
        self.stop.set()
        self._thread.join()


def _watch(row: ToolEnvironment, building: _Building) -> None:
    kept = BuildLog()
    noted = 0.0
    try:
        while not isinstance(item := building.next(), _Over):
            if item is not None:
                kept.add(item)
            if time.monotonic() - noted >= NOTED_EVERY:
                noted = time.monotonic()
                if not row.note(stage=kept.stage, log=kept.text):
                    building.stop.set()
    finally:
        building.end()
    _finish(row, kept, item.error)


def _finish(row: ToolEnvironment, kept: BuildLog, error: BaseException | None) -> None:
    told = {"stage": kept.stage, "log": kept.text}
    match error:
        case None:
            if row.end(row.State.FINISHED, error="", **told):
                _settle(row)
        case StoppedError():
            row.end(row.State.STOPPED, error="", **told)
        case BuildError():
            row.end(row.State.FAILED, error=error.message, **told)
        case _:
            row.end(row.State.FAILED, error=_("It went wrong here; the log says how."), **told)
            log.error("The environment %s could not be built.", row.pk, exc_info=error)


def _settle(row: ToolEnvironment) -> None:
    settle(ToolEnvironment.objects.get(pk=row.pk))


class _Here:
    """Builds of this process for this machine alone: the row says finished, and stays as it is."""

    _begun: ClassVar[dict[str, float]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()

    @classmethod
    def begin(cls, environment: ToolEnvironment) -> None:
        now = time.monotonic()
        with cls._lock:
            if now - cls._begun.get(environment.key, -TRIED_AGAIN_AFTER) < TRIED_AGAIN_AFTER:
                return
            cls._begun[environment.key] = now
        needs = needs_of(environment)
        if needs is not None:
            threading.Thread(target=cls._build, args=(needs,), name="build", daemon=True).start()

    @classmethod
    def _build(cls, needs: Needs) -> None:
        seconds = settings.STUDIO_TOOL_BUILD_TIMEOUT
        try:
            places.build(needs, root(), deadline=seconds, stop=threading.Event(), told=_unheard)
        except BuildError as error:
            log.warning("An environment could not be built on this machine, too: %s", error)


def _unheard(_told: Told) -> None:
    pass
