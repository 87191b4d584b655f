"""For all tests: nothing of the machine's own configuration reaches them, and nothing of them reaches it."""

import os
import tempfile
from pathlib import Path

_CONFIGURATION = ("STUDIO_", "OPENAI_", "DATABASE_URL", "CELERY_", "DJANGO_SETTINGS_MODULE")
for _name in [name for name in os.environ if name.startswith(_CONFIGURATION)]:
    del os.environ[_name]

# A folder of this process's own, so that test processes may run side by side.
_folder = tempfile.TemporaryDirectory(prefix="guideline-studio-tests-")
os.environ["STUDIO_VAR"] = str(Path(_folder.name))
# A queue in memory that nobody reads: work that a test wants done, it runs itself.
os.environ["CELERY_BROKER_URL"] = "memory://"
