"""Sessions, their turns and events."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from studio.models.agent import Agent, AgentVersion, new_uid
from studio.models.job import Job


class Customer(models.Model):
    """Somebody an agent talks to; `variables` are what the agent may know of them."""

    uid = models.CharField(max_length=64, default=new_uid)
    name = models.CharField(max_length=120)
    variables = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["uid"],
                name="customer_uid_unique",
                violation_error_message=_("Another customer has this uid already."),
            )
        ]

    def __str__(self) -> str:
        return self.name


class SessionQuerySet(models.QuerySet["Session"]):
    def chats(self) -> "SessionQuerySet":
        """Without those that the studio played by itself, which stand in no list, count or figure."""
        return self.filter(purpose=Session.Purpose.CHAT)


class Session(models.Model):
    """A conversation with one agent. `version` fixes a published version; else `follows` says what each turn takes."""

    class Mode(models.TextChoices):
        AUTO = "auto", _("Automatic")
        MANUAL = "manual", _("Manual")

    class ToolMode(models.TextChoices):
        LIVE = "live", _("Live: tools run")
        RECORDED = "recorded", _("Recorded: results of earlier calls")
        MOCK = "mock", _("Mocked: results written by hand")

    class Purpose(models.TextChoices):
        """A chat, unless it was played by the studio itself: those stand in no list and no figure of chats."""

        CHAT = "chat", _("Chat")
        REPLAY = "replay", _("Replay")
        TEST = "test", _("Test")

    class Follows(models.TextChoices):
        DRAFT = "draft", _("Draft")
        PUBLISHED = "published", _("Published")
        VERSION = "version", _("One version")

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="sessions")
    follows = models.CharField(max_length=10, choices=Follows.choices, default=Follows.DRAFT)
    version = models.ForeignKey(
        AgentVersion, null=True, blank=True, on_delete=models.PROTECT, related_name="sessions"
    )
    customer = models.ForeignKey(
        Customer, null=True, blank=True, on_delete=models.SET_NULL, related_name="sessions"
    )
    connection = models.ForeignKey(
        "ModelConnection",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="sessions",
    )
    title = models.CharField(max_length=200, blank=True)
    purpose = models.CharField(max_length=6, choices=Purpose.choices, default=Purpose.CHAT)
    mode = models.CharField(max_length=8, choices=Mode.choices, default=Mode.AUTO)
    tool_mode = models.CharField(max_length=8, choices=ToolMode.choices, default=ToolMode.LIVE)
    # Where it was recorded, if it was brought from another studio; it can be read, branched and replayed.
    imported_from = models.CharField(max_length=200, blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="sessions",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    last_event_at = models.DateTimeField(default=timezone.now)
    next_offset = models.PositiveIntegerField(default=1)
    next_turn = models.PositiveIntegerField(default=1)
    # A branch goes on from a turn of another session and counts on from there: turns and offsets are one row of numbers
    # along its line. `root` is the session that the tree began with; `ancestry` holds what the branch goes on from,
    # the nearest first: [session, last turn, last offset].
    root = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.CASCADE, related_name="tree"
    )
    ancestry = models.JSONField(default=list, blank=True)

    objects = SessionQuerySet.as_manager()

    class Meta:
        ordering = ["-last_event_at", "-pk"]
        indexes = [
            # Of chats alone: however many sessions the studio played, lists find theirs at once.
            models.Index(
                fields=["agent", "-last_event_at", "-id"],
                condition=Q(purpose="chat"),
                name="session_recent",
            ),
            models.Index(
                fields=["-last_event_at", "-id"],
                condition=Q(purpose="chat"),
                name="session_latest",
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(follows="version", version__isnull=False)
                | (~Q(follows="version") & Q(version__isnull=True)),
                name="session_version_given_when_fixed",
                violation_error_message=_("Choose the version that this session runs on."),
            )
        ]

    def __str__(self) -> str:
        return self.title or f"#{self.pk}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """A whole save leaves the counters alone: a turn may have counted on since this object was read."""
        if not self._state.adding and kwargs.get("update_fields") is None:
            fields = (field.attname for field in self._meta.concrete_fields)
            kept = {"id", "next_offset", "next_turn", "last_event_at"}
            kwargs["update_fields"] = [name for name in fields if name not in kept]
        super().save(*args, **kwargs)

    @property
    def is_only_read(self) -> bool:
        """It was imported, or played by the studio itself: nothing is added to it, branches go on from it."""
        return bool(self.imported_from) or self.purpose != Session.Purpose.CHAT

    @property
    def line(self) -> "Line":
        """What was said and decided up to now in this branch, what it goes on from included."""
        return Line(self.pk, self.ancestry)


class TurnQuerySet(models.QuerySet["Turn"]):
    def unfinished(self) -> "TurnQuerySet":
        return self.filter(state__in=[Turn.State.QUEUED, Turn.State.RUNNING])

    def running(self) -> "TurnQuerySet":
        return self.filter(state=Turn.State.RUNNING)

    def stale(self, before: datetime) -> "TurnQuerySet":
        """Running, but its worker has not been heard of since `before`."""
        return self.running().filter(heartbeat_at__lt=before)

    def forgotten(self, before: datetime) -> "TurnQuerySet":
        """Queued, last enqueued before `before`, and free to start: no turn of the session is running."""
        busy = Turn.objects.running().filter(session=models.OuterRef("session"))
        return self.filter(~models.Exists(busy), state=Turn.State.QUEUED, enqueued_at__lt=before)

    def with_what_it_runs_on(self) -> "TurnQuerySet":
        return self.select_related(
            "version", "session", "session__agent", "session__customer", "session__connection"
        ).defer("version__spec")

    def claim(self, pk: int) -> bool:
        """QUEUED → RUNNING, by one worker only; False where another was faster or another turn is running."""
        now = timezone.now()
        busy = Turn.objects.running().filter(session=models.OuterRef("session"))
        claimed = self.filter(~models.Exists(busy), pk=pk, state=Turn.State.QUEUED).update(
            state=Turn.State.RUNNING,
            claims=F("claims") + 1,
            heartbeat_at=now,
            started_at=Coalesce("started_at", now),
        )
        return claimed == 1


class Turn(models.Model):
    """One incoming message (or several at once) up to the end of its answer.

    QUEUED → RUNNING → FINISHED | FAILED | STOPPED | SUPERSEDED; a stale RUNNING goes back to QUEUED, FAILED and
    STOPPED may be retried.
    """

    class State(models.TextChoices):
        QUEUED = "QUEUED", _("Waiting")
        RUNNING = "RUNNING", _("Running")
        FINISHED = "FINISHED", _("Finished")
        FAILED = "FAILED", _("Failed")
        STOPPED = "STOPPED", _("Stopped")
        SUPERSEDED = "SUPERSEDED", _("Superseded by a newer message")

    class StopReason(models.TextChoices):
        NONE = "", _("Not asked to stop")
        PERSON = "person", _("Stopped by a person")
        MESSAGE = "message", _("A newer message arrived")

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="turns")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    version = models.ForeignKey(
        AgentVersion, null=True, blank=True, on_delete=models.PROTECT, related_name="turns"
    )
    first_offset = models.PositiveIntegerField(default=1)  # of its first event in the session
    # Where its tools' results come from, fixed when it starts (Session.ToolMode); empty while it waits.
    tool_mode = models.CharField(max_length=8, choices=Session.ToolMode.choices, blank=True)
    # Where the engine is in its loop, to go on from after a crash: engine.state.Checkpoint as JSON.
    checkpoint = models.JSONField(default=dict, blank=True)
    # What it ran with besides its version, so that it can be played again: studio.operations.situations.ran_with.
    # Empty in turns that were recorded before it was kept.
    ran_with = models.JSONField(default=dict, blank=True)
    claims = models.PositiveIntegerField(
        default=0
    )  # which claim writes; an older one is fenced off
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    enqueued_at = models.DateTimeField(default=timezone.now)
    stop_reason = models.CharField(
        max_length=8, choices=StopReason.choices, default=StopReason.NONE, blank=True
    )
    reference = models.CharField(
        max_length=16, blank=True
    )  # what a customer may be told of a failure
    error = models.TextField(blank=True)  # for people of the studio only
    limit_reached = models.CharField(max_length=200, blank=True)
    reply_source = models.JSONField(null=True, blank=True)  # engine.trail.ReplySource
    prompt_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = TurnQuerySet.as_manager()

    class Meta:
        ordering = ["session", "number"]
        constraints = [
            models.UniqueConstraint(fields=["session", "number"], name="turn_number_unique"),
            models.UniqueConstraint(
                fields=["session"],
                condition=Q(state="RUNNING"),
                name="turn_one_running_per_session",
                violation_error_message=_("Another turn of this session is running."),
            ),
        ]
        indexes = [
            models.Index(
                fields=["state", "heartbeat_at"],
                condition=Q(state__in=["QUEUED", "RUNNING"]),
                name="turn_unfinished",
            ),
            models.Index(fields=["session"], condition=Q(state="FAILED"), name="turn_failed"),
        ]

    def __str__(self) -> str:
        return f"{self.session_id}/{self.number}"

    @property
    def is_over(self) -> bool:
        return self.state not in {Turn.State.QUEUED, Turn.State.RUNNING}

    @property
    def duration_ms(self) -> int | None:
        """From the moment the message was stored to the end of the answer."""
        if self.finished_at is None:
            return None
        return round((self.finished_at - self.created_at).total_seconds() * 1000)

    def is_gone_on_from(self) -> bool:
        """Does a branch go on from this turn, or from a later one of its session?"""
        root = self.session.root_id or self.session_id
        return any(
            session == self.session_id and number >= self.number
            for ancestry in Session.objects.filter(root=root).values_list("ancestry", flat=True)
            for session, number, _offset in ancestry
        )

    def request_stop(self, reason: "Turn.StopReason") -> bool:
        """Ask the worker to end this turn at its next safe point; False where it is over already."""
        return (
            Turn.objects.unfinished()
            .filter(pk=self.pk, stop_reason=Turn.StopReason.NONE)
            .update(stop_reason=reason)
            == 1
        )


class EventQuerySet(models.QuerySet["Event"]):
    def lasting(self) -> "EventQuerySet":
        """Without the pieces of a message that is being written."""
        return self.exclude(kind="message.part")


class Event(models.Model):
    """What was said or done, in the order of `offset`; `data` is the engine's event without kind and source."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="events")
    turn = models.ForeignKey(
        Turn, null=True, blank=True, on_delete=models.CASCADE, related_name="events"
    )
    offset = models.PositiveIntegerField()
    kind = models.CharField(max_length=30)
    source = models.CharField(max_length=10)
    data = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now)

    objects = EventQuerySet.as_manager()

    class Meta:
        ordering = ["session", "offset"]
        constraints = [
            models.UniqueConstraint(fields=["session", "offset"], name="event_offset_unique")
        ]

    def __str__(self) -> str:
        return f"{self.session_id}@{self.offset} {self.kind}"


class Line:
    """The path from the beginning of a tree of sessions to one of its branches."""

    def __init__(self, session: int, ancestry: Sequence[Sequence[int]]) -> None:
        self._session = session
        self._ancestry = ancestry

    @property
    def turns(self) -> TurnQuerySet:
        wanted = Q(session=self._session)
        for session, turn, _offset in self._ancestry:
            wanted |= Q(session=session, number__lte=turn)
        return Turn.objects.filter(wanted)

    @property
    def events(self) -> EventQuerySet:
        wanted = Q(session=self._session)
        for session, turn, offset in self._ancestry:
            in_time = Q(turn__isnull=True) | Q(turn__number__lte=turn)
            wanted |= Q(in_time, session=session, offset__lte=offset)
        return Event.objects.filter(wanted)

    def events_in(self, turns: Iterable[Any]) -> EventQuerySet:
        """The events of these turns of the line (keys or a query of them), however long the conversation is.

        They are found by their turns, which are few, and not among all events of the session.
        """
        found = Event.objects.filter(turn__in=turns)
        for session, _turn, offset in self._ancestry:
            found = found.exclude(session=session, offset__gt=offset)
        return found


class ToolMock(models.Model):
    """What a tool answers in sessions of this tree whose tools are mocked: data, or a failure of this kind."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="mocks")
    tool = models.CharField(max_length=64)
    data = models.JSONField(null=True, blank=True)
    failure = models.CharField(max_length=20, blank=True)  # engine.errors.ToolErrorKind
    updated_by = models.CharField(max_length=150, blank=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["tool"]
        constraints = [
            models.UniqueConstraint(fields=["session", "tool"], name="tool_mock_unique_in_session")
        ]

    def __str__(self) -> str:
        return f"{self.session_id} {self.tool}"


class Flag(models.Model):
    """Somebody's remark on a message; open until somebody closes it."""

    event = models.ForeignKey(Event, on_delete=models.CASCADE, related_name="flags")
    comment = models.TextField(max_length=2_000)
    created_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    closed_by = models.CharField(max_length=150, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["pk"]
        indexes = [
            models.Index(fields=["event"], condition=Q(closed_at__isnull=True), name="flag_open")
        ]

    def __str__(self) -> str:
        return f"{self.event_id}: {self.comment[:40]}"


class Rematch(Job):
    """One guideline judged again on one turn, under another wording. It changes nothing about the turn.

    `result` is {"state", "because", "score", "explained_afterwards", "model", "prompt_tokens", "completion_tokens",
    "duration_ms"}.
    """

    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="rematches")
    guideline = models.CharField(max_length=32)
    condition = models.TextField(blank=True)
    result = models.JSONField(null=True, blank=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.turn_id} {self.guideline}"
