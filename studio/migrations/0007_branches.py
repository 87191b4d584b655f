import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('studio', '0006_tool_templates'),
    ]

    operations = [
        migrations.AddField(
            model_name='session',
            name='root',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='tree', to='studio.session'),
        ),
        migrations.AddField(
            model_name='session',
            name='ancestry',
            field=models.JSONField(blank=True, default=list),
        ),
    ]
