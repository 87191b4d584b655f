"""The roles as groups, so that people can be given them from the first start on."""

from django.db import migrations

ROLES = ("author", "developer", "qa", "publisher", "admin")


def make_groups(apps, schema_editor):
    groups = apps.get_model("auth", "Group").objects.using(schema_editor.connection.alias)
    for name in ROLES:
        groups.get_or_create(name=name)


class Migration(migrations.Migration):
    dependencies = [
        ("studio", "0002_tool_declared"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    # Going back leaves the groups: people may have been given them, and they stand in nobody's way.
    operations = [migrations.RunPython(make_groups, migrations.RunPython.noop)]
