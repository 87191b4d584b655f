"""The conversation engine: pure async Python, free of Django, Celery and the studio."""
