"""The trail: what was decided in each turn, and why. One row per entry of engine.trail."""

from django.db import models
from django.db.models import Exists, OuterRef

from studio.models.session import Turn


class TrailRow(models.Model):
    """What all entries share."""

    iteration = models.PositiveSmallIntegerField(default=1)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        abstract = True
        ordering = ["pk"]

    @property
    def duration_ms(self) -> int | None:
        if self.ended_at is None:
            return None
        return round((self.ended_at - self.started_at).total_seconds() * 1000)


class GuidelineMatchQuerySet(models.QuerySet["GuidelineMatch"]):
    def that_fired(self) -> "GuidelineMatchQuerySet":
        """Matches that stand at the end of their turn, one a turn: after relationships, and after judging again."""
        later = GuidelineMatch.objects.filter(
            turn=OuterRef("turn"), guideline=OuterRef("guideline"), pk__gt=OuterRef("pk")
        )
        return self.filter(~Exists(later), state="matched")


class GuidelineMatch(TrailRow):
    turn = models.ForeignKey(
        Turn, on_delete=models.CASCADE, related_name="matches", db_index=False
    )  # an index below begins with it
    guideline = models.CharField(max_length=32)  # uid in the turn's version
    state = models.CharField(max_length=16)
    because = models.TextField(blank=True)
    dropped_by = models.CharField(max_length=32, blank=True)
    added_by = models.CharField(max_length=32, blank=True)
    relation = models.CharField(max_length=20, blank=True)  # engine.spec.RelationKind
    score = models.FloatField(null=True, blank=True)  # probability of a bare verdict
    explained_afterwards = models.BooleanField(default=False)
    model_call = models.CharField(max_length=32, blank=True)

    objects = GuidelineMatchQuerySet.as_manager()

    class Meta(TrailRow.Meta):
        indexes = [
            models.Index(
                fields=["guideline", "state", "started_at", "turn"], name="guideline_match_lately"
            ),
            models.Index(fields=["turn", "guideline"], name="guideline_match_of_turn"),
        ]


class ToolDecision(TrailRow):
    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="decisions")
    guideline = models.CharField(max_length=32)
    tool = models.CharField(max_length=64)
    state = models.CharField(max_length=24)
    because = models.TextField(blank=True)
    arguments = models.JSONField(default=list)  # engine.trail.Argument as JSON
    missing = models.JSONField(default=list)
    invalid = models.JSONField(default=list)
    call = models.CharField(max_length=32, blank=True)
    model_call = models.CharField(max_length=32, blank=True)

    class Meta(TrailRow.Meta):
        indexes = [
            models.Index(fields=["tool", "state", "turn"], name="tool_decision_by_tool"),
            models.Index(fields=["guideline", "started_at"], name="tool_decision_lately"),
            models.Index(fields=["state", "turn"], name="tool_decision_by_state"),
        ]


class ToolCall(TrailRow):
    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="calls")
    uid = models.CharField(max_length=32)
    tool = models.CharField(max_length=64)
    arguments = models.JSONField(default=dict)
    # Of the arguments' canonical JSON, so that earlier calls with the same ones are found: bridge.part_key.
    arguments_key = models.CharField(max_length=22, blank=True)
    state = models.CharField(max_length=10)
    served = models.CharField(max_length=8, default="live")  # engine.trail.Served
    served_from = models.CharField(max_length=80, blank=True)  # "session/turn/call" where recorded
    guidelines = models.JSONField(default=list)
    result = models.JSONField(null=True, blank=True)  # {"data", "metadata"}
    error = models.JSONField(null=True, blank=True)  # engine.errors.ToolError as JSON
    log = models.TextField(blank=True)  # what it printed beside its result

    class Meta(TrailRow.Meta):
        constraints = [
            models.UniqueConstraint(fields=["turn", "uid"], name="tool_call_uid_unique_in_turn")
        ]
        indexes = [
            models.Index(fields=["tool", "started_at"], name="tool_call_recent"),
            models.Index(fields=["tool", "arguments_key", "-id"], name="tool_call_alike"),
            models.Index(fields=["state", "turn"], name="tool_call_by_state"),
        ]


class ToolInsight(TrailRow):
    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="insights")
    tool = models.CharField(max_length=64)
    parameter = models.CharField(max_length=64)
    kind = models.CharField(max_length=8)
    data = models.JSONField(default=dict)  # the rest of engine.trail.ToolInsight


class PromptPart(models.Model):
    """A piece of prompt text, stored once however many calls carry it."""

    key = models.CharField(max_length=22, primary_key=True)  # hash of the text, URL-safe base64
    text = models.TextField()


class ModelCall(TrailRow):
    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="model_calls")
    uid = models.CharField(max_length=32)
    question = models.CharField(max_length=40)
    subject = models.CharField(max_length=120, blank=True)
    model = models.CharField(max_length=120)
    prompt_version = models.CharField(max_length=20)
    request_key = models.CharField(max_length=64)
    messages = models.JSONField(default=list)  # [[role, [PromptPart key, …]], …]
    schema = models.ForeignKey(
        PromptPart, null=True, on_delete=models.PROTECT, related_name="+"
    )  # canonical JSON
    settings = models.JSONField(default=dict)
    attempt = models.PositiveSmallIntegerField(default=1)
    answer_text = models.TextField(blank=True)
    error = models.TextField(blank=True)
    prompt_tokens = models.PositiveIntegerField(default=0)
    cached_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    first_token_at = models.DateTimeField(null=True, blank=True)
    used = models.BooleanField(default=True)
    probability = models.FloatField(null=True, blank=True)  # that a bare verdict is "true"

    class Meta(TrailRow.Meta):
        indexes = [
            models.Index(fields=["request_key"], name="model_call_request_key"),
            # What was spent is summed up without reading the calls, which are long.
            models.Index(
                fields=[
                    "turn",
                    "model",
                    "prompt_tokens",
                    "cached_tokens",
                    "completion_tokens",
                ],
                name="model_call_spend",
            ),
        ]


class ChoicesOffered(TrailRow):
    """What a tool's service named as the choices of its parameters, or why it could not."""

    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="choices_offered")
    tool = models.CharField(max_length=64)
    choices = models.JSONField(default=dict)  # parameter → values
    because = models.TextField(blank=True)


class Adherence(TrailRow):
    """Whether the reply follows a guideline: by the writing model's own report, or `checked` by another question."""

    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="adherence")
    guideline = models.CharField(max_length=32)
    follows = models.BooleanField()
    note = models.TextField(blank=True)
    checked = models.BooleanField(default=False)
    attempt = models.PositiveSmallIntegerField(default=1)
