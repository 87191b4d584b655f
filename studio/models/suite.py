"""Sessions kept as tests: suites of scenarios with expectations, and their runs."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from studio.models.agent import Agent, AgentVersion, new_uid
from studio.models.batch import Batch, Cell
from studio.models.connection import ModelConnection
from studio.models.session import Session


class Suite(models.Model):
    """Scenarios of one agent that are run together."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="suites")
    name = models.CharField(max_length=120)
    description = models.TextField(blank=True, max_length=2_000)
    repeats = models.PositiveSmallIntegerField(
        default=1,
        validators=[MinValueValidator(1), MaxValueValidator(20)],
        help_text=_("How often each scenario is run, unless a run says otherwise."),
    )
    # The agent is published only if the newest run of this suite against just that draft has passed.
    gates_publishing = models.BooleanField(
        default=False,
        help_text=_("Publish only what has passed this suite."),
    )
    created_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["agent", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "name"],
                name="suite_name_unique_in_agent",
                violation_error_message=_("This agent has another suite of this name already."),
            )
        ]

    def __str__(self) -> str:
        return self.name


class Scenario(models.Model):
    """A conversation to be had again: what a customer says word for word, or a simulated customer's brief.

    `messages` are the scripted customer's, in order: {"text"}, or for a button {"answer": "confirmed" | "declined",
    "tool"} (the call that waits; `tool` may be empty: any). Each begins a turn, unless it has `"together": true`: then
    it belongs to the turn of the one before it. `studio.operations.scenarios.turns_said` reads them by turn.
    `brief` is {"persona", "goal", "stop", "turns", "tokens"}. `results` answer tools whose calls they fit, in place of
    the tools, in the order in which the calls ended: [{"tool", "arguments", "result" | "error", "said"}] (a ToolResult
    or a ToolError as JSON; [[text, model]] said to the customer before it ended), taken from the session that it was
    kept of. `studio.operations.scenarios.recorded_calls` reads them.
    """

    class Kind(models.TextChoices):
        SCRIPTED = "scripted", _("Scripted: the customer's own words")
        SIMULATED = "simulated", _("Simulated: a model plays the customer")

    class Tools(models.TextChoices):
        RECORDED = "recorded", _("Recorded results")
        LIVE = "live", _("Tools run")

    uid = models.CharField(max_length=32, default=new_uid)
    suite = models.ForeignKey(Suite, on_delete=models.CASCADE, related_name="scenarios")
    title = models.CharField(max_length=200)
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.SCRIPTED)
    messages = models.JSONField(default=list, blank=True)
    brief = models.JSONField(default=dict, blank=True)
    tools = models.CharField(max_length=8, choices=Tools.choices, default=Tools.RECORDED)
    results = models.JSONField(default=list, blank=True)
    customer_uid = models.CharField(max_length=64, blank=True)
    variables = models.JSONField(default=dict, blank=True)  # what the agent knows of the customer
    kept_from = models.ForeignKey(
        Session, null=True, blank=True, on_delete=models.SET_NULL, related_name="kept_as"
    )
    # Until then its failures are told and count for nothing.
    quarantined_until = models.DateField(null=True, blank=True)
    quarantine_reason = models.TextField(blank=True, max_length=2_000)
    quarantined_by = models.CharField(max_length=150, blank=True)
    position = models.PositiveIntegerField(default=0)
    created_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["suite", "position", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["suite", "uid"], name="scenario_uid_unique_in_suite")
        ]

    def __str__(self) -> str:
        return self.title


class Expectation(models.Model):
    """`data` is an engine.expecting.Expectation as JSON; `because` is why it was written or accepted."""

    uid = models.CharField(max_length=32, default=new_uid)
    scenario = models.ForeignKey(Scenario, on_delete=models.CASCADE, related_name="expectations")
    data = models.JSONField()
    because = models.TextField(blank=True, max_length=2_000)
    created_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["scenario", "pk"]

    def __str__(self) -> str:
        return f"{self.scenario_id}: {self.data.get('kind')}"


class SuiteRun(Batch):
    """A suite run against some versions, each scenario `repeats` times. Its cells are the conversations.

    `scenarios` is what was run, as it was then: [{"uid", "title", "kind", "quarantined", "expectations": [{"uid",
    "data", "sentence"}], …}] (studio.operations.run_snapshots).
    """

    suite = models.ForeignKey(Suite, on_delete=models.CASCADE, related_name="runs")
    against = models.JSONField(default=list)  # as it was asked for: ["draft", "published", 3]
    versions = models.ManyToManyField(AgentVersion, related_name="suite_runs")
    repeats = models.PositiveSmallIntegerField(default=1)
    connection = models.ForeignKey(
        ModelConnection, null=True, blank=True, on_delete=models.SET_NULL, related_name="suite_runs"
    )
    scenarios = models.JSONField(default=list)
    # Of all cells together, once it is over; an engine.expecting.Verdict.
    verdict = models.CharField(max_length=8, blank=True)

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["suite", "-id"], name="suite_run_of_suite")]

    def __str__(self) -> str:
        return f"{self.suite}, #{self.pk}"


class RunCell(Cell):
    """One conversation: a scenario, a version, a repeat from 1.

    `outcomes` are [{"expectation": uid, "state", "because", "turn"}]; `invalid` says why it says nothing of the agent
    (the simulated customer spoiled it); `error` why it could not be had at all.
    """

    run = models.ForeignKey(SuiteRun, on_delete=models.CASCADE, related_name="cells")
    scenario = models.CharField(max_length=32)  # uid
    version = models.ForeignKey(AgentVersion, on_delete=models.PROTECT, related_name="+")
    repeat = models.PositiveSmallIntegerField()
    # The conversation, to be read like any other.
    session = models.ForeignKey(
        Session, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    outcomes = models.JSONField(default=list)
    invalid = models.TextField(blank=True)
    error = models.TextField(blank=True)
    ended_by = models.CharField(max_length=12, blank=True)
    model_calls = models.JSONField(
        default=list
    )  # of the customer and the judge: question, model, tokens

    class Meta:
        ordering = ["run", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["run", "scenario", "version", "repeat"], name="run_cell_once"
            )
        ]
        indexes = [
            models.Index(fields=["run"], condition=Q(state="waiting"), name="run_cell_waiting"),
        ]

    def __str__(self) -> str:
        return f"{self.run_id}: {self.scenario} {self.repeat}"
