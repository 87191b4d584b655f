"""Where calls' results came from, and calls found again by what they were given."""

import base64
import hashlib
import json

from django.db import migrations, models

_AT_ONCE = 500


def key_of(arguments: object) -> str:
    """As studio.bridge.trail.part_key of engine.canonical.canonical_json at the time of this migration."""
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    hashed = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]
    return base64.urlsafe_b64encode(hashed).decode().rstrip("=")


def fill_in(apps, schema_editor):
    """All calls up to now were live, and so were their turns."""
    calls = apps.get_model("studio", "ToolCall").objects.using(schema_editor.connection.alias)
    batch = []
    for call in calls.only("pk", "arguments").iterator(chunk_size=_AT_ONCE):
        call.arguments_key = key_of(call.arguments)
        batch.append(call)
        if len(batch) == _AT_ONCE:
            calls.bulk_update(batch, ["arguments_key"])
            batch = []
    calls.bulk_update(batch, ["arguments_key"])
    turns = apps.get_model("studio", "Turn").objects.using(schema_editor.connection.alias)
    turns.filter(started_at__isnull=False).update(tool_mode="live")


class Migration(migrations.Migration):
    dependencies = [("studio", "0010_guideline_figures")]

    operations = [
        migrations.AddField(
            model_name="turn",
            name="tool_mode",
            field=models.CharField(
                blank=True,
                choices=[
                    ("live", "Live: tools run"),
                    ("recorded", "Recorded: results of earlier calls"),
                    ("mock", "Mocked: results written by hand"),
                ],
                default="",
                max_length=8,
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="toolcall",
            name="arguments_key",
            field=models.CharField(blank=True, default="", max_length=22),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="toolcall",
            name="served",
            field=models.CharField(default="live", max_length=8),
        ),
        migrations.AddField(
            model_name="toolcall",
            name="served_from",
            field=models.CharField(blank=True, default="", max_length=80),
            preserve_default=False,
        ),
        migrations.RunPython(fill_in, migrations.RunPython.noop),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(fields=["tool", "arguments_key", "-id"], name="tool_call_alike"),
        ),
    ]
