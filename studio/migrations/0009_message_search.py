"""Full-text search over what was said in sessions, kept by the database itself.

SQLite: an FTS5 table of its own, filled by triggers, so that no way of writing events can forget it. A later migration
that rebuilds `studio_event` (SQLite changes tables by making them anew) takes the triggers away: it has to call
`keep_search` of this module again, and the tests of the search fail until it does.
PostgreSQL: a generated column with an index, which needs no keeping.
"""

from typing import Any

from django.db import migrations, models
from django.db.models import Q

_SQLITE_TABLE = """
CREATE VIRTUAL TABLE studio_message_search
USING fts5(text, tokenize = "unicode61 remove_diacritics 2", prefix = '2 3')
"""
_SQLITE_ROWS = """
INSERT INTO studio_message_search (rowid, text)
SELECT id, json_extract(data, '$.text') FROM studio_event WHERE kind = 'message'
"""
_SQLITE_TRIGGERS = {
    "studio_message_added": """
        AFTER INSERT ON studio_event WHEN new.kind = 'message' BEGIN
            INSERT INTO studio_message_search (rowid, text)
            VALUES (new.id, json_extract(new.data, '$.text'));
        END""",
    "studio_message_removed": """
        AFTER DELETE ON studio_event WHEN old.kind = 'message' BEGIN
            DELETE FROM studio_message_search WHERE rowid = old.id;
        END""",
    "studio_message_before_change": """
        BEFORE UPDATE OF id, kind, data ON studio_event WHEN old.kind = 'message' BEGIN
            DELETE FROM studio_message_search WHERE rowid = old.id;
        END""",
    "studio_message_after_change": """
        AFTER UPDATE OF id, kind, data ON studio_event WHEN new.kind = 'message' BEGIN
            INSERT INTO studio_message_search (rowid, text)
            VALUES (new.id, json_extract(new.data, '$.text'));
        END""",
}

# Words as SQLite takes them: without accents, and parted by punctuation (so that "acme.com" is found by "acme").
# The limit keeps a monstrous message below what a search vector may hold; it is stored all the same.
_POSTGRES_FUNCTION = r"""
CREATE FUNCTION studio_searchable(said text) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT to_tsvector('simple'::regconfig, translate(
    normalize(
        regexp_replace(normalize(left(said, 100000), NFD), '[\u0300-\u036f]', '', 'g'), NFC),
    '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', '                                '))
$$
"""
# Kept beside the message: words that have to stand together are compared in each message that has them all.
_POSTGRES_COLUMN = """
ALTER TABLE studio_event ADD COLUMN searched tsvector
GENERATED ALWAYS AS (CASE WHEN kind = 'message' THEN studio_searchable(data ->> 'text') END) STORED
"""
_POSTGRES_INDEX = """
CREATE INDEX studio_message_search ON studio_event USING gin (searched) WHERE kind = 'message'
"""


def keep_search(_apps: Any, schema_editor: Any) -> None:
    """Let SQLite keep the search table from here on; again where the table of events was made anew."""
    if schema_editor.connection.vendor == "sqlite":
        for name, body in _SQLITE_TRIGGERS.items():
            schema_editor.execute(f"DROP TRIGGER IF EXISTS {name}", params=None)
            schema_editor.execute(f"CREATE TRIGGER {name} {body}", params=None)


def add_search(apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "sqlite":
        schema_editor.execute(_SQLITE_TABLE, params=None)
        schema_editor.execute(_SQLITE_ROWS, params=None)
        keep_search(apps, schema_editor)
    else:
        schema_editor.execute(_POSTGRES_FUNCTION, params=None)
        schema_editor.execute(_POSTGRES_COLUMN, params=None)
        schema_editor.execute(_POSTGRES_INDEX, params=None)


def remove_search(_apps: Any, schema_editor: Any) -> None:
    if schema_editor.connection.vendor == "sqlite":
        for name in _SQLITE_TRIGGERS:
            schema_editor.execute(f"DROP TRIGGER IF EXISTS {name}", params=None)
        schema_editor.execute("DROP TABLE studio_message_search", params=None)
    else:
        schema_editor.execute("ALTER TABLE studio_event DROP COLUMN searched", params=None)
        schema_editor.execute("DROP FUNCTION studio_searchable(text)", params=None)


class Migration(migrations.Migration):
    dependencies = [("studio", "0008_sandbox_in_full")]

    operations = [
        migrations.RunPython(add_search, remove_search),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(fields=["-last_event_at", "-id"], name="session_latest"),
        ),
        migrations.AddIndex(
            model_name="turn",
            index=models.Index(fields=["session"], condition=Q(state="FAILED"), name="turn_failed"),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(fields=["state", "turn"], name="tool_call_by_state"),
        ),
        migrations.RemoveIndex(model_name="tooldecision", name="tool_decision_by_tool"),
        migrations.AddIndex(
            model_name="tooldecision",
            index=models.Index(fields=["tool", "state", "turn"], name="tool_decision_by_tool"),
        ),
        migrations.AddIndex(
            model_name="tooldecision",
            index=models.Index(fields=["state", "turn"], name="tool_decision_by_state"),
        ),
    ]
