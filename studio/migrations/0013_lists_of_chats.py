"""Lists of sessions find theirs at once, however many the studio played by itself."""

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("studio", "0012_replay_and_regression"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveIndex(model_name="session", name="session_recent"),
        migrations.RemoveIndex(model_name="session", name="session_latest"),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(
                condition=models.Q(("purpose", "chat")),
                fields=["agent", "-last_event_at", "-id"],
                name="session_recent",
            ),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(
                condition=models.Q(("purpose", "chat")),
                fields=["-last_event_at", "-id"],
                name="session_latest",
            ),
        ),
    ]
