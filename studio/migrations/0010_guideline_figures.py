"""Indexes for what a guideline did, and for what was spent."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("studio", "0009_message_search")]

    operations = [
        migrations.RemoveIndex(model_name="guidelinematch", name="guideline_match_fires"),
        migrations.AlterField(
            model_name="guidelinematch",
            name="turn",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="matches",
                to="studio.turn",
            ),
        ),
        migrations.AddIndex(
            model_name="guidelinematch",
            index=models.Index(
                fields=["guideline", "state", "started_at", "turn"], name="guideline_match_lately"
            ),
        ),
        migrations.AddIndex(
            model_name="guidelinematch",
            index=models.Index(fields=["turn", "guideline"], name="guideline_match_of_turn"),
        ),
        migrations.AddIndex(
            model_name="tooldecision",
            index=models.Index(fields=["guideline", "started_at"], name="tool_decision_lately"),
        ),
        migrations.AddIndex(
            model_name="modelcall",
            index=models.Index(
                fields=["turn", "model", "prompt_tokens", "cached_tokens", "completion_tokens"],
                name="model_call_spend",
            ),
        ),
    ]
