"""Django's settings. What differs between installations comes from the environment: see `studio/env.py`."""

import pkgutil
from datetime import timedelta
from typing import Any

import django_stubs_ext
from csp.constants import NONE, SELF

from studio import env

# Lets Django's generic classes be written with their types (`ModelForm[Agent]`) when the code runs, too.
django_stubs_ext.monkeypatch()

ENVIRONMENT = env.read()
BASE_DIR = env.CHECKOUT

# The studio's own
STUDIO_VAR = ENVIRONMENT.var
STUDIO_PUBLIC_URL = ENVIRONMENT.public_url
STUDIO_TRUSTED_PROXIES = list(ENVIRONMENT.trusted_proxies)
STUDIO_WORKER_THREADS = ENVIRONMENT.worker_threads
STUDIO_TOOL_MODULES = ENVIRONMENT.tool_modules
STUDIO_TOOL_BUILD_TIMEOUT = ENVIRONMENT.tool_build_timeout
STUDIO_MODEL = ENVIRONMENT.model
OPENAI_API_KEY = ENVIRONMENT.openai_api_key
OPENAI_BASE_URL = ENVIRONMENT.openai_base_url

# Django
DEBUG = ENVIRONMENT.debug
SECRET_KEY = ENVIRONMENT.secret_key
ALLOWED_HOSTS = list(ENVIRONMENT.allowed_hosts)
CSRF_TRUSTED_ORIGINS = list(ENVIRONMENT.trusted_origins)
ROOT_URLCONF = "studio.urls"
ASGI_APPLICATION = "studio.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "studio",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "axes",
    "csp",
    "ninja",  # serves the API's document reader from here, without a foreign host
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
    "studio.middleware.in_one_thread",
]

_template_loaders: list[Any] = [
    "django.template.loaders.filesystem.Loader",
    "django.template.loaders.app_directories.Loader",
]
if not DEBUG:
    _template_loaders = [("django.template.loaders.cached.Loader", _template_loaders)]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "loaders": [("template_partials.loader.Loader", _template_loaders)],
            "builtins": [
                "template_partials.templatetags.partials",
                "django.templatetags.i18n",
                "django.templatetags.static",
            ],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

# Database
_SQLITE = {
    # Readers never wait for a writer; a writer takes its lock at BEGIN, where waiting for it is safe.
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    # 4 MB of cache for each connection: a worker has one for each of its threads.
    "init_command": (
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; "
        "PRAGMA cache_size=-4000; PRAGMA temp_store=MEMORY;"
    ),
}
_POSTGRES = {
    # Under ASGI threads come and go, so connections belong to a pool and not to a thread.
    "pool": {"min_size": 1, "max_size": STUDIO_WORKER_THREADS + 4, "timeout": 20}
}
DATABASES: dict[str, dict[str, Any]] = {"default": dict(ENVIRONMENT.database)}
_own = _SQLITE if DATABASES["default"]["ENGINE"].endswith("sqlite3") else _POSTGRES
DATABASES["default"]["OPTIONS"] = _own | DATABASES["default"].get("OPTIONS", {})

# Signing in
LOGIN_URL = "/sign-in/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = LOGIN_URL
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
# Whoever goes on guessing is not let in sooner, and whoever shares an address with them not later.
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_VERBOSE = False

# Cookies and headers
SESSION_COOKIE_NAME = "studio_session"
CSRF_COOKIE_NAME = "studio_csrf"
CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = ENVIRONMENT.secure_cookies
SECURE_HSTS_SECONDS = 30 * 24 * 3600 if STUDIO_PUBLIC_URL.startswith("https://") else 0
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "connect-src": [SELF],
        "object-src": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
    }
}

# Uploads
FILE_UPLOAD_HANDLERS = ["studio.uploads.BoundedUploadHandler"]

# Language and time
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English")]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"

# Static files, served by `studio/asgi.py`
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]

# Celery
CELERY_BROKER_URL = ENVIRONMENT.broker_url
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
if CELERY_BROKER_URL.startswith("filesystem"):
    CELERY_BROKER_URL = "filesystem://localhost"
    CELERY_BROKER_TRANSPORT = "studio.broker:Transport"
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(STUDIO_VAR / "queue"),
        "data_folder_out": str(STUDIO_VAR / "queue"),
        "polling_interval": 0.02,
    }
CELERY_IMPORTS = [
    f"studio.operations.{module.name}"
    for module in pkgutil.iter_modules([str(BASE_DIR / "studio" / "operations")])
]
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_SERIALIZER = "json"
CELERY_TASK_DEFAULT_QUEUE = "studio"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
if _own is _SQLITE:
    # A worker's threads keep their connections; elsewhere Celery gives them back to the pool after each task.
    CELERY_DB_REUSE_MAX = 10**9
CELERY_WORKER_POOL = "threads"
CELERY_WORKER_CONCURRENCY = STUDIO_WORKER_THREADS
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False

# Logging: lines on standard error, with the values of secrets masked
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"()": "studio.logs.MaskingFormatter", "secrets": ENVIRONMENT.secrets()}
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": "INFO"},
    "loggers": {
        # Django logs to a handler of its own, which shows tracebacks only while debugging.
        "django": {"handlers": [], "level": "INFO", "propagate": True},
        **{
            name: {"level": "WARNING"}
            for name in ("asyncio", "axes", "celery", "httpx2", "kombu", "openai", "uvicorn")
        },
    },
}
