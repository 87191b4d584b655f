"""Recorded sessions played again, and what was different."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from studio.models.agent import Agent, AgentVersion
from studio.models.batch import Batch, Cell
from studio.models.connection import ModelConnection
from studio.models.session import Session, Turn


class Variant(models.Model):
    """A session's recording with tool results edited: what a replay is to find instead.

    `edits` is a list of {"turn", "call" (uid), "tool", "kind": "result" | "timeout" | "exception" | "empty" | …,
    "data"}, one a call.
    """

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="variants")
    title = models.CharField(max_length=200)
    edits = models.JSONField(default=list)
    created_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.title


class Replay(Batch):
    """One or many sessions of an agent, played against one version. Its cells are turns.

    `model` RECORDED without `until_it_differs` is a frozen model. With `free_running` a session's turns are played one
    after another on what the replay itself said; else each is judged with the recorded history before it.
    """

    class Model(models.TextChoices):
        RECORDED = "recorded", _("Answers of the record")
        LIVE = "live", _("The live model")

    class Tools(models.TextChoices):
        RECORDED = "recorded", _("Results of the record")
        LIVE = "live", _("Tools run")
        MOCK = "mock", _("Mocked results")

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="replays")
    against = models.CharField(max_length=20)  # as it was asked for: "draft", "published", a number
    version = models.ForeignKey(AgentVersion, on_delete=models.PROTECT, related_name="replays")
    model = models.CharField(max_length=8, choices=Model.choices, default=Model.RECORDED)
    tools = models.CharField(max_length=8, choices=Tools.choices, default=Tools.RECORDED)
    until_it_differs = models.BooleanField(default=False)
    free_running = models.BooleanField(default=False)
    # The live model to ask; empty: as each session would.
    connection = models.ForeignKey(
        ModelConnection, null=True, blank=True, on_delete=models.SET_NULL, related_name="replays"
    )
    variant = models.ForeignKey(
        Variant, null=True, blank=True, on_delete=models.SET_NULL, related_name="replays"
    )

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["agent", "-id"], name="replay_of_agent")]

    def __str__(self) -> str:
        return f"#{self.pk}"

    @property
    def is_frozen(self) -> bool:
        """Does the record alone answer for the model?"""
        return self.model == self.Model.RECORDED and not self.until_it_differs

    @property
    def is_from_record(self) -> bool:
        """Is nothing asked and nothing run but the record?"""
        return self.is_frozen and self.tools != self.Tools.LIVE


class ReplayedTurn(Cell):
    """One recorded turn, played again. `differences` are engine.replaying.Difference as JSON, the first one first.

    `session` is the one that was replayed (the turn may stand in a session that it branched from); `played` is the
    session that holds the turn as it was played, kept where it is another than the recorded one.
    """

    class Verdict(models.TextChoices):
        SAME = "same", _("Same")
        CHANGED = "changed", _("Changed")
        ACCEPTED = "accepted", _("Changed as accepted")
        FAILED = "failed", _("Failed")
        IMPOSSIBLE = "impossible", _("Could not be replayed")

    replay = models.ForeignKey(Replay, on_delete=models.CASCADE, related_name="turns")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="+")
    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="+")
    number = models.PositiveIntegerField()
    verdict = models.CharField(max_length=10, choices=Verdict.choices, blank=True)
    reason = models.TextField(blank=True)  # why it failed or could not be replayed
    differences = models.JSONField(default=list)
    played = models.ForeignKey(
        Session, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        ordering = ["replay", "session", "number"]
        constraints = [
            models.UniqueConstraint(
                fields=["replay", "session", "number"], name="replayed_turn_once"
            )
        ]
        indexes = [
            models.Index(
                fields=["replay", "session", "number"],
                condition=Q(state="waiting"),
                name="replayed_turn_waiting",
            ),
            models.Index(fields=["replay", "verdict"], name="replayed_turn_verdict"),
        ]

    def __str__(self) -> str:
        return f"{self.replay_id}: {self.session_id}/{self.number}"


class AcceptedChange(models.Model):
    """A change that somebody found right: the same change of the same turn is no surprise in later replays.

    `key` names it by what was before and after (studio.operations.accepting.key_of).
    """

    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="accepted_changes")
    key = models.CharField(max_length=64)
    difference = models.JSONField()
    reason = models.TextField(max_length=2_000)
    accepted_by = models.CharField(max_length=150, blank=True)
    accepted_at = models.DateTimeField(auto_now_add=True)
    # What is expected instead, where the change can be said as an expectation.
    expectation = models.ForeignKey(
        "Expectation", null=True, blank=True, on_delete=models.SET_NULL, related_name="accepted"
    )

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["turn", "key"], name="accepted_change_once")]

    def __str__(self) -> str:
        return f"{self.turn_id} {self.key[:8]}"
