"""The permission to retry jobs."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("django_jobkit", "0001_initial")]

    operations = [
        migrations.AlterModelOptions(
            name="job",
            options={
                "default_permissions": (),
                "managed": False,
                "permissions": [
                    ("view_job", "Can view jobs"),
                    ("add_job", "Can submit jobs"),
                    ("delete_job", "Can delete jobs"),
                    ("retry_job", "Can retry jobs"),
                ],
                "verbose_name": "job",
                "verbose_name_plural": "jobs",
            },
        ),
    ]
