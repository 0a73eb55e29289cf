"""No table: only the state from which `migrate` makes the content type and the permissions."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Job",
            fields=[
                ("job_id", models.CharField(max_length=128, primary_key=True, serialize=False, verbose_name="job ID")),
            ],
            options={
                "verbose_name": "job",
                "verbose_name_plural": "jobs",
                "permissions": [
                    ("view_job", "Can view jobs"),
                    ("add_job", "Can submit jobs"),
                    ("delete_job", "Can delete jobs"),
                ],
                "managed": False,
                "default_permissions": (),
            },
        ),
    ]
