"""What an ASGI server runs: the pages and the API, and the static files in front of them."""

import os
from typing import Any

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "studio.settings")
django_application: Any = get_asgi_application()

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from servestatic import ServeStaticASGI

from studio.bodies import with_bounded_bodies


def with_static_files(application: Any) -> ServeStaticASGI:
    """Static files are answered before Django: no session, no middleware, no thread.

    Browsers revalidate them on each use, so that a new version of the studio never runs with old scripts.
    """
    served = ServeStaticASGI(
        application, autorefresh=settings.DEBUG, max_age=0, allow_all_origins=False
    )
    for finder in get_finders():
        for storage in getattr(finder, "storages", {}).values():
            served.add_files(storage.location, prefix=settings.STATIC_URL)
    return served


application = with_static_files(with_bounded_bodies(django_application))
