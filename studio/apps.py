from django.apps import AppConfig


class StudioConfig(AppConfig):
    name = "studio"
    verbose_name = "Guideline Studio"

    def ready(self) -> None:
        # Imported for what importing does: checks register themselves, and tasks need the Celery application.
        from studio import celery, checks  # noqa: F401
